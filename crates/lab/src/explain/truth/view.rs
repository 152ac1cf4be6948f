//! What a capture holds of what passed an interface: whole frames or their fronts, one direction or both, super-frames, and
//! what the capturing program itself missed.

use linerate_sim::{Captured, Random, Seen};
use linerate_wire::ethernet::{EtherType, Header as Ethernet};
use linerate_wire::ip::Protocol;
use linerate_wire::pcapng::{self, Packet};
use linerate_wire::tcp::{Flags, Header as Tcp};
use linerate_wire::units::Instant;
use linerate_wire::{ipv4, ipv6};
use serde::Deserialize;
use std::time::Duration;

/// Largest IP packet that an interface takes for segmentation, or hands over coalesced, in bytes.
const LARGEST_PACKET: usize = 65_535;
/// Frames that follow each other within this time pass an interface as one: its interrupt waits as long.
const TOGETHER: Duration = Duration::from_micros(50);
/// Where the control bits lie in a TCP header, in bytes (RFC 9293 section 3.1).
const FLAGS_OFFSET: usize = 13;
/// The stream of random numbers that decides what is missing.
const MISSING_STREAM: u64 = 0x006d_6973_7369_6e67;

/// At which end a capture was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// Where the data comes from.
    #[default]
    Sender,
    /// Where it goes to.
    Receiver,
}

/// What a capture is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Both directions.
    #[default]
    Both,
    /// Only frames from the sender of the data.
    Data,
    /// Only frames from its receiver.
    Acks,
}

/// How a capture was made.
#[derive(Clone, Copy, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct View {
    /// At which end.
    pub end: End,
    /// Most bytes kept of a frame. Default: all.
    pub snap: Option<u32>,
    /// Which directions.
    pub direction: Direction,
    /// Share of frames that the capturing program missed, 0 to 1.
    pub missing: f64,
    /// Segments of one flow that follow each other at once appear as one frame, as they do where the interface
    /// segments and coalesces.
    pub super_frames: bool,
}

/// A frame as the capture has it.
struct Frame {
    at: Instant,
    last_at: Instant,
    seen: Seen,
    bytes: Vec<u8>,
    /// Bytes of payload of its first segment.
    segment_len: usize,
    /// A shorter segment was the last.
    is_closed: bool,
}

impl Frame {
    fn new(frame: &Captured<'_>) -> Frame {
        Frame {
            at: frame.at,
            last_at: frame.at,
            seen: frame.seen,
            bytes: frame.frame.to_vec(),
            segment_len: segment(frame.frame).map_or(0, |segment| segment.header.payload().len()),
            is_closed: false,
        }
    }
}

impl View {
    /// The pcapng file of what an interface saw; `seed` decides what is missing.
    pub fn pcapng(&self, name: &str, frames: &[Captured<'_>], seed: u64) -> Vec<u8> {
        let data = if self.end == End::Sender { Seen::Outbound } else { Seen::Inbound };
        let mut seen = Vec::new();
        for frame in frames.iter().filter(|frame| match self.direction {
            Direction::Both => true,
            Direction::Data => frame.seen == data,
            Direction::Acks => frame.seen != data,
        }) {
            let next = Frame::new(frame);
            if self.super_frames
                && let Some(last) = seen.iter_mut().rev().find(|other: &&mut Frame| other.seen == next.seen)
                && join(last, &next)
            {
                continue;
            }
            seen.push(next);
        }
        let mut random = Random::stream(seed, MISSING_STREAM);
        let missing = (self.missing * 2f64.powi(32)) as u64;
        seen.retain(|_| random.next_u64() >> 32 >= missing);
        seen.sort_by_key(|frame| frame.at);
        self.file(name, &seen)
    }

    fn file(&self, name: &str, frames: &[Frame]) -> Vec<u8> {
        let mut file = Vec::new();
        let mut put = |bytes: &[u8]| file.extend_from_slice(bytes);
        pcapng::section("linerate lab: a known cause", &mut put);
        pcapng::interface(name, [2, 0, 0, 0, 0, 1], self.snap.unwrap_or(0), &mut put);
        for frame in frames {
            let len = frame.bytes.len() as u32;
            let kept = self.snap.map_or(len, |snap| len.min(snap));
            let packet = Packet { interface: 0, at: frame.at, seen: frame.seen, len, kept };
            put(&packet.head());
            put(&frame.bytes[..kept as usize]);
            let (tail, len) = packet.tail();
            put(&tail[..len]);
        }
        file
    }
}

/// What decides whether two segments may be one.
#[derive(PartialEq)]
struct Segment<'a> {
    /// Where the IP packet begins.
    ip: usize,
    /// Where the payload begins.
    payload: usize,
    header: Tcp<'a>,
    is_v4: bool,
}

