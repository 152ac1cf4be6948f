//! Critical sections and sleep of a processor with one core.

use core::arch::asm;
use critical_section::{Impl, RawRestoreState, set_impl};

const IRQ_MASKED: u32 = 1 << 7;

struct Irq;

set_impl!(Irq);

// SAFETY: there is one core, and with IRQ masked nothing else runs on it: FIQ is not used. What was before is
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

/// Masks interrupts for good.
pub fn mask_for_good() {
    // SAFETY: as for sections, without an end.
    unsafe { asm!("cpsid if", options(nostack, preserves_flags)) };
}
