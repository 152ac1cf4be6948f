//! Token buckets: so many events per second with a burst, in integer arithmetic.
//!
//! A limit that everybody shares tells everybody what it was used for: who forges a question of a victim, and then
//! counts how many answers are left for itself, learns whether the victim's was answered (CVE-2016-5696 for challenge
//! ACKs, "SAD DNS" for ICMP errors). So answers to outsiders have a [`SourceLimit`].

use crate::random::{KeyedState, Random};
use alloc::boxed::Box;
use core::hash::BuildHasher;
use core::net::IpAddr;
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
        self.cost_ns.is_some_and(|cost_ns| self.pay(cost_ns, now))
    }

    /// The same at a price between half and one and a half of the usual one, so that counting tells little.
    fn allow_about(&mut self, now: Instant, random: &mut Random) -> bool {
        self.cost_ns.is_some_and(|cost_ns| self.pay(cost_ns / 2 + random.below(cost_ns), now))
    }

    fn pay(&mut self, cost_ns: u64, now: Instant) -> bool {
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

/// Most groups of sources.
const GROUPS: usize = 64;

/// A limit for all sources together, with random prices, and a lower one for each group of sources. Which group a source is
/// in is secret.
pub(crate) struct SourceLimit {
    all: RateLimit,
    groups: Box<[RateLimit]>,
    state: KeyedState,
}

impl SourceLimit {
    /// `per_second` events and `burst` at once for all sources; half of each for one group. A stack of few `connections` has
    /// few groups, 8 to 64.
    pub(crate) fn new(per_second: u32, burst: u32, connections: usize, state: KeyedState) -> Self {
        let group = || RateLimit::new(per_second.div_ceil(2), burst.div_ceil(2));
        let groups = (0..connections.clamp(8, GROUPS)).map(|_| group()).collect();
        SourceLimit { all: RateLimit::new(per_second, burst), groups, state }
    }

    /// Whether one more answer to `source` is allowed at `now`; if so it is counted.
    pub(crate) fn allow(&mut self, source: IpAddr, now: Instant, random: &mut Random) -> bool {
        let group = self.state.hash_one(source) as usize % self.groups.len();
        self.groups.get_mut(group).is_some_and(|group| group.allow(now)) && self.all.allow_about(now, random)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    #[test]
    fn what_one_source_uses_up_tells_another_nothing() {
        let ip = |last| IpAddr::V4(Ipv4Addr::new(192, 0, 2, last));
        // How many of 60 answers another source gets after a victim's `used`.
        let left = |used: u32, other: u8| {
            let mut random = Random::new(&[3; 32]);
            let mut limit = SourceLimit::new(1_000, 200, 64, KeyedState::new(&[9; 32]));
            let now = Instant::from_millis(1_000);
            (0..used).for_each(|_| {
                limit.allow(ip(1), now, &mut random);
            });
            (0..60).filter(|_| limit.allow(ip(other), now, &mut random)).count()
        };
        assert_eq!(left(0, 2), 60);
        let differs = (2..250).filter(|&other| left(1_000, other) < 60).count();
        assert!(differs < 12, "only who is in the same group sees anything: {differs}");
    }

    #[test]
    fn many_sources_share_the_whole_limit_at_random_prices() {
        let counts: alloc::vec::Vec<usize> = (0..50)
            .map(|seed| {
                let mut random = Random::new(&[seed; 32]);
                let mut limit = SourceLimit::new(1_000, 100, 64, KeyedState::new(&[seed; 32]));
                let ip = |n: u32| IpAddr::V4(Ipv4Addr::from(n));
                (0..1_000).filter(|&n| limit.allow(ip(n), Instant::from_millis(1_000), &mut random)).count()
            })
            .collect();
        let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        assert!((85..=100).contains(least) && (100..=115).contains(most) && most - least > 3, "{counts:?}");
    }

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
