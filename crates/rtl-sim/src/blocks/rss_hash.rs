//! The hash against `wire::toeplitz`: a tuple in eight steps, one behind the other or with gaps.

use super::Coverage;
use crate::{Dut, Rng};
use linerate_wire::toeplitz::{self, KEY_LEN, MAX_INPUT_LEN};

/// Random keys and tuples; `frames` counts tuples.
///
/// # Errors
/// The seed and the first difference.
pub fn compare(dut: &mut Dut, seed: u64, frames: u64) -> Result<Coverage, String> {
    let names = ["cfg_key", "word_valid", "step", "word", "hash"];
    let [key_port, valid, step_port, word_port, hash] = names.map(|name| dut.port(name));
    let (key_port, valid, step_port, word_port, hash) = (key_port?, valid?, step_port?, word_port?, hash?);
    let mut rng = Rng::new(seed);
    let mut coverage = Coverage::default();
    let (mut key, mut input) = ([0; KEY_LEN], [0; MAX_INPUT_LEN]);
    // A tuple's hash shows two clocks behind its last step: what was expected of the last clocks.
    let mut due = [None; 2];
    while coverage.frames < frames {
        if coverage.frames % 16 == 0 && due == [None; 2] {
            rng.fill(&mut key);
            let word = |at: usize| u32::from_le_bytes([key[at], key[at + 1], key[at + 2], key[at + 3]]);
            dut.set_wide(key_port, &core::array::from_fn::<u32, 10, _>(|index| word(4 * index)));
        }
        rng.fill(&mut input);
        // The first bits of the tuple are the highest of the first word.
        let len = rng.pick(&[8, 12, 32, 36]);
        input[len..].fill(0);
        let bits = |step: usize| {
            let bit = |at: usize| u64::from(input[at / 8] >> (7 - at % 8) & 1);
            (36 * step..36 * step + 36).fold(0, |word, at| word << 1 | bit(at))
        };
        let gap = if rng.chance(40) { rng.between(2, 5) } else { 0 };
        for clock in 0..8 + gap {
            let is_step = clock < 8;
            dut.set(valid, u64::from(is_step));
            dut.set(step_port, if is_step { clock as u64 } else { rng.below(8) });
            dut.set(word_port, if is_step { bits(clock) } else { rng.bits() });
            dut.settle();
            if let Some(expected) = due[1] {
                let found = dut.get(hash) as u32;
                if found != expected {
                    return Err(format!(
                        "seed {seed}: {found:08x}, expected {expected:08x} at {}",
                        dut.cycles()
                    ));
                }
            }
            dut.edge();
            due = [(clock == 7).then(|| toeplitz::hash(&key, &input)), due[0]];
        }
        coverage.frames += 1;
        coverage.count(format!("{len} bytes"));
    }
    Ok(coverage)
}
