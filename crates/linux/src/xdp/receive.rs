//! Frames that came: from the kernel's ring to the stack without a copy, and free buffers back to the kernel.

use crate::stats::DeviceStats;
use crate::sys::rings::{CONTINUES, Consumer, Descriptor, Producer};
use linerate_nic::{Buffer, Coherent, Dma as _, Frame, PieceShelf, Pieces, Pool, RxBatch, RxMeta, Slice};
use std::rc::Rc;

/// The kernel keeps one buffer of so many of its ring whatever happens: where all others are held, what comes is dropped and
/// counted instead, and what comes once buffers are back is received.
const KEPT: usize = 4;

/// Lists of pieces of frames that are under way between device and stack.
const MOST_LISTS: usize = 512;

/// A frame of which some pieces have come.
struct Partly {
    head: Slice,
    more: Pieces,
}

/// What to do with the next piece.
enum Next {
    /// It begins a frame.
    Begin,
    /// It belongs to this one.
    Append(Partly),
    /// It belongs to one that is given up.
    Skip,
}

/// The receiving half of a queue.
pub(super) struct Receiver {
    ring: Consumer<Descriptor>,
    fill: Producer<u64>,
    /// The buffers that the kernel has, by their place in the shared memory.
    lent: Box<[Option<Buffer>]>,
    lent_count: usize,
    /// Buffers that the kernel is given at most.
    most: usize,
    pool: Pool,
    lists: Rc<PieceShelf>,
    /// Address of the first buffer.
    base: usize,
    chunk: usize,
    next: Next,
}

impl Receiver {
    /// Over the buffers of `pool`, which begin at `base`, follow each other in `chunk` bytes, and are all free. `pieces` is how
    /// many the longest frame takes, and `most` how many entries the rings have.
    pub(super) fn new(
        ring: Consumer<Descriptor>,
        fill: Producer<u64>,
        pool: Pool,
        base: usize,
        pieces: usize,
        most: usize,
    ) -> Self {
        let count = if pieces > 1 { (pool.len() / pieces).clamp(1, MOST_LISTS) } else { 0 };
        let mut lent = Vec::new();
        lent.resize_with(pool.len(), || None);
        let mut receiver = Receiver {
            ring,
            fill,
            lent: lent.into_boxed_slice(),
            lent_count: 0,
            most,
            lists: Rc::new(PieceShelf::new(count, pieces.saturating_sub(1))),
            base,
            chunk: pool.buffer_size(),
            pool,
            next: Next::Begin,
        };
        receiver.refill();
        receiver
    }

    /// Buffers that the kernel is given at most.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// Whether frames wait.
    pub(super) fn has_frames(&mut self) -> bool {
        self.ring.waiting() > 0
    }

    /// Moves frames that came to `batch` until it is full; `meta` says what is known of a frame from its beginning.
    pub(super) fn receive(
        &mut self,
        batch: &mut RxBatch,
        stats: &mut DeviceStats,
        meta: impl Fn(&[u8]) -> RxMeta,
    ) {
        let mut any = false;
        while !batch.is_full() {
            let Some(descriptor) = self.ring.pop() else { break };
            any = true;
            let piece = self.take(&descriptor, stats);
            let is_last = descriptor.options & CONTINUES == 0;
            let Some(frame) = self.join(piece, is_last, stats) else { continue };
            let meta = meta(frame.head.bytes());
            let frame = Frame::in_pieces(frame.head, frame.more, meta);
            stats.rx_frames += 1;
            stats.rx_bytes += frame.len() as u64;
            // The batch is not full.
            let _ = batch.push(frame);
        }
        if any {
            self.ring.release();
            self.refill();
        } else if self.lent_count < self.most && self.pool.free() > 0 {
            self.refill();
        }
    }

    /// The piece that a descriptor speaks of; `None`, and counted, if it cannot be had.
    fn take(&mut self, descriptor: &Descriptor, stats: &mut DeviceStats) -> Option<Slice> {
        let address = usize::try_from(descriptor.address).unwrap_or(usize::MAX);
        let (number, start) = (address / self.chunk, address % self.chunk);
        let end = start.saturating_add(descriptor.len as usize);
        let Some(buffer) = self.lent.get_mut(number).and_then(Option::take) else {
            // No buffer that the kernel has.
            stats.rx_refused += 1;
            return None;
        };
        self.lent_count -= 1;
        if end > self.chunk {
            stats.rx_refused += 1;
            self.lend(buffer);
            return None;
        }
        if self.pool.free() == 0 && self.lent_count < self.most / KEPT {
            stats.rx_cut += 1;
            self.lend(buffer);
            return None;
        }
        let mut buffer = buffer;
        Coherent.invalidate(buffer.bytes_mut());
        Some(buffer.freeze(start..end))
    }

    /// Puts a piece behind those that came before; returns the frame if it was the last one.
    fn join(&mut self, piece: Option<Slice>, is_last: bool, stats: &mut DeviceStats) -> Option<Partly> {
        let frame = match (std::mem::replace(&mut self.next, Next::Begin), piece) {
            (Next::Begin, Some(head)) => Some(Partly { head, more: Pieces::new() }),
            (Next::Append(mut frame), Some(piece)) => {
                if frame.more.is_empty()
                    && let Some(list) = self.lists.take()
                {
                    frame.more = list;
                }
                if frame.more.has_room() {
                    frame.more.push(piece);
                    Some(frame)
                } else {
                    stats.rx_cut += 1;
                    None
                }
            }
            (Next::Skip, _) | (_, None) => None,
        };
        if is_last {
            return frame;
        }
        self.next = frame.map_or(Next::Skip, Next::Append);
        None
    }

    /// Gives the kernel free buffers.
    fn refill(&mut self) {
        while self.lent_count < self.most {
            let Some(buffer) = self.pool.take() else { break };
            if !self.lend(buffer) {
                break;
            }
        }
        self.fill.publish();
    }

    /// Gives the kernel a buffer, which it sees when the ring is published; false, and the buffer is free again, if the ring is full.
    fn lend(&mut self, mut buffer: Buffer) -> bool {
        let number = (buffer.bytes().as_ptr().addr() - self.base) / self.chunk;
        Coherent.give(buffer.bytes_mut());
        let Some(place) = self.lent.get_mut(number) else { return false };
        if !self.fill.push((number * self.chunk) as u64) {
            return false;
        }
        *place = Some(buffer);
        self.lent_count += 1;
        true
    }

    /// Whether the kernel waits to be told of the buffers.
    pub(super) fn needs_wakeup(&self) -> bool {
        self.fill.needs_wakeup()
    }
}
