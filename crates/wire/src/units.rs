//! Units: points in time in nanoseconds, and rates in bits per second.

use crate::division::{millionth, thousandth};
use core::fmt;
use core::ops::{Add, AddAssign, Sub};
use core::time::Duration;

const NANOS_PER_SEC: u32 = 1_000_000_000;

/// A point in time, in nanoseconds since an epoch that the caller chooses (boot, start of a simulation).
///
/// Nothing below `linux` and `boards` reads a clock: time is an argument everywhere.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant {
    ns: u64,
}

impl Instant {
    /// The epoch itself.
    pub const ZERO: Instant = Instant { ns: 0 };
    /// Later than everything else: 584 years after the epoch.
    pub const FAR_FUTURE: Instant = Instant { ns: u64::MAX };

    /// The instant `ns` nanoseconds after the epoch.
    pub const fn from_nanos(ns: u64) -> Self {
        Instant { ns }
    }

    /// The instant `us` microseconds after the epoch.
    pub const fn from_micros(us: u64) -> Self {
        Instant { ns: us.saturating_mul(1_000) }
    }

    /// The instant `ms` milliseconds after the epoch.
    pub const fn from_millis(ms: u64) -> Self {
        Instant { ns: ms.saturating_mul(1_000_000) }
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.ns
    }

    /// Whole microseconds since the epoch.
    pub const fn as_micros(self) -> u64 {
        thousandth(self.ns)
    }

    /// Whole milliseconds since the epoch.
    pub const fn as_millis(self) -> u64 {
        millionth(self.ns)
    }

    /// Nanoseconds from `earlier` to `self`; zero when `earlier` is later. A [`Duration`] has its seconds apart, which takes a division
    /// to make and a multiplication to compare.
    pub const fn nanos_since(self, earlier: Instant) -> u64 {
        self.ns.saturating_sub(earlier.ns)
    }

    /// The instant `ns` nanoseconds later.
    #[must_use]
    pub const fn after_nanos(self, ns: u64) -> Instant {
        Instant { ns: self.ns.saturating_add(ns) }
    }

    /// Time from `earlier` to `self`; zero when `earlier` is later.
    pub const fn saturating_since(self, earlier: Instant) -> Duration {
        duration(self.nanos_since(earlier))
    }
}

/// The earliest of times of which each may be missing.
pub fn earliest<const N: usize>(times: [Option<Instant>; N]) -> Option<Instant> {
    // A loop of known length takes a third of what the minimum of a flattened iterator does on a processor of 32 bits.
    let mut earliest = None;
    for time in times {
        earliest = match (earliest, time) {
            (Some(first), Some(time)) => Some(if time < first { time } else { first }),
            (first, time) => first.or(time),
        };
    }
    earliest
}

/// The nanoseconds of `duration`, saturated to 64 bits (584 years).
pub const fn nanos(duration: Duration) -> u64 {
    // Without a multiplication of 128 bits, which is a call on a processor of 32.
    duration.as_secs().saturating_mul(NANOS_PER_SEC as u64).saturating_add(duration.subsec_nanos() as u64)
}

/// A duration of so many nanoseconds. On a processor of 32 bits a division of 64 is a hundred instructions; most durations in a stack
/// have 32.
#[inline]
pub const fn duration(ns: u64) -> Duration {
    if usize::BITS < 64 && ns <= u32::MAX as u64 {
        let ns = ns as u32;
        return Duration::new((ns / NANOS_PER_SEC) as u64, ns % NANOS_PER_SEC);
    }
    Duration::from_nanos(ns)
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, rhs: Duration) -> Instant {
        Instant { ns: self.ns.saturating_add(nanos(rhs)) }
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, rhs: Duration) {
        *self = *self + rhs;
    }
}

impl Sub<Instant> for Instant {
    type Output = Duration;
    /// Time from `rhs` to `self`; zero when `rhs` is later.
    fn sub(self, rhs: Instant) -> Duration {
        self.saturating_since(rhs)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.ns / 1_000_000_000, self.ns % 1_000_000_000)
    }
}

/// A rate in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Rate {
    bps: u64,
}

impl Rate {
    /// `bps` bits per second.
    pub const fn from_bps(bps: u64) -> Self {
        Rate { bps }
    }

    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.bps
    }

    /// Time that `bytes` bytes take at this rate; `None` for a rate of zero.
    pub fn time_for(self, bytes: u64) -> Option<Duration> {
        if self.bps == 0 {
            return None;
        }
        let ns = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(self.bps);
        Some(Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_saturate_instead_of_wrapping() {
        assert_eq!(Instant::FAR_FUTURE + Duration::from_secs(1), Instant::FAR_FUTURE);
        assert_eq!(Instant::ZERO - Instant::from_millis(5), Duration::ZERO);
    }

    #[test]
    fn the_earliest_is_found_wherever_it_stands() {
        let at = |ms| Some(Instant::from_millis(ms));
        for times in [[at(1), at(2), None], [None, at(2), at(1)], [at(3), None, at(1)], [at(1), at(1), at(1)]]
        {
            assert_eq!(earliest(times), at(1));
        }
        assert_eq!((earliest([None; 2]), earliest([])), (None, None));
        assert_eq!(earliest([at(5), Some(Instant::FAR_FUTURE)]), at(5));
    }

    #[test]
    fn nanoseconds_and_durations_are_the_same_time() {
        let limit = u64::from(u32::MAX);
        for ns in [0, 1, 999_999_999, 1_000_000_000, limit - 1, limit, limit + 1, u64::MAX] {
            assert_eq!(duration(ns), Duration::from_nanos(ns));
            assert_eq!(nanos(duration(ns)), ns);
        }
        assert_eq!(nanos(Duration::from_nanos(u64::MAX) + Duration::from_nanos(1)), u64::MAX);
        assert_eq!(nanos(Duration::MAX), u64::MAX);
    }

    #[test]
    fn a_full_frame_takes_12304_ns_at_a_gigabit() {
        // 1,538 bytes on the wire: 1,500 + 18 Ethernet + 8 preamble + 12 gap.
        assert_eq!(Rate::from_bps(1_000_000_000).time_for(1_538), Some(Duration::from_nanos(12_304)));
        assert_eq!(Rate::from_bps(0).time_for(1), None);
    }
}
