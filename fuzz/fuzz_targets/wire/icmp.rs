//! ICMP for both families, and neighbour discovery.

use crate::{ROOM, ip};
use core::net::Ipv6Addr;
use linerate_wire::{icmpv4, icmpv6, ndp};

/// Reads a message and the packet that it quotes, and writes it back.
pub fn v4(bytes: &[u8]) {
    let Ok(message) = icmpv4::Message::parse(bytes) else { return };
    let _ = (message.is_error(), icmpv4::verify_checksum(bytes));
    match message {
        icmpv4::Message::DestinationUnreachable { quoted, .. }
        | icmpv4::Message::TimeExceeded { quoted, .. }
        | icmpv4::Message::ParameterProblem { quoted, .. } => {
            let _ = quoted.header();
            ip::v4(quoted.0);
        }
        _ => {}
    }
    let mut out = vec![0; message.emitted_len()];
    assert_eq!((message.emit(&mut out), out.len()), (Ok(out.len()), bytes.len()));
    assert!(icmpv4::verify_checksum(&out));
    assert_eq!(icmpv4::Message::parse(&out), Ok(message));
}

/// Reads a message and the packet that it quotes, and writes it back.
pub fn v6(bytes: &[u8], source: Ipv6Addr, destination: Ipv6Addr) {
    let Ok(message) = icmpv6::Message::parse(bytes) else { return };
    let _ = (message.is_error(), icmpv6::verify_checksum(source, destination, bytes));
    match message {
        icmpv6::Message::DestinationUnreachable { quoted, .. }
        | icmpv6::Message::PacketTooBig { quoted, .. }
        | icmpv6::Message::TimeExceeded { quoted, .. }
        | icmpv6::Message::ParameterProblem { quoted, .. } => {
            let _ = quoted.header();
            ip::v6(quoted.0);
        }
        _ => {}
    }
    let mut out = vec![0; message.emitted_len()];
    assert_eq!((message.emit(source, destination, &mut out), out.len()), (Ok(out.len()), bytes.len()));
    assert!(icmpv6::verify_checksum(source, destination, &out));
    assert_eq!(icmpv6::Message::parse(&out), Ok(message));
}

/// Reads and validates a message, and writes it back.
pub fn ndp(bytes: &[u8], source: Ipv6Addr, destination: Ipv6Addr) {
    let Ok(packet) = ndp::Packet::parse(bytes, source, destination, ndp::HOP_LIMIT) else { return };
    let options: Vec<_> = packet.options().collect();
    let mut out = [0; ROOM];
    let len = packet.message().emit(&options, source, destination, &mut out).expect("as long as it was");
    assert_eq!(len, bytes.len());
    assert!(icmpv6::verify_checksum(source, destination, &out[..len]));
    let again =
        ndp::Packet::parse(&out[..len], source, destination, ndp::HOP_LIMIT).expect("what was written");
    assert_eq!(again.message(), packet.message());
    assert!(again.options().eq(packet.options()));
    assert_eq!(
        (again.source_link_layer(), again.target_link_layer()),
        (packet.source_link_layer(), packet.target_link_layer())
    );
}
