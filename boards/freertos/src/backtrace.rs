//! Who called whom when it ended, found on the stack (`linerate_firmware::backtrace`). Nothing is allocated, and FreeRTOS is not
//! asked: its state may be what broke.

use core::fmt::Arguments;
use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};
use linerate_firmware::backtrace::Code;

/// Tasks that have noted where their stack begins.
const TASKS: usize = 8;
/// Calls that are shown.
const SHOWN: usize = 32;
/// Bytes that are searched of a stack which is no task's.
const OTHER: usize = 4 << 10;
const WORD: usize = size_of::<u32>();

static TOPS: [AtomicUsize; TASKS] = [const { AtomicUsize::new(0) }; TASKS];

/// A task begins here, at the top of its stack.
pub(crate) fn note_stack() {
    let here = 0_u8;
    let here = (&raw const here).addr();
    let note =
        |top: &AtomicUsize| top.compare_exchange(0, here, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    // Where there are more tasks, the next higher stack is searched to its top.
    let _is_noted = TOPS.iter().any(note);
}

/// Says which calls led here, found in what lies in `memory` from `from` on to the top of that stack.
///
/// # Safety
/// `memory` is mapped, and nothing but the caller runs: no task, no interrupt.
pub unsafe fn print(from: usize, memory: Range<usize>, code: &Code<'_>, mut say: impl FnMut(Arguments<'_>)) {
    let from = from.next_multiple_of(WORD);
    if !memory.contains(&from) {
        say(format_args!("no stack at {from:#010x}\n"));
        return;
    }
    let tops = TOPS.iter().map(|top| top.load(Ordering::Relaxed));
    let top = tops.filter(|top| *top >= from).min().unwrap_or(from.saturating_add(OTHER)).min(memory.end);
    // SAFETY: these are aligned words of mapped memory, says the caller, and any bytes are a word.
    let word = |at: usize| unsafe { core::ptr::with_exposed_provenance::<u32>(at).read_volatile() };
    let words = (from..top.saturating_sub(WORD - 1)).step_by(WORD).map(word);
    say(format_args!("calls that the stack tells of, the last one first; some may be old:\n"));
    for call in words.filter_map(|word| code.call_before(word)).take(SHOWN) {
        say(format_args!("  at {call:#010x}\n"));
    }
}
