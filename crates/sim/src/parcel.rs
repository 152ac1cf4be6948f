//! What travels: segments of a packet that a device took over, by reference; bytes are made when somebody looks.

use crate::journal::SegmentId;
use crate::random::mix;
use linerate_nic::checksum;
use linerate_nic::{Bytes, ChecksumRequest, Chunk, Segmentation, TxPacket};
use linerate_wire::tcp::Flags;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::{Rc, Weak};

/// Bytes that a frame takes on an Ethernet wire beside its own: preamble 8, frame check sequence 4, gap 12.
pub const WIRE_OVERHEAD: u64 = 24;
/// Least bytes of a frame without its frame check sequence (64 with it); shorter ones are padded.
pub const MIN_FRAME: usize = 60;

/// Bytes that a frame of `len` bytes (without frame check sequence) takes on the wire.
pub fn wire_bytes(len: usize) -> u64 {
    len.max(MIN_FRAME) as u64 + WIRE_OVERHEAD
}

/// A packet as its sender gave it.
#[derive(Debug)]
pub(crate) struct Source {
    packet: TxPacket,
    split: Option<Split>,
    stock: Weak<RefCell<Vec<Rc<Source>>>>,
    /// Told apart from all others of the stock by it.
    serial: u64,
}

/// How a super-segment is cut.
#[derive(Clone, Copy, Debug)]
struct Split {
    is_v4: bool,
    ip: usize,
    size: usize,
    count: u16,
}

/// Sources to be used again, so that nothing is allocated per packet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stock {
    spare: Rc<RefCell<Vec<Rc<Source>>>>,
    taken: Rc<Cell<u64>>,
}

impl Stock {
    /// Moves the contents of `packet` into a parcel; `packet` is empty then. `None` if its request for segmentation
    /// does not fit its headers.
    pub(crate) fn take_packet(&self, packet: &mut TxPacket) -> Option<Parcel> {
        let split = match packet.meta.segmentation {
            Segmentation::None => None,
            Segmentation::Tcp4(size) => Some(split(packet, true, usize::from(size))?),
            Segmentation::Tcp6(size) => Some(split(packet, false, usize::from(size))?),
        };
        let mut source = self.spare.borrow_mut().pop().unwrap_or_else(|| {
            Rc::new(Source {
                packet: TxPacket::new(),
                split: None,
                stock: Rc::downgrade(&self.spare),
                serial: 0,
            })
        });
        // Spare ones have no other handle.
        let inner = Rc::get_mut(&mut source)?;
        inner.packet.clear();
        inner.packet.swap(packet);
        inner.split = split;
        inner.serial = self.taken.get();
        self.taken.set(inner.serial + 1);
        let count = split.map_or(1, |split| split.count);
        Some(Parcel { source: Some(source), first: 0, count, damage: None, marked: false })
    }

    /// A frame given as bytes, which already holds its checksums.
    pub(crate) fn take_bytes(&self, frame: Vec<u8>) -> Option<Parcel> {
        let mut packet = TxPacket::new();
        let head = frame.len().min(linerate_nic::MAX_HEADER);
        packet.header_mut(head).copy_from_slice(&frame[..head]);
        if frame.len() > head {
            packet.push_chunk(Chunk::Shared(Bytes::from(frame).slice(head..))).ok()?;
        }
        self.take_packet(&mut packet)
    }
}

fn split(packet: &TxPacket, is_v4: bool, size: usize) -> Option<Split> {
    let request = packet.meta.checksum?;
    let header = packet.header();
    let tcp = usize::from(request.start);
    let ip = if is_v4 { tcp.checked_sub(20)? } else { tcp.checked_sub(40)? };
    let payload = packet.payload_len();
    if size == 0 || payload == 0 || header.len() < tcp + 20 || request.offset != 16 {
        return None;
    }
    let version = header.get(ip)? >> 4;
    if version != if is_v4 { 4 } else { 6 } {
        return None;
    }
    let count = u16::try_from(payload.div_ceil(size)).ok()?;
    Some(Split { is_v4, ip, size, count })
}

/// Some consecutive segments of a packet (one, if it is no super-segment), and what happened to them on the way.
#[derive(Debug)]
pub(crate) struct Parcel {
    /// `None` only while dropping.
    source: Option<Rc<Source>>,
    first: u16,
    count: u16,
    /// Bits that are wrong. Only single segments are damaged.
    damage: Option<Damage>,
    /// Congestion experienced (RFC 3168) was set on the way.
    marked: bool,
}

/// Flipped bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Damage {
    /// Byte, counted from the start of the frame; taken modulo its length.
    at: u32,
    mask: u8,
}

impl Clone for Parcel {
    fn clone(&self) -> Parcel {
        Parcel { source: self.source.clone(), ..*self }
    }
}

impl Drop for Parcel {
    fn drop(&mut self) {
        if let Some(mut source) = self.source.take()
            && let Some(inner) = Rc::get_mut(&mut source)
        {
            inner.packet.clear();
            if let Some(stock) = inner.stock.upgrade() {
                stock.borrow_mut().push(source);
            }
        }
    }
}

