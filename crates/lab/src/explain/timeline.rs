//! What happened over time, in so few steps that a connection of any length fits.

use super::wait::Wait;
use serde::Serialize;

/// Most steps. When more are needed, each becomes twice as long.
const MAX_STEPS: usize = 1_024;
/// Length of a step at first, in nanoseconds: below the round-trip times of most paths.
const FIRST_STEP_NS: u64 = 250_000;

/// One step.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize)]
pub struct Step {
    /// Bytes sent for the first time.
    pub sent: u64,
    /// Bytes acknowledged for the first time.
    pub acked: u64,
    /// Segments sent again.
    pub again: u32,
    /// Segments that came late, or were found to have come late.
    pub late: u32,
    /// Nanoseconds of the sender by [`Wait`].
    pub waits_ns: [u64; Wait::COUNT],
    /// Most bytes under way.
    pub flight_most: u64,
    /// Bytes under way times nanoseconds.
    pub flight_ns: f64,
    /// Round-trip times: least, sum and number of samples.
    pub rtt_least_ns: u64,
    /// Sum of the samples.
    pub rtt_sum_ns: u64,
    /// Number of samples.
    pub rtt_count: u32,
    /// Windows told: least and most, in bytes; both zero with `windows` zero.
    pub window_least: u64,
    /// The largest.
    pub window_most: u64,
    /// Windows told.
    pub windows: u32,
}

impl Step {
    /// Mean of the round-trip times, if there are any.
    pub fn rtt_mean_ns(&self) -> Option<f64> {
        (self.rtt_count > 0).then(|| self.rtt_sum_ns as f64 / f64::from(self.rtt_count))
    }

    /// Takes in the step that follows.
    fn join(&mut self, next: &Step) {
        self.rtt_least_ns = match (self.rtt_count, next.rtt_count) {
            (0, _) => next.rtt_least_ns,
            (_, 0) => self.rtt_least_ns,
            _ => self.rtt_least_ns.min(next.rtt_least_ns),
        };
        self.window_least = match (self.windows, next.windows) {
            (0, _) => next.window_least,
            (_, 0) => self.window_least,
            _ => self.window_least.min(next.window_least),
        };
        self.sent += next.sent;
        self.acked += next.acked;
        self.again = self.again.saturating_add(next.again);
        self.late = self.late.saturating_add(next.late);
        for (own, other) in self.waits_ns.iter_mut().zip(next.waits_ns) {
            *own = own.saturating_add(other);
        }
        self.flight_most = self.flight_most.max(next.flight_most);
        self.flight_ns += next.flight_ns;
        self.rtt_sum_ns = self.rtt_sum_ns.saturating_add(next.rtt_sum_ns);
        self.rtt_count = self.rtt_count.saturating_add(next.rtt_count);
        self.window_most = self.window_most.max(next.window_most);
        self.windows = self.windows.saturating_add(next.windows);
    }
}

/// Steps of equal length from the first packet on.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Timeline {
    /// When the first step begins, in nanoseconds.
    pub begin_ns: u64,
    /// Length of a step in nanoseconds.
    pub step_ns: u64,
    /// The steps.
    pub steps: Vec<Step>,
}

impl Timeline {
    /// One that begins at this time.
    pub fn new(begin_ns: u64) -> Timeline {
        Timeline { begin_ns, step_ns: FIRST_STEP_NS, steps: Vec::new() }
    }

    /// The step of a time; what comes before the first is in it.
    pub fn at(&mut self, at_ns: u64) -> &mut Step {
        let index = self.index(at_ns);
        &mut self.steps[index]
    }

    fn index(&mut self, at_ns: u64) -> usize {
        let since_ns = at_ns.saturating_sub(self.begin_ns);
        while since_ns / self.step_ns >= MAX_STEPS as u64 {
            self.halve();
        }
        let index = (since_ns / self.step_ns) as usize;
        if self.steps.len() <= index {
            self.steps.resize(index + 1, Step::default());
        }
        index
    }

    fn halve(&mut self) {
        let joined = |pair: &[Step]| {
            let mut first = pair[0];
            if let Some(second) = pair.get(1) {
                first.join(second);
            }
            first
        };
        self.steps = self.steps.chunks(2).map(joined).collect();
        self.step_ns = self.step_ns.saturating_mul(2);
    }

    /// Each step between two times, with how long the time within it is, in nanoseconds.
    pub fn between(&mut self, from_ns: u64, to_ns: u64, mut take: impl FnMut(&mut Step, u64)) {
        if to_ns <= from_ns {
            return;
        }
        // The last first: it may make steps longer.
        let last = self.index(to_ns);
        let first = self.index(from_ns);
        for index in first..=last {
            let begin_ns = self.time_ns(index).max(from_ns);
            let end_ns = self.time_ns(index + 1).min(to_ns);
            take(&mut self.steps[index], end_ns.saturating_sub(begin_ns));
        }
    }

    /// When a step begins.
    fn time_ns(&self, index: usize) -> u64 {
        self.begin_ns.saturating_add(self.step_ns.saturating_mul(index as u64))
    }

    /// A round-trip time was measured.
    pub fn rtt(&mut self, at_ns: u64, rtt_ns: u64) {
        let step = self.at(at_ns);
        step.rtt_least_ns = if step.rtt_count == 0 { rtt_ns } else { step.rtt_least_ns.min(rtt_ns) };
        step.rtt_sum_ns = step.rtt_sum_ns.saturating_add(rtt_ns);
        step.rtt_count = step.rtt_count.saturating_add(1);
    }

    /// A window was told.
    pub fn window(&mut self, at_ns: u64, window: u64) {
        let step = self.at(at_ns);
        step.window_least = if step.windows == 0 { window } else { step.window_least.min(window) };
        step.window_most = step.window_most.max(window);
        step.windows = step.windows.saturating_add(1);
    }

    /// The middle of a step, in seconds from the beginning.
    pub fn second(&self, index: usize) -> f64 {
        (index as f64 + 0.5) * self.step_ns as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_length_fits_and_nothing_is_lost() {
        let mut line = Timeline::new(1_000);
        for number in 0..10_000_u64 {
            line.at(1_000 + number * 10_000_000).sent += 1;
            line.rtt(1_000 + number * 10_000_000, 5 + number % 3);
        }
        assert!(line.steps.len() <= MAX_STEPS);
        assert_eq!(line.steps.iter().map(|step| step.sent).sum::<u64>(), 10_000);
        assert!(line.steps.iter().all(|step| step.rtt_count == 0 || step.rtt_least_ns == 5));
        let mut time = 0;
        line.between(500, 90_000_000_000, |_, ns| time += ns);
        assert_eq!(time, 90_000_000_000 - 1_000);
    }
}
