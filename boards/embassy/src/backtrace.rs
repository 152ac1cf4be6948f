//! Who called whom when it ended, found on the stack (`linerate_firmware::backtrace`). Nothing is allocated.

use core::fmt::Arguments;
use core::ops::Range;
use linerate_firmware::backtrace::Code;

/// Calls that are shown.
const SHOWN: usize = 32;
const WORD: usize = size_of::<u32>();

/// Says which calls led here, found in what lies in `memory` from `from` on; the stack ends where that does.
///
/// # Safety
/// `memory` is mapped, and nothing but the caller runs.
pub unsafe fn print(from: usize, memory: Range<usize>, code: &Code<'_>, mut say: impl FnMut(Arguments<'_>)) {
    let from = from.next_multiple_of(WORD);
    if !memory.contains(&from) {
        say(format_args!("no stack at {from:#010x}\n"));
        return;
    }
    // SAFETY: these are aligned words of mapped memory, says the caller, and any bytes are a word.
    let word = |at: usize| unsafe { core::ptr::with_exposed_provenance::<u32>(at).read_volatile() };
    let words = (from..memory.end.saturating_sub(WORD - 1)).step_by(WORD).map(word);
    say(format_args!("calls that the stack tells of, the last one first; some may be old:\n"));
    for call in words.filter_map(|word| code.call_before(word)).take(SHOWN) {
        say(format_args!("  at {call:#010x}\n"));
    }
}
