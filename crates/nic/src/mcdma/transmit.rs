//! The transmit side of a queue: packets to the engine, tokens back.

use crate::bus::Platform;
use crate::device::Capabilities;
use crate::layers;
use crate::mcdma::channel::Channel;
use crate::mcdma::counters::QueueStats;
use crate::mcdma::descriptor::Transmitted;
use crate::mcdma::layout::{Plan, Trouble};
use crate::mcdma::ring::{Ring, remainder};
use crate::mcdma::words::{AppWords, Request, Seeding};
use crate::meta::{Segmentation, TxToken};
use crate::pool::{Buffer, Pool};
use crate::tx::{MAX_CHUNKS, TxPacket, TxQueue};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;
use linerate_wire::units::Instant;

/// Bytes of an Ethernet header with two VLAN tags.
pub(crate) const ETHERNET: usize = 22;
/// Bytes of the longest packet that is to be split: of IP, and the Ethernet header.
pub(crate) const LONGEST_SPLIT: usize = 65_535 + ETHERNET;
/// Bytes of the headers that the hardware keeps to repeat them.
const MAX_SPLIT_HEADER: usize = 128;

/// What one transmit ring is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Descriptors.
    pub len: usize,
    /// Longest frame.
    pub longest: usize,
    /// Whether packets are split by the hardware.
    pub can_split: bool,
    pub words: AppWords,
    pub seeding: Seeding,
}

impl Shape {
    /// Longest packet.
    pub fn longest_packet(&self) -> usize {
        if self.can_split { LONGEST_SPLIT } else { self.longest }
    }

    /// Buffers of this size that the longest packet takes when all of it is copied.
    pub fn most_buffers(&self, buffer_size: usize) -> usize {
        self.longest_packet().div_ceil(buffer_size.max(1))
    }

    /// Descriptors that one packet takes at most: all of its pieces where they lie, or all copied.
    pub fn most_pieces(&self, buffer_size: usize) -> usize {
        self.most_buffers(buffer_size).max(1 + MAX_CHUNKS)
    }
}

/// A packet that the engine has.
struct InFlight {
    /// Keeps the payload alive.
    packet: TxPacket,
    /// Headers, and payload that was copied.
    buffers: Vec<Buffer>,
    /// Descriptors, and how many of them have come back, from the first on.
    descriptors: usize,
    returned: usize,
    /// Position of its first descriptor.
    position: u64,
    given: Instant,
    has_error: bool,
}

impl InFlight {
    fn new(most_buffers: usize) -> Self {
        InFlight {
            packet: TxPacket::default(),
            buffers: Vec::with_capacity(most_buffers),
            descriptors: 0,
            returned: 0,
            position: 0,
            given: Instant::ZERO,
            has_error: false,
        }
    }
}

/// What becomes of the packet at the front of the queue.
enum Fate {
    Given,
    Waits,
    Refused,
}

/// A ring of packets that the engine reads.
///
/// Headers are copied into buffers of `pool`, as the stack uses theirs again; payload is read where it lies, or copied where
/// the device does not reach it. All are the engine's from the doorbell until the last of the packet's descriptors has come back. Packets may come back in any order; their
/// descriptors are used again in the order of the ring.
pub(crate) struct Transmitter<P> {
    board: P,
    channel: Channel<P>,
    ring: Ring,
    /// The packets that the engine has lie from `first` to before `end`; both count up, and the place is the remainder.
    packets: Vec<InFlight>,
    first: u64,
    end: u64,
    /// Tokens that nobody has asked for yet.
    done: VecDeque<TxToken>,
    pool: Pool,
    shape: Shape,
    plan: Plan,
}

impl<P: Platform> Transmitter<P> {
    pub fn new(board: P, channel: Channel<P>, ring: Ring, pool: Pool, shape: Shape) -> Self {
        let most_buffers = shape.most_buffers(pool.buffer_size());
        let packets = (0..shape.len).map(|_| InFlight::new(most_buffers)).collect();
        let done = VecDeque::with_capacity(2 * shape.len);
        let plan = Plan::new(shape.most_pieces(pool.buffer_size()), most_buffers);
        Transmitter { board, channel, ring, packets, first: 0, end: 0, done, pool, shape, plan }
    }

    /// Starts the channel with nothing to do.
    pub fn start(&mut self) {
        self.ring.link(&self.board);
        self.channel.start(self.ring.address(0));
    }

