//! Queues that are stopped, started and reset while they work.

use super::super::traffic::Rings;
use super::super::transmit;
use super::super::world::{Way, World, queue};
use super::{PATIENCE, renew, restart};

/// A register of a direction: the queue whose frame is under way.
const CHSER: u32 = 0x0C;

/// Frames behind one that does not go on.
const BEHIND: usize = 2;

/// Much to do for the victim in both directions, less for the others, and some of it done.
fn load(world: &mut World<'_>, rings: &mut Rings, victim: usize) -> Result<(), String> {
    let before = rings.tx[victim].sent;
    for _ in 0..8 {
        let len = world.rng.between(1, 1_514);
        rings.send(world, victim, len);
        let len = world.rng.between(14, 1_514);
        rings.offer(world, victim, len);
        let (other, len) = (world.rng.below(world.queues as u64) as usize, world.rng.between(14, 200));
        if other != victim && rings.tx[other].room() >= 5 && world.rng.chance(50) {
            rings.send(world, other, len);
            rings.tx[other].ring(world)?;
            rings.offer(world, other, len);
        }
    }
    // A doorbell without anything new would mean a whole lap.
    if rings.tx[victim].sent != before {
        rings.tx[victim].ring(world)?;
    }
    if rings.refill(world, victim) {
        rings.rx[victim].ring(world)?;
    }
    let most = world.rng.pick(&[50, 300, 1_500]);
    let clocks = world.rng.below(most);
    world.steps(clocks)
}

/// What can stop a queue: the register, and what is written to it for that and afterwards.
fn brake(world: &mut World<'_>, way: Way, victim: usize) -> Result<(u32, u32, u32), String> {
    let control = way.queue(victim) + queue::CONTROL;
    Ok(match world.rng.below(4) {
        0 => (way.base(), 0, 1),
        1 => {
            // The victim, or every queue.
            let all = (1 << world.queues) - 1;
            let left = if world.rng.chance(50) { all & !(1 << victim) } else { 0 };
            (way.base() + 8, left, all)
        }
        _ => {
            let value = world.read(control)?;
            (control, value & !queue::RUN, value | queue::RUN)
        }
    })
}

/// Waits for a bit of a register, which says that a queue or all have come to rest. A frame that was begun may need more buffers to
/// receive, more than a ring has at a time.
fn stop(world: &mut World<'_>, rings: &mut Rings, way: Way, register: u32, bit: u32) -> Result<(), String> {
    let end = world.dut.cycles() + PATIENCE;
    while world.read(register)? & bit == 0 {
        if world.dut.cycles() > end {
            return Err(format!("{way:?}: what was stopped goes on"));
        }
        rings.poll(world)?;
        for ring in rings.rx.iter_mut().filter(|ring| way == Way::Receive && ring.room() > 0) {
            while ring.room() > 0 {
                ring.give(world, 2_048);
            }
            ring.ring(world)?;
        }
    }
    Ok(())
}

/// Receive queues that are stopped while they wait for frames: they keep their place.
pub fn stop_at_rest(world: &mut World<'_>, rings: &mut Rings) -> Result<(), String> {
    let way = Way::Receive;
    world.write(way.base(), 0)?;
    for ring in &rings.rx {
        world.wait(way.queue(ring.queue) + queue::STATUS, "stop", |status| status & queue::HALTED != 0)?;
        let current = world.address(way.queue(ring.queue) + queue::CURRENT)?;
        if current != ring.oldest() {
            return Err(format!("stopped at rest at {current:#x} instead of {:#x}", ring.oldest()));
        }
    }
    world.write(way.base(), 1)?;
    for ring in rings.rx.iter().filter(|ring| ring.outstanding() > 0) {
        ring.ring(world)?;
    }
    Ok(())
}

