//! The transmit side: packets to the device, tokens back.

use crate::device::Capabilities;
use crate::meta::{Segmentation, TxToken};
use crate::pool::Buffer;
use crate::tx::{MAX_CHUNKS, MAX_HEADER, TxPacket, TxQueue};
use crate::virtio::receive::Broken;
use crate::virtio::ring::Ring;
use crate::virtio::{Stats, Transport};
use crate::vnet::{ByteOrder, HEADER_LEN_MERGEABLE, VirtioHeader};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Bytes that a buffer for headers must have.
pub(super) const HEADERS: usize = HEADER_LEN_MERGEABLE + MAX_HEADER;
/// The longest packet that the device splits: of IP, and an Ethernet header with two tags.
const LONGEST_SPLIT: usize = 65_535 + 22;

/// What belongs to a descriptor while a packet begins with it.
struct Slot {
    /// Headers are copied here, as the stack uses theirs again.
    headers: Buffer,
    /// Keeps the payload alive.
    packet: TxPacket,
    token: TxToken,
    is_busy: bool,
}

/// A ring of packets that the device reads.
///
/// Payload is read where it lies. Headers, payload and descriptors are the device's from the moment that they are available until the
/// chain comes back, in whatever order the device returns them.
pub(super) struct Transmitter<P> {
    board: P,
    pub ring: Ring<P>,
    slots: Vec<Slot>,
    /// Packets that the device has.
    packets: u16,
    /// Tokens that nobody has asked for yet.
    done: VecDeque<TxToken>,
    longest: usize,
    /// Descriptors that the packet at the front of the queue takes for which there was no room; 0 where none waits.
    waits_for: usize,
}

impl<P: Transport> Transmitter<P> {
    /// With a buffer of [`HEADERS`] for each descriptor.
    pub fn new(board: P, ring: Ring<P>, headers: Vec<Buffer>, longest: usize) -> Self {
        let slot = |headers| Slot { headers, packet: TxPacket::default(), token: TxToken(0), is_busy: false };
        let slots: Vec<_> = headers.into_iter().map(slot).collect();
        // A token more for each packet that was refused in a batch.
        let done = VecDeque::with_capacity(2 * slots.len());
        Transmitter { board, ring, slots, packets: 0, done, longest, waits_for: 0 }
    }

    /// Gives packets from the front of `queue` to the device until it is empty or the ring is full; how many were taken.
    pub fn transmit(
        &mut self,
        queue: &mut TxQueue,
        enabled: Capabilities,
        stats: &mut Stats,
    ) -> Result<usize, Broken> {
        let mut count = 0;
        self.waits_for = 0;
        while let Some(packet) = queue.front_mut() {
            let needed = 1 + packet.chunks().len();
            if self.done.len() >= self.slots.len() {
                self.waits_for = needed;
                break;
            }
            if self.ring.room() < needed {
                self.harvest()?;
            }
            if self.ring.room() < needed {
                stats.tx_full += 1;
                self.waits_for = needed;
                break;
            }
            if self.is_sound(packet, enabled) {
                stats.tx_split += u64::from(packet.meta.segmentation != Segmentation::None);
                stats.tx_packets += 1;
                self.give(packet);
            } else {
                stats.drop_tx_errors += 1;
                report(&mut self.done, packet.meta.token);
            }
            queue.pop();
            count += 1;
        }
        stats.notifications += u64::from(self.ring.publish());
        Ok(count)
    }

    /// The token of a packet that has left.
    pub fn poll_completion(&mut self) -> Result<Option<TxToken>, Broken> {
        if self.done.is_empty() && self.packets > 0 {
            self.harvest()?;
        }
        Ok(self.done.pop_front())
    }

    /// Asks for an interrupt: when all packets have left, or a quarter of them where others wait for room. A driver that asked for
    /// each would hear of each. Returns whether there is a token or room already.
    pub fn arm(&mut self) -> Result<bool, Broken> {
        while self.packets > 0 {
            let after = if self.waits_for > 0 { self.packets / 4 } else { self.packets };
            self.ring.interrupt_after(after);
            // What came back before may be what was asked for, which then does not interrupt any more.
            if !self.harvest()? || self.waits_for == 0 || self.has_room() {
                break;
            }
        }
        // The room may have come when tokens were asked for.
        Ok(self.has_room() || !self.done.is_empty())
    }

