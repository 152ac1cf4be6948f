//! Window scaling where no SYN tells it: the least scale with which what was sent was allowed.

use super::segment::Segment;
use super::wire::Known;
use linerate_wire::tcp::MAX_WINDOW_SCALE;
use std::collections::VecDeque;

/// Share of segments that may lie beyond the window: the capture missed an acknowledgement. One that misses more is of little use.
const BEYOND: f64 = 0.03;
/// So many segments that end at the very edge are no accident, if they are so large a part of all: of other ends, one in a
/// segment's bytes would be there.
const BRIMS: u64 = 8;
/// That part.
const OFTEN: f64 = 0.01;
/// A rate is measured from one moment to another, which may be within a burst: a twentieth is no proof.
const INEXACT: f64 = 1.05;
/// Most windows that are remembered as not known to the sender yet.
const MAX_TOLD: usize = 4_096;

/// A window that was told to the sender.
#[derive(Clone, Copy, Debug)]
struct Told {
    at_ns: u64,
    /// The clock of the receiver.
    stamp: Option<u32>,
    front: u64,
    raw: u64,
}

/// What is inferred of one direction.
#[derive(Clone, Default, Debug)]
pub struct Guess {
    /// The least scale with which nearly nothing was sent beyond a window. What is sent right up to such an edge again and again
    /// proves it; nothing else would stop there.
    pub least: u8,
    /// Segments by the least scale that lets them be sent.
    scales: [u64; MAX_WINDOW_SCALE as usize + 1],
    /// Of these, such as end with the very last byte that it lets through.
    brims: [u64; MAX_WINDOW_SCALE as usize + 1],
    /// The newest that the sender knew of, and those behind it.
    told: VecDeque<Told>,
    most_raw: u64,
}

impl Guess {
    /// A window was told with an acknowledgement of everything before `front`.
    pub fn told(&mut self, segment: &Segment, front: u64) {
        let raw = u64::from(segment.window);
        let stamp = segment.options.timestamps.map(|stamps| stamps.value);
        if self.told.len() >= MAX_TOLD {
            self.told.pop_front();
        }
        self.told.push_back(Told { at_ns: segment.at_ns, stamp, front, raw });
        self.most_raw = self.most_raw.max(raw);
    }

    /// New bytes up to `end` were sent. The sender knew of windows that had a turn to reach it, and of none that is younger than the
    /// clock it echoes: at the receiver, the newest acknowledgement is none that let the data go.
    pub fn sent(&mut self, segment: &Segment, end: u64, known: &Known) {
        let echo = segment.options.timestamps.map(|stamps| stamps.echo);
        let is_known = |told: &Told| {
            let is_old = told.stamp.zip(echo).is_none_or(|(told, echo)| echo.wrapping_sub(told) as i32 >= 0);
            is_old && told.at_ns.saturating_add(known.turn_ns) <= segment.at_ns
        };
        while self.told.get(1).is_some_and(is_known) {
            self.told.pop_front();
        }
        let Some(told) = self.told.front().copied().filter(|told| is_known(told) && told.raw > 0) else {
            return;
        };
        // No receiver's buffer is less than a segment (RFC 9293 section 3.8.6.2.2).
        let lets = |scale: u8| end <= told.front + (told.raw << scale) && self.most_raw << scale >= known.mss;
        let needed = (0..MAX_WINDOW_SCALE).find(|scale| lets(*scale)).unwrap_or(MAX_WINDOW_SCALE);
        self.scales[usize::from(needed)] += 1;
        self.brims[usize::from(needed)] += u64::from(end == told.front + (told.raw << needed));
        let mut beyond: u64 = self.scales.iter().sum();
        let allowed = (beyond as f64 * BEYOND) as u64;
        let found = self.scales.iter().position(|count| {
            beyond -= count;
            beyond <= allowed
        });
        self.least = found.unwrap_or(0) as u8;
    }

    /// Whether the sender stopped at the very edge again and again: of a window that is larger, that byte would be like any other.
    pub fn is_proven(&self) -> bool {
        let brims = self.brims[usize::from(self.least)];
        brims >= BRIMS && brims as f64 >= OFTEN * self.scales.iter().sum::<u64>() as f64
    }
}

/// How much more often windows of at most `window` bytes must be doubled, so that one each least round trip carries the rate that was
/// measured. A longer one tells nothing: a mean rate and a usual round trip are of different times.
pub fn doublings(window: u64, scale: u8, rate: f64, rtt_least_s: Option<f64>) -> u8 {
    let Some(rtt_s) = rtt_least_s.filter(|_| window > 0) else { return 0 };
    let most = MAX_WINDOW_SCALE.saturating_sub(scale);
    (0..most).find(|more| (window << more) as f64 * INEXACT >= rate * rtt_s).unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_below_what_was_measured_is_doubled() {
        assert_eq!(doublings(60_000, 0, 1e6, Some(0.06)), 0);
        assert_eq!(doublings(60_000, 0, 1e6, Some(0.062)), 0, "nearly what was measured");
        assert_eq!(doublings(60_000, 0, 1e6, Some(0.064)), 1);
        assert_eq!(doublings(1_000, 10, 1e9, Some(1.0)), 4, "no more than 14 in all");
        assert_eq!((doublings(0, 0, 1e9, Some(1.0)), doublings(1, 0, 1e9, None)), (0, 0));
    }
}
