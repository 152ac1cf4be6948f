//! What a time-sequence picture is drawn from: few enough points for a connection of any length.

use super::wire::Kind;

/// Most points of a kind; when there are more, every second one is left out from then on. More than twice as many a picture is
/// wide would not be told apart.
const MAX_POINTS: usize = 1_200;
/// Points of a kind that are kept of the beginning, each.
const FIRST: usize = 200;

/// A stretch of sequence numbers at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stretch {
    /// When, in nanoseconds.
    pub at_ns: u64,
    /// Its first byte.
    pub start: u64,
    /// One beyond its last.
    pub end: u64,
}

/// Points of one kind, thinned out evenly.
#[derive(Clone, Default, Debug)]
pub struct Thinned {
    /// The points.
    pub points: Vec<Stretch>,
    /// The first ones, all of them.
    pub first: Vec<Stretch>,
    every: u64,
    count: u64,
}

impl Thinned {
    fn push(&mut self, point: Stretch) {
        if self.first.len() < FIRST {
            self.first.push(point);
        }
        let every = self.every.max(1);
        if self.count.is_multiple_of(every) {
            self.points.push(point);
        }
        self.count += 1;
        if self.points.len() > MAX_POINTS {
            let mut keep = false;
            self.points.retain(|_| {
                keep = !keep;
                keep
            });
            self.every = every * 2;
        }
    }

    /// Points that there were, those left out included.
    pub fn count(&self) -> u64 {
        self.count
    }
}

/// The points of one direction.
#[derive(Clone, Default, Debug)]
pub struct Sketch {
    /// Data sent for the first time.
    pub sent: Thinned,
    /// Data sent again.
    pub again: Thinned,
    /// Data that was overtaken.
    pub late: Thinned,
    /// Acknowledgements: the front, and the window's edge.
    pub acks: Thinned,
    /// Data that the receiver told to hold out of order.
    pub held: Thinned,
}

impl Sketch {
    /// Data passed.
    pub fn sent(&mut self, at_ns: u64, start: u64, end: u64, kind: Kind) {
        let to = match kind {
            kind if kind.is_again() => &mut self.again,
            Kind::Late | Kind::Original => &mut self.late,
            _ => &mut self.sent,
        };
        to.push(Stretch { at_ns, start, end });
    }

    /// An acknowledgement passed.
    pub fn answered(&mut self, at_ns: u64, front: u64, edge: u64) {
        self.acks.push(Stretch { at_ns, start: front, end: edge });
    }

    /// The receiver told of data out of order.
    pub fn held(&mut self, at_ns: u64, start: u64, end: u64) {
        self.held.push(Stretch { at_ns, start, end });
    }
}
