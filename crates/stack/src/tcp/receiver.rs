//! The receiving half: what arrived, what waits for it, and the window that is promised.
//!
//! Positions are 64-bit sequence numbers. Payload is kept by handle. A piece that fills less than half of its buffer is
//! copied behind the bytes before it where the buffer of these has room, and one of less than a quarter into a page
//! otherwise, so that what a connection is charged with stays within four times what it holds.
//!
//! The right edge of the window, once promised, is honoured: bytes up to it are taken even if the limit has fallen since.
//! So it moves only as far as memory is there for all that may come: what it lets in is entered into the budget as a promise
//! ([`super::budget`]), at the rate at which this connection's data fills its buffers.
//! The window field has a granularity of 2^scale; it is rounded down, and so may name up to 2^scale - 1 bytes less
//! than was promised before (RFC 7323 section 2.4). Nothing is refused for that.

mod at_rest;
mod window;

pub(super) use at_rest::ReceiverAtRest;
pub(super) use window::first_window_of;

use super::autotune::ReceiveTuner;
use super::budget::{Charge, MemoryBudget, Promise};
use super::pages;
use super::reassembly::Reassembly;
use super::segment::DropReason;
use super::shortcuts_are_off;
use super::spare;
use alloc::collections::VecDeque;
use linerate_nic::{Pieces, Pool, Slice};
use linerate_wire::tcp::SackBlocks;
use linerate_wire::units::Instant;

/// A slice is copied into a page when its buffer is this many times larger.
const COMPACT_BELOW: usize = 4;

/// A slice is copied behind the one before it when its buffer is this many times larger.
const APPEND_BELOW: usize = 2;

/// The receive buffer that [`super::Config::max_out_of_order_pieces`] counts for, in bytes: larger ones hold more segments.
const PIECES_WITHIN: usize = 2 << 20;

/// Memory for what waits, whatever the receive buffer: one super-frame in its buffer, and some segments.
const LEAST_WAITING_HELD: usize = 128 << 10;

/// What a segment's payload did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Arrival {
    /// Bytes that became readable.
    pub in_order: usize,
    /// Payload was put aside because something before it is missing.
    pub out_of_order: bool,
    /// Data that waited became readable, or data still waits: the peer should know at once (RFC 5681 section 4.2).
    pub gap: bool,
    /// Some of it had been received before.
    pub duplicate: bool,
    /// Everything up to the peer's FIN is here, newly.
    pub finished: bool,
    /// Why payload was not kept.
    pub dropped: Option<DropReason>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Receiver {
    /// The next byte expected (RCV.NXT).
    next: u64,
    /// The right edge promised (RCV.NXT + RCV.WND at its greatest).
    edge: u64,
    /// Our window scale.
    pub scale: u8,
    queue: VecDeque<Slice>,
    queued: usize,
    waiting: Reassembly,
    /// Bytes that wait.
    waiting_len: usize,
    /// Memory that what waits holds, in bytes.
    waiting_held: usize,
    max_waiting: usize,
    /// Position of the peer's FIN, once seen.
    fin: Option<u64>,
    finished: bool,
    discard: bool,
    duplicate: Option<(u64, u64)>,
    /// Size of the buffer.
    pub tuner: ReceiveTuner,
    charge: Charge,
    promise: Promise,
    /// Nothing came for a while; see [`Receiver::rest`].
    rests: bool,
    /// Memory that a byte of data takes, as arrivals have shown, in [`window::COST_ONE`]ths of a byte.
    cost: usize,
    /// Bytes of a full segment.
    mss: usize,
    pages: Pool,
    /// Payload bytes received in order.
    pub bytes_received: u64,
    /// Payload bytes copied.
    pub bytes_compacted: u64,
}

