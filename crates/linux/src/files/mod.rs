//! File services for the servers: a directory worked on by threads, or the tree that is built into the program.
//!
//! Both are [`AnyFiles`], and both hand a [`FileAccess`] to the kernel transport, which sends ranges of files by id.

mod ahead;
mod demo;
mod job;
mod links;
mod medium;
mod pages;
mod resident;
mod rights;
mod root;
mod sweep;
mod table;
mod upload;
mod worker;

#[cfg(test)]
pub(crate) mod tests;

pub use demo::{DemoFile, DemoFiles};
pub(crate) use resident::Resident;
pub use root::RootError;
pub use table::{FileAccess, OpenFile};
pub(crate) use table::{ReadAheadDone, Sendable};

use crate::mailbox::Mailbox;
use job::{FileWork, Finished, Job, Outcome, Work};
use linerate_transport::{
    Bytes, FileDone, FileError, FileId, FileOp, FileReply, Files, Metadata, Owner, VirtualPath,
};
use medium::Reach;
use pages::PagePool;
use rustix::fd::{AsFd, BorrowedFd};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use sweep::Sweep;
use table::{FileTable, OpenFile as File};
use worker::WorkQueue;

/// Longest single read in bytes; a longer one fails with [`FileError::Io`].
pub const READ_MAX: usize = 16 << 20;
/// Longest read in bytes that is done at once where the bytes are in memory, if a worker would have no processor of its
/// own: copying takes time, too.
const READ_NOW_MAX: usize = 256 << 10;
/// The same where it has one, which copies while the loop sends: a shorter copy takes less time than the handing over.
const READ_NOW_SHORT: usize = 16 << 10;
/// Most entries that one `ReadDir` answers, whatever its limit says.
pub const READ_DIR_MAX: usize = 1024;

/// Settings of a [`WorkerFiles`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkerConfig {
    /// Whether anything may be changed; everything that would is refused with [`FileError::ReadOnly`] otherwise.
    /// Default: no.
    pub writable: bool,
    /// Threads. Default: 4.
    pub threads: usize,
    /// Most operations under way; `submit` refuses more. Default: 1,024.
    pub queue_max: usize,
    /// Most files open at once. Default: 4,096.
    pub open_max: usize,
    /// Most unused read buffers kept, in bytes. Default: 16 MiB.
    pub pool_bytes: usize,
}

impl Default for WorkerConfig {
    fn default() -> Self {
        WorkerConfig { writable: false, threads: 4, queue_max: 1024, open_max: 4096, pool_bytes: 16 << 20 }
    }
}

linerate_wire::figures! {
    /// Counters of a [`WorkerFiles`].
    pub struct FileCounters {
        /// Operations accepted.
        accepted,
        /// Operations given back because too many were under way.
        refused,
        /// Operations that ended in an error.
        failed,
        /// Files not opened because too many were open.
        too_many_open [drop],
    }
}

/// A directory of the system, worked on by threads so that a slow disk stalls nobody.
///
/// Whatever a path says and whatever symbolic links there are, nothing outside the directory is reached: every path is
/// resolved by `openat2` beneath the directory. Links inside it work.
#[derive(Debug)]
pub struct WorkerFiles {
    crew: Arc<Crew>,
    done: Arc<Mailbox<Finished>>,
    table: FileTable,
    config: WorkerConfig,
    /// Accepted and not yet polled.
    under_way: usize,
    /// Opens among them.
    opening: usize,
    finished: VecDeque<Finished>,
    counters: FileCounters,
}

/// The threads that work on a directory; they end when the last file service over them has gone.
#[derive(Debug)]
struct Crew {
    work: Arc<WorkQueue>,
    /// Looks for what uploads of a killed server left.
    _sweep: Option<Sweep>,
    threads: Vec<JoinHandle<()>>,
}

impl Drop for WorkerFiles {
    fn drop(&mut self) {
        self.crew.work.leave();
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.work.stop();
        for thread in self.threads.drain(..) {
            // A worker that panicked has nothing to hand over.
            let _ = thread.join();
        }
    }
}

