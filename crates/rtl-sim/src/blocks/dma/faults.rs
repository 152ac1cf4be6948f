//! Everything that goes wrong: what the queue says then, that the others go on, and that a reset makes all good.

use super::super::Coverage;
use super::memory::{READ, Response};
use super::traffic::Rings;
use super::transmit;
use super::world::{Manner, Way, World, queue};
use crate::{Dut, Pause};

/// Clocks after which something that was to happen has not.
const PATIENCE: u64 = 40_000;

const SOF: u32 = 1 << 31;
const EOF: u32 = 1 << 30;

/// What goes wrong in a transmit queue: descriptors that make no sense.
const TX_NONSENSE: &[(&str, &[u32], bool)] = &[
    // Control words of the descriptors, and whether the last one is complete already.
    ("stale", &[SOF | EOF | 60], true),
    ("stale within a frame", &[SOF | 60, EOF | 60], true),
    ("empty", &[SOF | EOF], false),
    ("empty within a frame", &[SOF | 60, EOF], false),
    ("no beginning", &[EOF | 60], false),
    ("two beginnings", &[SOF | 60, SOF | EOF | 60], false),
    ("no end", &[SOF | 60, 70], false),
];

type Scenario = fn(&mut World<'_>, &mut Rings, usize) -> Result<&'static str, String>;

const SCENARIOS: &[Scenario] = &[
    tx_nonsense,
    tx_unreadable,
    tx_cut,
    tx_bad_descriptor,
    rx_nonsense,
    rx_unwritable,
    rx_bad_descriptor,
    stop_and_go,
    reset_while_running,
    reset_of_all,
];

pub fn run(dut: &mut Dut, manner: Manner, seed: u64, coverage: &mut Coverage) -> Result<(), String> {
    for (index, scenario) in SCENARIOS.iter().enumerate() {
        let manner = if index % 2 == 0 { manner } else { Manner { pause: Pause::Never, ..manner } };
        let mut world = World::new(dut, manner, seed.wrapping_add(index as u64))?;
        world.write(0x524, 1 << 16)?;
        let mut rings = Rings::new(&mut world)?;
        let all: Vec<usize> = (0..world.queues).collect();
        exercise(&mut world, &mut rings, &all)?;
        let victim = world.rng.below(world.queues as u64) as usize;
        let kind =
            scenario(&mut world, &mut rings, victim).map_err(|fault| format!("scenario {index}: {fault}"))?;
        // All is well again, everywhere.
        exercise(&mut world, &mut rings, &all).map_err(|fault| format!("after {kind}: {fault}"))?;
        coverage.frames += rings.left + rings.arrived;
        coverage.count(kind);
    }
    Ok(())
}

/// Frames both ways through these queues, until all have come through.
fn exercise(world: &mut World<'_>, rings: &mut Rings, queues: &[usize]) -> Result<(), String> {
    for &queue in queues {
        for _ in 0..world.rng.between(1, 6) {
            let len = world.rng.between(1, 2_500);
            rings.send(world, queue, len);
        }
        rings.tx[queue].ring(world)?;
        for _ in 0..world.rng.between(1, 4) {
            let len = world.rng.between(14, 600);
            rings.offer(world, queue, len);
        }
    }
    let end = world.dut.cycles() + PATIENCE;
    loop {
        for &queue in queues {
            if rings.refill(world, queue) {
                rings.rx[queue].ring(world)?;
            }
        }
        world.steps(30)?;
        rings.poll(world)?;
        let rx_done = queues.iter().all(|&queue| rings.rx[queue].expected.is_empty());
        let tx_done = queues
            .iter()
            .all(|&queue| rings.tx[queue].expected.is_empty() && rings.tx[queue].outstanding() == 0);
        if rx_done && tx_done {
            return Ok(());
        }
        if world.dut.cycles() > end {
            return Err(format!("frames do not come through: transmit {tx_done}, receive {rx_done}"));
        }
    }
}

/// Waits until the queue has stopped, looks why, lets the others go on, and starts it again.
fn stopped(
    world: &mut World<'_>,
    rings: &mut Rings,
    way: Way,
    victim: usize,
    kinds: u32,
) -> Result<(), String> {
    let base = way.queue(victim);
    let status = world.wait(base + queue::STATUS, "stop", |status| {
        status & (queue::HALTED | queue::ERROR) == queue::HALTED | queue::ERROR
    })?;
    if status & queue::KINDS != kinds || !world.interrupt(way, victim) {
        return Err(format!("{way:?}: status {status:#x} instead of {kinds:#x}"));
    }
    let control = world.read(base + queue::CONTROL)?;
    world.write(base + queue::CONTROL, control | queue::RUN)?;
    if control & queue::RUN != 0 || world.read(base + queue::CONTROL)? & queue::RUN != 0 {
        return Err("a queue that failed runs without a reset".to_owned());
    }
    let errors = world.read(way.base() + 0x10)?;
    let shift = if kinds & queue::DESCRIPTOR != 0 { 4 } else { 0 };
    if errors != ((kinds >> 8) & 7) << shift {
        return Err(format!("{way:?}: errors {errors:#x} of status {status:#x}"));
    }
    let others: Vec<usize> = (0..world.queues).filter(|queue| *queue != victim).collect();
    exercise(world, rings, &others)?;
    restart(world, rings, way, victim)
}

/// Resets a queue and starts it on a fresh ring.
fn restart(world: &mut World<'_>, rings: &mut Rings, way: Way, victim: usize) -> Result<(), String> {
    world.reset(way, victim)?;
    renew(world, rings, way, victim)
}

fn renew(world: &mut World<'_>, rings: &mut Rings, way: Way, victim: usize) -> Result<(), String> {
    let first = match way {
        Way::Transmit => {
            let slot = world.rng.below(rings.tx[victim].slots.len() as u64) as usize;
            rings.tx[victim].rewind(world, slot);
            rings.tx[victim].next_slot()
        }
        Way::Receive => {
            let slot = world.rng.below(rings.rx[victim].slots.len() as u64) as usize;
            rings.rx[victim].rewind(world, slot);
            rings.rx[victim].next_slot()
        }
    };
    world.start(way, victim, first)
}

fn tx_nonsense(world: &mut World<'_>, rings: &mut Rings, victim: usize) -> Result<&'static str, String> {
    let (kind, controls, stale) = TX_NONSENSE[world.rng.below(TX_NONSENSE.len() as u64) as usize];
    let ring = &mut rings.tx[victim];
    let (mut last, dropped) = (0, world.pulses.tx_dropped);
    for control in controls {
        let buffer = 0x20_0000_0000 + ((victim as u64) << 28) + 4096;
        world.memory.allow(buffer, 128, READ);
        last = ring.put(world, buffer, *control, [0; 5]);
    }
    if stale {
        world.memory.store_word(last + 0x1C, 1 << 31);
    }
    ring.ring(world)?;
    let kinds = if stale { queue::DESCRIPTOR | queue::INTERNAL } else { queue::INTERNAL };
    world.wait(Way::Transmit.queue(victim) + queue::STATUS, kind, |status| status & queue::HALTED != 0)?;
    let status = world.memory.load_word(last + 0x1C);
    let expected = match (stale, kind) {
        (true, _) => 1 << 31,
        (false, "no end") => 1 << 31 | 70,
        (false, _) => 1 << 31 | 1 << 28,
    };
    let begun = u64::from(controls[0] & SOF != 0 && controls.len() > 1);
    if status != expected || world.pulses.tx_dropped - dropped != begun {
        return Err(format!("{kind}: status {status:#x}, dropped {}", world.pulses.tx_dropped - dropped));
    }
    stopped(world, rings, Way::Transmit, victim, kinds)?;
    Ok(kind)
}

/// An error, and what a queue's status shows of it.
fn any_error(world: &mut World<'_>) -> (Response, u32) {
    world.rng.pick(&[(Response::Slave, queue::SLAVE), (Response::Decode, queue::DECODE)])
}

fn tx_unreadable(world: &mut World<'_>, rings: &mut Rings, victim: usize) -> Result<&'static str, String> {
    let (response, kind) = any_error(world);
    let before = world.pulses.tx_dropped;
    let most = 1_800.min(200 * world.width);
    let mut frame = vec![0; world.rng.between(100, most)];
    world.rng.fill(&mut frame);
    let user = transmit::random_user(world);
    let last = rings.tx[victim].give(world, frame, user, 1);
    rings.tx[victim].disown();
    let buffer =
        u64::from(world.memory.load_word(last + 8)) | u64::from(world.memory.load_word(last + 12)) << 32;
    world.memory.set_broken(buffer + 70, Some(response));
    rings.tx[victim].ring(world)?;
    let base = Way::Transmit.queue(victim);
    world.wait(base + queue::STATUS, "unreadable", |status| status & queue::HALTED != 0)?;
    let status = world.memory.load_word(last + 0x1C);
    if status >> 28 != 8 | (kind >> 8) || world.pulses.tx_dropped != before + 1 {
        return Err(format!(
            "status {status:#x} of unreadable bytes, {} dropped",
            world.pulses.tx_dropped - before
        ));
    }
    world.memory.set_broken(buffer + 70, None);
    rings.tx[victim].expected.clear();
    stopped(world, rings, Way::Transmit, victim, kind)?;
    Ok("unreadable")
}

/// An error behind what is held back: the frame is cut off.
fn tx_cut(world: &mut World<'_>, rings: &mut Rings, victim: usize) -> Result<&'static str, String> {
    let held = 256 * world.width;
    let mut frame = vec![0; 3 * held];
    world.rng.fill(&mut frame);
    let user = transmit::random_user(world);
    let last = rings.tx[victim].give(world, frame.clone(), user, 1);
    rings.tx[victim].disown();
    let buffer =
        u64::from(world.memory.load_word(last + 8)) | u64::from(world.memory.load_word(last + 12)) << 32;
    let broken = buffer + 2 * held as u64;
    world.memory.set_broken(broken, Some(Response::Slave));
    rings.tx[victim].ring(world)?;
    let end = world.dut.cycles() + PATIENCE;
    let received = loop {
        world.step()?;
        if let Some(received) = world.sink.pop()? {
            break received;
        }
        if world.dut.cycles() > end {
            return Err("a frame that was begun never ends".to_owned());
        }
    };
    // What lies before the error is right; an AXI beat may lie on both sides of it.
    let sure = 2 * held - 64;
    if received.data.len() < sure || received.data[..sure] != frame[..sure] {
        return Err(format!("a frame that was cut off has {} bytes", received.data.len()));
    }
    world.steps(4)?;
    if (world.pulses.tx_cut, world.pulses.tx_dropped) != (1, 0) {
        return Err(format!("{:?} after a frame was cut off", world.pulses));
    }
    world.wait(Way::Transmit.queue(victim) + queue::STATUS, "cut", |status| status & queue::HALTED != 0)?;
    world.memory.set_broken(broken, None);
    rings.tx[victim].expected.clear();
    stopped(world, rings, Way::Transmit, victim, queue::SLAVE)?;
    Ok("cut off")
}

fn tx_bad_descriptor(
    world: &mut World<'_>,
    rings: &mut Rings,
    victim: usize,
) -> Result<&'static str, String> {
    let (response, kind) = any_error(world);
    let mut frame = vec![0; 100];
    world.rng.fill(&mut frame);
    let user = transmit::random_user(world);
    let last = rings.tx[victim].give(world, frame, user, 1);
    rings.tx[victim].disown();
    let is_write = world.rng.chance(50);
    if is_write {
        world.memory.set_unwritable(last + 0x1C, Some(response));
    } else {
        world.memory.set_broken(last, Some(response));
        rings.tx[victim].expected.clear();
    }
    rings.tx[victim].ring(world)?;
    world.wait(Way::Transmit.queue(victim) + queue::STATUS, "descriptor", |status| {
        status & queue::HALTED != 0
    })?;
    world.steps(2_000)?;
    // Where only the status could not be written, the frame has left.
    rings.poll(world)?;
    if !rings.tx[victim].expected.is_empty() {
        return Err("a frame has not left whose status could not be written".to_owned());
    }
    world.memory.set_unwritable(last + 0x1C, None);
    world.memory.set_broken(last, None);
    stopped(world, rings, Way::Transmit, victim, queue::DESCRIPTOR | kind)?;
    Ok(if is_write { "status unwritable" } else { "descriptor unreadable" })
}

/// Empties the victim's receive ring, so that the next buffer is the next frame's.
fn fresh_rx(world: &mut World<'_>, rings: &mut Rings, victim: usize) -> Result<(), String> {
    restart(world, rings, Way::Receive, victim)
}

fn rx_nonsense(world: &mut World<'_>, rings: &mut Rings, victim: usize) -> Result<&'static str, String> {
    fresh_rx(world, rings, victim)?;
    let (kind, skew, len, stale) = world.rng.pick(&[
        ("misaligned", 8, 2_048, false),
        ("misaligned", 32, 64, false),
        ("too short", 0, 63, false),
        ("too short", 0, 0, false),
        ("complete already", 0, 2_048, true),
    ]);
    let drops = world.pulses.rx_drops[victim];
    let buffer = 0x40_0000_0000 + ((victim as u64) << 28) + 4096 + skew;
    let last = rings.rx[victim].put(world, buffer, len, 0);
    rings.rx[victim].disown();
    if stale {
        world.memory.store_word(last + 0x18, 1 << 31);
    }
    rings.rx[victim].ring(world)?;
    rings.offer(world, victim, 100);
    world.wait(Way::Receive.queue(victim) + queue::STATUS, kind, |status| status & queue::HALTED != 0)?;
    let status = world.memory.load_word(last + 0x18);
    let expected = if stale { 1 << 31 } else { 1 << 31 | 1 << 28 | 1 << 27 };
    if status != expected || world.pulses.rx_drops[victim] != drops + 1 {
        return Err(format!("{kind}: status {status:#x}"));
    }
    rings.rx[victim].expected.clear();
    let kinds = if stale { queue::DESCRIPTOR | queue::INTERNAL } else { queue::INTERNAL };
    stopped(world, rings, Way::Receive, victim, kinds)?;
    Ok(kind)
}

fn rx_unwritable(world: &mut World<'_>, rings: &mut Rings, victim: usize) -> Result<&'static str, String> {
    fresh_rx(world, rings, victim)?;
    let (response, kind) = any_error(world);
    rings.rx[victim].give(world, 2_048);
    rings.rx[victim].disown();
    let last = rings.rx[victim].slot_before();
    let buffer =
        u64::from(world.memory.load_word(last + 8)) | u64::from(world.memory.load_word(last + 12)) << 32;
    let len = world.rng.between(200, 1_000);
    let at = buffer + world.rng.below(len as u64);
    world.memory.set_broken(at, Some(response));
    rings.rx[victim].ring(world)?;
    rings.offer(world, victim, len);
    world.wait(Way::Receive.queue(victim) + queue::STATUS, "unwritable", |status| {
        status & queue::HALTED != 0
    })?;
    let status = world.memory.load_word(last + 0x18);
    if status != (8 | (kind >> 8)) << 28 | 3 << 26 | len as u32 {
        return Err(format!("status {status:#x} of a buffer that cannot be written"));
    }
    world.memory.set_broken(at, None);
    rings.rx[victim].expected.clear();
    stopped(world, rings, Way::Receive, victim, kind)?;
    Ok("unwritable")
}

fn rx_bad_descriptor(
    world: &mut World<'_>,
    rings: &mut Rings,
    victim: usize,
) -> Result<&'static str, String> {
    fresh_rx(world, rings, victim)?;
    let (response, kind) = any_error(world);
    rings.rx[victim].give(world, 2_048);
    rings.rx[victim].disown();
    let last = rings.rx[victim].slot_before();
    let is_write = world.rng.chance(60);
    let at = last + if is_write { world.rng.pick(&[0x18, 0x24]) } else { 0 };
    if is_write {
        world.memory.set_unwritable(at, Some(response));
    } else {
        world.memory.set_broken(at, Some(response));
    }
    rings.rx[victim].ring(world)?;
    rings.offer(world, victim, 300);
    world.wait(Way::Receive.queue(victim) + queue::STATUS, "descriptor", |status| {
        status & queue::HALTED != 0
    })?;
    world.memory.set_unwritable(at, None);
    world.memory.set_broken(at, None);
    rings.rx[victim].expected.clear();
    stopped(world, rings, Way::Receive, victim, queue::DESCRIPTOR | kind)?;
    Ok(if is_write { "receive status unwritable" } else { "receive descriptor unreadable" })
}

/// Much to do for the victim in both directions, and some of it done.
fn load(world: &mut World<'_>, rings: &mut Rings, victim: usize) -> Result<(), String> {
    for _ in 0..8 {
        let len = world.rng.between(1, 1_514);
        rings.send(world, victim, len);
        let len = world.rng.between(14, 1_514);
        rings.offer(world, victim, len);
    }
    rings.tx[victim].ring(world)?;
    if rings.refill(world, victim) {
        rings.rx[victim].ring(world)?;
    }
    let clocks = world.rng.below(1_500);
    world.steps(clocks)?;
    Ok(())
}

fn stop_and_go(world: &mut World<'_>, rings: &mut Rings, victim: usize) -> Result<&'static str, String> {
    load(world, rings, victim)?;
    for way in [Way::Transmit, Way::Receive] {
        let base = way.queue(victim);
        let control = world.read(base + queue::CONTROL)?;
        world.write(base + queue::CONTROL, control & !queue::RUN)?;
        if way == Way::Receive {
            // A frame that was begun may need more buffers.
            let given = rings.rx[victim].room() > 0;
            while rings.rx[victim].room() > 0 {
                rings.rx[victim].give(world, 2_048);
            }
            if given {
                rings.rx[victim].ring(world)?;
            }
        }
        world.wait(base + queue::STATUS, "stop", |status| status & queue::HALTED != 0)?;
        rings.poll(world)?;
        let current = world.read(base + queue::CURRENT)?;
        let expected = match way {
            Way::Transmit => rings.tx[victim].oldest(),
            Way::Receive => rings.rx[victim].oldest(),
        };
        if current != expected as u32 {
            return Err(format!("{way:?}: stopped at {current:#x} instead of {expected:#x}"));
        }
        world.write(base + queue::CONTROL, control | queue::RUN)?;
        match way {
            // The doorbell again, for what was not begun.
            Way::Transmit if rings.tx[victim].outstanding() > 0 => rings.tx[victim].ring(world)?,
            Way::Receive if rings.rx[victim].outstanding() > 0 => rings.rx[victim].ring(world)?,
            _ => {}
        }
    }
    // Frames that came while the queue was stopped were dropped.
    settle_receive(world, rings, victim)?;
    Ok("stopped and started")
}

/// Waits until all offered frames have been placed or dropped, and counts.
fn settle_receive(world: &mut World<'_>, rings: &mut Rings, victim: usize) -> Result<(), String> {
    let end = world.dut.cycles() + PATIENCE;
    let mut quiet_since = world.dut.cycles();
    while world.dut.cycles() < quiet_since + 3_000 {
        if rings.refill(world, victim) {
            rings.rx[victim].ring(world)?;
        }
        world.steps(20)?;
        if rings.poll(world)? || world.source.waiting() > 0 {
            quiet_since = world.dut.cycles();
        }
        if world.dut.cycles() > end {
            return Err("frames stay at the door".to_owned());
        }
    }
    let ring = &mut rings.rx[victim];
    ring.give_up()?;
    let lost = ring.missing + ring.cut + ring.expected.len() as u64;
    if lost != world.pulses.rx_drops[victim] {
        return Err(format!("{lost} frames did not come, {} were dropped", world.pulses.rx_drops[victim]));
    }
    ring.write_off();
    Ok(())
}

fn reset_while_running(
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
    settle_receive(world, rings, victim)
}

fn reset_of_all(world: &mut World<'_>, rings: &mut Rings, _: usize) -> Result<&'static str, String> {
    for queue in 0..world.queues {
        load(world, rings, queue)?;
    }
    for base in [0, 0x500] {
        world.write(base, queue::RESET | 1)?;
        world.wait(base, "reset", |control| control & queue::RESET == 0)?;
        if world.read(base)? != 0 || world.read(base + 8)? != 0 || world.read(base + 4)? != 1 {
            return Err("registers of a direction after its reset".to_owned());
        }
    }
    world.write(0x524, 1 << 16)?;
    world.enable()?;
    for queue in 0..world.queues {
        after_reset(world, rings, queue)?;
    }
    Ok("reset of all")
}
