//! Ethernet, VLAN tags and ARP.

use linerate_wire::{arp, ethernet};

/// Reads a frame's header and writes it back.
pub fn ethernet(bytes: &[u8]) {
    let Ok(header) = ethernet::Header::parse(bytes) else { return };
    assert_eq!(header.header_len() + header.payload().len(), bytes.len());
    let builder = ethernet::Builder {
        destination: header.destination(),
        source: header.source(),
        tags: header.tags(),
        ether_type: header.ether_type(),
    };
    let mut out = [0; 22];
    let len = builder.emit(&mut out).expect("22 bytes hold two tags");
    assert_eq!(out[..len], bytes[..len]);
    assert!(builder.emit(&mut out[..len - 1]).is_err());
    let text = format!("{}", header.source());
    assert_eq!(text.parse(), Ok(header.source()));
}

/// Reads a packet and writes it back.
pub fn arp(bytes: &[u8]) {
    let Ok(packet) = arp::Packet::parse(bytes) else { return };
    let builder = arp::Builder {
        operation: packet.operation(),
        sender_mac: packet.sender_mac(),
        sender_ip: packet.sender_ip(),
        target_mac: packet.target_mac(),
        target_ip: packet.target_ip(),
    };
    let mut out = [0; arp::PACKET_LEN];
    assert_eq!(builder.emit(&mut out), Ok(arp::PACKET_LEN));
    assert_eq!(out, bytes[..arp::PACKET_LEN]);
}
