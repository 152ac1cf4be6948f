//! How late a task with a period comes to run.

use crate::intervals::{INTERVALS, place};
use alloc::string::String;
use linerate_wire::units::Instant;

/// How much later than a period after its last run a task runs each time. What is late once makes the next interval short, which is not
/// late. Ticks of the system need not keep up with the clock for that: those of an emulator do not.
#[derive(Clone, Copy, Debug)]
pub struct Latency {
    last: Option<Instant>,
    counts: [u32; INTERVALS],
    latest_us: u64,
}

impl Latency {
    /// Nothing was measured yet.
    pub const fn new() -> Latency {
        Latency { last: None, counts: [0; INTERVALS], latest_us: 0 }
    }

    /// The task runs; its period is so many nanoseconds.
    pub fn add(&mut self, now: Instant, period_ns: u64) {
        let Some(last) = self.last.replace(now) else { return };
        let since_ns = now.as_nanos().saturating_sub(last.as_nanos());
        let late_us = since_ns.saturating_sub(period_ns) / 1_000;
        let count = &mut self.counts[place(late_us)];
        *count = count.saturating_add(1);
        self.latest_us = self.latest_us.max(late_us);
    }

    /// How often it ran.
    pub fn runs(&self) -> u64 {
        self.counts.iter().copied().map(u64::from).sum()
    }

    /// In so many of a thousand runs it was later by less than this many microseconds, a power of two.
    fn within_us(&self, thousandths: u64) -> u64 {
        let wanted = self.runs() * thousandths;
        let mut so_far = 0;
        let place = self.counts.iter().position(|count| {
            so_far += u64::from(*count) * 1_000;
            so_far >= wanted
        });
        2 << place.unwrap_or(INTERVALS - 1)
    }

    /// A line of it.
    pub fn report(&self) -> String {
        if self.runs() == 0 {
            return "0 runs, nothing measured; latency on measures\n".into();
        }
        let (half, most) = (self.within_us(500), self.within_us(990));
        let (runs, latest) = (self.runs(), self.latest_us);
        alloc::format!("{runs} runs, 50 % below {half} us late, 99 % below {most}, the latest {latest}\n")
    }
}

impl Default for Latency {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD_NS: u64 = 1_000_000;

    #[test]
    fn a_count_that_is_full_stays_so() {
        let mut latency = Latency { last: Some(Instant::ZERO), counts: [u32::MAX; INTERVALS], latest_us: 0 };
        latency.add(Instant::ZERO, PERIOD_NS);
        assert_eq!(latency.counts, [u32::MAX; INTERVALS]);
        assert_eq!(latency.runs(), INTERVALS as u64 * u64::from(u32::MAX));
        assert_eq!(latency.within_us(500), 2 << 9);
    }

    #[test]
    fn what_comes_after_a_period_is_late() {
        let mut latency = Latency::new();
        assert_eq!(latency.report(), "0 runs, nothing measured; latency on measures\n");
        for run in 0..=1_000 {
            latency.add(Instant::from_millis(run), PERIOD_NS);
        }
        assert_eq!((latency.runs(), latency.latest_us, latency.within_us(990)), (1_000, 0, 2));
        // Late once, and in time again.
        latency.add(Instant::from_micros(1_001_100), PERIOD_NS);
        latency.add(Instant::from_millis(1_002), PERIOD_NS);
        assert_eq!((latency.latest_us, latency.within_us(990), latency.within_us(1_000)), (100, 2, 128));
        // Two that it missed.
        latency.add(Instant::from_millis(1_005), PERIOD_NS);
        assert_eq!(latency.report(), "1003 runs, 50 % below 2 us late, 99 % below 2, the latest 2000\n");
    }
}