pub fn stop_and_go(world: &mut World<'_>, rings: &mut Rings, victim: usize) -> Result<&'static str, String> {
    load(world, rings, victim)?;
    for way in [Way::Transmit, Way::Receive] {
        let base = way.queue(victim);
        let (register, off, on) = brake(world, way, victim)?;
        world.write(register, off)?;
        stop(world, rings, way, base + queue::STATUS, queue::HALTED)?;
        if register == way.base() {
            stop(world, rings, way, register + 4, 1)?;
        }
        let stopped = if off == 0 && register != base { 0..world.queues } else { victim..victim + 1 };
        for queue in stopped.clone() {
            stop(world, rings, way, way.queue(queue) + queue::STATUS, queue::HALTED)?;
            rings.poll(world)?;
            let current = world.address(way.queue(queue) + queue::CURRENT)?;
            let expected = match way {
                Way::Transmit => rings.tx[queue].oldest(),
                Way::Receive => rings.rx[queue].oldest(),
            };
            if current != expected {
                return Err(format!("{way:?}: stopped at {current:#x} instead of {expected:#x}"));
            }
        }
        world.write(register, on)?;
        // The doorbell again, for what was not begun.
        for queue in stopped {
            match way {
                Way::Transmit if rings.tx[queue].outstanding() > 0 => rings.tx[queue].ring(world)?,
                Way::Receive if rings.rx[queue].outstanding() > 0 => rings.rx[queue].ring(world)?,
                _ => {}
            }
        }
    }
    // Frames that came while the queue was stopped were dropped.
    settle_receive(world, rings)?;
    Ok("stopped and started")
}

/// Waits until all offered frames have been placed or dropped, and counts.
fn settle_receive(world: &mut World<'_>, rings: &mut Rings) -> Result<(), String> {
    let end = world.dut.cycles() + PATIENCE;
    let mut quiet_since = world.dut.cycles();
    while world.dut.cycles() < quiet_since + 3_000 {
        for queue in 0..world.queues {
            if rings.refill(world, queue) {
                rings.rx[queue].ring(world)?;
            }
        }
        world.steps(20)?;
        if rings.poll(world)? || world.source.waiting() > 0 {
            quiet_since = world.dut.cycles();
        }
        if world.dut.cycles() > end {
            return Err("frames stay at the door".to_owned());
        }
    }
    for ring in &mut rings.rx {
        ring.give_up()?;
        let (lost, drops) =
            (ring.missing + ring.cut + ring.expected.len() as u64, world.pulses.rx_drops[ring.queue]);
        if lost != drops {
            return Err(format!("{lost} frames did not come, {drops} were dropped"));
        }
        ring.write_off();
    }
    Ok(())
}

pub fn reset_while_running(
    world: &mut World<'_>,
    rings: &mut Rings,
    victim: usize,
) -> Result<&'static str, String> {
    load(world, rings, victim)?;
    world.reset(Way::Transmit, victim)?;
    world.reset(Way::Receive, victim)?;
    after_reset(world, rings, victim)?;
    Ok("reset")
}

/// Frames that do not go on: one to transmit whose bytes do not come, and a received one that waits for another buffer. CHSER says
/// whose they are, and a queue that is stopped and started in the midst of one stops behind it all the same.
pub fn serves(world: &mut World<'_>, rings: &mut Rings, victim: usize) -> Result<&'static str, String> {
    let registers = [Way::Transmit, Way::Receive].map(|way| way.base() + CHSER);
    restart(world, rings, Way::Receive, victim)?;
    for register in registers {
        if world.read(register)? != 0 {
            return Err("a queue is said to be served, and none has anything to do".to_owned());
        }
    }
    world.data.is_held = true;
    // Of several bursts: the last is not asked for before the first is taken.
    rings.send_whole(world, victim, transmit::MOST);
    for _ in 0..BEHIND {
        rings.send_whole(world, victim, 60);
    }
    rings.tx[victim].ring(world)?;
    rings.rx[victim].give(world, 64);
    rings.rx[victim].ring(world)?;
    let len = world.rng.between(65, 400);
    rings.offer(world, victim, len);
    for register in registers {
        world.wait(register, "whose frame is under way", |served| served == 1 << victim)?;
    }
    for way in [Way::Transmit, Way::Receive] {
        let control = way.queue(victim) + queue::CONTROL;
        let value = world.read(control)?;
        world.write(control, value & !queue::RUN)?;
        world.write(control, value | queue::RUN)?;
    }
    let end = world.dut.cycles() + PATIENCE;
    while rings.rx[victim].outstanding() > 0 && world.dut.cycles() < end {
        world.steps(20)?;
        rings.poll(world)?;
    }
    for _ in 0..=BEHIND {
        if rings.rx[victim].room() > 0 {
            rings.rx[victim].give(world, 2_048);
        }
    }
    rings.rx[victim].ring(world)?;
    let left = [BEHIND, rings.rx[victim].outstanding().saturating_sub(1)];
    world.data.is_held = false;
    for (way, left) in [Way::Transmit, Way::Receive].into_iter().zip(left) {
        world.wait(way.queue(victim) + queue::STATUS, "idle", |status| status & queue::IDLE != 0)?;
        rings.poll(world)?;
        let current = world.address(way.queue(victim) + queue::CURRENT)?;
        let (outstanding, oldest) = match way {
            Way::Transmit => (rings.tx[victim].outstanding(), rings.tx[victim].oldest()),
            Way::Receive => (rings.rx[victim].outstanding(), rings.rx[victim].oldest()),
        };
        if (outstanding, current) != (left, oldest) {
            return Err(format!("{way:?}: {outstanding} descriptors are left instead of {left}"));
        }
        match way {
            Way::Transmit => rings.tx[victim].ring(world)?,
            Way::Receive if left > 0 => rings.rx[victim].ring(world)?,
            Way::Receive => {}
        }
    }
    Ok("stopped within a frame")
}

/// A reset while frames wait for more descriptors: on their way from memory to transmit, and not to be had to receive.
pub fn reset_within_frames(
    world: &mut World<'_>,
    rings: &mut Rings,
    victim: usize,
) -> Result<&'static str, String> {
    world.reset(Way::Receive, victim)?;
    renew(world, rings, Way::Receive, victim)?;
    world.write(0x524, 0x1_0000)?;
    rings.rx[victim].give(world, 64);
    rings.rx[victim].ring(world)?;
    let len = world.rng.between(65, 400);
    rings.offer(world, victim, len);
    let clocks = world.rng.below(1_000);
    world.steps(clocks)?;
    for _ in 0..4 {
        let ring = &mut rings.tx[victim];
        if ring.room() >= 5 {
            let mut frame = vec![0; world.rng.between(4, 200)];
            world.rng.fill(&mut frame);
            let user = transmit::random_user(world);
            ring.give(world, frame, user, 4);
        }
    }
    rings.tx[victim].ring(world)?;
    let clocks = world.rng.below(400);
    world.steps(clocks)?;
    world.reset(Way::Transmit, victim)?;
    world.reset(Way::Receive, victim)?;
    after_reset(world, rings, victim)?;
    Ok("reset within a frame")
}

