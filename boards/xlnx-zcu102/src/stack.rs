//! The stack, which `start.s` has painted.

/// What it was painted with.
const PAINT: u64 = 0xa5a5_a5a5_a5a5_a5a5;

// SAFETY: the linker script places these two around the stack; only their addresses are used.
unsafe extern "C" {
    static __stack_end: u64;
    static __stack: u64;
}

/// Bytes of it that were never used.
pub fn never_used() -> usize {
    let (from, to) = (&raw const __stack_end, &raw const __stack);
    let words = (to.addr() - from.addr()) / size_of::<u64>();
    // SAFETY: words of the stack, below the one that is in use now; `start.s` has written each.
    let is_painted = |at: &usize| unsafe { from.add(*at).read_volatile() } == PAINT;
    (0..words).take_while(is_painted).count() * size_of::<u64>()
}
