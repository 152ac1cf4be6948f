//! Instructions that Rust has none for: sleep, caches, barriers, the timer; and the lock of all cores.
//!
//! Interrupts are never taken, on any core, but for the watchdog's, which looks and touches nothing (`watchdog.rs`). One that is due
//! ends the processor's sleep all the same, and is then asked for at the interrupt controller (`interrupts.rs`): nothing ever interrupts
//! anything. What cores share they lock against each other.

use core::arch::asm;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicUsize, Ordering};
use critical_section::{Impl, RawRestoreState, set_impl};

/// Bytes of a cache line.
pub const LINE: usize = 64;

/// One core at a time.
struct OneCore;

set_impl!(OneCore);

/// Who is inside: 0 for nobody, or the core's number and one.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: only the core that has changed INSIDE from 0 to its own number is inside, until it writes 0; the exchange acquires what the
// write releases, so it sees all that was done inside before. No interrupt is ever taken but the watchdog's, which enters no section
// and touches atomics alone until it reports and never returns, so on a core nothing comes between; a
// core that asks again finds its own number, which nobody else writes, and the innermost release leaves it there. Whoever is inside
// waits for nobody, so each gets in.
unsafe impl Impl for OneCore {
    unsafe fn acquire() -> RawRestoreState {
        let me = core() + 1;
        if INSIDE.load(Ordering::Relaxed) == me {
            return false;
        }
        while INSIDE.compare_exchange_weak(0, me, Ordering::Acquire, Ordering::Relaxed).is_err() {
            while INSIDE.load(Ordering::Relaxed) != 0 {
                spin_loop();
            }
        }
        true
    }

    unsafe fn release(is_outermost: RawRestoreState) {
        if is_outermost {
            INSIDE.store(0, Ordering::Release);
        }
    }
}

/// The number of this core, from 0 on.
#[inline]
pub fn core() -> usize {
    let affinity: u64;
    // SAFETY: reads MPIDR_EL1, which changes nothing and is always the same on a core.
    unsafe { asm!("mrs {}, mpidr_el1", out(reg) affinity, options(pure, nomem, nostack, preserves_flags)) };
    affinity as usize & 0xff
}

/// Asks the monitor above this level to start a core (PSCI, CPU_ON of 64 bits) at an address: what it answers, 0 if it does.
///
/// Only where there is a monitor: the image did not begin at level 3.
pub fn start_core(core: usize, entry: usize) -> i64 {
    let answer: i64;
    // SAFETY: a monitor keeps to the convention of such calls (SMCCC): x0 to x17 are not kept. The other core begins in `start.s`,
    // which gives it a stack of its own.
    unsafe {
        asm!(
            "dsb sy",
            "smc #0",
            inlateout("x0") 0xc400_0003_u64 => answer,
            inlateout("x1") core => _,
            inlateout("x2") entry => _,
            inlateout("x3") 0 => _,
            clobber_abi("C"),
        );
    }
    answer
}

/// Asks the monitor above this level to start the machine anew (PSCI, SYSTEM_RESET).
///
/// Only where there is a monitor: the image did not begin at level 3.
pub fn reset() -> ! {
    // SAFETY: the call does not return.
    unsafe { asm!("dsb sy", "smc #0", "2: b 2b", in("x0") 0x8400_0009_u64, options(noreturn, nostack)) };
}

/// Asks the firmware above this level for a register that only the secure world reaches (EEMI, PM_MMIO_READ); `None` if it refuses.
///
/// Only where there is a monitor: the image did not begin at level 3.
pub fn ask_to_read(register: usize) -> Option<u32> {
    let answer = ask(0xc200_0014, register, 0);
    // The lower half says whether it went well.
    (answer as u32 == 0).then_some((answer >> 32) as u32)
}

/// Asks it to write one (PM_MMIO_WRITE, all bits); whether it did.
///
/// Only where there is a monitor: the image did not begin at level 3.
pub fn ask_to_write(register: usize, value: u32) -> bool {
    ask(0xc200_0013, register | 0xffff_ffff << 32, value) as u32 == 0
}

fn ask(what: u64, first: usize, second: u32) -> u64 {
    let answer: u64;
    // SAFETY: a monitor keeps to the convention of such calls (SMCCC), and answers one that it does not know; registers of devices alone
    // are asked for, which are no memory that Rust knows.
    unsafe {
        asm!(
            "dsb sy",
            "smc #0",
            inlateout("x0") what => answer,
            inlateout("x1") first => _,
            inlateout("x2") u64::from(second) => _,
            inlateout("x3") 0 => _,
            clobber_abi("C"),
        );
    }
    answer
}

/// Lets the interrupts come that the controller lets through.
pub fn unmask() {
    // SAFETY: that is the watchdog's alone, and its handler leaves everything as it is.
    unsafe { asm!("msr daifclr, #2", options(nostack, preserves_flags)) };
}

/// Lets none come.
pub fn mask() {
    // SAFETY: they are asked for from here on.
    unsafe { asm!("msr daifset, #2", options(nostack, preserves_flags)) };
}

/// Has this core's physical timer's interrupt be due after so many counts, fewer than 2^31.
pub fn watchdog_after(counts: u64) {
    // SAFETY: writes CNTP_TVAL_EL0 and CNTP_CTL_EL0: an interrupt is due at the time, nothing else changes.
    unsafe {
        asm!(
            "msr cntp_tval_el0, {}",
            "msr cntp_ctl_el0, {}",
            "isb",
            in(reg) counts, in(reg) 1_u64, options(nostack, preserves_flags)
        );
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

/// What the cache holds of these lines is written to memory. A barrier of stores alone does not wait for that: cache maintenance is over
/// behind one of loads and stores (Armv8-A manual, ordering and completion of cache maintenance instructions).
#[inline]
pub fn clean(bytes: &[u8]) {
    let mut line = bytes.as_ptr().addr() & !(LINE - 1);
    let end = bytes.as_ptr().addr() + bytes.len();
    while line < end {
        // SAFETY: memory gets what the processor sees there already.
        unsafe { asm!("dc cvac, {}", in(reg) line, options(nostack, preserves_flags)) };
        line += LINE;
    }
    // SAFETY: a barrier changes nothing.
    unsafe { asm!("dsb sy", options(nostack, preserves_flags)) };
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

/// How often the timer counts in a second, as whoever started the processor has set it on this core: the count is all cores', this
/// register is each one's own. [`clock::hz`](crate::clock::hz) tells it on all of them.
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
