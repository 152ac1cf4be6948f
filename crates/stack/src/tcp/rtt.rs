//! Round-trip time and retransmission timeout (RFC 6298).

use core::time::Duration;
use linerate_wire::units::{Instant, duration, nanos};

/// Most doublings of the timeout; the greatest timeout bounds it long before.
const MAX_BACKOFF: u8 = 16;

/// For a smoothed round-trip time that was not measured yet.
const UNKNOWN: u64 = u64::MAX;

/// Smoothed round-trip time, its variation and the timeout that follows from them, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RttEstimator {
    smoothed_ns: u64,
    variation_ns: u64,
    base_ns: u64,
    min_ns: u64,
    max_ns: u64,
    backoff: u8,
}

/// What an estimator has found, without its bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Estimate {
    pub smoothed_ns: u64,
    pub variation_ns: u64,
    pub base_ns: u64,
}

impl RttEstimator {
    /// What was found so far, and how often the timeout is doubled.
    pub fn found(&self) -> (Estimate, u8) {
        let RttEstimator { smoothed_ns, variation_ns, base_ns, backoff, .. } = *self;
        (Estimate { smoothed_ns, variation_ns, base_ns }, backoff)
    }

    /// This estimator, had it found that.
    pub fn with(self, found: Estimate, backoff: u8) -> Self {
        let Estimate { smoothed_ns, variation_ns, base_ns } = found;
        RttEstimator { smoothed_ns, variation_ns, base_ns, backoff, ..self }
    }

    /// Without measurement: the timeout is `initial`.
    pub fn new(initial: Duration, min: Duration, max: Duration) -> Self {
        RttEstimator {
            smoothed_ns: UNKNOWN,
            variation_ns: 0,
            base_ns: nanos(initial),
            min_ns: nanos(min),
            max_ns: nanos(max),
            backoff: 0,
        }
    }

    /// Takes a measurement of a segment that was sent only once, or that a timestamp identifies (section 3). Ends any
    /// backing off (section 5.7). `per_window`: how many such measurements a window gives. The gains of section 2.3 are
    /// those for one, and are divided (RFC 7323 appendix G), so that a round trip moves the estimate equally in any case.
    pub fn measure(&mut self, rtt: Duration, per_window: u32) {
        self.measure_ns(nanos(rtt), per_window);
    }

    /// The same in nanoseconds.
    pub fn measure_ns(&mut self, rtt_ns: u64, per_window: u32) {
        let divisor = u64::from(per_window.max(1));
        if self.smoothed_ns == UNKNOWN {
            self.variation_ns = rtt_ns / 2;
            self.smoothed_ns = rtt_ns;
        } else {
            let deviation_ns = self.smoothed_ns.abs_diff(rtt_ns);
            self.variation_ns = towards(self.variation_ns, deviation_ns, divisor * 4);
            self.smoothed_ns = towards(self.smoothed_ns, rtt_ns, divisor * 8);
        }
        self.restart_from_estimate();
    }

    /// A timeout was spurious, and the segment took `rtt`: the next such delay shall not time out (RFC 4015 section 3.3).
    pub fn on_spurious(&mut self, rtt: Duration) {
        let rtt_ns = nanos(rtt);
        self.smoothed_ns = if self.smoothed_ns == UNKNOWN { rtt_ns } else { self.smoothed_ns.max(rtt_ns) };
        self.variation_ns = self.variation_ns.max(rtt_ns / 2);
        self.restart_from_estimate();
    }

    fn restart_from_estimate(&mut self) {
        let margin_ns = self.variation_ns.saturating_mul(4).max(self.min_ns);
        self.base_ns = self.smoothed_ns.saturating_add(margin_ns).clamp(self.min_ns, self.max_ns);
        self.backoff = 0;
    }

    /// How often the timeout is doubled.
    pub fn backoff(&self) -> u32 {
        u32::from(self.backoff)
    }

    /// Whether the timeout is doubled.
    pub fn is_backed_off(&self) -> bool {
        self.backoff > 0
    }

