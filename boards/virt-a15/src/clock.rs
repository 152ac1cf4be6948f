//! Time, from the processor's generic timer: the physical counter tells it and its comparator wakes, the virtual one ticks.
//! Both have 64 bits and never begin anew.

use core::arch::asm;
use linerate_wire::units::Instant;

const HZ: u32 = 62_500_000;
const NS_PER_COUNT: u64 = 16;
/// A tick of FreeRTOS is a millisecond.
#[cfg(feature = "freertos")]
const COUNTS_PER_TICK: u64 = 62_500;
const ENABLE: u32 = 1;

/// Sees that the counter runs as this module takes it to.
pub fn start() {
    let hz: u32;
    // SAFETY: reads CNTFRQ, which changes nothing.
    unsafe { asm!("mrc p15, 0, {}, c14, c0, 0", out(reg) hz, options(nomem, nostack, preserves_flags)) };
    assert!(hz == HZ, "the timer counts {hz} times a second, expected {HZ}");
}

fn counts() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: reads CNTPCT, which changes nothing; the barrier keeps it from being read before what stands before it.
    unsafe {
        asm!("isb", "mrrc p15, 0, {}, {}, c14", out(reg) low, out(reg) high, options(nostack, preserves_flags));
    }
    u64::from(high) << 32 | u64::from(low)
}

#[cfg(feature = "freertos")]
fn virtual_counts() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: reads CNTVCT, as above.
    unsafe {
        asm!("isb", "mrrc p15, 1, {}, {}, c14", out(reg) low, out(reg) high, options(nostack, preserves_flags));
    }
    u64::from(high) << 32 | u64::from(low)
}

/// Sets the physical comparator and switches its interrupt on.
fn wake_at(count: u64) {
    let (low, high) = (count as u32, (count >> 32) as u32);
    // SAFETY: writes CNTP_CVAL and CNTP_CTL: an interrupt comes at the time, nothing else changes.
    unsafe {
        asm!(
            "mcrr p15, 2, {}, {}, c14",
            "mcr p15, 0, {}, c14, c2, 1",
            "isb",
            in(reg) low, in(reg) high, in(reg) ENABLE, options(nostack, preserves_flags)
        );
    }
}

/// Has the timer's interrupt come after so many nanoseconds, instead of what was asked for before.
pub fn wake_after(ns: u64) {
    wake_at(counts().saturating_add(ns.div_ceil(NS_PER_COUNT)));
}

/// Once is enough: the interrupt would come until the comparator is set anew.
pub fn stop_waking() {
    // SAFETY: writes CNTP_CTL: no interrupt comes any more.
    unsafe { asm!("mcr p15, 0, {}, c14, c2, 1", "isb", in(reg) 0, options(nostack, preserves_flags)) };
}

/// Time since the start.
pub fn now() -> Instant {
    Instant::from_nanos(counts() * NS_PER_COUNT)
}

/// Sets the virtual comparator, which is when the next tick comes.
#[cfg(feature = "freertos")]
fn tick_at(count: u64) {
    let (low, high) = (count as u32, (count >> 32) as u32);
    // SAFETY: writes CNTV_CVAL and CNTV_CTL: an interrupt comes at the time, nothing else changes.
    unsafe {
        asm!(
            "mcrr p15, 3, {}, {}, c14",
            "mcr p15, 0, {}, c14, c3, 1",
            "isb",
            in(reg) low, in(reg) high, in(reg) ENABLE, options(nostack, preserves_flags)
        );
    }
}

/// Starts the ticks of FreeRTOS, which calls it with interrupts masked.
#[cfg(feature = "freertos")]
// SAFETY: no other function has this name; the header freertos/UserConfig.h declares it with this type.
#[unsafe(no_mangle)]
extern "C" fn board_start_ticks() {
    tick_at(virtual_counts() + COUNTS_PER_TICK);
    crate::interrupts::enable_tick();
}

/// A tick was heard: the next one comes a millisecond after it was due, so that none is lost when it was heard late.
#[cfg(feature = "freertos")]
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn board_next_tick() {
    let (low, high): (u32, u32);
    // SAFETY: reads CNTV_CVAL, which changes nothing.
    unsafe {
        asm!("mrrc p15, 3, {}, {}, c14", out(reg) low, out(reg) high, options(nomem, nostack, preserves_flags));
    }
    tick_at((u64::from(high) << 32 | u64::from(low)) + COUNTS_PER_TICK);
}

/// Microseconds since the start, for FreeRTOS, which counts what each task has of them.
#[cfg(feature = "freertos")]
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn board_microseconds() -> u32 {
    (counts() * 2 / 125) as u32
}
