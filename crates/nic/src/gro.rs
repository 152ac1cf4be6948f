//! Coalescing of received TCP segments in software (GRO): in-order segments of a flow become one frame.
//!
//! Segments join when they have the same addresses, ports and Ethernet header, the expected sequence number, the same
//! traffic class, ECN mark and TTL, no IP options and no extension headers, DF over IPv4, verified checksums, the ACK flag
//! and none but PSH and ECE beside it, the same ECE, no options or timestamps alone (aligned as RFC 7323 appendix A shows),
//! timestamps and acknowledgement not going back, and payload. A flow is closed by PSH, by a segment shorter than the
//! first, by anything of the same flow that does not join, by 65,535 bytes of IP packet, by a full list of pieces, or by
//! the end of the batch, which stands for the timer of hardware.
//!
//! The first segment's frame stays where it was in the batch. Payload is not copied: it follows in [`Frame::more`].
//! Headers become those of one large segment: IP length and header checksum, and acknowledgement, window, PSH and
//! timestamps of the last one. The TCP checksum is not computed again; the frame is marked as verified.

use crate::frame::{Frame, Plain, RxBatch};
use crate::layers::Layers;
use crate::meta::ChecksumStatus;
use crate::pieces::{PieceShelf, Pieces};
use alloc::vec::Vec;
use rules::{Progress, Segment, is_same_flow};

pub(crate) mod rules;

/// Largest IP packet that coalescing makes, in bytes.
const MAX_IP_PACKET: usize = 65_535;

/// Bounds of the coalescing table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroConfig {
    /// Flows that can be open at the same time in one batch; the one opened first makes room for the next.
    pub flows: usize,
    /// Coalesced frames that can exist at the same time, those that the stack still holds included.
    pub frames: usize,
    /// Most segments that join the first one of a frame. 45 make 64 KiB at an MTU of 1500.
    pub segments: usize,
}

impl Default for GroConfig {
    /// 8 flows, 64 frames of up to 64 more segments: 64 KiB of memory on a 64-bit machine.
    fn default() -> Self {
        GroConfig { flows: 8, frames: 64, segments: 64 }
    }
}

/// A frame of the batch that more segments can join.
#[derive(Debug)]
struct Flow {
    index: usize,
    progress: Progress,
    joined: bool,
}

/// The flows of one batch.
#[derive(Debug)]
pub(crate) struct Gro {
    flows: Vec<Flow>,
    limit: usize,
    shelf: PieceShelf,
    /// Segments that have joined another.
    pub coalesced: u64,
}

impl Gro {
    pub fn new(config: GroConfig) -> Self {
        Gro {
            flows: Vec::with_capacity(config.flows),
            limit: config.flows,
            shelf: PieceShelf::new(config.frames, config.segments),
            coalesced: 0,
        }
    }

    /// Goes through the frames of `batch` from index `from` on, and joins those that others can take. Frames that stay keep their
    /// order, and their place if none before them was joined.
    ///
    /// `look` tells where the layers of a frame are, or that it is to stay as it is, without ending a flow; it is told whether any
    /// flow is open. Nothing may be taken from the batch before [`Gro::finish`].
    pub fn join(
        &mut self,
        batch: &mut RxBatch,
        from: usize,
        mut look: impl FnMut(&mut Frame, bool) -> Option<Layers>,
    ) {
        let mut kept = from;
        for at in from..batch.len() {
            let Some(frame) = batch.at_mut(at) else { break };
            if let Some(layers) = look(frame, !self.flows.is_empty())
                && self.is_taken(batch, at, kept, &layers)
            {
                continue;
            }
            if at != kept {
                batch.swap(at, kept);
            }
            kept += 1;
        }
        batch.truncate(kept);
    }

    /// Whether the frame at index `at` has joined another. If not, it will be at index `kept`.
    fn is_taken(&mut self, batch: &mut RxBatch, at: usize, kept: usize, layers: &Layers) -> bool {
        let Some(frame) = batch.at(at) else { return false };
        let may_join = frame.meta.checksum == ChecksumStatus::Good
            && frame.meta.segment_size == 0
            && frame.more.is_empty();
        let Some(segment) = Segment::of(frame.data.bytes(), layers, may_join) else { return false };
        if let Some(open) = self.flows.iter().position(|flow| flow.is_same_flow(batch, at, &segment)) {
            let flow = &mut self.flows[open];
            let closes = if flow.takes(batch, at, &segment) {
                flow.join(&self.shelf, batch, at, &segment)
            } else {
                None
            };
            self.coalesced += u64::from(closes.is_some());
            if closes != Some(false) {
                self.flows.remove(open).close(batch);
            }
            if closes.is_some() {
                return true;
            }
        }
        let is_ours = |frame: &mut Frame| frame.data.bytes_mut().is_some();
        if segment.opens() && self.limit > 0 && batch.at_mut(at).is_some_and(is_ours) {
            if self.flows.len() == self.limit {
                self.flows.remove(0).close(batch);
            }
            self.flows.push(Flow { index: kept, progress: Progress::of(segment), joined: false });
        }
        false
    }

    /// Closes all flows: the batch may be taken.
    pub fn finish(&mut self, batch: &mut RxBatch) {
        for flow in self.flows.drain(..) {
            flow.close(batch);
        }
    }
}

impl Flow {
    fn is_same_flow(&self, batch: &RxBatch, at: usize, segment: &Segment) -> bool {
        let (Some(first), Some(frame)) = (batch.at(self.index), batch.at(at)) else { return false };
        is_same_flow(first.data.bytes(), &self.progress.last.layers, frame.data.bytes(), &segment.layers)
    }

    /// Whether the rules let `segment`, of the frame at index `at`, join.
    fn takes(&self, batch: &RxBatch, at: usize, segment: &Segment) -> bool {
        let (Some(first), Some(frame)) = (batch.at(self.index), batch.at(at)) else { return false };
        self.progress.takes(first.data.bytes(), frame.data.bytes(), segment, MAX_IP_PACKET)
    }

    /// Appends the payload of the frame at index `at`; `Some(true)` when the flow is at its end. `None`, and nothing happens, when the
    /// frame is shared or there is no list for its payload.
    fn join(
        &mut self,
        shelf: &PieceShelf,
        batch: &mut RxBatch,
        at: usize,
        segment: &Segment,
    ) -> Option<bool> {
        batch.at_mut(at)?.data.bytes_mut()?;
        let first = batch.at_mut(self.index)?;
        if !self.joined {
            first.more = shelf.take().filter(Pieces::has_room)?;
            // Padding would lie between the pieces.
            first.data.truncate(self.progress.last.layers.end);
            first.meta.segment_size = self.progress.segment_size as u16;
            first.meta.raw_sum = None;
            self.joined = true;
        }
        if !first.more.has_room() {
            return None;
        }
        let mut data = core::mem::take(&mut batch.at_mut(at)?.data);
        let first = batch.at_mut(self.index)?;
        let closes = self.progress.join(first.data.bytes_mut(), data.bytes(), segment);
        data.truncate(segment.layers.end);
        data.trim_front(segment.payload);
        first.more.push(data);
        Some(closes)
    }

    /// Makes the headers those of one packet.
    fn close(self, batch: &mut RxBatch) {
        let Some(frame) = batch.at_mut(self.index).filter(|_| self.joined) else { return };
        if let Plain::Known(plain) = &mut frame.plain {
            plain.end = (self.progress.last.layers.ip + self.progress.ip_len) as u32;
        }
        if let Some(header) = frame.data.bytes_mut() {
            self.progress.finish(header);
        }
    }
}

#[cfg(test)]
mod tests;
