//! Token buckets: so many events per second with a burst, in integer arithmetic.

use linerate_wire::units::Instant;

const NS_PER_SECOND: u64 = 1_000_000_000;

/// Allows `per_second` events per second, and `burst` of them at once after a pause.
#[derive(Debug)]
pub(crate) struct RateLimit {
    /// Time that one event costs; `None` allows nothing at all.
    cost_ns: Option<u64>,
    burst_ns: u64,
    /// Credit in ns of waiting time.
    credit_ns: u64,
    last: Instant,
}

impl RateLimit {
    /// A bucket that starts full.
    pub(crate) fn new(per_second: u32, burst: u32) -> Self {
        let cost_ns = (per_second > 0).then(|| (NS_PER_SECOND / u64::from(per_second)).max(1));
        let burst_ns = cost_ns.unwrap_or(0).saturating_mul(u64::from(burst.max(1)));
        RateLimit { cost_ns, burst_ns, credit_ns: burst_ns, last: Instant::ZERO }
    }

    /// Whether one more event is allowed at `now`; if so it is counted.
    pub(crate) fn allow(&mut self, now: Instant) -> bool {
        let Some(cost_ns) = self.cost_ns else { return false };
        let waited_ns = now.as_nanos().saturating_sub(self.last.as_nanos());
        self.last = self.last.max(now);
        self.credit_ns = self.credit_ns.saturating_add(waited_ns).min(self.burst_ns);
        if self.credit_ns < cost_ns {
            return false;
        }
        self.credit_ns -= cost_ns;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(per_second: u32, burst: u32, times_ms: &[u64], expected: &[bool]) {
        let mut limit = RateLimit::new(per_second, burst);
        let allowed: alloc::vec::Vec<bool> =
            times_ms.iter().map(|&ms| limit.allow(Instant::from_millis(ms))).collect();
        assert_eq!(allowed, expected, "{per_second}/s, burst {burst}, at {times_ms:?}");
    }

    #[test]
    fn buckets_fill_with_time_up_to_the_burst() {
        check(10, 2, &[0, 0, 0, 99, 100, 101, 300], &[true, true, false, false, true, false, true]);
        check(10, 2, &[100_000, 100_000, 100_000], &[true, true, false]);
        check(0, 5, &[0, 1_000], &[false, false]);
        // A clock that stands still or goes back gives nothing.
        check(1, 1, &[5_000, 1_000, 5_000], &[true, false, false]);
    }
}
