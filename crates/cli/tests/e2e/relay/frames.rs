//! Frames as the relay handles them: whose they are, cutting super-segments, completing checksums, flipping bits, and
//! the router's word that a packet is too big.

use super::plan::Random;
use linerate_wire::checksum::{self, Sum};
use linerate_wire::ethernet::{self, EtherType};
use linerate_wire::icmpv4::{self, UnreachableCode};
use linerate_wire::ip::Protocol;
use linerate_wire::{icmpv6, ipv4, ipv6, tcp};
use std::net::{Ipv4Addr, Ipv6Addr};

/// The router that is not there.
const ROUTER4: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 254);
const ROUTER6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x77, 0, 0, 0, 0, 0, 0xfe);
/// Bytes of a packet that a router quotes: as many as fit every link.
const QUOTE: usize = 500;

/// A frame on its way.
#[derive(Clone, Debug)]
pub struct Wire {
    /// From the Ethernet header on.
    pub bytes: Vec<u8>,
    /// The TCP checksum is left to somebody else.
    pub partial: bool,
    /// Payload bytes of each segment of a super-segment; 0 if it is none.
    pub segment_size: usize,
}

/// Where things are in a TCP frame without VLAN tags and extension headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// IPv6.
    pub v6: bool,
    /// Start of the TCP header.
    pub tcp: usize,
    /// Start of the payload.
    pub payload: usize,
    /// The destination port.
    pub port: u16,
}

const IP: usize = ethernet::HEADER_LEN;

impl Wire {
    /// Where things are; `None` for anything but TCP.
    pub fn layout(&self) -> Option<Layout> {
        let frame = ethernet::Header::parse(&self.bytes).ok()?;
        let (v6, ip_len, segment) = match frame.ether_type() {
            EtherType::IPV4 => {
                let ip = ipv4::Header::parse(frame.payload()).ok()?;
                (ip.protocol() == Protocol::TCP && !ip.is_fragment())
                    .then(|| (false, ip.header_len(), ip.payload()))?
            }
            EtherType::IPV6 => {
                let ip = ipv6::Header::parse(frame.payload()).ok()?;
                (ip.next_header() == Protocol::TCP).then(|| (true, ipv6::HEADER_LEN, ip.payload()))?
            }
            _ => return None,
        };
        let header = tcp::Header::parse(segment).ok()?;
        let tcp = IP + ip_len;
        Some(Layout { v6, tcp, payload: tcp + header.header_len(), port: header.destination_port() })
    }

    /// Length of the longest IP packet in it.
    pub fn packet_len(&self, layout: Layout) -> usize {
        match self.segment_size {
            0 => self.bytes.len() - IP,
            size => layout.payload - IP + size.min(self.bytes.len() - layout.payload),
        }
    }

    /// Computes the checksums of what is an intact TCP frame.
    fn complete(&mut self, layout: Layout) {
        let len = (self.bytes.len() - layout.tcp) as u32;
        let mut sum = pseudo_header(&self.bytes, layout.v6, len);
        let (_, segment) = self.bytes.split_at_mut(layout.tcp);
        segment[tcp::CHECKSUM_OFFSET..tcp::CHECKSUM_OFFSET + 2].fill(0);
        sum.add(segment);
        tcp::set_checksum(segment, sum.finish()).expect("a whole header");
        self.partial = false;
    }

    /// The frames that a network card would make of it, checksums complete.
    pub fn cut(mut self, layout: Layout) -> Vec<Wire> {
        if self.segment_size == 0 {
            if self.partial {
                self.complete(layout);
            }
            return vec![self];
        }
        let (headers, payload) = self.bytes.split_at(layout.payload);
        let pieces = payload.chunks(self.segment_size);
        let last = pieces.len() - 1;
        pieces
            .enumerate()
            .map(|(i, piece)| {
                let bytes = [headers, piece].concat();
                let mut wire = Wire { bytes, partial: true, segment_size: 0 };
                wire.become_segment(layout, i as u32, (i * self.segment_size) as u32, i == last);
                wire
            })
            .collect()
    }

