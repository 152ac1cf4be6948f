//! Every parser of `wire`: the first byte picks one, the rest is what it reads.
//!
//! Whatever can be read is walked to its end, written back, and read again.
#![no_main]

#[path = "wire/dhcp.rs"]
mod dhcp;
#[path = "wire/icmp.rs"]
mod icmp;
#[path = "wire/ip.rs"]
mod ip;
#[path = "wire/link.rs"]
mod link;
#[path = "wire/sums.rs"]
mod sums;
#[path = "wire/transport.rs"]
mod transport;

use core::net::Ipv6Addr;
use libfuzzer_sys::fuzz_target;

/// Addresses for whatever has a pseudo-header or rules about who speaks to whom.
const ADDRESSES: [Ipv6Addr; 4] = [
    Ipv6Addr::UNSPECIFIED,
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1),
    Ipv6Addr::new(0xfd00, 0x6c72, 0, 0, 0, 0, 0, 4),
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, 4),
];

/// Longest thing that is written back.
const ROOM: usize = 1 << 16;

fuzz_target!(|input: &[u8]| {
    let [choice, bytes @ ..] = input else { return };
    let source = ADDRESSES[usize::from(choice >> 4 & 3)];
    let destination = ADDRESSES[usize::from(choice >> 6)];
    match choice & 15 {
        0 => link::ethernet(bytes),
        1 => link::arp(bytes),
        2 => ip::v4(bytes),
        3 => ip::v6(bytes),
        4 => ip::chain(bytes),
        5 => transport::udp(bytes),
        6 => transport::tcp(bytes),
        7 => transport::tcp_options(bytes),
        8 => icmp::v4(bytes),
        9 => icmp::v6(bytes, source, destination),
        10 => icmp::ndp(bytes, source, destination),
        11 => dhcp::message(bytes),
        12 => dhcp::options(bytes),
        13 => sums::checksum(bytes),
        14 => sums::toeplitz(bytes),
        _ => stack(bytes),
    }
});

/// A frame from Ethernet up, each payload read by what the header below says that it is.
fn stack(frame: &[u8]) {
    use linerate_wire::ethernet::{EtherType, Header};
    let Ok(header) = Header::parse(frame) else { return };
    match header.ether_type() {
        EtherType::IPV4 => ip::v4_up(header.payload()),
        EtherType::IPV6 => ip::v6_up(header.payload()),
        EtherType::ARP => link::arp(header.payload()),
        _ => {}
    }
}
