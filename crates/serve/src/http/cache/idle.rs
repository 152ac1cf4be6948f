//! What is let go of: files that nobody asks for any more, and entries that make room for others.
//!
//! An open file keeps its room on the disk after it was removed or replaced, and its descriptor from others who need one. So
//! one that nobody has asked for lately is closed, one that another server has changed at once, and others where the system has no
//! descriptor left.

use super::{Content, Entry, FileCache, FileInfo, Known, MAX_ATTEMPTS, Step};
use crate::Context;
use crate::http::config::Limits;
use crate::http::ops::Ops;
use alloc::rc::Rc;
use core::time::Duration;
use linerate_transport::FileId;

/// How long a file stays open that nobody asks for; it is looked for as often.
pub(in crate::http) const IDLE: Duration = Duration::from_secs(10);
/// Files closed at once where the system has no descriptor left.
const CLOSED_AT_ONCE: usize = 4;

impl FileCache {
    /// Closes files that nobody sends, and of which for `idle` nobody has known that they are still the same.
    pub fn close_idle(&mut self, ctx: &mut Context<'_>, ops: &mut Ops, idle: Duration) {
        self.has_changed = false;
        for slot in 0..self.entries.len() {
            let is_idle = self.entries[slot].as_ref().is_some_and(|entry| {
                let is_old = entry.learned.is_none_or(|learned| learned + idle <= ctx.now);
                is_old && entry.step.is_none() && entry.waiters.is_empty() && entry.holds_unused_file()
            });
            if is_idle {
                self.forget(ctx, ops, slot as u32);
            }
        }
    }

    /// The system had no descriptor for the file of this entry: closes others and tries again. False when there are none.
    pub(super) fn open_again(
        &mut self,
        ctx: &mut Context<'_>,
        ops: &mut Ops,
        limits: &Limits,
        slot: u32,
    ) -> bool {
        let Some(entry) = self.entries.get_mut(slot as usize).and_then(Option::as_mut) else { return false };
        entry.attempts += 1;
        let may_try = entry.attempts < MAX_ATTEMPTS;
        let has_closed = (0..CLOSED_AT_ONCE)
            .take_while(|_| may_try && self.evict(ctx, ops, Entry::holds_unused_file))
            .count();
        has_closed > 0 && self.start(ctx, ops, limits, slot, Step::Open)
    }

    /// Closes a file that counts as open.
    pub(super) fn close(&mut self, ctx: &mut Context<'_>, ops: &mut Ops, file: FileId) {
        self.open -= 1;
        ops.close(ctx, file);
    }

    /// Forgets what an entry knows.
    pub(super) fn forget(&mut self, ctx: &mut Context<'_>, ops: &mut Ops, slot: u32) {
        let Some(entry) = self.entries.get_mut(slot as usize).and_then(Option::as_mut) else { return };
        if let Some(Known::File(info)) = entry.known.take() {
            self.memory -= info.memory();
            self.retire(ctx, ops, info);
        }
    }

    /// Closes a file, or has it closed when its last sender is done.
    fn retire(&mut self, ctx: &mut Context<'_>, ops: &mut Ops, info: Rc<FileInfo>) {
        if let Content::Open(file) = info.content {
            if Rc::strong_count(&info) == 1 {
                self.close(ctx, ops, file);
            } else {
                self.doomed.push(info);
            }
        }
    }

    /// Gives a file back that a connection has kept.
    pub fn release(&mut self, ctx: &mut Context<'_>, ops: &mut Ops, info: Rc<FileInfo>) {
        drop(info);
        let mut at = 0;
        while let Some(info) = self.doomed.get(at) {
            if Rc::strong_count(info) == 1 {
                let info = self.doomed.swap_remove(at);
                self.retire(ctx, ops, info);
            } else {
                at += 1;
            }
        }
    }

    /// Evicts an entry that `suits` and that nobody waits for; prefers those not used lately.
    pub(super) fn evict(
        &mut self,
        ctx: &mut Context<'_>,
        ops: &mut Ops,
        suits: impl Fn(&Entry) -> bool,
    ) -> bool {
        for _ in 0..self.entries.len() * 2 {
            let slot = self.hand;
            self.hand = (self.hand + 1) % self.entries.len();
            let Some(entry) = self.entries.get_mut(slot).and_then(Option::as_mut) else { continue };
            if entry.step.is_some() || !entry.waiters.is_empty() || !suits(entry) {
                continue;
            }
            if core::mem::take(&mut entry.used) {
                continue;
            }
            self.remove(ctx, ops, slot as u32);
            return true;
        }
        false
    }

    fn remove(&mut self, ctx: &mut Context<'_>, ops: &mut Ops, slot: u32) {
        self.forget(ctx, ops, slot);
        if let Some(entry) = self.entries.get_mut(slot as usize).and_then(Option::take) {
            self.by_path.remove(&entry.path);
            self.free.push(slot);
        }
    }

    /// Forgets all entries that no operation runs for, which closes their files.
    pub fn clear(&mut self, ctx: &mut Context<'_>, ops: &mut Ops) {
        for slot in 0..self.entries.len() {
            if self.entries[slot].as_ref().is_some_and(|entry| entry.step.is_none()) {
                self.remove(ctx, ops, slot as u32);
            }
        }
    }
}

impl Entry {
    /// Whether it has an open file that nobody sends.
    pub(super) fn holds_unused_file(&self) -> bool {
        matches!(&self.known, Some(Known::File(info))
            if matches!(info.content, Content::Open(_)) && Rc::strong_count(info) == 1)
    }
}
