//! The clocks: a monotonic one for everything that is timed, and the wall clock for what people read.

use linerate_wire::units::Instant;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Reads the system's monotonic clock. Its epoch is the boot of the machine, so that instants of different clocks of
/// this type in one system can be compared.
#[derive(Clone, Copy, Debug, Default)]
pub struct MonotonicClock;

impl MonotonicClock {
    /// A clock; there is nothing to open.
    pub fn new() -> Self {
        MonotonicClock
    }

    /// Now. Never earlier than what an earlier call gave.
    pub fn now(&self) -> Instant {
        Instant::from_nanos(nanos(clock_gettime(ClockId::Monotonic)))
    }
}

/// Nanoseconds since 1970-01-01 00:00 UTC, leap seconds not counted. Steps when somebody sets the clock.
pub fn wall_clock_ns() -> u64 {
    nanos(clock_gettime(ClockId::Realtime))
}

/// Nanoseconds of a time that is not before its epoch; 0 if it is.
pub(crate) fn nanos(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let rest = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_monotonic_clock_runs_forward() {
        let clock = MonotonicClock::new();
        let mut last = clock.now();
        assert!(last > Instant::ZERO);
        for _ in 0..1000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn the_wall_clock_counts_nanoseconds_since_1970() {
        // Between 2024 and 2100, wherever the machine's clock stands.
        assert!((1_704_067_200..4_102_444_800).contains(&(wall_clock_ns() / 1_000_000_000)));
    }

    #[test]
    fn times_before_the_epoch_are_the_epoch() {
        assert_eq!(nanos(Timespec { tv_sec: -1, tv_nsec: 5 }), 5);
        assert_eq!(nanos(Timespec { tv_sec: i64::MAX, tv_nsec: 0 }), u64::MAX);
    }
}
