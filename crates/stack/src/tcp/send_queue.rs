//! The bytes that wait to be sent or acknowledged: a list of owned pieces, not of segments.
//!
//! Positions are 64-bit sequence numbers. A file range stays a range until its turn comes; then it is asked for piece by
//! piece, a bounded amount ahead, and pieces that arrive take their places in any order. Memory is given back as
//! soon as the peer has acknowledged it (and the device has let go of its own handle).

use super::budget::Charge;
use super::pages;
use super::spare;
use alloc::collections::VecDeque;
use linerate_nic::{Chunk, Pool, TxPacket};
use linerate_transport::{Bytes, FileRange};

/// Most pieces of memory in the queue: what bounds the bookkeeping when an application queues single bytes.
const MAX_PIECES: usize = 4_096;

/// Fewer pieces than so many are looked through one by one.
const FEW: usize = 6;

/// Most bytes of one file read.
const FILE_PIECE: u64 = 256 << 10;

/// Least bytes of one file read, but for the end of a file: less is not worth the trouble.
const LEAST_PIECE: u64 = 4 << 10;

/// The same where there is no memory for more: about a segment.
const SMALLEST_PIECE: u64 = 1 << 10;

/// Most file reads under way per connection.
const MAX_READS: usize = 4;

#[derive(Debug)]
enum Body {
    /// Bytes in memory, and what they are charged with.
    Memory { chunk: Chunk, charged: usize },
    /// Bytes of a file: the first of them is that of the range. They are charged with the length of the range.
    Read { chunk: Chunk, range: FileRange },
    /// Asked for; not here yet.
    Reading(FileRange),
    /// Not asked for yet.
    File(FileRange),
}

/// A piece of memory or of a file.
#[derive(Debug)]
pub(super) struct Item {
    start: u64,
    len: u64,
    body: Body,
}

/// A part of a file to be read now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Wanted {
    /// Position in the stream.
    pub at: u64,
    /// Which bytes.
    pub range: FileRange,
}

/// A file gave fewer bytes than its range promised, or data came that nobody asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ShortFile;

/// See the module.
#[derive(Debug)]
pub(super) struct SendQueue {
    items: VecDeque<Item>,
    /// Position of the first byte kept.
    start: u64,
    /// Position after the last byte queued.
    end: u64,
    /// Everything before this is in memory.
    ready_end: u64,
    /// Bytes in memory or being read.
    loaded: u64,
    reads: usize,
    /// Position of the first file range not asked for.
    unread: Option<u64>,
    /// How far the last piece fills its page, if it is one that we wrote.
    page_fill: Option<usize>,
    charge: Charge,
}

impl SendQueue {
    /// An empty queue whose first byte will be number `start`.
    pub fn new(start: u64, charge: Charge) -> Self {
        SendQueue {
            items: VecDeque::new(),
            start,
            end: start,
            ready_end: start,
            loaded: 0,
            reads: 0,
            unread: None,
            page_fill: None,
            charge,
        }
    }

    /// Position after the last byte queued.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Position up to which everything is in memory.
    pub fn ready_end(&self) -> u64 {
        self.ready_end
    }

    /// Bytes queued, unread file ranges included.
    pub fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Bytes in memory or being read: what counts against the size of the send buffer.
    pub fn loaded(&self) -> u64 {
        self.loaded
    }

    /// Memory charged, in bytes.
    pub fn held(&self) -> usize {
        self.charge.bytes()
    }

    /// Whether one more piece of memory may be queued.
    pub fn has_room(&self) -> bool {
        self.items.len() < MAX_PIECES
    }

    /// Queues memory. `cost`: what the budget is charged with; refused when it has not that much.
    pub fn push(&mut self, chunk: Chunk, cost: usize) -> Result<(), Chunk> {
        if chunk.is_empty() {
            return Ok(());
        }
        if !self.charge.try_add(cost) {
            return Err(chunk);
        }
        self.append(chunk, cost);
        Ok(())
    }

    /// Queues a copy of all of `bytes`, in the rest of the last page and in fresh ones; `false` (and nothing queued) when
    /// pool or budget has not enough.
    pub fn copy(&mut self, bytes: &[u8], pool: &Pool) -> bool {
        let room = self.last_page_room();
        let rest = bytes.len().saturating_sub(room);
        let pages = rest.div_ceil(pool.buffer_size().max(1));
        let cost = pages * pool.buffer_size();
        if pool.buffer_size() == 0 || pages > pool.free() || !self.charge.try_add(cost) {
            return false;
        }
        let mut rest = &bytes[self.fill_last_page(bytes, room)..];
        while !rest.is_empty() {
            // There are enough pages: counted above, and nobody else runs in between.
            let Some((slice, copied)) = pages::fresh(pool, rest) else { break };
            let held = slice.held();
            self.append(Chunk::Pool(slice), held);
            self.page_fill = Some(copied);
            rest = &rest[copied..];
        }
        rest.is_empty()
    }

