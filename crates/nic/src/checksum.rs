//! The Internet checksum over headers and gather lists, with the fastest code that the processor has.
//!
//! The arithmetic is `linerate_wire::checksum`'s ([`Sum`]); this module only chooses who reads the bytes.

use crate::chunk::Chunk;
use crate::frame::Frame;
use crate::layers::{self, put};
use crate::meta::{ChecksumRequest, ChecksumStatus};
use crate::tx::TxPacket;
use linerate_wire::checksum::{Sum, raw_sum_short};
use linerate_wire::udp;

/// Not more bytes than this are summed word by word: nearly all headers.
const HEADER: usize = 64;

/// The raw sum of `bytes`, as `linerate_wire::checksum` defines it: to be given to [`Sum::add_raw`].
#[inline]
pub fn raw_sum(bytes: &[u8]) -> u64 {
    if bytes.len() <= HEADER {
        return raw_sum_short(bytes);
    }
    #[cfg(all(target_arch = "arm", target_has_atomic = "32"))]
    return crate::checksum_arm::raw_sum(bytes);
    #[cfg(target_arch = "x86_64")]
    if let Some(sum) = crate::checksum_avx2::raw_sum(bytes) {
        return sum;
    }
    #[cfg(target_arch = "aarch64")]
    return crate::checksum_aarch64::raw_sum(bytes);
    #[cfg(not(any(all(target_arch = "arm", target_has_atomic = "32"), target_arch = "aarch64")))]
    linerate_wire::checksum::raw_sum(bytes)
}

/// Adds the next `bytes` to `sum`.
pub fn add(sum: &mut Sum, bytes: &[u8]) {
    sum.add_raw(raw_sum(bytes), bytes.len());
}

/// The sum of `bytes` from an even offset on.
pub fn sum(bytes: &[u8]) -> Sum {
    Sum::from_raw(raw_sum(bytes), bytes.len())
}

/// Does what a device would do for `request`: sums from its start to the end of the packet (headers in `header`, payload
/// in `chunks`), complements, and writes the field. For UDP a result of 0 is written as 0xffff, which is the same number in
/// one's complement and does not mean "no checksum" (RFC 768). `None` when the field lies outside of `header`.
pub fn fill(header: &mut [u8], chunks: &[Chunk], request: ChecksumRequest) -> Option<()> {
    let start = usize::from(request.start);
    let field = start.checked_add(usize::from(request.offset))?;
    if field + 2 > header.len() {
        return None;
    }
    let mut total = sum(header.get(start..)?);
    for chunk in chunks {
        add(&mut total, chunk.bytes());
    }
    header
        .get_mut(field..field + 2)?
        .copy_from_slice(&field_value(total, request.offset.into()).to_be_bytes());
    Some(())
}

/// The value for a checksum field at `offset` in layer 4: the complement of the sum; for UDP never 0, which would say
/// that there is none (RFC 768, RFC 8200 section 8.1).
pub fn field_value(sum: Sum, offset: usize) -> u16 {
    if offset == udp::CHECKSUM_OFFSET { sum.finish_udp() } else { sum.finish() }
}

/// Writes the checksum of the IPv4 header at `from..to`.
pub(crate) fn set_ipv4_checksum(header: &mut [u8], from: usize, to: usize) {
    put(header, from + 10, &[0, 0]);
    let sum = self::sum(header.get(from..to).unwrap_or_default());
    put(header, from + 10, &sum.finish().to_be_bytes());
}

/// What a device that verifies checksums says of a whole `frame`: the IPv4 header's, and that of TCP, UDP, ICMP or ICMPv6.
/// [`ChecksumStatus::Unchecked`] for fragments, other protocols, and what cannot be parsed. For simulated devices.
pub fn verify_frame(frame: &Frame) -> ChecksumStatus {
    let layers = layers::parse(frame.data.bytes(), frame.len());
    layers.map_or(ChecksumStatus::Unchecked, |layers| crate::verify::verify(frame, &layers))
}

