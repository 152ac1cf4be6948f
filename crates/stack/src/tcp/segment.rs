//! What goes into a connection and what comes out: received segments, limits and descriptions of sent packets.

use core::fmt;
use linerate_nic::{Pieces, Slice};
use linerate_wire::ip::Ecn;
use linerate_wire::tcp::{Flags, Options, SeqNumber, Timestamps};

/// A received segment: header fields by value, payload by handle. Checksums are already verified.
#[derive(Debug, Default)]
pub struct SegmentIn {
    /// Sequence number of the first byte, or of the SYN.
    pub seq: SeqNumber,
    /// Acknowledgement number; counts with ACK.
    pub ack: SeqNumber,
    /// Control bits.
    pub flags: Flags,
    /// Window as in the header.
    pub window: u16,
    /// Options.
    pub options: Options,
    /// Payload bytes of each original segment where several were coalesced; 0 otherwise.
    pub segment_size: u16,
    /// The IP header was marked "congestion experienced".
    pub congestion_experienced: bool,
    /// The payload's first piece, trimmed to the payload; `None` without payload.
    pub payload: Option<Slice>,
    /// Further pieces of the payload, in order.
    pub more: Pieces,
}

/// A segment that has nothing but ACK and PSH, nothing but timestamps among its options, and came alone: nearly all are so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) seq: SeqNumber,
    pub(crate) ack: SeqNumber,
    pub(crate) flags: Flags,
    pub(crate) window: u16,
    pub(crate) timestamps: Option<Timestamps>,
}

impl Head {
    /// Whether two segments in a row differ in nothing but where their payload lies, and PSH.
    #[inline]
    pub(crate) fn is_like(&self, other: &Head) -> bool {
        self.ack == other.ack && self.window == other.window && self.timestamps == other.timestamps
    }

    /// The same at length.
    pub(crate) fn segment(self, payload: Option<Slice>) -> SegmentIn {
        let Head { seq, ack, flags, window, timestamps } = self;
        let options = Options { timestamps, ..Options::default() };
        SegmentIn { seq, ack, flags, window, options, payload, ..SegmentIn::default() }
    }
}

impl SegmentIn {
    /// The short form, where it says all but the payload.
    #[inline]
    pub(crate) fn head(&self) -> Option<Head> {
        let is_plain = self.flags.without(Flags::PSH) == Flags::ACK
            && !self.congestion_experienced
            && self.segment_size == 0
            && self.more.is_empty()
            && self.options.sack_blocks.is_empty();
        let &SegmentIn { seq, ack, flags, window, .. } = self;
        is_plain.then_some(Head { seq, ack, flags, window, timestamps: self.options.timestamps })
    }

    /// Payload bytes.
    pub fn payload_len(&self) -> usize {
        self.payload.as_ref().map_or(0, Slice::len) + self.more.len_bytes()
    }

    /// Sequence numbers it takes: payload, SYN and FIN (SEG.LEN).
    pub fn sequence_len(&self) -> u64 {
        self.payload_len() as u64
            + u64::from(self.flags.contains(Flags::SYN))
            + u64::from(self.flags.contains(Flags::FIN))
    }

    /// How many segments arrived in it: 1, or more when they were coalesced.
    pub fn segments(&self) -> usize {
        match self.segment_size {
            0 => 1,
            size => self.payload_len().div_ceil(usize::from(size)).max(1),
        }
    }
}

/// Why a segment, or its payload, was not used. The order is that of [`DropReason::ALL`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum DropReason {
    /// The connection is closed.
    Closed,
    /// A handshake segment with wrong bits, or without what its state needs (RFC 9293 section 3.10.7).
    Handshake,
    /// Neither SYN, RST nor ACK (RFC 9293 section 3.10.7.4, fifth check).
    NoAck,
    /// Wholly outside the receive window, and not old data.
    OutOfWindow,
    /// Everything in it had been received before.
    Duplicate,
    /// An older timestamp than the last one (PAWS, RFC 7323 section 5).
    OldTimestamp,
    /// No timestamp although they were agreed upon (RFC 7323 section 3.2).
    NoTimestamp,
    /// A RST in the window but not at its left edge (RFC 5961 section 3).
    InexactReset,
    /// A SYN on an established connection (RFC 5961 section 4).
    UnexpectedSyn,
    /// An acknowledgement of what was never sent, or of the distant past (RFC 5961 section 5).
    BadAck,
    /// Payload after the peer's FIN.
    AfterFin,
    /// Payload out of order, and no room to keep it.
    OutOfOrderFull,
    /// Payload that the memory budget or the receive buffer had no room for.
    NoMemory,
}

impl DropReason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [DropReason; 13] = [
        DropReason::Closed,
        DropReason::Handshake,
        DropReason::NoAck,
        DropReason::OutOfWindow,
        DropReason::Duplicate,
        DropReason::OldTimestamp,
        DropReason::NoTimestamp,
        DropReason::InexactReset,
        DropReason::UnexpectedSyn,
        DropReason::BadAck,
        DropReason::AfterFin,
        DropReason::OutOfOrderFull,
        DropReason::NoMemory,
    ];
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DropReason::Closed => "the connection is closed",
            DropReason::Handshake => "not a segment for this step of the handshake",
            DropReason::NoAck => "no ACK bit",
            DropReason::OutOfWindow => "outside the receive window",
            DropReason::Duplicate => "received before",
            DropReason::OldTimestamp => "timestamp older than the last one",
            DropReason::NoTimestamp => "timestamp missing",
            DropReason::InexactReset => "RST not at the left window edge",
            DropReason::UnexpectedSyn => "SYN on an established connection",
            DropReason::BadAck => "acknowledges what was never sent",
            DropReason::AfterFin => "payload after FIN",
            DropReason::OutOfOrderFull => "no room for payload out of order",
            DropReason::NoMemory => "no memory for payload",
        })
    }
}

/// What became of a segment. Whatever has to be sent in reply comes out of `poll_transmit`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Outcome {
    /// It was used.
    Accepted,
    /// It, or at least its payload, was not; count it.
    Dropped(DropReason),
}

/// What the device allows for the next packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TxLimits {
    /// Most payload bytes in one packet: 0 where the device (or `nic`) does not split super-segments, otherwise what
    /// the IP header's length field leaves. One segment of the connection's MSS is always allowed.
    pub max_payload: usize,
    /// Whether `Connection::handle_transmitted` will be called for the packet's completion tag. Without, a packet
    /// counts as transmitted when it is polled.
    pub completions: bool,
}

/// What `poll_transmit` wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TxInfo {
    /// Bytes of the TCP header with options.
    pub header_len: usize,
    /// Payload bytes in the gather list.
    pub payload_len: usize,
    /// Payload bytes per segment if it is a super-segment that has to be split; 0 if it is one segment.
    pub segment_size: u16,
    /// Segments that go on the wire.
    pub segments: u32,
    /// Whether it repeats sequence numbers that were sent before.
    pub retransmission: bool,
    /// How the IP header is to be marked.
    pub ecn: Ecn,
    /// To be handed to `Connection::handle_transmitted` when the device has sent the packet; never zero.
    pub completion: Option<u32>,
    /// Whether it is known that nothing else is due now.
    pub is_last: bool,
}
