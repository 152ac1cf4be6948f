//! Packets to transmit: a header block, a gather list, and a queue of reusable slots.

use crate::chunk::Chunk;
use crate::meta::TxMeta;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Longest header block in bytes: Ethernet with VLAN 18, IPv6 40 with 24 of extensions, TCP 60, rounded up.
pub const MAX_HEADER: usize = 160;

/// What nearly all header blocks fit into: Ethernet, IPv6 and TCP with timestamps are 86 bytes.
const USUAL_HEADER: usize = 96;

/// Most payload pieces of one packet: a 64 KiB super-segment in pieces of 4 KiB, one more for each cut end.
/// With the header that is one `writev` of 19 pieces, well below IOV_MAX, and one more than a Linux skb has fragments.
pub const MAX_CHUNKS: usize = 18;

/// One packet: headers by value, payload by reference.
#[derive(Debug)]
pub struct TxPacket {
    /// In words, as small processors copy bytes one by one that may lie anywhere.
    header: [u32; MAX_HEADER / 4],
    header_len: usize,
    chunks: Vec<Chunk>,
    chunks_len: usize,
    /// What is asked of the device.
    pub meta: TxMeta,
}

impl TxPacket {
    /// An empty packet with room for its gather list allocated.
    pub fn new() -> Self {
        TxPacket {
            header: [0; MAX_HEADER / 4],
            header_len: 0,
            chunks: Vec::with_capacity(MAX_CHUNKS),
            chunks_len: 0,
            meta: TxMeta::default(),
        }
    }

    /// Empties the packet and drops its handles.
    #[inline]
    pub fn clear(&mut self) {
        self.header_len = 0;
        if !self.chunks.is_empty() {
            self.chunks.clear();
        }
        self.chunks_len = 0;
        self.meta = TxMeta::default();
    }

    /// Sets the header's length (at most [`MAX_HEADER`]) and gives it to write to; bytes keep their old values.
    #[inline]
    pub fn header_mut(&mut self, len: usize) -> &mut [u8] {
        self.header_len = len.min(MAX_HEADER);
        self.header_bytes_mut()
    }

    /// Takes over the headers of another packet.
    #[inline]
    pub(crate) fn copy_header(&mut self, from: &TxPacket) {
        self.header_len = from.header_len;
        // Moves of a fixed length are cheaper than a copy of the right one.
        match (self.header.first_chunk_mut::<{ USUAL_HEADER / 4 }>(), from.header.first_chunk()) {
            (Some(to), Some(from)) if self.header_len <= USUAL_HEADER => *to = *from,
            _ => self.header = from.header,
        }
    }

    /// The headers.
    #[inline]
    pub fn header(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.header)[..self.header_len]
    }

    /// The headers, to change in place.
    #[inline]
    pub fn header_bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.header)[..self.header_len]
    }

    /// Appends payload; gives it back when the gather list is full.
    #[inline]
    pub fn push_chunk(&mut self, chunk: Chunk) -> Result<(), Chunk> {
        if self.chunks.len() == MAX_CHUNKS {
            return Err(chunk);
        }
        self.chunks_len += chunk.len();
        self.chunks.push(chunk);
        Ok(())
    }

    /// The gather list.
    pub fn chunks(&self) -> &[Chunk] {
        &self.chunks
    }

    /// The headers, to change in place, beside the gather list.
    pub fn parts_mut(&mut self) -> (&mut [u8], &[Chunk]) {
        (&mut bytemuck::cast_slice_mut(&mut self.header)[..self.header_len], &self.chunks)
    }

    /// Payload bytes in the gather list.
    pub fn payload_len(&self) -> usize {
        self.chunks_len
    }

    /// Length of the packet: headers and payload.
    pub fn len(&self) -> usize {
        self.header_len + self.chunks_len
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Exchanges the contents of two packets, so that a device can keep one beyond its slot without allocating.
    pub fn swap(&mut self, other: &mut TxPacket) {
        core::mem::swap(self, other);
    }

    /// Exchanges the gather lists of two packets: for a device that copies headers and keeps only the payload.
    pub fn swap_payload(&mut self, other: &mut TxPacket) {
        core::mem::swap(&mut self.chunks, &mut other.chunks);
        core::mem::swap(&mut self.chunks_len, &mut other.chunks_len);
    }

    /// Copies headers and payload into `out`, which must be at least [`TxPacket::len`] long; returns the length.
    /// For devices that want one contiguous buffer.
    pub fn linearise(&self, out: &mut [u8]) -> Option<usize> {
        let out = out.get_mut(..self.len())?;
        let (header, mut rest) = out.split_at_mut(self.header_len);
        header.copy_from_slice(self.header());
        for chunk in &self.chunks {
            let (piece, tail) = rest.split_at_mut(chunk.len());
            piece.copy_from_slice(chunk.bytes());
            rest = tail;
        }
        Some(self.len())
    }
}

impl Default for TxPacket {
    fn default() -> Self {
        TxPacket::new()
    }
}

/// A bounded queue of packets whose slots are allocated once and used again.
#[derive(Debug)]
pub struct TxQueue {
    slots: Box<[TxPacket]>,
    head: usize,
    len: usize,
    /// The slot behind the last packet was given to be filled, and is not queued.
    is_given: bool,
}

impl TxQueue {
    /// A queue of `capacity` slots (at least one).
    pub fn with_capacity(capacity: usize) -> Self {
        TxQueue {
            slots: (0..capacity.max(1)).map(|_| TxPacket::new()).collect(),
            head: 0,
            len: 0,
            is_given: false,
        }
    }

