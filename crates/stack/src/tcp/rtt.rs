//! Round-trip time and retransmission timeout (RFC 6298).

use core::time::Duration;

/// Most doublings of the timeout; the greatest timeout bounds it long before.
const MAX_BACKOFF: u32 = 16;

/// Smoothed round-trip time, its variation and the timeout that follows from them.
#[derive(Clone, Copy, Debug)]
pub(super) struct RttEstimator {
    smoothed: Option<Duration>,
    variation: Duration,
    base: Duration,
    backoff: u32,
    min: Duration,
    max: Duration,
}

impl RttEstimator {
    /// Without measurement: the timeout is `initial`.
    pub fn new(initial: Duration, min: Duration, max: Duration) -> Self {
        RttEstimator { smoothed: None, variation: Duration::ZERO, base: initial, backoff: 0, min, max }
    }

    /// Takes a measurement of a segment that was sent only once, or that a timestamp identifies (section 3). Ends any
    /// backing off (section 5.7). `per_window`: how many such measurements a window gives. The gains of section 2.3 are
    /// those for one, and are divided (RFC 7323 appendix G), so that a round trip moves the estimate equally in any case.
    pub fn measure(&mut self, rtt: Duration, per_window: u32) {
        let divisor = per_window.max(1);
        let smoothed = match self.smoothed {
            None => {
                self.variation = rtt / 2;
                rtt
            }
            Some(smoothed) => {
                let deviation = smoothed.abs_diff(rtt);
                self.variation = towards(self.variation, deviation, divisor.saturating_mul(4));
                towards(smoothed, rtt, divisor.saturating_mul(8))
            }
        };
        self.smoothed = Some(smoothed);
        self.restart_from_estimate();
    }

    /// A timeout was spurious, and the segment took `rtt`: the next such delay shall not time out (RFC 4015 section 3.3).
    pub fn on_spurious(&mut self, rtt: Duration) {
        self.smoothed = Some(self.smoothed.map_or(rtt, |smoothed| smoothed.max(rtt)));
        self.variation = self.variation.max(rtt / 2);
        self.restart_from_estimate();
    }

    fn restart_from_estimate(&mut self) {
        let smoothed = self.smoothed.unwrap_or_default();
        self.base = (smoothed + (self.variation * 4).max(self.min)).clamp(self.min, self.max);
        self.backoff = 0;
    }

    /// How often the timeout is doubled.
    pub fn backoff(&self) -> u32 {
        self.backoff
    }

    /// Whether the timeout is doubled.
    pub fn is_backed_off(&self) -> bool {
        self.backoff > 0
    }

    /// The timer expired: doubles the timeout (section 5.5).
    pub fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(MAX_BACKOFF);
    }

    /// Ends backing off without a measurement, and starts with `base` (section 5.7: 3 s after a lost SYN).
    pub fn restart(&mut self, base: Duration) {
        self.backoff = 0;
        self.base = base;
    }

    /// The timeout, doubled as often as it has expired.
    pub fn timeout(&self) -> Duration {
        self.base.saturating_mul(1 << self.backoff).min(self.max)
    }

    /// The timeout as if it had never expired.
    pub fn base_timeout(&self) -> Duration {
        self.base
    }

    /// Smoothed round-trip time.
    pub fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// Round-trip time variation.
    pub fn variation(&self) -> Option<Duration> {
        self.smoothed.map(|_| self.variation)
    }
}

/// Moves `value` by its `divisor`th part of the way to `goal`.
fn towards(value: Duration, goal: Duration, divisor: u32) -> Duration {
    if goal > value { value + (goal - value) / divisor } else { value - (value - goal) / divisor }
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
