//! Segmentation: what changes in the headers from segment to segment, and a whole super-frame cut up as hardware does it.

use crate::layers::{Version, put, u16_at, u32_at};
use crate::offload::checksum_tx::Partial;
use alloc::vec::Vec;
use linerate_wire::checksum::Sum;
use linerate_wire::ip::Protocol;
use linerate_wire::tcp::{self, Flags};
use linerate_wire::{ipv4, udp};

/// Bytes of headers that hardware can hold.
pub const MAX_HEADERS: usize = 128;
const IPV6_HEADER_LEN: usize = 40;

/// Flags that the last segment alone keeps.
const AT_END: Flags = Flags::FIN.union(Flags::PSH);

/// What lies above IP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// TCP: sequence numbers and flags change.
    Tcp,
    /// UDP: each segment is a datagram of its own.
    Udp,
}

/// The super-frame's fields that differ in its segments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields {
    pub version: Version,
    pub kind: Kind,
    /// Where the headers begin.
    pub ip: usize,
    pub layer4: usize,
    sequence: u32,
    ident: u16,
    flags: Flags,
}

/// Which part of the payload a segment carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    /// Segments before it.
    pub index: u16,
    /// Bytes of payload before it.
    pub done: usize,
    /// Bytes of payload in it.
    pub len: usize,
    /// Whether nothing follows.
    pub last: bool,
}

impl Fields {
    /// Reads them from the super-frame's headers.
    pub fn of(header: &[u8], version: Version, kind: Kind, ip: usize, layer4: usize) -> Self {
        Fields {
            version,
            kind,
            ip,
            layer4,
            sequence: u32_at(header, layer4 + 4).unwrap_or(0),
            ident: u16_at(header, ip + 4).unwrap_or(0),
            flags: Flags(header.get(layer4 + 13).copied().unwrap_or(0)),
        }
    }

    /// Identification and sequence number of a segment.
    #[inline]
    pub fn numbers(&self, part: Part) -> (u16, u32) {
        (self.ident.wrapping_add(part.index), self.sequence.wrapping_add(part.done as u32))
    }

    /// Whether a segment has a flag that not all have.
    #[inline]
    pub fn marks(&self, part: Part) -> bool {
        part.last && self.flags.intersects(AT_END) || part.index == 0 && self.flags.contains(Flags::CWR)
    }

    /// Turns `header`, a copy of the super-frame's or of another segment's, into that of a segment; checksums are as they were.
    pub fn rewrite(&self, header: &mut [u8], part: Part) {
        let layer4_len = header.len() - self.layer4 + part.len;
        let (ident, sequence) = self.numbers(part);
        match self.version {
            Version::V4 => {
                put(header, self.ip + 2, &((self.layer4 - self.ip + layer4_len) as u16).to_be_bytes());
                put(header, self.ip + 4, &ident.to_be_bytes());
            }
            Version::V6 => {
                let len = self.layer4 - self.ip - IPV6_HEADER_LEN + layer4_len;
                put(header, self.ip + 4, &(len as u16).to_be_bytes());
            }
        }
        match self.kind {
            Kind::Tcp => {
                let mut flags = self.flags;
                if !part.last {
                    flags = flags.without(AT_END);
                }
                // It answers one mark, so one segment says it (RFC 3168 section 6.1.2).
                if part.index > 0 {
                    flags = flags.without(Flags::CWR);
                }
                put(header, self.layer4 + 4, &sequence.to_be_bytes());
                put(header, self.layer4 + 13, &[flags.0]);
            }
            Kind::Udp => put(header, self.layer4 + 4, &(layer4_len as u16).to_be_bytes()),
        }
    }
}

/// The pseudo-header's sum for a segment whose layer 4 is `len` bytes long, out of that for the whole.
pub(crate) fn pseudo_of_segment(whole: u16, whole_len: usize, len: usize) -> Sum {
    let mut length = Sum::ZERO;
    length.add_u32(whole_len as u32);
    let mut sum = Sum::from_folded(whole).without_front(length);
    sum.add_u32(len as u32);
    sum
}

/// What is asked for one super-frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// What lies above IP.
    pub kind: Kind,
    /// Payload bytes of a segment.
    pub size: u16,
    /// Bytes of all headers.
    pub header_len: u8,
    /// Where the IP header begins.
    pub ip: u8,
    /// IPv6, not IPv4.
    pub ipv6: bool,
    /// The checksum of layer 4, as for the whole; `None` if it is asked for in another way or not at all.
    pub checksum: Option<Partial>,
}

