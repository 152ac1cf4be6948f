//! Captures as pcapng (draft-ietf-opsawg-pcapng): one section, Ethernet interfaces, frames with times in nanoseconds.
//!
//! Only written, not read. Blocks go to a sink in pieces; of a frame there are the bytes before it and after it, so that
//! nobody has to copy it together.

use crate::units::Instant;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;

const OPTION_COMMENT: u16 = 1;
const INTERFACE_NAME: u16 = 2;
const INTERFACE_MAC: u16 = 6;
const INTERFACE_RESOLUTION: u16 = 9;
const PACKET_FLAGS: u16 = 2;

/// Type and length before a block, and its length behind it.
const AROUND: usize = 12;
/// An option of four bytes, and the end of the options.
const PACKET_OPTIONS: usize = 12;

/// Bytes of a packet block before its frame.
pub const HEAD_LEN: usize = 28;
/// Most bytes behind it.
pub const MAX_TAIL_LEN: usize = 3 + PACKET_OPTIONS + 4;

/// From where an interface saw a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seen {
    /// It was received.
    Inbound = 1,
    /// It was sent.
    Outbound = 2,
}

/// Begins a file.
pub fn section(comment: &str, put: &mut impl FnMut(&[u8])) {
    let body = 16 + option_len(comment.len()) + 4;
    block(SECTION_HEADER, body, put, |put| {
        put(&BYTE_ORDER.to_le_bytes());
        // Version 1.0, and a length that nobody knows yet.
        put(&[1, 0, 0, 0]);
        put(&u64::MAX.to_le_bytes());
        option(OPTION_COMMENT, comment.as_bytes(), put);
        put(&[0; 4]);
    });
}

/// Describes the next interface; the first is number 0. At most `snap_len` bytes of its frames are kept, 0 for all.
pub fn interface(name: &str, mac: [u8; 6], snap_len: u32, put: &mut impl FnMut(&[u8])) {
    let body = 8 + option_len(name.len()) + option_len(6) + option_len(1) + 4;
    block(INTERFACE_DESCRIPTION, body, put, |put| {
        // The link type is Ethernet.
        put(&[1, 0, 0, 0]);
        put(&snap_len.to_le_bytes());
        option(INTERFACE_NAME, name.as_bytes(), put);
        option(INTERFACE_MAC, &mac, put);
        option(INTERFACE_RESOLUTION, &[9], put);
        put(&[0; 4]);
    });
}

/// A frame of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// The number of the interface.
    pub interface: u32,
    /// When it passed the interface.
    pub at: Instant,
    /// In which direction.
    pub seen: Seen,
    /// Bytes of the frame.
    pub len: u32,
    /// Bytes of it that are kept.
    pub kept: u32,
}

impl Packet {
    fn padding(&self) -> usize {
        (self.kept as usize).wrapping_neg() % 4
    }

    /// Bytes of the block, the frame included.
    pub fn block_len(&self) -> usize {
        HEAD_LEN + self.kept as usize + self.padding() + PACKET_OPTIONS + 4
    }

    /// What stands before the frame.
    pub fn head(&self) -> [u8; HEAD_LEN] {
        let ns = self.at.as_nanos();
        let words = [
            ENHANCED_PACKET,
            self.block_len() as u32,
            self.interface,
            (ns >> 32) as u32,
            ns as u32,
            self.kept,
            self.len,
        ];
        let mut head = [0; HEAD_LEN];
        for (to, word) in head.as_chunks_mut::<4>().0.iter_mut().zip(words) {
            *to = word.to_le_bytes();
        }
        head
    }

    /// What stands behind it: so many bytes of these.
    pub fn tail(&self) -> ([u8; MAX_TAIL_LEN], usize) {
        let (mut tail, mut len) = ([0; MAX_TAIL_LEN], self.padding());
        let mut put = |bytes: &[u8]| {
            if let Some(to) = tail.get_mut(len..len + bytes.len()) {
                to.copy_from_slice(bytes);
            }
            len += bytes.len();
        };
        option(PACKET_FLAGS, &(self.seen as u32).to_le_bytes(), &mut put);
        put(&[0; 4]);
        put(&(self.block_len() as u32).to_le_bytes());
        (tail, len)
    }
}

/// A block: type, length, body, length.
fn block<P: FnMut(&[u8])>(kind: u32, body: usize, put: &mut P, write: impl FnOnce(&mut P)) {
    let len = (body + AROUND) as u32;
    put(&kind.to_le_bytes());
    put(&len.to_le_bytes());
    write(put);
    put(&len.to_le_bytes());
}

fn option_len(value: usize) -> usize {
    4 + value.next_multiple_of(4)
}

fn option(code: u16, value: &[u8], put: &mut impl FnMut(&[u8])) {
    put(&code.to_le_bytes());
    put(&(value.len() as u16).to_le_bytes());
    put(value);
    put(&[0; 3][..value.len().wrapping_neg() % 4]);
}

#[cfg(test)]
mod tests {
    use super::*;

    extern crate std;
    use std::vec::Vec;

    #[test]
    fn blocks_are_as_long_as_they_say() {
        for len in 0..9 {
            let mut file = Vec::new();
            let mut put = |bytes: &[u8]| file.extend_from_slice(bytes);
            section(&"comment"[..len.min(7)], &mut put);
            interface("eth0", [2, 0, 0, 0, 0, 1], 96, &mut put);
            let at = Instant::from_nanos(0x1_2345_6789);
            let packet = Packet { interface: 0, at, seen: Seen::Outbound, len: 1_500, kept: len as u32 };
            put(&packet.head());
            put(&[0xaa; 8][..len]);
            let (tail, tail_len) = packet.tail();
            put(&tail[..tail_len]);
            let mut rest = &file[..];
            for kind in [SECTION_HEADER, INTERFACE_DESCRIPTION, ENHANCED_PACKET] {
                let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
                let block = word(4) as usize;
                assert_eq!((word(0), word(block - 4) as usize, block % 4), (kind, block, 0));
                if kind == ENHANCED_PACKET {
                    assert_eq!((word(12), word(16), word(20), word(24)), (1, 0x2345_6789, len as u32, 1_500));
                    assert_eq!(block, packet.block_len());
                    let flags = HEAD_LEN + len.next_multiple_of(4) + 4;
                    assert_eq!(word(flags), 2, "outbound");
                }
                rest = &rest[block..];
            }
            assert!(rest.is_empty());
        }
    }
}
