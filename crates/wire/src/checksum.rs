//! The Internet checksum (RFC 1071), pseudo-headers, and its update in place (RFC 1624).
//!
//! A [`Sum`] is the ones' complement sum of what was added so far, over any number of pieces of any length: a piece that
//! begins at an odd offset is turned by one byte before it is added. [`Sum::finish`] complements it.
//!
//! # Raw sums
//!
//! Faster code elsewhere (SIMD, a device) takes part through *raw sums*: a 64-bit number that is congruent modulo
//! 0xffff to the sum of the piece's 16-bit words read in the *machine's* byte order, an odd last byte counting as the
//! word that it forms with a zero after it; zero only if all bytes are zero. [`raw_sum`] is the portable version.

use core::net::{Ipv4Addr, Ipv6Addr};

/// A ones' complement sum that grows piece by piece.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Sum {
    /// In the machine's byte order: the words were read so.
    words: u16,
    /// Whether an odd number of bytes has been added.
    odd: bool,
}

impl Sum {
    /// The sum of nothing.
    pub const ZERO: Sum = Sum { words: 0, odd: false };

    /// The sum whose value as a field of a header is `sum`, not complemented: what [`folded`](Self::folded) gave, a
    /// device's raw sum, or the partial sum in a checksum field. An even number of bytes counts as added.
    pub const fn from_folded(sum: u16) -> Sum {
        Sum { words: sum.to_be(), odd: false }
    }

    /// The sum of a piece of `len` bytes whose raw sum (see the module) is `raw`.
    pub const fn from_raw(raw: u64, len: usize) -> Sum {
        Sum { words: fold(raw), odd: len % 2 == 1 }
    }

    /// Adds the next bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.add_raw(raw_sum(bytes), bytes.len());
    }

    /// Adds the next bytes, `raw_sum` giving their raw sum (see the module).
    pub fn add_with(&mut self, bytes: &[u8], raw_sum: impl FnOnce(&[u8]) -> u64) {
        self.add_raw(raw_sum(bytes), bytes.len());
    }

    /// Adds the next `len` bytes, whose raw sum (see the module) is `raw`.
    pub const fn add_raw(&mut self, raw: u64, len: usize) {
        self.append(Sum::from_raw(raw, len));
    }

    /// Adds a 16-bit field.
    pub const fn add_u16(&mut self, value: u16) {
        self.append(Sum::from_folded(value));
    }

    /// Adds a 32-bit field.
    pub const fn add_u32(&mut self, value: u32) {
        self.add_u16((value >> 16) as u16);
        self.add_u16(value as u16);
    }

    /// Adds the sum of the bytes that follow those of `self`.
    pub const fn append(&mut self, next: Sum) {
        let words = if self.odd { next.words.swap_bytes() } else { next.words };
        self.words = add(self.words, words);
        self.odd ^= next.odd;
    }

    /// Takes away bytes that were added: those of the front, so that what remains is the sum of the bytes after them. If
    /// their number is odd, the rest counts as beginning at an even offset again.
    ///
    /// ```
    /// # use linerate_wire::checksum::Sum;
    /// let (mut all, mut front, mut back) = (Sum::ZERO, Sum::ZERO, Sum::ZERO);
    /// all.add(&[1, 2, 3, 4, 5]);
    /// front.add(&[1, 2, 3]);
    /// back.add(&[4, 5]);
    /// assert_eq!(all.without_front(front).folded(), back.folded());
    /// ```
    #[must_use]
    pub const fn without_front(self, front: Sum) -> Sum {
        let words = add(self.words, !front.words);
        let words = if front.odd { words.swap_bytes() } else { words };
        Sum { words, odd: self.odd ^ front.odd }
    }

    /// The sum as the value of a header field, not complemented. 0 only if every byte was 0.
    pub const fn folded(self) -> u16 {
        u16::from_be(self.words)
    }

    /// The checksum: the complement. This is the value for the field of IPv4, ICMP and TCP headers.
    pub const fn finish(self) -> u16 {
        !self.folded()
    }

    /// The checksum for UDP, where 0 would mean "none": 0xffff then (RFC 768, RFC 8200 section 8.1).
    pub const fn finish_udp(self) -> u16 {
        match self.finish() {
            0 => 0xffff,
            checksum => checksum,
        }
    }

    /// Whether this, the sum over everything including the checksum field, says that the checksum is right.
    pub const fn is_valid(self) -> bool {
        self.words == 0xffff
    }
}

