//! Datagrams put together from fragments, of both families, within a fixed number of buffers.
//!
//! A datagram that begins to arrive takes one buffer from the datagram pool, and is dropped if it turns out to be longer; its fragments are copied to their
//! places, so that small fragments do not hold large receive buffers, and the whole is contiguous when it is complete.
//! When no buffer is free the oldest incomplete datagram of the source that has most gives way (sources of IPv6 count by
//! their /64), and a source never has more than half of the buffers (two at least): a flood of fragments displaces only its own, unless it
//! forges many sources. What is refused (RFC 5722, RFC 8200 section 4.5,
//! RFC 1858, RFC 3128, RFC 7112):
//!
//! - a fragment that overlaps another with different bytes, and with it the whole datagram (an exact repetition is
//!   ignored);
//! - a first fragment that ends before the layer-4 header does, and a TCP fragment that starts within it;
//! - a fragment that is not the last and not a multiple of 8 bytes, or that reaches beyond 65,535 bytes;
//! - a datagram in more pieces out of order than [`MAX_HOLES`];
//! - a datagram of which a part was marked by a router, and a part says that it does not know of ECN (RFC 3168 section 5.3).

use crate::counters::Counters;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;
use linerate_nic::{Buffer, Pool, Slice};
use linerate_wire::ip::{Ecn, Protocol};
use linerate_wire::units::Instant;
use linerate_wire::{checksum, ipv6};

/// Most disjoint pieces of one datagram.
pub(crate) const MAX_HOLES: usize = 64;
/// Room for the IP header (IPv6, or IPv4 without options) before the payload.
pub(crate) const HEADROOM: usize = 40;
/// Bytes of a buffer that any datagram fits into.
pub(crate) const DATAGRAM_BUFFER: usize = HEADROOM + 65_535;
/// RFC 8200 section 4.5.
const TIMEOUT6: Duration = Duration::from_secs(60);
/// What Linux takes; RFC 1122 section 3.3.2 leaves 60 to 120 s, made for slower networks.
const TIMEOUT4: Duration = Duration::from_secs(30);

/// What fragments of one datagram have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FragmentKey {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) identification: u32,
    /// IPv4 only: part of the identification there, and `Protocol(0)` for IPv6.
    pub(crate) protocol: Protocol,
}

/// One fragment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragment<'a> {
    pub(crate) key: FragmentKey,
    /// The IP header: the first 20 bytes of an IPv4 header, the 40 of an IPv6 header.
    pub(crate) header: &'a [u8],
    /// What the payload of the datagram is.
    pub(crate) protocol: Protocol,
    /// Where the payload lies in that of the datagram, in bytes.
    pub(crate) offset: usize,
    /// More fragments follow.
    pub(crate) more: bool,
    /// Sent to a group or to all, at the link layer or above.
    pub(crate) is_group: bool,
    pub(crate) ecn: Ecn,
    pub(crate) payload: &'a [u8],
}

/// What came of a fragment.
#[derive(Debug)]
pub(crate) enum Reassembled {
    /// The datagram is not complete, or was dropped (and counted).
    Nothing,
    /// A complete packet from its IP header on, as if it had never been fragmented. Checksums of layer 4 are unchecked.
    Complete {
        data: Slice,
        /// One of its fragments at least was sent to a group.
        is_group: bool,
    },
    /// The fragment has a length that is no multiple of 8 (IPv6 answers with a parameter problem, RFC 8200 section 4.5).
    BadLength,
    /// The datagram would be longer than 65,535 bytes (the same).
    TooLong,
    /// The first fragment does not hold all headers (IPv6 answers with a parameter problem, RFC 7112 section 5).
    Tiny,
}

struct Piece {
    start: u32,
    end: u32,
}

struct Assembly {
    key: FragmentKey,
    buffer: Buffer,
    header_len: usize,
    protocol: Protocol,
    /// Disjoint, sorted, never adjacent.
    pieces: Vec<Piece>,
    /// Length of the payload, once the last fragment came.
    total: Option<u32>,
    /// Length of the first fragment's; 0 while it has not come.
    first: u32,
    /// Whether any fragment was sent to a group.
    is_group: bool,
    /// The ECN code points of its fragments, a bit for each.
    marks: u8,
    deadline: Instant,
}

