//! What travels beside a frame: checksum state, segmentation, hash, queue, time.

use linerate_wire::units::Instant;

pub use linerate_wire::ethernet::MacAddr;

/// What the device says of a received frame's layer-4 checksum (and IPv4 header checksum).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ChecksumStatus {
    /// Nothing. Behind a [`Port`](crate::Port) only fragments, protocols without a known checksum and what cannot be
    /// parsed; a stack must not take TCP, UDP or ICMP so, before it has verified them after reassembly.
    #[default]
    Unchecked,
    /// IPv4 header (where there is one) and layer 4 verified, or known intact because the frame never left memory.
    Good,
    /// The device found one of them wrong.
    Bad,
}

/// What a device reports with a received frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RxMeta {
    /// Checksum state.
    pub checksum: ChecksumStatus,
    /// Sum over the frame from its 15th byte on, as simple NICs report it (not complemented); `None` if not given, or
    /// where the device says itself what the checksums are.
    pub raw_sum: Option<u16>,
    /// Receive-side-scaling hash (Toeplitz); `None` if not given.
    pub rss_hash: Option<u32>,
    /// The queue it came in on.
    pub queue: u16,
    /// Payload bytes per original segment where the frame was coalesced from several (GRO, LRO); 0 if it was not.
    pub segment_size: u16,
    /// Arrival time, if the device stamps it.
    pub timestamp: Option<Instant>,
}

/// A checksum left to the device.
///
/// The field at `start + offset` holds the pseudo-header sum (not complemented), as Linux and virtio want it; the
/// device sums from `start` to the end of the packet, complements, and writes the field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChecksumRequest {
    /// Where summing starts, in bytes from the start of the frame: the layer-4 header.
    pub start: u16,
    /// Where the checksum field lies, in bytes from `start`: 16 for TCP, 6 for UDP.
    pub offset: u16,
}

/// How a super-segment is to be split.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Segmentation {
    /// It is one frame.
    #[default]
    None,
    /// TCP over IPv4 into segments of this many payload bytes.
    Tcp4(u16),
    /// TCP over IPv6 into segments of this many payload bytes.
    Tcp6(u16),
}

impl Segmentation {
    /// Payload bytes per segment; 0 if it is one frame.
    pub fn segment_size(self) -> u16 {
        match self {
            Segmentation::None => 0,
            Segmentation::Tcp4(size) | Segmentation::Tcp6(size) => size,
        }
    }
}

/// Names one transmitted packet for its completion; 0 for packets nobody asks about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct TxToken(pub u64);

/// What the stack asks of the device for one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TxMeta {
    /// The layer-4 checksum, if the device shall fill it in.
    pub checksum: Option<ChecksumRequest>,
    /// Splitting. A packet with segmentation always has a checksum request. Its pseudo-header sum covers the whole
    /// super-segment's length (the convention of Linux); IPv4 total length and header checksum are those of the whole.
    pub segmentation: Segmentation,
    /// Length of all headers (Ethernet to TCP options) in bytes. For a super-segment that is the whole header block: its
    /// payload is in the gather list alone.
    pub header_len: u16,
    /// For the completion.
    pub token: TxToken,
}
