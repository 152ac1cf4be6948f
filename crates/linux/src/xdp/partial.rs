//! Checksums that the sender left to a card that there is not.

use linerate_wire::checksum::{pseudo_header4, pseudo_header6};
use std::net::{Ipv4Addr, Ipv6Addr};

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Whether the checksum field of a TCP or UDP packet holds the sum of its pseudo-header, as Linux leaves it for a card to complete.
///
/// A complete checksum has this value too for one payload in 65,536; that says as much of the packet as the checksum does.
/// Packets with IPv6 extension headers and fragments are never partial here.
pub(super) fn is_partial(frame: &[u8]) -> bool {
    judge(frame).unwrap_or(false)
}

fn judge(frame: &[u8]) -> Option<bool> {
    let mut at = 12;
    // One VLAN tag.
    if word(frame, at)? == 0x8100 {
        at += 4;
    }
    let (ip, behind) = (at + 2, word(frame, at)?);
    let (protocol, layer4, pseudo) = match behind {
        0x0800 => {
            let header: &[u8; 20] = frame.get(ip..)?.first_chunk()?;
            let len = usize::from(header[0] & 0x0f) * 4;
            let is_fragment = word(header, 6)? & 0x3fff != 0;
            if header[0] >> 4 != 4 || len < 20 || is_fragment {
                return None;
            }
            let payload = usize::from(word(header, 2)?).checked_sub(len)?;
            let from = Ipv4Addr::from(*header[12..].first_chunk()?);
            let to = Ipv4Addr::from(*header[16..].first_chunk()?);
            (header[9], ip + len, pseudo_header4(from, to, header[9], payload as u32))
        }
        0x86dd => {
            let header: &[u8; 40] = frame.get(ip..)?.first_chunk()?;
            let from = Ipv6Addr::from(*header[8..].first_chunk()?);
            let to = Ipv6Addr::from(*header[24..].first_chunk()?);
            let payload = u32::from(word(header, 4)?);
            (header[6], ip + 40, pseudo_header6(from, to, header[6], payload))
        }
        _ => return None,
    };
    let field = match protocol {
        TCP => layer4 + 16,
        UDP => layer4 + 6,
        _ => return None,
    };
    Some(word(frame, field)? == pseudo.folded())
}

/// The 16-bit word at byte `at`.
fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{OUR_MAC, to_host};
    use linerate_nic::TxPacket;

    fn frame(v4: bool, protocol: u8, offload: bool) -> Vec<u8> {
        let mut packet = TxPacket::new();
        to_host(OUR_MAC, v4, protocol, 9).fill(&mut packet, &[b"some payload"], offload, 0);
        let mut bytes = vec![0; packet.len()];
        packet.linearise(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn what_is_left_to_a_card_is_known() {
        for v4 in [true, false] {
            for protocol in [TCP, UDP] {
                let partial = frame(v4, protocol, true);
                assert!(is_partial(&partial));
                assert!(!is_partial(&frame(v4, protocol, false)), "complete");
                let mut tagged = partial.clone();
                tagged.splice(12..12, [0x81, 0x00, 0, 7]);
                assert!(is_partial(&tagged));
                let mut wrong = partial.clone();
                let address = if v4 { 29 } else { 37 };
                wrong[address] ^= 1;
                assert!(!is_partial(&wrong), "another address");
                for len in 0..if v4 { 34 + 8 } else { 54 + 8 } {
                    assert!(!is_partial(&partial[..len]), "{len} bytes");
                }
            }
        }
        assert!(!is_partial(&frame(true, 47, true)));
        let mut fragment = frame(true, UDP, true);
        fragment[20] = 0x20;
        assert!(!is_partial(&fragment));
    }
}
