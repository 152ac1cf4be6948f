//! How a connection failed: its SYN was refused or never answered, or an end reset it.

use super::segment::Segment;
use linerate_wire::tcp::Flags;

/// What tells of a failure, as one interface saw it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Ending {
    /// SYNs of each end, and when the first and the last passed, in nanoseconds.
    syns: [(u64, u64, u64); 2],
    /// Whether each end sent anything but SYN and RST.
    went_on: [bool; 2],
    /// Whether each end said that it has no more.
    finished: [bool; 2],
    /// Who reset it first, and when.
    reset: Option<(usize, u64)>,
}

/// What failed; ends by their side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// A SYN was answered by RST.
    Refused {
        /// Who refused.
        by: usize,
        /// How long after the last SYN, in nanoseconds.
        after_ns: u64,
    },
    /// SYNs were not answered.
    NotAnswered {
        /// Who did not answer.
        by: usize,
        /// How many there were.
        syns: u64,
        /// From the first to the last, in nanoseconds.
        time_ns: u64,
        /// From the last to the end of the capture, in nanoseconds.
        watched_ns: u64,
    },
    /// It was open, or about to be, and an end reset it.
    Reset {
        /// Who did.
        by: usize,
        /// When, in nanoseconds.
        at_ns: u64,
    },
}

impl Ending {
    /// Whether an end sent anything else but SYN and RST.
    pub fn has_gone_on(&self, side: usize) -> bool {
        self.went_on[side]
    }

    /// The next segment, from end `side`.
    pub fn take(&mut self, side: usize, segment: &Segment) {
        let at_ns = segment.at_ns;
        if segment.has(Flags::RST) {
            // After both have finished it ends nothing.
            if self.reset.is_none() && self.finished != [true; 2] {
                self.reset = Some((side, at_ns));
            }
        } else if segment.has(Flags::SYN) {
            let (count, first_ns, _) = self.syns[side];
            self.syns[side] = (count + 1, if count == 0 { at_ns } else { first_ns }, at_ns);
            // What it reset was not this connection, which it opens now.
            self.reset = self.reset.filter(|(by, _)| *by != side);
        } else {
            self.went_on[side] = true;
            self.finished[side] |= segment.has(Flags::FIN);
        }
    }

    /// What failed, if anything did until the capture ended.
    pub fn failure(&self, end_ns: u64) -> Option<Failure> {
        let opens = self.went_on == [false; 2];
        let asks = |side: usize| self.syns[side].0 > 0 && self.syns[1 - side].0 == 0;
        let asking = [0, 1].into_iter().find(|side| opens && asks(*side));
        match (self.reset, asking) {
            (Some((by, at_ns)), Some(asking)) if by != asking => {
                Some(Failure::Refused { by, after_ns: at_ns.saturating_sub(self.syns[asking].2) })
            }
            // Who gives up may reset what was never there.
            (_, Some(asking)) => Some(self.not_answered(asking, end_ns)),
            (Some((by, at_ns)), None) => Some(Failure::Reset { by, at_ns }),
            // The answer was not answered.
            (None, None) if opens && self.syns[1].0 > 0 => Some(self.not_answered(1, end_ns)),
            (None, None) => None,
        }
    }

    fn not_answered(&self, asking: usize, end_ns: u64) -> Failure {
        let (syns, first_ns, last_ns) = self.syns[asking];
        Failure::NotAnswered {
            by: 1 - asking,
            syns,
            time_ns: last_ns.saturating_sub(first_ns),
            watched_ns: end_ns.saturating_sub(last_ns),
        }
    }
}
