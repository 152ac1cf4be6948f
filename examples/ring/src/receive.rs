//! The receive side of a queue: empty buffers to the engine, full ones to the stack.

use crate::bus::Platform;
use crate::channel::Channel;
use crate::counters::QueueStats;
use crate::descriptor::{self, Received};
use crate::ring::Ring;
use alloc::vec::Vec;
use linerate_nic::{Buffer, Frame, Pool, RxBatch, RxMeta};

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
    queue: u16,
}

impl<P: Platform> Receiver<P> {
    pub fn new(board: P, channel: Channel<P>, ring: Ring, len: usize, pool: Pool, queue: u16) -> Self {
        let mut held = Vec::with_capacity(len);
        held.resize_with(len, || None);
        let spare = Vec::with_capacity(len);
        let reserve = pool.len().min(len - 1) / 4;
        Receiver { board, channel, ring, held, spare, pool, reserve, queue }
    }

    /// Starts the channel, with as many buffers as there are.
    pub fn start(&mut self, stats: &mut QueueStats) {
        self.ring.link(&self.board);
        self.channel.start(self.ring.address(0));
        self.refill(stats);
    }

    /// Appends frames to `batch` until it is full or the oldest descriptor is the engine's; how many.
    pub fn receive(&mut self, batch: &mut RxBatch, stats: &mut QueueStats) -> usize {
        let mut count = 0;
        while !batch.is_full()
            && let Some((received, buffer)) = self.take()
        {
            let Some(frame) = self.frame(received, buffer, stats) else { continue };
            stats.received += 1;
            stats.received_bytes += frame.len() as u64;
            let pushed = batch.push(frame);
            debug_assert!(pushed.is_ok(), "no room in the batch");
            count += 1;
        }
        self.refill(stats);
        count
    }

    /// Whether the oldest descriptor has come back.
    pub fn is_ready(&self) -> bool {
        self.ring.in_use() > 0 && Received::load(&self.board, self.ring.address(self.ring.oldest())).is_some()
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
            self.board.invalidate(buffer.bytes_mut());
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

    /// Whether the engine has gone on to a later descriptor than the oldest, which has not come back: its status is late,
    /// or lost.
    pub fn has_gap(&self) -> bool {
        self.ring.in_use() > 0
            && !self.is_ready()
            && self.channel.current() != self.ring.address(self.ring.oldest())
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

    /// The oldest descriptor, if it has come back, and its buffer.
    fn take(&mut self) -> Option<(Received, Buffer)> {
        if self.ring.in_use() == 0 {
            return None;
        }
        let slot = self.ring.slot(self.ring.oldest());
        let received = Received::load(&self.board, self.ring.address(self.ring.oldest()))?;
        let buffer = self.held[slot].take()?;
        self.ring.take_back(1);
        Some((received, buffer))
    }

    /// The frame in a buffer that has come back; `None`, and the buffer stays here, if there is none in it.
    fn frame(&mut self, received: Received, mut buffer: Buffer, stats: &mut QueueStats) -> Option<Frame> {
        let is_whole = received.is_first && received.is_last;
        let is_length_right = is_whole && (1..=buffer.len()).contains(&received.len);
        stats.receive_errors += u64::from(received.has_error);
        stats.receive_length += u64::from(!received.has_error && !is_length_right);
        if received.has_error || !is_length_right || !self.can_part_with_one(stats) {
            self.spare.push(buffer);
            return None;
        }
        let came_back = self.ring.oldest() - 1;
        let (checksum, raw_sum) = descriptor::load_checksum(&self.board, self.ring.address(came_back));
        self.board.invalidate(&mut buffer.bytes_mut()[..received.len]);
        let meta = RxMeta { checksum, raw_sum: Some(raw_sum), queue: self.queue, ..RxMeta::default() };
        Some(Frame::new(buffer.freeze(0..received.len), meta))
    }

    /// Whether a buffer can go to the stack: another takes its place, or the engine still has a quarter of its buffers
    /// without it. The rest stays, so that the engine is never without one for longer than a turn of the loop: what comes
    /// then is dropped here, and not kept from coming.
    fn can_part_with_one(&mut self, stats: &mut QueueStats) -> bool {
        let ours = self.ring.in_use() + self.spare.len();
        if ours + 1 >= self.held.len() {
            return true;
        }
        if let Some(other) = self.pool.take() {
            self.spare.push(other);
            return true;
        }
        let has_enough = ours >= self.reserve;
        stats.receive_no_buffer += u64::from(!has_enough);
        has_enough
    }
}
