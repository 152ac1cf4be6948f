//! File operations on their way: those that the file system would not take yet are kept and offered again.

use crate::Context;
use alloc::collections::VecDeque;
use core::time::Duration;
use linerate_transport::{FileId, FileOp, Owner};

/// How long to wait before operations are offered again, when nothing else wakes the server.
pub(super) const RETRY: Duration = Duration::from_millis(5);

const KIND_SHIFT: u32 = 62;

/// What an operation is for; travels in its tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// An entry of the cache.
    Entry(u32),
    /// A directory listing.
    Listing(u32),
    /// A file is closed; nobody waits for it.
    Close,
}

impl Purpose {
    fn tag(self) -> u64 {
        match self {
            Purpose::Entry(slot) => u64::from(slot),
            Purpose::Listing(slot) => 1 << KIND_SHIFT | u64::from(slot),
            Purpose::Close => 2 << KIND_SHIFT,
        }
    }

    /// What an operation with this tag was for.
    pub fn from_tag(tag: u64) -> Purpose {
        // The low 32 bits are the slot.
        match tag >> KIND_SHIFT {
            0 => Purpose::Entry(tag as u32),
            1 => Purpose::Listing(tag as u32),
            _ => Purpose::Close,
        }
    }
}

/// Operations submitted, and those that wait to be. There is at most one per cache entry, listing and open file, so
/// their limits are the limit of this queue.
#[derive(Debug)]
pub(super) struct Ops {
    owner: Owner,
    waiting: VecDeque<(u64, FileOp)>,
    under_way: usize,
}

impl Ops {
    pub fn new(owner: Owner) -> Ops {
        Ops { owner, waiting: VecDeque::new(), under_way: 0 }
    }

    /// Starts an operation, now or later.
    pub fn submit(&mut self, ctx: &mut Context<'_>, purpose: Purpose, op: FileOp) {
        self.waiting.push_back((purpose.tag(), op));
        self.retry(ctx);
    }

    /// Closes a file.
    pub fn close(&mut self, ctx: &mut Context<'_>, file: FileId) {
        self.submit(ctx, Purpose::Close, FileOp::Close { file });
    }

    /// Offers what waits.
    pub fn retry(&mut self, ctx: &mut Context<'_>) {
        while let Some((tag, op)) = self.waiting.pop_front() {
            match ctx.files.submit(self.owner, tag, op) {
                Ok(()) => self.under_way += 1,
                Err(op) => {
                    self.waiting.push_front((tag, op));
                    return;
                }
            }
        }
    }

    /// Notes that one was answered.
    pub fn done(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }

    /// Whether some wait to be taken.
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether none waits or runs.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.under_way == 0
    }
}
