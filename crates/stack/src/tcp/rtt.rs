//! Round-trip time and retransmission timeout (RFC 6298).

use core::time::Duration;

/// Resolution of the estimate; G of RFC 6298 section 2.
const GRANULARITY: Duration = Duration::from_micros(1);

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
    /// backing off (section 5.7).
    pub fn measure(&mut self, rtt: Duration) {
        let smoothed = match self.smoothed {
            None => {
                self.variation = rtt / 2;
                rtt
            }
            Some(smoothed) => {
                self.variation = (self.variation * 3 + smoothed.abs_diff(rtt)) / 4;
                (smoothed * 7 + rtt) / 8
            }
        };
        self.smoothed = Some(smoothed);
        self.base = (smoothed + (self.variation * 4).max(GRANULARITY)).clamp(self.min, self.max);
        self.backoff = 0;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn follows_the_formulas_of_rfc_6298() {
        let mut rtt = RttEstimator::new(ms(1_000), ms(200), ms(60_000));
        assert_eq!((rtt.timeout(), rtt.smoothed()), (ms(1_000), None));
        rtt.measure(ms(100));
        assert_eq!((rtt.smoothed(), rtt.variation()), (Some(ms(100)), Some(ms(50))));
        assert_eq!(rtt.timeout(), ms(300));
        rtt.measure(ms(180));
        assert_eq!(rtt.smoothed(), Some(ms(110)));
        assert_eq!(rtt.variation(), Some(Duration::from_micros(57_500)));
        assert_eq!(rtt.timeout(), ms(340));
    }

    #[test]
    fn jitter_raises_the_timeout_above_the_floor() {
        let mut rtt = RttEstimator::new(ms(1_000), ms(200), ms(60_000));
        for n in 0..100 {
            rtt.measure(ms(if n % 2 == 0 { 10 } else { 210 }));
        }
        assert!(rtt.timeout() > ms(400), "{:?}", rtt.timeout());
        for _ in 0..100 {
            rtt.measure(ms(10));
        }
        assert_eq!(rtt.timeout(), ms(200), "the floor");
    }

    #[test]
    fn backing_off_doubles_up_to_the_limit_and_ends_with_a_measurement() {
        let mut rtt = RttEstimator::new(ms(1_000), ms(200), ms(60_000));
        let mut seen = alloc::vec![];
        for _ in 0..8 {
            seen.push(rtt.timeout().as_secs());
            rtt.back_off();
        }
        assert_eq!(seen, [1, 2, 4, 8, 16, 32, 60, 60]);
        rtt.measure(ms(1));
        assert_eq!(rtt.timeout(), ms(200));
    }
}
