//! What the sessions of one server share: settings, deadlines, the file operations, and who owns which socket.

use super::config::Config;
use super::login::{Checks, Throttle};
use super::names::{OwnNames, UploadNames};
use super::reply::{Replies, reply};
use super::stats::Stats;
use crate::memory::{self, MemoryFile};
use crate::{Changes, Context, Deadlines};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::rc::Rc;
use core::time::Duration;
use linerate_transport::{
    ConnId, FileError, FileId, FileKind, FileOp, FileReply, ListenerId, Metadata, Owner, Rights, VirtualPath,
};
use linerate_wire::units::Instant;

/// A session's number. Numbers are used again after 2^32 sessions, never while one is alive.
pub(super) type SessionId = u32;

/// How long to wait before an operation that the files refused is submitted again.
const FILES_RETRY: Duration = Duration::from_millis(5);
/// The directory of the memory files.
const MEMORY: &str = "/memory";

/// The timers of a session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Timer {
    /// Silence on the control connection.
    Idle,
    /// The data connection must come about, or make progress.
    Data,
    /// The refusal of a password may be sent.
    Login,
    /// Work left over from a turn whose budget was used up.
    Resume,
}

impl Timer {
    pub(super) const ALL: [Timer; 4] = [Timer::Idle, Timer::Data, Timer::Login, Timer::Resume];
}

/// What a deadline is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Key {
    /// File operations that wait.
    Files,
    /// Sessions that ended while their wrong password was not answered stop counting.
    Parked,
    /// A session's timer.
    Session(SessionId, Timer),
}

/// What a session does at the moment, numbered so that an answer which comes late is known as such.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct JobId {
    pub(super) session: SessionId,
    /// 24 bits.
    pub(super) number: u32,
}

/// What a file operation was for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Opening a file or directory.
    Open,
    /// Emptying it, or cutting it where an upload resumes.
    Truncate,
    /// A piece of an upload.
    Write,
    /// The end.
    Close,
    /// Giving an upload its name.
    Publish,
    /// A piece to convert or to hash.
    Read,
    /// A page of a directory.
    ReadDir,
    /// An operation on a path.
    Path,
    /// Checking a password.
    Check,
}

const KINDS: [Kind; 9] = [
    Kind::Open,
    Kind::Truncate,
    Kind::Write,
    Kind::Close,
    Kind::Publish,
    Kind::Read,
    Kind::ReadDir,
    Kind::Path,
    Kind::Check,
];
const NUMBER_MASK: u32 = 0xff_ffff;

impl JobId {
    /// The job after this one.
    pub(super) fn next(self) -> JobId {
        JobId { number: self.number.wrapping_add(1) & NUMBER_MASK, ..self }
    }

    /// The tag of a file operation of this job.
    pub(super) fn tag(self, kind: Kind) -> u64 {
        u64::from(self.session) << 32 | u64::from(self.number & NUMBER_MASK) << 8 | kind as u64
    }

    /// The job and kind of a tag.
    pub(super) fn from_tag(tag: u64) -> Option<(JobId, Kind)> {
        let kind = *KINDS.get((tag & 0xff) as usize)?;
        Some((JobId { session: (tag >> 32) as u32, number: (tag >> 8) as u32 & NUMBER_MASK }, kind))
    }
}

/// The shared part of a server.
pub(super) struct Hub {
    pub(super) owner: Owner,
    pub(super) config: Rc<Config>,
    pub(super) deadlines: Deadlines<Key>,
    /// Control and data connections of sessions.
    pub(super) conns: BTreeMap<ConnId, SessionId>,
    /// Passive data listeners of sessions.
    pub(super) data_listeners: BTreeMap<ListenerId, SessionId>,
    /// File operations that were refused for now, in their order. Each session adds a bounded number.
    waiting: VecDeque<(u64, FileOp)>,
    /// Names that are being uploaded to.
    pub(super) uploads: Box<dyn UploadNames>,
    /// What was changed, for the other servers.
    pub(super) changes: Changes,
    pub(super) throttle: Throttle,
    pub(super) checks: Checks,
    pub(super) stats: Stats,
    pub(super) draining: bool,
    /// What is under way is being cut off.
    pub(super) cut_off: bool,
    /// Wall-clock time of the start, the date of memory files.
    pub(super) started_ns: i64,
}

impl Hub {
    pub(super) fn new(owner: Owner, config: Config) -> Self {
        Hub {
            owner,
            config: Rc::new(config),
            deadlines: Deadlines::new(),
            conns: BTreeMap::new(),
            data_listeners: BTreeMap::new(),
            waiting: VecDeque::new(),
            uploads: Box::<OwnNames>::default(),
            changes: Changes::default(),
            throttle: Throttle::default(),
            checks: Checks::default(),
            stats: Stats::default(),
            draining: false,
            cut_off: false,
            started_ns: 0,
        }
    }

