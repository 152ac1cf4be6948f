//! How long an end takes to answer, as seen from the capture: from a packet that passes towards it to what it says in return.

use super::histogram::Histogram;
use std::collections::VecDeque;

/// Clock values that are remembered, each with the time it was first seen: those of a round trip or more.
const KEPT: usize = 512;

/// An answer that came soonest.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Soonest {
    /// How long it took, in nanoseconds.
    pub time_ns: u64,
    /// Bytes of payload that it had, which take time to pass the narrowest link.
    pub len: u32,
}

/// How long after a clock value an end echoed it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Echoed {
    /// In nanoseconds.
    pub time_ns: u64,
    /// It came with data, and there was no newer value that it could have echoed: its sender may have been silent for most of the time,
    /// with nothing to send.
    pub is_bound: bool,
}

/// One end's answers.
#[derive(Clone, Default, Debug)]
pub struct Turn {
    /// Clock values of the other end, with when they first passed.
    seen: VecDeque<(u32, u64)>,
    last_echo: Option<u32>,
    /// The least time, in nanoseconds.
    pub least_ns: Option<u64>,
    /// The least of times that may have been pauses, as long as nothing else is known, in nanoseconds.
    pub at_most_ns: Option<u64>,
    /// The soonest of all.
    pub soonest: Option<Soonest>,
    /// The soonest of those with data.
    pub soonest_data: Option<Soonest>,
    /// By timestamps, of the first segment that echoes a value.
    pub by_stamps: Histogram,
}

impl Turn {
    /// An answer with so much payload took this long.
    pub fn took(&mut self, time_ns: u64, len: u32) {
        let least = |known: Option<Soonest>| {
            Some(known.filter(|known| known.time_ns <= time_ns).unwrap_or(Soonest { time_ns, len }))
        };
        self.soonest = least(self.soonest);
        if len > 0 {
            self.soonest_data = least(self.soonest_data);
        }
        self.least_ns = Some(self.least_ns.map_or(time_ns, |least| least.min(time_ns)));
    }

    /// The least that is known, or what it is at most.
    pub fn bound_ns(&self) -> Option<u64> {
        self.least_ns.or(self.at_most_ns)
    }

    /// The other end showed its clock.
    pub fn shown(&mut self, at_ns: u64, value: u32) {
        if self.seen.back().is_some_and(|(last, _)| value.wrapping_sub(*last) as i32 <= 0) {
            return;
        }
        self.seen.push_back((value, at_ns));
        if self.seen.len() > KEPT {
            self.seen.pop_front();
        }
    }

    /// This end echoes a value, in a segment with so much payload; how long after it passed, if this is the first time.
    pub fn echoed(&mut self, at_ns: u64, echo: u32, len: u32) -> Option<Echoed> {
        if self.last_echo == Some(echo) {
            return None;
        }
        self.last_echo = Some(echo);
        let index =
            self.seen.binary_search_by(|(value, _)| (value.wrapping_sub(echo) as i32).cmp(&0)).ok()?;
        let (_, since_ns) = self.seen.get(index)?;
        let time_ns = at_ns.saturating_sub(*since_ns);
        // Had it been sent later, it would have echoed the next one, if there was a next one.
        let is_bound = len > 0 && index + 1 == self.seen.len();
        if is_bound && self.least_ns.is_none() {
            self.at_most_ns = Some(self.at_most_ns.map_or(time_ns, |least| least.min(time_ns)));
        } else {
            self.took(time_ns, len);
        }
        self.by_stamps.record(time_ns);
        Some(Echoed { time_ns, is_bound })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_is_timed_once() {
        let mut turn = Turn::default();
        turn.shown(100, u32::MAX);
        turn.shown(150, u32::MAX);
        turn.shown(200, 3);
        let exact = |time_ns: u64| Some(Echoed { time_ns, is_bound: false });
        assert_eq!(turn.echoed(400, u32::MAX, 0), exact(300));
        assert_eq!(turn.echoed(500, u32::MAX, 0), None);
        assert_eq!(turn.echoed(450, 3, 1_000), Some(Echoed { time_ns: 250, is_bound: true }));
        assert_eq!(turn.echoed(600, 9, 0), None);
        assert_eq!(turn.least_ns, Some(250));
        let soonest = Some(Soonest { time_ns: 250, len: 1_000 });
        assert_eq!((turn.soonest, turn.soonest_data), (soonest, soonest));
        turn.took(20, 0);
        turn.took(30, 0);
        assert_eq!((turn.soonest, turn.soonest_data), (Some(Soonest { time_ns: 20, len: 0 }), soonest));
    }

    #[test]
    fn what_echoes_the_newest_value_may_have_paused() {
        let mut turn = Turn::default();
        turn.shown(100, 1);
        assert_eq!(turn.echoed(900, 1, 10), Some(Echoed { time_ns: 800, is_bound: true }));
        assert_eq!((turn.least_ns, turn.bound_ns()), (None, Some(800)));
        turn.shown(1_000, 2);
        turn.shown(1_100, 3);
        assert_eq!(turn.echoed(1_300, 2, 10), Some(Echoed { time_ns: 300, is_bound: false }));
        assert_eq!((turn.least_ns, turn.bound_ns()), (Some(300), Some(300)));
    }
}
