//! How fast the window opens in slow start, and when the first slow start ends without a loss: byte counting (RFC 3465)
//! and HyStart++ (RFC 9406).
//!
//! Departure: RFC 9406 section 4.3 lets one acknowledgement open the window of a sender without pacing by L = 8 segments.
//! Peers that coalesce acknowledge up to 64 KiB at once, so that is allowed too: such a burst is one super-segment.

use super::congestion::AckEvent;
use core::time::Duration;
use linerate_wire::units::duration;

/// Most segments that one acknowledgement opens the window by when sends are not paced (RFC 9406 section 4.3).
const MOST_SEGMENTS: u64 = 8;

/// What one acknowledgement of a peer that coalesces covers, in bytes.
const COALESCED: u64 = 64 << 10;

// RFC 9406 section 4.3.
const MIN_RTT_THRESHOLD: Duration = Duration::from_millis(4);
const MAX_RTT_THRESHOLD: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u32 = 8;
const RTT_SAMPLES: u32 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;

/// What an acknowledgement does in slow start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Step {
    /// Bytes that the window grows by, before it is cut at the threshold.
    pub growth: u64,
    /// The path is full: congestion avoidance begins with the window as it is then.
    pub is_over: bool,
}

/// Slow start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SlowStart {
    after_timeout: AfterTimeout,
    round: Option<Round>,
    conservative: Option<Conservative>,
}

/// Until what was outstanding at a timeout is acknowledged, acknowledgements cover what arrived before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum AfterTimeout {
    #[default]
    No,
    /// The next acknowledgement tells how far.
    Begun,
    Until(u64),
}

/// A round trip, from the sending of a byte to its acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Round {
    end: u64,
    last_min: Option<Duration>,
    min: Option<Duration>,
    samples: u32,
}

/// Conservative slow start: the round trips grow, but the reason may be jitter.
#[derive(Clone, Copy, Debug)]
struct Conservative {
    baseline: Duration,
    rounds: u32,
}

impl SlowStart {
    /// The least round-trip time of the round that ended last, where that is all there is to know while everything is
    /// acknowledged: no timeout is being repaired, and the path does not seem full. With the next acknowledgement a new round
    /// begins in any case.
    pub fn last_round(&self) -> Option<Option<Duration>> {
        let is_plain = self.after_timeout == AfterTimeout::No && self.conservative.is_none();
        is_plain.then(|| self.round.and_then(|round| round.min))
    }

    /// Slow start after such a pause.
    pub fn after(last_round: Option<Duration>) -> SlowStart {
        let round = last_round.map(|min| Round { end: 0, last_min: None, min: Some(min), samples: 0 });
        SlowStart { round, ..SlowStart::default() }
    }

    /// A retransmission timeout: until it is repaired, an acknowledgement opens the window by one segment (RFC 3465
    /// section 2.3).
    pub fn on_timeout(&mut self) {
        self.after_timeout = AfterTimeout::Begun;
        self.round = None;
        self.conservative = None;
    }

    /// An acknowledgement in slow start; `is_first`: no threshold is known yet, so HyStart++ looks for one (RFC 9406
    /// section 4.3 recommends it for the first slow start only).
    pub fn on_ack(&mut self, ack: &AckEvent, mss: u64, is_first: bool) -> Step {
        let growth = ack.delivered.min(self.most(ack, mss));
        if !is_first {
            return Step { growth, is_over: false };
        }
        let is_new_round = self.begin_round(ack);
        self.look_at_round_trips(ack);
        match &mut self.conservative {
            None => Step { growth, is_over: false },
            Some(conservative) => {
                conservative.rounds += u32::from(is_new_round);
                let is_over = conservative.rounds >= CSS_ROUNDS;
                Step { growth: growth / CSS_GROWTH_DIVISOR, is_over }
            }
        }
    }

    /// The limit L of RFC 3465 section 2.2, in bytes.
    fn most(&mut self, ack: &AckEvent, mss: u64) -> u64 {
        match self.after_timeout {
            AfterTimeout::Begun => self.after_timeout = AfterTimeout::Until(ack.nxt),
            AfterTimeout::Until(end) if ack.una >= end => self.after_timeout = AfterTimeout::No,
            _ => {}
        }
        match self.after_timeout {
            AfterTimeout::No if ack.paced => u64::MAX,
            AfterTimeout::No => (MOST_SEGMENTS * mss).max(COALESCED),
            _ => mss,
        }
    }

    /// Begins a round when the last one is acknowledged; says whether it did.
    fn begin_round(&mut self, ack: &AckEvent) -> bool {
        match &mut self.round {
            Some(round) if ack.una < round.end => false,
            Some(round) => {
                *round = Round { end: ack.nxt, last_min: round.min, min: None, samples: 0 };
                true
            }
            None => {
                self.round = Some(Round { end: ack.nxt, last_min: None, min: None, samples: 0 });
                false
            }
        }
    }

