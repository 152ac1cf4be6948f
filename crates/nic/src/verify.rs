//! Verifying checksums of received frames in software, for what the device has not verified.

use crate::checksum;
use crate::frame::Frame;
use crate::layers::{Layers, Version, u16_at};
use crate::meta::ChecksumStatus;
use linerate_wire::checksum::{Sum, raw_sum_short};
use linerate_wire::ethernet::HEADER_LEN;
use linerate_wire::ip::Protocol;
use linerate_wire::{ipv4, tcp};

/// Where TCP begins behind Ethernet without tags and IPv4 without options.
const TCP: usize = HEADER_LEN + ipv4::MIN_HEADER_LEN;

/// What the checksums of a packet say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// That of the IPv4 header is wrong.
    BadHeader,
    /// That of the IPv4 header is right, if there is one; nothing can be said of layer 4: fragments, protocols without a
    /// known checksum, lengths that do not fit.
    Unverified,
    /// That of this protocol is right.
    Good(Protocol),
    /// That of this protocol is wrong.
    Bad(Protocol),
}

/// What a device that verifies everything would say of `frame`: the IPv4 header's checksum, and that of TCP, UDP, ICMP
/// or ICMPv6 above it.
///
/// [`ChecksumStatus::Unchecked`] is left where nothing can be said.
pub(crate) fn verify(frame: &Frame, layers: &Layers) -> ChecksumStatus {
    let head = frame.data.bytes();
    let verdict = match frame.meta.raw_sum {
        // A subtraction may give the other zero of one's complement.
        Some(raw) => judge(
            head,
            layers,
            |from, to| from_raw_sum(frame, raw, from, to),
            |sum| sum.folded().is_multiple_of(0xffff),
        ),
        None => judge(head, layers, |from, to| sum_range(frame, from, to), Sum::is_valid),
    };
    match verdict {
        Verdict::Unverified => ChecksumStatus::Unchecked,
        Verdict::Good(_) => ChecksumStatus::Good,
        Verdict::BadHeader | Verdict::Bad(_) => ChecksumStatus::Bad,
    }
}

/// The layers of a frame in one piece with TCP over IPv4 without options or tags, if [`verify`] would call it good: what nearly all
/// frames are that software verifies. Where the device has summed the frame, of those without padding.
#[inline]
pub(crate) fn usual(frame: &Frame) -> Option<Layers> {
    if !frame.more.is_empty() {
        return None;
    }
    let bytes = frame.data.bytes();
    let head: &[u8; TCP] = bytes.first_chunk()?;
    let is_usual = [head[12], head[13], head[14]] == [0x08, 0x00, 0x45]
        && [head[20] & 0x3f, head[21]] == [0, 0]
        && Protocol(head[23]) == Protocol::TCP;
    let end = HEADER_LEN + usize::from(u16::from_be_bytes([head[16], head[17]]));
    let segment = bytes.get(TCP..end).filter(|segment| is_usual && segment.len() >= tcp::MIN_HEADER_LEN)?;
    // Halves of words, of which a few do not overflow.
    let half =
        |at: usize| u64::from(u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]));
    let addresses = half(26) + half(30);
    if !Sum::from_raw(half(14) + half(18) + half(22) + addresses, ipv4::MIN_HEADER_LEN).is_valid() {
        return None;
    }
    let about = u32::from(Protocol::TCP.0) + segment.len() as u32;
    let mut sum = Sum::from_raw(addresses + u64::from(about.to_be()), 12);
    sum.append(match frame.meta.raw_sum {
        None => checksum::sum(segment),
        // The sum over the header is nothing, as was just seen.
        Some(raw) if end == bytes.len() => Sum::from_folded(raw),
        Some(_) => return None,
    });
    let (version, protocol) = (Version::V4, Protocol::TCP);
    let layers =
        Layers { version, ip: HEADER_LEN, layer4: TCP, end, protocol, fragment: false, rerouted: false };
    sum.is_valid().then_some(layers)
}

/// The same of a frame whose headers are in `head`; `sum_of` sums the bytes of a range of it, and `is_valid` knows what a sum
/// says.
///
/// A UDP checksum of 0 means "not used" over IPv4, which is good, and is not allowed over IPv6 (RFC 8200 section 8.1),
/// which is bad.
pub(crate) fn judge(
    head: &[u8],
    layers: &Layers,
    sum_of: impl FnOnce(usize, usize) -> Sum,
    is_valid: impl FnOnce(Sum) -> bool,
) -> Verdict {
    if layers.version == Version::V4 {
        let header = head.get(layers.ip..layers.layer4).unwrap_or_default();
        if !Sum::from_raw(raw_sum_short(header), header.len()).is_valid() {
            return Verdict::BadHeader;
        }
    }
    if layers.fragment || layers.rerouted {
        return Verdict::Unverified;
    }
    let mut len = layers.end - layers.layer4;
    let (field, smallest) = match (layers.protocol, layers.version) {
        (Protocol::TCP, _) => (16, 20),
        (Protocol::UDP, _) => (6, 8),
        (Protocol::ICMPV4, Version::V4) => (2, 8),
        (Protocol::ICMPV6, Version::V6) => (2, 4),
        _ => return Verdict::Unverified,
    };
    if layers.protocol == Protocol::UDP {
        match u16_at(head, layers.layer4 + 4).map(usize::from) {
            Some(udp_len) if udp_len <= len => len = udp_len,
            _ => return Verdict::Unverified,
        }
    }
    let Some(value) = u16_at(head, layers.layer4 + field) else { return Verdict::Unverified };
    if len < smallest {
        return Verdict::Unverified;
    }
    let good = if layers.protocol == Protocol::UDP && value == 0 {
        layers.version == Version::V4
    } else {
        let mut total = sum_of(layers.layer4, layers.layer4 + len);
        if layers.protocol != Protocol::ICMPV4 {
            let mut pseudo = layers.pseudo_header(head, len);
            pseudo.append(total);
            total = pseudo;
        }
        is_valid(total)
    };
    if good { Verdict::Good(layers.protocol) } else { Verdict::Bad(layers.protocol) }
}

/// The sum of the bytes `from..to` of the frame, over all its pieces.
fn sum_range(frame: &Frame, from: usize, to: usize) -> Sum {
    if frame.more.is_empty() {
        return checksum::sum(frame.data.bytes().get(from..to).unwrap_or_default());
    }
    let mut sum = Sum::ZERO;
    let mut base = 0;
    for piece in core::iter::once(&frame.data).chain(&frame.more) {
        let start = from.saturating_sub(base).min(piece.len());
        let end = to.saturating_sub(base).clamp(start, piece.len());
        checksum::add(&mut sum, &piece.bytes()[start..end]);
        base += piece.len();
    }
    sum
}

/// The sum of the bytes `from..to`, by taking what lies around them away from `raw`, the device's sum from the 15th byte
/// to the frame's end.
fn from_raw_sum(frame: &Frame, raw: u16, from: usize, to: usize) -> Sum {
    let front = sum_range(frame, HEADER_LEN, from);
    // The padding begins where the packet ends, which may be at an odd offset.
    let mut back = Sum::from_raw(0, to - HEADER_LEN);
    back.append(sum_range(frame, to, frame.len()));
    Sum::from_folded(raw)
        .without_front(Sum::from_folded(front.folded()))
        .without_front(Sum::from_folded(back.folded()))
}

#[cfg(test)]
mod tests;
