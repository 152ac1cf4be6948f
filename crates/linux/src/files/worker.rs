//! The threads that do file operations, and the queue before them. Results go where the job says.

use super::ahead::Sink;
use super::job::{FileWork, Finished, Job, Outcome, Work};
use super::pages::{Page, PagePool};
use super::root::Root;
use super::table::{Content, OpenFile, ReadAheadDone};
use crate::mailbox::{Mailbox, lock};
use crate::slab::Key;
use linerate_transport::{FileError, FileOp, FileReply, Metadata, VirtualPath};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// A wish of a transport: bring a piece of a file into memory.
#[derive(Debug)]
pub(crate) struct ReadAhead {
    pub(crate) file: Arc<OpenFile>,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) key: Key,
    pub(crate) done: Arc<Mailbox<ReadAheadDone>>,
}

/// What waits for a worker.
#[derive(Debug)]
pub(crate) struct WorkQueue {
    state: Mutex<State>,
    wake: Condvar,
    root: Root,
    pages: Arc<PagePool>,
    /// File services over it: loops, each of which can keep a processor busy.
    loops: AtomicUsize,
    /// Processors that this process may use; tests change it.
    pub(super) processors: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    jobs: VecDeque<Job>,
    ahead: VecDeque<ReadAhead>,
    /// The two queues take turns, so that neither starves the other.
    ahead_next: bool,
    stop: bool,
}

enum Task {
    Job(Job),
    Ahead(ReadAhead),
}

/// Most wishes to read ahead that wait. Living connections have one each; beyond that are those of dead ones.
const READ_AHEADS_MAX: usize = 64 << 10;