fn segment(frame: &[u8]) -> Option<Segment<'_>> {
    let ethernet = Ethernet::parse(frame).ok()?;
    let ip = ethernet.header_len();
    let (is_v4, header_len, bytes) = match ethernet.ether_type() {
        EtherType::IPV4 => {
            let header = ipv4::Header::parse(ethernet.payload()).ok()?;
            (true, header.header_len(), (header.protocol() == Protocol::TCP).then(|| header.payload())?)
        }
        EtherType::IPV6 => {
            let header = ipv6::Header::parse(ethernet.payload()).ok()?;
            (false, ipv6::HEADER_LEN, (header.next_header() == Protocol::TCP).then(|| header.payload())?)
        }
        _ => return None,
    };
    let header = Tcp::parse(bytes).ok()?;
    Some(Segment { ip, payload: ip + header_len + header.header_len(), header, is_v4 })
}

/// Makes `next` a part of `last` where an interface would; false leaves both as they are.
fn join(last: &mut Frame, next: &Frame) -> bool {
    let (Some(a), Some(b)) = (segment(&last.bytes), segment(&next.bytes)) else { return false };
    let plain = |flags: Flags| flags.0 & !Flags::PSH.0 == Flags::ACK.0;
    let (first, second) = (&a.header, &b.header);
    let follows = first.sequence().0.wrapping_add(first.payload().len() as u32) == second.sequence().0;
    let fits = last.bytes.len() - a.ip + second.payload().len() <= LARGEST_PACKET;
    let is_one = !last.is_closed
        && next.segment_len <= last.segment_len
        && next.at.saturating_since(last.last_at) <= TOGETHER
        && follows
        && fits
        && !first.payload().is_empty()
        && !second.payload().is_empty()
        && plain(first.flags())
        && plain(second.flags())
        && !first.flags().contains(Flags::PSH)
        && a.is_v4 == b.is_v4
        && first.source_port() == second.source_port()
        && first.acknowledgement() == second.acknowledgement()
        && first.options_bytes() == second.options_bytes();
    if !is_one {
        return false;
    }
    let pushes = second.flags().contains(Flags::PSH);
    let (ip, is_v4) = (a.ip, a.is_v4);
    let flags_at = a.payload - first.header_len() + FLAGS_OFFSET;
    if pushes {
        last.bytes[flags_at] |= Flags::PSH.0;
    }
    last.bytes.extend_from_slice(second.payload());
    last.last_at = next.at;
    last.is_closed = next.segment_len < last.segment_len;
    // A coalesced frame is there when its last segment is; one to be segmented leaves with its first.
    if next.seen == Seen::Inbound {
        last.at = next.at;
    }
    set_length(&mut last.bytes[ip..], is_v4);
    true
}

/// Writes the IP header anew for a packet that has grown.
fn set_length(packet: &mut [u8], is_v4: bool) {
    let written = if is_v4 {
        let payload_len = packet.len() - ipv4::MIN_HEADER_LEN;
        let Ok(old) = ipv4::Header::parse_quoted(packet) else { return };
        let mut header = ipv4::Builder::new(old.source(), old.destination(), Protocol::TCP, payload_len);
        (header.ttl, header.identification) = (old.ttl(), old.identification());
        header.emit(packet)
    } else {
        let payload_len = packet.len() - ipv6::HEADER_LEN;
        let Ok(old) = ipv6::Header::parse_quoted(packet) else { return };
        let mut header = ipv6::Builder::new(old.source(), old.destination(), Protocol::TCP, payload_len);
        header.hop_limit = old.hop_limit();
        header.emit(packet)
    };
    debug_assert!(written.is_ok(), "the length was looked at before");
}

#[cfg(test)]
mod tests;
