//! The rules of coalescing over the bytes of frames: software ([`Gro`](super::Gro)) and the reference of the hardware
//! ([`Coalesce`](crate::offload::coalesce::Coalesce)) share them.

use crate::checksum::set_ipv4_checksum;
use crate::layers::{Layers, Version, put, u16_at, u32_at};
use linerate_wire::ip::Protocol;
use linerate_wire::tcp::{Flags, SeqNumber};

/// NOP, NOP, timestamps, length 10.
pub(crate) const TIMESTAMPS: [u8; 4] = [1, 1, 8, 10];

/// What matters of a TCP segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub layers: Layers,
    /// Where the payload begins.
    pub payload: usize,
    pub sequence: SeqNumber,
    pub acknowledgement: SeqNumber,
    pub flags: Flags,
    /// Value and echo reply.
    pub timestamps: Option<(u32, u32)>,
    /// Whether it may be first in a coalesced frame, or join one.
    pub eligible: bool,
}

/// What a flow has come to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    /// The last segment's fields; those of the layers are the first one's.
    pub last: Segment,
    pub expected: SeqNumber,
    /// Payload bytes of the first segment.
    pub segment_size: usize,
    /// Bytes of the IP packet so far.
    pub ip_len: usize,
}

impl Segment {
    /// `None` if it is not a whole TCP segment. `may_join` says that the checksums are verified and that the frame has not
    /// been coalesced before; `head` is the frame, or its first piece.
    pub fn of(head: &[u8], layers: &Layers, may_join: bool) -> Option<Segment> {
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
        let eligible = may_join
            && plain_ip
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

    /// Payload bytes.
    pub fn len(&self) -> usize {
        self.layers.end - self.payload
    }

    /// Whether others may join it.
    pub fn opens(&self) -> bool {
        self.eligible && !self.flags.contains(Flags::PSH)
    }
}

/// Whether two frames have the same VLAN, addresses and ports.
pub(crate) fn is_same_flow(a: &[u8], mine: &Layers, b: &[u8], theirs: &Layers) -> bool {
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

impl Progress {
    /// Of a flow that `segment` opens.
    pub fn of(segment: Segment) -> Self {
        Progress {
            last: segment,
            expected: SeqNumber(segment.sequence.0.wrapping_add(segment.len() as u32)),
            segment_size: segment.len(),
            ip_len: segment.layers.end - segment.layers.ip,
        }
    }

    /// Whether the rules let `segment` of the frame `b` join the flow whose first frame is `a`, for an IP packet of up to
    /// `limit` bytes.
    pub fn takes(&self, a: &[u8], b: &[u8], segment: &Segment, limit: usize) -> bool {
        let layers = &self.last.layers;
        let same = |from: usize, to: usize| a.get(from..to) == b.get(from..to);
        let same_headers = same(0, layers.ip)
            && match layers.version {
                // Version and length, traffic class; TTL and protocol.
                Version::V4 => same(layers.ip, layers.ip + 2) && same(layers.ip + 8, layers.ip + 10),
                // Version, traffic class and flow label; next header and hop limit.
                Version::V6 => same(layers.ip, layers.ip + 4) && same(layers.ip + 6, layers.ip + 8),
            }
            // The length of the header, and the bits beside it: a flag of accurate ECN is one of them (RFC 9768).
            && same(layers.layer4 + 12, layers.layer4 + 13);
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
            && segment.len() <= self.segment_size
            && self.ip_len + segment.len() <= limit
    }

    /// Joins `segment`, whose frame is `fields`: acknowledgement, window, flags and timestamps of the first frame's
    /// `header` become those of it. Whether the flow is at its end.
    pub fn join(&mut self, header: Option<&mut [u8]>, fields: &[u8], segment: &Segment) -> bool {
        let (layers, tcp) = (self.last.layers, segment.layers.layer4);
        if let Some(header) = header {
            put(header, tcp + 8, fields.get(tcp + 8..tcp + 12).unwrap_or_default());
            put(header, tcp + 13, &[segment.flags.0]);
            put(header, tcp + 14, fields.get(tcp + 14..tcp + 16).unwrap_or_default());
            put(header, tcp + 20, fields.get(tcp + 20..segment.payload).unwrap_or_default());
        }
        self.expected = SeqNumber(self.expected.0.wrapping_add(segment.len() as u32));
        self.ip_len += segment.len();
        self.last = Segment { layers, ..*segment };
        segment.flags.contains(Flags::PSH) || segment.len() < self.segment_size
    }

    /// Makes the first frame's IP header that of the whole packet.
    pub fn finish(&self, header: &mut [u8]) {
        let layers = self.last.layers;
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
