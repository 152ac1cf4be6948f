//! A frame in each direction that is longer than any interface sends, in one descriptor: as long as the other end of the stream allows.

use super::super::Coverage;
use super::slave::Timing;
use super::traffic::Rings;
use super::world::{Manner, World};
use crate::{Dut, Pause};

/// Bytes to transmit, and to receive.
const SENT: usize = 1 << 18;
const RECEIVED: usize = 300_000;
/// Clocks in which that is done.
const CLOCKS: u64 = 400_000;

pub fn run(dut: &mut Dut, seed: u64, coverage: &mut Coverage) -> Result<(), String> {
    let timing = Timing { latency: 5, spread: 0, pauses: [Pause::Never; 5] };
    let manner = Manner { data: timing, descriptors: timing, streams: [Pause::Never; 2], paces: 0 };
    let mut world = World::new(dut, manner, seed)?;
    world.write(0x524, 1 << 16)?;
    let mut rings = Rings::with_sizes(&mut world, 40, 40)?;
    let queue = world.rng.below(world.queues as u64) as usize;
    rings.send_whole(&mut world, queue, SENT);
    rings.tx[queue].ring(&mut world)?;
    rings.rx[queue].give(&mut world, RECEIVED.next_multiple_of(64));
    rings.rx[queue].ring(&mut world)?;
    rings.offer(&mut world, queue, RECEIVED);
    let end = world.dut.cycles() + CLOCKS;
    while rings.tx[queue].outstanding() > 0 || rings.left == 0 || rings.rx[queue].outstanding() > 0 {
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
