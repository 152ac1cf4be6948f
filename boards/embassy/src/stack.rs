//! The stack that all tasks are polled on, and how much of it was never used.

use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};

/// What it is painted with.
const PAINT: u32 = 0xa5a5_a5a5;
const WORD: usize = size_of::<u32>();
/// Bytes below the place where it is painted from that are left alone: whoever paints uses them.
const IN_USE: usize = 1 << 10;

/// Where it begins and ends.
static START: AtomicUsize = AtomicUsize::new(0);
static END: AtomicUsize = AtomicUsize::new(0);

/// Paints what of it is not in use.
///
/// # Safety
/// All of it is mapped, and the caller runs on it.
pub(crate) unsafe fn start(stack: Range<usize>) {
    let here = 0_u32;
    let from = stack.start.next_multiple_of(WORD);
    let to = (&raw const here).addr().saturating_sub(IN_USE).min(stack.end);
    for at in (from..to.saturating_sub(WORD)).step_by(WORD) {
        // SAFETY: aligned words of the stack, far below what is in use, as stacks grow down.
        unsafe { core::ptr::with_exposed_provenance_mut::<u32>(at).write_volatile(PAINT) };
    }
    START.store(from, Ordering::Relaxed);
    END.store(stack.end, Ordering::Relaxed);
}

/// Bytes of it that were never used.
pub(crate) fn never_used() -> usize {
    let (start, end) = (START.load(Ordering::Relaxed), END.load(Ordering::Relaxed));
    // SAFETY: aligned words of the stack, as `start` was promised; one that is in use is any word.
    let word = |at: usize| unsafe { core::ptr::with_exposed_provenance::<u32>(at).read_volatile() };
    (start..end).step_by(WORD).take_while(|at| word(*at) == PAINT).count() * WORD
}
