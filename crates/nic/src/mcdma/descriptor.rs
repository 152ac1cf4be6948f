//! The descriptor: 64 bytes in memory that the engine reads, and into which it writes what became of them.
//!
//! ```text
//! 00  next, low            20  app 0
//! 04  next, high           24  app 1
//! 08  buffer, low          28  app 2
//! 0C  buffer, high         2C  app 3
//! 10  -                    30  app 4
//! 14  control              34  -
//! 18  receive: status      38  -
//! 1C  transmit: status     3C  -
//! ```
//!
//! A packet is one descriptor or several; app words ([`words`](crate::mcdma::words)) count in its first when it is transmitted,
//! and in its last when it is received. Whose a descriptor is: the
//! engine's from the doorbell that covers it until its own status says complete.

use crate::bus::Bus;
use crate::mcdma::regs::{mm2s_descriptor as tx, s2mm_descriptor as rx};

// Both directions have the words that a driver writes at the same places.
const _: () = assert!(tx::BYTES == rx::BYTES && tx::NEXT == rx::NEXT && tx::BUFFER == rx::BUFFER);
const _: () = assert!(tx::CONTROL == rx::CONTROL && tx::APP0 == rx::APP0 && tx::APP4 == tx::APP0 + 16);

/// Bytes of a descriptor, and the multiple at which each lies.
pub const SIZE: u64 = tx::BYTES;

/// Status of either direction: what went wrong.
const ERRORS: u32 = rx::STATUS_DEC_ERR | rx::STATUS_SLV_ERR | rx::STATUS_INT_ERR;
const _: () = assert!(ERRORS == tx::STATUS_DEC_ERR | tx::STATUS_SLV_ERR | tx::STATUS_INT_ERR);

/// Writes the words of a descriptor that are written once: where the next one is.
pub fn link(bus: &impl Bus, address: u64, next: u64) {
    bus.store(address + tx::NEXT, low(next));
    bus.store(address + tx::NEXT_MSB, high(next));
}

/// A piece of a packet to transmit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Piece {
    /// Bus address of its bytes.
    pub buffer: u64,
    /// How many.
    pub len: u32,
    /// Whether the packet begins with it.
    pub is_first: bool,
    /// Whether it ends with it.
    pub is_last: bool,
}

impl Piece {
    /// The words from offset 08 on: buffer, reserved, control, two status words.
    pub fn encode(&self) -> [u32; 6] {
        let mut control = self.len & tx::CONTROL_LENGTH;
        control |= if self.is_first { tx::CONTROL_SOF } else { 0 };
        control |= if self.is_last { tx::CONTROL_EOF } else { 0 };
        [low(self.buffer), high(self.buffer), 0, control, 0, 0]
    }

    /// Stores it. App words are stored with the first piece of a packet.
    pub fn store(&self, bus: &impl Bus, address: u64, app: &[u32; 5]) {
        store(bus, address + tx::BUFFER, &self.encode());
        if self.is_first {
            store(bus, address + tx::APP0, app);
        }
    }
}

/// What became of a descriptor that was given for transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmitted {
    /// Whether its bytes were not read as they should.
    pub has_error: bool,
}

impl Transmitted {
    /// `None` while it is the engine's.
    pub fn load(bus: &impl Bus, address: u64) -> Option<Self> {
        let status = bus.load(address + tx::STATUS);
        (status & tx::STATUS_COMPLETE != 0).then_some(Transmitted { has_error: status & ERRORS != 0 })
    }
}

/// Gives the engine a buffer to receive into.
pub fn store_empty(bus: &impl Bus, address: u64, buffer: u64, len: u32) {
    store(bus, address + tx::BUFFER, &[low(buffer), high(buffer), 0, len & rx::CONTROL_LENGTH, 0, 0]);
}

/// What became of a descriptor that was given for reception.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// Bytes written.
    pub len: usize,
    /// Whether a frame begins with it.
    pub is_first: bool,
    /// Whether it ends with it.
    pub is_last: bool,
    /// Whether they were not written as they should.
    pub has_error: bool,
}

impl Received {
    /// Of a status word; `None` while the descriptor is the engine's.
    pub fn decode(status: u32) -> Option<Self> {
        (status & rx::STATUS_COMPLETE != 0).then_some(Received {
            len: (status & rx::STATUS_LENGTH) as usize,
            is_first: status & rx::STATUS_RXSOF != 0,
            is_last: status & rx::STATUS_RXEOF != 0,
            has_error: status & ERRORS != 0,
        })
    }

    /// `None` while it is the engine's.
    pub fn load(bus: &impl Bus, address: u64) -> Option<Self> {
        Received::decode(bus.load(address + rx::STATUS))
    }
}

/// One of the five app words of a descriptor.
pub fn load_app(bus: &impl Bus, address: u64, at: u64) -> u32 {
    bus.load(address + tx::APP0 + 4 * at)
}

fn store(bus: &impl Bus, address: u64, words: &[u32]) {
    for (at, word) in (0..).step_by(4).zip(words) {
        bus.store(address + at, *word);
    }
}

const fn low(address: u64) -> u32 {
    address as u32
}

const fn high(address: u64) -> u32 {
    (address >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_laid_out_as_the_manual_says() {
        let first = Piece { buffer: 0x12_3456_7840, len: 54, is_first: true, is_last: false };
        assert_eq!(first.encode(), [0x3456_7840, 0x12, 0, 0x8000_0036, 0, 0]);
        let last = Piece { len: 1_460, is_first: false, is_last: true, ..first };
        assert_eq!(last.encode(), [0x3456_7840, 0x12, 0, 0x4000_05B4, 0, 0]);
        let alone = Piece { is_first: true, ..last };
        assert_eq!(alone.encode()[3..], [0xC000_05B4, 0, 0]);
    }

    #[test]
    fn a_status_says_whose_the_descriptor_is_and_what_came() {
        let frame = |len| Received { len, is_first: true, is_last: true, has_error: false };
        for (status, expected) in [
            (0, None),
            (0x0C00_0040, None),
            (0x8C00_0040, Some(frame(64))),
            (0x8800_0800, Some(Received { is_last: false, ..frame(2_048) })),
            (0x8400_0010, Some(Received { is_first: false, ..frame(16) })),
            (0x9C00_0040, Some(Received { has_error: true, ..frame(64) })),
            (0xAC00_0040, Some(Received { has_error: true, ..frame(64) })),
            (0xCC00_0040, Some(Received { has_error: true, ..frame(64) })),
        ] {
            assert_eq!(Received::decode(status), expected, "{status:#x}");
        }
    }
}