/// A datagram that did not become complete in time, with the beginning of its first fragment if that came.
#[derive(Debug)]
pub(crate) struct Expired {
    /// From the IP header on, for the ICMP error; `None` when the first fragment is missing (RFC 792, RFC 4443
    /// section 3.3).
    pub(crate) quote: Option<Slice>,
    /// A group's: no error is sent about it (RFC 1122 section 3.2.2, RFC 4443 section 2.4(e)).
    pub(crate) is_group: bool,
}

/// The table of incomplete datagrams.
pub(crate) struct Reassembly {
    slots: Vec<Assembly>,
    spare: Vec<Vec<Piece>>,
    pool: Pool,
    limit: usize,
    /// Bytes of payload that a buffer holds.
    longest: usize,
}

impl Reassembly {
    /// A table that uses buffers of `pool`, at most `limit` at once.
    pub(crate) fn new(pool: Pool, limit: usize) -> Self {
        Reassembly {
            longest: pool.buffer_size().saturating_sub(HEADROOM),
            slots: Vec::with_capacity(limit),
            spare: (0..limit).map(|_| Vec::with_capacity(MAX_HOLES + 1)).collect(),
            pool,
            limit,
        }
    }

    /// Incomplete datagrams.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// When the next datagram expires.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.slots.iter().map(|slot| slot.deadline).min()
    }

    /// Takes a fragment.
    pub(crate) fn handle(
        &mut self,
        fragment: &Fragment<'_>,
        now: Instant,
        counters: &mut Counters,
    ) -> Reassembled {
        let end = fragment.offset + fragment.payload.len();
        if fragment.more && !fragment.payload.len().is_multiple_of(8) || fragment.payload.is_empty() {
            counters.drop_fragment_length += 1;
            return Reassembled::BadLength;
        }
        let most = if fragment.key.source.is_ipv4() { 65_535 - 20 } else { 65_535 };
        if end > most || fragment.header.len() > HEADROOM {
            counters.drop_fragment_too_long += 1;
            return Reassembled::TooLong;
        }
        if is_tiny(fragment) {
            counters.drop_fragment_tiny += 1;
            return Reassembled::Tiny;
        }
        if end > self.longest {
            counters.drop_reassembly_full += 1;
            self.position(&fragment.key).into_iter().for_each(|at| self.discard(at));
            return Reassembled::Nothing;
        }
        let Some(at) = self.find_or_begin(fragment, now, counters) else { return Reassembled::Nothing };
        let slot = &mut self.slots[at];
        slot.is_group |= fragment.is_group;
        match slot.place(fragment, end as u32) {
            Ok(()) => {}
            Err(Refused::Overlap) => {
                counters.drop_fragment_overlap += 1;
                self.discard(at);
                return Reassembled::Nothing;
            }
            Err(Refused::Holes) => {
                counters.drop_fragment_holes += 1;
                self.discard(at);
                return Reassembled::Nothing;
            }
        }
        if !slot.is_complete() {
            return Reassembled::Nothing;
        }
        if slot.is_marked() && slot.has_mark(Ecn::NotCapable) {
            counters.drop_fragment_ecn += 1;
            self.discard(at);
            return Reassembled::Nothing;
        }
        let mut done = self.slots.swap_remove(at);
        self.recycle(core::mem::take(&mut done.pieces));
        counters.datagrams_reassembled += 1;
        let is_group = done.is_group;
        Reassembled::Complete { data: done.finish(), is_group }
    }

    /// Takes a datagram that is too old at `now`.
    pub(crate) fn pop_expired(&mut self, now: Instant) -> Option<Expired> {
        let at = self.slots.iter().position(|slot| slot.deadline <= now)?;
        let mut slot = self.slots.swap_remove(at);
        let pieces = core::mem::take(&mut slot.pieces);
        self.recycle(pieces);
        let is_group = slot.is_group;
        Some(Expired { quote: slot.quote(), is_group })
    }

    fn find_or_begin(
        &mut self,
        fragment: &Fragment<'_>,
        now: Instant,
        counters: &mut Counters,
    ) -> Option<usize> {
        if let Some(at) = self.position(&fragment.key) {
            return Some(at);
        }
        let own = self.count_of(fragment.key.source);
        let mut buffer = None;
        if self.slots.len() < self.limit && own < self.limit.div_ceil(2).max(2) {
            buffer = self.pool.take();
        }
        if buffer.is_none()
            && let Some(victim) = self.victim()
        {
            counters.drop_reassembly_full += 1;
            self.discard(victim);
            buffer = self.pool.take();
        }
        let Some(buffer) = buffer else {
            counters.drop_reassembly_full += 1;
            return None;
        };
        let timeout = if fragment.key.source.is_ipv4() { TIMEOUT4 } else { TIMEOUT6 };
        self.slots.push(Assembly {
            key: fragment.key,
            buffer,
            header_len: fragment.header.len(),
            protocol: fragment.protocol,
            pieces: self.spare.pop().unwrap_or_default(),
            total: None,
            first: 0,
            is_group: false,
            marks: 0,
            deadline: now + timeout,
        });
        Some(self.slots.len() - 1)
    }

    fn position(&self, key: &FragmentKey) -> Option<usize> {
        self.slots.iter().position(|slot| slot.key == *key)
    }

    /// Incomplete datagrams of this source.
    fn count_of(&self, source: IpAddr) -> usize {
        self.slots.iter().filter(|slot| site(slot.key.source) == site(source)).count()
    }

    /// The oldest datagram of the source that has most; of several such sources, the oldest of all. A walk over a table
    /// of a few dozen, only while it is full.
    fn victim(&self) -> Option<usize> {
        let rank = |at: &usize| {
            let slot = &self.slots[*at];
            (core::cmp::Reverse(self.count_of(slot.key.source)), slot.deadline)
        };
        (0..self.slots.len()).min_by_key(rank)
    }

    fn discard(&mut self, at: usize) {
        let slot = self.slots.swap_remove(at);
        self.recycle(slot.pieces);
    }

    fn recycle(&mut self, mut pieces: Vec<Piece>) {
        pieces.clear();
        if self.spare.len() < self.limit {
            self.spare.push(pieces);
        }
    }
}

