//! When to acknowledge (RFC 9293 section 3.8.6.3, RFC 5681 section 4.2).
//!
//! The first segments of a connection are acknowledged one by one: the sender is in slow start, and each acknowledgement lets
//! its window grow. An answer with data ends that: the peers talk in turns, and the answer acknowledges.
//!
//! Received segments only note what is due; one acknowledgement goes out when the connection is polled next. So a batch,
//! or a coalesced super-frame, is answered once, at once where it held as much as the setting allows to leave open.

use linerate_transport::DelayedAck;

/// Segment size assumed before one was seen (RFC 9293 section 3.7.1).
const DEFAULT_SEGMENT: usize = 536;

/// Most duplicates that are owed at once: enough for any duplicate threshold, and a bound.
const MAX_DUPLICATES: u8 = 16;

/// What is due.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) enum AckDue {
    /// Nothing.
    #[default]
    Nothing,
    /// An acknowledgement, when the timer runs out or data goes out anyway.
    Later,
    /// An acknowledgement now.
    Now,
}

/// The acknowledgements that are due.
#[derive(Clone, Debug)]
pub(super) struct AckPolicy {
    due: AckDue,
    /// Bytes received in order and not acknowledged.
    open: usize,
    /// Size of the peer's full segments, as far as seen.
    segment: usize,
    /// Acknowledgements without payload to send one by one, for a peer that counts duplicates.
    duplicates: u8,
    /// Acknowledgements more that are not delayed.
    quick: u8,
}

/// What outlasts a pause in which nothing is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Habits {
    segment: u16,
    quick: u8,
}

impl AckPolicy {
    /// What is known of the peer while nothing is due.
    pub fn habits(&self) -> Option<Habits> {
        let is_quiet = self.due == AckDue::Nothing && self.open == 0 && self.duplicates == 0;
        let segment = u16::try_from(self.segment).ok()?;
        is_quiet.then_some(Habits { segment, quick: self.quick })
    }

    /// The same again.
    pub fn with(habits: Habits) -> AckPolicy {
        AckPolicy { segment: usize::from(habits.segment), ..AckPolicy::new(habits.quick) }
    }

    /// Nothing is due; the first `quick` acknowledgements will not be delayed.
    pub fn new(quick: u8) -> Self {
        AckPolicy { due: AckDue::Nothing, open: 0, segment: DEFAULT_SEGMENT, duplicates: 0, quick }
    }

    /// `bytes` arrived in order, in segments of `segment` bytes.
    pub fn on_data(&mut self, bytes: usize, segment: usize, options: &DelayedAck) {
        if segment >= self.segment {
            self.segment = segment;
        } else {
            // The path may have begun to carry less: follow slowly, so that short last segments do not matter.
            self.segment -= (self.segment - segment) / 16;
        }
        self.open = self.open.saturating_add(bytes);
        // Of 16 bits, and 8.
        let allowed = self.segment * usize::from(options.segments.max(1));
        let is_quick = self.quick > 0;
        self.quick = self.quick.saturating_sub(1);
        let at_once = is_quick || options.segments <= 1 || self.open >= allowed || options.timeout.is_zero();
        self.due = self.due.max(if at_once { AckDue::Now } else { AckDue::Later });
    }

    /// The peer may send `room` bytes more before it hears of us. Where that is less than a segment, the one that would make an
    /// acknowledgement due is not waited for: the peer waits too, for the window, until one of the two timers runs out.
    ///
    /// Who asks for fewer acknowledgements than the standard's every second gets what it asks for: it stands for such a peer.
    pub fn on_room(&mut self, room: u64, options: &DelayedAck) {
        if self.due == AckDue::Later && room < self.segment as u64 && options.segments <= 2 {
            self.due = AckDue::Now;
        }
    }

    /// Size of the peer's full segments, as far as seen.
    pub fn segment(&self) -> usize {
        self.segment
    }

    /// Whether a segment of this size is one of the peer's full ones, as far as seen.
    pub fn is_full(&self, segment: usize) -> bool {
        segment >= self.segment
    }

