//! Receive coalescing as hardware does it: a table of flows, a timer in clocks, bounded memory.
//!
//! The rules are those of the software fallback, by the same code. What differs is when a flow is closed, and so the order of
//! frames of different flows: frames leave when their flow is closed, and frames of other flows may pass. A flow is also closed
//! when its time since the first segment is over, when open flows hold too many blocks of memory, by 255 segments, and by a
//! frame whose IP options or extension headers hide TCP: hardware does not look behind them, and may not let a flow be overtaken.
//! Without these the frames are the same ones that the software makes of a batch.
//!
//! Call [`Coalesce::push`] for each frame, then [`Coalesce::relieve`]; [`Coalesce::expire`] at any time; [`Coalesce::pop`] gives
//! what leaves.

use crate::gro::rules::{Progress, Segment, is_same_flow};
use crate::layers::{Version, ip_header, parse};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use linerate_wire::ip::Protocol;

/// Most segments of one frame: what its count can say.
const MAX_SEGMENTS: u8 = u8::MAX;

/// Bounds of a [`Coalesce`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoalesceConfig {
    /// Flows that can be open at the same time; the oldest makes room. Not 0.
    pub flows: usize,
    /// Largest IP packet that is made, in bytes; 65,535 at most.
    pub max_packet: usize,
    /// Bytes of a block of memory; a frame takes whole ones.
    pub block_bytes: usize,
    /// Blocks that open flows may hold.
    pub max_held: usize,
    /// Clocks from a flow's first segment to its closing.
    pub timeout: u64,
}

/// A frame on its way in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arrived<M> {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// IP and TCP checksums have been found good, and it has not been coalesced before.
    pub may_join: bool,
    /// Time of arrival as its device tells it.
    pub arrival: u32,
    /// What else is known of it.
    pub meta: M,
}

/// A frame on its way out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Departed<M> {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What it was made of, if it was made of several.
    pub coalesced: Option<Coalesced>,
    /// Arrival of its last segment.
    pub arrival: u32,
    /// What was known of its first segment.
    pub meta: M,
}

/// What a stack needs to know of a coalesced frame to acknowledge as if it had seen the segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Coalesced {
    /// Segments.
    pub segments: u8,
    /// Payload bytes of the first.
    pub segment_size: u16,
}

/// What became of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// It leaves alone.
    Passed,
    /// It is the first of a flow.
    Opened {
        /// The oldest flow made room in the table.
        evicted: bool,
    },
    /// It joined a flow.
    Joined,
}

/// An open flow.
#[derive(Clone, Debug)]
struct Flow<M> {
    frame: Departed<M>,
    progress: Progress,
    blocks: usize,
    opened: u64,
}

/// The table of flows, the oldest first.
#[derive(Clone, Debug)]
pub struct Coalesce<M> {
    config: CoalesceConfig,
    flows: Vec<Flow<M>>,
    leaving: VecDeque<Departed<M>>,
}

impl<M> Coalesce<M> {
    /// A table without flows.
    pub fn new(config: CoalesceConfig) -> Self {
        debug_assert!(config.flows > 0 && config.max_packet <= usize::from(u16::MAX), "bounds of the table");
        Coalesce { config, flows: Vec::with_capacity(config.flows), leaving: VecDeque::new() }
    }

    /// Decides about a frame at the time `now`, in clocks. The frame leaves at once or later, by [`Coalesce::pop`].
    pub fn push(&mut self, frame: Arrived<M>, now: u64) -> Decision {
        if hides_tcp(&frame.bytes) {
            while self.close_oldest() {}
        }
        let layers = parse(&frame.bytes, frame.bytes.len());
        let segment = layers.and_then(|layers| Segment::of(&frame.bytes, &layers, frame.may_join));
        let Some(segment) = segment else { return self.pass(frame) };
        let same = |flow: &Flow<M>| {
            is_same_flow(&flow.frame.bytes, &flow.progress.last.layers, &frame.bytes, &segment.layers)
        };
        if let Some(at) = self.flows.iter().position(same) {
            let blocks = self.blocks(&frame);
            let flow = &mut self.flows[at];
            if flow.takes(&frame, &segment, self.config.max_packet) {
                flow.blocks += blocks;
                if flow.join(&frame, &segment) {
                    self.close(at);
                }
                return Decision::Joined;
            }
            self.close(at);
        }
        if !segment.opens() {
            return self.pass(frame);
        }
        let evicted = self.flows.len() == self.config.flows && self.close_oldest();
        let blocks = self.blocks(&frame);
        let Arrived { bytes, arrival, meta, .. } = frame;
        let frame = Departed { bytes, coalesced: None, arrival, meta };
        self.flows.push(Flow { frame, progress: Progress::of(segment), blocks, opened: now });
        Decision::Opened { evicted }
    }