    /// Whether positions reach so many bytes on, with what memory may hold behind them.
    pub fn can_count(&self, len: u64) -> bool {
        self.end.checked_add(len).is_some_and(|end| end < u64::MAX / 2)
    }

    /// Queues a range of a file that [can be counted](SendQueue::can_count).
    pub fn push_file(&mut self, range: FileRange) {
        if range.len > 0 {
            self.unread.get_or_insert(self.end);
            self.items.push_back(Item { start: self.end, len: range.len, body: Body::File(range) });
            self.end += range.len;
            self.page_fill = None;
        }
    }

    /// Whether a file range was not asked for yet.
    pub fn has_unread(&self) -> bool {
        self.unread.is_some()
    }

    /// The file range to read next, while less than `limit` bytes are loaded.
    pub fn next_read(&self, limit: u64) -> Option<Wanted> {
        if self.reads >= MAX_READS {
            return None;
        }
        let item = self.items.get(self.index_of(self.unread?)?)?;
        let Body::File(range) = item.body else { return None };
        // Four pieces within the limit, so that reading, sending and waiting for acknowledgements overlap.
        let least = limit.clamp(SMALLEST_PIECE, LEAST_PIECE);
        let len = range.len.min((limit / MAX_READS as u64).clamp(least, FILE_PIECE));
        // What all else waits for is read whatever lies behind it.
        let fits = item.start == self.start || self.loaded + len <= limit;
        fits.then_some(Wanted { at: item.start, range: FileRange { len, ..range } })
    }

    /// Whether a file is being read.
    pub fn is_reading(&self) -> bool {
        self.reads > 0
    }

    /// The read was started.
    pub fn read_started(&mut self, wanted: &Wanted) {
        let Some(index) = self.index_of(wanted.at) else { return };
        let item = &mut self.items[index];
        let Body::File(range) = &mut item.body else { return };
        let FileRange { file, offset, .. } = *range;
        let len = wanted.range.len;
        if item.start != wanted.at || len == 0 || len > range.len {
            return;
        }
        range.offset += len;
        range.len -= len;
        item.start += len;
        item.len -= len;
        let reading = Item { start: wanted.at, len, body: Body::Reading(FileRange { file, offset, len }) };
        if item.len == 0 {
            *item = reading;
            // Each item is passed once.
            let is_file = |item: &&Item| matches!(item.body, Body::File(_));
            self.unread = self.items.range(index..).find(is_file).map(|item| item.start);
        } else {
            self.unread = Some(item.start);
            self.items.insert(index, reading);
        }
        self.reads += 1;
        self.loaded += len;
        // From now on: many are asked for at once, and each finds the memory that the others leave.
        self.charge.add(len as usize);
    }

    /// Data of the read at position `at` came.
    pub fn read_done(&mut self, at: u64, data: Bytes) -> Result<(), ShortFile> {
        let index = self.index_of(at).ok_or(ShortFile)?;
        let item = &mut self.items[index];
        let Body::Reading(range) = item.body else { return Err(ShortFile) };
        if item.start != at || (data.len() as u64) < range.len {
            return Err(ShortFile);
        }
        let chunk = Chunk::Shared(data).slice(0..range.len as usize);
        item.body = Body::Read { chunk, range };
        self.reads = self.reads.saturating_sub(1);
        self.advance_ready(index);
        Ok(())
    }

    /// Gives back what was read of files and lies behind position `from`. It is read anew when its turn comes.
    pub fn unload(&mut self, from: u64) {
        for item in self.items.iter_mut().rev().take_while(|item| item.start >= from) {
            // What waits to be read, further on, stays where it is.
            if let Body::Read { range, .. } = item.body {
                item.body = Body::File(range);
                self.loaded -= range.len;
                self.charge.sub(range.len as usize);
                self.unread = Some(self.unread.map_or(item.start, |first| first.min(item.start)));
                self.ready_end = self.ready_end.min(item.start);
            }
        }
    }

