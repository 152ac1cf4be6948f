//! Receive buffers: small ones for everybody, large ones for who needs them, all of them recycled.

use crate::aligned::Aligned;
use rustix::fd::BorrowedFd;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::RecvFlags;
use std::io::IoSliceMut;

/// Bytes that every connection may hold unread: a request fits.
pub(crate) const SMALL_LEN: usize = 4 << 10;
/// Bytes that a connection with much to say may hold unread.
pub(crate) const LARGE_LEN: usize = 128 << 10;

/// The stock of unused buffers, and how many large ones are out.
#[derive(Debug)]
pub(crate) struct BufferPool {
    small: Vec<Aligned>,
    large: Vec<Aligned>,
    large_out: usize,
    large_max: usize,
    /// Large buffers refused since the start.
    pub(crate) large_refused: u64,
}

/// Most unused buffers of a size that are kept.
const STOCK_MAX: usize = 64;

impl BufferPool {
    /// A pool that hands out large buffers of at most `max_bytes` together.
    pub(crate) fn new(max_bytes: usize) -> Self {
        BufferPool {
            small: Vec::new(),
            large: Vec::new(),
            large_out: 0,
            large_max: max_bytes / LARGE_LEN,
            large_refused: 0,
        }
    }

    fn small(&mut self) -> Aligned {
        self.small.pop().unwrap_or_else(|| Aligned::new(SMALL_LEN))
    }

    fn large(&mut self) -> Option<Aligned> {
        if self.large_out >= self.large_max {
            self.large_refused += 1;
            return None;
        }
        self.large_out += 1;
        Some(self.large.pop().unwrap_or_else(|| Aligned::new(LARGE_LEN)))
    }

    fn give_back(&mut self, buffer: Aligned) {
        let stock = if buffer.len() == LARGE_LEN {
            self.large_out -= 1;
            &mut self.large
        } else {
            &mut self.small
        };
        if !buffer.is_empty() && stock.len() < STOCK_MAX {
            stock.push(buffer);
        }
    }

    /// Bytes of large buffers that connections hold.
    pub(crate) fn large_bytes(&self) -> usize {
        self.large_out * LARGE_LEN
    }
}

/// What was received and not consumed: a ring in a buffer that is only held while there is something in it.
#[derive(Debug, Default)]
pub(crate) struct ReceiveBuffer {
    ring: Aligned,
    head: usize,
    len: usize,
    /// The last reads filled a small buffer, so that a large one is due.
    wants_large: bool,
}

/// How a read from a socket ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Read {
    /// This many bytes came; `full` when there was room for no more, so that more may wait.
    Some { len: usize, full: bool },
    /// The peer has finished.
    Finished,
    /// Nothing is there now.
    Nothing,
    /// There is no room.
    NoRoom,
    /// The connection is broken.
    Error(Errno),
}

impl ReceiveBuffer {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of the buffer that it holds.
    pub(crate) fn held(&self) -> usize {
        self.ring.len()
    }

    /// The first contiguous piece.
    pub(crate) fn peek(&self) -> &[u8] {
        let end = (self.head + self.len).min(self.ring.len());
        &self.ring[self.head..end]
    }

    /// Releases the first `len` bytes, and the buffer with the last.
    pub(crate) fn consume(&mut self, len: usize, pool: &mut BufferPool) {
        let len = len.min(self.len);
        self.len -= len;
        if self.len == 0 {
            self.clear(pool);
        } else {
            self.head += len;
            if self.head >= self.ring.len() {
                self.head -= self.ring.len();
            }
        }
    }

    /// Releases everything.
    pub(crate) fn clear(&mut self, pool: &mut BufferPool) {
        if !self.ring.is_empty() {
            pool.give_back(std::mem::take(&mut self.ring));
        }
        self.head = 0;
        self.len = 0;
    }

    /// Whether a read would find room, or a larger buffer may give it.
    pub(crate) fn has_room(&self) -> bool {
        self.len < self.ring.len() || self.ring.len() <= SMALL_LEN
    }

    fn make_room(&mut self, pool: &mut BufferPool) {
        if self.ring.is_empty() {
            let large = if self.wants_large { pool.large() } else { None };
            self.ring = large.unwrap_or_else(|| pool.small());
        } else if self.ring.len() == SMALL_LEN && self.len == SMALL_LEN {
            // The small one is full: move to a large one if there is one. These 4 KiB are the only bytes that move.
            if let Some(mut large) = pool.large() {
                let first = SMALL_LEN - self.head;
                large[..first].copy_from_slice(&self.ring[self.head..]);
                large[first..SMALL_LEN].copy_from_slice(&self.ring[..self.head]);
                self.head = 0;
                pool.give_back(std::mem::replace(&mut self.ring, large));
            }
        }
    }

    /// Reads what is there and fits, by one system call.
    pub(crate) fn fill(&mut self, fd: BorrowedFd<'_>, pool: &mut BufferPool) -> Read {
        self.make_room(pool);
        let room = self.ring.len() - self.len;
        if room == 0 {
            return Read::NoRoom;
        }
        let tail = self.head + self.len;
        let result = if self.head == 0 {
            let flags = RecvFlags::empty();
            retry_on_intr(|| rustix::net::recv(fd, &mut self.ring[tail..], flags).map(|(len, _)| len))
        } else if tail >= self.ring.len() {
            let tail = tail - self.ring.len();
            let mut slices = [IoSliceMut::new(&mut self.ring[tail..tail + room])];
            retry_on_intr(|| rustix::io::readv(fd, &mut slices))
        } else {
            let (front, back) = self.ring.split_at_mut(tail);
            let mut slices = [IoSliceMut::new(back), IoSliceMut::new(&mut front[..self.head])];
            retry_on_intr(|| rustix::io::readv(fd, &mut slices))
        };
        let result = match result {
            Ok(0) => Read::Finished,
            Ok(len) => {
                let len = len.min(room);
                self.len += len;
                self.wants_large = len > SMALL_LEN || self.len >= SMALL_LEN;
                Read::Some { len, full: len == room }
            }
            Err(Errno::AGAIN) => Read::Nothing,
            Err(errno) => Read::Error(errno),
        };
        if self.len == 0 {
            self.clear(pool);
        }
        result
    }
}