    /// Gives packets from the front of `queue` to the engine until it is empty or the ring is full; how many were taken.
    pub fn transmit(
        &mut self,
        now: Instant,
        queue: &mut TxQueue,
        enabled: Capabilities,
        stats: &mut QueueStats,
    ) -> usize {
        let (mut count, before) = (0, self.ring.next());
        while let Some(packet) = queue.front_mut() {
            match self.give(now, packet, enabled, stats) {
                Fate::Given => {}
                Fate::Refused => {
                    stats.refused += 1;
                    self.report(packet.meta.token);
                }
                Fate::Waits => break,
            }
            queue.pop();
            count += 1;
        }
        if self.ring.next() != before {
            stats.doorbells += 1;
            self.channel.ring(self.ring.tail());
        }
        count
    }

    /// The token of a packet that has left or was given up.
    pub fn poll_completion(&mut self, stats: &mut QueueStats) -> Option<TxToken> {
        if self.done.is_empty() {
            self.harvest(stats);
        }
        self.done.pop_front()
    }

    /// Whether there is a token, or room again.
    pub fn is_ready(&mut self, stats: &mut QueueStats) -> bool {
        self.harvest(stats) || !self.done.is_empty()
    }

    /// Whether the engine has had a packet for `limit` since `from`, or since it got the packet if that was later.
    pub fn is_overdue(&self, now: Instant, from: Instant, limit: Duration) -> bool {
        let mut waiting = (self.first..self.end).map(|at| &self.packets[self.place(at)]);
        let oldest = waiting.find(|packet| packet.returned < packet.descriptors);
        oldest.is_some_and(|packet| packet.given.max(from) + limit <= now)
    }

    /// Resets the channel. What the engine had is reported and not sent again: nobody knows whether it has left, and the stack has
    /// its own means. False if the channel does not stop: the engine may still read the packets, which stay where they are.
    #[must_use]
    pub fn reset(&mut self, stats: &mut QueueStats) -> bool {
        if !self.channel.reset() {
            return false;
        }
        while self.first < self.end {
            let at = self.place(self.first);
            if self.packets[at].returned < self.packets[at].descriptors {
                stats.abandoned += 1;
                self.finish(at);
            }
            self.first += 1;
        }
        self.start();
        true
    }

    /// Stops the channel for good; buffers and payload are let go, unless it does not stop.
    pub fn stop(&mut self) {
        if !self.channel.reset() {
            // Better lost than read by the engine while somebody else writes to them.
            self.packets.drain(..).for_each(core::mem::forget);
        }
    }

    pub fn channel(&self) -> &Channel<P> {
        &self.channel
    }

    /// Lays `packet` out in the ring and keeps it; the slot of the queue gets an empty one.
    fn give(
        &mut self,
        now: Instant,
        packet: &mut TxPacket,
        enabled: Capabilities,
        stats: &mut QueueStats,
    ) -> Fate {
        if !self.is_sound(packet, enabled) {
            return if self.done.len() < self.packets.len() { Fate::Refused } else { Fate::Waits };
        }
        if !self.has_room(packet) {
            self.harvest(stats);
        }
        if !self.has_room(packet) || self.done.len() >= self.packets.len() {
            stats.ring_full += 1;
            return Fate::Waits;
        }
        let mut may_gather = enabled.gather;
        let mut result = self.plan.lay_out(packet, &self.board, &self.pool, may_gather);
        if may_gather && result == Err(Trouble::Pieces) {
            may_gather = false;
            result = self.plan.lay_out(packet, &self.board, &self.pool, false);
        }
        match result {
            Ok(copied) => stats.copied += u64::from(copied > 0),
            Err(Trouble::NoBuffer) => {
                stats.no_header_buffer += 1;
                return Fate::Waits;
            }
            Err(Trouble::Pieces) => return Fate::Refused,
        }
        let app = self.request(packet).encode(self.shape.words);
        self.plan.clean(packet, &self.board, may_gather);
        let position = self.ring.next();
        for (at, piece) in (position..).zip(&self.plan.pieces) {
            piece.store(&self.board, self.ring.address(at), &app);
        }
        let count = self.plan.pieces.len();
        self.ring.give(count);
        stats.sent += 1;
        stats.sent_bytes += packet.len() as u64;
        stats.sent_split += u64::from(packet.meta.segmentation != Segmentation::None);
        let at = self.place(self.end);
        self.end += 1;
        let kept = &mut self.packets[at];
        // The headers were copied.
        kept.packet.swap_payload(packet);
        kept.packet.meta = packet.meta;
        core::mem::swap(&mut kept.buffers, &mut self.plan.buffers);
        (kept.descriptors, kept.returned, kept.position) = (count, 0, position);
        (kept.given, kept.has_error) = (now, false);
        Fate::Given
    }

