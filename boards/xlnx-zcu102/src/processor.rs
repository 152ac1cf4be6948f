//! Instructions that Rust has none for: sleep, caches, barriers, the timer.
//!
//! Interrupts stay masked for good. One that is due ends the processor's sleep all the same, and is then asked for at the interrupt
//! controller (`interrupts.rs`): nothing ever interrupts anything, so nothing has to be locked.

use core::arch::asm;
use critical_section::{Impl, RawRestoreState, set_impl};

/// Bytes of a cache line.
pub const LINE: usize = 64;

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
    unsafe { asm!("dsb sy", "wfi", options(nostack, preserves_flags)) };
}

/// What was stored before reaches memory and devices before what is stored behind.
#[inline]
pub fn barrier() {
    // SAFETY: a barrier changes nothing.
    unsafe { asm!("dsb st", options(nostack, preserves_flags)) };
}

/// What the cache holds of these lines is written to memory.
#[inline]
pub fn clean(bytes: &[u8]) {
    let mut line = bytes.as_ptr().addr() & !(LINE - 1);
    let end = bytes.as_ptr().addr() + bytes.len();
    while line < end {
        // SAFETY: memory gets what the processor sees there already.
        unsafe { asm!("dc cvac, {}", in(reg) line, options(nostack, preserves_flags)) };
        line += LINE;
    }
    barrier();
}

/// What the cache holds of these lines is dropped. What of the first and the last line is not of `bytes` is kept: dirty lines are
/// written to memory first.
#[inline]
pub fn invalidate(bytes: &mut [u8]) {
    let mut line = bytes.as_ptr().addr() & !(LINE - 1);
    let end = bytes.as_ptr().addr() + bytes.len();
    while line < end {
        // SAFETY: the caller has these bytes alone and a device writes them; the others in these lines are written back before.
        unsafe { asm!("dc civac, {}", in(reg) line, options(nostack, preserves_flags)) };
        line += LINE;
    }
    // SAFETY: a barrier changes nothing.
    unsafe { asm!("dsb sy", options(nostack, preserves_flags)) };
}

/// How often the timer counts in a second, as whoever started the processor has set it.
pub fn timer_hz() -> u64 {
    let hz: u64;
    // SAFETY: reads CNTFRQ_EL0, which changes nothing.
    unsafe { asm!("mrs {}, cntfrq_el0", out(reg) hz, options(nomem, nostack, preserves_flags)) };
    hz
}

/// The timer's count.
pub fn timer_count() -> u64 {
    let count: u64;
    // SAFETY: reads CNTVCT_EL0, which changes nothing; the barrier keeps it from being read before what stands before it.
    unsafe { asm!("isb", "mrs {}, cntvct_el0", out(reg) count, options(nostack, preserves_flags)) };
    count
}

/// Has the timer's interrupt be due from this count on.
pub fn timer_at(count: u64) {
    // SAFETY: writes CNTV_CVAL_EL0 and CNTV_CTL_EL0: an interrupt is due at the time, nothing else changes.
    unsafe {
        asm!(
            "msr cntv_cval_el0, {}",
            "msr cntv_ctl_el0, {}",
            "isb",
            in(reg) count, in(reg) 1_u64, options(nostack, preserves_flags)
        );
    }
}

/// The timer is not due any more.
pub fn timer_off() {
    // SAFETY: writes CNTV_CTL_EL0: no interrupt comes any more.
    unsafe { asm!("msr cntv_ctl_el0, xzr", "isb", options(nostack, preserves_flags)) };
}
