//! Frames on their way from one core to another.

use super::mailbox::Mailbox;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use linerate_nic::{ChecksumRequest, ChecksumStatus, Chunk, Frame, MAX_HEADER, Slice, TxMeta, TxPacket};

/// Bytes of a frame that fits: those of a receive buffer.
pub(super) const FRAME: usize = 1_536;
/// Where payload begins that is to leave, and a whole frame that came; headers that are to leave lie in front. A copy from an aligned
/// place to another is several times cheaper than one between places that are not alike.
const PAYLOAD: usize = 192;

const _: () = assert!(MAX_HEADER <= PAYLOAD, "headers fit in front");

/// A copy of a frame: buffers belong to one core.
pub(super) struct Parcel {
    bytes: Box<[u8]>,
    /// Bytes from [`PAYLOAD`] on.
    len: usize,
    /// What the device said of a frame that came.
    pub(super) checksum: ChecksumStatus,
    /// What a frame that leaves asks of the device, and how many of its bytes are headers.
    pub(super) request: Option<ChecksumRequest>,
    header_len: usize,
}

impl Parcel {
    fn new() -> Parcel {
        let bytes = alloc::vec![0; PAYLOAD + FRAME].into_boxed_slice();
        Parcel { bytes, len: 0, checksum: ChecksumStatus::Unchecked, request: None, header_len: 0 }
    }

    /// A frame that came, or the payload of one that is to leave.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[PAYLOAD..PAYLOAD + self.len]
    }

    /// The headers of a frame that is to leave.
    pub(super) fn header(&self) -> &[u8] {
        &self.bytes[..self.header_len]
    }

    /// Copies pieces one behind the other; false if they are too long.
    fn fill<'a>(&mut self, pieces: impl Iterator<Item = &'a [u8]>) -> bool {
        let mut room = &mut self.bytes[PAYLOAD..];
        self.len = 0;
        for piece in pieces {
            let Some((to, rest)) = room.split_at_mut_checked(piece.len()) else { return false };
            to.copy_from_slice(piece);
            room = rest;
            self.len += piece.len();
        }
        true
    }

    /// Copies a frame that came; false if it is too long.
    pub(super) fn receive(&mut self, frame: &Frame) -> bool {
        self.checksum = frame.meta.checksum;
        self.fill(core::iter::once(&frame.data).chain(&frame.more).map(Slice::bytes))
    }

    /// Copies a packet that is to leave; false if it is too long.
    pub(super) fn send(&mut self, packet: &TxPacket) -> bool {
        self.header_len = packet.header().len();
        self.request = packet.meta.checksum;
        self.bytes[..self.header_len].copy_from_slice(packet.header());
        self.fill(packet.chunks().iter().map(Chunk::bytes))
    }

    /// What the device is told of it.
    pub(super) fn meta(&self, of: TxMeta) -> TxMeta {
        TxMeta { checksum: self.request, header_len: self.header_len as u16, ..of }
    }
}

/// The way from one core to another: so many parcels, which go to and fro. None is ever made or lost, so nothing overflows.
pub(super) struct Lane {
    pub(super) full: Mailbox<Parcel>,
    pub(super) empty: Mailbox<Parcel>,
}

impl Lane {
    /// With so many parcels, all of them empty.
    pub(super) fn new(parcels: usize) -> Lane {
        let lane = Lane { full: Mailbox::with_room(parcels), empty: Mailbox::with_room(parcels) };
        let mut all: VecDeque<Parcel> = (0..parcels).map(|_| Parcel::new()).collect();
        lane.empty.push_all(&mut all);
        lane
    }

    /// An empty one, of those at hand or those that came back.
    pub(super) fn take_empty(&self, at_hand: &mut VecDeque<Parcel>) -> Option<Parcel> {
        if at_hand.is_empty() {
            self.empty.take_all(at_hand);
        }
        at_hand.pop_front()
    }
}