impl WorkQueue {
    pub(crate) fn new(root: Root, pages: Arc<PagePool>) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get).into();
        let loops = AtomicUsize::new(0);
        WorkQueue { state: Mutex::default(), wake: Condvar::new(), root, pages, loops, processors }
    }

    /// One more loop uses it.
    pub(crate) fn join(&self) {
        self.loops.fetch_add(1, Ordering::Relaxed);
    }

    /// One less.
    pub(crate) fn leave(&self) {
        self.loops.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether the loops can keep all processors busy, so that a worker only takes turns with them.
    pub(crate) fn is_crowded(&self) -> bool {
        self.loops.load(Ordering::Relaxed) >= self.processors.load(Ordering::Relaxed)
    }

    pub(crate) fn set_writable(&self, writable: bool) {
        self.root.set_writable(writable);
    }

    /// See [`Root::may_change`].
    pub(crate) fn may_change(&self) -> bool {
        self.root.may_change()
    }

    /// See [`WorkerFiles::holds`](super::WorkerFiles::holds).
    pub(super) fn holds(&self, name: &str) -> bool {
        self.root.holds(name)
    }

    /// See [`Root::is_at`].
    pub(super) fn is_at(&self, path: &Path) -> Result<bool, Errno> {
        self.root.is_at(path)
    }

    /// Does what takes no waiting: see [`Root::stat_cached`].
    pub(crate) fn stat_cached(&self, path: &VirtualPath) -> Option<Result<Metadata, FileError>> {
        self.root.stat_cached(path)
    }

    /// See [`Root::is_same`].
    pub(crate) fn is_same(&self, path: &VirtualPath, known: &Metadata) -> bool {
        self.root.is_same(path, known)
    }

    /// A buffer for a read.
    pub(crate) fn take_page(&self, len: usize) -> Page {
        self.pages.take(len)
    }

    /// Queues a job: behind the others of its file if it has one, so that they run in order.
    pub(crate) fn push(&self, job: Job) {
        if let Work::File(file, _) = &job.work {
            let file = Arc::clone(file);
            let mut queue = lock(&file.queue);
            if queue.busy {
                queue.waiting.push_back(job);
                return;
            }
            queue.busy = true;
        }
        lock(&self.state).jobs.push_back(job);
        self.wake.notify_one();
    }

    pub(crate) fn push_read_ahead(&self, ahead: ReadAhead) {
        let mut state = lock(&self.state);
        if state.stop || state.ahead.len() >= READ_AHEADS_MAX {
            drop(state);
            // Unread: sending it may wait for the disk, which is the lesser evil when the workers are gone or swamped.
            let up_to = ahead.offset.saturating_add(ahead.len);
            ahead.done.push(ReadAheadDone { key: ahead.key, up_to });
            return;
        }
        state.ahead.push_back(ahead);
        drop(state);
        self.wake.notify_one();
    }

    /// Lets the workers end after what they are at, and what was sent here to be kept.
    pub(crate) fn stop(&self) {
        lock(&self.state).stop = true;
        self.wake.notify_all();
    }

    fn next(&self) -> Option<Task> {
        let mut state = lock(&self.state);
        loop {
            if state.stop {
                // Nobody waits for anything else.
                while let Some(job) = state.jobs.pop_front() {
                    if job.work.keeps() {
                        return Some(Task::Job(job));
                    }
                }
                return None;
            }
            let ahead_next = state.ahead_next;
            let task = if ahead_next {
                state.ahead.pop_front().map(Task::Ahead).or_else(|| state.jobs.pop_front().map(Task::Job))
            } else {
                state.jobs.pop_front().map(Task::Job).or_else(|| state.ahead.pop_front().map(Task::Ahead))
            };
            if let Some(task) = task {
                state.ahead_next = matches!(task, Task::Job(_));
                return Some(task);
            }
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// What a worker thread does.
    pub(crate) fn work(&self) {
        let mut sink = Sink::new();
        while let Some(task) = self.next() {
            match task {
                Task::Job(job) => self.run(job),
                Task::Ahead(ahead) => {
                    sink.read_ahead(&ahead.file, ahead.offset, ahead.len);
                    let up_to = ahead.offset.saturating_add(ahead.len);
                    ahead.done.push(ReadAheadDone { key: ahead.key, up_to });
                }
            }
        }
    }

    fn run(&self, job: Job) {
        let Job { owner, tag, work, done } = job;
        let finish = |was_open, result| done.push(Finished { owner, tag, was_open, result });
        match work {
            Work::Path(op) => finish(matches!(op, FileOp::Open { .. }), self.root.perform(op)),
            Work::File(file, FileWork::Close) => {
                let result = self.root.perform_on(&file, FileWork::Close, &self.pages);
                // Nothing is behind a close: the id is gone since it was submitted.
                finish(false, close(file, result).map(Outcome::Reply));
            }
            Work::File(file, work) => {
                let result = self.root.perform_on(&file, work, &self.pages);
                // Told before the next one starts, so that the answers keep the order, too.
                finish(false, result.map(Outcome::Reply));
                let queue = Arc::clone(&file.queue);
                drop(file);
                let mut queue = lock(&queue);
                let next = queue.waiting.pop_front();
                queue.busy = next.is_some();
                drop(queue);
                // To the end of the queue, so that one file cannot hold a worker. Nobody is woken for it: this thread looks there
                // next.
                if let Some(next) = next {
                    lock(&self.state).jobs.push_back(next);
                }
            }
        }
    }
}

/// Lets go of a file; what the system reports late about writing is the answer.
fn close(file: Arc<OpenFile>, result: Result<FileReply, FileError>) -> Result<FileReply, FileError> {
    // Somebody who still sends it closes it later.
    let Some(OpenFile { content: Content::Fd(fd), writable: true, .. }) = Arc::into_inner(file) else {
        return result;
    };
    match (result, crate::sys::socket::close(fd)) {
        (Ok(_), Err(Errno::NOSPC | Errno::DQUOT)) => Err(FileError::NoSpace),
        // Interrupted, Linux has closed it all the same.
        (Ok(_), Err(errno)) if errno != Errno::INTR => Err(FileError::Io),
        (result, _) => result,
    }
}