impl Parcel {
    fn source(&self) -> &Source {
        // Taken only by `drop`.
        self.source.as_ref().expect("a live parcel has a source")
    }

    fn packet(&self) -> &TxPacket {
        &self.source().packet
    }

    /// The number of its first segment, which no other of the world has.
    pub(crate) fn id(&self) -> SegmentId {
        SegmentId(self.source().serial << 16 | u64::from(self.first))
    }

    /// Number of segments.
    pub(crate) fn count(&self) -> u16 {
        self.count
    }

    /// Whether other segments on the way are, or were, of the same packet and come right after these.
    pub(crate) fn is_followed_by(&self, other: &Parcel) -> bool {
        let same = match (&self.source, &other.source) {
            (Some(a), Some(b)) => Rc::ptr_eq(a, b),
            _ => false,
        };
        let plain = self.damage.is_none() && other.damage.is_none() && self.marked == other.marked;
        same && plain && self.first + self.count == other.first
    }

    /// Adds the segments of `other`, which must follow.
    pub(crate) fn append(&mut self, other: Parcel) {
        self.count += other.count;
    }

    /// Takes the first `count` segments off (all but one at most).
    pub(crate) fn split_front(&mut self, count: u16) -> Parcel {
        let count = count.clamp(1, self.count.max(2) - 1);
        let mut front = self.clone();
        front.count = count;
        self.first += count;
        self.count -= count;
        front
    }

    /// Flips a bit, chosen by `number`.
    pub(crate) fn corrupt(&mut self, number: u32) {
        let spread = mix(u64::from(number));
        self.damage = Some(Damage { at: (spread >> 8) as u32, mask: 1 << (spread & 7) });
    }

    /// Flips the bits of `mask` in the byte at `at` (cut to the frame).
    pub(crate) fn corrupt_at(&mut self, at: usize, mask: u8) {
        let at = at.min(self.len().saturating_sub(1));
        self.damage = Some(Damage { at: at as u32, mask });
    }

    /// Whether a bit was flipped.
    pub(crate) fn is_damaged(&self) -> bool {
        self.damage.is_some()
    }

    /// Whether the sender declared the flow able to use ECN (codepoints ECT or CE), so that it may be marked.
    pub(crate) fn is_ecn_capable(&self) -> bool {
        let header = self.packet().header();
        match ip_offset(header) {
            Some((true, ip)) => header.get(ip + 1).is_some_and(|tos| tos & 3 != 0),
            Some((false, ip)) => header.get(ip + 1).is_some_and(|byte| byte >> 4 & 3 != 0),
            None => false,
        }
    }

    /// Sets congestion experienced.
    pub(crate) fn mark(&mut self) {
        self.marked = true;
    }

    fn payload_range(&self) -> Range<usize> {
        let all = self.packet().payload_len();
        match self.source().split {
            None => 0..all,
            Some(split) => {
                let start = usize::from(self.first) * split.size;
                start..(start + usize::from(self.count) * split.size).min(all)
            }
        }
    }

    /// Bytes of a frame of all segments together.
    pub(crate) fn len(&self) -> usize {
        self.packet().header().len() + self.payload_range().len()
    }

    /// Bytes of the headers of each segment.
    pub(crate) fn header_len(&self) -> usize {
        self.packet().header().len()
    }

    /// Length of the IP packet of a single segment; `None` if it is not IP.
    pub(crate) fn ip_len(&self) -> Option<usize> {
        let (_, ip) = ip_offset(self.packet().header())?;
        Some(self.len() - ip)
    }

    /// Bytes on the wire of the whole packet's segments up to and with `index`.
    pub(crate) fn wire_bytes_through(&self, index: u16) -> u64 {
        let header = self.packet().header().len();
        let all = self.packet().payload_len();
        match self.source().split {
            None => wire_bytes(header + all),
            Some(split) => {
                let full = u64::from(index) * wire_bytes(header + split.size);
                let left = all.saturating_sub(usize::from(index) * split.size);
                full + wire_bytes(header + left.min(split.size))
            }
        }
    }

    /// Number of the first segment within its packet.
    pub(crate) fn first(&self) -> u16 {
        self.first
    }

    /// Payload bytes of each segment but the last; 0 if the packet was none to be split.
    pub(crate) fn segment_size(&self) -> usize {
        self.source().split.map_or(0, |split| split.size)
    }

    /// The checksum that is to be filled in, if the sender left it to the device.
    pub(crate) fn checksum(&self) -> Option<ChecksumRequest> {
        self.packet().meta.checksum
    }

    /// The frame's first bytes as its sender gave them, headers or a part of them.
    pub(crate) fn head(&self) -> &[u8] {
        self.packet().header()
    }

    /// Destination and source address; `None` if the frame is shorter.
    pub(crate) fn addresses(&self) -> Option<([u8; 6], [u8; 6])> {
        // The header block of a packet of the stack, or of a scripted one, holds these.
        let header = self.packet().header();
        Some((header.get(..6)?.try_into().ok()?, header.get(6..12)?.try_into().ok()?))
    }

