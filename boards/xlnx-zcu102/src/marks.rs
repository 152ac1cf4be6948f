//! Marks for whoever counts instructions from outside: functions that do nothing, at addresses that can be found.

use core::arch::global_asm;

global_asm!(
    ".section .text.marks, \"ax\"",
    ".type mark_start, %function",
    ".global mark_start",
    "mark_start: ret",
    ".size mark_start, . - mark_start",
    ".type mark_stop, %function",
    ".global mark_stop",
    "mark_stop: ret",
    ".size mark_stop, . - mark_stop",
);

// SAFETY: these are the functions above: they take nothing, and change nothing.
unsafe extern "C" {
    safe fn mark_start();
    safe fn mark_stop();
}

/// Comes by one of the marks.
pub fn mark(starts: bool) {
    if starts { mark_start() } else { mark_stop() }
}
