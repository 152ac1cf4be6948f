//! What a connection has queued for sending, and how it is handed to the kernel.

use crate::files::{OpenFile, Resident, Sendable};
use linerate_transport::{BufferSize, Bytes};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, send, sendmsg};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;

/// What an automatic send buffer queues here; the kernel's own buffer grows by itself behind it.
const AUTO_QUEUE: usize = 512 << 10;
/// Longest queue that a fixed send buffer size gives.
const FIXED_QUEUE_MAX: usize = 16 << 20;

/// Most pieces that may wait in one connection.
pub(crate) const ITEMS_MAX: usize = 1024;
/// Most pieces handed to the kernel by one call.
const GATHER_MAX: usize = 64;
/// Bytes of a file that are sent by one call, whatever the budget: nothing of them is copied, and each call ends with a segment
/// that is not full.
const FILE_PIECE: u64 = 1 << 20;
/// Bytes that a worker brings into memory at a time.
pub(crate) const READ_AHEAD: u64 = 1 << 20;
/// Longest buffer that collects small writes, in bytes.
const COLLECT_MAX: usize = 64 << 10;
/// Most buffers for small writes kept for reuse, and the longest kept.
const SPARE_MAX: usize = 256;
const SPARE_CAPACITY_MAX: usize = 16 << 10;

/// One queued piece.
#[derive(Debug)]
enum Item {
    Static(&'static [u8]),
    Shared(Bytes, usize),
    Copied(Vec<u8>, usize),
    File { file: Arc<OpenFile>, offset: u64, len: u64 },
}

/// The pieces of one connection in order.
#[derive(Debug, Default)]
pub(crate) struct SendQueue {
    items: VecDeque<Item>,
    /// Bytes of memory payload queued.
    memory: usize,
    /// Bytes queued, file ranges included.
    total: u64,
    /// What of the file range at the front is known to be in memory.
    resident: Resident,
}

/// How handing bytes to the kernel ended.
#[derive(Debug)]
pub(crate) enum Flush {
    /// The queue is empty.
    Empty,
    /// The budget is used up.
    Budget,
    /// The kernel takes no more now.
    Blocked,
    /// This piece of the file at the front must be brought into memory first.
    NeedsFile { file: Arc<OpenFile>, offset: u64, len: u64 },
    /// The file at the front is shorter than the range, or cannot be read.
    FileFailed,
    /// The connection is broken.
    Error(Errno),
}

impl SendQueue {
    /// Bytes of memory payload queued.
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    /// Bytes queued, file ranges included.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Whether no further piece may be queued.
    pub(crate) fn is_crowded(&self) -> bool {
        self.items.len() >= ITEMS_MAX
    }

    /// Whether few enough pieces wait for a sender to be called again.
    pub(crate) fn is_airy(&self) -> bool {
        self.items.len() <= ITEMS_MAX / 2
    }

    pub(crate) fn push_static(&mut self, bytes: &'static [u8]) {
        self.memory += bytes.len();
        self.total += bytes.len() as u64;
        self.items.push_back(Item::Static(bytes));
    }

    pub(crate) fn push_shared(&mut self, bytes: Bytes) {
        self.memory += bytes.len();
        self.total += bytes.len() as u64;
        self.items.push_back(Item::Shared(bytes, 0));
    }

    /// Copies `bytes`, behind the small writes before them if there is room.
    pub(crate) fn push_copy(&mut self, bytes: &[u8], spare: &mut Vec<Vec<u8>>) {
        self.memory += bytes.len();
        self.total += bytes.len() as u64;
        if let Some(Item::Copied(last, _)) = self.items.back_mut()
            && last.len() + bytes.len() <= COLLECT_MAX
        {
            last.extend_from_slice(bytes);
            return;
        }
        let mut copy = spare.pop().unwrap_or_default();
        copy.extend_from_slice(bytes);
        self.items.push_back(Item::Copied(copy, 0));
    }

    pub(crate) fn push_file(&mut self, file: Arc<OpenFile>, offset: u64, len: u64) {
        self.total = self.total.saturating_add(len);
        self.items.push_back(Item::File { file, offset, len });
    }

    /// Notes that the file at the front is in memory up to `offset`.
    pub(crate) fn set_resident(&mut self, offset: u64) {
        self.resident.set(offset);
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        *self = SendQueue::default();
    }

    /// Hands at most about `budget` bytes, or one piece of a file, to the kernel; adds what it took to `sent`. Where our FIN
    /// follows, it leaves with the last bytes in memory.
    pub(crate) fn flush(
        &mut self,
        fd: BorrowedFd<'_>,
        budget: u64,
        fin_follows: bool,
        sent: &mut u64,
        spare: &mut Vec<Vec<u8>>,
    ) -> Flush {
        let limit = sent.saturating_add(budget);
        loop {
            if self.items.is_empty() {
                return Flush::Empty;
            }
            if *sent >= limit {
                return Flush::Budget;
            }
            let left = limit - *sent;
            let result = match self.items.front() {
                Some(Item::File { .. }) => self.flush_file(fd),
                _ => self.flush_memory(fd, left, fin_follows),
            };
            match result {
                Ok(count) => {
                    *sent += count;
                    self.advance(count, spare);
                }
                Err(Flush::Error(Errno::INTR)) => {}
                Err(Flush::Error(Errno::AGAIN)) => return Flush::Blocked,
                Err(end) => return end,
            }
        }
    }

