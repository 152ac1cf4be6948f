//! Frames of 64 bytes (60 without their check sequence) both ways at once, as fast as 10 Gb/s brings them: one in 10.5 clocks.

use super::super::Coverage;
use super::slave::Timing;
use super::traffic::Rings;
use super::world::{Manner, World};
use crate::{Dut, Pause};

/// Frames each way.
pub const FRAMES: u64 = 400;
/// Clocks of the first so many are the start and do not count.
const START: u64 = 20;

/// Over one queue and over all of them, with memory that answers after 40 clocks. Only at 64 bits is that a promise.
pub fn run(dut: &mut Dut, seed: u64, coverage: &mut Coverage) -> Result<(), String> {
    for queues in [1, usize::MAX] {
        let timing = Timing { latency: 40, spread: 0, pauses: [Pause::Never; 5] };
        let manner = Manner { data: timing, descriptors: timing, streams: [Pause::Never; 2], paces: 0 };
        let mut world = World::new(dut, manner, seed)?;
        let queues = queues.min(world.queues);
        let (tx, rx) = measure(&mut world, queues)?;
        coverage.frames += 2 * FRAMES;
        if world.width == 8 && (tx > 10.5 || rx > 10.5) {
            return Err(format!("{queues} queues: {tx:.2} clocks a frame to transmit, {rx:.2} to receive"));
        }
    }
    Ok(())
}

/// Clocks a frame, each way.
fn measure(world: &mut World<'_>, queues: usize) -> Result<(f64, f64), String> {
    world.write(0x524, 1 << 16)?;
    let mut rings = Rings::with_sizes(world, 64, 64)?;
    let (mut sent, mut tx, mut rx) = (0, [0; 2], [0; 2]);
    let end = world.dut.cycles() + 100_000;
    while tx[1] == 0 || rx[1] == 0 {
        for queue in 0..queues {
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
        while rings.offered < FRAMES && world.source.waiting() < 40 {
            let queue = rings.offered as usize % queues;
            rings.offer(world, queue, 60);
        }
        world.step()?;
        rings.poll(world)?;
        let now = world.dut.cycles();
        mark(&mut tx, rings.left, now);
        mark(&mut rx, rings.arrived, now);
        if now > end {
            return Err("nothing moves at line rate".to_owned());
        }
    }
    let per_frame = |[from, to]: [u64; 2]| (to - from) as f64 / (FRAMES - START) as f64;
    Ok((per_frame(tx), per_frame(rx)))
}

fn mark(times: &mut [u64; 2], count: u64, now: u64) {
    if count >= START && times[0] == 0 {
        times[0] = now;
    }
    if count >= FRAMES && times[1] == 0 {
        times[1] = now;
    }
}
