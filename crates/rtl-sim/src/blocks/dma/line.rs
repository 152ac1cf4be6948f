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

/// Over one queue and over all of them, with memory that answers after 40 clocks. Only at 64 bits is that a promise.
pub fn run(dut: &mut Dut, seed: u64, coverage: &mut Coverage) -> Result<(), String> {
    for queues in [1, usize::MAX] {
        let timing = Timing { latency: 40, spread: 0, pauses: [Pause::Never; 5] };
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
            let threshold = world.rng.below(256) as u32;
            world.write(way.queue(queue) + queue::CONTROL, threshold << 16 | queue::IOC | queue::RUN)?;
        }
    }
    // A queue, or all from it on.
    let first = world.rng.below(world.queues as u64) as usize;
    let mut sent = 0;
    let end = world.dut.cycles() + 100_000;
    while world.done_at.iter().any(|times| times.len() < FRAMES as usize) {
        for at in 0..queues {
            let queue = (first + at) % world.queues;
            let mut rings_tx = false;
            while sent < FRAMES && rings.tx[queue].room() > 32 {
                rings.send_whole(world, queue, 60);
                sent += 1;
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
        while rings.offered < FRAMES && world.source.waiting() < 100 {
            let queue = (first + rings.offered as usize % queues) % world.queues;
            rings.offer(world, queue, 60);
        }
        world.step()?;
        rings.poll(world)?;
        if world.dut.cycles() > end {
            return Err("nothing moves at line rate".to_owned());
        }
    }
    let [tx, rx] = [0, 1].map(|way| {
        let times = &world.done_at[way];
        (times[FRAMES as usize - 1] - times[START as usize - 1]) as f64 / (FRAMES - START) as f64
    });
    Ok((tx, rx))
}
