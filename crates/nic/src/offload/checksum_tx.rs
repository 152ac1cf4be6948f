//! Checksums of one frame to be sent: layer 4 from any byte to the end of the frame, and the IPv4 header.

use crate::checksum::{self, set_ipv4_checksum};
use crate::layers::put;
use linerate_wire::checksum::Sum;
use linerate_wire::ipv4;

/// A checksum that covers the frame from `begin` to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Partial {
    /// Added to the sum: that of the pseudo-header, unless the field holds it already.
    pub init: u16,
    /// The first byte summed.
    pub begin: u16,
    /// Where the complement of the sum is written, in bytes from the start of the frame. The field counts with what it holds.
    pub insert: u16,
}

/// Who does the checksum of layer 4.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Layer4 {
    /// Nobody, or it is there.
    #[default]
    None,
    /// The device, told where.
    Partial(Partial),
    /// The device, which must find out where: it refuses.
    Full,
}

/// What is asked for one frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Request {
    /// The checksum of layer 4.
    pub layer4: Layer4,
    /// Where the IPv4 header begins whose checksum shall be filled in.
    pub ip: Option<u8>,
}

/// What became of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Nothing was asked for.
    Bypassed,
    /// All that was asked for is in it.
    Inserted,
    /// It is as it came: the request is not sound.
    Refused,
    /// It is as it came: too long to be held until its sum is known.
    Overlong,
}

/// Does what is asked for a `frame`, of which up to `limit` bytes can be held.
pub fn insert(frame: &mut [u8], request: &Request, limit: usize) -> Outcome {
    if frame.len() > limit {
        return Outcome::Overlong;
    }
    let layer4 = match request.layer4 {
        Layer4::None => None,
        Layer4::Partial(partial) => Some(partial),
        Layer4::Full => return Outcome::Refused,
    };
    if layer4.is_none() && request.ip.is_none() {
        return Outcome::Bypassed;
    }
    // Both are looked at before anything is written.
    let value = match layer4.map(|partial| layer4_value(frame, &partial)) {
        Some(None) => return Outcome::Refused,
        value => value.flatten(),
    };
    let header = match request.ip.map(|ip| ip_header(frame, ip)) {
        Some(None) => return Outcome::Refused,
        header => header.flatten(),
    };
    if let (Some(partial), Some((from, _))) = (layer4, header)
        && overlaps(&partial, from, header.map_or(0, |(_, to)| to))
    {
        return Outcome::Refused;
    }
    if let (Some(partial), Some(value)) = (layer4, value) {
        put(frame, partial.insert.into(), &value.to_be_bytes());
    }
    if let Some((from, to)) = header {
        set_ipv4_checksum(frame, from, to);
    }
    Outcome::Inserted
}

/// Whether the sum of layer 4 covers some of an IPv4 header, whose own field changes.
fn overlaps(partial: &Partial, from: usize, to: usize) -> bool {
    let begin = usize::from(partial.begin);
    begin < to || begin <= from
}

/// What is to be written; `None` if the request is not sound.
fn layer4_value(frame: &[u8], partial: &Partial) -> Option<u16> {
    let (begin, insert) = (usize::from(partial.begin), usize::from(partial.insert));
    // The seed takes the place of the first two bytes, which no checksum covers.
    let is_sound = begin >= 2 && begin.is_multiple_of(2) && insert.is_multiple_of(2) && begin <= insert;
    if !is_sound || insert + 2 > frame.len() {
        return None;
    }
    let mut sum = Sum::from_folded(partial.init);
    checksum::add(&mut sum, frame.get(begin..)?);
    Some(checksum::field_value(sum, insert - begin))
}

/// From where to where the IPv4 header goes.
fn ip_header(frame: &[u8], ip: u8) -> Option<(usize, usize)> {
    let from = usize::from(ip);
    let len = usize::from(frame.get(from)? & 0x0f) * 4;
    let to = from + len;
    (from.is_multiple_of(2) && len >= ipv4::MIN_HEADER_LEN && to <= frame.len()).then_some((from, to))
}

#[cfg(test)]
mod tests;
