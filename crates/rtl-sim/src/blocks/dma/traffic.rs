//! Random traffic in both directions over all queues.

use super::super::Coverage;
use super::receive::{self, RxRing};
use super::slots::{LONG, Order};
use super::transmit::{self, TxRing};
use super::world::{Manner, Way, World, queue};
use crate::Dut;

/// Clocks without any progress after which the engine is said to hang.
const PATIENCE: u64 = 30_000;

/// Clocks without any progress after which what was offered has come, or never will: the longest frame may fill a single buffer, over
/// channels that pause for long.
const QUIET: u64 = 12_000;

/// The rings of all queues, and how far things are.
pub struct Rings {
    pub tx: Vec<TxRing>,
    pub rx: Vec<RxRing>,
    pub left: u64,
    pub arrived: u64,
    /// Frames that were offered to the receive side.
    pub offered: u64,
    serial: u64,
    /// What each direction has said of errors.
    pub errors: [u32; 2],
    /// The queues of the frames that have left.
    pub turns: Vec<usize>,
}

impl Rings {
    /// Rings of random sizes, started.
    pub fn new(world: &mut World<'_>) -> Result<Self, String> {
        let (tx, rx) = (world.rng.between(6, 40), world.rng.between(2, 40));
        Rings::with_sizes(world, tx, rx)
    }

