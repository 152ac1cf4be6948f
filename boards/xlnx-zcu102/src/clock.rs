//! Time, from the processor's generic timer, and the date, from the board's clock that runs on a battery.

use crate::processor;
use crate::registers::read;
use core::sync::atomic::{AtomicU64, Ordering};
use linerate_wire::units::Instant;

/// Seconds since 1970 (UG1087, module RTC, CURRENT_TIME), if somebody has set it.
const DATE: usize = 0xffa6_0010;
const NS: u64 = 1_000_000_000;

/// Counts in a second.
static HZ: AtomicU64 = AtomicU64::new(0);
/// Nanoseconds of a count, times 2^32.
static SCALE: AtomicU64 = AtomicU64::new(0);
/// The date when the counter began, in ns since 1970.
static EPOCH_NS: AtomicU64 = AtomicU64::new(0);

/// Starts both, on the first core, in an image that was built at `built_ns`: what the board takes for an earlier date was never set.
pub fn start(built_ns: i64) {
    let hz = processor::timer_hz();
    // Whoever started this processor has to set it.
    assert!((1 << 20..1 << 32).contains(&hz), "CNTFRQ_EL0 says {hz} Hz, expected the timer's, some MHz");
    HZ.store(hz, Ordering::Relaxed);
    SCALE.store((NS << 32) / hz, Ordering::Relaxed);
    let date_ns = u64::from(read(DATE)) * NS;
    EPOCH_NS.store(date_ns.max(built_ns as u64).saturating_sub(now().as_nanos()), Ordering::Relaxed);
}

/// Counts of the timer in a second, on any core; 0 before the clock has started.
///
/// Cores that this image lets out of their reset itself have nothing in CNTFRQ_EL0: a boot loader sets only its own core's.
pub fn hz() -> u64 {
    HZ.load(Ordering::Relaxed)
}

/// Time since the counter began; 0 before the clock has started.
pub fn now() -> Instant {
    let scale = SCALE.load(Ordering::Relaxed);
    Instant::from_nanos(((u128::from(processor::timer_count()) * u128::from(scale)) >> 32) as u64)
}

/// The date in ns since 1970.
pub fn wall_ns() -> i64 {
    (EPOCH_NS.load(Ordering::Relaxed) + now().as_nanos()) as i64
}

/// Has the timer be due at `at`.
pub fn wake_at(at: Instant) {
    let count = u128::from(at.as_nanos()) * u128::from(hz()) / u128::from(NS);
    // One more, as it was rounded down.
    processor::timer_at(u64::try_from(count + 1).unwrap_or(u64::MAX));
}
