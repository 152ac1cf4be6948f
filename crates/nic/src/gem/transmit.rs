//! The transmit side of a queue: packets to the device, tokens back.

use crate::bus::Platform;
use crate::device::Capabilities;
use crate::gem::counters::QueueStats;
use crate::gem::descriptor::{Piece, TRANSMIT_LEN, Table};
use crate::gem::engine::{self, Installed};
use crate::gem::regs;
use crate::meta::{Segmentation, TxToken};
use crate::pool::Buffer;
use crate::tx::{MAX_CHUNKS, TxPacket, TxQueue};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;
use linerate_wire::units::Instant;

/// Bytes of the longest packet: an MTU of 1,500, an Ethernet header and a tag.
pub(super) const LONGEST: usize = 1_518;

/// What belongs to a descriptor while a packet begins with it.
struct Slot {
    /// Headers are copied here, as the stack uses theirs again.
    headers: Buffer,
    /// Keeps the payload alive.
    packet: TxPacket,
}

/// A packet that the device has.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    position: u64,
    descriptors: u64,
    token: TxToken,
    given: Instant,
}

/// What can be done with a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// Its payload is read where it lies.
    Gather,
    /// It is copied behind its headers: the device does not reach all of it.
    Copy,
    Refuse,
}

/// A ring of packets that the device reads.
///
/// Headers are copied, payload is read where it lies. Both are the device's from the moment that the first descriptor is
/// given until the device has marked that one: it marks no other (UG1085), so the driver does before they come round again.
/// One descriptor always stays with the driver.
pub(super) struct Transmitter<P> {
    board: P,
    table: Table,
    /// The register that says where the ring lies.
    register: u32,
    slots: Vec<Slot>,
    pieces: Vec<Piece>,
    in_flight: VecDeque<InFlight>,
    /// Position of the oldest descriptor that the device has, and of the next to give.
    oldest: u64,
    next: u64,
    /// Tokens that nobody has asked for yet.
    done: VecDeque<TxToken>,
    /// Descriptors that the packet at the front of the queue waits for; 0 if none waits.
    waits_for: usize,
}

impl<P: Platform> Transmitter<P> {
    /// With a buffer for headers for each descriptor.
    pub fn new(board: P, table: Table, queue: u16, headers: Vec<Buffer>) -> Self {
        let slot = |headers| Slot { headers, packet: TxPacket::default() };
        let slots: Vec<_> = headers.into_iter().map(slot).collect();
        let len = slots.len();
        Transmitter {
            board,
            table,
            register: regs::QueueRegisters::of(queue).transmit_base,
            slots,
            pieces: Vec::with_capacity(1 + MAX_CHUNKS),
            in_flight: VecDeque::with_capacity(len),
            oldest: 0,
            next: 0,
            // A token more for each packet that was refused in a batch.
            done: VecDeque::with_capacity(2 * len),
            waits_for: 0,
        }
    }

    /// Begins with an empty ring. What the device had is reported and not sent again: nobody knows what had left, and the
    /// stack has its own means. `None` if the device does not let go of the former ring: it may still read the packets,
    /// which stay where they are.
    #[must_use]
    pub fn restart(&mut self, stats: &mut QueueStats) -> Option<Installed> {
        self.harvest(stats);
        let (board, table) = (&self.board, self.table);
        let clear = || (0..u64::from(table.len)).for_each(|at| table.take_transmit(board, at));
        let how = engine::install_transmit(board, self.register, table, clear)?;
        while let Some(packet) = self.in_flight.pop_front() {
            stats.drop_tx_abandoned += 1;
            self.finish(packet);
        }
        (self.oldest, self.next) = (0, 0);
        Some(how)
    }

    /// Points the device to the ring that is never its own; buffers and payload are let go, unless that fails.
    pub fn stop(&mut self, idle: Table) -> Option<Installed> {
        let how = engine::install_transmit(&self.board, self.register, idle, || ());
        if how.is_none() {
            // Better lost than read by the device while somebody else writes to them.
            self.slots.drain(..).for_each(core::mem::forget);
        }
        how
    }