/// The interrupts of frames that come alone: of their number or, later, of the delay, and not of the one behind the other. Up to
/// the longest delay takes long, so only now and then.
pub fn delays(world: &mut World<'_>, rings: &mut Rings, _: usize) -> Result<&'static str, String> {
    let is_long = world.rng.chance(12);
    let mut most = 0;
    for queue in 0..world.queues {
        for way in [Way::Transmit, Way::Receive] {
            let random = world.rng.below(256) as u32;
            let short = if world.rng.chance(50) { 17 + random % 24 } else { 1 + random % 4 };
            let long = world.rng.pick(&[random, 0, 16, 32, 64, 127, 128, 129, 255]);
            let (delay, threshold) =
                if is_long { (long, 255) } else { (short, world.rng.pick(&[1, 255, 255])) };
            most = most.max(delay);
            let control = delay << 24 | threshold << 16 | queue::DELAYED | queue::IOC | queue::RUN;
            world.write(way.queue(queue) + queue::CONTROL, control)?;
            world.write(way.queue(queue) + queue::STATUS, u32::MAX)?;
        }
        rings.send(world, queue, 60);
        rings.tx[queue].ring(world)?;
        rings.offer(world, queue, 60);
        if rings.refill(world, queue) {
            rings.rx[queue].ring(world)?;
        }
    }
    world.steps(125 * u64::from(most) + 2_000)?;
    rings.poll(world)?;
    Ok(if is_long { "delays" } else { "short delays" })
}

/// What is complete has left, the rest has not and never will.
fn after_reset(world: &mut World<'_>, rings: &mut Rings, victim: usize) -> Result<(), String> {
    rings.poll(world)?;
    let (reads, writes) = (world.data.beats, world.descriptors.beats);
    world.steps(3_000)?;
    rings.poll(world)?;
    let ring = &rings.tx[victim];
    if ring.sent - ring.expected.len() as u64 != ring.complete {
        return Err(format!(
            "{} of {} left, {} are complete",
            ring.sent - ring.expected.len() as u64,
            ring.sent,
            ring.complete
        ));
    }
    if world.queues == 1 && (reads, writes) != (world.data.beats, world.descriptors.beats) {
        return Err("the bus is used after a reset".to_owned());
    }
    rings.tx[victim].forgive();
    renew(world, rings, Way::Transmit, victim)?;
    renew(world, rings, Way::Receive, victim)?;
    settle_receive(world, rings)
}

pub fn reset_of_all(world: &mut World<'_>, rings: &mut Rings, _: usize) -> Result<&'static str, String> {
    for queue in 0..world.queues {
        load(world, rings, queue)?;
    }
    for way in [Way::Transmit, Way::Receive] {
        world.reset_all(way)?;
    }
    world.write(0x524, 1 << 16)?;
    world.enable()?;
    for queue in 0..world.queues {
        after_reset(world, rings, queue)?;
    }
    Ok("reset of all")
}