    /// Closes the oldest flow if open flows hold more memory than they may; whether one was closed. Until none is.
    pub fn relieve(&mut self) -> bool {
        self.is_crowded() && self.close_oldest()
    }

    /// Whether open flows hold more memory than they may.
    pub fn is_crowded(&self) -> bool {
        self.flows.iter().map(|flow| flow.blocks).sum::<usize>() > self.config.max_held
    }

    /// When the oldest flow's time is over.
    pub fn deadline(&self) -> Option<u64> {
        self.flows.first().map(|flow| flow.opened + self.config.timeout)
    }

    /// Closes the flows whose time is over.
    pub fn expire(&mut self, now: u64) {
        while self.deadline().is_some_and(|deadline| deadline <= now) {
            self.close_oldest();
        }
    }

    /// Closes the flow that was opened first; whether there was one.
    pub fn close_oldest(&mut self) -> bool {
        let any = !self.flows.is_empty();
        if any {
            self.close(0);
        }
        any
    }

    /// Flows that are open.
    pub fn open(&self) -> usize {
        self.flows.len()
    }

    /// The next frame that leaves.
    pub fn pop(&mut self) -> Option<Departed<M>> {
        self.leaving.pop_front()
    }

    fn blocks(&self, frame: &Arrived<M>) -> usize {
        frame.bytes.len().div_ceil(self.config.block_bytes)
    }

    fn pass(&mut self, frame: Arrived<M>) -> Decision {
        let Arrived { bytes, arrival, meta, .. } = frame;
        self.leaving.push_back(Departed { bytes, coalesced: None, arrival, meta });
        Decision::Passed
    }

    fn close(&mut self, at: usize) {
        let mut flow = self.flows.remove(at);
        if flow.frame.coalesced.is_some() {
            flow.progress.finish(&mut flow.frame.bytes);
        }
        self.leaving.push_back(flow.frame);
    }
}

impl<M> Flow<M> {
    fn takes(&self, frame: &Arrived<M>, segment: &Segment, limit: usize) -> bool {
        self.frame.coalesced.is_none_or(|of| of.segments < MAX_SEGMENTS)
            && self.progress.takes(&self.frame.bytes, &frame.bytes, segment, limit)
    }

    /// Appends the segment's payload; whether the flow is at its end.
    fn join(&mut self, frame: &Arrived<M>, segment: &Segment) -> bool {
        let size = self.progress.segment_size as u16;
        let coalesced = self.frame.coalesced.get_or_insert(Coalesced { segments: 1, segment_size: size });
        if coalesced.segments == 1 {
            // Padding would lie between the payloads.
            self.frame.bytes.truncate(self.progress.last.layers.end);
        }
        coalesced.segments += 1;
        self.frame.arrival = frame.arrival;
        let closes = self.progress.join(Some(&mut self.frame.bytes), &frame.bytes, segment);
        self.frame.bytes.extend_from_slice(&frame.bytes[segment.payload..segment.layers.end]);
        closes
    }
}

/// Whether TCP may lie behind IPv4 options or IPv6 extension headers.
fn hides_tcp(frame: &[u8]) -> bool {
    let Some((version, ip)) = ip_header(frame) else { return false };
    let byte = |at: usize| frame.get(ip + at).copied().unwrap_or_default();
    match version {
        Version::V4 => {
            frame.len() >= ip + 20
                && byte(0) >> 4 == 4
                && byte(0) & 0x0f > 5
                && Protocol(byte(9)) == Protocol::TCP
        }
        Version::V6 => {
            const HEADERS: [Protocol; 5] = [
                Protocol::HOP_BY_HOP,
                Protocol::ROUTING,
                Protocol::FRAGMENT,
                Protocol::AUTHENTICATION,
                Protocol::DESTINATION_OPTIONS,
            ];
            frame.len() >= ip + 40 && byte(0) >> 4 == 6 && HEADERS.contains(&Protocol(byte(6)))
        }
    }
}

#[cfg(test)]
mod tests;
