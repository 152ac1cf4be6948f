//! When connections and requests become due: at even distances, computed from their number, so that nothing drifts.

use super::{Arrivals, Pace};
use std::time::Duration;

/// What becomes due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// A connection with its first request.
    Connection,
    /// Another request: on the newest connection, or on any that is kept.
    Request,
}

/// Something that is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Due {
    /// When, in nanoseconds since the start.
    pub at_ns: u64,
    /// What.
    pub what: What,
}

/// The share of one thread of what becomes due.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Events a second, over all threads.
    rate: f64,
    /// Events of one connection that follow each other.
    each: u64,
    /// Whether the first of `each` is a connection.
    opens: bool,
    /// The next connection, or request where connections are kept.
    number: u64,
    /// Which of its events.
    step: u64,
    /// Numbers from here on belong to nobody.
    end: u64,
    threads: u64,
}

impl Schedule {
    /// The share of thread `thread` of `threads`. A closed loop has none.
    pub fn new(arrivals: Arrivals, time: Duration, thread: usize, threads: usize) -> Schedule {
        let (rate, each, opens) = match arrivals {
            Arrivals::Opened { rate, requests, pace: Pace::Requests } => {
                (rate * f64::from(requests), u64::from(requests), true)
            }
            Arrivals::Opened { rate, pace: Pace::Connections, .. } => (rate, 1, true),
            Arrivals::Kept { rate, .. } => (rate, 1, false),
        };
        let end = Schedule::count(arrivals, time);
        Schedule { rate, each, opens, number: thread as u64, step: 0, end, threads: threads as u64 }
    }

    /// Connections, or requests where connections are kept, that become due in a time.
    pub fn count(arrivals: Arrivals, time: Duration) -> u64 {
        let (Arrivals::Opened { rate, .. } | Arrivals::Kept { rate, .. }) = arrivals;
        if rate <= 0.0 { 0 } else { ((rate * time.as_secs_f64()).round() as u64).max(1) }
    }

    /// When the next is due; `None` once all were.
    pub fn peek_ns(&self) -> Option<u64> {
        let event = (self.number * self.each + self.step) as f64;
        (self.number < self.end).then_some((event / self.rate * 1e9) as u64)
    }

    /// The next one that is due by now.
    pub fn pop(&mut self, now_ns: u64) -> Option<Due> {
        let at_ns = self.peek_ns().filter(|at| *at <= now_ns)?;
        let what = if self.opens && self.step == 0 { What::Connection } else { What::Request };
        self.step += 1;
        if self.step == self.each {
            (self.step, self.number) = (0, self.number + self.threads);
        }
        Some(Due { at_ns, what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(arrivals: Arrivals, threads: usize) -> Vec<(u64, What)> {
        let mut found = Vec::new();
        for thread in 0..threads {
            let mut schedule = Schedule::new(arrivals, Duration::from_secs(1), thread, threads);
            let mut last = 0;
            while let Some(due) = schedule.pop(u64::MAX) {
                assert!(due.at_ns >= last, "a thread's events are in order");
                last = due.at_ns;
                found.push((due.at_ns, due.what));
            }
        }
        found.sort_by_key(|(at, _)| *at);
        found
    }

    #[test]
    fn events_lie_at_even_distances_however_many_threads_share_them() {
        let check = |arrivals, connections: usize, requests: usize, every_ns: u64| {
            let single = all(arrivals, 1);
            for threads in [1, 2, 3, 7] {
                assert_eq!(all(arrivals, threads), single, "{threads} threads");
            }
            let opened = single.iter().filter(|(_, what)| *what == What::Connection).count();
            assert_eq!((opened, single.len() - opened), (connections, requests), "{arrivals:?}");
            for (number, (at, _)) in single.iter().enumerate() {
                assert!(at.abs_diff(number as u64 * every_ns) <= 1, "{arrivals:?} {number} at {at}");
            }
        };
        let opened = |rate, requests, pace| Arrivals::Opened { rate, requests, pace };
        check(opened(20.0, 1, Pace::Requests), 20, 0, 50_000_000);
        check(opened(20.0, 5, Pace::Requests), 20, 80, 10_000_000);
        check(opened(20.0, 5, Pace::Connections), 20, 0, 50_000_000);
        check(opened(0.2, 2, Pace::Requests), 1, 1, 2_500_000_000);
        check(Arrivals::Kept { connections: 3, rate: 100.0 }, 0, 100, 10_000_000);
        check(Arrivals::Kept { connections: 3, rate: 0.0 }, 0, 0, 1);
    }

    #[test]
    fn nothing_is_due_early() {
        let arrivals = Arrivals::Opened { rate: 10.0, requests: 1, pace: Pace::Requests };
        let mut schedule = Schedule::new(arrivals, Duration::from_secs(1), 0, 1);
        assert_eq!(schedule.pop(0).map(|due| due.at_ns), Some(0));
        assert_eq!(schedule.pop(99_999_999), None);
        assert_eq!(schedule.peek_ns(), Some(100_000_000));
        assert!(schedule.pop(100_000_000).is_some());
    }
}
