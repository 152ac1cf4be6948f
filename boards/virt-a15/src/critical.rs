//! Critical sections and sleep of a processor with one core.

use core::arch::asm;
use critical_section::{Impl, RawRestoreState, set_impl};

const IRQ_MASKED: u32 = 1 << 7;

struct Irq;

set_impl!(Irq);

// SAFETY: there is one core, and with IRQ masked nothing else runs on it but the watchdog's FIQ, which enters no section and touches
// atomics alone, until it reports and never returns. What was before is
// restored, so that sections nest. Both pieces of assembly are barriers for the compiler, as they may touch memory for all it knows.
unsafe impl Impl for Irq {
    unsafe fn acquire() -> RawRestoreState {
        let before: u32;
        // SAFETY: masking interrupts is always allowed in the modes that this image runs in.
        unsafe { asm!("mrs {}, cpsr", "cpsid i", out(reg) before, options(nostack, preserves_flags)) };
        before & IRQ_MASKED == 0
    }

    unsafe fn release(was_on: RawRestoreState) {
        if was_on {
            // SAFETY: they were on when this section began, says the caller's token.
            unsafe { asm!("cpsie i", options(nostack, preserves_flags)) };
        }
    }
}

/// Sleeps until an interrupt.
pub fn wait_for_interrupt() {
    // SAFETY: the processor goes on with the next interrupt; nothing else changes.
    unsafe { asm!("dsb", "wfi", options(nostack, preserves_flags)) };
}

/// Lets interrupts come from here on.
#[cfg(not(feature = "freertos"))]
pub fn unmask() {
    // SAFETY: every stack and handler is in place.
    unsafe { asm!("cpsie if", options(nostack, preserves_flags)) };
}

/// Masks interrupts for good, that of the watchdog apart: it is masked or not as it was.
pub fn mask_for_good() {
    // SAFETY: as for sections, without an end.
    unsafe { asm!("cpsid i", options(nostack, preserves_flags)) };
}

/// Lets the watchdog interrupt, whatever has masked it: after a report, when nothing else goes on.
pub fn hear_watchdog() {
    // SAFETY: its interrupt has a stack of its own, and whoever calls this only sleeps from now on.
    unsafe { asm!("cpsie f", options(nostack, preserves_flags)) };
}

/// Starts the machine anew, as from power on (PSCI, SYSTEM_RESET).
pub fn reset() -> ! {
    // SAFETY: the emulator takes the call; what it begins with is in memory again by then. It does not return; without anybody to take
    // it, it is an undefined instruction, which is reported.
    unsafe {
        asm!(".arch_extension virt", "dsb", "hvc #0", "2: b 2b", in("r0") 0x8400_0009_u32, options(noreturn, nostack));
    }
}
