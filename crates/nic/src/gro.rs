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
use crate::pieces::PieceShelf;
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

    /// Adds `frame` to `batch`, or to a frame in it; returns whether it took a place of its own. The batch must have
    /// room, and nothing may be taken from it before [`Gro::finish`].
    pub fn push(&mut self, frame: Frame, layers: Option<&Layers>, batch: &mut RxBatch) -> bool {
        let segment = layers.and_then(|layers| {
            let may_join = frame.meta.checksum == ChecksumStatus::Good
                && frame.meta.segment_size == 0
                && frame.more.is_empty();
            Segment::of(frame.data.bytes(), layers, may_join)
        });
        let Some(segment) = segment else {
            let pushed = batch.push(frame);
            debug_assert!(pushed.is_ok(), "no room in the batch");
            return true;
        };
        let mut frame = frame;
        if let Some(at) = self.flows.iter().position(|flow| flow.is_same_flow(batch, &frame, &segment)) {
            let flow = &mut self.flows[at];
            if flow.takes(batch, &frame, &segment) {
                frame = match flow.join(&self.shelf, batch, frame, &segment) {
                    Ok(closes) => {
                        self.coalesced += 1;
                        if closes {
                            self.flows.remove(at).close(batch);
                        }
                        return false;
                    }
                    Err(frame) => frame,
                };
            }
            self.flows.remove(at).close(batch);
        }
        if segment.opens() && self.limit > 0 && frame.data.bytes_mut().is_some() {
            if self.flows.len() == self.limit {
                self.flows.remove(0).close(batch);
            }
            self.flows.push(Flow { index: batch.len(), progress: Progress::of(segment), joined: false });
        }
        let pushed = batch.push(frame);
        debug_assert!(pushed.is_ok(), "no room in the batch");
        true
    }

    /// Closes all flows: the batch may be taken.
    pub fn finish(&mut self, batch: &mut RxBatch) {
        for flow in self.flows.drain(..) {
            flow.close(batch);
        }
    }
}

impl Flow {
    fn is_same_flow(&self, batch: &mut RxBatch, frame: &Frame, segment: &Segment) -> bool {
        let Some(first) = batch.at_mut(self.index) else { return false };
        is_same_flow(first.data.bytes(), &self.progress.last.layers, frame.data.bytes(), &segment.layers)
    }

    /// Whether the rules let `segment` join.
    fn takes(&self, batch: &mut RxBatch, frame: &Frame, segment: &Segment) -> bool {
        let Some(first) = batch.at_mut(self.index) else { return false };
        self.progress.takes(first.data.bytes(), frame.data.bytes(), segment, MAX_IP_PACKET)
    }

    /// Appends the segment's payload; `Ok(true)` when the flow is at its end. Gives the frame back when it is shared or
    /// there is no list for its payload.
    fn join(
        &mut self,
        shelf: &PieceShelf,
        batch: &mut RxBatch,
        mut frame: Frame,
        segment: &Segment,
    ) -> Result<bool, Frame> {
        let Some(first) = batch.at_mut(self.index) else { return Err(frame) };
        if frame.data.bytes_mut().is_none() {
            return Err(frame);
        }
        if !self.joined {
            match shelf.take() {
                Some(pieces) if pieces.has_room() => first.more = pieces,
                _ => return Err(frame),
            }
            // Padding would lie between the pieces.
            first.data.truncate(self.progress.last.layers.end);
            first.meta.segment_size = self.progress.segment_size as u16;
            first.meta.raw_sum = None;
            self.joined = true;
        }
        if !first.more.has_room() {
            return Err(frame);
        }
        let closes = self.progress.join(first.data.bytes_mut(), frame.data.bytes(), segment);
        frame.data.truncate(segment.layers.end);
        frame.data.trim_front(segment.payload);
        first.more.push(frame.data);
        Ok(closes)
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