/// Does in software what `packet` asks of the device, and takes the request back; nothing where there is none. False
/// when the request lies outside of the headers; it is kept then.
pub fn fill_packet(packet: &mut TxPacket) -> bool {
    let Some(request) = packet.meta.checksum else { return true };
    let (header, chunks) = packet.parts_mut();
    let filled = fill(header, chunks, request).is_some();
    if filled {
        packet.meta.checksum = None;
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    /// RFC 1071 word by word, with the carry put back each time.
    fn naive(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for (i, byte) in bytes.iter().enumerate() {
            sum += u32::from(*byte) << if i % 2 == 0 { 8 } else { 0 };
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    #[test]
    fn only_udp_writes_a_sum_of_zero_as_its_complement() {
        let all_ones = sum(&[0xff, 0xff]);
        assert_eq!(field_value(all_ones, linerate_wire::tcp::CHECKSUM_OFFSET), 0);
        assert_eq!(field_value(all_ones, udp::CHECKSUM_OFFSET), 0xffff);
    }

    fn check(bytes: &[u8]) {
        let expected = naive(bytes);
        let portable = Sum::from_raw(linerate_wire::checksum::raw_sum(bytes), bytes.len());
        assert_eq!(portable.folded(), expected, "portable, {} bytes", bytes.len());
        assert_eq!(sum(bytes).folded(), expected, "chosen, {} bytes", bytes.len());
    }

    #[test]
    fn the_example_of_rfc_1071() {
        assert_eq!(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]).folded(), 0xddf2);
    }

    #[test]
    fn every_length_at_every_alignment_agrees() {
        let mut state = 1u32;
        let noise: Vec<u8> = (0..4096 + 33)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            })
            .collect();
        for len in 0..=4096 {
            for offset in [0, 1, 2, 3, 7, 31] {
                check(&noise[offset..offset + len]);
            }
        }
    }

    #[test]
    fn carries_survive_the_largest_and_the_smallest_words() {
        for byte in [0, 0xff] {
            for len in [127, 128, 129, 65_535, 65_536, 300_001] {
                check(&alloc::vec![byte; len]);
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_agree(bytes in proptest::collection::vec(any::<u8>(), 0..4200), offset in 0usize..70) {
            check(&bytes[offset.min(bytes.len())..]);
        }

        #[test]
        fn any_cut_into_pieces_gives_the_same_sum(
            bytes in proptest::collection::vec(any::<u8>(), 0..600),
            mut cuts in proptest::collection::vec(0usize..600, 0..6),
        ) {
            cuts.iter_mut().for_each(|cut| *cut = (*cut).min(bytes.len()));
            cuts.push(bytes.len());
            cuts.sort_unstable();
            let (mut sum, mut from) = (Sum::ZERO, 0);
            for cut in cuts {
                add(&mut sum, &bytes[from..cut]);
                from = cut;
            }
            prop_assert_eq!(sum.folded(), naive(&bytes));
        }
    }

    #[test]
    fn whole_frames_are_judged() {
        let pool = crate::pool::Pool::new(1, 64);
        let check = |change: fn(&mut [u8]), expected| {
            // UDP from 10.0.0.1:1 to 10.0.0.2:2 with four bytes of payload.
            let mut bytes = [0; 46];
            bytes[12..34].copy_from_slice(&[
                8, 0, 0x45, 0, 0, 32, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
            ]);
            bytes[34..46].copy_from_slice(&[0, 1, 0, 2, 0, 12, 0, 0, 9, 8, 7, 6]);
            let ip = sum(&bytes[14..34]).finish();
            bytes[24..26].copy_from_slice(&ip.to_be_bytes());
            let mut udp = sum(&bytes[26..46]);
            add(&mut udp, &[0, 17, 0, 12]);
            bytes[40..42].copy_from_slice(&udp.finish().to_be_bytes());
            change(&mut bytes);
            let mut buffer = pool.take().unwrap();
            buffer.bytes_mut()[..46].copy_from_slice(&bytes);
            let frame = Frame::new(buffer.freeze(0..46), crate::meta::RxMeta::default());
            assert_eq!(verify_frame(&frame), expected);
        };
        check(|_| {}, ChecksumStatus::Good);
        check(|bytes| bytes[45] ^= 1, ChecksumStatus::Bad);
        check(|bytes| bytes[22] ^= 1, ChecksumStatus::Bad);
        check(|bytes| bytes[13] = 6, ChecksumStatus::Unchecked);
    }

    #[test]
    fn a_request_outside_of_the_header_changes_nothing() {
        for (start, offset) in [(0, 39), (39, 0), (41, 0), (u16::MAX, u16::MAX)] {
            let mut header = [7; 40];
            assert_eq!(fill(&mut header, &[], ChecksumRequest { start, offset }), None);
            assert_eq!(header, [7; 40]);
        }
    }

    #[test]
    fn for_udp_alone_a_result_of_zero_is_written_as_all_ones() {
        let check = |offset, expected| {
            let mut header = [0; 10];
            header[..2].fill(0xff);
            let chunks = [Chunk::constant(&[0]), Chunk::constant(&[])];
            fill(&mut header, &chunks, ChecksumRequest { start: 0, offset });
            assert_eq!(header[usize::from(offset)], expected);
        };
        check(6, 0xff);
        check(2, 0);
        check(8, 0);
    }
}