impl WorkerFiles {
    /// Serves the directory at `path`.
    ///
    /// # Errors
    /// When it is not a directory that can be opened, when the kernel lacks `openat2`, or when a thread or a descriptor
    /// is not to be had.
    pub fn start(path: &Path, config: WorkerConfig) -> Result<WorkerFiles, RootError> {
        let root = root::Root::open(path, config.writable)?;
        let sweep = if config.writable { root.descriptor().ok().map(Sweep::start) } else { None };
        let work = WorkQueue::new(root, PagePool::new(config.pool_bytes));
        let mut crew = Crew { work: Arc::new(work), _sweep: sweep, threads: Vec::new() };
        for number in 0..config.threads.max(1) {
            let work = Arc::clone(&crew.work);
            let thread = std::thread::Builder::new()
                .name(format!("files-{number}"))
                .spawn(move || work.work())
                .map_err(RootError::Resources)?;
            crew.threads.push(thread);
        }
        WorkerFiles::over(Arc::new(crew), config).map_err(RootError::Resources)
    }

    fn over(crew: Arc<Crew>, config: WorkerConfig) -> std::io::Result<WorkerFiles> {
        let done = Arc::new(Mailbox::new()?);
        crew.work.join();
        Ok(WorkerFiles {
            crew,
            done,
            table: FileTable::new(config.open_max),
            config,
            under_way: 0,
            opening: 0,
            finished: VecDeque::new(),
            counters: FileCounters::default(),
        })
    }

    /// Allows or refuses changes from now on; files that are open for writing stay so.
    pub fn set_writable(&mut self, writable: bool) {
        self.config.writable = writable;
        self.crew.work.set_writable(writable);
    }

    /// Whether `path` leads to the directory that is served still: it may have been replaced since it was opened.
    ///
    /// # Errors
    /// The system's, when there is nothing at `path` or this process may not look.
    pub fn is_at(&self, path: &Path) -> std::io::Result<bool> {
        Ok(self.crew.work.is_at(path)?)
    }

    /// Whether the directory has this name; where that cannot be told, it counts as there.
    pub fn holds(&self, name: &str) -> bool {
        self.crew.work.holds(name)
    }

    /// Whether this process has the right to make and remove files in the directory.
    pub fn may_change(&self) -> bool {
        self.crew.work.may_change()
    }

    /// What a transport needs to send these files.
    pub fn access(&self) -> FileAccess {
        FileAccess { table: self.table.clone(), workers: Some(Arc::clone(&self.crew.work)) }
    }

    /// Counters since the start.
    pub fn counters(&self) -> FileCounters {
        self.counters
    }

    /// Files open now.
    pub fn open_files(&self) -> usize {
        self.table.len()
    }

    fn push(&self, owner: Owner, tag: u64, work: Work) {
        self.crew.work.push(Job { owner, tag, work, done: Arc::clone(&self.done) });
    }

    fn answer(&mut self, owner: Owner, tag: u64, error: FileError) {
        self.done.push(Finished { owner, tag, was_open: false, result: Err(error) });
    }

    fn submit_path(&mut self, owner: Owner, tag: u64, op: FileOp) {
        if matches!(op, FileOp::Open { .. }) {
            if self.table.len() + self.opening >= self.config.open_max {
                self.counters.too_many_open += 1;
                return self.answer(owner, tag, FileError::TooManyOpen);
            }
            self.opening += 1;
        }
        // Servers ask for every request whether a file is still the same: a worker would double what that costs.
        if let FileOp::Stat { path } = &op
            && let Some(result) = self.crew.work.stat_cached(path)
        {
            let result = result.map(|meta| Outcome::Reply(FileReply::Meta(meta)));
            return self.finish_now(Finished { owner, tag, was_open: false, result });
        }
        self.push(owner, tag, Work::Path(op));
    }

