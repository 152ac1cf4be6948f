//! Frames of an attacker: any source, any destination, any nonsense; and what the victim sends, read again.

use linerate_sim::MacAddr;
use linerate_wire::checksum::{checksum, pseudo_header4, pseudo_header6};
use linerate_wire::ethernet::{self, EtherType};
use linerate_wire::ip::Protocol;
use linerate_wire::ipv6::Fragment;
use linerate_wire::tcp::{self, Flags, Options, SeqNumber, Timestamps};
use linerate_wire::{arp, ipv4, ipv6, ndp};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The host under attack.
pub const VICTIM_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
/// Its addresses.
pub const VICTIM4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub const VICTIM6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
/// The host that transfers data with the victim.
pub const BYSTANDER4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
pub const BYSTANDER6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);
/// The attacker, who is also the victim's default router: the way by which forged sources come.
pub const ROUTER_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xfe]);
pub const ROUTER4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 254);
pub const ROUTER6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0xfe);

/// An Ethernet frame from the attacker's station.
pub fn ethernet(destination: MacAddr, ether_type: EtherType, payload: &[u8]) -> Vec<u8> {
    let header = ethernet::Builder { destination, source: ROUTER_MAC, ether_type, ..Default::default() };
    let mut frame = vec![0; header.header_len()];
    header.emit(&mut frame).unwrap();
    frame.extend_from_slice(payload);
    frame
}

/// An IPv4 packet to the victim's station.
pub fn packet4(header: ipv4::Builder<'_>, payload: &[u8]) -> Vec<u8> {
    let header = ipv4::Builder { payload_len: payload.len(), ..header };
    let mut packet = vec![0; header.header_len()];
    header.emit(&mut packet).unwrap();
    packet.extend_from_slice(payload);
    ethernet(VICTIM_MAC, EtherType::IPV4, &packet)
}

/// An IPv6 packet to the victim's station.
pub fn packet6(header: ipv6::Builder, payload: &[u8]) -> Vec<u8> {
    let header = ipv6::Builder { payload_len: payload.len(), ..header };
    let mut packet = vec![0; ipv6::HEADER_LEN];
    header.emit(&mut packet).unwrap();
    packet.extend_from_slice(payload);
    ethernet(VICTIM_MAC, EtherType::IPV6, &packet)
}

/// A packet of either family.
pub fn packet(source: IpAddr, destination: IpAddr, protocol: Protocol, payload: &[u8]) -> Vec<u8> {
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            packet4(ipv4::Builder::new(source, destination, protocol, 0), payload)
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            packet6(ipv6::Builder::new(source, destination, protocol, 0), payload)
        }
        _ => unreachable!("both are of one family"),
    }
}

/// A TCP segment with its checksum.
pub fn segment(source: SocketAddr, destination: SocketAddr, segment: tcp::Builder, data: &[u8]) -> Vec<u8> {
    let (source_port, destination_port) = (source.port(), destination.port());
    let segment = tcp::Builder { source_port, destination_port, ..segment };
    let mut bytes = vec![0; segment.header_len()];
    segment.emit(&mut bytes).unwrap();
    bytes.extend_from_slice(data);
    finish_segment(source.ip(), destination.ip(), bytes)
}

/// A TCP segment with these 4 to 40 bytes for options, whatever they say.
pub fn segment_with(
    source: SocketAddr,
    destination: SocketAddr,
    header: tcp::Builder,
    options: &[u8],
) -> Vec<u8> {
    let (source_port, destination_port) = (source.port(), destination.port());
    let header = tcp::Builder { source_port, destination_port, options: Options::default(), ..header };
    let mut bytes = vec![0; 20];
    header.emit(&mut bytes).unwrap();
    bytes.extend_from_slice(options);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes[12] = ((bytes.len() / 4) as u8) << 4;
    finish_segment(source.ip(), destination.ip(), bytes)
}

fn finish_segment(source: IpAddr, destination: IpAddr, mut bytes: Vec<u8>) -> Vec<u8> {
    let len = bytes.len() as u32;
    let mut sum = match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => pseudo_header4(source, destination, 6, len),
        (IpAddr::V6(source), IpAddr::V6(destination)) => pseudo_header6(source, destination, 6, len),
        _ => unreachable!("both are of one family"),
    };
    sum.add(&bytes);
    tcp::set_checksum(&mut bytes, sum.finish()).unwrap();
    packet(source, destination, Protocol::TCP, &bytes)
}

/// The options of a client of today.
pub fn modern() -> Options {
    Options {
        mss: Some(1_460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps { value: 50_000, echo: 0 }),
        ..Options::default()
    }
}

