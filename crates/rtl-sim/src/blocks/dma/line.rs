//! Frames of 64 bytes (60 without their check sequence) both ways at once. 10 Gb/s bring one in 10.5 clocks; the engine is faster.

use super::super::Coverage;
use super::slave::Timing;
use super::traffic::Rings;
use super::world::{Manner, Way, World, queue};
use crate::{Dut, Pause};

/// Clocks a frame, at most.
const MOST: f64 = 9.25;
/// Frames each way.
pub const FRAMES: u64 = 600;
/// The clocks of the first so many do not count: more than a lap of each ring, as where a ring jumps is known only then.
const START: u64 = 300;

/// Clocks from the address of a read to its answer.
const LATENCY: u64 = 40;
/// Frames of which queues take turns when all of them have descriptors ahead, and descriptors.
const TURNS: usize = 20;

/// Over one queue and over all of them, with memory that answers after 40 clocks. Only at 64 bits is that a promise.
pub fn run(dut: &mut Dut, seed: u64, coverage: &mut Coverage) -> Result<(), String> {
    for queues in [1, usize::MAX] {
        let timing = Timing { latency: LATENCY, spread: 0, pauses: [Pause::Never; 5] };
        let manner = Manner { data: timing, descriptors: timing, streams: [Pause::Never; 2], paces: 0 };
        let mut world = World::new(dut, manner, seed)?;
        let queues = queues.min(world.queues);
        let (tx, rx) = measure(&mut world, queues)?;
        coverage.frames += 2 * FRAMES;
        if world.width == 8 && (tx > MOST || rx > MOST) {
            return Err(format!("{queues} queues: {tx:.2} clocks a frame to transmit, {rx:.2} to receive"));
        }
    }
    Ok(())
}

/// Clocks a frame, each way.
fn measure(world: &mut World<'_>, queues: usize) -> Result<(f64, f64), String> {
    world.write(0x524, 1 << 16)?;
    let mut rings = Rings::with_sizes(world, 64, 64)?;
    for queue in 0..world.queues {
        // So many frames in so short a time reach every threshold.
        for way in [Way::Transmit, Way::Receive] {
            let random = world.rng.below(256) as u32;
            let threshold = world.rng.pick(&[0, 64, 128, random]);
            world.write(way.queue(queue) + queue::CONTROL, threshold << 16 | queue::IOC | queue::RUN)?;
        }
    }
    // A queue, or all from it on.
    let first = world.rng.below(world.queues as u64) as usize;
    let mine: Vec<usize> = (0..queues).map(|at| (first + at) % world.queues).collect();
    let mut sent = 0;
    if queues > 1 {
        take_turns(world, &mut rings, &mine, &mut sent)?;
    }
    let end = world.dut.cycles() + 100_000;
    while world.done_at.iter().any(|times| times.len() < FRAMES as usize) {
        hand_over(world, &mut rings, &mine, &mut sent)?;
        while rings.offered < FRAMES && world.source.waiting() < 100 {
            let queue = mine[rings.offered as usize % queues];
            rings.offer(world, queue, 60);
        }
        world.step()?;
        rings.poll(world)?;
        if world.dut.cycles() > end {
            return Err("nothing moves at line rate".to_owned());
        }
    }
    rings.check_reads(world)?;
    if queues == 1 {
        check_jumps(world, &rings, first)?;
    }
    let [tx, rx] = [0, 1].map(|way| {
        let times = &world.done_at[way];
        (times[FRAMES as usize - 1] - times[START as usize - 1]) as f64 / (FRAMES - START) as f64
    });
    Ok((tx, rx))
}

/// Keeps half of each ring handed over.
fn hand_over(
    world: &mut World<'_>,
    rings: &mut Rings,
    queues: &[usize],
    sent: &mut u64,
) -> Result<(), String> {
    for &queue in queues {
        let mut rings_tx = false;
        while *sent < FRAMES && rings.tx[queue].room() > 32 {
            rings.send_whole(world, queue, 60);
            *sent += 1;
            rings_tx = true;
        }
        if rings_tx {
            rings.tx[queue].ring(world)?;
        }
        let mut refills = false;
        while rings.rx[queue].room() > 32 {
            rings.rx[queue].give(world, 2_048);
            refills = true;
        }
        if refills {
            rings.rx[queue].ring(world)?;
        }
    }
    Ok(())
}

/// Queues and directions that all have descriptors to read take turns at it, and queues that all have frames to send take turns at
/// that.
fn take_turns(
    world: &mut World<'_>,
    rings: &mut Rings,
    queues: &[usize],
    sent: &mut u64,
) -> Result<(), String> {
    (world.data.is_held, world.descriptors.is_held) = (true, true);
    hand_over(world, rings, queues, sent)?;
    // One at a time, so that both directions want the next.
    for clocks in 0..2 * TURNS as u64 {
        world.descriptors.is_held = false;
        world.step()?;
        world.descriptors.is_held = true;
        world.steps(15 + clocks % 2)?;
    }
    world.descriptors.is_held = false;
    world.steps(2_000)?;
    let reads = world.descriptors.log.as_deref().unwrap_or_default();
    let owner = |way: usize, address: u64| {
        queues.iter().position(|queue| {
            let slots = if way == 0 { &rings.tx[*queue].slots } else { &rings.rx[*queue].slots };
            slots.holds(address)
        })
    };
    for way in [0, 1] {
        // The first were on their way before the last doorbell was rung.
        let turns = reads.iter().filter_map(|(_, address)| owner(way, *address)).skip(8).take(TURNS);
        check_turns(&turns.collect::<Vec<_>>(), queues.len())?;
    }
    let is_tx = |address: u64| usize::from(owner(0, address).is_some());
    let ways: Vec<usize> = reads.iter().map(|(_, address)| is_tx(*address)).skip(8).take(TURNS).collect();
    check_turns(&ways, 2)?;
    world.data.is_held = false;
    while rings.turns.len() < 4 + TURNS {
        world.step()?;
        rings.poll(world)?;
    }
    let turns = rings.turns[4..].iter().filter_map(|turn| queues.iter().position(|queue| queue == turn));
    check_turns(&turns.collect::<Vec<_>>(), queues.len())
}

fn check_turns(turns: &[usize], queues: usize) -> Result<(), String> {
    if turns.len() < TURNS || turns.windows(2).any(|pair| (pair[0] + 1) % queues != pair[1]) {
        return Err(format!("whoever has something to do does not take turns: {turns:?}"));
    }
    Ok(())
}

/// Where a ring jumps, the next descriptor is read before the answer to the last one is there.
fn check_jumps(world: &World<'_>, rings: &Rings, queue: usize) -> Result<(), String> {
    let reads = world.descriptors.log.as_deref().unwrap_or_default();
    for slots in [&rings.tx[queue].slots, &rings.rx[queue].slots] {
        let clocks: Vec<u64> = slots.mine(reads).map(|(clock, _)| clock).collect();
        let gap = clocks.windows(2).skip(80).map(|pair| pair[1] - pair[0]).max();
        if gap.is_none_or(|gap| gap >= LATENCY) {
            return Err(format!("{gap:?} clocks between two reads of descriptors of a ring that is known"));
        }
    }
    Ok(())
}
