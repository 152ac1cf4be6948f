//! Descriptors: two words, or four where addresses have 64 bits.

use crate::bus::Bus;
use core::sync::atomic::{Ordering, fence};

/// Word 0 of a receive descriptor: the processor's, with a frame.
const RECEIVED: u32 = 1 << 0;
/// Word 0 of a receive descriptor: the ring ends here.
const RECEIVE_WRAP: u32 = 1 << 1;
/// What the two flags leave of an address.
const RECEIVE_ADDRESS: u32 = !3;
/// Word 1 of a receive descriptor: the frame begins in this buffer.
const STARTS: u32 = 1 << 14;
/// Word 1 of a receive descriptor: the frame ends in this buffer.
const ENDS: u32 = 1 << 15;
/// Word 1 of either: bytes; of a packet's descriptor one bit more.
const RECEIVE_LEN: u32 = 0x1FFF;
/// The most bytes that a transmit descriptor names.
pub(super) const TRANSMIT_LEN: u32 = 0x3FFF;
/// Word 1 of a transmit descriptor: the processor's.
const SENT: u32 = 1 << 31;
/// Word 1 of a transmit descriptor: the ring ends here.
const TRANSMIT_WRAP: u32 = 1 << 30;
/// Word 1 of a transmit descriptor: sending has failed (retry limit, underrun, bus error, late collision).
const SEND_FAILED: u32 = 0b1111 << 26;
/// Word 1 of a transmit descriptor: the packet ends here.
const LAST: u32 = 1 << 15;

/// A ring of descriptors in memory: where it lies, how long it is, and how long one of them is.
///
/// Positions count up for ever; the descriptor is the remainder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Table {
    pub base: u64,
    pub len: u16,
    /// Addresses of 64 bits: four words each.
    pub is_wide: bool,
}

/// What the device says of a received frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Received {
    /// Bytes; 0 if they are not all in this buffer, which holds every frame.
    pub len: usize,
    /// TCP or UDP, verified; said only while checksums are.
    pub is_verified: bool,
}

/// A piece of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Piece {
    pub address: u64,
    pub len: u32,
}

impl Table {
    /// Bytes of a descriptor.
    pub const fn size(is_wide: bool) -> u64 {
        if is_wide { 16 } else { 8 }
    }

    /// Bytes of the ring.
    pub const fn bytes(&self) -> u64 {
        self.len as u64 * Table::size(self.is_wide)
    }

    /// The descriptor at a position.
    pub fn slot(&self, position: u64) -> usize {
        (position % u64::from(self.len)) as usize
    }

    fn at(&self, position: u64) -> u64 {
        self.base + self.slot(position) as u64 * Table::size(self.is_wide)
    }

    fn is_last(&self, position: u64) -> bool {
        self.slot(position) + 1 == usize::from(self.len)
    }

    fn store_high(&self, bus: &impl Bus, at: u64, address: u64) {
        if self.is_wide {
            bus.store(at + 8, (address >> 32) as u32);
            bus.store(at + 12, 0);
        }
    }

    /// Takes a receive descriptor from the device, or keeps it: it finds no buffer there, and an address that does no harm.
    pub fn take_receive(&self, bus: &impl Bus, position: u64, scrap: u64) {
        let at = self.at(position);
        let wrap = if self.is_last(position) { RECEIVE_WRAP } else { 0 };
        bus.store(at, scrap as u32 & RECEIVE_ADDRESS | wrap | RECEIVED);
        self.store_high(bus, at, scrap);
    }

    /// Gives the device an empty buffer.
    pub fn give_receive(&self, bus: &impl Bus, position: u64, address: u64) {
        let at = self.at(position);
        bus.store(at + 4, 0);
        self.store_high(bus, at, address);
        // The owner last: the device may read the descriptor at any time.
        fence(Ordering::SeqCst);
        let wrap = if self.is_last(position) { RECEIVE_WRAP } else { 0 };
        bus.store(at, address as u32 & RECEIVE_ADDRESS | wrap);
    }

    /// What the device has written into a receive descriptor; `None` while it is the device's.
    pub fn received(&self, bus: &impl Bus, position: u64) -> Option<Received> {
        let at = self.at(position);
        if bus.load(at) & RECEIVED == 0 {
            return None;
        }
        let status = bus.load(at + 4);
        // An emulator writes the two words one after the other, and the frame's status is never zero.
        if status == 0 {
            return None;
        }
        let is_whole = status & STARTS != 0 && status & ENDS != 0;
        let len = if is_whole { status & RECEIVE_LEN } else { 0 };
        Some(Received { len: len as usize, is_verified: status >> 22 & 0b10 != 0 })
    }

    /// Takes a transmit descriptor from the device, or keeps it: sending ends there.
    pub fn take_transmit(&self, bus: &impl Bus, position: u64) {
        let wrap = if self.is_last(position) { TRANSMIT_WRAP } else { 0 };
        bus.store(self.at(position) + 4, wrap | SENT);
    }

    /// Gives the device a packet. The first descriptor goes last: the device finds all of the packet, or nothing.
    pub fn give_transmit(&self, bus: &impl Bus, position: u64, pieces: &[Piece]) {
        let control = |offset: u64, piece: &Piece| {
            let is_last = offset + 1 == pieces.len() as u64;
            let wrap = if self.is_last(position + offset) { TRANSMIT_WRAP } else { 0 };
            piece.len & TRANSMIT_LEN | wrap | if is_last { LAST } else { 0 }
        };
        for (offset, piece) in (0..).zip(pieces) {
            let at = self.at(position + offset);
            bus.store(at, piece.address as u32);
            self.store_high(bus, at, piece.address);
            if offset > 0 {
                bus.store(at + 4, control(offset, piece));
            }
        }
        fence(Ordering::SeqCst);
        if let Some(first) = pieces.first() {
            bus.store(self.at(position) + 4, control(0, first));
        }
    }

    /// Whether the packet whose first descriptor this is has left, and whether that failed; `None` while it is the device's.
    pub fn sent(&self, bus: &impl Bus, position: u64) -> Option<bool> {
        let control = bus.load(self.at(position) + 4);
        (control & SENT != 0).then_some(control & SEND_FAILED != 0)
    }
}