    /// Whether there is room now for a packet that waits.
    fn has_room(&self) -> bool {
        self.waits_for > 0 && self.ring.room() >= self.waits_for
    }

    /// Reports what the device had, and lets go of it: it was reset, and nobody knows what had left.
    pub fn reclaim(&mut self) {
        for slot in self.slots.iter_mut().filter(|slot| slot.is_busy) {
            slot.is_busy = false;
            slot.packet.clear();
            report(&mut self.done, slot.token);
        }
        self.packets = 0;
    }

    /// The device does not stop: what it has is lost on purpose, as it may still read it.
    pub fn abandon(&mut self) {
        self.slots.drain(..).for_each(core::mem::forget);
    }

    /// Lays `packet` out in the ring; there is room. Payload is kept, and the slot of the queue gets an empty packet.
    fn give(&mut self, packet: &mut TxPacket) {
        let Some(head) = self.ring.take() else { return };
        let slot = &mut self.slots[usize::from(head)];
        let len = HEADER_LEN_MERGEABLE + packet.header().len();
        let (virtio, headers) = slot.headers.bytes_mut()[..len].split_at_mut(HEADER_LEN_MERGEABLE);
        virtio.copy_from_slice(&VirtioHeader::for_packet(&packet.meta).encode(ByteOrder::Little));
        headers.copy_from_slice(packet.header());
        let bytes = &slot.headers.bytes()[..len];
        self.board.clean(bytes);
        // Checked when the interface was opened, and for each packet.
        let mut piece = (head, self.board.bus_address(bytes).unwrap_or_default(), len as u32);
        for chunk in packet.chunks().iter().filter(|chunk| !chunk.is_empty()) {
            let Some(next) = self.ring.take() else { break };
            self.ring.describe(piece.0, piece.1, piece.2, 0, Some(next));
            self.board.clean(chunk.bytes());
            piece = (next, self.board.bus_address(chunk.bytes()).unwrap_or_default(), chunk.len() as u32);
        }
        self.ring.describe(piece.0, piece.1, piece.2, 0, None);
        self.ring.offer(head);
        (slot.token, slot.is_busy) = (packet.meta.token, true);
        if !packet.chunks().is_empty() {
            slot.packet.swap_payload(packet);
        }
        self.packets += 1;
    }

    /// Whether the device can do what the packet asks for, and reaches it. The offload layer asks for nothing else; a driver checks all
    /// the same.
    fn is_sound(&self, packet: &TxPacket, enabled: Capabilities) -> bool {
        let len = packet.len();
        let longest = match packet.meta.segmentation {
            Segmentation::None => self.longest,
            Segmentation::Tcp4(size) if enabled.tso4 && size > 0 => LONGEST_SPLIT,
            Segmentation::Tcp6(size) if enabled.tso6 && size > 0 => LONGEST_SPLIT,
            _ => return false,
        };
        let inside = packet.meta.checksum.is_none_or(|request| {
            let field = usize::from(request.start) + usize::from(request.offset);
            field + 2 <= packet.header().len()
        });
        let reached = packet.chunks().iter().all(|chunk| self.board.bus_address(chunk.bytes()).is_some());
        inside && reached && (1..=longest).contains(&len)
    }

    /// Lets go of all packets that have come back; true if there were any.
    fn harvest(&mut self) -> Result<bool, Broken> {
        let waiting = self.ring.waiting();
        for _ in 0..waiting {
            let used = self.ring.peek(0);
            let slot = usize::try_from(used.id).ok().and_then(|id| self.slots.get_mut(id));
            let slot = slot.filter(|slot| slot.is_busy).ok_or(Broken)?;
            slot.is_busy = false;
            if !slot.packet.is_empty() {
                slot.packet.clear();
            }
            report(&mut self.done, slot.token);
            self.ring.take_back(used.id as u16);
            self.packets -= 1;
        }
        Ok(waiting > 0)
    }
}

/// Descriptors that one packet takes at most.
pub(super) const MOST_PIECES: usize = 1 + MAX_CHUNKS;

fn report(done: &mut VecDeque<TxToken>, token: TxToken) {
    if token != TxToken(0) {
        done.push_back(token);
    }
}
