//! Where the layers of a frame begin and end, found in one pass and as tolerant as receive hardware is.
//!
//! This is not the stack's parser: it only finds offsets, and whatever looks odd is "unknown" and left to the stack.

use linerate_wire::checksum::{Sum, raw_sum_short};
use linerate_wire::ethernet::{EtherType, HEADER_LEN};
use linerate_wire::ip::Protocol;
use linerate_wire::ipv4;
use linerate_wire::vlan::{MAX_TAGS, TAG_LEN};

/// Most IPv6 extension headers that are walked over.
const MAX_EXTENSIONS: usize = 8;
const IPV6_HEADER_LEN: usize = 40;

/// The version of the Internet Protocol.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Version {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Where a whole IP packet lies in its frame that has no options, no extension headers and is no fragment: a [`Port`] has found
/// out while it verified the checksums, and nobody needs to again.
///
/// [`Port`]: crate::Port
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlainPacket {
    /// Of IP.
    pub version: Version,
    /// What the packet carries.
    pub protocol: Protocol,
    /// The IP header, in bytes from the start of the frame: behind the Ethernet header and its tags.
    pub ip: u16,
    /// One past the packet's last byte; padding may follow. Not beyond the frame.
    pub end: u32,
}

impl PlainPacket {
    /// The header above IP.
    pub fn layer4(&self) -> usize {
        usize::from(self.ip) + self.ip_header_len()
    }

    /// Bytes of the IP header.
    pub fn ip_header_len(&self) -> usize {
        match self.version {
            Version::V4 => ipv4::MIN_HEADER_LEN,
            Version::V6 => IPV6_HEADER_LEN,
        }
    }
}

/// Offsets in bytes from the start of the frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layers {
    pub version: Version,
    /// The IP header.
    pub ip: usize,
    /// The header above IP and its options or extension headers.
    pub layer4: usize,
    /// One past the IP packet's last byte; Ethernet padding may follow.
    pub end: usize,
    /// What begins at `layer4`.
    pub protocol: Protocol,
    /// Whether this is not a whole packet, so that layer 4 cannot be verified.
    pub fragment: bool,
    /// Whether the addresses of the IP header are not those of the pseudo-header: a routing header sends it on.
    pub rerouted: bool,
}

/// Two bytes as a number.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let pair = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_be_bytes([pair[0], pair[1]]))
}

/// Four bytes as a number.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes([word[0], word[1], word[2], word[3]]))
}

/// Writes `value` at `at`; nothing where the bytes do not reach so far.
pub(crate) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(to) = bytes.get_mut(at..at.saturating_add(value.len())) {
        to.copy_from_slice(value);
    }
}

/// The IP version and where its header begins, behind up to two VLAN tags; `None` if it is not IP.
pub(crate) fn ip_header(frame: &[u8]) -> Option<(Version, usize)> {
    let mut at = HEADER_LEN;
    for _ in 0..=MAX_TAGS {
        match EtherType(u16_at(frame, at - 2)?) {
            EtherType::IPV4 => return Some((Version::V4, at)),
            EtherType::IPV6 => return Some((Version::V6, at)),
            EtherType::VLAN | EtherType::SERVICE_VLAN => at += TAG_LEN,
            _ => return None,
        }
    }
    None
}

/// Finds the layers of a frame of `frame_len` bytes, of which `head` are the first in one piece. `None` for what is not
/// IP, is cut short, or has headers that are not all in `head`.
pub(crate) fn parse(head: &[u8], frame_len: usize) -> Option<Layers> {
    let (version, ip) = ip_header(head)?;
    let layers = match version {
        Version::V4 => parse_ipv4(head, ip)?,
        Version::V6 => parse_ipv6(head, ip)?,
    };
    (layers.layer4 <= head.len() && layers.layer4 <= layers.end && layers.end <= frame_len).then_some(layers)
}

fn parse_ipv4(head: &[u8], ip: usize) -> Option<Layers> {
    let first = *head.get(ip)?;
    let header_len = usize::from(first & 0x0f) * 4;
    if first >> 4 != 4 || header_len < 20 {
        return None;
    }
    Some(Layers {
        version: Version::V4,
        ip,
        layer4: ip + header_len,
        end: ip + usize::from(u16_at(head, ip + 2)?),
        protocol: Protocol(*head.get(ip + 9)?),
        // More fragments, or an offset.
        fragment: u16_at(head, ip + 6)? & 0x3fff != 0,
        rerouted: false,
    })
}

fn parse_ipv6(head: &[u8], ip: usize) -> Option<Layers> {
    if *head.get(ip)? >> 4 != 6 {
        return None;
    }
    let mut layers = Layers {
        version: Version::V6,
        ip,
        layer4: ip + IPV6_HEADER_LEN,
        end: ip + IPV6_HEADER_LEN + usize::from(u16_at(head, ip + 4)?),
        protocol: Protocol(*head.get(ip + 6)?),
        fragment: false,
        rerouted: false,
    };
    for _ in 0..MAX_EXTENSIONS {
        let at = layers.layer4;
        let len = match layers.protocol {
            Protocol::HOP_BY_HOP | Protocol::DESTINATION_OPTIONS => 8 * (usize::from(*head.get(at + 1)?) + 1),
            Protocol::ROUTING => {
                layers.rerouted |= *head.get(at + 3)? != 0;
                8 * (usize::from(*head.get(at + 1)?) + 1)
            }
            Protocol::AUTHENTICATION => 4 * (usize::from(*head.get(at + 1)?) + 2),
            Protocol::FRAGMENT => {
                // An offset, or the M flag; neither in an atomic fragment (RFC 6946).
                layers.fragment = u16_at(head, at + 2)? & 0xfff9 != 0;
                8
            }
            _ => return Some(layers),
        };
        layers.protocol = Protocol(*head.get(at)?);
        layers.layer4 = at + len;
        if layers.fragment {
            // What follows may be the middle of anything.
            return Some(layers);
        }
    }
    None
}

impl Layers {
    /// The same in short, where nothing but the plain headers is there.
    #[inline]
    pub fn plain(&self) -> Option<PlainPacket> {
        let (ip, end) = (u16::try_from(self.ip).ok()?, u32::try_from(self.end).ok()?);
        let plain = PlainPacket { version: self.version, protocol: self.protocol, ip, end };
        (self.layer4 == plain.layer4() && !self.fragment).then_some(plain)
    }

    /// The sum of the pseudo-header for `len` bytes of layer 4.
    pub fn pseudo_header(&self, head: &[u8], len: usize) -> Sum {
        let addresses = match self.version {
            Version::V4 => self.ip + 12..self.ip + 20,
            Version::V6 => self.ip + 8..self.ip + 40,
        };
        let addresses = head.get(addresses).unwrap_or_default();
        // Protocol and length as the four-byte words that they are in the pseudo-header.
        let words = [u32::from(self.protocol.0), len as u32];
        let words: u64 = words.iter().map(|word| u64::from(word.to_be())).sum();
        let mut sum = Sum::from_raw(raw_sum_short(addresses), addresses.len());
        sum.add_raw(words, 8);
        sum
    }
}

#[cfg(test)]
mod tests;
