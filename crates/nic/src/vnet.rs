//! The virtio-net header in front of each frame of a virtio device, and of a TAP or AF_PACKET device of Linux with `VNET_HDR`:
//! checksum and segmentation left to somebody else, both ways.
//!
//! Layout: virtio 1.2 section 5.1.6.

use crate::layers::{Version, ip_header};
use crate::meta::{ChecksumRequest, ChecksumStatus, RxMeta, Segmentation, TxMeta};

/// The order of bytes in a header's words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ByteOrder {
    /// That of the machine: legacy devices, and Linux unless told otherwise.
    Native,
    /// Little-endian: devices since virtio 1.0.
    Little,
}

impl ByteOrder {
    fn bytes(self, word: u16) -> [u8; 2] {
        match self {
            ByteOrder::Native => word.to_ne_bytes(),
            ByteOrder::Little => word.to_le_bytes(),
        }
    }

    fn word(self, bytes: [u8; 2]) -> u16 {
        match self {
            ByteOrder::Native => u16::from_ne_bytes(bytes),
            ByteOrder::Little => u16::from_le_bytes(bytes),
        }
    }
}

/// Length of the short header in bytes.
pub const HEADER_LEN: usize = 10;
/// Length of the header with its `num_buffers` field in bytes.
pub const HEADER_LEN_MERGEABLE: usize = 12;

const FLAG_NEEDS_CSUM: u8 = 1;
const FLAG_DATA_VALID: u8 = 2;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
/// Set beside the type when the super-segment carries ECN's CWR; each segment but the first goes without it.
const GSO_ECN: u8 = 0x80;

const ETHERTYPE_IPV4: &[u8] = &[0x08, 0x00];
const ETHERTYPE_VLAN: &[u8] = &[0x81, 0x00];
const ETHERTYPE_SERVICE_VLAN: &[u8] = &[0x88, 0xa8];
const ETHERNET_LEN: usize = 14;

/// What a header says of the checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Checksum {
    /// Nothing is said: the bytes must be verified.
    #[default]
    Unknown,
    /// The field holds the pseudo-header sum only; the data never left memory. It must not be verified as it stands.
    Partial(ChecksumRequest),
    /// The field is complete and was verified.
    Valid,
}

/// A virtio-net header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VirtioHeader {
    /// State of the layer-4 checksum.
    pub checksum: Checksum,
    /// How the frame is split, or was coalesced.
    pub segmentation: Segmentation,
    /// Length of all headers in bytes; a hint that may be 0.
    pub header_len: u16,
}

/// Why a header was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VirtioError {
    /// Fewer bytes than [`HEADER_LEN`].
    Short,
    /// A kind of super-frame that was never asked for (UDP, or not known).
    Segmentation(u8),
}

impl VirtioHeader {
    /// The header that asks for what `meta` asks for.
    pub fn for_packet(meta: &TxMeta) -> Self {
        VirtioHeader {
            checksum: meta.checksum.map_or(Checksum::Unknown, Checksum::Partial),
            segmentation: meta.segmentation,
            header_len: meta.header_len,
        }
    }

    /// The bytes; take the first [`HEADER_LEN`] for the short form.
    pub fn encode(&self, order: ByteOrder) -> [u8; HEADER_LEN_MERGEABLE] {
        let mut out = [0; HEADER_LEN_MERGEABLE];
        match self.checksum {
            Checksum::Unknown => {}
            Checksum::Partial(request) => {
                out[0] = FLAG_NEEDS_CSUM;
                out[6..8].copy_from_slice(&order.bytes(request.start));
                out[8..10].copy_from_slice(&order.bytes(request.offset));
            }
            Checksum::Valid => out[0] = FLAG_DATA_VALID,
        }
        out[1] = match self.segmentation {
            Segmentation::None => GSO_NONE,
            Segmentation::Tcp4(_) => GSO_TCPV4,
            Segmentation::Tcp6(_) => GSO_TCPV6,
        };
        if out[1] != GSO_NONE {
            out[2..4].copy_from_slice(&order.bytes(self.header_len));
            out[4..6].copy_from_slice(&order.bytes(self.segmentation.segment_size()));
        }
        out
    }

