//! A TCP segment as a capture holds it: lengths are those that IP tells, not those that were kept.

use super::reader::Frame;
use linerate_wire::cooked;
use linerate_wire::ethernet::{self, EtherType};
use linerate_wire::ip::{Ecn, Protocol};
use linerate_wire::tcp::{self, Flags, Options, SeqNumber};
use linerate_wire::{ipv4, ipv6, loopback};
use std::net::{IpAddr, SocketAddr};

/// Bytes of timestamps with their padding.
const STAMPS_LEN: u32 = 12;

/// What a frame holds.
#[derive(Clone, Debug)]
pub enum Held {
    /// A TCP segment.
    Segment(Box<Segment>),
    /// A fragment of a TCP segment.
    Fragment,
    /// Something else.
    Other,
    /// What says that it is TCP over IP, and is not, or was cut before its ports.
    Unreadable,
    /// A frame of a link type that is not known.
    UnknownLink(u32),
}

/// A TCP segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Segment {
    /// When it passed, in nanoseconds.
    pub at_ns: u64,
    /// Whence.
    pub from: SocketAddr,
    /// Whither.
    pub to: SocketAddr,
    /// Sequence number of its first byte.
    pub seq: u32,
    /// Acknowledgement number; counts with ACK set.
    pub ack: u32,
    /// Control bits.
    pub flags: Flags,
    /// Window, unscaled.
    pub window: u16,
    /// Options, as far as they were kept.
    pub options: Options,
    /// Bytes that its options take, kept or not.
    pub options_len: u32,
    /// Whether options were cut off.
    pub options_cut: bool,
    /// Where its first SACK block begins, if the capture cut it off.
    pub cut_sack: Option<SeqNumber>,
    /// Bytes of payload that it had.
    pub len: u32,
    /// Whether the host that captured sent it, where that is known.
    pub outgoing: Option<bool>,
    /// Whether a router marked it (RFC 3168).
    pub congested: bool,
    /// Identification of the IPv4 packet.
    pub identification: Option<u16>,
}

impl Segment {
    /// Whether it has these control bits.
    pub fn has(&self, flags: Flags) -> bool {
        self.flags.contains(flags)
    }

    /// Whether it reports data out of order, or twice.
    pub fn has_sack(&self) -> bool {
        !self.options.sack_blocks.is_empty() || self.hides_sack()
    }

    /// Whether it has SACK blocks that the capture cut off: beside timestamps, nothing else makes options of data longer.
    pub fn hides_sack(&self) -> bool {
        self.options_cut
            && !self.has(Flags::SYN)
            && self.options.sack_blocks.is_empty()
            && (self.options_len > STAMPS_LEN || self.cut_sack.is_some())
    }

    /// Sequence numbers that it takes.
    pub fn sequence_len(&self) -> u32 {
        self.len.wrapping_add(u32::from(self.has(Flags::SYN))).wrapping_add(u32::from(self.has(Flags::FIN)))
    }
}

/// An IP packet of a frame.
struct Packet<'a> {
    bytes: &'a [u8],
    /// Bytes that it had at most: what the frame had behind its link header.
    len: u32,
    outgoing: Option<bool>,
}

/// What `frame` holds.
pub fn held(frame: &Frame<'_>) -> Held {
    let known = match link(frame) {
        Ok(known) => known,
        Err(held) => return held,
    };
    match known.bytes.first().map(|byte| byte >> 4) {
        Some(4) => of_ipv4(frame, &known),
        Some(6) => of_ipv6(frame, &known),
        Some(_) => Held::Other,
        None => Held::Unreadable,
    }
}

/// Finds the IP packet behind the link header.
fn link<'a>(frame: &Frame<'a>) -> Result<Packet<'a>, Held> {
    let is_ip = |kind: EtherType| kind == EtherType::IPV4 || kind == EtherType::IPV6;
    let cooked_packet = |header: Result<cooked::Header<'a>, _>| match header {
        Ok(header) if is_ip(header.ether_type()) => Ok((header.payload(), Some(header.is_outgoing()))),
        Ok(_) => Err(Held::Other),
        Err(_) => Err(Held::Unreadable),
    };
    let (bytes, outgoing) = match frame.link {
        0 | 108 => match loopback::Header::parse(frame.data) {
            Ok(header) if header.is_ipv4() || header.is_ipv6() => (header.payload(), None),
            Ok(_) => return Err(Held::Other),
            Err(_) => return Err(Held::Unreadable),
        },
        1 => match ethernet::Header::parse(frame.data) {
            Ok(header) if is_ip(header.ether_type()) => (header.payload(), None),
            _ => return Err(Held::Other),
        },
        // BSD's numbers for raw IP, and those of the registry.
        12 | 14 | 101 | 228 | 229 => (frame.data, None),
        113 => cooked_packet(cooked::Header::parse_v1(frame.data))?,
        276 => cooked_packet(cooked::Header::parse_v2(frame.data))?,
        other => return Err(Held::UnknownLink(other)),
    };
    let before = frame.data.len() - bytes.len();
    Ok(Packet { bytes, len: frame.len.saturating_sub(before as u32), outgoing: frame.outgoing.or(outgoing) })
}

