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

use crate::checksum::set_ipv4_checksum;
use crate::frame::{Frame, RxBatch};
use crate::layers::{Layers, Version, put, u16_at, u32_at};
use crate::meta::ChecksumStatus;
use crate::pieces::PieceShelf;
use alloc::vec::Vec;
use linerate_wire::ip::Protocol;
use linerate_wire::tcp::{Flags, SeqNumber};

/// Largest IP packet that coalescing makes, in bytes.
const MAX_IP_PACKET: usize = 65_535;

/// NOP, NOP, timestamps, length 10.
const TIMESTAMPS: [u8; 4] = [1, 1, 8, 10];

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

/// What matters of a TCP segment.
#[derive(Clone, Copy, Debug)]
struct Segment {
    layers: Layers,
    /// Where the payload begins.
    payload: usize,
    sequence: SeqNumber,
    acknowledgement: SeqNumber,
    flags: Flags,
    /// Value and echo reply.
    timestamps: Option<(u32, u32)>,
    /// Whether it may be first in a coalesced frame, or join one.
    eligible: bool,
}

/// A frame of the batch that more segments can join.
#[derive(Debug)]
struct Flow {
    index: usize,
    /// The last segment's fields; those of the layers are the first one's.
    last: Segment,
    expected: SeqNumber,
    /// Payload bytes of the first segment.
    segment_size: usize,
    /// Bytes of the IP packet so far.
    ip_len: usize,
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
        let segment = layers.and_then(|layers| Segment::of(&frame, layers));
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
        let len = segment.layers.end - segment.payload;
        let opens = segment.eligible && !segment.flags.contains(Flags::PSH) && self.limit > 0;
        if opens && frame.data.bytes_mut().is_some() {
            if self.flows.len() == self.limit {
                self.flows.remove(0).close(batch);
            }
            self.flows.push(Flow {
                index: batch.len(),
                last: segment,
                expected: SeqNumber(segment.sequence.0.wrapping_add(len as u32)),
                segment_size: len,
                ip_len: segment.layers.end - segment.layers.ip,
                joined: false,
            });
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

impl Segment {
    /// `None` if it is not a whole TCP segment.
    fn of(frame: &Frame, layers: &Layers) -> Option<Segment> {
        let head = frame.data.bytes();
        let tcp = layers.layer4;
        if layers.protocol != Protocol::TCP || layers.fragment {
            return None;
        }
        let payload = tcp + usize::from(*head.get(tcp + 12)? >> 4) * 4;
        if payload < tcp + 20 || payload > head.len() || payload > layers.end {
            return None;
        }
        let options = head.get(tcp + 20..payload)?;
        let timestamps = if options.len() == 12 && options.starts_with(&TIMESTAMPS) {
            Some((u32_at(options, 4)?, u32_at(options, 8)?))
        } else {
            None
        };
        let flags = Flags(*head.get(tcp + 13)?);
        let plain_ip = match layers.version {
            Version::V4 => tcp == layers.ip + 20 && u16_at(head, layers.ip + 6)? == 0x4000,
            Version::V6 => tcp == layers.ip + 40,
        };
        let eligible = plain_ip
            && frame.meta.checksum == ChecksumStatus::Good
            && frame.meta.segment_size == 0
            && frame.more.is_empty()
            && layers.end <= head.len()
            && layers.end > payload
            && flags.without(Flags::PSH.union(Flags::ECE)) == Flags::ACK
            && (options.is_empty() || timestamps.is_some());
        Some(Segment {
            layers: *layers,
            payload,
            sequence: SeqNumber(u32_at(head, tcp + 4)?),
            acknowledgement: SeqNumber(u32_at(head, tcp + 8)?),
            flags,
            timestamps,
            eligible,
        })
    }
}

impl Flow {
    /// Same VLAN, addresses and ports.
    fn is_same_flow(&self, batch: &mut RxBatch, frame: &Frame, segment: &Segment) -> bool {
        let (mine, theirs) = (&self.last.layers, &segment.layers);
        let Some(first) = batch.at_mut(self.index) else { return false };
        let (a, b) = (first.data.bytes(), frame.data.bytes());
        let addresses = match mine.version {
            Version::V4 => mine.ip + 12..mine.ip + 20,
            Version::V6 => mine.ip + 8..mine.ip + 40,
        };
        let same = |range: core::ops::Range<usize>| a.get(range.clone()) == b.get(range);
        // With other IP options the ports lie elsewhere: compare them where they are.
        (mine.version, mine.ip) == (theirs.version, theirs.ip)
            && u32_at(a, mine.layer4) == u32_at(b, theirs.layer4)
            && same(addresses)
            && same(12..mine.ip)
    }

    /// Whether the rules let `segment` join.
    fn takes(&self, batch: &mut RxBatch, frame: &Frame, segment: &Segment) -> bool {
        let layers = &self.last.layers;
        let len = segment.layers.end - segment.payload;
        let Some(first) = batch.at_mut(self.index) else { return false };
        let (a, b) = (first.data.bytes(), frame.data.bytes());
        let same = |from: usize, to: usize| a.get(from..to) == b.get(from..to);
        let same_headers = same(0, layers.ip)
            && match layers.version {
                // Version and length, traffic class; TTL and protocol.
                Version::V4 => same(layers.ip, layers.ip + 2) && same(layers.ip + 8, layers.ip + 10),
                // Version, traffic class and flow label; next header and hop limit.
                Version::V6 => same(layers.ip, layers.ip + 4) && same(layers.ip + 6, layers.ip + 8),
            };
        let timestamps_go_on = match (self.last.timestamps, segment.timestamps) {
            (None, None) => true,
            (Some(old), Some(new)) => not_back(old.0, new.0) && not_back(old.1, new.1),
            _ => false,
        };
        segment.eligible
            && same_headers
            && segment.sequence == self.expected
            && not_back(self.last.acknowledgement.0, segment.acknowledgement.0)
            && segment.flags.without(Flags::PSH) == self.last.flags
            && timestamps_go_on
            && len <= self.segment_size
            && self.ip_len + len <= MAX_IP_PACKET
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
        let layers = self.last.layers;
        if !self.joined {
            match shelf.take() {
                Some(pieces) if pieces.has_room() => first.more = pieces,
                _ => return Err(frame),
            }
            // Padding would lie between the pieces.
            first.data.truncate(layers.end);
            first.meta.segment_size = self.segment_size as u16;
            first.meta.raw_sum = None;
            self.joined = true;
        }
        if !first.more.has_room() {
            return Err(frame);
        }
        let tcp = segment.layers.layer4;
        let fields = frame.data.bytes();
        if let Some(header) = first.data.bytes_mut() {
            put(header, tcp + 8, fields.get(tcp + 8..tcp + 12).unwrap_or_default());
            put(header, tcp + 13, &[segment.flags.0]);
            put(header, tcp + 14, fields.get(tcp + 14..tcp + 16).unwrap_or_default());
            put(header, tcp + 20, fields.get(tcp + 20..segment.payload).unwrap_or_default());
        }
        let len = segment.layers.end - segment.payload;
        frame.data.truncate(segment.layers.end);
        frame.data.trim_front(segment.payload);
        first.more.push(frame.data);
        self.expected = SeqNumber(self.expected.0.wrapping_add(len as u32));
        self.ip_len += len;
        self.last = Segment { layers, ..*segment };
        Ok(segment.flags.contains(Flags::PSH) || len < self.segment_size)
    }

    /// Makes the headers those of one packet.
    fn close(self, batch: &mut RxBatch) {
        let layers = self.last.layers;
        let Some(frame) = batch.at_mut(self.index).filter(|_| self.joined) else { return };
        if let Some(plain) = &mut frame.plain {
            plain.end = (layers.ip + self.ip_len) as u32;
        }
        let Some(header) = frame.data.bytes_mut() else { return };
        match layers.version {
            Version::V4 => {
                put(header, layers.ip + 2, &(self.ip_len as u16).to_be_bytes());
                set_ipv4_checksum(header, layers.ip, layers.layer4);
            }
            Version::V6 => put(header, layers.ip + 4, &((self.ip_len - 40) as u16).to_be_bytes()),
        }
    }
}

/// Whether `new` is `old` or after it, numbers wrapping around.
fn not_back(old: u32, new: u32) -> bool {
    new.wrapping_sub(old) <= i32::MAX as u32
}

#[cfg(test)]
mod tests;