    /// Rings of so many descriptors, started. Long ones lie in a row.
    pub fn with_sizes(world: &mut World<'_>, tx_len: usize, rx_len: usize) -> Result<Self, String> {
        let (mut tx, mut rx) = (Vec::new(), Vec::new());
        world.enable()?;
        for queue in 0..world.queues {
            let order = order_of(world, tx_len);
            let ring = TxRing::new(world, queue, tx_len, order);
            world.start(Way::Transmit, queue, ring.next_address())?;
            tx.push(ring);
            let order = order_of(world, rx_len);
            let ring = RxRing::new(world, queue, rx_len, order);
            world.start(Way::Receive, queue, ring.next_address())?;
            rx.push(ring);
        }
        Ok(Rings { tx, rx, left: 0, arrived: 0, offered: 0, serial: 0, errors: [0; 2], turns: Vec::new() })
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
            let any = world.rng.between(64, 2_048);
            match world.rng.pick(&[0, 64, 100, 128, 192, 1024, 1536, 2048, 2048, any]) {
                0 => ring.give_vast(world),
                len => ring.give(world, len),
            }
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
            self.turns.push(usize::from(channel));
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

    /// Descriptors were read as they must be, from start to end.
    pub fn check_reads(&self, world: &World<'_>) -> Result<(), String> {
        let reads = world.descriptors.log.as_deref().unwrap_or_default();
        self.tx.iter().try_for_each(|ring| ring.slots.check_reads(reads))?;
        self.rx.iter().try_for_each(|ring| ring.slots.check_reads(reads))
    }

    /// Everything that was handed over has left and is complete.
    fn is_sent(&self) -> bool {
        self.tx.iter().all(|ring| ring.expected.is_empty() && ring.outstanding() == 0)
    }
}

/// How a ring lies in memory.
fn order_of(world: &mut World<'_>, len: usize) -> Order {
    if len >= LONG {
        return Order::Row;
    }
    world.rng.pick(&[Order::Row, Order::Row, Order::Scattered, Order::Wandering])
}

/// The length of a frame: also at the ends of words, of bursts, and of what is held back.
fn length(world: &mut World<'_>) -> usize {
    let around = |rng: &mut crate::Rng, middle: usize| middle + rng.between(0, 18) - 9;
    match world.rng.below(80) {
        0..=25 => world.rng.between(1, 70),
        26..=46 => 60,
        47..=64 => world.rng.between(60, 1_514),
        65 | 66 => 1_514,
        67..=75 => {
            let middle = world.rng.pick(&[64, 128, 192, 256, 512, 1_024]);
            around(&mut world.rng, middle)
        }
        76 | 77 => {
            let held = 256 * world.width;
            around(&mut world.rng, held.min(transmit::MOST - 9))
        }
        78 => {
            let middle = world.rng.pick(&[2_048, 4_096]);
            around(&mut world.rng, middle)
        }
        _ => world.rng.between(1_515, transmit::MOST),
    }
}

/// Frames to transmit, in a queue or in none; some are waited for behind the doorbell of the one before.
fn send(world: &mut World<'_>, rings: &mut Rings, queue: usize) -> Result<u64, String> {
    let before = rings.tx[queue].sent;
    let mut rung = before;
    for _ in 0..world.rng.between(1, 4) {
        let len = length(world);
        rings.send(world, queue, len);
        if rings.tx[queue].sent != rung && world.rng.chance(30) {
            rings.tx[queue].ring(world)?;
            rung = rings.tx[queue].sent;
        }
    }
    if rings.tx[queue].sent != rung {
        rings.tx[queue].ring(world)?;
    }
    Ok(rings.tx[queue].sent - before)
}

/// Software looks at a queue that runs, or changes its interrupts.
fn look_around(world: &mut World<'_>, deaf: Option<usize>) -> Result<(), String> {
    let way = world.rng.pick(&[Way::Transmit, Way::Receive]);
    let index = world.rng.below(world.queues as u64) as usize;
    let base = way.queue(index);
    match world.rng.below(8) {
        0 if way == Way::Transmit || deaf != Some(index) => world.tune(way, index),
        1 => {
            let bits = world.rng.bits() as u32;
            world.write(base + queue::STATUS, bits)
        }
        2 | 3 => world.read(base + queue::STATUS).map(drop),
        4 => world.read(base + queue::CONTROL).map(drop),
        5 => world.read(base + queue::TX_FRAMES).map(drop),
        6 => world.read(base + queue::RX_FRAMES).map(drop),
        _ => world.read(way.base() + if way == Way::Transmit { 0x28 } else { 0x20 }).map(drop),
    }
}

/// For how long a frame waits for a descriptor, and whether that is so long that none is dropped.
fn patience(world: &mut World<'_>) -> Result<bool, String> {
    let waits = world.rng.chance(50);
    let patience = if waits {
        // Or as long as a frame ever waits here.
        world.rng.pick(&[1 << 16, 0x1_0001, 0xFFFF])
    } else {
        world.rng.pick(&[0, 1, 4])
    };
    world.write(0x524, patience)?;
    Ok(waits)
}

pub fn run(
    dut: &mut Dut,
    manner: Manner,
    seed: u64,
    frames: u64,
    coverage: &mut Coverage,
) -> Result<(), String> {
    let mut world = World::new(dut, manner, seed)?;
    let waits = patience(&mut world)?;
    let mut rings = Rings::new(&mut world)?;
    for queue in 0..world.queues {
        world.tune(Way::Transmit, queue)?;
        world.tune(Way::Receive, queue)?;
    }
    // A queue that does not receive: whatever comes for it is dropped.
    let deaf = world.rng.chance(25).then(|| world.rng.below(world.queues as u64) as usize);
    if let Some(queue) = deaf {
        let base = Way::Receive.queue(queue);
        world.write(base + queue::CONTROL, 1 << 16 | 0xF0)?;
        world.wait(base + queue::STATUS, "stop", |status| status & queue::HALTED != 0)?;
    }
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
                sent += send(&mut world, &mut rings, queue)?;
            }
            if deaf != Some(queue) && world.rng.chance(60) && rings.refill(&mut world, queue) {
                rings.rx[queue].ring(&mut world)?;
            }
        }
        if world.rng.chance(20) {
            look_around(&mut world, deaf)?;
        }
        while rings.offered < frames && world.source.waiting() < 3 {
            // A frame for a queue that there is not is dropped.
            let is_beyond = world.queues < 16 && world.rng.chance(2);
            let (from, to) = if is_beyond { (world.queues, 15) } else { (0, world.queues - 1) };
            let queue = world.rng.between(from, to);
            let len = length(&mut world);
            rings.offer(&mut world, queue, len);
        }
        let is_taken = rings.offered >= frames && world.source.waiting() == 0 && now > idle_since + QUIET;
        if sent >= frames && rings.is_sent() && is_taken {
            break;
        }
        if now > idle_since + PATIENCE {
            return Err(format!("nothing moves; {} frames left, {} came", rings.left, rings.arrived));
        }
    }
    rings.check_reads(&world)?;
    finish(&mut world, &mut rings, waits, deaf)?;
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
fn finish(world: &mut World<'_>, rings: &mut Rings, waits: bool, deaf: Option<usize>) -> Result<(), String> {
    let mut all_drops = world.pulses.rx_no_queue;
    for queue in 0..world.queues {
        let (tx, ring) = (&rings.tx[queue], &mut rings.rx[queue]);
        ring.give_up()?;
        let lost = ring.missing + ring.cut + ring.expected.len() as u64;
        let (drops, taken) = (world.pulses.rx_drops[queue], ring.taken);
        if lost != drops || (waits && deaf != Some(queue) && drops != 0) {
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
        check_status(world, Way::Transmit, queue, queue::IDLE)?;
        // A receive queue need not have used up its buffers.
        let is_used_up = rings.rx[queue].outstanding() == 0;
        let state = if is_used_up { queue::IDLE } else { 0 };
        check_status(world, Way::Receive, queue, if deaf == Some(queue) { queue::HALTED } else { state })?;
    }
    let counted = u64::from(world.read(0x514)?);
    if counted != all_drops {
        return Err(format!("{counted} frames counted as dropped instead of {all_drops}"));
    }
    Ok(())
}

/// A queue that has nothing to do. What its interrupt is like has been compared all the time.
fn check_status(world: &mut World<'_>, way: Way, queue: usize, state: u32) -> Result<(), String> {
    let base = way.queue(queue);
    let status = world.read(base + queue::STATUS)?;
    if status & (queue::HALTED | queue::ERROR | queue::KINDS | queue::IDLE) != state {
        return Err(format!("{way:?} queue {queue}: status {status:#x} at rest"));
    }
    // All interrupts are acknowledged.
    let run = if state == queue::HALTED { 0 } else { queue::RUN };
    world.write(base + queue::CONTROL, run | 1 << 16 | 0xF0)?;
    world.write(base + queue::STATUS, 0xF0)?;
    world.read(base + queue::STATUS).map(drop)
}
