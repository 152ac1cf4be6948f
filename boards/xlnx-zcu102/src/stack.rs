//! The stacks, one for each core, which `start.s` has painted.

use crate::processor;
use core::ops::Range;

/// What they were painted with.
const PAINT: u64 = 0xa5a5_a5a5_a5a5_a5a5;
const WORD: usize = size_of::<u64>();
/// Bytes of one, as `start.s` has it.
const LEN: usize = 1 << 18;

// SAFETY: the linker script places this below the stacks; only its address is used.
unsafe extern "C" {
    static __stacks: u64;
}

/// Where this core's lies.
fn all() -> Range<usize> {
    let start = (&raw const __stacks).addr() + processor::core() * LEN;
    start..start + LEN
}

/// Its words from an address on, to the end where it began; none for an address elsewhere.
pub fn words(from: usize) -> impl Iterator<Item = u64> {
    let Range { start, end } = all();
    let from = if (start..end).contains(&from) { from.next_multiple_of(WORD) } else { end };
    // SAFETY: aligned words of this core's stack; `start.s` has written each, and one that is in use is any word.
    let word = |at: usize| unsafe { core::ptr::with_exposed_provenance::<u64>(at).read_volatile() };
    (from..end).step_by(WORD).map(word)
}

/// Bytes of it that were never used.
pub fn never_used() -> usize {
    words(all().start).take_while(|word| *word == PAINT).count() * WORD
}
