//! The transmit side of a queue: packets to the engine, tokens back.

use crate::bus::Platform;
use crate::channel::Channel;
use crate::counters::QueueStats;
use crate::descriptor::{Piece, Transmitted};
use crate::ring::Ring;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;
use linerate_nic::{Buffer, Pool, Segmentation, TxPacket, TxQueue, TxToken};
use linerate_wire::units::Instant;

/// Most descriptors of one packet, its headers included; more cost more to fetch than their bytes cost to copy.
pub(crate) const MAX_PIECES: usize = 8;

/// A packet that the engine has.
#[derive(Default)]
struct InFlight {
    /// Keeps the payload alive.
    packet: TxPacket,
    /// Headers, or the whole packet.
    buffer: Option<Buffer>,
    /// Descriptors, and how many of them have come back, from the first on.
    descriptors: usize,
    returned: usize,
    /// Position of its first descriptor.
    position: u64,
    given: Instant,
    has_error: bool,
}

/// What becomes of the packet at the front of the queue.
enum Fate {
    Given,
    Waits,
    Refused,
}

/// A ring of packets that the engine reads.
///
/// Headers are copied into a buffer of `pool`, as the stack uses theirs again; payload is read where it lies. Both are the
/// engine's from the doorbell until the last of the packet's descriptors has come back. Packets may come back in any order; their
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
    /// Longest packet.
    longest: usize,
}

impl<P: Platform> Transmitter<P> {
    pub fn new(board: P, channel: Channel<P>, ring: Ring, len: usize, pool: Pool, longest: usize) -> Self {
        let mut packets = Vec::with_capacity(len);
        packets.resize_with(len, InFlight::default);
        let done = VecDeque::with_capacity(2 * len);
        Transmitter { board, channel, ring, packets, first: 0, end: 0, done, pool, longest }
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
        may_gather: bool,
        stats: &mut QueueStats,
    ) -> usize {
        let (mut count, before) = (0, self.ring.next());
        while let Some(packet) = queue.front_mut() {
            match self.give(now, packet, may_gather, stats) {
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
        may_gather: bool,
        stats: &mut QueueStats,
    ) -> Fate {
        if !self.is_sound(packet) {
            return if self.done.len() < self.packets.len() { Fate::Refused } else { Fate::Waits };
        }
        // As many as the largest packet needs: which it will be shows later.
        if self.ring.room() < MAX_PIECES || self.in_flight() == self.packets.len() {
            self.harvest(stats);
        }
        if self.ring.room() < MAX_PIECES
            || self.in_flight() == self.packets.len()
            || self.done.len() >= self.packets.len()
        {
            stats.ring_full += 1;
            return Fate::Waits;
        }
        let Some(mut buffer) = self.pool.take() else {
            stats.no_header_buffer += 1;
            return Fate::Waits;
        };
        let mut pieces = [Piece::default(); MAX_PIECES];
        let gathered = if may_gather { self.gather(packet, &mut buffer, &mut pieces) } else { None };
        let Some(count) = gathered.or_else(|| self.linearise(packet, &mut buffer, &mut pieces, stats)) else {
            return Fate::Refused;
        };
        pieces[0].is_first = true;
        pieces[0].checksum = packet.meta.checksum;
        pieces[count - 1].is_last = true;
        let position = self.ring.next();
        for (at, piece) in (position..).zip(&pieces[..count]) {
            piece.store(&self.board, self.ring.address(at));
        }
        self.ring.give(count);
        stats.sent += 1;
        stats.sent_bytes += packet.len() as u64;
        let at = self.place(self.end);
        self.end += 1;
        let kept = &mut self.packets[at];
        kept.packet.swap(packet);
        kept.buffer = Some(buffer);
        (kept.descriptors, kept.returned, kept.position) = (count, 0, position);
        (kept.given, kept.has_error) = (now, false);
        Fate::Given
    }

    /// Headers in the buffer, payload where it lies; `None` where the engine does not reach it, or in too many pieces.
    fn gather(
        &self,
        packet: &TxPacket,
        buffer: &mut Buffer,
        pieces: &mut [Piece; MAX_PIECES],
    ) -> Option<usize> {
        let header = packet.header();
        if header.is_empty() {
            return None;
        }
        pieces[0] = self.piece(buffer.bytes().get(..header.len())?)?;
        let mut count = 1;
        for chunk in packet.chunks().iter().filter(|chunk| !chunk.is_empty()) {
            *pieces.get_mut(count)? = self.piece(chunk.bytes())?;
            count += 1;
        }
        // All of it is reachable: only now is anything written.
        buffer.bytes_mut()[..header.len()].copy_from_slice(header);
        self.board.clean(&buffer.bytes()[..header.len()]);
        packet.chunks().iter().for_each(|chunk| self.board.clean(chunk.bytes()));
        Some(count)
    }

    /// All of the packet in the buffer.
    fn linearise(
        &self,
        packet: &TxPacket,
        buffer: &mut Buffer,
        pieces: &mut [Piece; MAX_PIECES],
        stats: &mut QueueStats,
    ) -> Option<usize> {
        let len = packet.linearise(buffer.bytes_mut())?;
        let bytes = &buffer.bytes()[..len];
        pieces[0] = self.piece(bytes)?;
        self.board.clean(bytes);
        stats.copied += u64::from(packet.payload_len() > 0);
        Some(1)
    }

    fn piece(&self, bytes: &[u8]) -> Option<Piece> {
        let len = u32::try_from(bytes.len()).ok()?;
        Some(Piece { buffer: self.board.bus_address(bytes)?, len, ..Piece::default() })
    }

    /// Whether the hardware can do what the packet asks for. The offload layer asks for nothing else; a driver checks all the
    /// same, as hardware reads whatever it is told to.
    fn is_sound(&self, packet: &TxPacket) -> bool {
        let inside = packet.meta.checksum.is_none_or(|request| {
            let field = usize::from(request.start) + usize::from(request.offset);
            field + 2 <= packet.len()
        });
        let len = packet.len();
        inside && len > 0 && len <= self.longest && packet.meta.segmentation == Segmentation::None
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
        packet.buffer = None;
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
        (order % self.packets.len() as u64) as usize
    }
}
