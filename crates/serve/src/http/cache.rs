//! What is known of files: open descriptors, metadata, the content of small ones, and what is not there.
//!
//! A path is looked up by [`FileCache::lookup`]. What was learned since the asker began to ask, or less than the
//! configured time ago, answers at once; otherwise the file system is asked (whether a known file is still the same). Where it
//! answers at once, that holds for all who ask in the same turn of the loop; else the asker is noted as a waiter, and asks again when
//! it is woken. All who ask meanwhile share the answer. A file that
//! never changes ([`linerate_transport::Files::constant`]) is asked for once, and answers at once. Entries are evicted by the clock
//! algorithm: a second round for those that were used since the last. Files that nobody asks for are closed (`idle`).

mod idle;

pub(super) use idle::IDLE;

use super::config::{Config, Limits};
use super::file_info::{Content, FileInfo};
use super::ops::{Ops, Purpose};
use super::response::believed;
use crate::{Change, Context};
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::time::Duration;
use linerate_transport::{
    Bytes, ConnId, FileError, FileId, FileKind, FileOp, FileReply, Metadata, OpenMode, VirtualPath,
};
use linerate_wire::units::Instant;

/// How often a small file that changes while it is read is tried again.
const MAX_ATTEMPTS: u8 = 3;

/// How long after it was last asked for the cheaper question serves: the kernel still has in its caches what it takes to answer.
const SAME_WITHIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
enum Known {
    File(Rc<FileInfo>),
    Directory,
    Failed(FileError),
}

impl Known {
    fn found(&self) -> Found {
        match self {
            Known::File(info) => Found::File(Rc::clone(info)),
            Known::Directory => Found::Directory,
            Known::Failed(error) => Found::Failed(*error),
        }
    }
}

/// What an operation told.
#[derive(Debug)]
enum Learned {
    /// What was known still holds.
    Confirmed,
    /// Something new.
    New(Known),
    /// Nothing: whoever waits shall ask again.
    Nothing,
}

impl Learned {
    fn failed(result: Result<FileReply, FileError>) -> Learned {
        Learned::New(Known::Failed(result.err().unwrap_or(FileError::Io)))
    }
}

/// The operation that runs for an entry.
#[derive(Clone, Debug)]
enum Step {
    Stat,
    Open,
    Read {
        file: FileId,
        meta: Metadata,
    },
    /// Whether the file was still the same after it was read.
    Verify {
        meta: Metadata,
        bytes: Bytes,
    },
}

#[derive(Debug)]
struct Entry {
    path: VirtualPath,
    known: Option<Known>,
    step: Option<Step>,
    attempts: u8,
    /// The turn in which `known` was learned or confirmed.
    checked: u64,
    /// When that was; `None` when it may be wrong by now.
    learned: Option<Instant>,
    /// The turn of the loop in which the file system was asked at once, and said that it still is so: that holds for all who
    /// ask in it.
    confirmed: Option<u64>,
    /// Somebody changed the file while `step` ran: its answer may be of before.
    changed: bool,
    /// Since the clock's hand came by.
    used: bool,
    waiters: Vec<ConnId>,
}

/// What a lookup finds.
#[derive(Debug)]
pub(super) enum Found {
    /// A file; hand it to [`FileCache::release`] when it was kept.
    File(Rc<FileInfo>),
    /// A directory.
    Directory,
    /// The file system refused it.
    Failed(FileError),
    /// It is being found out; the waiter will be woken.
    Pending,
    /// Everything is in use; try again when something was released or finished.
    Busy,
}

/// The cache.
#[derive(Debug, Default)]
pub(super) struct FileCache {
    by_path: BTreeMap<VirtualPath, u32>,
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
    hand: usize,
    /// Files that are open or being opened.
    open: usize,
    /// Open files that no entry knows any more, but a connection still sends.
    doomed: Vec<Rc<FileInfo>>,
    /// Somebody has changed a file that is open.
    has_changed: bool,
    memory: usize,
    turn: u64,
    /// Lookups answered at once.
    pub hits: u64,
    /// Lookups that needed the file system.
    pub misses: u64,
}

/// Who looks something up.
#[derive(Clone, Copy)]
pub(super) struct Asker {
    /// To be woken.
    pub conn: ConnId,
    /// What [`FileCache::turn`] was when it began to ask; what was learned after that is new enough.
    pub since: u64,
    /// What was learned less than this ago is new enough, too.
    pub max_age: Duration,
    /// The same for what is not there.
    pub max_age_of_absence: Duration,
    /// Whether it may start operations; otherwise only what is known answers.
    pub may_start: bool,
}