    /// Puts handles to `from..from + len` into the packet's gather list, as far as it has room; returns how many bytes.
    pub fn gather(&self, from: u64, len: u64, packet: &mut TxPacket) -> u64 {
        let (mut at, end) = (from, (from + len).min(self.ready_end));
        let Some(mut index) = self.index_of(from) else { return 0 };
        while at < end {
            let Some(Item { start, len, body }) = self.items.get(index) else { break };
            let (Body::Memory { chunk, .. } | Body::Read { chunk, .. }) = body else { break };
            let first = (at - start) as usize;
            let last = (end - start).min(*len) as usize;
            if packet.push_chunk(chunk.slice(first..last)).is_err() {
                break;
            }
            at = start + last as u64;
            index += 1;
        }
        at - from
    }

    /// Drops everything before `una`.
    pub fn acknowledge(&mut self, una: u64) {
        let una = una.min(self.ready_end);
        while let Some(item) = self.items.front_mut() {
            if item.start >= una {
                break;
            }
            let count = (una - item.start).min(item.len);
            let (chunk, charged) = match &mut item.body {
                Body::Memory { chunk, charged } => (chunk, *charged),
                Body::Read { chunk, range } => (chunk, range.len as usize),
                Body::Reading(_) | Body::File(_) => break,
            };
            self.loaded -= count;
            if count < item.len {
                chunk.trim_front(count as usize);
                item.start += count;
                item.len -= count;
                break;
            }
            self.charge.sub(charged);
            self.items.pop_front();
        }
        self.start = self.start.max(una);
        if self.items.is_empty() {
            self.page_fill = None;
        }
    }

    /// Memory for its pieces that another has left, where it has none.
    pub fn lend(&mut self, items: VecDeque<Item>) {
        spare::lend(&mut self.items, items);
    }

    /// What is left of that; the queue is done with.
    pub fn take_memory(&mut self) -> VecDeque<Item> {
        spare::left_of(&mut self.items)
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        spare::empty(&mut self.items);
        self.charge.sub(self.charge.bytes());
        self.start = self.end;
        self.ready_end = self.end;
        self.loaded = 0;
        self.reads = 0;
        self.unread = None;
        self.page_fill = None;
    }

    fn append(&mut self, chunk: Chunk, charged: usize) {
        let len = chunk.len() as u64;
        if self.ready_end == self.end {
            self.ready_end += len;
        }
        self.items.push_back(Item { start: self.end, len, body: Body::Memory { chunk, charged } });
        self.end += len;
        self.loaded += len;
        self.page_fill = None;
    }

    /// Bytes that fit into the last page. Only a sole owner may write: a handle in a device's ring forbids it.
    fn last_page_room(&mut self) -> usize {
        let Some(fill) = self.page_fill else { return 0 };
        match self.items.back_mut() {
            Some(Item { body: Body::Memory { chunk: Chunk::Pool(slice), .. }, .. }) => {
                let is_sole = slice.bytes_mut().is_some();
                if is_sole { slice.held().saturating_sub(fill) } else { 0 }
            }
            _ => 0,
        }
    }

    /// Copies up to `room` bytes into the last page; returns how many.
    fn fill_last_page(&mut self, bytes: &[u8], room: usize) -> usize {
        let (Some(fill), true) = (self.page_fill, room > 0) else { return 0 };
        let Some(mut item) = self.items.pop_back() else { return 0 };
        let mut copied = 0;
        if let Body::Memory { chunk: Chunk::Pool(slice), charged } = item.body {
            let slice = match pages::append(slice, fill, bytes) {
                Ok((slice, count)) => {
                    copied = count;
                    slice
                }
                Err(slice) => slice,
            };
            item.len += copied as u64;
            item.body = Body::Memory { chunk: Chunk::Pool(slice), charged };
        }
        if self.ready_end == self.end {
            self.ready_end += copied as u64;
        }
        self.end += copied as u64;
        self.loaded += copied as u64;
        self.items.push_back(item);
        self.page_fill = Some(fill + copied);
        copied
    }

    /// Index of the item that holds position `at`.
    fn index_of(&self, at: u64) -> Option<usize> {
        let is_before = |item: &Item| item.start <= at;
        let index = match self.items.len() {
            // Seldom are there more, and then what is sent next lies anywhere.
            len @ 0..FEW => (0..len).rev().find(|&index| is_before(&self.items[index])),
            _ => self.items.partition_point(is_before).checked_sub(1),
        }?;
        let item = self.items.get(index)?;
        (at < item.start + item.len).then_some(index)
    }

    fn advance_ready(&mut self, index: usize) {
        if self.items.get(index).is_none_or(|item| item.start != self.ready_end) {
            return;
        }
        for item in self.items.range(index..) {
            if !matches!(item.body, Body::Memory { .. } | Body::Read { .. }) {
                break;
            }
            self.ready_end = item.start + item.len;
        }
    }
}

#[cfg(test)]
mod tests;
