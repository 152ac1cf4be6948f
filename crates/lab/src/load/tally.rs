//! What a load counts.

use super::fault::{Fault, Faults};
use hdrhistogram::Histogram;
use std::time::Duration;

/// Parts of a level's time in which answers are counted apart.
pub const ANSWER_BINS: usize = 1_000;
/// How often in a level open connections are counted.
pub const SAMPLES: usize = 40;
/// The longest time that is told apart from longer ones.
const LONGEST_NS: u64 = 1_000_000_000_000;

/// Response times are steady if those of the second half are at most so many times those of the first.
const STEADY: f64 = 1.25;

/// An empty histogram of nanoseconds: three digits, up to 1,000 s.
pub fn histogram() -> Histogram<u64> {
    // The bounds are constants that fit.
    Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("a histogram of these bounds")
}

/// What a share of a histogram's values does not exceed, in milliseconds; `None` without any.
pub fn milliseconds(histogram: &Histogram<u64>, quantile: f64) -> Option<f64> {
    (!histogram.is_empty()).then(|| histogram.value_at_quantile(quantile) as f64 / 1e6)
}

/// Counts of one thread, or of all of them together. Histograms are in nanoseconds.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Connections that became due.
    pub connections: u64,
    /// Of these, and of those that were kept, such as came to stand.
    pub established: u64,
    /// Requests that became due. Each was answered or failed.
    pub offered: u64,
    /// Requests that were answered, with the status that was expected.
    pub answered: u64,
    /// Requests that failed.
    pub faults: Faults,
    /// From the moment when a request was due until its answer was whole. Of requests without an answer in time: as long as
    /// they were waited for.
    pub response: Histogram<u64>,
    /// From the moment when a request was sent until its answer began: what clients that wait for the server call response time.
    pub first_byte: Histogram<u64>,
    /// From the moment when a connection was due until it stood.
    pub connect: Histogram<u64>,
    /// How late the client was: between the moment when it could have sent or connected, and when it did.
    pub late: Histogram<u64>,
    /// Bytes of answers, heads included.
    pub received: u64,
    /// Bytes of bodies of the last answer.
    pub body_len: Option<u64>,
    /// Bytes of requests.
    pub sent: u64,
    /// By how much answers lag behind the time that was set: as `response`, but where each request of a connection follows the answer before,
    /// from when the connection was due.
    pub lag: Histogram<u64>,
    /// The same by that time: how many in its first and in its second half, and their sum in nanoseconds.
    pub halves: [(u64, u128); 2],
    /// Answers in each part of the time in which something was due; later ones are not in it.
    pub answers: Vec<u32>,
    /// Open connections, those under way included, at even distances of that time.
    pub open: Vec<u32>,
    /// The most connections that were open at once.
    pub most_open: u64,
    /// Processor time of each thread.
    pub thread_cpu: Vec<Duration>,
    /// From the start until all were answered or given up.
    pub elapsed: Duration,
}

impl Default for Tally {
    fn default() -> Tally {
        Tally {
            connections: 0,
            established: 0,
            offered: 0,
            answered: 0,
            faults: Faults::new(),
            response: histogram(),
            first_byte: histogram(),
            connect: histogram(),
            late: histogram(),
            received: 0,
            body_len: None,
            sent: 0,
            lag: histogram(),
            halves: [(0, 0); 2],
            answers: vec![0; ANSWER_BINS],
            open: Vec::new(),
            most_open: 0,
            thread_cpu: Vec::new(),
            elapsed: Duration::ZERO,
        }
    }
}

impl Tally {
    /// Requests that failed.
    pub fn failed(&self) -> u64 {
        self.faults.values().sum()
    }

    /// So many requests have failed.
    pub fn fail(&mut self, fault: Fault, requests: u64) {
        if requests > 0 {
            *self.faults.entry(fault).or_default() += requests;
        }
    }

    /// A request that was due at `due_ns`, or is in the row of those that began at `since_ns`, was answered or given up at `now_ns` of a load of
    /// `time`.
    pub fn responded(&mut self, due_ns: u64, since_ns: u64, now_ns: u64, time: Duration) {
        self.response.saturating_record(now_ns.saturating_sub(due_ns));
        let lag = now_ns.saturating_sub(since_ns);
        self.lag.saturating_record(lag);
        let (count, sum) = &mut self.halves[usize::from(u128::from(since_ns) * 2 >= time.as_nanos())];
        *count += 1;
        *sum += u128::from(lag);
    }

    /// How long a load must be for [`Tally::rate`] to tell, where this one of `time` was too short: answers lagged by more than half of it, and
    /// not more and more, as those of a server do that has more to do than it can.
    pub fn longer(&self, time: Duration) -> Option<Duration> {
        let [early, late] = self.halves.map(|(count, sum)| sum as f64 / count.max(1) as f64);
        let is_steady = self.halves.iter().all(|(count, _)| *count > 0) && late <= early * STEADY;
        let lag = self.typical_lag();
        (is_steady && self.failed() == 0 && lag > time / 2).then_some(lag * 4)
    }