impl Receiver {
    /// A receiver that does not know its first sequence number yet. `mss`: bytes of a full segment.
    pub fn new(
        tuner: ReceiveTuner,
        budget: &MemoryBudget,
        pages: Pool,
        mss: usize,
        max_waiting: usize,
    ) -> Self {
        let mss = mss.max(1);
        let cost = window::first_cost(budget, mss);
        Receiver {
            next: 0,
            edge: 0,
            scale: 0,
            queue: VecDeque::new(),
            queued: 0,
            waiting: Reassembly::default(),
            waiting_len: 0,
            waiting_held: 0,
            max_waiting,
            fin: None,
            finished: false,
            discard: false,
            duplicate: None,
            tuner,
            charge: budget.charge(),
            promise: budget.promise(window::grant(budget, mss)),
            rests: false,
            cost,
            mss,
            pages,
            bytes_received: 0,
            bytes_compacted: 0,
        }
    }

    /// The first byte of data will be number `next`; the peer has been told of a window of `told` bytes.
    ///
    /// The window of a SYN is not scaled; what the SYN that went before may have promised is taken.
    pub fn start(&mut self, next: u64, told: u64) {
        let told = told.max(self.edge - self.next);
        self.next = next;
        self.edge = next + told.max(self.first_window());
        self.enter_promise();
    }

    /// A full segment has so many bytes of data: windows are made of whole ones, so that the peer has no use for a short one
    /// at their end.
    pub fn set_segment(&mut self, mss: u64) {
        self.mss = (mss as usize).max(1);
    }

    /// The next sequence number expected, FIN included (RCV.NXT).
    pub fn next(&self) -> u64 {
        self.next + u64::from(self.finished)
    }

    /// The right edge of the window: segments beyond are not acceptable.
    pub fn edge(&self) -> u64 {
        self.edge.max(self.next())
    }

    /// Bytes that are readable.
    pub fn readable(&self) -> usize {
        self.queued
    }

    /// The first contiguous piece.
    #[inline]
    pub fn peek(&self) -> &[u8] {
        self.queue.front().map_or(&[], Slice::bytes)
    }