    /// Gathers the memory payloads at the front into one call. Where more comes, if only a FIN, the kernel keeps a segment that
    /// is not full for it.
    fn flush_memory(&self, fd: BorrowedFd<'_>, budget: u64, mut more: bool) -> Result<u64, Flush> {
        let flags = |more| if more { SendFlags::NOSIGNAL | SendFlags::MORE } else { SendFlags::NOSIGNAL };
        if self.items.len() == 1
            && let Some(Item::Copied(copy, done)) = self.items.front()
        {
            // A short response: nothing to gather.
            let bytes = copy.get(*done..).unwrap_or(&[]);
            let sent = send(fd, bytes, flags(more)).map_err(Flush::Error)?;
            return Ok(sent as u64);
        }
        let mut slices = [IoSlice::new(&[]); GATHER_MAX];
        let mut count = 0;
        let mut bytes = 0;
        for item in &self.items {
            let piece = match item {
                Item::Static(piece) => piece,
                Item::Shared(shared, done) => shared.as_ref().get(*done..).unwrap_or(&[]),
                Item::Copied(copy, done) => copy.get(*done..).unwrap_or(&[]),
                Item::File { .. } => {
                    // The head of a message and the file that follows it share a segment.
                    more = true;
                    break;
                }
            };
            if count == GATHER_MAX || bytes >= budget {
                more = true;
                break;
            }
            slices[count] = IoSlice::new(piece);
            count += 1;
            bytes += piece.len() as u64;
        }
        let sent = match &slices[..count] {
            // The shorter call.
            [one] => send(fd, one, flags(more)),
            several => sendmsg(fd, several, &mut SendAncillaryBuffer::default(), flags(more)),
        }
        .map_err(Flush::Error)?;
        // Every piece in the queue has bytes; a shared buffer that shrank behind our back has none left to send.
        if sent == 0 { Err(Flush::FileFailed) } else { Ok(sent as u64) }
    }

    /// Sends a piece of the file range at the front, once it is in memory.
    fn flush_file(&mut self, fd: BorrowedFd<'_>) -> Result<u64, Flush> {
        let Some(Item::File { file, offset, len }) = self.items.front() else { return Ok(0) };
        let source = match file.sendable() {
            Sendable::Fd(source) => source,
            Sendable::Static(bytes) => {
                let start = usize::try_from(*offset).unwrap_or(usize::MAX);
                let bytes = bytes.get(start..).unwrap_or(&[]);
                let bytes = &bytes[..bytes.len().min((*len).min(FILE_PIECE) as usize)];
                if bytes.is_empty() {
                    return Err(Flush::FileFailed);
                }
                let sent = send(fd, bytes, SendFlags::NOSIGNAL).map_err(Flush::Error)?;
                return Ok(sent as u64);
            }
            Sendable::Nothing => return Err(Flush::FileFailed),
        };
        let piece = self.resident.look(file, *offset, *len).min(FILE_PIECE);
        if piece == 0 {
            let len = (*len).min(READ_AHEAD);
            return Err(Flush::NeedsFile { file: Arc::clone(file), offset: *offset, len });
        }
        let mut from = *offset;
        match rustix::fs::sendfile(fd, source, Some(&mut from), piece as usize) {
            Ok(0) => Err(Flush::FileFailed),
            Ok(sent) => Ok(sent as u64),
            Err(errno @ (Errno::AGAIN | Errno::INTR | Errno::PIPE | Errno::CONNRESET | Errno::TIMEDOUT)) => {
                Err(Flush::Error(errno))
            }
            Err(errno @ (Errno::HOSTUNREACH | Errno::NETUNREACH)) => Err(Flush::Error(errno)),
            Err(_) => Err(Flush::FileFailed),
        }
    }

    /// Releases `count` bytes that the kernel took.
    fn advance(&mut self, mut count: u64, spare: &mut Vec<Vec<u8>>) {
        self.total = self.total.saturating_sub(count);
        while count > 0 {
            let Some(item) = self.items.front_mut() else { return };
            let (left, in_memory) = match item {
                Item::Static(piece) => (piece.len() as u64, true),
                Item::Shared(shared, done) => ((shared.len() - *done) as u64, true),
                Item::Copied(copy, done) => ((copy.len() - *done) as u64, true),
                Item::File { len, .. } => (*len, false),
            };
            let step = left.min(count);
            count -= step;
            if in_memory {
                self.memory -= step as usize;
            }
            if step == left {
                self.resident = Resident::default();
                if let Some(Item::Copied(mut copy, _)) = self.items.pop_front()
                    && spare.len() < SPARE_MAX
                    && copy.capacity() <= SPARE_CAPACITY_MAX
                {
                    copy.clear();
                    spare.push(copy);
                }
                continue;
            }
            match item {
                Item::Static(piece) => *piece = &piece[step as usize..],
                Item::Shared(_, done) | Item::Copied(_, done) => *done += step as usize,
                Item::File { offset, len, .. } => {
                    *offset = offset.saturating_add(step);
                    *len -= step;
                }
            }
        }
    }
}

/// Bytes of memory that a send buffer of this size queues.
pub(super) fn queue_limit(size: BufferSize) -> usize {
    match size {
        BufferSize::Fixed(bytes) => bytes.clamp(1, FIXED_QUEUE_MAX),
        BufferSize::Auto { max } => max.clamp(1, AUTO_QUEUE),
    }
}