impl FileCache {
    /// Files open now, or being opened.
    pub fn open_files(&self) -> usize {
        self.open
    }

    /// How often something was learned.
    pub fn turn(&self) -> u64 {
        self.turn
    }

    /// Bytes of content held.
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// Paths known.
    pub fn len(&self) -> usize {
        self.by_path.len()
    }

    /// Looks a path up.
    pub fn lookup(
        &mut self,
        ctx: &mut Context<'_>,
        ops: &mut Ops,
        limits: &Limits,
        path: &VirtualPath,
        asker: Asker,
    ) -> Found {
        let slot = match self.by_path.get(path) {
            Some(slot) => *slot,
            None if !asker.may_start => return Found::Busy,
            None => match self.insert(ctx, ops, limits, path) {
                Some(slot) => slot,
                None => return Found::Busy,
            },
        };
        let Some(entry) = self.entries.get_mut(slot as usize).and_then(Option::as_mut) else {
            return Found::Busy;
        };
        entry.used = true;
        if entry.step.is_none() {
            if let Some(known) = entry.known.as_ref().filter(|known| entry.is_fresh(known, ctx, asker)) {
                self.hits += 1;
                return known.found();
            }
            if entry.known.is_none()
                && let Some((meta, bytes)) = ctx.files.constant(path)
            {
                let info = FileInfo::constant(path.as_str(), meta, bytes, believed(ctx.wall_ns));
                let info = Rc::new(info);
                entry.known = Some(Known::File(Rc::clone(&info)));
                return Found::File(info);
            }
            let step = match entry.known {
                Some(Known::File(_) | Known::Directory) => Step::Stat,
                _ => Step::Open,
            };
            if let Some(found) = self.confirm_now(ctx, slot) {
                self.hits += 1;
                return found;
            }
            if !asker.may_start {
                return Found::Busy;
            }
            if !self.start(ctx, ops, limits, slot, step) {
                return Found::Busy;
            }
            self.misses += 1;
        }
        if let Some(entry) = self.entries.get_mut(slot as usize).and_then(Option::as_mut) {
            // Who finds out that an answer is not ready asks again at once.
            if entry.waiters.last() != Some(&asker.conn) {
                entry.waiters.push(asker.conn);
            }
        }
        Found::Pending
    }

    /// What is known, if the file system says at once that it is still so.
    fn confirm_now(&mut self, ctx: &mut Context<'_>, slot: u32) -> Option<Found> {
        let entry = self.entries.get_mut(slot as usize)?.as_mut()?;
        let known = entry.known.as_ref()?;
        let recent = entry.learned.is_some_and(|learned| learned + SAME_WITHIN > ctx.now);
        let same = matches!(known, Known::File(info)
            if recent && info.is_still(&info.meta) && ctx.files.is_same_now(&entry.path, &info.meta));
        let holds = same
            || match ctx.files.stat_now(&entry.path)? {
                Ok(meta) => entry.is_still(&meta),
                Err(FileError::NotFound) => matches!(known, Known::Failed(FileError::NotFound)),
                Err(_) => false,
            };
        let found = holds.then(|| known.found())?;
        self.turn += 1;
        (entry.checked, entry.learned, entry.confirmed) = (self.turn, Some(ctx.now), ctx.turn);
        Some(found)
    }