/// The raw sum of `bytes` (see the module), in portable code that reads words as wide as the processor's.
pub fn raw_sum(bytes: &[u8]) -> u64 {
    if cfg!(target_pointer_width = "64") {
        let (blocks, rest) = bytes.as_chunks::<BLOCK>();
        add_carry(sum_in_64_bits(blocks), raw_sum_short(rest))
    } else {
        raw_sum_in_words(bytes, sum_in_32_bits)
    }
}

/// A block of words where words lie.
pub type WordBlock = [u32; BLOCK / 4];

/// The raw sum of `bytes` for processors that read words only where words lie, or slower elsewhere; `sum_blocks` adds most of them, in
/// blocks of `N` words.
#[inline]
pub fn raw_sum_in_words<W: Word, const N: usize>(
    bytes: &[u8],
    sum_blocks: impl FnOnce(&[[W; N]]) -> u64,
) -> u64 {
    let (front, words, rest) = bytemuck::pod_align_to::<u8, W>(bytes);
    let (blocks, last) = words.as_chunks();
    let mut sum = last.iter().fold(sum_blocks(blocks), |sum, word| add_carry(sum, (*word).into()));
    sum = add_carry(sum, raw_sum_short(rest));
    if front.len() % 2 == 1 {
        // What begins at an odd offset is turned by one byte.
        sum = fold(sum).swap_bytes().into();
    }
    add_carry(sum, raw_sum_short(front))
}

/// A word that sums are made of: of 32 or 64 bits.
pub trait Word: bytemuck::Pod + Into<u64> {}

impl Word for u32 {}
impl Word for u64 {}

/// Bytes that are added in one round.
const BLOCK: usize = 32;

/// Halves of 32 bits are added to 64-bit sums: they cannot overflow below 2^32 words, the additions do not wait for each
/// other's carry, and compilers turn the loop into vector instructions where the target has them.
fn sum_in_64_bits(blocks: &[[u8; BLOCK]]) -> u64 {
    let mut sums = [0u64; 4];
    for block in blocks {
        let (words, _) = block.as_chunks::<8>();
        for (sum, word) in sums.iter_mut().zip(words) {
            let word = u64::from_ne_bytes(*word);
            // Congruent modulo 0xffff, as 2^32 is 1 modulo 0xffff.
            *sum += (word & 0xffff_ffff) + (word >> 32);
        }
    }
    sums.iter().fold(0, |sum, &part| add_carry(sum, part))
}

/// Each addition takes the carry of the one before, which processors of 32 bits with a carry flag do in one instruction; what
/// a block carries out is counted. Without a flag (RISC-V) each carry is: four instructions a word instead of six.
fn sum_in_32_bits(blocks: &[WordBlock]) -> u64 {
    let (mut sum, mut carries) = (0u32, 0u32);
    for block in blocks {
        let mut carry = false;
        for word in block {
            (sum, carry) = sum.carrying_add(*word, carry);
            if cfg!(target_arch = "riscv32") {
                carries += u32::from(core::mem::take(&mut carry));
            }
        }
        carries += u32::from(carry);
    }
    // Each carry is worth 2^32, which is 1 modulo 0xffff.
    u64::from(sum) + u64::from(carries)
}

/// The same for few bytes, word by word.
#[inline]
pub fn raw_sum_short(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut sum = words.iter().fold(0, |sum, word| add_carry(sum, u64::from_ne_bytes(*word)));
    let (halves, rest) = rest.as_chunks::<4>();
    // One at most.
    for half in halves {
        sum = add_carry(sum, u32::from_ne_bytes(*half).into());
    }
    let last = match *rest {
        [a, b, c] => u64::from(u16::from_ne_bytes([a, b])) + u64::from(u16::from_ne_bytes([c, 0])),
        [a, b] => u16::from_ne_bytes([a, b]).into(),
        [a] => u16::from_ne_bytes([a, 0]).into(),
        _ => return sum,
    };
    add_carry(sum, last)
}

/// The checksum of `bytes`, whose checksum field holds 0.
pub fn checksum(bytes: &[u8]) -> u16 {
    let mut sum = Sum::ZERO;
    sum.add(bytes);
    sum.finish()
}

/// Whether `bytes` with their checksum field sum up as they should.
pub fn verify(bytes: &[u8]) -> bool {
    let mut sum = Sum::ZERO;
    sum.add(bytes);
    sum.is_valid()
}