    /// Reads the first [`HEADER_LEN`] bytes.
    pub fn parse(bytes: &[u8], order: ByteOrder) -> Result<Self, VirtioError> {
        let bytes: &[u8; HEADER_LEN] =
            bytes.get(..HEADER_LEN).and_then(|head| head.try_into().ok()).ok_or(VirtioError::Short)?;
        let word = |at: usize| order.word([bytes[at], bytes[at + 1]]);
        let checksum = if bytes[0] & FLAG_NEEDS_CSUM != 0 {
            Checksum::Partial(ChecksumRequest { start: word(6), offset: word(8) })
        } else if bytes[0] & FLAG_DATA_VALID != 0 {
            Checksum::Valid
        } else {
            Checksum::Unknown
        };
        let segmentation = match bytes[1] & !GSO_ECN {
            GSO_NONE => Segmentation::None,
            GSO_TCPV4 => Segmentation::Tcp4(word(4)),
            GSO_TCPV6 => Segmentation::Tcp6(word(4)),
            other => return Err(VirtioError::Segmentation(other)),
        };
        Ok(VirtioHeader { checksum, segmentation, header_len: word(2) })
    }

    /// What to tell the stack of `frame`. `report_valid` is whether receive checksum offload is switched on: without it
    /// only a partial checksum, which nobody could verify, is vouched for.
    ///
    /// The kernel vouches for layer 4 only, but [`ChecksumStatus::Good`] speaks for the IPv4 header as well. So that
    /// one is summed here (20 bytes); a wrong one makes the frame unchecked, and the stack finds out.
    pub fn rx_meta(&self, frame: &[u8], report_valid: bool) -> RxMeta {
        let vouched = match self.checksum {
            Checksum::Partial(_) => true,
            Checksum::Valid => report_valid,
            Checksum::Unknown => false,
        };
        let checksum = if vouched && ipv4_header_is_intact(frame) {
            ChecksumStatus::Good
        } else {
            ChecksumStatus::Unchecked
        };
        RxMeta { checksum, segment_size: self.segmentation.segment_size(), ..RxMeta::default() }
    }
}

/// Whether an IPv4 frame's header checksum is right; true for anything else, which has none.
fn ipv4_header_is_intact(frame: &[u8]) -> bool {
    let at = match frame.get(12..ETHERNET_LEN) {
        Some(ETHERTYPE_IPV4) => ETHERNET_LEN,
        // A tag stands before it.
        Some(ETHERTYPE_VLAN | ETHERTYPE_SERVICE_VLAN) => match ip_header(frame) {
            Some((Version::V4, at)) => at,
            _ => return true,
        },
        _ => return true,
    };
    let Some(words) = frame.get(at).map(|first| usize::from(first & 0x0f)) else { return false };
    if words < 5 {
        return false;
    }
    let Some(header) = frame.get(at..at + words * 4) else { return false };
    // At most 30 words of 16 bits: their sum fits 32 bits, and two folds bring it to 16.
    let sum: u32 = header.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    (folded & 0xffff) + (folded >> 16) == 0xffff
}

#[cfg(test)]
mod tests {
    use super::ByteOrder::{Little, Native};
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn partial() -> Checksum {
        Checksum::Partial(ChecksumRequest { start: 34, offset: 16 })
    }

    fn header(checksum: Checksum, segmentation: Segmentation) -> VirtioHeader {
        let header_len = if segmentation == Segmentation::None { 0 } else { 54 };
        VirtioHeader { checksum, segmentation, header_len }
    }

