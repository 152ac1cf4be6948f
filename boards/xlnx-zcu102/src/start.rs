//! The way from reset to `main`, in assembly, and that of the other cores to `core_main`.

use core::arch::global_asm;

/// The end of that way, for the first core: at which exception level it began.
// SAFETY: no other function has this name; `start.s` calls it once, with a stack and all statics in place.
#[unsafe(no_mangle)]
extern "C" fn main(level: u64) -> ! {
    crate::run(level)
}

/// The end of it for the core of this number.
// SAFETY: no other function has this name; `start.s` calls it once on each core that the first one starts, with a stack of its own.
#[unsafe(no_mangle)]
extern "C" fn core_main(core: usize) -> ! {
    crate::cores::arrive(core)
}

global_asm!(include_str!("start.s"), options(raw));

// SAFETY: it lies in `start.s`; only its address is used, as the place where a core begins.
unsafe extern "C" {
    static _start_core: u8;
}

/// Where the other cores begin.
pub fn entry() -> usize {
    (&raw const _start_core).addr()
}
