//! The receive side of a queue: empty buffers to the engine, full ones to the stack.

use crate::bus::Platform;
use crate::device::Capabilities;
use crate::frame::{Frame, RxBatch};
use crate::mcdma::channel::Channel;
use crate::mcdma::counters::QueueStats;
use crate::mcdma::descriptor::{self, Received};
use crate::mcdma::ring::Ring;
use crate::mcdma::transmit::ETHERNET;
use crate::mcdma::words::{AppWords, Report};
use crate::meta::RxMeta;
use crate::pieces::{PieceShelf, Pieces};
use crate::pool::{Buffer, Pool, Slice};
use alloc::vec::Vec;

/// Bytes of the longest frame that is made of several, and of its Ethernet header.
const LONGEST_JOINED: usize = 65_535 + ETHERNET;

/// What one receive ring is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Descriptors.
    pub len: usize,
    /// Index of the queue.
    pub queue: u16,
    /// Longest frame.
    pub longest: usize,
    /// Whether the hardware joins segments.
    pub can_join: bool,
    pub words: AppWords,
}

/// What lies at the front of the ring.
enum Front {
    Frame(Whole),
    /// So many descriptors without a beginning, or without an end.
    Scrap(usize),
}

/// A frame that has come back. Descriptors may lie where a word takes as long as a line of a cache, so what was read is kept.
struct Whole {
    descriptors: usize,
    /// Bytes of the frame, and of what is in its first descriptor.
    len: usize,
    first_len: usize,
    has_error: bool,
    /// Whether no descriptor has more than its buffer holds, or nothing.
    fits: bool,
}

/// A ring of buffers that the engine fills in order.
///
/// A buffer belongs to the pool, then to the engine (from the doorbell on, held in `held`), then to the stack, and returns to the
/// pool by itself. The cache forgets it twice: before the engine gets it, so that nothing which the processor wrote
/// earlier is written over the frame; and before the processor reads it, so that nothing stale is read.
pub(crate) struct Receiver<P> {
    board: P,
    channel: Channel<P>,
    ring: Ring,
    /// The buffers that the engine has, by descriptor.
    held: Vec<Option<Buffer>>,
    /// Buffers of ours that the engine does not have at the moment.
    spare: Vec<Buffer>,
    pool: Pool,
    /// Buffers that stay here when the pool has none: a quarter.
    reserve: usize,
    shape: Shape,
    /// Lists for frames in several buffers.
    lists: PieceShelf,
}

impl<P: Platform> Receiver<P> {
    pub fn new(board: P, channel: Channel<P>, ring: Ring, pool: Pool, shape: Shape) -> Self {
        let len = shape.len;
        let mut held = Vec::with_capacity(len);
        held.resize_with(len, || None);
        let spare = Vec::with_capacity(len);
        let reserve = pool.len().min(len - 1) / 4;
        let longest = if shape.can_join { LONGEST_JOINED } else { shape.longest };
        let more = longest.div_ceil(pool.buffer_size().max(1)).saturating_sub(1);
        // Each list in use stands for two buffers at least.
        let count = if more == 0 { 0 } else { pool.len() / 2 };
        let lists = PieceShelf::new(count, more);
        Receiver { board, channel, ring, held, spare, pool, reserve, shape, lists }
    }

    /// Starts the channel, with as many buffers as there are.
    pub fn start(&mut self, stats: &mut QueueStats) {
        self.ring.link(&self.board);
        self.channel.start(self.ring.address(0));
        self.refill(stats);
    }

    /// Appends frames to `batch` until it is full or the oldest frame is the engine's; how many.
    pub fn receive(&mut self, batch: &mut RxBatch, enabled: Capabilities, stats: &mut QueueStats) -> usize {
        let mut count = 0;
        while !batch.is_full()
            && let Some(front) = self.front()
        {
            let frame = match front {
                Front::Frame(whole) => self.frame(&whole, enabled, stats),
                Front::Scrap(descriptors) => {
                    stats.receive_length += 1;
                    self.keep(descriptors);
                    None
                }
            };
            let Some(frame) = frame else { continue };
            stats.received += 1;
            stats.received_bytes += frame.len() as u64;
            let pushed = batch.push(frame);
            debug_assert!(pushed.is_ok(), "no room in the batch");
            count += 1;
        }
        self.refill(stats);
        count
    }

    /// Whether a frame has come back, or what is left of one.
    pub fn is_ready(&self) -> bool {
        self.front().is_some()
    }

    /// Gives the engine a buffer for each free descriptor, as far as there are buffers.
    pub fn refill(&mut self, stats: &mut QueueStats) {
        let before = self.ring.next();
        while self.ring.room() > 0
            && let Some(mut buffer) = self.spare.pop().or_else(|| self.pool.take())
        {
            let len = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
            let Some(address) = self.board.bus_address(buffer.bytes()) else {
                // A queue does not start with such a pool; one of two kinds of memory is told from this.
                stats.receive_unreachable += 1;
                break;
            };
            self.board.give(buffer.bytes_mut());
            let position = self.ring.next();
            descriptor::store_empty(&self.board, self.ring.address(position), address, len);
            let slot = self.ring.slot(position);
            self.held[slot] = Some(buffer);
            self.ring.give(1);
        }
        if self.ring.next() != before {
            stats.doorbells += 1;
            self.channel.ring(self.ring.tail());
        }
    }

    /// Whether a descriptor has come back before one in front of it, whose status is late or lost. Where the engine is says
    /// nothing of that: CURDESC is ahead by what it has read.
    pub fn has_gap(&self) -> bool {
        let in_use = self.ring.in_use();
        let has_come_back = |at: &usize| self.status(*at).is_some();
        let missing = (0..in_use).find(|at| !has_come_back(at));
        !self.is_ready() && missing.is_some_and(|missing| (missing + 1..in_use).any(|at| has_come_back(&at)))
    }