/// What counts as one source: an IPv4 address, or an IPv6 network of 64 bits, all of whose addresses one host can have.
fn site(source: IpAddr) -> u128 {
    match source {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().to_bits(),
        IpAddr::V6(ip) => ip.to_bits() >> 64 << 64,
    }
}

enum Refused {
    Overlap,
    Holes,
}

impl Assembly {
    /// Copies the fragment to its place.
    fn place(&mut self, fragment: &Fragment<'_>, end: u32) -> Result<(), Refused> {
        let start = fragment.offset as u32;
        let last_end = self.pieces.last().map_or(0, |piece| piece.end);
        if !fragment.more {
            // A second end elsewhere, or data beyond the end, contradicts what came before.
            if self.total.is_some_and(|total| total != end) || last_end > end {
                return Err(Refused::Overlap);
            }
        } else if self.total.is_some_and(|total| end > total) {
            return Err(Refused::Overlap);
        }
        let at = self.pieces.partition_point(|piece| piece.end <= start);
        if let Some(next) = self.pieces.get(at)
            && next.start < end
        {
            let same =
                next.start <= start && end <= next.end && self.payload(start, end) == Some(fragment.payload);
            return if same { Ok(()) } else { Err(Refused::Overlap) };
        }
        if self.pieces.len() >= MAX_HOLES {
            return Err(Refused::Holes);
        }
        let (from, to) = (HEADROOM + start as usize, HEADROOM + end as usize);
        if let Some(place) = self.buffer.bytes_mut().get_mut(from..to) {
            place.copy_from_slice(fragment.payload);
        }
        if !fragment.more {
            self.total = Some(end);
        }
        if start == 0 {
            // What the first fragment says counts (RFC 8200 section 4.5).
            self.first = end;
            self.protocol = fragment.protocol;
            self.header_len = fragment.header.len();
            let from = HEADROOM - self.header_len;
            self.buffer.bytes_mut()[from..HEADROOM].copy_from_slice(fragment.header);
        }
        self.marks |= 1 << fragment.ecn.bits();
        self.pieces.insert(at, Piece { start, end });
        self.merge(at);
        Ok(())
    }

    /// Joins the piece at `at` with the one after it and the one before it, where they touch.
    fn merge(&mut self, at: usize) {
        if at + 1 < self.pieces.len() && self.pieces[at].end == self.pieces[at + 1].start {
            self.pieces[at].end = self.pieces[at + 1].end;
            self.pieces.remove(at + 1);
        }
        if at > 0 && self.pieces[at - 1].end == self.pieces[at].start {
            self.pieces[at - 1].end = self.pieces[at].end;
            self.pieces.remove(at);
        }
    }