    /// Gives packets from the front of `queue` to the device until it is empty or the ring is full; how many were taken.
    pub fn transmit(
        &mut self,
        now: Instant,
        queue: &mut TxQueue,
        enabled: Capabilities,
        stats: &mut QueueStats,
    ) -> usize {
        let (mut count, before) = (0, self.next);
        self.waits_for = 0;
        while let Some(packet) = queue.front_mut() {
            let needed = 1 + packet.chunks().len();
            if self.room() < needed || self.done.len() >= self.slots.len() {
                self.harvest(stats);
            }
            if self.room() < needed || self.done.len() >= self.slots.len() {
                stats.tx_full += 1;
                self.waits_for = needed;
                break;
            }
            let way = self.way(packet, enabled);
            if way == Way::Refuse {
                stats.drop_tx_errors += 1;
                report(&mut self.done, packet.meta.token);
            } else {
                stats.tx_packets += 1;
                stats.tx_copied += u64::from(way == Way::Copy);
                self.give(now, packet, way);
            }
            queue.pop();
            count += 1;
        }
        if self.next != before {
            stats.doorbells += 1;
            self.start();
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

    /// Whether there is a token, or room that was waited for. A doorbell that the device heard while it was about to find
    /// nothing more is lost; so it is rung once more for what it still has.
    pub fn is_ready(&mut self, stats: &mut QueueStats) -> bool {
        self.harvest(stats);
        if self.has_packets() {
            self.start();
        }
        let has_room = self.waits_for > 0 && self.room() >= self.waits_for;
        has_room || !self.done.is_empty()
    }

    /// Whether the device has packets.
    pub fn has_packets(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// Whether the device has had the oldest packet for so long.
    pub fn is_overdue(&self, now: Instant, limit: Duration) -> bool {
        self.in_flight.front().is_some_and(|packet| packet.given + limit <= now)
    }

    fn start(&self) {
        self.board.write(regs::NETWORK_CONTROL, regs::RUNNING | regs::START);
    }

    /// What can be done with a packet. The offload layer asks for nothing that the device lacks; a driver checks all the same.
    fn way(&self, packet: &TxPacket, enabled: Capabilities) -> Way {
        let is_asked_right = packet.meta.checksum.is_none_or(|request| {
            let field = usize::from(request.start) + usize::from(request.offset);
            (enabled.tx_checksum4 || enabled.tx_checksum6) && field + 2 <= packet.header().len()
        });
        let is_whole = packet.meta.segmentation == Segmentation::None;
        let room = self.slots[self.table.slot(self.next)].headers.len();
        let has_header = (1..=room).contains(&packet.header().len());
        if !is_asked_right || !is_whole || !has_header || packet.len() > LONGEST {
            return Way::Refuse;
        }
        let reached = |bytes| engine::reach(&self.board, bytes, self.table.is_wide).is_some();
        if packet.chunks().iter().all(|chunk| chunk.is_empty() || reached(chunk.bytes())) {
            Way::Gather
        } else if packet.len() <= room {
            Way::Copy
        } else {
            Way::Refuse
        }
    }

    /// Lays `packet` out in the ring; there is room. Payload is kept, and the slot of the queue gets an empty packet.
    fn give(&mut self, now: Instant, packet: &mut TxPacket, way: Way) {
        let slot = &mut self.slots[self.table.slot(self.next)];
        let len = if way == Way::Copy { packet.len() } else { packet.header().len() };
        let copied = &mut slot.headers.bytes_mut()[..len];
        if way == Way::Copy {
            // It fits, as was found out before.
            let fits = packet.linearise(copied);
            debug_assert_eq!(fits, Some(len));
        } else {
            copied.copy_from_slice(packet.header());
        }
        if let Some(request) = packet.meta.checksum {
            // The device sums the pseudo-header by itself, and what it finds in the field.
            let field = usize::from(request.start) + usize::from(request.offset);
            copied[field..field + 2].fill(0);
        }
        let wide = self.table.is_wide;
        self.pieces.clear();
        let headers = &slot.headers.bytes()[..len];
        let chunks = if way == Way::Copy { &[] } else { packet.chunks() };
        let payload = chunks.iter().map(|chunk| chunk.bytes()).filter(|bytes| !bytes.is_empty());
        for bytes in core::iter::once(headers).chain(payload) {
            self.board.clean(bytes);
            // Found out when the queue was started, and for each packet.
            let address = engine::reach(&self.board, bytes, wide).unwrap_or_default();
            self.pieces.push(Piece { address, len: bytes.len() as u32 & TRANSMIT_LEN });
        }
        self.table.give_transmit(&self.board, self.next, &self.pieces);
        let descriptors = self.pieces.len() as u64;
        let token = packet.meta.token;
        self.in_flight.push_back(InFlight { position: self.next, descriptors, token, given: now });
        self.next += descriptors;
        if way == Way::Gather && !packet.chunks().is_empty() {
            slot.packet.swap_payload(packet);
        }
    }

    /// Lets go of all packets that have left.
    pub fn harvest(&mut self, stats: &mut QueueStats) {
        while let Some(packet) = self.in_flight.front().copied()
            && let Some(has_failed) = self.table.sent(&self.board, packet.position)
        {
            self.in_flight.pop_front();
            stats.drop_tx_failed += u64::from(has_failed);
            // The device has marked the first.
            let rest = packet.position + 1..packet.position + packet.descriptors;
            rest.for_each(|position| self.table.take_transmit(&self.board, position));
            self.oldest = packet.position + packet.descriptors;
            self.finish(packet);
        }
    }

    fn finish(&mut self, packet: InFlight) {
        let slot = &mut self.slots[self.table.slot(packet.position)];
        if !slot.packet.is_empty() {
            slot.packet.clear();
        }
        report(&mut self.done, packet.token);
    }

    fn room(&self) -> usize {
        usize::from(self.table.len) - 1 - (self.next - self.oldest) as usize
    }
}

fn report(done: &mut VecDeque<TxToken>, token: TxToken) {
    if token != TxToken(0) {
        done.push_back(token);
    }
}