    /// Reads what the page cache has, if handing it to a worker would cost more than it gains.
    fn submit_read(&mut self, owner: Owner, tag: u64, id: FileId, offset: u64, len: usize) {
        let mut begun = None;
        let longest = if self.crew.work.is_crowded() { READ_NOW_MAX } else { READ_NOW_SHORT };
        if len <= longest
            && let Some(file) = self.table.find(id)
            && file.reads_now()
            && !file.is_busy()
        {
            let (mut page, mut done) = (self.crew.work.take_page(len), 0);
            if file.read_now(page.as_mut(), offset, &mut done) == Reach::Whole {
                let result = Ok(Outcome::Reply(FileReply::Data(page.into_shared(done))));
                return self.finish_now(Finished { owner, tag, was_open: false, result });
            }
            begun = (done > 0).then_some((page, done));
        }
        self.submit_file(owner, tag, id, FileWork::Read { offset, len, begun });
    }

    /// Takes what is finished already; behind what finished before it.
    fn finish_now(&mut self, finished: Finished) {
        self.done.drain_into(&mut self.finished);
        self.finished.push_back(finished);
    }

    fn submit_file(&mut self, owner: Owner, tag: u64, id: FileId, work: FileWork) {
        // Once a close is submitted, the id is no longer one of an open file.
        let closes = matches!(work, FileWork::Close);
        let file = if closes { self.table.remove(id) } else { self.table.find(id) };
        match file {
            Some(file) => self.push(owner, tag, Work::File(file, work)),
            None => self.answer(owner, tag, FileError::Stale),
        }
    }

    fn register(&mut self, file: Arc<File>) -> Result<FileId, FileError> {
        self.table.insert(file).map_err(|_| {
            self.counters.too_many_open += 1;
            FileError::TooManyOpen
        })
    }
}

impl Files for WorkerFiles {
    fn submit(&mut self, owner: Owner, tag: u64, op: FileOp) -> Result<(), FileOp> {
        if self.under_way >= self.config.queue_max {
            self.counters.refused += 1;
            return Err(op);
        }
        self.under_way += 1;
        self.counters.accepted += 1;
        match op {
            FileOp::ReadDir { dir, limit } => self.submit_file(owner, tag, dir, FileWork::ReadDir { limit }),
            FileOp::Read { file, offset, len } => {
                self.submit_read(owner, tag, file, offset, len);
            }
            FileOp::Write { file, offset, data } => {
                self.submit_file(owner, tag, file, FileWork::Write { offset, data });
            }
            FileOp::WriteParcel { file, offset, parcel } => {
                self.submit_file(owner, tag, file, FileWork::WriteParcel { offset, parcel });
            }
            FileOp::Truncate { file, len } => {
                self.submit_file(owner, tag, file, FileWork::Truncate { len });
            }
            FileOp::Publish { file, whole } => {
                self.submit_file(owner, tag, file, FileWork::Publish { whole });
            }
            FileOp::Close { file } => self.submit_file(owner, tag, file, FileWork::Close),
            op => self.submit_path(owner, tag, op),
        }
        Ok(())
    }

    fn poll_done(&mut self) -> Option<FileDone> {
        if self.finished.is_empty() {
            self.done.drain_into(&mut self.finished);
        }
        let Finished { owner, tag, was_open, result } = self.finished.pop_front()?;
        self.under_way -= 1;
        if was_open {
            self.opening -= 1;
        }
        let result = result.and_then(|outcome| match outcome {
            Outcome::Opened(file, meta) => self.register(file).map(|file| FileReply::Opened { file, meta }),
            Outcome::Reply(reply) => Ok(reply),
        });
        if result.is_err() {
            self.counters.failed += 1;
        }
        Some(FileDone { owner, tag, result })
    }

    fn has_done(&self) -> bool {
        !self.finished.is_empty()
    }

    fn stat_now(&mut self, path: &VirtualPath) -> Option<Result<Metadata, FileError>> {
        let found = self.crew.work.stat_cached(path)?;
        self.counters.accepted += 1;
        self.counters.failed += u64::from(found.is_err());
        Some(found)
    }

    fn is_same_now(&mut self, path: &VirtualPath, known: &Metadata) -> bool {
        let same = self.crew.work.is_same(path, known);
        self.counters.accepted += u64::from(same);
        same
    }

    fn write_now(&mut self, file: FileId, offset: u64, data: &[u8]) -> usize {
        match self.table.find(file) {
            Some(file) if self.crew.work.is_crowded() && !file.is_busy() => file.write_now(offset, data),
            _ => 0,
        }
    }

