//! A DHCP server that gives one address, for an hour.

use core::net::Ipv4Addr;
use linerate_wire::dhcpv4::{self, DhcpOption, MessageType};
use linerate_wire::ethernet::EtherType;
use linerate_wire::ip::Protocol;
use linerate_wire::{ethernet, ipv4, udp};

const GIVEN: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 77);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// The frame that answers one of a client, and whether that is a lease.
pub fn answer(frame: &[u8]) -> Option<(Vec<u8>, bool)> {
    let link = ethernet::Header::parse(frame).ok()?;
    let ip = ipv4::Header::parse(link.payload()).ok()?;
    let datagram = udp::Header::parse(ip.payload()).ok()?;
    if datagram.destination_port() != 67 {
        return None;
    }
    let asked = dhcpv4::Message::parse(datagram.payload()).ok()?;
    let kind = match asked.message_type()? {
        MessageType::Discover => MessageType::Offer,
        MessageType::Request => MessageType::Ack,
        _ => return None,
    };
    let options = [
        DhcpOption::MessageType(kind),
        DhcpOption::ServerIdentifier(SERVER),
        DhcpOption::LeaseTime(3_600),
        DhcpOption::SubnetMask(Ipv4Addr::new(255, 255, 255, 0)),
    ];
    let message = dhcpv4::Builder {
        operation: dhcpv4::Operation::Reply,
        your_ip: GIVEN,
        ..dhcpv4::Builder::request(asked.transaction_id(), link.source(), &options)
    };
    let mut payload = vec![0; message.emitted_len()];
    message.emit(&mut payload).ok()?;
    let ip = ipv4::Builder::new(SERVER, Ipv4Addr::BROADCAST, Protocol::UDP, 8 + payload.len());
    let above = udp::Builder { source_port: 67, destination_port: 68, ..udp::Builder::default() };
    let below = ethernet::Builder {
        destination: linerate_nic::MacAddr::BROADCAST,
        source: linerate_nic::MacAddr([2, 0, 0, 0, 0, 2]),
        ether_type: EtherType::IPV4,
        ..Default::default()
    };
    let mut bytes = vec![0; below.header_len() + ip.header_len() + 8];
    let (head, rest) = bytes.split_at_mut(below.header_len());
    let (packet, datagram) = rest.split_at_mut(ip.header_len());
    below.emit(head).ok()?;
    ip.emit(packet).ok()?;
    above.emit_with_checksum(datagram, ip.pseudo_header(), &payload).ok()?;
    bytes.extend_from_slice(&payload);
    Some((bytes, kind == MessageType::Ack))
}
