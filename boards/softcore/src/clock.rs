//! Time: clocks of the processor, 100 MHz unless the image is built for another one. Nothing knows the date: it begins with the image's.

use crate::BUILT_NS;
use crate::registers::{read, write};
use linerate_wire::units::Instant;

const LOW: usize = 0xf002_0000;
/// What the high word was when the low one was read.
const HIGH: usize = LOW + 4;
const WAKE_LOW: usize = LOW + 8;
const WAKE_HIGH: usize = LOW + 12;
/// Nanoseconds of a clock: those that `LINERATE_BOARD_CLOCK_NS` says to the compiler, or 10.
pub const CLOCK_NS: u32 = clock_ns(option_env!("LINERATE_BOARD_CLOCK_NS"));

const fn clock_ns(named: Option<&str>) -> u32 {
    let Some(named) = named else { return 10 };
    match u32::from_str_radix(named, 10) {
        Ok(ns @ 1..=1_000) => ns,
        _ => panic!("LINERATE_BOARD_CLOCK_NS must be a number of nanoseconds, 1 to 1000"),
    }
}

/// Clocks since the start.
pub fn clocks() -> u64 {
    let low = read(LOW);
    u64::from(low) | u64::from(read(HIGH)) << 32
}

/// Time since the start.
pub fn now() -> Instant {
    Instant::from_nanos(clocks() * u64::from(CLOCK_NS))
}

/// The date in ns since 1970.
pub fn wall_ns() -> i64 {
    BUILT_NS + now().as_nanos() as i64
}

/// Has the timer be due at `at`.
pub fn wake_at(at: Instant) {
    let clock = at.as_nanos().div_ceil(u64::from(CLOCK_NS));
    // Not in between: the high word alone may lie in the past.
    write(WAKE_HIGH, u32::MAX);
    write(WAKE_LOW, clock as u32);
    write(WAKE_HIGH, (clock >> 32) as u32);
}

/// The timer is not due any more.
pub fn timer_off() {
    write(WAKE_HIGH, u32::MAX);
}

/// Whether it is due.
pub fn is_due() -> bool {
    clocks() >= u64::from(read(WAKE_LOW)) | u64::from(read(WAKE_HIGH)) << 32
}