    /// The timer expired: doubles the timeout (section 5.5).
    pub fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(MAX_BACKOFF);
    }

    /// Doubles it as after the first expiry only.
    pub fn back_off_anew(&mut self) {
        self.backoff = self.backoff.min(1);
    }

    /// Ends backing off without a measurement, and starts with `base` (section 5.7: 3 s after a lost SYN).
    pub fn restart(&mut self, base: Duration) {
        self.backoff = 0;
        self.base_ns = nanos(base);
    }

    /// The timeout, doubled as often as it has expired.
    pub fn timeout(&self) -> Duration {
        duration(self.timeout_ns())
    }

    /// When it is over that begins `now`.
    pub fn timeout_from(&self, now: Instant) -> Instant {
        now.after_nanos(self.timeout_ns())
    }

    fn timeout_ns(&self) -> u64 {
        match self.backoff {
            0 => self.base_ns.min(self.max_ns),
            backoff => self.base_ns.saturating_mul(1 << backoff).min(self.max_ns),
        }
    }

    /// The timeout as if it had never expired.
    pub fn base_timeout(&self) -> Duration {
        duration(self.base_ns)
    }

    /// The same in nanoseconds.
    pub fn base_timeout_ns(&self) -> u64 {
        self.base_ns
    }

    /// Smoothed round-trip time in nanoseconds.
    pub fn smoothed_ns(&self) -> Option<u64> {
        (self.smoothed_ns != UNKNOWN).then_some(self.smoothed_ns)
    }

    /// Smoothed round-trip time.
    pub fn smoothed(&self) -> Option<Duration> {
        (self.smoothed_ns != UNKNOWN).then(|| duration(self.smoothed_ns))
    }

    /// Round-trip time variation.
    pub fn variation(&self) -> Option<Duration> {
        (self.smoothed_ns != UNKNOWN).then(|| duration(self.variation_ns))
    }
}

/// Moves `value` by its `divisor`th part of the way to `goal`.
fn towards(value: u64, goal: u64, divisor: u64) -> u64 {
    let way = divided(goal.abs_diff(value), divisor);
    if goal > value { value + way } else { value - way }
}

/// A quotient. What fits into 32 bits is divided so: 64 are a call on a processor of 32.
fn divided(value: u64, divisor: u64) -> u64 {
    match (u32::try_from(value), u32::try_from(divisor)) {
        (Ok(value), Ok(divisor)) if usize::BITS < 64 && divisor > 0 => u64::from(value / divisor),
        _ => value / divisor,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn estimator() -> RttEstimator {
        RttEstimator::new(ms(1_000), ms(200), ms(60_000))
    }

    #[test]
    fn follows_the_formulas_of_rfc_6298() {
        let mut rtt = estimator();
        assert_eq!((rtt.timeout(), rtt.smoothed()), (ms(1_000), None));
        rtt.measure(ms(100), 1);
        assert_eq!((rtt.smoothed(), rtt.variation()), (Some(ms(100)), Some(ms(50))));
        assert_eq!(rtt.timeout(), ms(300));
        let mut steady = rtt;
        (0..9).for_each(|_| steady.measure(ms(100), 1));
        assert_eq!(steady.timeout(), ms(300), "a delayed acknowledgement comes after the round trip");
        rtt.measure(ms(180), 1);
        assert_eq!(rtt.smoothed(), Some(ms(110)));
        assert_eq!(rtt.variation(), Some(Duration::from_micros(57_500)));
        assert_eq!(rtt.timeout(), ms(340), "the variation is the larger part");
    }

    #[test]
    fn jitter_raises_the_timeout_above_the_floor() {
        let mut rtt = estimator();
        for n in 0..100 {
            rtt.measure(ms(if n % 2 == 0 { 10 } else { 210 }), 1);
        }
        assert!(rtt.timeout() > ms(400), "{:?}", rtt.timeout());
        for _ in 0..100 {
            rtt.measure(ms(10), 1);
        }
        assert!(rtt.timeout() - rtt.smoothed().unwrap() == ms(200), "the floor: {:?}", rtt.timeout());
    }

    #[test]
    fn backing_off_doubles_up_to_the_limit_and_ends_with_a_measurement() {
        let mut rtt = estimator();
        let mut seen = alloc::vec![];
        for _ in 0..8 {
            seen.push(rtt.timeout().as_secs());
            rtt.back_off();
        }
        assert_eq!(seen, [1, 2, 4, 8, 16, 32, 60, 60]);
        rtt.measure(ms(1), 1);
        assert_eq!(rtt.timeout(), ms(201));
    }

    #[test]
    fn many_measurements_a_window_move_the_estimate_as_one_does() {
        let (mut one, mut many) = (estimator(), estimator());
        for estimate in [&mut one, &mut many] {
            estimate.measure(ms(100), 1);
        }
        one.measure(ms(180), 1);
        (0..100).for_each(|_| many.measure(ms(180), 100));
        let (one, many) = (one.smoothed().unwrap(), many.smoothed().unwrap());
        assert!(many > ms(108) && many <= one, "{many:?} {one:?}");
    }

    #[test]
    fn rfc_4015_3_3_a_spurious_timeout_leaves_room_for_the_next_delay() {
        let mut rtt = estimator();
        rtt.measure(ms(20), 1);
        rtt.back_off();
        rtt.on_spurious(ms(900));
        assert_eq!(rtt.timeout(), ms(900 + 4 * 450));
    }
}
