//! What a router says of packets that are too long for the next link.

use crate::parcel::ip_offset;
use linerate_wire::checksum::checksum;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The message to the sender of `frame`, from its next hop's Ethernet address; `None` if none is due: for what is not IP,
/// for IPv4 packets that may be fragmented, for fragments, and for ICMP errors (RFC 1122 section 3.2.2, RFC 4443
/// section 2.4).
pub(crate) fn too_long(frame: &[u8], mtu: usize, v4: Ipv4Addr, v6: Ipv6Addr) -> Option<Vec<u8>> {
    let (is_v4, ip) = ip_offset(frame)?;
    let packet = frame.get(ip..)?;
    let mut message = Vec::with_capacity(ip + 1_280);
    message.extend_from_slice(&frame[6..12]);
    message.extend_from_slice(&frame[..6]);
    message.extend_from_slice(&frame[12..ip]);
    if is_v4 {
        fragmentation_needed(packet, mtu, v4, message)
    } else {
        packet_too_big(packet, mtu, v6, message)
    }
}

/// RFC 1191 section 4.
fn fragmentation_needed(
    packet: &[u8],
    mtu: usize,
    router: Ipv4Addr,
    mut message: Vec<u8>,
) -> Option<Vec<u8>> {
    let header_len = usize::from(packet.first()? & 15) * 4;
    let fragment = u16::from_be_bytes([*packet.get(6)?, *packet.get(7)?]);
    let may_be_fragmented = fragment & 0x4000 == 0;
    let is_icmp = *packet.get(9)? == 1;
    if may_be_fragmented || is_icmp || header_len < 20 {
        return None;
    }
    // RFC 1812 section 4.3.2.3: as much of the packet as fits 576 bytes.
    let quoted = packet.get(..packet.len().min(548))?;
    let mut icmp = vec![3, 4, 0, 0, 0, 0];
    icmp.extend_from_slice(&(mtu.min(0xffff) as u16).to_be_bytes());
    icmp.extend_from_slice(quoted);
    let sum = checksum(&icmp);
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut ip = vec![0x45, 0];
    ip.extend_from_slice(&((20 + icmp.len()) as u16).to_be_bytes());
    ip.extend_from_slice(&[0, 0, 0, 0, 64, 1, 0, 0]);
    ip.extend_from_slice(&router.octets());
    ip.extend_from_slice(packet.get(12..16)?);
    let sum = checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    message.extend_from_slice(&ip);
    message.extend_from_slice(&icmp);
    Some(message)
}

/// RFC 4443 section 3.2.
fn packet_too_big(packet: &[u8], mtu: usize, router: Ipv6Addr, mut message: Vec<u8>) -> Option<Vec<u8>> {
    const ICMPV6: u8 = 58;
    let source: [u8; 16] = packet.get(8..24)?.try_into().ok()?;
    let is_error = packet.get(6) == Some(&ICMPV6) && packet.get(40).is_some_and(|kind| *kind < 128);
    if is_error || Ipv6Addr::from(source).is_multicast() || Ipv6Addr::from(source).is_unspecified() {
        return None;
    }
    let quoted = packet.get(..packet.len().min(1_280 - 48))?;
    let mut icmp = vec![2, 0, 0, 0];
    icmp.extend_from_slice(&(mtu as u32).to_be_bytes());
    icmp.extend_from_slice(quoted);
    let mut pseudo = Vec::with_capacity(40 + icmp.len());
    pseudo.extend_from_slice(&router.octets());
    pseudo.extend_from_slice(&source);
    pseudo.extend_from_slice(&(icmp.len() as u32).to_be_bytes());
    pseudo.extend_from_slice(&[0, 0, 0, ICMPV6]);
    pseudo.extend_from_slice(&icmp);
    let sum = checksum(&pseudo);
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());
    message.extend_from_slice(&[0x60, 0, 0, 0]);
    message.extend_from_slice(&(icmp.len() as u16).to_be_bytes());
    message.extend_from_slice(&[ICMPV6, 64]);
    message.extend_from_slice(&router.octets());
    message.extend_from_slice(&source);
    message.extend_from_slice(&icmp);
    Some(message)
}