    fn payload(&self, start: u32, end: u32) -> Option<&[u8]> {
        self.buffer.bytes().get(HEADROOM + start as usize..HEADROOM + end as usize)
    }

    fn is_complete(&self) -> bool {
        match (&self.pieces[..], self.total) {
            ([piece], Some(total)) => piece.start == 0 && piece.end == total,
            _ => false,
        }
    }

    fn has_mark(&self, ecn: Ecn) -> bool {
        self.marks & 1 << ecn.bits() != 0
    }

    /// Whether a router has marked a part of it: that must not be lost, nor become the mark of what does not know of ECN (RFC 3168
    /// section 5.3).
    fn is_marked(&self) -> bool {
        self.has_mark(Ecn::Congested)
    }

    fn finish(mut self) -> Slice {
        let len = self.total.unwrap_or(0) as usize;
        // The traffic class of IPv6 is not on a boundary of bytes.
        let shift = if self.key.source.is_ipv4() { 0 } else { 4 };
        if self.is_marked()
            && let Some(class) = self.buffer.bytes_mut().get_mut(HEADROOM - self.header_len + 1)
        {
            *class |= Ecn::Congested.bits() << shift;
        }
        let (start, is_v4) = (HEADROOM - self.header_len, self.key.source.is_ipv4());
        if let Some(header) = self.buffer.bytes_mut().get_mut(start..HEADROOM) {
            if is_v4 {
                unfragment4(header, (self.header_len + len) as u16);
            } else {
                set6(header, len as u16, self.protocol);
            }
        }
        self.buffer.freeze(start..HEADROOM + len)
    }

    /// Its first fragment as it came, without what was not kept of it: options, or extension headers before that of the fragment.
    fn quote(mut self) -> Option<Slice> {
        let (start, first) = (HEADROOM - self.header_len, self.first as usize);
        let (front, payload) = self.buffer.bytes_mut().split_at_mut_checked(HEADROOM)?;
        let header = front.get_mut(start..)?;
        if first == 0 {
            return None;
        }
        if self.key.source.is_ipv4() {
            set4(header, (self.header_len + first) as u16);
            return Some(self.buffer.freeze(start..HEADROOM + first));
        }
        let (next_header, identification) = (self.protocol, self.key.identification);
        let fragment = ipv6::Fragment { next_header, offset: 0, more: true, identification };
        let kept = first.min(payload.len().checked_sub(ipv6::Fragment::LEN)?);
        payload.copy_within(..kept, ipv6::Fragment::LEN);
        fragment.emit(payload).ok()?;
        set6(header, (ipv6::Fragment::LEN + first) as u16, Protocol::FRAGMENT);
        Some(self.buffer.freeze(start..HEADROOM + ipv6::Fragment::LEN + kept))
    }
}

/// Makes the header of a first fragment that of the whole datagram.
fn unfragment4(header: &mut [u8], total_len: u16) {
    if let Some(flags) = header.get_mut(6..8) {
        flags.fill(0);
    }
    set4(header, total_len);
}

/// Sets the length of a packet without options.
fn set4(header: &mut [u8], total_len: u16) {
    let Some(header) = header.first_chunk_mut::<20>() else { return };
    header[0] = 0x45;
    header[2..4].copy_from_slice(&total_len.to_be_bytes());
    header[10..12].fill(0);
    let sum = checksum::checksum(header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// The same for IPv6, and what follows the header; extension headers before the fragment header have been dealt with already.
fn set6(header: &mut [u8], payload_len: u16, next_header: Protocol) {
    let Some(header) = header.first_chunk_mut::<40>() else { return };
    header[4..6].copy_from_slice(&payload_len.to_be_bytes());
    header[6] = next_header.0;
}

/// Whether a fragment hides a layer-4 header from filters, or starts inside one.
fn is_tiny(fragment: &Fragment<'_>) -> bool {
    let header_len = match fragment.protocol {
        Protocol::TCP => 20,
        Protocol::UDP | Protocol::ICMPV4 | Protocol::ICMPV6 => 8,
        _ => 0,
    };
    if fragment.offset == 0 {
        fragment.more && fragment.payload.len() < header_len
    } else {
        fragment.protocol == Protocol::TCP && fragment.offset < header_len
    }
}

#[cfg(test)]
#[path = "reassembly_tests.rs"]
mod tests;
