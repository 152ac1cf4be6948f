//! Queues that are stopped, started and reset while they work.

use super::super::traffic::Rings;
use super::super::transmit;
use super::super::world::{Way, World, queue};
use super::{PATIENCE, renew};

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
            let all = (1 << world.queues) - 1;
            (way.base() + 8, all & !(1 << victim), all)
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
        rings.poll(world)?;
        let current = world.address(base + queue::CURRENT)?;
        let expected = match way {
            Way::Transmit => rings.tx[victim].oldest(),
            Way::Receive => rings.rx[victim].oldest(),
        };
        if current != expected {
            return Err(format!("{way:?}: stopped at {current:#x} instead of {expected:#x}"));
        }
        world.write(register, on)?;
        // The doorbell again, for what was not begun.
        let stopped = if register == way.base() { 0..world.queues } else { victim..victim + 1 };
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

/// The interrupts of frames that come alone, up to the longest delay. It takes long, so only now and then.
pub fn delays(world: &mut World<'_>, rings: &mut Rings, _: usize) -> Result<&'static str, String> {
    if !world.rng.chance(12) {
        return Ok("no delay");
    }
    let mut most = 0;
    for queue in 0..world.queues {
        for way in [Way::Transmit, Way::Receive] {
            let random = world.rng.below(256) as u32;
            let delay = world.rng.pick(&[random, 0, 16, 32, 64, 127, 128, 129, 255]);
            most = most.max(delay);
            let control = delay << 24 | 255 << 16 | queue::DELAYED | queue::RUN;
            world.write(way.queue(queue) + queue::CONTROL, control)?;
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
    Ok("delays")
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