    /// Turns a copy of a super-segment's headers into those of its `number`th segment.
    fn become_segment(&mut self, layout: Layout, number: u32, offset: u32, is_last: bool) {
        let ip_len = (self.bytes.len() - IP) as u16;
        let (front, segment) = self.bytes.split_at_mut(layout.tcp);
        let ip = &mut front[IP..];
        if layout.v6 {
            ip[4..6].copy_from_slice(&(ip_len - ipv6::HEADER_LEN as u16).to_be_bytes());
        } else {
            let id = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(number as u16);
            ip[2..4].copy_from_slice(&ip_len.to_be_bytes());
            ip[4..6].copy_from_slice(&id.to_be_bytes());
            ip[10..12].fill(0);
            let sum = checksum::checksum(ip);
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        let sequence = u32::from_be_bytes([segment[4], segment[5], segment[6], segment[7]]);
        segment[4..8].copy_from_slice(&sequence.wrapping_add(offset).to_be_bytes());
        let mut flags = tcp::Flags(segment[13]);
        if !is_last {
            flags = flags.without(tcp::Flags::FIN).without(tcp::Flags::PSH);
        }
        if number > 0 {
            flags = flags.without(tcp::Flags::CWR);
        }
        segment[13] = flags.0;
        self.complete(layout);
    }

    /// Flips bits behind the Ethernet header. They lie within 16 bits, so that a sum over them always changes.
    pub fn corrupt(&mut self, random: &mut Random) {
        let word = random.within(0, (self.bytes.len() - IP - 1) as u64 / 2) as usize;
        let mask = match random.next() as u16 {
            // All ones and all zeros are the same number in one's complement.
            0 | 0xffff => 1,
            mask => mask,
        };
        let at = IP + 2 * word;
        for (byte, bits) in self.bytes[at..].iter_mut().zip(mask.to_be_bytes()) {
            *byte ^= bits;
        }
    }

    /// What a router tells the sender of a packet that is longer than `mtu`.
    pub fn too_big(&self, layout: Layout, mtu: usize) -> Wire {
        let packet = &self.bytes[IP..];
        let quote = &packet[..packet.len().min(QUOTE)];
        let mut bytes = self.bytes[6..12].to_vec();
        bytes.extend_from_slice(&self.bytes[..6]);
        bytes.extend_from_slice(&self.bytes[12..IP]);
        if layout.v6 {
            too_big6(&mut bytes, quote, mtu)
        } else {
            too_big4(&mut bytes, quote, mtu)
        }
        Wire { bytes, partial: false, segment_size: 0 }
    }
}

fn too_big4(bytes: &mut Vec<u8>, quote: &[u8], mtu: usize) {
    let message = icmpv4::Message::DestinationUnreachable {
        code: UnreachableCode::FRAGMENTATION_NEEDED,
        next_hop_mtu: mtu as u16,
        quoted: icmpv4::Quoted(quote),
    };
    let mut body = vec![0; message.emitted_len()];
    message.emit(&mut body).expect("room");
    let sender = address4(&quote[12..16]);
    let header = ipv4::Builder::new(ROUTER4, sender, Protocol::ICMPV4, body.len());
    let mut ip = vec![0; header.header_len()];
    header.emit(&mut ip).expect("room");
    bytes.extend([ip, body].concat());
}

fn too_big6(bytes: &mut Vec<u8>, quote: &[u8], mtu: usize) {
    let message = icmpv6::Message::PacketTooBig { mtu: mtu as u32, quoted: icmpv6::Quoted(quote) };
    let mut body = vec![0; message.emitted_len()];
    let sender = address6(&quote[8..24]);
    message.emit(ROUTER6, sender, &mut body).expect("room");
    let header = ipv6::Builder::new(ROUTER6, sender, Protocol::ICMPV6, body.len());
    let mut ip = vec![0; ipv6::HEADER_LEN];
    header.emit(&mut ip).expect("room");
    bytes.extend([ip, body].concat());
}

fn pseudo_header(frame: &[u8], v6: bool, len: u32) -> Sum {
    let ip = &frame[IP..];
    if v6 {
        checksum::pseudo_header6(address6(&ip[8..24]), address6(&ip[24..40]), Protocol::TCP.0, len)
    } else {
        checksum::pseudo_header4(address4(&ip[12..16]), address4(&ip[16..20]), Protocol::TCP.0, len)
    }
}

fn address4(bytes: &[u8]) -> Ipv4Addr {
    Ipv4Addr::from(<[u8; 4]>::try_from(bytes).expect("four bytes"))
}

fn address6(bytes: &[u8]) -> Ipv6Addr {
    Ipv6Addr::from(<[u8; 16]>::try_from(bytes).expect("sixteen bytes"))
}