/// The sum of the IPv4 pseudo-header (RFC 9293 section 3.1, RFC 768). `len` is that of the layer-4 header and
/// payload in bytes; where a device splits a super-segment it may exceed 65,535.
pub const fn pseudo_header4(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, len: u32) -> Sum {
    let mut sum = Sum::ZERO;
    sum.add_u32(source.to_bits());
    sum.add_u32(destination.to_bits());
    sum.add_u16(protocol as u16);
    sum.add_u32(len);
    sum
}

/// The sum of the IPv6 pseudo-header (RFC 8200 section 8.1). `len` is that of the upper-layer header and payload in
/// bytes, `next_header` the upper layer's protocol number, not that of an extension header.
pub const fn pseudo_header6(source: Ipv6Addr, destination: Ipv6Addr, next_header: u8, len: u32) -> Sum {
    let mut sum = Sum::ZERO;
    let (source, destination) = (source.to_bits(), destination.to_bits());
    let mut shift = 0;
    while shift < 128 {
        sum.add_u32((source >> shift) as u32);
        sum.add_u32((destination >> shift) as u32);
        shift += 32;
    }
    sum.add_u32(len);
    sum.add_u16(next_header as u16);
    sum
}

/// The checksum after a 16-bit field changed from `old` to `new` (RFC 1624 section 3, equation 3).
pub const fn update(checksum: u16, old: u16, new: u16) -> u16 {
    !add(add(!checksum, !old), new)
}

/// The checksum after a 32-bit field at an even offset changed from `old` to `new`.
pub const fn update_u32(checksum: u16, old: u32, new: u32) -> u16 {
    let checksum = update(checksum, (old >> 16) as u16, (new >> 16) as u16);
    update(checksum, old as u16, new as u16)
}

/// Ones' complement addition: the carry out of the top comes in at the bottom.
const fn add(a: u16, b: u16) -> u16 {
    let (sum, carry) = a.overflowing_add(b);
    // No overflow: with a carry, the sum is at most 0xfffe.
    sum + carry as u16
}

const fn add_carry(a: u64, b: u64) -> u64 {
    let (sum, carry) = a.overflowing_add(b);
    sum + carry as u64
}

