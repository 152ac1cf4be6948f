//! Packets on their way into the driver, which the capture gets if they leave.

use crate::capture::Capture;
use alloc::vec::Vec;
use core::iter::once;
use linerate_nic::{Chunk, TxQueue};
use linerate_wire::pcapng::Seen;
use linerate_wire::units::Instant;

/// Headers, and handles of the payload: the driver takes the packets themselves. Room that was allocated serves the next call.
#[derive(Default)]
pub(super) struct Leaving {
    headers: Vec<u8>,
    chunks: Vec<Chunk>,
    /// Bytes of the header and pieces of the payload, of one packet after the other.
    packets: Vec<(usize, usize)>,
}

impl Leaving {
    /// All that waits in the queue.
    pub(super) fn gather(&mut self, queue: &TxQueue) {
        for packet in queue.iter() {
            self.headers.extend_from_slice(packet.header());
            self.chunks.extend_from_slice(packet.chunks());
            self.packets.push((packet.header().len(), packet.chunks().len()));
        }
    }

    /// Has the capture keep the first so many, which have left.
    pub(super) fn keep(&self, capture: &mut Capture, at: Instant, left: usize) {
        let (mut headers, mut chunks) = (&self.headers[..], &self.chunks[..]);
        for (header, pieces) in self.packets.iter().take(left) {
            let (header, later) = headers.split_at(*header);
            let (payload, others) = chunks.split_at(*pieces);
            capture.keep(at, Seen::Outbound, once(header).chain(payload.iter().map(Chunk::bytes)));
            (headers, chunks) = (later, others);
        }
    }

    /// Gives the handles up.
    pub(super) fn clear(&mut self) {
        self.headers.clear();
        self.chunks.clear();
        self.packets.clear();
    }
}
