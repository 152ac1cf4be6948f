//! Received frames.

use crate::layers::{self, PlainPacket};
use crate::meta::RxMeta;
use crate::pieces::Pieces;
use crate::pool::Slice;
use alloc::collections::VecDeque;

/// A received Ethernet frame (without FCS): a pool slice, what the device said of it, and, where frames were coalesced
/// in software, the payload pieces that follow.
#[derive(Debug)]
pub struct Frame {
    /// The frame from its Ethernet header on: all of it, or, of one in pieces, all headers (up to
    /// [`MAX_HEADER`](crate::MAX_HEADER) bytes) and the first piece of payload.
    pub data: Slice,
    /// Further pieces of payload, in order: of a coalesced frame, or of one that took several buffers of the device. Headers already
    /// count their bytes.
    pub more: Pieces,
    /// What the device said.
    pub meta: RxMeta,
    /// What a port has found.
    pub(crate) plain: Plain,
}

/// What is known of a frame's layers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Plain {
    /// A port has not looked at it.
    No,
    /// A port let it pass whose device had verified the checksums: nobody has looked yet.
    Open,
    Known(PlainPacket),
}

impl From<Option<PlainPacket>> for Plain {
    fn from(plain: Option<PlainPacket>) -> Plain {
        plain.map_or(Plain::No, Plain::Known)
    }
}

impl Frame {
    /// A frame in one piece.
    pub fn new(data: Slice, meta: RxMeta) -> Self {
        Frame::in_pieces(data, Pieces::new(), meta)
    }

    /// A frame of which the device has put the rest of the payload into further pieces. Headers that go on in the second piece are not
    /// found: the frame is dropped.
    pub fn in_pieces(data: Slice, more: Pieces, meta: RxMeta) -> Self {
        Frame { data, more, meta, plain: Plain::No }
    }

    /// Where its packet lies, if it came through a [`Port`](crate::Port) and is a plain one.
    #[inline]
    pub fn plain(&self) -> Option<PlainPacket> {
        match self.plain {
            Plain::No => None,
            Plain::Open => layers::parse(self.data.bytes(), self.len())?.plain(),
            Plain::Known(plain) => Some(plain),
        }
    }

    /// Length in bytes, all pieces together.
    #[inline]
    pub fn len(&self) -> usize {
        self.data.len() + self.more.len_bytes()
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Received frames in order of arrival, between device, coalescing and stack.
#[derive(Debug)]
pub struct RxBatch {
    frames: VecDeque<Frame>,
    limit: usize,
}

impl RxBatch {
    /// An empty batch for at most `limit` frames.
    pub fn with_limit(limit: usize) -> Self {
        RxBatch { frames: VecDeque::with_capacity(limit), limit }
    }

    /// Adds a frame at the end; gives it back when the batch is full.
    #[inline]
    pub fn push(&mut self, frame: Frame) -> Result<(), Frame> {
        if self.is_full() {
            return Err(frame);
        }
        self.frames.push_back(frame);
        Ok(())
    }

    /// Takes the oldest frame.
    #[inline]
    pub fn pop(&mut self) -> Option<Frame> {
        self.frames.pop_front()
    }

    /// The oldest frame, where it lies.
    #[inline]
    pub fn first(&self) -> Option<&Frame> {
        self.frames.front()
    }

    /// Drops the oldest frame.
    #[inline]
    pub fn drop_first(&mut self) {
        self.frames.pop_front();
    }

    /// The frame at `index`, counted from the oldest.
    pub(crate) fn at(&self, index: usize) -> Option<&Frame> {
        self.frames.get(index)
    }

    /// As before, for changing it.
    pub fn at_mut(&mut self, index: usize) -> Option<&mut Frame> {
        self.frames.get_mut(index)
    }

    /// All frames, oldest first.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Frame> {
        self.frames.iter_mut()
    }

    /// Lets two frames change places.
    pub(crate) fn swap(&mut self, a: usize, b: usize) {
        self.frames.swap(a, b);
    }

    /// Drops all but the oldest `len`.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.frames.truncate(len);
    }

    /// Lets `fill` add `most` frames at most.
    pub(crate) fn fill<R>(&mut self, most: usize, fill: impl FnOnce(&mut RxBatch) -> R) -> R {
        let limit = self.limit;
        self.limit = limit.min(self.len().saturating_add(most));
        let result = fill(self);
        self.limit = limit;
        result
    }

    /// Frames in the batch.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Frames that still fit.
    pub fn room(&self) -> usize {
        self.limit.saturating_sub(self.frames.len())
    }

    /// Whether no more fit.
    pub fn is_full(&self) -> bool {
        self.frames.len() >= self.limit
    }
}