    /// The memory file of this name, if there are such.
    pub(super) fn memory_file(&self, path: &VirtualPath) -> Option<MemoryFile> {
        memory::lookup(path).filter(|_| self.config.memory_files)
    }

    /// Whether it is the directory of the memory files, which is there even where the disk has none.
    pub(super) fn is_memory_dir(&self, path: &VirtualPath) -> bool {
        self.config.memory_files && path.as_str() == MEMORY
    }

    /// What a memory file, or their directory, looks like.
    pub(super) fn memory_meta(&self, path: &VirtualPath) -> Option<Metadata> {
        let (kind, len, mode) = match self.memory_file(path) {
            Some(MemoryFile::Source { len }) => (FileKind::File, len, 0o444),
            Some(MemoryFile::Null) => (FileKind::File, 0, 0o666),
            None if self.is_memory_dir(path) => (FileKind::Directory, 0, 0o555),
            None => return None,
        };
        Some(Metadata {
            kind,
            len,
            modified_ns: self.started_ns,
            changed_ns: self.started_ns,
            inode: 0,
            mode,
            rights: Rights::of_class(mode),
        })
    }

    /// Refuses to store, rename or remove under a name of memory files: what the disk has of it could not be read.
    pub(super) fn check_on_disk(&self, path: &VirtualPath, code: u16) -> Result<(), Replies> {
        match self.memory_meta(path) {
            Some(_) => Err(reply(code, format_args!("{path} is a name of memory files"))),
            None => Ok(()),
        }
    }

    /// Whether file operations wait to be submitted.
    pub(super) fn has_waiting_operations(&self) -> bool {
        !self.waiting.is_empty()
    }
}

/// The hub and the outside world during one call.
pub(super) struct Turn<'t, 'c> {
    pub(super) hub: &'t mut Hub,
    pub(super) ctx: &'t mut Context<'c>,
}

impl Turn<'_, '_> {
    pub(super) fn now(&self) -> Instant {
        self.ctx.now
    }

    pub(super) fn config(&self) -> Rc<Config> {
        Rc::clone(&self.hub.config)
    }

    /// Sets a session's timer.
    pub(super) fn set_timer(&mut self, session: SessionId, timer: Timer, at: Instant) {
        self.hub.deadlines.set(Key::Session(session, timer), at);
    }

    pub(super) fn clear_timer(&mut self, session: SessionId, timer: Timer) {
        self.hub.deadlines.clear(Key::Session(session, timer));
    }

    /// Submits a file operation, now or as soon as the files take it; the order is kept.
    pub(super) fn submit(&mut self, job: JobId, kind: Kind, op: FileOp) {
        let tag = job.tag(kind);
        if self.hub.waiting.is_empty() {
            match self.ctx.files.submit(self.hub.owner, tag, op) {
                Ok(()) => return,
                Err(op) => self.hub.waiting.push_back((tag, op)),
            }
            self.hub.deadlines.set(Key::Files, self.ctx.now + FILES_RETRY);
        } else {
            self.hub.waiting.push_back((tag, op));
        }
        self.hub.stats.deferred_operations += 1;
    }

    /// Closes a file; nobody waits for it.
    pub(super) fn close(&mut self, job: JobId, file: Option<FileId>) {
        if let Some(file) = file {
            self.submit(job, Kind::Close, FileOp::Close { file });
        }
    }

    /// Releases what came of an operation that nobody waits for any more.
    pub(super) fn discard(&mut self, job: JobId, result: Result<FileReply, FileError>) {
        if let Ok(FileReply::Opened { file, .. }) = result {
            self.close(job, Some(file));
        }
    }

    /// Submits what waits.
    pub(super) fn resubmit(&mut self) {
        while let Some((tag, op)) = self.hub.waiting.pop_front() {
            if let Err(op) = self.ctx.files.submit(self.hub.owner, tag, op) {
                self.hub.waiting.push_front((tag, op));
                self.hub.deadlines.set(Key::Files, self.ctx.now + FILES_RETRY);
                return;
            }
        }
        self.hub.deadlines.clear(Key::Files);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_tag_brings_back_its_job(session in any::<u32>(), number in 0u32..=NUMBER_MASK, at in 0..KINDS.len()) {
            let job = JobId { session, number };
            prop_assert_eq!(JobId::from_tag(job.tag(KINDS[at])), Some((job, KINDS[at])));
            prop_assert!(job.next() != job && job.next().number <= NUMBER_MASK);
        }
    }
}