    /// The headers of one frame of all these segments. A checksum left to the device is still the pseudo-header's sum.
    pub(crate) fn write_header(&self, out: &mut [u8; linerate_nic::MAX_HEADER]) -> usize {
        let header = self.packet().header();
        out[..header.len()].copy_from_slice(header);
        let head = &mut out[..header.len()];
        if let Some(split) = self.source().split {
            self.adapt_header(head, split);
        }
        if self.marked {
            mark(head);
        }
        header.len()
    }

    /// Lengths, sequence number, flags of these segments.
    fn adapt_header(&self, head: &mut [u8], split: Split) {
        let tcp = usize::from(self.checksum().map_or(0, |request| request.start));
        let range = self.payload_range();
        let whole = head.len() - tcp + self.packet().payload_len();
        let len = head.len() - tcp + range.len();
        if split.is_v4 {
            add16(head, split.ip + 4, self.first);
            put16(head, split.ip + 2, (tcp - split.ip + len) as u16);
            put16(head, split.ip + 10, 0);
            let sum = checksum::sum(&head[split.ip..tcp]).finish();
            put16(head, split.ip + 10, sum);
        } else {
            put16(head, split.ip + 4, (tcp - split.ip - 40 + len) as u16);
        }
        let sequence = u32::from_be_bytes([head[tcp + 4], head[tcp + 5], head[tcp + 6], head[tcp + 7]]);
        let sequence = sequence.wrapping_add(range.start as u32);
        head[tcp + 4..tcp + 8].copy_from_slice(&sequence.to_be_bytes());
        let mut flags = Flags(head[tcp + 13]);
        if self.first + self.count < split.count {
            flags = flags.without(Flags::FIN.union(Flags::PSH));
        }
        if self.first > 0 {
            flags = flags.without(Flags::CWR);
        }
        head[tcp + 13] = flags.0;
        // The pseudo-header's sum has the length in it.
        let partial = u32::from(u16::from_be_bytes([head[tcp + 16], head[tcp + 17]]));
        put16(head, tcp + 16, fold(partial + (0xffff - fold(whole as u32) as u32) + len as u32));
    }

    /// Calls `each` with the pieces of the payload, in order.
    pub(crate) fn for_payload(&self, mut each: impl FnMut(&[u8])) {
        let range = self.payload_range();
        let mut at = 0;
        for chunk in self.packet().chunks() {
            let (start, end) = (range.start.max(at), range.end.min(at + chunk.len()));
            if start < end {
                each(&chunk.bytes()[start - at..end - at]);
            }
            at += chunk.len();
        }
    }

    /// Fills in the checksum that the sender left to the device.
    pub(crate) fn fill_checksum(&self, head: &mut [u8]) {
        let Some(request) = self.checksum() else { return };
        let (start, field) = (usize::from(request.start), usize::from(request.start + request.offset));
        if field + 2 > head.len() {
            return;
        }
        let mut sum = checksum::sum(&head[start..]);
        self.for_payload(|piece| checksum::add(&mut sum, piece));
        put16(head, field, checksum::field_value(sum, request.offset.into()));
    }

    /// Where flipped bits lie in a frame of `len` bytes, and their mask.
    pub(crate) fn damaged_bits(&self, len: usize) -> Option<(usize, u8)> {
        let damage = self.damage.filter(|_| len > 0)?;
        Some((damage.at as usize % len, damage.mask))
    }

    /// The frame as it is on the wire, without padding and frame check sequence. Of several segments: one of all.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut header = [0; linerate_nic::MAX_HEADER];
        let len = self.write_header(&mut header);
        self.fill_checksum(&mut header[..len]);
        let mut bytes = Vec::with_capacity(self.len());
        bytes.extend_from_slice(&header[..len]);
        self.for_payload(|piece| bytes.extend_from_slice(piece));
        if let Some((at, mask)) = self.damaged_bits(bytes.len()) {
            bytes[at] ^= mask;
        }
        bytes
    }
}

/// Whether it is IPv4 (else IPv6), and where its header begins, behind up to two VLAN tags.
pub(crate) fn ip_offset(frame: &[u8]) -> Option<(bool, usize)> {
    let mut at = 12;
    for _ in 0..3 {
        match u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]) {
            0x8100 | 0x88a8 => at += 4,
            0x0800 => return Some((true, at + 2)),
            0x86dd => return Some((false, at + 2)),
            _ => return None,
        }
    }
    None
}

fn mark(head: &mut [u8]) {
    match ip_offset(head) {
        Some((true, ip)) if head.len() >= ip + 20 => {
            let header_len = usize::from(head[ip] & 15) * 4;
            head[ip + 1] |= 3;
            put16(head, ip + 10, 0);
            let sum = checksum::sum(&head[ip..(ip + header_len).min(head.len())]).finish();
            put16(head, ip + 10, sum);
        }
        Some((false, ip)) if head.len() >= ip + 40 => head[ip + 1] |= 0x30,
        _ => {}
    }
}

fn put16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

fn add16(bytes: &mut [u8], at: usize, value: u16) {
    let old = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    put16(bytes, at, old.wrapping_add(value));
}

fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
