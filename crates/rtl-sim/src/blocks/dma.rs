//! The DMA engine against software's side of its rings: every byte, every status word, every app word, every counter; and that
//! hardware touches nothing that was not handed over.

mod faults;
mod line;
mod memory;
mod receive;
mod slave;
mod traffic;
mod transmit;
mod world;

use super::Coverage;
use crate::{Dut, Pause, Rng};
use slave::Timing;
use world::Manner;

/// Rounds of random traffic, of line rate, and of everything that goes wrong. Half of `frames` go each way.
///
/// # Errors
/// The seed, the round and the first difference, or what never happened.
pub fn compare(dut: &mut Dut, seed: u64, frames: u64) -> Result<Coverage, String> {
    let mut coverage = Coverage::default();
    let mut rng = Rng::new(seed);
    let rounds = frames.div_ceil(1_000).max(2);
    for round in 0..rounds {
        let manner = manner(&mut rng);
        traffic::run(dut, manner, rng.bits(), frames / rounds / 2, &mut coverage)
            .map_err(|fault| format!("seed {seed}, round {round} of traffic, {manner:?}: {fault}"))?;
        let manner = self::manner(&mut rng);
        faults::run(dut, manner, rng.bits(), &mut coverage)
            .map_err(|fault| format!("seed {seed}, round {round} of faults, {manner:?}: {fault}"))?;
    }
    line::run(dut, rng.bits(), &mut coverage)
        .map_err(|fault| format!("seed {seed}, at line rate: {fault}"))?;
    Ok(coverage)
}

/// Memory and streams of one kind or another.
fn manner(rng: &mut Rng) -> Manner {
    let timing = |rng: &mut Rng| Timing {
        latency: rng.pick(&[0, 1, 5, 30, 100]),
        spread: rng.pick(&[0, 0, 3, 40]),
        stall_percent: rng.pick(&[0, 0, 20, 60]),
    };
    Manner {
        data: timing(rng),
        descriptors: timing(rng),
        pause: rng.pick(&[Pause::Never, Pause::Percent(30), Pause::Bursts(40)]),
    }
}
