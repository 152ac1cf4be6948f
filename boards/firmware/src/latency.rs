//! How late a task with a period comes to run.

use alloc::string::String;
use linerate_wire::units::Instant;

/// Powers of two of microseconds that are told apart.
const PLACES: usize = 20;

/// Lateness of a task that is to run at each tick of the system: from the tick to its first instruction, less what that took at best.
#[derive(Clone, Copy, Debug)]
pub struct Latency {
    /// The earliest that it ran, in ns of the clock less the ticks until then; found along the way.
    phase: Option<u64>,
    last_tick: u32,
    /// Ticks since the first run.
    ticks: u64,
    counts: [u32; PLACES],
    latest_us: u64,
}

impl Latency {
    /// Nothing was measured yet.
    pub const fn new() -> Latency {
        Latency { phase: None, last_tick: 0, ticks: 0, counts: [0; PLACES], latest_us: 0 }
    }

    /// The task runs, at the tick of that number, of `tick_ns` each. It should have run at the one after that of the last call.
    pub fn add(&mut self, now: Instant, tick: u32, tick_ns: u64) {
        let passed = u64::from(tick.wrapping_sub(core::mem::replace(&mut self.last_tick, tick)));
        let missed = self.phase.map_or(0, |_| passed.saturating_sub(1));
        // From the first run on, so that the number may begin anew.
        self.ticks += self.phase.map_or(0, |_| passed);
        let since_tick = now.as_nanos().saturating_sub(self.ticks * tick_ns);
        let phase = self.phase.map_or(since_tick, |phase| phase.min(since_tick));
        self.phase = Some(phase);
        let late_us = (since_tick - phase + missed * tick_ns) / 1_000;
        self.counts[(late_us.max(1).ilog2() as usize).min(PLACES - 1)] += 1;
        self.latest_us = self.latest_us.max(late_us);
    }

    /// How often it ran.
    pub fn runs(&self) -> u32 {
        self.counts.iter().sum()
    }

    /// In so many of a thousand runs it was later by less than this many microseconds, a power of two.
    fn within_us(&self, thousandths: u64) -> u64 {
        let wanted = u64::from(self.runs()) * thousandths;
        let mut so_far = 0;
        let place = self.counts.iter().position(|count| {
            so_far += u64::from(*count) * 1_000;
            so_far >= wanted
        });
        2 << place.unwrap_or(PLACES - 1)
    }

    /// A line of it.
    pub fn report(&self) -> String {
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

    const TICK_NS: u64 = 1_000_000;

    fn at(tick: u32, late_us: u64) -> Instant {
        // The ticks began 300 us after the clock.
        Instant::from_micros(300 + u64::from(tick) * 1_000 + late_us)
    }

    #[test]
    fn lateness_counts_from_the_earliest_run() {
        let mut latency = Latency::new();
        for tick in 1..=1_000 {
            latency.add(at(tick, 5), tick, TICK_NS);
        }
        assert_eq!((latency.runs(), latency.latest_us, latency.within_us(990)), (1_000, 0, 2));
        latency.add(at(1_001, 105), 1_001, TICK_NS);
        assert_eq!((latency.latest_us, latency.within_us(990), latency.within_us(1_000)), (100, 2, 128));
    }

    #[test]
    fn ticks_that_it_missed_count() {
        let mut latency = Latency::new();
        latency.add(at(7, 0), 7, TICK_NS);
        latency.add(at(11, 50), 11, TICK_NS);
        assert_eq!(latency.latest_us, 3_050);
        assert_eq!(latency.report(), "2 runs, 50 % below 2 us late, 99 % below 4096, the latest 3050\n");
    }

    #[test]
    fn the_number_of_the_tick_may_begin_anew() {
        let mut latency = Latency::new();
        latency.add(Instant::from_micros(10), u32::MAX, TICK_NS);
        latency.add(Instant::from_micros(1_010), 0, TICK_NS);
        latency.add(Instant::from_micros(2_010), 1, TICK_NS);
        assert!(latency.latest_us <= 1, "{latency:?}");
    }
}