/// The headers are not those that the request speaks of, or there is no payload: nothing is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed;

/// A frame to be given its checksums by [`insert`](crate::offload::checksum_tx::insert).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Its bytes.
    pub data: Vec<u8>,
    /// The checksum of layer 4.
    pub checksum: Partial,
    /// Whether the IPv4 header checksum is to be filled in.
    pub ip_checksum: bool,
}

/// A super-frame cut up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Segments {
    /// In order.
    pub segments: Vec<Segment>,
    /// Whether the super-frame had more bytes than its IP header says, which are not sent, or fewer: the segment in which they run
    /// out is cut short, so that no receiver takes it, and is the last.
    pub is_length_wrong: bool,
}

/// Cuts up a super-frame. The payload is as long as the IP header says: hardware sends the first segment before it has
/// seen the end.
///
/// The request is believed in what the headers alone do not say: types of Ethernet, and what follows behind IPv6 extension
/// headers.
///
/// # Errors
/// [`Malformed`].
pub fn segment(frame: &[u8], request: &Request) -> Result<Segments, Malformed> {
    let (fields, checksum, payload) = check(frame, request).ok_or(Malformed)?;
    let header_len = usize::from(request.header_len);
    let (header, rest) = frame.split_at_checked(header_len).ok_or(Malformed)?;
    let size = usize::from(request.size);
    let mut segments = Vec::new();
    let mut done = 0;
    while done < payload.min(rest.len()) {
        let len = size.min(payload - done);
        let part = Part { index: segments.len() as u16, done, len, last: done + len == payload };
        let mut data = Vec::from(header);
        fields.rewrite(&mut data, part);
        let layer4_header = header_len - fields.layer4;
        let seed = pseudo_of_segment(checksum.init, layer4_header + payload, layer4_header + len);
        data.extend_from_slice(rest.get(done..rest.len().min(done + len)).unwrap_or_default());
        segments.push(Segment {
            data,
            checksum: Partial { init: seed.folded(), ..checksum },
            ip_checksum: !request.ipv6,
        });
        done += len;
    }
    Ok(Segments { segments, is_length_wrong: payload != rest.len() })
}

/// Fields, checksum and length of the payload of a super-frame that is as told.
fn check(frame: &[u8], request: &Request) -> Option<(Fields, Partial, usize)> {
    let checksum = request.checksum?;
    let header_len = usize::from(request.header_len);
    let (ip, layer4) = (usize::from(request.ip), usize::from(checksum.begin));
    let (protocol, field, layer4_header) = match request.kind {
        Kind::Tcp => (Protocol::TCP, tcp::CHECKSUM_OFFSET, usize::from(*frame.get(layer4 + 12)? >> 4) * 4),
        Kind::Udp => (Protocol::UDP, udp::CHECKSUM_OFFSET, udp::HEADER_LEN),
    };
    let is_told_rightly = request.size > 0
        && header_len <= MAX_HEADERS
        && frame.len() > header_len
        && ip.is_multiple_of(2)
        && layer4.is_multiple_of(2)
        && usize::from(checksum.insert) == layer4 + field
        && layer4 + layer4_header == header_len
        && (request.kind == Kind::Udp || layer4_header >= tcp::MIN_HEADER_LEN);
    if !is_told_rightly {
        return None;
    }
    let first = *frame.get(ip)?;
    let (version, is_sound, ip_len) = if request.ipv6 {
        // What extension headers lead to is not followed.
        let is_plain = layer4 == ip + IPV6_HEADER_LEN;
        let is_sound = first >> 4 == 6
            && layer4 >= ip + IPV6_HEADER_LEN
            && (!is_plain || *frame.get(ip + 6)? == protocol.0);
        (Version::V6, is_sound, IPV6_HEADER_LEN + usize::from(u16_at(frame, ip + 4)?))
    } else {
        let ihl = usize::from(first & 0x0f) * 4;
        let is_sound = first >> 4 == 4
            && ihl >= ipv4::MIN_HEADER_LEN
            && layer4 == ip + ihl
            && u16_at(frame, ip + 6)? & 0x3fff == 0
            && *frame.get(ip + 9)? == protocol.0;
        (Version::V4, is_sound, usize::from(u16_at(frame, ip + 2)?))
    };
    let payload = (ip + ip_len).checked_sub(header_len).filter(|payload| is_sound && *payload > 0)?;
    Some((Fields::of(frame, version, request.kind, ip, layer4), checksum, payload))
}

#[cfg(test)]
mod tests;
