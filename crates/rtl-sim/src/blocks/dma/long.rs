//! What takes long: a frame to transmit that is longer than any interface sends, in one descriptor, while a received one waits for a
//! descriptor as long as that; and a received one that is longer than any.

use super::super::Coverage;
use super::slave::Timing;
use super::traffic::Rings;
use super::world::{Manner, World};
use crate::{Dut, Pause};

/// Bytes to transmit, at least, and to receive.
const SENT: u64 = 1 << 23;
const RECEIVED: usize = 300_000;
/// Times 64 clocks that a frame waits, at least.
const PATIENCE: u64 = 1 << 14;
/// Clocks in which all that is done.
const CLOCKS: u64 = 4_000_000;

pub fn run(dut: &mut Dut, seed: u64, coverage: &mut Coverage) -> Result<(), String> {
    let timing = Timing { latency: 5, spread: 0, pauses: [Pause::Never; 5] };
    let manner = Manner { data: timing, descriptors: timing, streams: [Pause::Never; 2], paces: 0 };
    let mut world = World::new(dut, manner, seed)?;
    let mut rings = Rings::with_sizes(&mut world, 40, 40)?;
    let queue = world.rng.below(world.queues as u64) as usize;
    let end = world.dut.cycles() + CLOCKS;
    send_and_wait(&mut world, &mut rings, queue, end)?;
    world.write(0x524, 1 << 16)?;
    rings.rx[queue].give(&mut world, RECEIVED.next_multiple_of(64));
    rings.rx[queue].ring(&mut world)?;
    rings.offer(&mut world, queue, RECEIVED);
    while rings.left == 0 || rings.tx[queue].outstanding() > 0 || rings.rx[queue].outstanding() > 0 {
        world.steps(50)?;
        rings.poll(&mut world)?;
        if world.dut.cycles() > end {
            return Err("they do not come through".to_owned());
        }
    }
    coverage.frames += 2;
    coverage.count("long");
    Ok(())
}

/// The frame to transmit, and the one that waits until it is dropped.
fn send_and_wait(world: &mut World<'_>, rings: &mut Rings, queue: usize, end: u64) -> Result<(), String> {
    let patience = PATIENCE + world.rng.below(256);
    world.write(0x524, patience as u32)?;
    let len = (SENT + world.rng.below(1 << 10)) as usize;
    world.sink.allow(2 * len);
    rings.tx[queue].enlarge(world, len);
    rings.send_whole(world, queue, len);
    rings.tx[queue].ring(world)?;
    rings.offer(world, queue, 14);
    while world.source.waiting() > 0 && world.dut.cycles() < end {
        world.step()?;
    }
    let from = world.dut.cycles();
    while world.pulses.rx_drops[queue] == 0 && world.dut.cycles() < end {
        world.step()?;
    }
    let waited = world.dut.cycles() - from;
    // The clock of 64 runs on its own. Where a beat has 4 bytes, the frame is taken as a whole only when it is dropped.
    let is_soon = world.width >= 8 && waited < 64 * (patience - 1) - 4;
    if is_soon || waited > 64 * patience + 12 {
        return Err(format!("a frame waited {waited} clocks, with {patience} times 64 allowed"));
    }
    rings.rx[queue].write_off();
    Ok(())
}
