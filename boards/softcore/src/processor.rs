//! Instructions that Rust has none for: sleep, the data cache.
//!
//! Interrupts are never taken but for the watchdog's, which looks and touches nothing (`watchdog.rs`). One that is due ends the
//! processor's sleep all the same, and is then asked for (`board.rs`): nothing ever interrupts anything, so nothing has to be locked.

use core::arch::asm;
use critical_section::{Impl, RawRestoreState, set_impl};

struct Alone;

set_impl!(Alone);

// SAFETY: one core runs, and no interrupt is ever taken on it but the watchdog's, which enters no section and touches atomics alone until
// it reports and never returns: whatever runs is alone. The barrier keeps the compiler from moving
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

/// `mie`, the interrupts that come or end a sleep: the timer's; and the array's.
const TIMER: u32 = 1 << 7;
const ARRAY: u32 = 1 << 11;

/// Lets the timer interrupt, and nothing else.
pub fn hear_timer() {
    // SAFETY: its handler, the watchdog's, leaves everything as it is.
    unsafe { asm!("csrw mie, {}", "csrsi mstatus, 8", in(reg) TIMER, options(nostack, preserves_flags)) };
}

/// Lets nothing interrupt; timer and array end a sleep.
pub fn hear_nothing() {
    // SAFETY: they are asked for from here on.
    unsafe {
        asm!("csrci mstatus, 8", "csrw mie, {}", in(reg) TIMER | ARRAY, options(nostack, preserves_flags))
    };
}

/// Goes on at an address, and never comes back.
pub fn go_to(address: usize) -> ! {
    // SAFETY: what is there asks nothing of registers, stack or memory: it is a start.
    unsafe { asm!("jr {}", in(reg) address, options(noreturn, nostack)) };
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
