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

    /// The share that `count` of `all` steps have of what was spread evenly over them. Only times are: what happens at a moment has
    /// a step of its own.
    fn part(&self, count: usize, all: usize) -> Step {
        let mut part = *self;
        if count < all {
            let of = |sum: u64| (u128::from(sum) * count as u128 / all.max(1) as u128) as u64;
            part.waits_ns = self.waits_ns.map(of);
            part.flight_ns = self.flight_ns * count as f64 / all.max(1) as f64;
        }
        part
    }

    /// Takes the times of a part away.
    fn subtract(&mut self, part: &Step) {
        for (own, of_part) in self.waits_ns.iter_mut().zip(part.waits_ns) {
            *own -= of_part;
        }
        self.flight_ns -= part.flight_ns;
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

/// Steps in a row among which what happened is spread evenly: most connections are silent most of the time.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Run {
    first: usize,
    count: usize,
    /// Sums over all of them.
    sums: Step,
}

impl Run {
    fn end(&self) -> usize {
        self.first + self.count
    }

    /// Cuts off what begins at a step within it.
    fn split(&mut self, at: usize) -> Run {
        let count = self.end() - at;
        let behind = self.sums.part(count, self.count);
        self.sums.subtract(&behind);
        self.count -= count;
        Run { first: at, count, sums: behind }
    }
}

/// Steps of equal length from the beginning on.
#[derive(Clone, PartialEq, Debug)]
pub struct Timeline {
    /// When the first step begins, in nanoseconds.
    pub begin_ns: u64,
    /// How long each is, in nanoseconds.
    pub step_ns: u64,
    /// In order, without gaps. What happens at a moment has a run of its own.
    runs: Vec<Run>,
}

impl Timeline {
    /// An empty one that begins at this time.
    pub fn new(begin_ns: u64) -> Timeline {
        Timeline { begin_ns, step_ns: FIRST_STEP_NS, runs: Vec::new() }
    }

    /// The step of a time.
    pub fn at(&mut self, at_ns: u64) -> &mut Step {
        let index = self.index(at_ns);
        let run = self.alone(index);
        &mut self.runs[run].sums
    }

    /// The steps in which something happened, in order.
    pub fn eventful(&self) -> impl Iterator<Item = &Step> {
        self.runs.iter().map(|run| &run.sums)
    }

    /// All steps, in order.
    pub fn steps(&self) -> Vec<Step> {
        let each = |run: &Run| std::iter::repeat_n(run.sums.part(1, run.count), run.count);
        self.runs.iter().flat_map(each).collect()
    }

    /// Number of the step of a time, which there is from then on.
    fn index(&mut self, at_ns: u64) -> usize {
        let since_ns = at_ns.saturating_sub(self.begin_ns);
        while since_ns / self.step_ns >= MAX_STEPS as u64 {
            self.halve();
        }
        let index = (since_ns / self.step_ns) as usize;
        let end = self.runs.last().map_or(0, Run::end);
        if index >= end {
            self.runs.push(Run { first: end, count: index + 1 - end, sums: Step::default() });
        }
        index
    }

    /// Number of the run that holds a step.
    fn run_of(&self, index: usize) -> usize {
        match self.runs.last() {
            Some(last) if last.first <= index => self.runs.len() - 1,
            _ => self.runs.partition_point(|run| run.end() <= index),
        }
    }

    /// Number of the run that holds this step and no other.
    fn alone(&mut self, index: usize) -> usize {
        let mut place = self.run_of(index);
        if self.runs[place].first < index {
            let behind = self.runs[place].split(index);
            place += 1;
            self.runs.insert(place, behind);
        }
        if self.runs[place].count > 1 {
            let behind = self.runs[place].split(index + 1);
            self.runs.insert(place + 1, behind);
        }
        place
    }

    /// Joins each two steps.
    fn halve(&mut self) {
        let mut joined: Vec<Run> = Vec::with_capacity(self.runs.len());
        let mut push = |piece: Run| match joined.last_mut() {
            Some(last) if last.end() > piece.first => last.sums.join(&piece.sums),
            _ => joined.push(piece),
        };
        for mut run in std::mem::take(&mut self.runs) {
            if !run.first.is_multiple_of(2) && run.count > 1 {
                let behind = run.split(run.first + 1);
                push(Run { first: run.first / 2, ..run });
                run = behind;
            }
            let odd = (run.count > 1 && !run.count.is_multiple_of(2)).then(|| run.split(run.end() - 1));
            push(Run { first: run.first / 2, count: run.count.div_ceil(2), sums: run.sums });
            if let Some(odd) = odd {
                push(Run { first: odd.first / 2, ..odd });
            }
        }
        self.runs = joined;
        self.step_ns = self.step_ns.saturating_mul(2);
    }

