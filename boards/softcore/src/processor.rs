//! Instructions that Rust has none for: sleep, the data cache.
//!
//! Interrupts stay masked for good. One that is due ends the processor's sleep all the same, and is then asked for (`board.rs`):
//! nothing ever interrupts anything, so nothing has to be locked.

use core::arch::asm;
use critical_section::{Impl, RawRestoreState, set_impl};

struct Alone;

set_impl!(Alone);

// SAFETY: one core runs, and no interrupt is ever taken on it: whatever runs is alone. The barrier keeps the compiler from moving
// memory accesses across.
unsafe impl Impl for Alone {
    unsafe fn acquire() -> RawRestoreState {
        core::sync::atomic::compiler_fence(core::sync::atomic::Ordering::SeqCst);
        true
    }

    unsafe fn release(_: RawRestoreState) {
        core::sync::atomic::compiler_fence(core::sync::atomic::Ordering::SeqCst);
    }
}

/// Sleeps until an interrupt is due.
pub fn wait_for_interrupt() {
    // SAFETY: the processor goes on when an interrupt is due; nothing else changes.
    unsafe { asm!("wfi", options(nostack, preserves_flags)) };
}

/// The interrupts of the array that are due: receive, transmit, link, keys.
pub fn due() -> u32 {
    let due: u32;
    // SAFETY: reads VexRiscv's register of them, which changes nothing.
    unsafe { asm!("csrr {}, 0xfc0", out(reg) due, options(nomem, nostack, preserves_flags)) };
    due
}

/// Empties the data cache. It writes through: memory has all of it already.
///
/// The pipeline begins with it before a branch in front of it is decided, and finishes it though the branch leaves it out (seen in the
/// clocks of each instruction). So it comes behind as many instructions as the pipeline holds.
#[inline]
pub fn empty_data_cache() {
    // SAFETY: VexRiscv's instruction for it, 0x500f: afterwards loads come from memory, which is as the program has left it, or the
    // device. It may change any memory that the device writes to, so the compiler may not move accesses across.
    unsafe { asm!("nop", "nop", "nop", "nop", "nop", ".word 0x500f", options(nostack, preserves_flags)) };
}

/// Why the last trap came, and the address or instruction that it is about.
pub fn trap() -> (u32, u32) {
    let (cause, value): (u32, u32);
    // SAFETY: reads mcause and mtval, which changes nothing.
    unsafe {
        asm!("csrr {}, mcause", "csrr {}, mtval", out(reg) cause, out(reg) value, options(nomem, nostack, preserves_flags));
    };
    (cause, value)
}
