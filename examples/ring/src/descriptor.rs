//! The descriptor: 64 bytes in memory that the engine reads, and into which it writes what became of them.
//!
//! ```text
//! 00  next, low            20  app 0
//! 04  next, high           24  app 1  transmit: [11:10] checksum control
//! 08  buffer, low          28  app 2  transmit: [15:0] start value of the sum
//! 0C  buffer, high         2C  app 3  transmit: [15:0] begin, [31:16] insert · receive: [15:0] raw sum
//! 10  -                    30  app 4  receive: [2:0] checksum status
//! 14  control              34  -
//! 18  receive: status      38  -
//! 1C  transmit: status     3C  -
//! ```
//!
//! A packet is one descriptor or several; app words count in its first. Whose a descriptor is: the engine's from the doorbell that
//! covers it until its status says complete.

use crate::bus::Bus;
use linerate_nic::{ChecksumRequest, ChecksumStatus};

/// Bytes of a descriptor, and the multiple at which each lies.
pub const SIZE: u64 = 64;

/// Offset of the address of the next descriptor.
const NEXT: u64 = 0x00;
/// Offset of the first word that is written when a descriptor is given.
const BUFFER: u64 = 0x08;
/// Offset of the status that the engine writes when it has received.
pub const RECEIVE_STATUS: u64 = 0x18;
/// Offset of the status that it writes when it has transmitted.
pub const TRANSMIT_STATUS: u64 = 0x1C;
/// Offset of the app word with the raw sum.
const APP3: u64 = 0x2C;
/// Offset of the app word with the checksum status.
const APP4: u64 = 0x30;

/// Control and receive status: a packet begins. (In control at bit 31, in the status at bit 27.)
const FIRST: u32 = 1 << 31;
/// Control: a packet ends. (In the status at bit 26.)
const LAST: u32 = 1 << 30;
/// Control and status: bytes.
const LENGTH: u32 = (1 << 26) - 1;
/// Status: the engine is done with it.
const COMPLETE: u32 = 1 << 31;
/// Status: no memory there, memory's error, engine's error.
const ERRORS: u32 = 0b111 << 28;
/// Receive status: a frame begins.
const STATUS_FIRST: u32 = 1 << 27;
/// Receive status: a frame ends.
const STATUS_LAST: u32 = 1 << 26;

/// App 1: sum from `begin` to the end, and insert.
const CHECKSUM_PARTIAL: u32 = 1 << 10;

/// Writes the words of a descriptor that are written once: where the next one is.
pub fn link(bus: &impl Bus, address: u64, next: u64) {
    bus.store(address + NEXT, low(next));
    bus.store(address + NEXT + 4, high(next));
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
    /// In the first piece: the checksum to fill in.
    pub checksum: Option<ChecksumRequest>,
}

impl Piece {
    /// The words from offset 08 on: buffer, reserved, control, two status words, five app words.
    pub fn encode(&self) -> [u32; 11] {
        let mut control = self.len & LENGTH;
        control |= if self.is_first { FIRST } else { 0 };
        control |= if self.is_last { LAST } else { 0 };
        let mut words = [0; 11];
        words[..4].copy_from_slice(&[low(self.buffer), high(self.buffer), 0, control]);
        if let Some(request) = self.checksum {
            // The pseudo-header's sum is in the field already, so the unit starts at 0 (app 2).
            let insert = u32::from(request.start) + u32::from(request.offset);
            words[7] = CHECKSUM_PARTIAL;
            words[9] = insert << 16 | u32::from(request.start);
        }
        words
    }

    /// Stores it; what the engine reads only of a packet's first descriptor is left out of the others.
    pub fn store(&self, bus: &impl Bus, address: u64) {
        let words = self.encode();
        let count = if self.is_first { words.len() } else { 6 };
        store(bus, address + BUFFER, &words[..count]);
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
        let status = bus.load(address + TRANSMIT_STATUS);
        (status & COMPLETE != 0).then_some(Transmitted { has_error: status & ERRORS != 0 })
    }
}

/// Gives the engine a buffer to receive into.
pub fn store_empty(bus: &impl Bus, address: u64, buffer: u64, len: u32) {
    store(bus, address + BUFFER, &[low(buffer), high(buffer), 0, len & LENGTH, 0, 0]);
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
        (status & COMPLETE != 0).then_some(Received {
            len: (status & LENGTH) as usize,
            is_first: status & STATUS_FIRST != 0,
            is_last: status & STATUS_LAST != 0,
            has_error: status & ERRORS != 0,
        })
    }

    /// `None` while it is the engine's.
    pub fn load(bus: &impl Bus, address: u64) -> Option<Self> {
        Received::decode(bus.load(address + RECEIVE_STATUS))
    }
}

/// What the checksum unit said of a received frame: its status, and the sum from the 15th byte on.
pub fn load_checksum(bus: &impl Bus, address: u64) -> (ChecksumStatus, u16) {
    (checksum_status(bus.load(address + APP4)), bus.load(address + APP3) as u16)
}

/// The meaning of the three bits of app 4. What was not checked in full counts as not checked: software looks again.
pub fn checksum_status(app4: u32) -> ChecksumStatus {
    match app4 & 0b111 {
        // Nothing; IP good, but layer 4 not looked at; reserved.
        0b000 | 0b001 | 0b100 => ChecksumStatus::Unchecked,
        // IP and TCP good; IP and UDP good.
        0b010 | 0b011 => ChecksumStatus::Good,
        // IP bad; IP good and TCP bad; IP good and UDP bad.
        _ => ChecksumStatus::Bad,
    }
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
        let checksum = Some(ChecksumRequest { start: 34, offset: 16 });
        let first = Piece { buffer: 0x12_3456_7840, len: 54, is_first: true, is_last: false, checksum };
        assert_eq!(first.encode(), [0x3456_7840, 0x12, 0, 0x8000_0036, 0, 0, 0, 0x400, 0, 50 << 16 | 34, 0]);
        let last = Piece { len: 1_460, is_first: false, is_last: true, checksum: None, ..first };
        assert_eq!(last.encode()[..6], [0x3456_7840, 0x12, 0, 0x4000_05B4, 0, 0]);
        let alone = Piece { is_first: true, ..last };
        assert_eq!(alone.encode()[3..], [0xC000_05B4, 0, 0, 0, 0, 0, 0, 0]);
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

    #[test]
    fn every_checksum_status_has_its_meaning() {
        use ChecksumStatus::{Bad, Good, Unchecked};
        let expected = [Unchecked, Unchecked, Good, Good, Unchecked, Bad, Bad, Bad];
        for (code, expected) in (0..).zip(expected) {
            assert_eq!(checksum_status(code), expected, "{code:03b}");
            assert_eq!(checksum_status(0xFFFF_FFF8 | code), expected, "other bits do not count");
        }
    }
}