    /// Hands the part of a stretch of time that falls into each step to `take`; steps in a row that are alike, together.
    pub fn between(&mut self, from_ns: u64, to_ns: u64, mut take: impl FnMut(&mut Step, u64)) {
        if to_ns <= from_ns {
            return;
        }
        // The last first: it may make steps longer.
        let last = self.index(to_ns);
        let first = self.index(from_ns);
        let place = self.alone(first);
        self.alone(last);
        let (begin_ns, step_ns) = (self.begin_ns, self.step_ns);
        let time_ns = |index: usize| begin_ns.saturating_add(step_ns.saturating_mul(index as u64));
        for run in self.runs[place..].iter_mut().take_while(|run| run.first <= last) {
            let (start_ns, end_ns) = (time_ns(run.first).max(from_ns), time_ns(run.end()).min(to_ns));
            take(&mut run.sums, end_ns.saturating_sub(start_ns));
        }
    }

    /// A round-trip time that was seen at this time, in nanoseconds.
    pub fn rtt(&mut self, at_ns: u64, rtt_ns: u64) {
        let step = self.at(at_ns);
        step.rtt_least_ns = if step.rtt_count == 0 { rtt_ns } else { step.rtt_least_ns.min(rtt_ns) };
        step.rtt_sum_ns = step.rtt_sum_ns.saturating_add(rtt_ns);
        step.rtt_count = step.rtt_count.saturating_add(1);
    }

    /// A window that was told at this time, in bytes.
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
        let steps = line.steps();
        assert!(steps.len() <= MAX_STEPS);
        assert_eq!(steps.iter().map(|step| step.sent).sum::<u64>(), 10_000);
        assert!(steps.iter().all(|step| step.rtt_count == 0 || step.rtt_least_ns == 5));
        let mut time = 0;
        line.between(500, 90_000_000_000, |_, ns| time += ns);
        assert_eq!(time, 90_000_000_000 - 1_000);
    }

    #[test]
    fn silence_takes_no_room() {
        const MS: u64 = 1_000_000;
        let mut line = Timeline::new(0);
        let mut last_ns = 0;
        for at_ns in [0, 40 * MS, 41 * MS, 90 * MS, 200 * MS] {
            line.between(last_ns, at_ns, |step, ns| {
                step.waits_ns[0] += ns;
                step.flight_ns += 3.0 * ns as f64;
            });
            line.at(at_ns).sent += 7;
            last_ns = at_ns;
        }
        assert!(line.runs.len() <= 9, "{}", line.runs.len());
        // A wait that covers other stretches, and begins and ends within them.
        line.between(20 * MS, 120 * MS + MS / 8, |step, ns| step.waits_ns[1] += ns);
        let of = |line: &Timeline, from_ms: u64, to_ms: u64| {
            let range = (from_ms * MS / line.step_ns) as usize..(to_ms * MS / line.step_ns) as usize;
            let steps = line.steps();
            let sum = |value: &dyn Fn(&Step) -> u64| steps[range.clone()].iter().map(value).sum::<u64>();
            [
                sum(&|step| step.waits_ns[0]),
                sum(&|step| step.waits_ns[1]),
                sum(&|step| step.flight_ns as u64),
                sum(&|step| step.sent),
            ]
        };
        let check = |line: &Timeline| {
            assert_eq!(of(line, 0, 16), [16 * MS, 0, 48 * MS, 7]);
            assert_eq!(of(line, 48, 80), [32 * MS, 32 * MS, 96 * MS, 0]);
            assert_eq!(of(line, 16, 96), [80 * MS, 76 * MS, 240 * MS, 21]);
            assert_eq!(of(line, 112, 128), [16 * MS, 8 * MS + MS / 8, 48 * MS, 0]);
        };
        check(&line);
        // Longer steps tell the same.
        line.at(1_000 * MS).sent += 1;
        check(&line);
        line.at(10_000 * MS).sent += 1;
        assert_eq!(line.step_ns, 16 * MS);
        check(&line);
        assert!(line.runs.len() <= 30, "{}", line.runs.len());
    }
}
