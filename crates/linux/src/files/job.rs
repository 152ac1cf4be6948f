//! File operations on their way through the workers.

use super::pages::Page;
use super::table::OpenFile;
use crate::mailbox::Mailbox;
use linerate_transport::{FileError, FileOp, FileReply, Metadata, Owner, Parcel};
use std::collections::VecDeque;
use std::sync::Arc;

/// An accepted operation.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) owner: Owner,
    pub(crate) tag: u64,
    pub(crate) work: Work,
    /// Where the result goes.
    pub(crate) done: Arc<Mailbox<Finished>>,
}

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Work {
    /// An operation on a path.
    Path(FileOp),
    /// An operation on an open file.
    File(Arc<OpenFile>, FileWork),
}

impl Work {
    /// Whether it keeps what somebody has sent: a part of an upload, or its end.
    pub(crate) fn keeps(&self) -> bool {
        match self {
            Work::Path(_) => false,
            Work::File(file, work) => {
                file.writable && !matches!(work, FileWork::Read { .. } | FileWork::ReadDir { .. })
            }
        }
    }
}

/// An operation on an open file, its id resolved.
#[derive(Debug)]
pub(crate) enum FileWork {
    ReadDir {
        limit: usize,
    },
    /// `begun`: what was there at once, and how many bytes.
    Read {
        offset: u64,
        len: usize,
        begun: Option<(Page, usize)>,
    },
    Write {
        offset: u64,
        data: Vec<u8>,
    },
    WriteParcel {
        offset: u64,
        parcel: Parcel,
    },
    Truncate {
        len: u64,
    },
    Publish {
        whole: bool,
    },
    Close,
}

/// The operations of one file: one under way, the others waiting in order.
#[derive(Debug, Default)]
pub(crate) struct FileQueue {
    pub(crate) busy: bool,
    pub(crate) waiting: VecDeque<Job>,
}

/// What a job came to.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// An open file, which gets its id in the loop.
    Opened(Arc<OpenFile>, Metadata),
    /// Anything else.
    Reply(FileReply),
}

/// A finished job.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) owner: Owner,
    pub(crate) tag: u64,
    pub(crate) was_open: bool,
    pub(crate) result: Result<Outcome, FileError>,
}
