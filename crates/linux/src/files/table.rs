//! The table of open files, shared by the file service and the transport that sends ranges of them.

use super::job::FileQueue;
use super::medium::Medium;
use super::upload::Unpublished;
use super::worker::WorkQueue;
use crate::mailbox::{Mailbox, lock};
use crate::slab::{Key, Slab};
use linerate_transport::{FileError, FileId, VirtualPath};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::Dir;
use std::sync::{Arc, Mutex};

/// Where the bytes of an open file are.
#[derive(Debug)]
pub(crate) enum Content {
    /// In a file of the system.
    Fd(OwnedFd),
    /// In the program itself.
    Static(&'static [u8]),
    /// It is a directory: the descriptor that resolves names, the path, and the reading position.
    Dir(OpenDir),
}

/// An open directory.
#[derive(Debug)]
pub(crate) struct OpenDir {
    /// Its path under the root, by which links in it are followed.
    pub(crate) path: VirtualPath,
    /// The reading position.
    pub(crate) position: Mutex<DirPosition>,
}

/// Where reading a directory stands.
#[derive(Debug)]
pub(crate) enum DirPosition {
    /// In a directory of the system.
    Stream(Dir),
    /// At this entry of a directory of the built-in tree.
    Entry(usize),
}

/// An open file or directory; closed when the table and everybody who is sending it have let go of it.
#[derive(Debug)]
pub struct OpenFile {
    pub(crate) content: Content,
    pub(crate) writable: bool,
    /// What it needs to get its name, while it has none.
    pub(crate) unpublished: Mutex<Option<Unpublished>>,
    /// What the first failing write left behind, for those after it and for `Close`.
    pub(crate) late_error: Mutex<Option<FileError>>,
    /// Operations on this file that wait for the one under way. Apart from the file, so that who takes the next one does not
    /// hold the file any more: it may be the close.
    pub(crate) queue: Arc<Mutex<FileQueue>>,
    /// Where the file system keeps it.
    pub(super) medium: Medium,
}

/// What a transport can send a file from.
#[derive(Debug)]
pub(crate) enum Sendable<'a> {
    /// From a descriptor, by sendfile.
    Fd(BorrowedFd<'a>),
    /// From memory.
    Static(&'static [u8]),
    /// Not at all: it is a directory.
    Nothing,
}

impl OpenFile {
    pub(crate) fn new(content: Content, writable: bool) -> Self {
        OpenFile {
            content,
            writable,
            unpublished: Mutex::new(None),
            late_error: Mutex::new(None),
            queue: Arc::default(),
            medium: Medium::default(),
        }
    }

    /// What it can be sent from.
    pub(crate) fn sendable(&self) -> Sendable<'_> {
        match &self.content {
            Content::Fd(fd) => Sendable::Fd(fd.as_fd()),
            Content::Static(bytes) => Sendable::Static(bytes),
            Content::Dir(_) => Sendable::Nothing,
        }
    }

    /// Remembers a failed write for `Close`.
    pub(crate) fn record_error(&self, error: FileError) {
        lock(&self.late_error).get_or_insert(error);
    }
}

/// The open files by id.
#[derive(Clone, Debug)]
pub(crate) struct FileTable {
    files: Arc<Mutex<Slab<Arc<OpenFile>>>>,
}

fn key(id: FileId) -> Key {
    Key { index: id.index(), generation: id.generation() }
}

impl FileTable {
    /// A table of at most `max` open files.
    pub(crate) fn new(max: usize) -> Self {
        FileTable { files: Arc::new(Mutex::new(Slab::new(max))) }
    }

    /// Adds a file; gives it back when too many are open.
    pub(crate) fn insert(&self, file: Arc<OpenFile>) -> Result<FileId, Arc<OpenFile>> {
        lock(&self.files).insert(file).map(|key| FileId::new(key.index, key.generation))
    }

    /// The file `id`, if it is open.
    pub(crate) fn find(&self, id: FileId) -> Option<Arc<OpenFile>> {
        lock(&self.files).get(key(id)).cloned()
    }

    /// Takes the file out.
    pub(crate) fn remove(&self, id: FileId) -> Option<Arc<OpenFile>> {
        lock(&self.files).remove(key(id))
    }

    /// Open files.
    pub(crate) fn len(&self) -> usize {
        lock(&self.files).len()
    }

    /// Whether too many are open for another one.
    pub(crate) fn is_full(&self) -> bool {
        lock(&self.files).is_full()
    }
}

/// A piece of a file that a worker has brought into memory, or tried to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadAheadDone {
    /// Who asked, as it named itself.
    pub(crate) key: Key,
    /// The end of what is in memory now; errors show when the piece is sent.
    pub(crate) up_to: u64,
}

/// What a transport needs to send ranges of files: ids resolved to open files, and workers that read ahead, so that
/// sending never waits for a disk.
#[derive(Clone, Debug)]
pub struct FileAccess {
    pub(crate) table: FileTable,
    /// `None` where all files are in memory anyway.
    pub(crate) workers: Option<Arc<WorkQueue>>,
}

impl FileAccess {
    /// The open file `id`.
    pub(crate) fn find(&self, id: FileId) -> Option<Arc<OpenFile>> {
        self.table.find(id)
    }

    /// Lets a worker bring `len` bytes from `offset` on into memory, and tell `done`. At most one at a time for each
    /// `key`, which bounds the queue.
    pub(crate) fn read_ahead(
        &self,
        file: Arc<OpenFile>,
        offset: u64,
        len: u64,
        key: Key,
        done: &Arc<Mailbox<ReadAheadDone>>,
    ) {
        match &self.workers {
            Some(workers) => workers.push_read_ahead(super::worker::ReadAhead {
                file,
                offset,
                len,
                key,
                done: Arc::clone(done),
            }),
            None => done.push(ReadAheadDone { key, up_to: offset.saturating_add(len) }),
        }
    }

    /// Whether a worker would only take turns with the loops, as they can keep all processors busy, or there is none.
    pub(crate) fn is_crowded(&self) -> bool {
        self.workers.as_ref().is_none_or(|workers| workers.is_crowded())
    }

    /// Access to no file at all: every file id is unknown. For a transport whose servers send no files.
    pub fn none() -> Self {
        FileAccess { table: FileTable::new(0), workers: None }
    }
}
