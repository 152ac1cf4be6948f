//! Where a connection's time went, by what kept it from sending faster.

use core::time::Duration;
use linerate_transport::{LimitCause, LimitTimes};
use linerate_wire::units::Instant;

/// A clock per cause, one of which runs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct LimitClock {
    running: Option<(Instant, LimitCause)>,
    /// Beside the causes: whether there was anything to do.
    pub busy: BusyClock,
    times: LimitTimes,
}

impl LimitClock {
    /// From `now` on `cause` is what limits. The first call starts the clock.
    pub fn set(&mut self, now: Instant, cause: LimitCause) {
        if let Some((since, running)) = self.running {
            if running == cause {
                return;
            }
            self.add(running, now.nanos_since(since));
        }
        self.running = Some((now, cause));
    }

    /// What limits now.
    pub fn cause(&self) -> Option<LimitCause> {
        self.running.map(|(_, cause)| cause)
    }

    /// The connection is over: the clock stops.
    pub fn stop(&mut self, now: Instant) {
        if let Some((since, running)) = self.running.take() {
            self.add(running, now.nanos_since(since));
        }
    }

    /// The times up to `now`.
    pub fn times(&self, now: Instant) -> LimitTimes {
        let mut copy = self.clone();
        copy.stop(now);
        copy.times
    }

    /// The clock of a connection that has nothing to do, and what limits it; `None` while it has.
    pub fn at_rest(&self) -> Option<(ClockAtRest, Option<LimitCause>)> {
        let BusyClock { since: Instant::FAR_FUTURE, total_ns } = self.busy else { return None };
        let (since, cause) = self.running.unzip();
        Some((ClockAtRest { since: since.unwrap_or_default(), busy_ns: total_ns, times: self.times }, cause))
    }

    fn add(&mut self, cause: LimitCause, time_ns: u64) {
        if let Some(ns) = self.times.ns.get_mut(cause as usize) {
            *ns = ns.saturating_add(time_ns);
        }
    }
}

/// A [`LimitClock`] of which the cause is kept elsewhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockAtRest {
    since: Instant,
    busy_ns: u64,
    times: LimitTimes,
}

impl ClockAtRest {
    /// The clock again, which runs for `cause`.
    pub fn clock(&self, cause: Option<LimitCause>) -> LimitClock {
        LimitClock {
            running: cause.map(|cause| (self.since, cause)),
            busy: BusyClock { total_ns: self.busy_ns, ..BusyClock::default() },
            times: self.times,
        }
    }
}

/// How long there was something to send or to be acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BusyClock {
    /// `FAR_FUTURE` while it is not busy.
    since: Instant,
    total_ns: u64,
}

impl Default for BusyClock {
    fn default() -> Self {
        BusyClock { since: Instant::FAR_FUTURE, total_ns: 0 }
    }
}

impl BusyClock {
    /// From `now` on it is busy, or not.
    pub fn set(&mut self, now: Instant, is_busy: bool) {
        match self.since == Instant::FAR_FUTURE {
            true if is_busy => self.since = now,
            false if !is_busy => {
                self.total_ns = self.time_ns(now);
                self.since = Instant::FAR_FUTURE;
            }
            _ => {}
        }
    }

    /// The time up to `now`.
    pub fn time(&self, now: Instant) -> Duration {
        Duration::from_nanos(self.time_ns(now))
    }

    fn time_ns(&self, now: Instant) -> u64 {
        // Nothing has passed since the far future.
        self.total_ns.saturating_add(now.as_nanos().saturating_sub(self.since.as_nanos()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_is_what_lies_between_the_first_byte_and_its_acknowledgement() {
        let at = Instant::from_millis;
        let mut clock = BusyClock::default();
        clock.set(at(5), false);
        clock.set(at(10), true);
        clock.set(at(12), true);
        assert_eq!(clock.time(at(15)), Duration::from_millis(5));
        clock.set(at(20), false);
        clock.set(at(30), true);
        assert_eq!(clock.time(at(31)), Duration::from_millis(11));
    }

    #[test]
    fn every_nanosecond_has_one_cause() {
        let mut clock = LimitClock::default();
        assert_eq!(clock.times(Instant::from_millis(1)).ns, [0; LimitCause::ALL.len()]);
        clock.set(Instant::from_nanos(10), LimitCause::Application);
        clock.set(Instant::from_nanos(15), LimitCause::Congestion);
        clock.set(Instant::from_nanos(17), LimitCause::Congestion);
        assert_eq!(clock.times(Instant::from_nanos(30)).ns, [5, 0, 15, 0, 0, 0, 0, 0]);
        clock.set(Instant::from_nanos(30), LimitCause::Device);
        clock.stop(Instant::from_nanos(31));
        assert_eq!(clock.times(Instant::from_nanos(99)).ns, [5, 0, 15, 0, 1, 0, 0, 0]);
    }
}
