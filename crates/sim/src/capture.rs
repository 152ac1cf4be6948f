//! Frames as interfaces saw them, written as pcapng with times in nanoseconds.
//!
//! Times are those at which the last bit left or reached the interface. Frames lack padding and check sequence.

use crate::parcel::Parcel;
use crate::world::{NodeId, World};
use linerate_nic::MacAddr;
use linerate_wire::pcapng::{self, Packet};
use linerate_wire::units::Instant;
use std::io::{self, Write};

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

/// Where a capture ends before its world does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    /// When the first frame passed that is not in it.
    pub at: Instant,
    /// Frames that are.
    pub kept: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frames that are not.
    pub missing: u64,
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
    /// Bytes that are kept, where that is less than the most.
    limit: Option<usize>,
    dropped: u64,
    /// When the first frame passed that is not kept any more.
    cut_at: Option<Instant>,
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
        // Nothing after the first that does not fit: a capture ends, and has no holes.
        if self.cut_at.is_some() || self.bytes + frame.len() > self.room() {
            self.cut_at = self.cut_at.or(Some(at));
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

    /// Bytes of frames that are kept.
    fn room(&self) -> usize {
        self.limit.unwrap_or(MAX_BYTES)
    }

    /// Keeps fewer bytes than it might.
    pub(crate) fn limit(&mut self, bytes: usize) {
        self.limit = Some(bytes.min(MAX_BYTES));
    }

    /// What is missing at the end, if anything is.
    pub(crate) fn cut(&self) -> Option<Cut> {
        let at = self.cut_at?;
        Some(Cut { at, kept: self.records.len() as u64, bytes: self.bytes as u64, missing: self.dropped })
    }

    /// Writes the file: one section, one interface per node that is captured, frames in the order of their times.
    pub(crate) fn write(
        &self,
        seed: u64,
        nodes: &[(String, MacAddr)],
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let mut file = Vec::new();
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
                // Not all at once: the frames are there already, and may be many.
                out.write_all(&file)?;
                file.clear();
            }
        }
        out.write_all(&file)
    }
}

impl World {
    /// Keeps the frames that pass a node's interface from now on, for [`World::pcapng`]. They take memory: 1 GiB at most.
    pub fn capture(&mut self, node: impl Into<NodeId>) {
        self.capture.keep(node.into().0);
    }

    /// Keeps the frames of all nodes that there are.
    pub fn capture_all(&mut self) {
        (0..self.nodes.len()).for_each(|index| self.capture.keep(index));
    }

    /// What was kept, as a pcapng file: times in nanoseconds, an interface per node, the seed in its comment.
    pub fn pcapng(&self) -> Vec<u8> {
        let mut file = Vec::new();
        // A vector takes everything.
        let _ = self.write_pcapng(&mut file);
        file
    }

    /// Where the capture ends, if that is before the present: [`World::capture`] says how much is kept.
    pub fn capture_cut(&self) -> Option<Cut> {
        self.capture.cut()
    }

    /// Keeps so many bytes of frames instead of 1 GiB.
    pub fn limit_capture(&mut self, bytes: usize) {
        self.capture.limit(bytes);
    }

    /// Writes the same file.
    ///
    /// # Errors
    ///
    /// What `out` says.
    pub fn write_pcapng(&self, out: &mut dyn Write) -> io::Result<()> {
        let nodes: Vec<_> = self.nodes.iter().map(|node| (node.name.clone(), node.mac)).collect();
        self.capture.write(self.seed, &nodes, out)
    }

    /// The frames that were kept of a node, in the order of their times.
    pub fn captured(&self, node: impl Into<NodeId>) -> Vec<Captured<'_>> {
        self.capture.frames(node.into().0)
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
