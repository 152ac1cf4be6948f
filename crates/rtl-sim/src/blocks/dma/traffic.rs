//! Random traffic in both directions over all queues.

use super::super::Coverage;
use super::receive::{self, RxRing};
use super::transmit::{self, TxRing};
use super::world::{Manner, Way, World, queue};
use crate::Dut;

/// Clocks without any progress after which the engine is said to hang.
const PATIENCE: u64 = 30_000;

/// The rings of all queues, and how far things are.
pub struct Rings {
    pub tx: Vec<TxRing>,
    pub rx: Vec<RxRing>,
    pub left: u64,
    pub arrived: u64,
    /// Frames that were offered to the receive side.
    pub offered: u64,
    serial: u64,
}

impl Rings {
    /// Rings of random sizes, started.
    pub fn new(world: &mut World<'_>) -> Result<Self, String> {
        let (tx, rx) = (world.rng.between(6, 40), world.rng.between(2, 40));
        Rings::with_sizes(world, tx, rx)
    }

    /// Rings of so many descriptors, started.
    pub fn with_sizes(world: &mut World<'_>, tx_len: usize, rx_len: usize) -> Result<Self, String> {
        let (mut tx, mut rx) = (Vec::new(), Vec::new());
        world.enable()?;
        for queue in 0..world.queues {
            let scattered = tx_len < 64 && world.rng.chance(20);
            let ring = TxRing::new(world, queue, tx_len, scattered);
            world.start(Way::Transmit, queue, ring.next_slot())?;
            tx.push(ring);
            let ring = RxRing::new(world, queue, rx_len);
            world.start(Way::Receive, queue, ring.next_slot())?;
            rx.push(ring);
        }
        Ok(Rings { tx, rx, left: 0, arrived: 0, offered: 0, serial: 0 })
    }

    /// Hands over a frame in one piece.
    pub fn send_whole(&mut self, world: &mut World<'_>, queue: usize, len: usize) {
        let mut frame = vec![0; len];
        world.rng.fill(&mut frame);
        let user = transmit::random_user(world);
        self.tx[queue].give(world, frame, user, 1);
    }

    /// Hands over a frame to transmit, if there is room.
    pub fn send(&mut self, world: &mut World<'_>, queue: usize, len: usize) {
        let ring = &mut self.tx[queue];
        if ring.room() < 5 {
            return;
        }
        let mut frame = vec![0; len];
        world.rng.fill(&mut frame);
        let pieces = world.rng.pick(&[1, 1, 2, 2, 3, 4]);
        let user = transmit::random_user(world);
        ring.give(world, frame, user, pieces);
    }

    /// Hands over receive buffers until the ring is full.
    pub fn refill(&mut self, world: &mut World<'_>, queue: usize) -> bool {
        let ring = &mut self.rx[queue];
        let mut given = false;
        while ring.room() > 0 && world.rng.chance(90) {
            let len = world.rng.pick(&[64, 100, 128, 192, 1024, 1536, 2048, 2048]);
            ring.give(world, len);
            given = true;
        }
        given
    }

    /// A frame for the receive side; its first bytes tell it from all others.
    pub fn offer(&mut self, world: &mut World<'_>, queue: usize, len: usize) {
        let mut frame = vec![0; len.max(14)];
        world.rng.fill(&mut frame);
        self.serial += 1;
        frame[..8].copy_from_slice(&self.serial.to_le_bytes());
        let user = receive::random_user(world, queue);
        if let Some(ring) = self.rx.get_mut(queue) {
            ring.expected.push_back((frame.clone(), user));
        }
        self.offered += 1;
        world.offer(frame, user);
    }

    /// Looks at what has become of everything.
    pub fn poll(&mut self, world: &mut World<'_>) -> Result<bool, String> {
        let mut progress = false;
        while let Some(received) = world.sink.pop()? {
            let channel = crate::TxUser::from_words(received.user).channel;
            let ring =
                self.tx.get_mut(usize::from(channel)).ok_or("a frame of a queue that does not exist")?;
            ring.check(&received)?;
            self.left += 1;
            progress = true;
        }
        for ring in &mut self.tx {
            ring.reclaim(world)?;
        }
        for ring in &mut self.rx {
            let (before, outstanding) = (ring.taken + ring.missing, ring.outstanding());
            ring.take(world)?;
            self.arrived += ring.taken + ring.missing - before;
            // A long frame in small buffers comes piece by piece.
            progress |= ring.outstanding() != outstanding;
        }
        Ok(progress)
    }

    /// Everything that was handed over has left and is complete.
    fn is_sent(&self) -> bool {
        self.tx.iter().all(|ring| ring.expected.is_empty() && ring.outstanding() == 0)
    }
}

/// The length of a frame.
fn length(world: &mut World<'_>) -> usize {
    match world.rng.below(20) {
        0..=5 => world.rng.between(1, 70),
        6..=9 => 60,
        10..=16 => world.rng.between(60, 1_514),
        17 | 18 => 1_514,
        _ => world.rng.between(1_515, 9_000),
    }
}