    fn look_at_round_trips(&mut self, ack: &AckEvent) {
        let (Some(round), Some(rtt)) = (&mut self.round, ack.rtt_ns.map(duration)) else { return };
        let min = round.min.map_or(rtt, |min| min.min(rtt));
        round.min = Some(min);
        round.samples = round.samples.saturating_add(1);
        if round.samples < RTT_SAMPLES {
            return;
        }
        match self.conservative {
            Some(Conservative { baseline, .. }) if min < baseline => self.conservative = None,
            Some(_) => {}
            None => {
                let Some(last_min) = round.last_min else { return };
                let threshold = (last_min / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESHOLD, MAX_RTT_THRESHOLD);
                if min >= last_min + threshold {
                    self.conservative = Some(Conservative { baseline: min, rounds: 0 });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;

    fn ack(una: u64, nxt: u64, delivered: u64, rtt_ms: u64) -> AckEvent {
        let rtt_ns = Some(rtt_ms * 1_000_000);
        AckEvent { una, nxt, delivered, pipe: 0, rtt_ns, smoothed_rtt: None, paced: false }
    }

    /// Runs a round of `samples` acknowledgements with this round-trip time; returns the last step.
    fn round(slow_start: &mut SlowStart, number: u64, samples: u64, rtt_ms: u64) -> Step {
        let base = number * 100_000;
        let mut last = Step { growth: 0, is_over: false };
        for at in 0..samples {
            last = slow_start.on_ack(&ack(base + at * MSS, base + 100_000, MSS, rtt_ms), MSS, true);
        }
        last
    }

    #[test]
    fn an_acknowledgement_opens_by_what_arrived_up_to_eight_segments_or_a_super_segment() {
        let growth = |mss, delivered, paced| {
            let ack = AckEvent { paced, ..ack(0, 0, delivered, 1) };
            SlowStart::default().on_ack(&ack, mss, true).growth
        };
        assert_eq!(growth(MSS, 3_000, false), 3_000);
        assert_eq!(growth(MSS, 200_000, false), 64 << 10);
        assert_eq!(growth(9_000, 200_000, false), 72_000);
        assert_eq!(growth(MSS, 200_000, true), 200_000);
    }

    #[test]
    fn rfc_3465_2_3_after_a_timeout_one_segment_until_it_is_repaired() {
        let mut slow_start = SlowStart::default();
        slow_start.on_timeout();
        // The first acknowledgement after it shows what was outstanding: up to 20,000.
        for (una, growth) in [(1_000, 1_000), (19_000, 1_000), (20_000, 8_000), (21_000, 8_000)] {
            let step = slow_start.on_ack(&ack(una, una.max(20_000), 8_000, 1), MSS, false);
            assert_eq!(step, Step { growth, is_over: false }, "una {una}");
        }
    }

    /// RFC 9406 section 4.2: `rtts` by round; the number of the round in which slow start ended, and whether growth was
    /// conservative in the last one.
    fn check(rtts_ms: &[u64], samples: u64, ended_in: Option<usize>, conservative: bool) {
        let mut slow_start = SlowStart::default();
        let mut ended = None;
        let mut step = Step { growth: 0, is_over: false };
        for (number, &rtt_ms) in rtts_ms.iter().enumerate() {
            step = round(&mut slow_start, number as u64, samples, rtt_ms);
            if step.is_over && ended.is_none() {
                ended = Some(number);
            }
        }
        assert_eq!((ended, step.growth < MSS), (ended_in, conservative), "{rtts_ms:?}");
    }

    #[test]
    fn rfc_9406_round_trips_that_grow_end_slow_start_after_five_more_rounds() {
        check(&[100, 100, 100, 100, 100, 100, 100, 100], 8, None, false);
        // A threshold of 100 ms / 8, found in round 1; five rounds later it is over.
        check(&[100, 113, 113, 113, 113, 113, 113], 8, Some(6), true);
        check(&[100, 112, 112, 112, 112, 112, 112], 8, None, false);
        // At least 4 ms, at most 16 ms.
        check(&[1, 4, 4, 4, 4, 4, 4], 8, None, false);
        check(&[1, 5, 5, 5, 5, 5, 5], 8, Some(6), true);
        check(&[400, 415, 415, 415, 415, 415, 415], 8, None, false);
        check(&[400, 416, 416, 416, 416, 416, 416], 8, Some(6), true);
    }

    #[test]
    fn rfc_9406_jitter_resumes_slow_start() {
        check(&[100, 120, 120, 101, 101, 101, 101, 101], 8, None, false);
    }

    #[test]
    fn rfc_9406_fewer_than_eight_samples_tell_nothing() {
        check(&[100, 200, 200, 200, 200, 200, 200], 7, None, false);
    }
}
