//! Frames written by hand, from a station 02:00:00:00:00:02 at 10.0.0.9 / fd00::9 to 10.0.0.1 / fd00::1.
#![allow(dead_code)]

use core::net::{Ipv4Addr, Ipv6Addr};
use linerate_nic::MacAddr;
use linerate_wire::ethernet::{self, EtherType};
use linerate_wire::ip::Protocol;
use linerate_wire::{arp, icmpv4, icmpv6, ipv4, ipv6, ndp, tcp, udp};

pub const HOST_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
pub const PEER_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
pub const HOST4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub const PEER4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);
pub const HOST6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
pub const PEER6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 9);

/// An Ethernet frame.
pub fn ethernet(destination: MacAddr, ether_type: EtherType, payload: &[u8]) -> Vec<u8> {
    let header = ethernet::Builder { destination, source: PEER_MAC, ether_type, ..Default::default() };
    let mut frame = vec![0; header.header_len()];
    header.emit(&mut frame).unwrap();
    frame.extend_from_slice(payload);
    frame
}

/// An IPv4 packet in a frame to the host.
pub fn frame4(header: ipv4::Builder<'_>, payload: &[u8]) -> Vec<u8> {
    let header = ipv4::Builder { payload_len: payload.len(), ..header };
    let mut packet = vec![0; header.header_len()];
    header.emit(&mut packet).unwrap();
    packet.extend_from_slice(payload);
    ethernet(HOST_MAC, EtherType::IPV4, &packet)
}

/// From the peer to the host.
pub fn to_host4(protocol: Protocol) -> ipv4::Builder<'static> {
    ipv4::Builder { dont_fragment: false, ..ipv4::Builder::new(PEER4, HOST4, protocol, 0) }
}

/// An IPv6 packet in a frame to the host.
pub fn frame6(header: ipv6::Builder, payload: &[u8]) -> Vec<u8> {
    let header = ipv6::Builder { payload_len: payload.len(), ..header };
    let mut packet = vec![0; ipv6::HEADER_LEN];
    header.emit(&mut packet).unwrap();
    packet.extend_from_slice(payload);
    ethernet(HOST_MAC, EtherType::IPV6, &packet)
}

/// From the peer to the host.
pub fn to_host6(next_header: Protocol) -> ipv6::Builder {
    ipv6::Builder::new(PEER6, HOST6, next_header, 0)
}

/// An ARP packet of the peer.
pub fn arp(operation: arp::Operation, sender_ip: Ipv4Addr, target_ip: Ipv4Addr) -> Vec<u8> {
    let packet = arp::Builder {
        operation,
        sender_mac: PEER_MAC,
        sender_ip,
        target_mac: MacAddr::default(),
        target_ip,
    };
    let mut bytes = [0; arp::PACKET_LEN];
    packet.emit(&mut bytes).unwrap();
    ethernet(MacAddr::BROADCAST, EtherType::ARP, &bytes)
}

/// An echo request's ICMP part.
pub fn echo4(data: &[u8]) -> Vec<u8> {
    let message = icmpv4::Message::EchoRequest(icmpv4::Echo { identifier: 7, sequence: 9, data });
    let mut bytes = vec![0; message.emitted_len()];
    message.emit(&mut bytes).unwrap();
    bytes
}

/// The same over IPv6.
pub fn echo6(destination: Ipv6Addr, data: &[u8]) -> Vec<u8> {
    let message = icmpv6::Message::EchoRequest(icmpv6::Echo { identifier: 7, sequence: 9, data });
    let mut bytes = vec![0; message.emitted_len()];
    message.emit(PEER6, destination, &mut bytes).unwrap();
    bytes
}

/// A neighbour discovery message of the peer.
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
        ..ipv6::Builder::new(source, destination, Protocol::ICMPV6, bytes.len())
    };
    frame6(header, &bytes)
}