    /// An acknowledgement is due at once.
    pub fn now(&mut self) {
        self.due = AckDue::Now;
    }

    /// `segments` arrived out of order: each needs a duplicate acknowledgement at once (RFC 5681 section 4.2). With
    /// SACK one acknowledgement tells it all; without, the peer counts them.
    pub fn on_gap(&mut self, segments: usize, sack: bool) {
        self.due = AckDue::Now;
        if !sack {
            let segments = u8::try_from(segments).unwrap_or(MAX_DUPLICATES);
            self.duplicates = self.duplicates.saturating_add(segments).min(MAX_DUPLICATES);
        }
    }

    /// What is due.
    pub fn due(&self) -> AckDue {
        self.due
    }

    /// Whether duplicates are to be sent one by one, before any data.
    pub fn owes_duplicates(&self) -> bool {
        self.duplicates > 0
    }

    /// Data goes out: what it answers is acknowledged by it, now and from now on.
    pub fn on_answer(&mut self) {
        if self.due != AckDue::Nothing {
            self.quick = 0;
        }
    }

    /// An acknowledgement was sent.
    pub fn on_sent(&mut self) {
        self.open = 0;
        self.duplicates = self.duplicates.saturating_sub(1);
        self.due = if self.duplicates > 0 { AckDue::Now } else { AckDue::Nothing };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    fn check(segments: u8, arrivals: &[(usize, usize)], expected: &[AckDue]) {
        let options = DelayedAck { segments, timeout: Duration::from_millis(40) };
        let mut policy = AckPolicy::new(0);
        let seen: alloc::vec::Vec<_> = arrivals
            .iter()
            .map(|&(bytes, segment)| {
                policy.on_data(bytes, segment, &options);
                let due = policy.due();
                if due == AckDue::Now {
                    policy.on_sent();
                }
                due
            })
            .collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn counts_full_segments() {
        use AckDue::{Later, Now};
        let full = (1_448, 1_448);
        check(2, &[full; 4], &[Later, Now, Later, Now]);
        check(1, &[full; 2], &[Now, Now]);
        check(4, &[full; 5], &[Later, Later, Later, Now, Later]);
        check(2, &[full, (10, 10), (10, 10)], &[Later, Later, Later]);
        check(2, &[(64_000, 1_448), full], &[Now, Later]);
        check(0, &[full], &[Now]);
    }

    #[test]
    fn the_first_segments_are_not_waited_for_unless_data_answers_them() {
        let options = DelayedAck { segments: 2, timeout: Duration::from_millis(40) };
        let mut policy = AckPolicy::new(3);
        let take = |policy: &mut AckPolicy| {
            policy.on_data(100, 1_448, &options);
            let due = policy.due();
            policy.on_sent();
            due
        };
        let seen: alloc::vec::Vec<_> = (0..4).map(|_| take(&mut policy)).collect();
        assert_eq!(seen, [AckDue::Now, AckDue::Now, AckDue::Now, AckDue::Later]);
        let mut policy = AckPolicy::new(3);
        policy.on_answer();
        assert_eq!(take(&mut policy), AckDue::Now, "data that answers nothing changes nothing");
        policy.on_data(100, 1_448, &options);
        policy.on_answer();
        policy.on_sent();
        assert_eq!(take(&mut policy), AckDue::Later);
    }

    #[test]
    fn duplicates_are_counted_only_for_peers_without_sack() {
        let mut policy = AckPolicy::new(0);
        policy.on_gap(3, false);
        for left in [true, true, false] {
            policy.on_sent();
            assert_eq!(policy.owes_duplicates(), left);
        }
        assert_eq!(policy.due(), AckDue::Nothing);
        policy.on_gap(3, true);
        assert!(!policy.owes_duplicates());
        assert_eq!(policy.due(), AckDue::Now);
        policy.on_gap(100_000, false);
        assert_eq!(policy.duplicates, MAX_DUPLICATES);
    }
}