    /// The next free slot, empty, to be filled; nothing is queued until [`TxQueue::commit`]. `None` when full.
    #[inline]
    pub fn vacant(&mut self) -> Option<&mut TxPacket> {
        if self.len == self.slots.len() {
            return None;
        }
        // All others were emptied when they were taken out.
        if self.is_given {
            self.give_up();
        }
        self.is_given = true;
        let at = self.place(self.len);
        self.slots.get_mut(at)
    }

    /// The slot `count` behind the head.
    #[inline]
    fn place(&self, count: usize) -> usize {
        let at = self.head + count;
        if at < self.slots.len() { at } else { at - self.slots.len() }
    }

    /// Queues the slot that [`TxQueue::vacant`] gave last.
    #[inline]
    pub fn commit(&mut self) {
        debug_assert!(self.len < self.slots.len(), "commit without vacant");
        self.len = (self.len + 1).min(self.slots.len());
        self.is_given = false;
    }

    /// The oldest packet.
    pub fn front(&self) -> Option<&TxPacket> {
        (self.len > 0).then(|| &self.slots[self.head])
    }

    /// The oldest packet, to change in place or to swap out.
    pub fn front_mut(&mut self) -> Option<&mut TxPacket> {
        (self.len > 0).then(|| &mut self.slots[self.head])
    }

    /// The packet behind `count` others, to change in place.
    #[inline]
    pub(crate) fn at_mut(&mut self, count: usize) -> Option<&mut TxPacket> {
        let at = self.place(count);
        if count < self.len { self.slots.get_mut(at) } else { None }
    }

    /// The packets, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &TxPacket> {
        let (wrapped, first) = self.slots.split_at(self.head);
        first.iter().chain(wrapped).take(self.len)
    }

    /// The packets, oldest first, to change in place.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut TxPacket> {
        let (wrapped, first) = self.slots.split_at_mut(self.head);
        first.iter_mut().chain(wrapped).take(self.len)
    }

    /// Lets `work` see only the oldest `count` packets; it may pop them but must not add any.
    pub fn with_first<R>(&mut self, count: usize, work: impl FnOnce(&mut TxQueue) -> R) -> R {
        // The slot behind those that are seen is not the one that was given.
        if self.is_given {
            self.give_up();
        }
        let hidden = self.len.saturating_sub(count);
        self.len -= hidden;
        let (before, result) = (self.len, work(self));
        debug_assert!(self.len <= before, "packets were added in front of the hidden ones");
        self.len = self.len.min(before) + hidden;
        result
    }

    /// Drops the oldest packet's handles and frees its slot.
    #[inline]
    pub fn pop(&mut self) {
        if self.is_given {
            self.give_up();
        }
        if self.len > 0
            && let Some(slot) = self.slots.get_mut(self.head)
        {
            slot.clear();
            self.head = self.place(1);
            self.len -= 1;
        }
    }

    /// Empties the slot that was given and not queued: another may be the next.
    #[cold]
    fn give_up(&mut self) {
        self.is_given = false;
        let at = self.place(self.len);
        if let Some(slot) = self.slots.get_mut(at) {
            slot.clear();
        }
    }

    /// Packets queued.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Free slots.
    pub fn room(&self) -> usize {
        self.slots.len() - self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::Pool;

    #[test]
    fn slots_come_round_and_hold_nothing() {
        let pool = Pool::new(4, 16);
        let mut queue = TxQueue::with_capacity(2);
        for round in 0..5u8 {
            let slot = queue.vacant().unwrap();
            slot.header_mut(2).copy_from_slice(&[round, round]);
            slot.push_chunk(Chunk::Pool(pool.take().unwrap().freeze(0..3))).unwrap();
            queue.commit();
            assert_eq!(queue.front().unwrap().header(), &[round, round]);
            let mut out = [0; 8];
            assert_eq!(queue.front().unwrap().linearise(&mut out), Some(5));
            queue.pop();
            assert_eq!(pool.free(), 4);
        }
        queue.vacant().unwrap();
        queue.commit();
        queue.vacant().unwrap();
        queue.commit();
        assert!(queue.vacant().is_none());
    }

    #[test]
    fn a_part_of_the_queue_can_be_shown() {
        let mut queue = TxQueue::with_capacity(4);
        for (round, shown) in [2usize, 0, 9, 3].into_iter().enumerate() {
            while let Some(slot) = queue.vacant() {
                slot.header_mut(1)[0] = round as u8;
                queue.commit();
            }
            queue.iter_mut().for_each(|packet| packet.header_bytes_mut()[0] = 9);
            assert!(queue.iter().all(|packet| packet.header() == [9]));
            let seen = queue.with_first(shown, |part| {
                let seen = part.len();
                (0..seen).for_each(|_| part.pop());
                seen
            });
            assert_eq!((seen, queue.len()), (shown.min(4), 4 - shown.min(4)));
        }
    }

    #[test]
    fn the_gather_list_is_bounded() {
        let mut packet = TxPacket::new();
        for _ in 0..MAX_CHUNKS {
            packet.push_chunk(Chunk::constant(b"ab")).unwrap();
        }
        assert!(packet.push_chunk(Chunk::constant(b"ab")).is_err());
        assert_eq!(packet.payload_len(), 2 * MAX_CHUNKS);
    }
}