pub fn run(
    dut: &mut Dut,
    manner: Manner,
    seed: u64,
    frames: u64,
    coverage: &mut Coverage,
) -> Result<(), String> {
    let mut world = World::new(dut, manner, seed)?;
    let waits = world.rng.chance(50);
    let patience = if waits { 1 << 16 } else { world.rng.pick(&[0, 1, 4]) };
    world.write(0x524, patience)?;
    let mut rings = Rings::new(&mut world)?;
    let (mut sent, mut idle_since) = (0, 0);
    loop {
        let clocks = 1 + world.rng.below(40);
        world.steps(clocks)?;
        let progress = rings.poll(&mut world)?;
        let now = world.dut.cycles();
        if progress || idle_since == 0 {
            idle_since = now;
        }
        for queue in 0..world.queues {
            if sent < frames && world.rng.chance(40) {
                let before = rings.tx[queue].sent;
                for _ in 0..world.rng.between(1, 4) {
                    let len = length(&mut world);
                    rings.send(&mut world, queue, len);
                }
                sent += rings.tx[queue].sent - before;
                if rings.tx[queue].sent != before {
                    rings.tx[queue].ring(&mut world)?;
                }
            }
            if world.rng.chance(60) && rings.refill(&mut world, queue) {
                rings.rx[queue].ring(&mut world)?;
            }
        }
        while rings.offered < frames && world.source.waiting() < 3 {
            // One queue too many: a frame for it is dropped.
            let beyond = usize::from(world.queues < 8 && world.rng.chance(2));
            let queue =
                if beyond == 1 { world.queues } else { world.rng.below(world.queues as u64) as usize };
            let len = length(&mut world);
            rings.offer(&mut world, queue, len);
        }
        let is_taken = rings.offered >= frames && world.source.waiting() == 0 && now > idle_since + 2_000;
        if sent >= frames && rings.is_sent() && is_taken {
            break;
        }
        if now > idle_since + PATIENCE {
            return Err(format!("nothing moves; {} frames left, {} came", rings.left, rings.arrived));
        }
    }
    finish(&mut world, &mut rings, waits)?;
    coverage.frames += rings.left + rings.arrived;
    for (kind, count) in [
        ("sent", rings.left),
        ("received", rings.rx.iter().map(|ring| ring.taken).sum()),
        ("dropped", world.pulses.rx_drops.iter().sum::<u64>()),
        ("cut", rings.rx.iter().map(|ring| ring.cut).sum()),
    ] {
        *coverage.kinds.entry(kind.to_owned()).or_default() += count;
    }
    Ok(())
}

/// Everything has come to rest: counters, status, interrupts.
fn finish(world: &mut World<'_>, rings: &mut Rings, waits: bool) -> Result<(), String> {
    let mut all_drops = world.pulses.rx_no_queue;
    for queue in 0..world.queues {
        let (tx, ring) = (&rings.tx[queue], &mut rings.rx[queue]);
        ring.give_up()?;
        let lost = ring.missing + ring.cut + ring.expected.len() as u64;
        let (drops, taken) = (world.pulses.rx_drops[queue], ring.taken);
        if lost != drops || (waits && drops != 0) {
            return Err(format!(
                "queue {queue}: {lost} frames never came whole, {drops} were counted as dropped"
            ));
        }
        all_drops += drops;
        if (world.pulses.tx_frames[queue], world.pulses.rx_frames[queue]) != (tx.complete, taken) {
            return Err(format!("queue {queue}: pulses {:?}", world.pulses));
        }
        if tx.complete != tx.sent {
            return Err(format!("queue {queue}: {} frames complete of {}", tx.complete, tx.sent));
        }
        let (complete, rx, base) = (tx.complete, Way::Receive.queue(queue), Way::Transmit.queue(queue));
        for (address, expected) in [
            (base + queue::TX_FRAMES, complete),
            (rx + queue::RX_FRAMES, taken),
            (rx + queue::RX_DROPS, drops),
        ] {
            let count = u64::from(world.read(address)?);
            if count != expected {
                return Err(format!("the counter at {address:#x} is {count} instead of {expected}"));
            }
        }
        check_status(world, Way::Transmit, queue, complete)?;
        check_status(world, Way::Receive, queue, taken)?;
    }
    let counted = u64::from(world.read(0x514)?);
    if counted != all_drops {
        return Err(format!("{counted} frames counted as dropped instead of {all_drops}"));
    }
    Ok(())
}

fn check_status(world: &mut World<'_>, way: Way, queue: usize, frames: u64) -> Result<(), String> {
    let address = way.queue(queue) + queue::STATUS;
    let status = world.read(address)?;
    let ioc = if frames > 0 { queue::IOC } else { 0 };
    // A receive queue need not have used up its buffers.
    let meant = queue::HALTED
        | queue::IOC
        | queue::ERROR
        | queue::KINDS
        | if way == Way::Transmit { queue::IDLE } else { 0 };
    let idle = if way == Way::Transmit { queue::IDLE } else { 0 };
    if status & meant != ioc | idle || world.interrupt(way, queue) != (ioc != 0) {
        return Err(format!("{way:?} queue {queue}: status {status:#x} at rest"));
    }
    world.write(address, queue::IOC)?;
    let status = world.read(address)?;
    if status & queue::IOC != 0 || world.interrupt(way, queue) {
        return Err(format!("{way:?} queue {queue}: an interrupt that was acknowledged stays ({status:#x})"));
    }
    Ok(())
}