/// Folds to 16 bits; 0 only for 0.
const fn fold(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    sum as u16
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Byte by byte, as the RFC says it.
    fn reference(bytes: &[u8]) -> u16 {
        let mut sum: u32 = 0;
        for (at, &byte) in bytes.iter().enumerate() {
            sum += if at % 2 == 0 { u32::from(byte) << 8 } else { u32::from(byte) };
            if sum > 0xffff {
                sum -= 0xffff;
            }
        }
        !(sum as u16)
    }

    #[test]
    fn the_example_of_rfc_1071_section_3() {
        let mut sum = Sum::ZERO;
        sum.add(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!((sum.folded(), sum.finish()), (0xddf2, 0x220d));
    }

    #[test]
    fn the_example_of_rfc_1624_section_4() {
        // The case where the older equation gave 0xffff.
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn zero_and_all_ones() {
        assert_eq!(checksum(&[]), 0xffff);
        assert_eq!(checksum(&[0; 64]), 0xffff);
        assert_eq!(checksum(&[0xff; 64]), 0);
        let mut sum = Sum::ZERO;
        sum.add(&[0xff; 64]);
        assert_eq!(sum.finish_udp(), 0xffff);
        // Longest possible carry chain.
        assert_eq!(checksum(&[0xff; 65_536]), 0);
        assert_eq!((fold(u64::MAX), fold(0), fold(0xffff), fold(0x1_0000)), (0xffff, 0, 0xffff, 1));
    }

    #[test]
    fn pseudo_headers_are_the_bytes_they_stand_for() {
        let (source, destination) = (Ipv4Addr::new(192, 168, 1, 4), Ipv4Addr::new(10, 250, 3, 9));
        let bytes = [192, 168, 1, 4, 10, 250, 3, 9, 0, 6, 0x12, 0x34];
        assert_eq!(pseudo_header4(source, destination, 6, 0x1234).finish(), reference(&bytes));
        let source: Ipv6Addr = "fd00:6c72::4".parse().expect("an address");
        let destination: Ipv6Addr = "2001:db8:1:2:3:4:5:6".parse().expect("an address");
        let mut bytes = [0; 40];
        bytes[..16].copy_from_slice(&source.octets());
        bytes[16..32].copy_from_slice(&destination.octets());
        bytes[32..].copy_from_slice(&[0, 1, 0x12, 0x34, 0, 0, 0, 58]);
        assert_eq!(pseudo_header6(source, destination, 58, 0x1_1234).finish(), reference(&bytes));
    }

    proptest! {
        /// Both ways to add words say the same, whatever the processor, and wherever the bytes lie.
        #[test]
        fn words_of_32_and_of_64_bits_say_the_same(
            bytes in prop_oneof![vec(any::<u8>(), 0..2_000), vec(prop_oneof![Just(0), Just(0xff)], 0..2_000)],
            skip in 0usize..8,
        ) {
            let bytes = bytes.get(skip..).unwrap_or_default();
            let (blocks, rest) = bytes.as_chunks::<BLOCK>();
            let (narrow, wide) = (raw_sum_in_words(bytes, sum_in_32_bits), add_carry(sum_in_64_bits(blocks), raw_sum_short(rest)));
            let one_by_one = |blocks: &[[u64; 8]]| blocks.as_flattened().iter().fold(0, |sum, &word| add_carry(sum, word));
            prop_assert_eq!(fold(narrow), fold(wide));
            prop_assert_eq!(fold(narrow), fold(raw_sum_in_words(bytes, one_by_one)));
            prop_assert_eq!(narrow == 0, bytes.iter().all(|byte| *byte == 0));
        }

        #[test]
        fn any_bytes_at_any_alignment(bytes in vec(any::<u8>(), 0..300), skip in 0usize..16) {
            let bytes = bytes.get(skip..).unwrap_or_default();
            prop_assert_eq!(checksum(bytes), reference(bytes));
        }

        #[test]
        fn pieces_sum_as_the_whole(pieces in vec(vec(any::<u8>(), 0..40), 0..8)) {
            let whole = pieces.concat();
            let (mut sum, mut appended) = (Sum::ZERO, Sum::ZERO);
            for piece in &pieces {
                sum.add_with(piece, raw_sum);
                let mut part = Sum::ZERO;
                part.add(piece);
                appended.append(part);
            }
            prop_assert_eq!(sum.finish(), reference(&whole));
            prop_assert_eq!(appended, sum);
        }

        #[test]
        fn the_front_can_be_taken_away(front in vec(any::<u8>(), 0..40), back in vec(any::<u8>(), 1..40)) {
            let (mut all, mut taken) = (Sum::ZERO, Sum::ZERO);
            all.add(&front);
            taken.add(&front);
            all.add(&back);
            // The two zeros of ones' complement are the same sum.
            prop_assert_eq!(all.without_front(taken).folded() % 0xffff, !reference(&back) % 0xffff);
        }

        #[test]
        fn a_written_checksum_verifies(mut bytes in vec(any::<u8>(), 4..200), flip in any::<prop::sample::Index>()) {
            bytes[2..4].fill(0);
            let sum = checksum(&bytes);
            bytes[2..4].copy_from_slice(&sum.to_be_bytes());
            prop_assert!(verify(&bytes));
            let at = flip.index(bytes.len());
            bytes[at] ^= 0x10;
            prop_assert!(!verify(&bytes));
        }

        #[test]
        fn updates_equal_recomputing(mut bytes in vec(any::<u8>(), 20), value: u16, wide: u32) {
            bytes[0] |= 1;
            bytes[10..12].fill(0);
            let before = checksum(&bytes);
            let old = u16::from_be_bytes([bytes[4], bytes[5]]);
            bytes[4..6].copy_from_slice(&value.to_be_bytes());
            let updated = update(before, old, value);
            prop_assert_eq!(updated, reference(&bytes));
            let old = u32::from_be_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]);
            bytes[12..16].copy_from_slice(&wide.to_be_bytes());
            prop_assert_eq!(update_u32(updated, old, wide), reference(&bytes));
        }

        #[test]
        fn folded_sums_come_back(bytes in vec(any::<u8>(), 0..20), more in vec(any::<u8>(), 0..20)) {
            let even = &bytes[..bytes.len() / 2 * 2];
            let mut sum = Sum::ZERO;
            sum.add(even);
            let mut again = Sum::from_folded(sum.folded());
            sum.add(&more);
            again.add(&more);
            prop_assert_eq!(sum, again);
        }
    }
}
