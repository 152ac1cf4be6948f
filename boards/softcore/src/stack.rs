//! The stack, which `start.s` has painted.

use core::ops::Range;

/// What it was painted with.
const PAINT: u32 = 0xa5a5_a5a5;
const WORD: usize = size_of::<u32>();

// SAFETY: the linker script places these two around the stack; only their addresses are used.
unsafe extern "C" {
    static __stack_end: u32;
    static __stack: u32;
}

/// Where it lies.
fn all() -> Range<usize> {
    (&raw const __stack_end).addr()..(&raw const __stack).addr()
}

/// Its words from an address on, to the end where it began; none for an address elsewhere.
pub fn words(from: usize) -> impl Iterator<Item = u32> {
    let Range { start, end } = all();
    let from = if (start..end).contains(&from) { from.next_multiple_of(WORD) } else { end };
    // SAFETY: aligned words of the stack; `start.s` has written each, and one that is in use is any word.
    let word = |at: usize| unsafe { core::ptr::with_exposed_provenance::<u32>(at).read_volatile() };
    (from..end).step_by(WORD).map(word)
}

/// Bytes of it that were never used.
pub fn never_used() -> usize {
    words(all().start).take_while(|word| *word == PAINT).count() * WORD
}