/// The peer's answer to a solicitation from the host.
pub fn advertisement(target: Ipv6Addr, destination: Ipv6Addr) -> Vec<u8> {
    let message =
        ndp::Message::NeighbourAdvertisement { router: false, solicited: true, overrides: true, target };
    ndp(message, &[ndp::NdpOption::TargetLinkLayer(PEER_MAC)], target, destination)
}

/// A UDP datagram of the peer.
pub fn udp4(source_port: u16, destination_port: u16, payload: &[u8]) -> Vec<u8> {
    let header = udp::Builder { source_port, destination_port, ..udp::Builder::default() };
    let mut bytes = vec![0; 8];
    let ip = ipv4::Builder::new(PEER4, HOST4, Protocol::UDP, 8 + payload.len());
    header.emit_with_checksum(&mut bytes, ip.pseudo_header(), payload).unwrap();
    bytes.extend_from_slice(payload);
    bytes
}

/// A TCP segment of the peer over IPv4.
pub fn tcp4(segment: tcp::Builder, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; segment.header_len()];
    segment.emit(&mut bytes).unwrap();
    bytes.extend_from_slice(payload);
    let mut sum = ipv4::Builder::new(PEER4, HOST4, Protocol::TCP, bytes.len()).pseudo_header();
    sum.add(&bytes);
    tcp::set_checksum(&mut bytes, sum.finish()).unwrap();
    frame4(to_host4(Protocol::TCP), &bytes)
}

/// A TCP segment over IPv4 from anybody to the host.
pub fn tcp4_from(source: Ipv4Addr, segment: tcp::Builder, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; segment.header_len()];
    segment.emit(&mut bytes).unwrap();
    bytes.extend_from_slice(payload);
    let header = ipv4::Builder::new(source, HOST4, Protocol::TCP, bytes.len());
    let mut sum = header.pseudo_header();
    sum.add(&bytes);
    tcp::set_checksum(&mut bytes, sum.finish()).unwrap();
    frame4(header, &bytes)
}

/// A TCP segment of the peer over IPv6.
pub fn tcp6(segment: tcp::Builder, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; segment.header_len()];
    segment.emit(&mut bytes).unwrap();
    bytes.extend_from_slice(payload);
    let header = ipv6::Builder::new(PEER6, HOST6, Protocol::TCP, bytes.len());
    let mut sum = header.pseudo_header();
    sum.add(&bytes);
    tcp::set_checksum(&mut bytes, sum.finish()).unwrap();
    frame6(header, &bytes)
}

/// What a frame of the host carries, for the tests' eyes.
#[derive(Debug, PartialEq, Eq)]
pub enum Seen {
    Arp(arp::Operation, Ipv4Addr, Ipv4Addr),
    V4(Protocol, Ipv4Addr, Vec<u8>),
    V6(Protocol, Ipv6Addr, Vec<u8>),
    Other,
}

/// Reads a frame of the host: for IP, the protocol, the destination, and the payload.
pub fn see(frame: &[u8]) -> Seen {
    let header = ethernet::Header::parse(frame).unwrap();
    match header.ether_type() {
        EtherType::ARP => {
            let packet = arp::Packet::parse(header.payload()).unwrap();
            Seen::Arp(packet.operation(), packet.sender_ip(), packet.target_ip())
        }
        EtherType::IPV4 => {
            let ip = ipv4::Header::parse(header.payload()).unwrap();
            assert!(ip.verify_checksum());
            Seen::V4(ip.protocol(), ip.destination(), ip.payload().to_vec())
        }
        EtherType::IPV6 => {
            let ip = ipv6::Header::parse(header.payload()).unwrap();
            Seen::V6(ip.next_header(), ip.destination(), ip.payload().to_vec())
        }
        _ => Seen::Other,
    }
}

/// The payloads of this protocol that the host sent, over either family.
pub fn payloads(frames: &[Vec<u8>], protocol: Protocol) -> Vec<Vec<u8>> {
    let of = |seen| match seen {
        Seen::V4(found, _, payload) | Seen::V6(found, _, payload) if found == protocol => Some(payload),
        _ => None,
    };
    frames.iter().filter_map(|frame| of(see(frame))).collect()
}