fn of_ipv4(frame: &Frame<'_>, packet: &Packet<'_>) -> Held {
    let Ok(header) = ipv4::Header::parse_quoted(packet.bytes) else { return Held::Unreadable };
    if header.protocol() != Protocol::TCP {
        return Held::Other;
    }
    if header.is_fragment() {
        return Held::Fragment;
    }
    let header_len = header.header_len();
    // A length of 0 is that of a super-frame which had none yet when it was captured.
    let (bytes, total) = match header.total_len() {
        0 => (packet.bytes.get(header_len..).unwrap_or_default(), packet.len),
        // No more than the frame had, whatever its header says.
        told => (header.payload(), u32::from(told).min(packet.len)),
    };
    let ends = (IpAddr::V4(header.source()), IpAddr::V4(header.destination()));
    let len = total.saturating_sub(header_len as u32);
    let mut held = segment(frame, packet, ends, bytes, len, header.ecn());
    if let Held::Segment(segment) = &mut held {
        segment.identification = Some(header.identification());
    }
    held
}

fn of_ipv6(frame: &Frame<'_>, packet: &Packet<'_>) -> Held {
    let Ok(header) = ipv6::Header::parse_quoted(packet.bytes) else { return Held::Unreadable };
    let told = u32::from(header.payload_len());
    // A length of 0 is that of a jumbogram, or of a super-frame which had none yet.
    let (bytes, len) = match told {
        0 => (packet.bytes.get(ipv6::HEADER_LEN..).unwrap_or_default(), packet.len.saturating_sub(40)),
        told => (header.payload(), told.min(packet.len.saturating_sub(40))),
    };
    // The Jumbo Payload option of super-frames is unknown to the chain, and skipped like any other.
    let Ok(chain) = ipv6::walk(header.next_header(), bytes, header.destination().is_multicast()) else {
        return if header.next_header() == Protocol::TCP { Held::Unreadable } else { Held::Other };
    };
    if chain.upper != Protocol::TCP {
        return Held::Other;
    }
    if chain.fragment.is_some() {
        return Held::Fragment;
    }
    let extensions = chain.offset.saturating_sub(ipv6::HEADER_LEN) as u32;
    let ends = (IpAddr::V6(header.source()), IpAddr::V6(header.destination()));
    segment(frame, packet, ends, chain.payload, len.saturating_sub(extensions), header.ecn())
}

fn segment(
    frame: &Frame<'_>,
    packet: &Packet<'_>,
    (source, destination): (IpAddr, IpAddr),
    bytes: &[u8],
    len: u32,
    ecn: Ecn,
) -> Held {
    let Ok(header) = tcp::Header::parse_cut(bytes) else { return Held::Unreadable };
    let Some(payload) = len.checked_sub(header.told_header_len() as u32) else { return Held::Unreadable };
    Held::Segment(Box::new(Segment {
        at_ns: frame.at_ns,
        from: SocketAddr::new(source, header.source_port()),
        to: SocketAddr::new(destination, header.destination_port()),
        seq: header.sequence().0,
        ack: header.acknowledgement().0,
        flags: header.flags(),
        window: header.window(),
        options: header.options(),
        options_len: (header.told_header_len() - tcp::MIN_HEADER_LEN) as u32,
        options_cut: header.told_header_len() > header.header_len(),
        cut_sack: Options::cut_sack(header.options_bytes()),
        len: payload,
        outgoing: packet.outgoing,
        congested: ecn == Ecn::Congested,
        identification: None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Payload of a segment whose IP header tells of `told` bytes of it, in a frame that had `had` and of which `kept` are there.
    fn payload(v6: bool, told: u16, had: usize, kept: usize) -> u32 {
        let len = told + 20;
        let mut data = if v6 {
            [&[0x60, 0, 0, 0], &len.to_be_bytes()[..], &[6, 64], &[1; 16], &[2; 16]].concat()
        } else {
            let total = (len + 20).to_be_bytes();
            [&[0x45, 0], &total[..], &[0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]].concat()
        };
        let headers = data.len() + 20;
        data.extend([3, 232, 0, 80, 0, 0, 0, 9, 0, 0, 0, 0, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
        data.resize(headers + kept, 0);
        let len = (headers + had) as u32;
        let frame = Frame { interface: 0, link: 101, at_ns: 0, len, data: &data, outgoing: None };
        match held(&frame) {
            Held::Segment(segment) => segment.len,
            held => panic!("{held:?}"),
        }
    }

    #[test]
    fn a_segment_is_as_long_as_its_headers_tell_and_its_frame_allows() {
        for v6 in [false, true] {
            assert_eq!(payload(v6, 12, 12, 12), 12);
            assert_eq!(payload(v6, 12, 12, 3), 12, "cut off by the capture");
            assert_eq!(payload(v6, 6, 12, 12), 6, "padding");
            assert_eq!(payload(v6, 97, 12, 12), 12, "more than there was");
            assert_eq!(payload(v6, 97, 0, 0), 0, "more than there was");
        }
    }
}