    fn takes_parcels(&self) -> bool {
        true
    }
}

impl AsFd for WorkerFiles {
    /// Becomes readable when a worker has finished an operation; `poll_done` silences it. What was finished as it was
    /// submitted shows in [`Files::has_done`] alone.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.done.as_fd()
    }
}

/// The file service that the loop owns: a directory, or the built-in tree.
#[derive(Debug)]
pub enum AnyFiles {
    /// A directory of the system.
    Directory(WorkerFiles),
    /// The tree that is built into the program.
    Demo(DemoFiles),
}

impl AnyFiles {
    /// What a transport needs to send these files.
    pub fn access(&self) -> FileAccess {
        match self {
            AnyFiles::Directory(files) => files.access(),
            AnyFiles::Demo(files) => files.access(),
        }
    }

    /// What another loop makes a file service of its own from: the same directory and the same threads, but operations,
    /// open files and bounds of its own.
    pub fn share(&self) -> SharedFiles {
        SharedFiles(match self {
            AnyFiles::Directory(files) => Shared::Directory(Arc::clone(&files.crew), files.config.clone()),
            AnyFiles::Demo(files) => Shared::Demo(files.tree()),
        })
    }
}

/// A file service that is not made yet and may cross to the thread that is to own it; see [`AnyFiles::share`].
#[derive(Clone, Debug)]
pub struct SharedFiles(Shared);

#[derive(Clone, Debug)]
enum Shared {
    Directory(Arc<Crew>, WorkerConfig),
    Demo(Arc<demo::Tree>),
}

impl SharedFiles {
    /// Makes the file service.
    ///
    /// # Errors
    /// The system's, when it has no file descriptor left.
    pub fn into_files(self) -> std::io::Result<AnyFiles> {
        match self.0 {
            Shared::Directory(crew, config) => WorkerFiles::over(crew, config).map(AnyFiles::Directory),
            Shared::Demo(tree) => DemoFiles::over(tree).map(AnyFiles::Demo),
        }
    }
}

impl Files for AnyFiles {
    fn submit(&mut self, owner: Owner, tag: u64, op: FileOp) -> Result<(), FileOp> {
        match self {
            AnyFiles::Directory(files) => files.submit(owner, tag, op),
            AnyFiles::Demo(files) => files.submit(owner, tag, op),
        }
    }

    fn poll_done(&mut self) -> Option<FileDone> {
        match self {
            AnyFiles::Directory(files) => files.poll_done(),
            AnyFiles::Demo(files) => files.poll_done(),
        }
    }

    fn has_done(&self) -> bool {
        match self {
            AnyFiles::Directory(files) => files.has_done(),
            AnyFiles::Demo(files) => files.has_done(),
        }
    }

    fn stat_now(&mut self, path: &VirtualPath) -> Option<Result<Metadata, FileError>> {
        match self {
            AnyFiles::Directory(files) => files.stat_now(path),
            AnyFiles::Demo(files) => files.stat_now(path),
        }
    }

    fn is_same_now(&mut self, path: &VirtualPath, known: &Metadata) -> bool {
        match self {
            AnyFiles::Directory(files) => files.is_same_now(path, known),
            AnyFiles::Demo(files) => files.is_same_now(path, known),
        }
    }

    fn constant(&self, path: &VirtualPath) -> Option<(Metadata, Bytes)> {
        match self {
            AnyFiles::Directory(_) => None,
            AnyFiles::Demo(files) => files.constant(path),
        }
    }

    fn write_now(&mut self, file: FileId, offset: u64, data: &[u8]) -> usize {
        match self {
            AnyFiles::Directory(files) => files.write_now(file, offset, data),
            AnyFiles::Demo(files) => files.write_now(file, offset, data),
        }
    }

    fn takes_parcels(&self) -> bool {
        match self {
            AnyFiles::Directory(files) => files.takes_parcels(),
            AnyFiles::Demo(files) => files.takes_parcels(),
        }
    }
}

impl AsFd for AnyFiles {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            AnyFiles::Directory(files) => files.as_fd(),
            AnyFiles::Demo(files) => files.as_fd(),
        }
    }
}
