//! The way from reset to `main`, in assembly.

use core::arch::global_asm;

/// The end of that way.
// SAFETY: no other function has this name; `start.s` calls it once, with a stack and all statics in place.
#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    crate::run()
}

global_asm!(include_str!("start.s"), include_str!("memory.s"), include_str!("rates.s"));
