//! How long an end takes to answer, as seen from the capture: from a packet that passes towards it to what it says in return.

use super::histogram::Histogram;
use std::collections::VecDeque;

/// Clock values that are remembered, each with the time it was first seen: those of a round trip or more.
const KEPT: usize = 512;

/// One end's answers.
#[derive(Clone, Default, Debug)]
pub struct Turn {
    /// Clock values of the other end, with when they first passed.
    seen: VecDeque<(u32, u64)>,
    last_echo: Option<u32>,
    /// The least time, in nanoseconds.
    pub least_ns: Option<u64>,
    /// By timestamps, of the first segment that echoes a value.
    pub by_stamps: Histogram,
}

impl Turn {
    /// An answer took this long.
    pub fn took(&mut self, time_ns: u64) {
        self.least_ns = Some(self.least_ns.map_or(time_ns, |least| least.min(time_ns)));
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

    /// This end echoes a value; how long after it passed, if this is the first time.
    pub fn echoed(&mut self, at_ns: u64, echo: u32) -> Option<u64> {
        if self.last_echo == Some(echo) {
            return None;
        }
        self.last_echo = Some(echo);
        let index =
            self.seen.binary_search_by(|(value, _)| (value.wrapping_sub(echo) as i32).cmp(&0)).ok()?;
        let (_, since_ns) = self.seen.get(index)?;
        let time_ns = at_ns.saturating_sub(*since_ns);
        self.took(time_ns);
        self.by_stamps.record(time_ns);
        Some(time_ns)
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
        assert_eq!(turn.echoed(400, u32::MAX), Some(300));
        assert_eq!(turn.echoed(500, u32::MAX), None);
        assert_eq!(turn.echoed(450, 3), Some(250));
        assert_eq!(turn.echoed(600, 9), None);
        assert_eq!(turn.least_ns, Some(250));
    }
}
