//! One direction of a connection as one interface saw it: everything that is counted of it.

use super::dispersion::Dispersion;
use super::histogram::Histogram;
use super::segment::Segment;
use super::sender::{Departure, Sender};
use super::sketch::Sketch;
use super::wire::{Answer, Kind, Known, Wire};
use linerate_wire::tcp::Flags;

/// What is counted of one direction.
#[derive(Clone, Debug)]
pub struct Half {
    /// Segments and acknowledgements.
    pub wire: Wire,
    /// What the sender waited for.
    pub sender: Sender,
    /// Trains of data.
    pub data: Dispersion,
    /// Trains of acknowledgements.
    pub acks: Dispersion,
    /// Round-trip times as a whole, in nanoseconds.
    pub rtt: Histogram,
    /// From a gap to what fills it, in nanoseconds: a round trip and the time it took to call it a loss.
    pub refill: Histogram,
    /// Segments of data by their payload, each weighed by its bytes.
    pub sizes: Histogram,
    /// First and last segment with data, in nanoseconds.
    pub span_ns: Option<(u64, u64)>,
    /// Where the first data begins and the last ends, and when the former passed, in nanoseconds.
    begun: Option<(u64, u64, u64)>,
    /// How much of it is acknowledged, and since when.
    acked: Option<(u64, u64)>,
    /// The same without a last acknowledgement that the receiver delayed.
    settled: Option<(u64, u64)>,
    /// Segments with data that ended what the application had written.
    pub pushed: u64,
    /// What a picture is drawn from.
    pub sketch: Sketch,
}

impl Half {
    /// One that begins at this time.
    pub fn new(at_ns: u64) -> Half {
        Half {
            wire: Wire::default(),
            sender: Sender::new(at_ns),
            data: Dispersion::default(),
            acks: Dispersion::default(),
            rtt: Histogram::default(),
            refill: Histogram::default(),
            sizes: Histogram::default(),
            span_ns: None,
            begun: None,
            acked: None,
            settled: None,
            pushed: 0,
            sketch: Sketch::default(),
        }
    }

    /// A segment of this direction that takes sequence numbers.
    pub fn sent(&mut self, segment: &Segment, known: &Known) {
        let at_ns = segment.at_ns;
        if let Some(since_ns) = self.wire.gap_since(segment) {
            self.refill.record(at_ns.saturating_sub(since_ns));
        }
        let kind = self.wire.sent(segment, known);
        if segment.has(Flags::SYN) || segment.len == 0 || matches!(kind, Kind::Probe | Kind::Duplicate) {
            return;
        }
        let len = u64::from(segment.len);
        let mss = known.mss.max(1);
        self.span_ns = Some((self.span_ns.map_or(at_ns, |span| span.0), at_ns));
        self.pushed += u64::from(segment.has(Flags::PSH));
        self.sizes.weigh(len.min(mss), len as f64);
        if !kind.is_again() && kind != Kind::Original {
            self.data.take(at_ns, len, mss);
        }
        let end = self.wire.position(segment.seq.wrapping_add(segment.len));
        let (start, last, since_ns) = self.begun.unwrap_or((end - len, end, at_ns));
        self.begun = Some((start, last.max(end), since_ns));
        self.sketch.sent(at_ns, end - len, end, kind);
        if kind == Kind::Original {
            // It left long ago, and tells nothing of what the sender does now.
            return;
        }
        let departure = Departure { at_ns, kind, end, len, pushed: segment.has(Flags::PSH) };
        self.sender.turn = known.turn;
        self.sender.sent(&departure, mss, known.turn_ns.saturating_add(known.far_ns));
    }

    /// An acknowledgement of this direction, in a segment of the other.
    pub fn answered(&mut self, segment: &Segment, known: &Known) -> Answer {
        let at_ns = segment.at_ns;
        let answer = self.wire.answered(segment, known);
        if answer.progress > 0 {
            self.acks.take(at_ns, answer.progress, known.mss.max(1));
        }
        self.acknowledged(at_ns, answer.front, known);
        self.sender.answered(at_ns, known.turn_ns, answer);
        self.sketch.answered(at_ns, answer.front, answer.edge);
        for block in segment.options.sack_blocks.as_slice() {
            self.sketch.held(at_ns, self.wire.position(block.left.0), self.wire.position(block.right.0));
        }
        answer
    }

    /// All before `front` was acknowledged. A FIN, which may come much later, is no data. Less than two segments may have waited for
    /// a delayed acknowledgement (RFC 9293 section 3.8.6.3): where that was the last one, it tells nothing of the path.
    fn acknowledged(&mut self, at_ns: u64, front: u64, known: &Known) {
        let Some((start, end, since_ns)) = self.begun else { return };
        let (before, before_ns) = self.acked.unwrap_or((start, since_ns));
        let front = front.min(end);
        if front <= before {
            return;
        }
        let is_delayed = front - before < 2 * known.mss && at_ns.saturating_sub(before_ns) > known.far_ns;
        self.settled = self.acked.filter(|_| is_delayed).or(Some((front, at_ns)));
        self.acked = Some((front, at_ns));
    }

    /// Bytes that got to the other end, and the first and the last moment of that. Near the sender, what was sent may still be on its way:
    /// there, what is acknowledged counts, from the first byte sent to the last acknowledged.
    pub fn delivered(&self, near_sender: bool) -> (u64, Option<(u64, u64)>) {
        match (self.begun, self.settled) {
            (Some((start, _, from_ns)), Some((front, to_ns))) if near_sender => {
                (front - start, Some((from_ns, to_ns)))
            }
            _ => (self.wire.counts.bytes, self.span_ns),
        }
    }

    /// A round-trip time as a whole is known.
    pub fn round_trip(&mut self, at_ns: u64, rtt_ns: u64) {
        self.rtt.record(rtt_ns);
        self.sender.timeline.rtt(at_ns, rtt_ns);
    }
}
