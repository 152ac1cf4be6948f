//! Acknowledgements that were not captured, as far as the timestamps of what they let go tell of them (RFC 7323).
//!
//! Each segment echoes the receiver's clock of the newest acknowledgement that had reached its sender. The time from the one to the other
//! is the same for all, but for how long the sender let the acknowledgement wait: of that, the least is taken for none.

use std::collections::VecDeque;

/// Clocks tick once in this time; others are not understood.
const TICK_NS: u64 = 1_000_000;
/// Their time and that of the capture differ by less than this part.
const DRIFT: u64 = 20;
/// Segments that are remembered: those of a round trip or more.
const KEPT: usize = 1_024;

/// An acknowledgement that reached the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Heard {
    /// When, in nanoseconds; as exact as the clock.
    pub at_ns: u64,
    /// End of what had been sent a round trip before: it acknowledged that, if nothing was lost.
    pub front: u64,
    /// Whether data came with it, or since the last one.
    pub data: bool,
}

/// Echoes in the data of one end.
#[derive(Clone, Default, Debug)]
pub struct Echoes {
    /// The first and the last: clock value and time.
    first: Option<(u32, u64)>,
    last: u32,
    /// Least of the time minus the clock's, from the first on, in nanoseconds.
    least_ns: i64,
    ack: u32,
    sent: VecDeque<(u64, u64)>,
    front: u64,
}

impl Echoes {
    /// A segment with data passed near its sender: what it echoes, and how far it acknowledges what comes from the other end. Returns
    /// the acknowledgement that came before it, if there was one.
    pub fn passed(&mut self, at_ns: u64, echo: u32, ack: u32, rtt_ns: u64) -> Option<Heard> {
        let Some((first, since_ns)) = self.first else {
            (self.first, self.last, self.ack) = (Some((echo, at_ns)), echo, ack);
            return None;
        };
        if echo.wrapping_sub(self.last) as i32 <= 0 {
            return None;
        }
        let data = ack != self.ack;
        (self.last, self.ack) = (echo, ack);
        let clock_ns = u64::from(echo.wrapping_sub(first)) * TICK_NS;
        let time_ns = at_ns.saturating_sub(since_ns);
        // It came after the last segment, which did not echo it.
        let waited_ns = self.sent.back().map_or(0, |(sent_ns, _)| at_ns.saturating_sub(*sent_ns));
        if clock_ns.abs_diff(time_ns)
            > (time_ns / DRIFT).saturating_add(waited_ns).saturating_add(rtt_ns).saturating_add(TICK_NS)
        {
            return None;
        }
        let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let beyond_ns = signed(time_ns) - signed(clock_ns);
        self.least_ns = self.least_ns.min(beyond_ns);
        // A clock that is read may have ticked just then.
        let lag_ns = (beyond_ns.saturating_sub(self.least_ns) as u64).saturating_sub(TICK_NS);
        let heard_ns = at_ns.saturating_sub(lag_ns);
        while let Some((_, end)) =
            self.sent.front().filter(|(sent_ns, _)| is_there(*sent_ns, heard_ns, rtt_ns))
        {
            self.front = self.front.max(*end);
            self.sent.pop_front();
        }
        Some(Heard { at_ns: heard_ns, front: self.front, data })
    }

    /// Data up to `end` was sent.
    pub fn sent(&mut self, at_ns: u64, end: u64) {
        self.sent.push_back((at_ns, end));
        if self.sent.len() > KEPT {
            self.sent.pop_front();
        }
    }
}

/// Whether what was sent at one time may be acknowledged at another.
fn is_there(sent_ns: u64, heard_ns: u64, rtt_ns: u64) -> bool {
    sent_ns.saturating_add(rtt_ns) <= heard_ns.saturating_add(TICK_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_tells_when_the_acknowledgement_came() {
        const MS: u64 = 1_000_000;
        let mut echoes = Echoes::default();
        let check =
            |echoes: &mut Echoes, at_ms: u64, echo: u32, ack: u32, heard: Option<(u64, u64, bool)>| {
                let found = echoes.passed(at_ms * MS, echo, ack, 4 * MS);
                let heard = heard.map(|(ms, front, data)| Heard { at_ns: ms * MS, front, data });
                assert_eq!(found, heard, "{at_ms}");
                echoes.sent(at_ms * MS, at_ms);
            };
        check(&mut echoes, 1_000, u32::MAX, 1, None);
        check(&mut echoes, 1_001, u32::MAX, 1, None);
        // At once.
        check(&mut echoes, 1_010, 9, 1, Some((1_010, 1_001, false)));
        // Twenty later, but for what a clock may be wrong.
        check(&mut echoes, 1_050, 29, 2, Some((1_031, 1_010, true)));
        // A clock of another kind.
        check(&mut echoes, 1_060, 9_000, 2, None);
    }
}
