//! Frames as interfaces saw them, written as pcapng with times in nanoseconds.
//!
//! Times are those at which the last bit left or reached the interface. Frames lack padding and check sequence.

use crate::parcel::Parcel;
use linerate_nic::MacAddr;
use linerate_wire::pcapng::{self, Packet};
use linerate_wire::units::Instant;

pub use linerate_wire::pcapng::Seen;

/// Most bytes of frames that are kept; what comes later is counted alone.
const MAX_BYTES: usize = 1 << 30;

/// A frame that was kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Captured<'a> {
    /// When its last bit passed the interface.
    pub at: Instant,
    /// In which direction.
    pub seen: Seen,
    /// Its bytes, without padding and check sequence.
    pub frame: &'a [u8],
}

#[derive(Debug)]
struct Record {
    at: Instant,
    node: usize,
    seen: Seen,
    frame: Vec<u8>,
}

/// What is kept for a capture, and a hash over everything that passed.
#[derive(Debug, Default)]
pub(crate) struct Capture {
    records: Vec<Record>,
    /// Nodes whose frames are kept.
    nodes: Vec<bool>,
    bytes: usize,
    dropped: u64,
    hash: u64,
}

impl Capture {
    /// Keeps the frames of this node from now on.
    pub(crate) fn keep(&mut self, node: usize) {
        if self.nodes.len() <= node {
            self.nodes.resize(node + 1, false);
        }
        self.nodes[node] = true;
    }

    /// Whether the frames of this node are kept.
    pub(crate) fn keeps(&self, node: usize) -> bool {
        self.nodes.get(node).is_some_and(|keeps| *keeps)
    }

    /// A hash over times, places and lengths of everything that passed an interface.
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// Some segments pass a node's interface; `time_of` tells when each does.
    pub(crate) fn see(
        &mut self,
        node: usize,
        seen: Seen,
        parcel: &Parcel,
        time_of: impl Fn(&Parcel) -> Instant,
    ) {
        let word = time_of(parcel).as_nanos() ^ (parcel.len() as u64).rotate_left(40) ^ (node as u64) << 60;
        self.hash = (self.hash.rotate_left(5) ^ word ^ seen as u64).wrapping_mul(0x517c_c1b7_2722_0a95);
        if !self.keeps(node) {
            return;
        }
        let mut rest = parcel.clone();
        // As many turns as segments.
        while rest.count() > 1 {
            let segment = rest.split_front(1);
            self.record(node, seen, &segment, time_of(&segment));
        }
        self.record(node, seen, &rest, time_of(&rest));
    }

    fn record(&mut self, node: usize, seen: Seen, segment: &Parcel, at: Instant) {
        let frame = segment.bytes();
        if self.bytes + frame.len() > MAX_BYTES {
            self.dropped += 1;
            return;
        }
        self.bytes += frame.len();
        self.records.push(Record { at, node, seen, frame });
    }

    /// The frames of a node, in the order of their times.
    pub(crate) fn frames(&self, node: usize) -> Vec<Captured<'_>> {
        let own = self.records.iter().filter(|record| record.node == node);
        let mut frames: Vec<_> =
            own.map(|record| Captured { at: record.at, seen: record.seen, frame: &record.frame }).collect();
        frames.sort_by_key(|frame| frame.at);
        frames
    }

    /// The file: one section, one interface per node that is captured, frames in the order of their times.
    pub(crate) fn pcapng(&self, seed: u64, nodes: &[(String, MacAddr)]) -> Vec<u8> {
        let mut file = Vec::with_capacity(self.bytes + 64 * self.records.len() + 1_024);
        let mut comment = format!("linerate-sim, seed {seed}");
        if self.dropped > 0 {
            comment.push_str(&format!("; {} later frames are not kept", self.dropped));
        }
        pcapng::section(&comment, &mut |bytes| file.extend_from_slice(bytes));
        let mut interfaces = vec![None; nodes.len()];
        let mut count = 0u32;
        for (index, (name, mac)) in nodes.iter().enumerate() {
            if self.nodes.get(index).is_some_and(|keeps| *keeps) {
                pcapng::interface(name, mac.0, 0, &mut |bytes| file.extend_from_slice(bytes));
                interfaces[index] = Some(count);
                count += 1;
            }
        }
        let mut order: Vec<&Record> = self.records.iter().collect();
        order.sort_by_key(|record| record.at);
        for record in order {
            if let Some(number) = interfaces.get(record.node).copied().flatten() {
                packet(&mut file, number, record);
            }
        }
        file
    }
}

fn packet(file: &mut Vec<u8>, interface: u32, record: &Record) {
    let len = record.frame.len() as u32;
    let packet = Packet { interface, at: record.at, seen: record.seen, len, kept: len };
    file.extend_from_slice(&packet.head());
    file.extend_from_slice(&record.frame);
    let (tail, len) = packet.tail();
    file.extend_from_slice(&tail[..len]);
}