    /// Whether the packet's descriptors are free, however it is laid out.
    fn has_room(&self, packet: &TxPacket) -> bool {
        let copied = packet.len() / self.pool.buffer_size().max(1);
        let most = 1 + packet.chunks().len() + copied;
        let most = most.min(self.shape.most_pieces(self.pool.buffer_size()));
        self.ring.room() >= most && self.in_flight() < self.packets.len()
    }

    /// What to ask of the hardware for the packet that is laid out. Where the sum of the pseudo-header goes beside it, it is taken
    /// out of the copied headers.
    fn request(&mut self, packet: &TxPacket) -> Request {
        let meta = packet.meta;
        let mut request = Request { checksum: meta.checksum, ..Request::default() };
        if let (Seeding::Word, Some(checksum)) = (self.shape.seeding, meta.checksum) {
            let at = usize::from(checksum.start) + usize::from(checksum.offset);
            // A field that is not in the headers stays as it is, and so does its sum.
            request.seed = self.plan.take_word(at, packet.header().len()).unwrap_or(0);
        }
        if meta.segmentation != Segmentation::None {
            request.segmentation = meta.segmentation;
            request.header_len = packet.header().len() as u8;
            request.ip_start = ip_start(packet).unwrap_or(0);
        }
        request
    }

    /// Whether the hardware can do what the packet asks for. The offload layer asks for nothing else; a driver checks all the
    /// same, as hardware reads whatever it is told to.
    fn is_sound(&self, packet: &TxPacket, enabled: Capabilities) -> bool {
        let len = packet.len();
        let inside = packet.meta.checksum.is_none_or(|request| {
            let field = usize::from(request.start) + usize::from(request.offset);
            field + 2 <= len
        });
        let longest = match packet.meta.segmentation {
            Segmentation::None => self.shape.longest,
            Segmentation::Tcp4(size) if enabled.tso4 && size > 0 => LONGEST_SPLIT,
            Segmentation::Tcp6(size) if enabled.tso6 && size > 0 => LONGEST_SPLIT,
            _ => return false,
        };
        let is_whole = packet.meta.segmentation == Segmentation::None
            || self.shape.can_split
                && packet.meta.checksum.is_some()
                && packet.header().len() == usize::from(packet.meta.header_len)
                && packet.header().len() <= MAX_SPLIT_HEADER
                && ip_start(packet).is_some();
        inside && is_whole && (1..=longest).contains(&len)
    }

    /// Lets go of all packets whose descriptors have come back, in whatever order they have; true if there were any.
    ///
    /// A packet is done when each of its descriptors has been written back: one that is used again too early would be
    /// marked complete by the status of its former life. Hardware that writes back in order needs a look at the
    /// oldest packet alone.
    fn harvest(&mut self, stats: &mut QueueStats) -> bool {
        let mut any = false;
        for order in self.first..self.end {
            let at = self.place(order);
            let packet = &mut self.packets[at];
            if packet.returned == packet.descriptors {
                continue;
            }
            while packet.returned < packet.descriptors {
                let address = self.ring.address(packet.position + packet.returned as u64);
                let Some(transmitted) = Transmitted::load(&self.board, address) else { break };
                packet.has_error |= transmitted.has_error;
                packet.returned += 1;
            }
            if packet.returned == packet.descriptors {
                stats.transmit_errors += u64::from(packet.has_error);
                self.finish(at);
                any = true;
            }
        }
        while self.first < self.end {
            let oldest = &self.packets[self.place(self.first)];
            if oldest.returned < oldest.descriptors {
                break;
            }
            self.ring.take_back(oldest.descriptors);
            self.first += 1;
        }
        any
    }

    /// Lets go of a packet's buffer and payload, and reports its token.
    fn finish(&mut self, at: usize) {
        let packet = &mut self.packets[at];
        packet.returned = packet.descriptors;
        packet.buffers.clear();
        let token = packet.packet.meta.token;
        packet.packet.clear();
        self.report(token);
    }

    fn report(&mut self, token: TxToken) {
        if token != TxToken(0) {
            self.done.push_back(token);
        }
    }

    fn in_flight(&self) -> usize {
        (self.end - self.first) as usize
    }

    fn place(&self, order: u64) -> usize {
        remainder(order, self.packets.len() as u64) as usize
    }
}

/// Where the IP header of a packet begins.
fn ip_start(packet: &TxPacket) -> Option<u8> {
    let (_, at) = layers::ip_header(packet.header())?;
    u8::try_from(at).ok()
}