    /// All pieces that are readable, in order.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.queue.iter().map(Slice::bytes)
    }

    /// The application read `len` bytes.
    pub fn read(&mut self, now: Instant, len: usize) {
        let budget = self.charge.budget();
        self.tuner.on_read(now, len, || !budget.is_tight());
    }

    /// The budget that everything is charged against.
    pub fn budget(&self) -> &MemoryBudget {
        self.charge.budget()
    }

    /// Memory held, in bytes.
    pub fn held(&self) -> usize {
        self.charge.bytes()
    }

    /// Whether the peer's FIN and all before it arrived.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Whether something waits for data before it.
    pub fn has_gap(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Releases up to `len` readable bytes; returns how many.
    #[inline]
    pub fn consume(&mut self, len: usize) -> usize {
        let mut left = len.min(self.queued);
        let count = left;
        self.rests &= count == 0;
        while left > 0 {
            let Some(front) = self.queue.front_mut() else { break };
            if front.len() > left {
                front.trim_front(left);
                break;
            }
            left -= front.len();
            self.charge.sub(front.held());
            self.queue.pop_front();
        }
        self.queued -= count;
        if self.charge.bytes() < self.promise.grant() {
            self.enter_promise();
        }
        if self.queue.is_empty() && self.finished {
            spare::empty(&mut self.queue);
        }
        count
    }

    /// Drops what waits for data before it. False if nothing does.
    pub fn drop_waiting(&mut self) -> bool {
        if self.waiting.is_empty() {
            return false;
        }
        self.waiting.clear();
        self.charge.sub(self.waiting_held);
        (self.waiting_held, self.waiting_len) = (0, 0);
        self.enter_promise();
        // The FIN that was seen may belong to what is gone; it comes again too.
        if !self.finished {
            self.fin = None;
        }
        true
    }

    /// From now on everything that arrives is acknowledged and thrown away.
    pub fn discard(&mut self) {
        self.discard = true;
        self.consume(self.queued);
    }

    /// Throws everything away.
    pub fn clear(&mut self) {
        spare::empty(&mut self.queue);
        self.queued = 0;
        self.waiting.clear();
        (self.waiting_held, self.waiting_len) = (0, 0);
        self.charge.sub(self.charge.bytes());
        self.promise.end();
    }

    /// Takes the payload that begins at `seq` out of `first` and `more`, and the FIN after it.
    pub fn accept(&mut self, seq: u64, first: &mut Option<Slice>, more: &mut Pieces, fin: bool) -> Arrival {
        if let Some(arrival) = self.accept_expected(seq, first, more, fin) {
            return arrival;
        }
        let mut arrival = Arrival::default();
        let had_gap = self.has_gap();
        let before = self.next;
        let reported = self.duplicate.take();
        let (held, readable) = (self.charge.bytes(), self.queued + self.waiting_len);
        let mut at = seq;
        let mut take = |piece: Slice| {
            let len = piece.len() as u64;
            if len > 0 {
                self.place(at, piece, &mut arrival);
            }
            at += len;
        };
        first.take().into_iter().for_each(&mut take);
        if !more.is_empty() {
            more.drain().for_each(take);
        }
        self.duplicate = self.duplicate.or(reported);
        self.note_fin(at, fin, &mut arrival);
        self.drain();
        arrival.in_order = (self.next - before) as usize;
        self.rests &= arrival.in_order == 0;
        self.bytes_received += arrival.in_order as u64;
        let fin_waits = fin && self.fin.is_some_and(|fin| fin > self.next);
        arrival.gap = self.has_gap() || (had_gap && arrival.in_order > 0) || fin_waits;
        if self.fin == Some(self.next) && !self.finished {
            self.finished = true;
            self.drop_waiting();
            arrival.finished = true;
        }
        let took = self.charge.bytes().saturating_sub(held);
        self.note_cost(took, (self.queued + self.waiting_len).saturating_sub(readable));
        self.enter_promise();
        arrival
    }

    /// The same for the one piece that is next, within the window, while nothing waits: nearly all payload. `None`, and nothing
    /// is done, where it is not that.
    #[inline]
    fn accept_expected(
        &mut self,
        seq: u64,
        first: &mut Option<Slice>,
        more: &Pieces,
        fin: bool,
    ) -> Option<Arrival> {
        if seq != self.next || fin || !more.is_empty() {
            return None;
        }
        let in_order = self.take_next(first)?;
        Some(Arrival { in_order, ..Arrival::default() })
    }

    /// Takes the one piece that is next, within the window, while nothing waits; returns its bytes. `None`, and nothing is done,
    /// where it is not that or there is no memory for it.
    #[inline]
    pub fn take_next(&mut self, first: &mut Option<Slice>) -> Option<usize> {
        let piece = first.as_ref()?;
        let (len, held) = (piece.len(), piece.held());
        let is_next = len > 0 && self.next + len as u64 <= self.edge;
        let is_alone = self.waiting.is_empty() && self.fin.is_none() && !shortcuts_are_off();
        if !is_next || !is_alone {
            return None;
        }
        let stays = len * APPEND_BELOW > held && !self.discard && !self.charge.budget().is_scarce(false);
        let took = if stays {
            if !self.may_hold(held) {
                return None;
            }
            self.queue.push_back(first.take()?);
            self.queued += len;
            held
        } else {
            self.copy_next(first)?
        };
        self.next += len as u64;
        self.rests = false;
        self.bytes_received += len as u64;
        self.note_cost(took, if self.discard { 0 } else { len });
        self.enter_promise();
        Some(len)
    }

    /// Puts a piece at the end of what can be read, or thrown away, of which more than its buffer is to be looked at; the memory
    /// that it takes.
    #[inline(never)]
    fn copy_next(&mut self, first: &mut Option<Slice>) -> Option<usize> {
        let held = self.charge.bytes();
        if let Err(piece) = self.enqueue(first.take()?) {
            *first = Some(piece);
            return None;
        }
        Some(self.charge.bytes().saturating_sub(held))
    }

    /// Notes that `start..end` came again, to be reported once (RFC 2883).
    pub fn note_duplicate(&mut self, start: u64, end: u64) {
        if start < end {
            self.duplicate = Some((start, end));
        }
    }

    /// The same for a range of the segment that is being taken: of several, the first is reported (RFC 2883 section 4.2.3).
    fn note_repeated(&mut self, start: u64, end: u64) {
        if self.duplicate.is_none() {
            self.note_duplicate(start, end);
        }
    }

    /// The SACK blocks for the next acknowledgement, `room` at most.
    pub fn blocks(&self, room: usize) -> SackBlocks {
        self.waiting.blocks(self.duplicate, room)
    }

    /// Whether [`Receiver::blocks`] has any.
    pub fn has_blocks(&self) -> bool {
        self.duplicate.is_some() || self.has_gap()
    }

    /// The blocks were sent: a duplicate is reported once.
    pub fn blocks_sent(&mut self, room: usize) {
        let duplicate = self.duplicate.take();
        self.waiting.reported(room - usize::from(duplicate.is_some()));
    }

    /// Whether some of what arrived out of order was not reported yet.
    pub fn has_unreported(&self) -> bool {
        self.waiting.has_unreported()
    }

    /// Most memory for what waits: twice the receive buffer, as full segments fill most of their buffers.
    fn most_waiting_held(&self) -> usize {
        self.tuner.limit().saturating_mul(2).max(LEAST_WAITING_HELD)
    }

    /// Most pieces that wait: a whole window of segments must find room, however large it has grown.
    fn most_waiting(&self) -> usize {
        self.max_waiting.saturating_mul((self.tuner.limit() / PIECES_WITHIN).max(1))
    }

    fn note_fin(&mut self, end: u64, fin: bool, arrival: &mut Arrival) {
        let is_last = end >= self.next && self.waiting.end().is_none_or(|last| last <= end);
        if fin && is_last && self.fin.is_none() && end <= self.edge() && arrival.dropped.is_none() {
            self.fin = Some(end);
        }
    }

    fn place(&mut self, at: u64, piece: Slice, arrival: &mut Arrival) {
        let (mut start, mut end) = (at, at + piece.len() as u64);
        if let Some(fin) = self.fin
            && end > fin
        {
            arrival.dropped = Some(DropReason::AfterFin);
            end = fin;
        }
        if start < self.next {
            self.note_repeated(start, end.min(self.next));
            arrival.duplicate = true;
            start = self.next;
        }
        if end > self.edge {
            arrival.dropped = Some(DropReason::OutOfWindow);
            end = self.edge;
        }
        if start >= end {
            return;
        }
        if start == self.next && self.waiting.is_empty() {
            let mut part = piece;
            part.truncate((end - at) as usize);
            part.trim_front((start - at) as usize);
            match self.enqueue(part) {
                Ok(()) => self.next = end,
                Err(_) => arrival.dropped = Some(DropReason::NoMemory),
            }
            return;
        }
        self.put_aside(at, start, end, &piece, arrival);
    }

    /// Keeps the parts of `start..end` that are not here yet.
    fn put_aside(&mut self, at: u64, start: u64, end: u64, piece: &Slice, arrival: &mut Arrival) {
        // A piece that begins with the next byte closes its gaps at once, whatever lies between them.
        let in_order = start == self.next;
        let mut from = start;
        while let Some((gap, gap_end)) = self.waiting.first_gap(from, end) {
            if gap > from {
                self.note_repeated(from, gap);
                arrival.duplicate = true;
            }
            if !in_order && self.waiting.pieces() >= self.most_waiting() {
                arrival.dropped = Some(DropReason::OutOfOrderFull);
                return;
            }
            let part = piece.slice((gap - at) as usize..(gap_end - at) as usize);
            if part.len() * APPEND_BELOW <= part.held() && self.waiting.append(gap, part.bytes()) {
                self.waiting_len += part.len();
                self.bytes_compacted += part.len() as u64;
                self.waiting.touch(gap);
                arrival.out_of_order |= !in_order;
                from = gap_end;
                continue;
            }
            let Some(part) = self.compacted(part, in_order) else {
                arrival.dropped = Some(DropReason::OutOfOrderFull);
                return;
            };
            // Small pieces in large buffers hold more than the window that they are within.
            let is_too_much = self.waiting_held + part.held() > self.most_waiting_held()
                || !self.is_covered(part.held()) && self.budget().is_half_promised();
            if !in_order && is_too_much {
                arrival.dropped = Some(DropReason::OutOfOrderFull);
                return;
            }
            if !self.charge.try_add(part.held()) {
                arrival.dropped = Some(DropReason::NoMemory);
                return;
            }
            self.waiting_held += part.held();
            self.waiting_len += part.len();
            self.waiting.insert(gap, part);
            self.waiting.touch(gap);
            arrival.out_of_order |= !in_order;
            from = gap_end;
        }
        if from < end {
            self.note_repeated(from, end);
            self.waiting.touch(from);
            arrival.duplicate = true;
        }
    }

    /// Moves what is no longer waited for into the queue.
    fn drain(&mut self) {
        while let Some(piece) = self.waiting.take(self.next) {
            self.next += piece.len() as u64;
            self.waiting_held = self.waiting_held.saturating_sub(piece.held());
            self.waiting_len -= piece.len();
            if self.discard {
                self.charge.sub(piece.held());
                continue;
            }
            self.queued += piece.len();
            self.queue.push_back(piece);
        }
    }

    /// Puts a piece at the end of what can be read; gives it back where there is no memory for it.
    fn enqueue(&mut self, piece: Slice) -> Result<(), Slice> {
        if self.discard {
            return Ok(());
        }
        let (len, held) = (piece.len(), piece.held());
        let is_little = len * APPEND_BELOW <= held;
        let is_scarce = self.charge.budget().is_scarce(is_little);
        if (is_little || is_scarce) && self.copy(&piece, is_scarce) {
            self.queued += len;
            self.bytes_compacted += len as u64;
            return Ok(());
        }
        if !self.may_hold(held) {
            return Err(piece);
        }
        self.queue.push_back(piece);
        self.queued += len;
        Ok(())
    }

    /// Charges `held` bytes more, if there is memory for them. A connection that holds nothing is always let on: its
    /// application may read at once.
    #[inline]
    fn may_hold(&mut self, held: usize) -> bool {
        if self.charge.try_add(held) {
            return true;
        }
        let is_first = self.charge.bytes() == 0;
        if is_first {
            self.charge.add(held);
        }
        is_first
    }

    /// Copies a piece that fills little of its buffer, or comes while these are scarce, behind the last one, or into a fresh
    /// page. False if that is not worth it, or there is no room.
    #[inline(never)]
    fn copy(&mut self, piece: &Slice, is_scarce: bool) -> bool {
        let (len, held) = (piece.len(), piece.held());
        if let Some(last) = self.queue.back_mut()
            && last.extend(piece.bytes())
        {
            return true;
        }
        let size = self.pages.buffer_size();
        if !(is_scarce || len * COMPACT_BELOW <= held) || size < len || !self.charge.try_add(size) {
            return false;
        }
        match pages::fresh(&self.pages, piece.bytes()) {
            Some((page, _)) => {
                self.queue.push_back(page);
                true
            }
            None => {
                self.charge.sub(size);
                false
            }
        }
    }

    /// The piece, in a page of its own if it is much smaller than its buffer, or receive buffers are scarce;
    /// `None` if that is so and no page has room for it. What closes a gap stays where it lies: it frees what waits.
    fn compacted(&mut self, piece: Slice, closes_gap: bool) -> Option<Slice> {
        let size = self.pages.buffer_size();
        let is_little = piece.len() * APPEND_BELOW <= piece.held();
        let may_keep = closes_gap || !self.charge.budget().is_scarce(is_little);
        let worth = piece.len().saturating_mul(COMPACT_BELOW) <= piece.held() && size * 2 <= piece.held();
        if may_keep && !worth || piece.len() > size {
            return may_keep.then_some(piece);
        }
        match pages::fresh(&self.pages, piece.bytes()) {
            Some((page, count)) => {
                self.bytes_compacted += count as u64;
                Some(page)
            }
            None => may_keep.then_some(piece),
        }
    }
}
