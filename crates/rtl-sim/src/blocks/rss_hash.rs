//! The hash against `wire::toeplitz`: a tuple in eight steps, one behind the other or with gaps. What the steps so far add up to
//! is compared in every clock for a quarter of the tuples, and for all of them at the end.

use super::Coverage;
use crate::{Dut, Rng};
use linerate_wire::toeplitz::{self, KEY_LEN, MAX_INPUT_LEN};

/// Bits of a tuple in a step.
const STEP: usize = 36;

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
    // What has been given so far adds up to this, if that is known; it shows two clocks later.
    let (mut sum, mut due) = (None, [None; 2]);
    while coverage.frames < frames {
        if coverage.frames % 16 == 0 {
            rng.fill(&mut key);
            let word = |at: usize| u32::from_le_bytes([key[at], key[at + 1], key[at + 2], key[at + 3]]);
            dut.set_wide(key_port, &core::array::from_fn::<u32, 10, _>(|index| word(4 * index)));
        }
        rng.fill(&mut input);
        // The first bits of the tuple are the highest of the first word.
        let len = rng.pick(&[8, 12, 32, 36]);
        input[len..].fill(0);
        let is_detailed = rng.chance(25);
        let (gap, gaps) =
            (if rng.chance(40) { rng.between(2, 5) } else { 0 }, if is_detailed { 20 } else { 0 });
        let mut step = 0;
        let mut left = gap;
        while step < 8 || left > 0 {
            let is_step = step < 8 && !rng.chance(gaps);
            dut.set(valid, u64::from(is_step));
            dut.set(step_port, if is_step { step as u64 } else { rng.below(8) });
            dut.set(word_port, if is_step { word_of(&input, step) } else { rng.bits() });
            dut.settle();
            let found = dut.get(hash) as u32;
            if due[1].is_some_and(|expected| found != expected) {
                return Err(format!(
                    "seed {seed}, clock {}: {found:08x}, expected {:08x?}",
                    dut.cycles(),
                    due[1]
                ));
            }
            dut.edge();
            if is_step {
                step += 1;
                sum = (is_detailed || step == 8).then(|| toeplitz::hash(&key, &beginning(&input, step)));
            } else if step == 8 {
                left -= 1;
            }
            due = [sum, due[0]];
        }
        coverage.frames += 1;
        coverage.count(format!("{len} bytes"));
    }
    Ok(coverage)
}

/// The bits of a step.
fn word_of(input: &[u8; MAX_INPUT_LEN], step: usize) -> u64 {
    let bit = |at: usize| u64::from(input[at / 8] >> (7 - at % 8) & 1);
    (STEP * step..STEP * (step + 1)).fold(0, |word, at| word << 1 | bit(at))
}

/// The tuple with zeros behind its first steps.
fn beginning(input: &[u8; MAX_INPUT_LEN], steps: usize) -> [u8; MAX_INPUT_LEN] {
    let bits = STEP * steps;
    core::array::from_fn(|at| {
        let kept = bits.saturating_sub(8 * at).min(8);
        input[at] & (0xff00u16 >> kept) as u8
    })
}
