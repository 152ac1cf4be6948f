//! Counters of an image that the compiler has made count how often each part of it is executed: what `cargo xtask board softcore profile`
//! reads them by. Other images have the command as well, as a profile fits code that is alike, and none.

use crate::uart;
use core::fmt::Write as _;

/// Sends how many bytes there are, a line, and then those.
#[inline(never)]
pub fn send() {
    let counters = counted();
    let _ = writeln!(uart::Out, "counters {}", counters.len() * 4);
    counters.flat_map(|address| crate::registers::read(address).to_le_bytes()).for_each(uart::send);
}

/// The addresses of their words.
#[cfg(counters)]
fn counted() -> impl ExactSizeIterator<Item = usize> {
    crate::registers::counters().step_by(4)
}

/// None.
#[cfg(not(counters))]
fn counted() -> impl ExactSizeIterator<Item = usize> {
    core::iter::empty()
}