    /// What nine in ten answers do not exceed: those of the last requests of a connection lag most.
    fn typical_lag(&self) -> Duration {
        Duration::from_secs_f64(milliseconds(&self.lag, 0.9).unwrap_or(0.0) / 1e3)
    }

    /// Answers a second over the time in which requests were due. Answers lag behind requests; so
    /// much of the beginning, half at most, is left out, in which some cannot be.
    pub fn rate(&self, time: Duration) -> f64 {
        let (total, seconds) = (self.answers.len() as f64, time.as_secs_f64());
        let lag = self.typical_lag().as_secs_f64();
        let first = (lag / seconds * total).min(total / 2.0) as usize;
        let answers: u64 = self.answers[first..].iter().map(|count| u64::from(*count)).sum();
        answers as f64 / (seconds * (total - first as f64) / total)
    }

    /// Adds another thread's counts of the same time, or another round's. Peaks of threads add up, which is at most as much too
    /// high as they lie apart in time.
    pub fn add(&mut self, other: &Tally) {
        self.connections += other.connections;
        self.established += other.established;
        self.offered += other.offered;
        self.answered += other.answered;
        for (fault, count) in &other.faults {
            self.fail(*fault, *count);
        }
        for (own, others) in [
            (&mut self.response, &other.response),
            (&mut self.lag, &other.lag),
            (&mut self.first_byte, &other.first_byte),
            (&mut self.connect, &other.connect),
            (&mut self.late, &other.late),
        ] {
            // Both have the same bounds.
            own.add(others).expect("histograms of the same bounds");
        }
        self.received += other.received;
        self.body_len = other.body_len.or(self.body_len);
        self.sent += other.sent;
        for (own, others) in self.halves.iter_mut().zip(&other.halves) {
            *own = (own.0 + others.0, own.1 + others.1);
        }
        for (own, others) in self.answers.iter_mut().zip(&other.answers) {
            *own += others;
        }
        if self.open.len() < other.open.len() {
            self.open.resize(other.open.len(), 0);
        }
        for (own, others) in self.open.iter_mut().zip(&other.open) {
            *own += others;
        }
        self.most_open += other.most_open;
        self.thread_cpu.extend(&other.thread_cpu);
        self.elapsed = self.elapsed.max(other.elapsed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_that_of_answers_and_not_of_the_wait_for_the_first() {
        let check = |from_bin: usize, per_bin: u32, response_ms: u64, expected: f64| {
            let mut tally = Tally::default();
            tally.answers[from_bin..].fill(per_bin);
            tally.lag.record(response_ms * 1_000_000).unwrap();
            let rate = tally.rate(Duration::from_secs(10));
            assert!((rate - expected).abs() < expected * 0.01, "{rate} instead of {expected}");
        };
        check(0, 3, 0, 300.0);
        // 200 ms of 10 s: nothing can come before.
        check(20, 3, 200, 300.0);
        // A server that was too slow: what came in the second half.
        check(0, 3, 60_000, 300.0);
        // One that stopped after a tenth: its few answers were fast.
        let mut tally = Tally::default();
        tally.answers[..100].fill(10);
        tally.lag.record(1_000).unwrap();
        assert_eq!(tally.rate(Duration::from_secs(10)), 100.0);
        assert_eq!(Tally::default().rate(Duration::from_secs(1)), 0.0);
    }

    #[test]
    fn a_row_of_requests_lags_from_its_beginning() {
        let mut tally = Tally::default();
        tally.responded(5, 2, 9, Duration::from_nanos(4));
        assert_eq!((tally.response.max(), tally.lag.max(), tally.halves), (4, 7, [(0, 0), (1, 7)]));
    }

    #[test]
    fn a_load_is_too_short_where_answers_are_slow_but_not_slower_and_slower() {
        let time = Duration::from_secs(3);
        let check = |early_ms: u64, late_ms: u64, fails: u64, expected: Option<u64>| {
            let mut tally = Tally::default();
            for number in 0..100 {
                let due_ns = number * 30_000_000;
                let taken_ms = if number < 50 { early_ms } else { late_ms };
                tally.responded(due_ns, due_ns, due_ns + taken_ms * 1_000_000, time);
            }
            tally.fail(Fault::Timeout, fails);
            let longer = tally.longer(time).map(|time| (time.as_secs_f64() * 10.0).round() as u64);
            assert_eq!(longer, expected, "{early_ms} ms, later {late_ms} ms");
        };
        check(2, 2, 0, None);
        check(1_400, 1_400, 0, None);
        check(1_600, 1_600, 0, Some(64));
        check(1_600, 1_600, 1, None);
        // A queue that grows.
        check(500, 2_500, 0, None);
        assert_eq!(Tally::default().longer(time), None);
    }

    #[test]
    fn threads_add_up() {
        let (mut one, mut two) = (Tally::default(), Tally::default());
        one.fail(Fault::Reset, 2);
        two.fail(Fault::Reset, 3);
        two.fail(Fault::Status, 0);
        two.open = vec![1, 2];
        two.response.record(5).unwrap();
        one.add(&two);
        assert_eq!((one.failed(), one.faults.len(), one.response.len()), (5, 1, 1));
        assert_eq!(one.open, [1, 2]);
    }
}