/// A segment with these flags and numbers.
pub fn with(flags: Flags, sequence: u32, acknowledgement: u32) -> tcp::Builder {
    tcp::Builder {
        flags,
        sequence: SeqNumber(sequence),
        acknowledgement: SeqNumber(acknowledgement),
        window: 1_000,
        ..tcp::Builder::default()
    }
}

/// A fragment of either family: at `offset` (a multiple of 8) of the datagram `id` of this protocol.
pub fn fragment(
    source: IpAddr,
    protocol: Protocol,
    id: u32,
    (offset, more): (u16, bool),
    data: &[u8],
) -> Vec<u8> {
    match source {
        IpAddr::V4(source) => {
            let header = ipv4::Builder {
                identification: id as u16,
                fragment_offset: offset,
                more_fragments: more,
                dont_fragment: false,
                ..ipv4::Builder::new(source, VICTIM4, protocol, 0)
            };
            packet4(header, data)
        }
        IpAddr::V6(source) => {
            let mut bytes = vec![0; Fragment::LEN];
            let header = Fragment { next_header: protocol, offset, more, identification: id };
            header.emit(&mut bytes).unwrap();
            bytes.extend_from_slice(data);
            packet6(ipv6::Builder::new(source, VICTIM6, Protocol::FRAGMENT, 0), &bytes)
        }
    }
}

/// An ARP packet to the victim, in a frame of the station that it names.
pub fn arp(operation: arp::Operation, sender: (MacAddr, Ipv4Addr), target: Ipv4Addr) -> Vec<u8> {
    let packet = arp::Builder {
        operation,
        sender_mac: sender.0,
        sender_ip: sender.1,
        target_mac: VICTIM_MAC,
        target_ip: target,
    };
    let mut bytes = [0; arp::PACKET_LEN];
    packet.emit(&mut bytes).unwrap();
    let mut frame = ethernet(VICTIM_MAC, EtherType::ARP, &bytes);
    frame[6..12].copy_from_slice(&sender.0.0);
    frame
}

/// A neighbour discovery message.
pub fn ndp(
    message: ndp::Message,
    options: &[ndp::NdpOption<'_>],
    source: Ipv6Addr,
    destination: Ipv6Addr,
) -> Vec<u8> {
    let mut bytes = vec![0; message.emitted_len(options)];
    message.emit(options, source, destination, &mut bytes).unwrap();
    let header = ipv6::Builder {
        hop_limit: ndp::HOP_LIMIT,
        ..ipv6::Builder::new(source, destination, Protocol::ICMPV6, 0)
    };
    packet6(header, &bytes)
}

/// An ICMP error of either family from the router: type, code, the four bytes after the checksum, the packet quoted.
pub fn icmp_error(is_v6: bool, (kind, code): (u8, u8), rest: u32, quoted: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind, code, 0, 0];
    bytes.extend_from_slice(&rest.to_be_bytes());
    bytes.extend_from_slice(quoted);
    if is_v6 {
        let mut sum = pseudo_header6(ROUTER6, VICTIM6, Protocol::ICMPV6.0, bytes.len() as u32);
        sum.add(&bytes);
        bytes[2..4].copy_from_slice(&sum.finish().to_be_bytes());
        packet(ROUTER6.into(), VICTIM6.into(), Protocol::ICMPV6, &bytes)
    } else {
        let sum = checksum(&bytes);
        bytes[2..4].copy_from_slice(&sum.to_be_bytes());
        packet(ROUTER4.into(), VICTIM4.into(), Protocol::ICMPV4, &bytes)
    }
}

/// A TCP segment of the victim as the attacker reads it.
#[derive(Clone, Copy, Debug)]
pub struct Heard {
    pub port: u16,
    pub seq: SeqNumber,
    pub ack: SeqNumber,
    pub flags: Flags,
    pub options: Options,
    pub payload_len: usize,
}

/// Reads a TCP segment in a frame of either family.
pub fn hear(frame: &[u8]) -> Option<Heard> {
    let frame = ethernet::Header::parse(frame).ok()?;
    let bytes = match frame.ether_type() {
        EtherType::IPV4 => ipv4::Header::parse(frame.payload()).ok()?.payload(),
        EtherType::IPV6 => ipv6::Header::parse(frame.payload()).ok()?.payload(),
        _ => return None,
    };
    let header = tcp::Header::parse(bytes).ok()?;
    Some(Heard {
        port: header.destination_port(),
        seq: header.sequence(),
        ack: header.acknowledgement(),
        flags: header.flags(),
        options: header.options(),
        payload_len: header.payload().len(),
    })
}
