//! Verifying checksums of received frames in software, for what the device has not verified.

use crate::checksum;
use crate::frame::Frame;
use crate::layers::{Layers, Version, u16_at};
use crate::meta::ChecksumStatus;
use linerate_wire::checksum::{Sum, raw_sum_short};
use linerate_wire::ethernet::HEADER_LEN;
use linerate_wire::ip::Protocol;

/// What a device that verifies everything would say of `frame`: the IPv4 header's checksum, and that of TCP, UDP, ICMP
/// or ICMPv6 above it.
///
/// [`ChecksumStatus::Unchecked`] is left where nothing can be said: fragments, other protocols, lengths that do not fit.
/// A UDP checksum of 0 means "not used" over IPv4, which is good, and is not allowed over IPv6 (RFC 8200 section 8.1),
/// which is bad.
pub(crate) fn verify(frame: &Frame, layers: &Layers) -> ChecksumStatus {
    let head = frame.data.bytes();
    if layers.version == Version::V4 {
        let header = head.get(layers.ip..layers.layer4).unwrap_or_default();
        if !Sum::from_raw(raw_sum_short(header), header.len()).is_valid() {
            return ChecksumStatus::Bad;
        }
    }
    if layers.fragment || layers.rerouted {
        return ChecksumStatus::Unchecked;
    }
    let mut len = layers.end - layers.layer4;
    let (field, smallest) = match (layers.protocol, layers.version) {
        (Protocol::TCP, _) => (16, 20),
        (Protocol::UDP, _) => (6, 8),
        (Protocol::ICMPV4, Version::V4) => (2, 8),
        (Protocol::ICMPV6, Version::V6) => (2, 4),
        _ => return ChecksumStatus::Unchecked,
    };
    if layers.protocol == Protocol::UDP {
        match u16_at(head, layers.layer4 + 4).map(usize::from) {
            Some(udp_len) if udp_len <= len => len = udp_len,
            _ => return ChecksumStatus::Unchecked,
        }
    }
    let Some(value) = u16_at(head, layers.layer4 + field) else { return ChecksumStatus::Unchecked };
    if len < smallest {
        return ChecksumStatus::Unchecked;
    }
    if layers.protocol == Protocol::UDP && value == 0 {
        return match layers.version {
            Version::V4 => ChecksumStatus::Good,
            Version::V6 => ChecksumStatus::Bad,
        };
    }
    let end = layers.layer4 + len;
    let mut total = match frame.meta.raw_sum {
        Some(raw) => from_raw_sum(frame, raw, layers.layer4, end),
        None => sum_range(frame, layers.layer4, end),
    };
    if layers.protocol != Protocol::ICMPV4 {
        let mut pseudo = layers.pseudo_header(head, len);
        pseudo.append(total);
        total = pseudo;
    }
    // A subtraction may give the other zero of one's complement.
    let good = match frame.meta.raw_sum {
        Some(_) => total.folded() % 0xffff == 0,
        None => total.is_valid(),
    };
    if good { ChecksumStatus::Good } else { ChecksumStatus::Bad }
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
