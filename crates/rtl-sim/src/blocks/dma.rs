//! The DMA engine against software's side of its rings: every byte, every status word, every app word, every counter; and that
//! hardware touches nothing that was not handed over.

mod faults;
mod interrupts;
mod line;
mod lite;
mod long;
mod memory;
mod receive;
mod registers;
mod slave;
mod slots;
mod traffic;
mod transmit;
mod world;

use super::Coverage;
use crate::{Dut, Pause, Rng};
use slave::Timing;
use world::Manner;

/// Frames of random traffic in a round, half of them each way: at least; those of faults are about 1,000.
const TRAFFIC: u64 = 2_000;
/// Rounds at least, and at most about so many.
const LEAST: u64 = 2;
const MOST: u64 = 1_000;

/// Rounds of random traffic, of everything that goes wrong and of register accesses, and line rate: at least `frames` frames.
///
/// # Errors
/// The seed, the round and the first difference, or what never happened.
pub fn compare(dut: &mut Dut, seed: u64, frames: u64) -> Result<Coverage, String> {
    let mut coverage = Coverage::default();
    let mut rng = Rng::new(seed);
    let (mut round, traffic) = (0, TRAFFIC.max(frames / MOST));
    while round < LEAST || coverage.frames + 4 * line::FRAMES < frames {
        let manner = manner(&mut rng);
        traffic::run(dut, manner, rng.bits(), traffic / 2, &mut coverage)
            .map_err(|fault| format!("seed {seed}, round {round} of traffic, {manner:?}: {fault}"))?;
        let manner = self::manner(&mut rng);
        faults::run(dut, manner, rng.bits(), &mut coverage)
            .map_err(|fault| format!("seed {seed}, round {round} of faults, {manner:?}: {fault}"))?;
        registers::run(dut, manner, rng.bits())
            .map_err(|fault| format!("seed {seed}, round {round} of registers: {fault}"))?;
        if rng.chance(30) {
            line::run(dut, rng.bits(), &mut coverage)
                .map_err(|fault| format!("seed {seed}, round {round} at line rate: {fault}"))?;
        }
        round += 1;
    }
    long::run(dut, rng.bits(), &mut coverage)
        .map_err(|fault| format!("seed {seed}, long frames: {fault}"))?;
    line::run(dut, rng.bits(), &mut coverage)
        .map_err(|fault| format!("seed {seed}, at line rate: {fault}"))?;
    Ok(coverage)
}

/// Memory and streams of one kind or another.
fn manner(rng: &mut Rng) -> Manner {
    Manner {
        data: timing(rng),
        descriptors: timing(rng),
        streams: core::array::from_fn(|_| {
            rng.pick(&[Pause::Never, Pause::Never, Pause::Percent(30), Pause::Bursts(40), Pause::Bursts(600)])
        }),
        paces: rng.pick(&[0, 0, 1, 20]),
    }
}

fn timing(rng: &mut Rng) -> Timing {
    let mut pauses = [Pause::Never; 5];
    match rng.below(10) {
        0..=4 => {}
        5..=7 => {
            pauses = core::array::from_fn(|_| {
                rng.pick(&[Pause::Never, Pause::Percent(20), Pause::Percent(60), Pause::Bursts(30)])
            });
        }
        // For long on one channel, and that alone.
        _ => pauses[rng.below(5) as usize] = Pause::Bursts(rng.pick(&[300, 1_200])),
    }
    Timing { latency: rng.pick(&[0, 1, 5, 30, 100, 300]), spread: rng.pick(&[0, 0, 3, 40]), pauses }
}