    fn insert(
        &mut self,
        ctx: &mut Context<'_>,
        ops: &mut Ops,
        limits: &Limits,
        path: &VirtualPath,
    ) -> Option<u32> {
        if self.by_path.len() >= limits.cache_entries.max(1) && !self.evict(ctx, ops, |_| true) {
            return None;
        }
        let entry = Entry {
            path: path.clone(),
            known: None,
            step: None,
            attempts: 0,
            checked: 0,
            learned: None,
            confirmed: None,
            changed: false,
            used: true,
            waiters: Vec::new(),
        };
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                let slot = u32::try_from(self.entries.len()).ok()?;
                self.entries.push(None);
                slot
            }
        };
        *self.entries.get_mut(slot as usize)? = Some(entry);
        self.by_path.insert(path.clone(), slot);
        Some(slot)
    }

    /// Starts an operation for an entry; false when too many files are open.
    fn start(
        &mut self,
        ctx: &mut Context<'_>,
        ops: &mut Ops,
        limits: &Limits,
        slot: u32,
        step: Step,
    ) -> bool {
        if matches!(step, Step::Open) {
            if self.open >= limits.open_files.max(1) && !self.evict(ctx, ops, Entry::holds_unused_file) {
                return false;
            }
            self.open += 1;
        }
        let Some(entry) = self.entries.get_mut(slot as usize).and_then(Option::as_mut) else { return false };
        let op = match &step {
            Step::Stat | Step::Verify { .. } => FileOp::Stat { path: entry.path.clone() },
            Step::Open => FileOp::Open { path: entry.path.clone(), mode: OpenMode::Read },
            Step::Read { file, meta } => {
                // Small files only, which `opened` saw to.
                FileOp::Read { file: *file, offset: 0, len: usize::try_from(meta.len).unwrap_or(0) }
            }
        };
        entry.step = Some(step);
        ops.submit(ctx, Purpose::Entry(slot), op);
        true
    }

    /// Takes the answer to an operation of entry `slot`; returns those who waited for it, once it is all known.
    pub fn handle_done(
        &mut self,
        ctx: &mut Context<'_>,
        ops: &mut Ops,
        config: &Config,
        slot: u32,
        result: Result<FileReply, FileError>,
    ) -> Vec<ConnId> {
        let limits = &config.limits;
        let Some(entry) = self.entries.get_mut(slot as usize).and_then(Option::as_mut) else {
            return Vec::new();
        };
        let learned = match (entry.step.take(), result) {
            (Some(Step::Stat), Ok(FileReply::Meta(meta))) if entry.is_still(&meta) => Learned::Confirmed,
            (Some(Step::Stat), Ok(_)) => {
                self.forget(ctx, ops, slot);
                if self.start(ctx, ops, limits, slot, Step::Open) {
                    return Vec::new();
                }
                Learned::Nothing
            }
            (Some(Step::Open), Ok(FileReply::Opened { file, meta })) => {
                match self.opened(ctx, ops, limits, slot, file, meta) {
                    Some(known) => Learned::New(known),
                    None => return Vec::new(),
                }
            }
            (Some(Step::Open), other) => {
                self.open -= 1;
                if matches!(other, Err(FileError::TooManyOpen)) && self.open_again(ctx, ops, limits, slot) {
                    return Vec::new();
                }
                Learned::failed(other)
            }
            (Some(Step::Read { file, meta }), Ok(FileReply::Data(data))) => {
                self.close(ctx, ops, file);
                // A copy of just its length: what was read may lie in a larger, pooled buffer.
                let bytes = Bytes::from(data.as_ref().to_vec());
                if bytes.len() as u64 == meta.len {
                    self.start(ctx, ops, limits, slot, Step::Verify { meta, bytes });
                    return Vec::new();
                }
                match self.read_again(ctx, ops, limits, slot) {
                    Some(learned) => learned,
                    None => return Vec::new(),
                }
            }
            (Some(Step::Verify { meta, bytes }), Ok(FileReply::Meta(now))) if meta.is_same_file(&now) => {
                Learned::New(self.file(ctx, slot, meta, Content::Memory(bytes)))
            }
            (Some(Step::Verify { .. }), Ok(_)) => match self.read_again(ctx, ops, limits, slot) {
                Some(learned) => learned,
                None => return Vec::new(),
            },
            (Some(Step::Read { file, .. }), other) => {
                self.close(ctx, ops, file);
                Learned::failed(other)
            }
            (_, other) => Learned::failed(other),
        };
        self.settle(ctx, ops, config, slot, learned)
    }

    /// Begins anew with a file that changed while it was read; answers what is learned when it changes all the time.
    fn read_again(
        &mut self,
        ctx: &mut Context<'_>,
        ops: &mut Ops,
        limits: &Limits,
        slot: u32,
    ) -> Option<Learned> {
        let entry = self.entries.get_mut(slot as usize).and_then(Option::as_mut)?;
        entry.attempts += 1;
        let again = entry.attempts < MAX_ATTEMPTS && self.start(ctx, ops, limits, slot, Step::Open);
        (!again).then_some(Learned::New(Known::Failed(FileError::Io)))
    }

    /// What an open file is; `None` when it is read first.
    fn opened(
        &mut self,
        ctx: &mut Context<'_>,
        ops: &mut Ops,
        limits: &Limits,
        slot: u32,
        file: FileId,
        meta: Metadata,
    ) -> Option<Known> {
        match meta.kind {
            FileKind::Directory => {
                self.close(ctx, ops, file);
                Some(Known::Directory)
            }
            FileKind::Other => {
                self.close(ctx, ops, file);
                Some(Known::Failed(FileError::Permission))
            }
            FileKind::File if meta.len == 0 => {
                self.close(ctx, ops, file);
                let nothing = Content::Memory(Bytes::from(Vec::new()));
                Some(self.file(ctx, slot, meta, nothing))
            }
            // One payload of memory is 64 KiB at most, and one file shall not be all of the cache.
            FileKind::File
                if meta.len <= limits.cached_file.min(64 << 10).min(limits.cache_memory / 2) as u64 =>
            {
                self.start(ctx, ops, limits, slot, Step::Read { file, meta });
                None
            }
            FileKind::File => Some(self.file(ctx, slot, meta, Content::Open(file))),
        }
    }

    fn file(&self, ctx: &Context<'_>, slot: u32, meta: Metadata, content: Content) -> Known {
        let path = self.entries.get(slot as usize).and_then(Option::as_ref).map(|entry| &entry.path);
        let media_type = path.and_then(|path| ctx.files.media_type(path));
        let info = FileInfo::new(path.map_or("", |path| path.as_str()), meta, content, believed(ctx.wall_ns));
        Known::File(Rc::new(info.with_media_type(media_type)))
    }

    /// Notes what was learned and takes the waiters.
    fn settle(
        &mut self,
        ctx: &mut Context<'_>,
        ops: &mut Ops,
        config: &Config,
        slot: u32,
        learned: Learned,
    ) -> Vec<ConnId> {
        // A fault that passes by itself is told to those who wait, and then tried again.
        let passing = matches!(
            learned,
            Learned::Nothing | Learned::New(Known::Failed(FileError::TooManyOpen | FileError::Io))
        );
        self.turn += 1;
        if !matches!(learned, Learned::Confirmed) {
            self.forget(ctx, ops, slot);
        }
        if let Some(entry) = self.entries.get_mut(slot as usize).and_then(Option::as_mut) {
            if let Learned::New(known) = learned {
                if let Known::File(info) = &known {
                    self.memory += info.memory();
                }
                entry.known = Some(known);
            }
            entry.attempts = 0;
            entry.checked = self.turn;
            entry.learned = (!passing).then_some(ctx.now);
            if core::mem::take(&mut entry.changed) {
                // Those who wait ask again.
                (entry.checked, entry.learned) = (0, None);
            }
        }
        // The new entry stays, as its waiters are still noted.
        while self.memory > config.limits.cache_memory {
            let holds = |entry: &Entry| match &entry.known {
                Some(Known::File(info)) => info.memory() > 0,
                _ => false,
            };
            if !self.evict(ctx, ops, holds) {
                break;
            }
        }
        let entry = self.entries.get_mut(slot as usize).and_then(Option::as_mut);
        entry.map(|entry| core::mem::take(&mut entry.waiters)).unwrap_or_default()
    }

    /// Believes nothing any more without asking the file system.
    pub fn distrust(&mut self) {
        for entry in self.entries.iter_mut().flatten() {
            entry.distrust();
        }
    }

    /// Believes nothing of what somebody has just changed.
    pub fn handle_change(&mut self, change: &Change) {
        if let Change::Path(path) = change {
            let slot = self.by_path.get(path).and_then(|slot| self.entries.get_mut(*slot as usize));
            for entry in slot.into_iter().flatten() {
                entry.distrust();
                self.has_changed |= entry.holds_unused_file();
            }
            return;
        }
        for entry in self.entries.iter_mut().flatten().filter(|entry| change.concerns(&entry.path)) {
            entry.distrust();
            self.has_changed |= entry.holds_unused_file();
        }
    }

    /// Whether files are to be closed because somebody has changed them ([`FileCache::close_idle`]).
    pub fn has_changed(&self) -> bool {
        self.has_changed
    }
}

impl Entry {
    /// Whether what is known is new enough for somebody.
    fn is_fresh(&self, known: &Known, ctx: &Context<'_>, asker: Asker) -> bool {
        let max_age = match known {
            Known::File(info) if info.is_constant => return true,
            Known::File(_) => asker.max_age,
            Known::Directory | Known::Failed(_) => asker.max_age_of_absence,
        };
        self.checked > asker.since
            || ctx.turn.is_some() && self.confirmed == ctx.turn
            || self.learned.is_some_and(|learned| learned + max_age > ctx.now)
    }

    /// What is known, or about to be, may be wrong.
    fn distrust(&mut self) {
        (self.learned, self.confirmed) = (None, None);
        self.checked = 0;
        self.changed |= self.step.is_some();
    }

    /// Whether the file system still has what this entry knows.
    fn is_still(&self, meta: &Metadata) -> bool {
        match &self.known {
            Some(Known::File(info)) => info.is_still(meta),
            Some(Known::Directory) => meta.kind == FileKind::Directory,
            _ => false,
        }
    }
}