    /// Positions that the engine is done with: a mark to see whether it goes on.
    pub fn progress(&self) -> u64 {
        self.ring.oldest()
    }

    /// Resets the channel and begins anew with the same buffers. Frames that lie in the ring are lost. False if the channel
    /// does not stop: the engine may still write to the buffers, which stay where they are.
    #[must_use]
    pub fn reset(&mut self, stats: &mut QueueStats) -> bool {
        if !self.channel.reset() {
            return false;
        }
        self.spare.extend(self.held.iter_mut().filter_map(Option::take));
        self.start(stats);
        true
    }

    /// Stops the channel for good; the buffers return to their pool, unless it does not stop.
    pub fn stop(&mut self) {
        if !self.channel.reset() {
            // Better lost than written to by the engine while somebody else has them.
            self.held.drain(..).for_each(core::mem::forget);
        }
    }

    pub fn channel(&self) -> &Channel<P> {
        &self.channel
    }

    /// What the oldest descriptors hold, if all of it has come back.
    fn front(&self) -> Option<Front> {
        let mut whole = Whole { descriptors: 0, len: 0, first_len: 0, has_error: false, fits: true };
        for count in 0..self.ring.in_use() {
            let received = self.status(count)?;
            match (count, received.is_first) {
                (0, false) => return Some(Front::Scrap(1)),
                (0, true) => whole.first_len = received.len,
                (_, false) => {}
                (_, true) => return Some(Front::Scrap(count)),
            }
            whole.descriptors = count + 1;
            whole.len += received.len;
            whole.has_error |= received.has_error;
            // Lengths are the device's word.
            whole.fits &= (1..=self.pool.buffer_size()).contains(&received.len);
            if received.is_last {
                return Some(Front::Frame(whole));
            }
        }
        // All that the engine had for one frame that does not end there, and nothing to go on with.
        let is_dry = self.spare.is_empty() && self.pool.free() == 0;
        let is_stuck = self.ring.in_use() > 0 && (self.ring.room() == 0 || is_dry);
        is_stuck.then(|| Front::Scrap(self.ring.in_use()))
    }

    /// Of the descriptor `count` behind the oldest; `None` while it is the engine's.
    fn status(&self, count: usize) -> Option<Received> {
        Received::load(&self.board, self.ring.address(self.ring.oldest() + count as u64))
    }

    /// Takes so many of the oldest descriptors back; their buffers stay here.
    fn keep(&mut self, descriptors: usize) {
        for _ in 0..descriptors {
            let slot = self.ring.slot(self.ring.oldest());
            self.spare.extend(self.held[slot].take());
            self.ring.take_back(1);
        }
    }

    /// The frame in the oldest descriptors; `None`, and the buffers stay here, if it cannot be handed on.
    fn frame(&mut self, whole: &Whole, enabled: Capabilities, stats: &mut QueueStats) -> Option<Frame> {
        let descriptors = whole.descriptors;
        let last = self.ring.address(self.ring.oldest() + descriptors as u64 - 1);
        let report = Report::load(self.shape.words, |at| descriptor::load_app(&self.board, last, at));
        let has_error = whole.has_error || report.is_damaged;
        let longest = if report.segment_size != 0 { LONGEST_JOINED } else { self.shape.longest };
        let is_length_right = whole.fits && whole.len <= longest;
        stats.receive_errors += u64::from(has_error);
        stats.receive_length += u64::from(!has_error && !is_length_right);
        if has_error || !is_length_right || !self.can_part_with(descriptors, stats) {
            self.keep(descriptors);
            return None;
        }
        let more = if descriptors == 1 { Some(Pieces::new()) } else { self.lists.take() };
        let Some(more) = more.filter(|more| descriptors - 1 <= 1 || more.has_room()) else {
            stats.receive_no_list += 1;
            self.keep(descriptors);
            return None;
        };
        stats.received_joined += u64::from(report.segment_size != 0);
        Some(self.hand_on(whole, more, report.meta(enabled, self.shape.queue)))
    }

    /// The frame that is in order, out of its buffers.
    fn hand_on(&mut self, whole: &Whole, mut more: Pieces, meta: RxMeta) -> Frame {
        let mut data = Slice::default();
        for at in 0..whole.descriptors {
            let slot = self.ring.slot(self.ring.oldest());
            let len =
                if at == 0 { Some(whole.first_len) } else { self.status(0).map(|received| received.len) };
            if let (Some(len), Some(mut buffer)) = (len, self.held[slot].take()) {
                // Never more than there is, whatever the hardware has made of it meanwhile.
                let len = len.min(buffer.len());
                self.board.invalidate(&mut buffer.bytes_mut()[..len]);
                let slice = buffer.freeze(0..len);
                if at == 0 { data = slice } else { more.push(slice) }
            }
            self.ring.take_back(1);
        }
        Frame::in_pieces(data, more, meta)
    }

    /// Whether so many buffers can go to the stack: others take their place, or the engine still has a quarter of its buffers
    /// without them. The rest stays, so that the engine is never without one for longer than a turn of the loop: what comes
    /// then is dropped here, and not kept from coming.
    fn can_part_with(&mut self, count: usize, stats: &mut QueueStats) -> bool {
        let mut ours = self.ring.in_use() + self.spare.len() - count;
        while ours + 1 < self.held.len()
            && let Some(other) = self.pool.take()
        {
            self.spare.push(other);
            ours += 1;
        }
        let has_enough = ours + 1 >= self.held.len() || ours >= self.reserve;
        stats.receive_no_buffer += u64::from(!has_enough);
        has_enough
    }
}