    #[test]
    fn what_is_written_reads_back() {
        for checksum in [Checksum::Unknown, partial(), Checksum::Valid] {
            for segmentation in [Segmentation::None, Segmentation::Tcp4(1460), Segmentation::Tcp6(1440)] {
                let wanted = header(checksum, segmentation);
                for order in [Native, Little] {
                    let bytes = wanted.encode(order);
                    assert_eq!(VirtioHeader::parse(&bytes, order), Ok(wanted));
                    assert_eq!(VirtioHeader::parse(&bytes[..HEADER_LEN], order), Ok(wanted));
                }
            }
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_virtio_layout() {
        let bytes = header(partial(), Segmentation::Tcp4(1448)).encode(Little);
        let word = u16::to_le_bytes;
        assert_eq!(bytes[..2], [1, 1]);
        assert_eq!(bytes[2..4], word(54));
        assert_eq!(bytes[4..6], word(1448));
        assert_eq!(bytes[6..8], word(34));
        assert_eq!(bytes[8..10], word(16));
        assert_eq!(bytes[10..12], [0, 0]);
    }

    #[test]
    fn refused_headers_say_why() {
        assert_eq!(VirtioHeader::parse(&[0; 9], Native), Err(VirtioError::Short));
        for (kind, wanted) in [(3, 3), (5, 5), (0x83, 3), (7, 7)] {
            let mut bytes = [0; HEADER_LEN];
            bytes[1] = kind;
            assert_eq!(VirtioHeader::parse(&bytes, Native), Err(VirtioError::Segmentation(wanted)));
        }
        let mut ecn = header(partial(), Segmentation::Tcp6(1440)).encode(Native);
        ecn[1] |= GSO_ECN;
        assert_eq!(VirtioHeader::parse(&ecn, Native).map(|h| h.segmentation), Ok(Segmentation::Tcp6(1440)));
    }

    /// An Ethernet frame with the example header of RFC 1071's companion texts: 192.168.0.1 to 192.168.0.199, UDP.
    fn ipv4_frame() -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend_from_slice(ETHERTYPE_IPV4);
        frame.extend_from_slice(&[
            0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0x00, 0x01,
            0xc0, 0xa8, 0x00, 0xc7,
        ]);
        frame
    }

    #[test]
    fn good_speaks_for_the_ipv4_header_too() {
        let check = |checksum, report_valid, frame: &[u8], wanted| {
            let meta = header(checksum, Segmentation::None).rx_meta(frame, report_valid);
            assert_eq!(meta.checksum, wanted, "{checksum:?} report_valid={report_valid}");
        };
        let intact = ipv4_frame();
        let mut broken = ipv4_frame();
        broken[20] ^= 1;
        let mut ipv6 = ipv4_frame();
        ipv6[12..14].copy_from_slice(&[0x86, 0xdd]);
        check(Checksum::Unknown, true, &intact, ChecksumStatus::Unchecked);
        check(Checksum::Valid, true, &intact, ChecksumStatus::Good);
        check(Checksum::Valid, false, &intact, ChecksumStatus::Unchecked);
        check(partial(), false, &intact, ChecksumStatus::Good);
        check(partial(), true, &broken, ChecksumStatus::Unchecked);
        check(Checksum::Valid, true, &ipv6, ChecksumStatus::Good);
        check(Checksum::Valid, true, &intact[..33], ChecksumStatus::Unchecked);
        // Behind tags, too.
        for tags in [&[0x81, 0x00, 0, 5][..], &[0x88, 0xa8, 0, 5, 0x81, 0x00, 0, 7]] {
            let tagged = |frame: &[u8]| [&frame[..12], tags, &frame[12..]].concat();
            check(partial(), true, &tagged(&intact), ChecksumStatus::Good);
            check(partial(), true, &tagged(&broken), ChecksumStatus::Unchecked);
            check(Checksum::Valid, true, &tagged(&broken), ChecksumStatus::Unchecked);
            check(Checksum::Valid, true, &tagged(&ipv6), ChecksumStatus::Good);
        }
        let coalesced = header(partial(), Segmentation::Tcp4(1448)).rx_meta(&intact, true);
        assert_eq!(coalesced.segment_size, 1448);
    }

    proptest! {
        #[test]
        fn any_bytes_parse_or_are_refused(
            bytes in proptest::collection::vec(any::<u8>(), 0..40),
            frame in proptest::collection::vec(any::<u8>(), 0..90),
        ) {
            if let Ok(parsed) = VirtioHeader::parse(&bytes, Native) {
                let meta = parsed.rx_meta(&frame, true);
                prop_assert_eq!(meta.segment_size, parsed.segmentation.segment_size());
            } else {
                prop_assert!(bytes.len() < HEADER_LEN || ![0, 1, 4].contains(&(bytes[1] & !GSO_ECN)));
            }
        }

        #[test]
        fn any_ipv4_start_is_judged_without_panic(frame in proptest::collection::vec(any::<u8>(), 0..90)) {
            let mut frame = frame;
            if frame.len() >= 14 {
                frame[12..14].copy_from_slice(ETHERTYPE_IPV4);
            }
            // No header of 20 bytes, none that is intact.
            prop_assert!(!ipv4_header_is_intact(&frame) || !(14..34).contains(&frame.len()));
        }
    }
}
