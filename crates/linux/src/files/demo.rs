//! A read-only tree of files that are built into the program.

use super::READ_DIR_MAX;
use super::table::{Content, DirPosition, FileAccess, FileTable, OpenDir, OpenFile};
use crate::mailbox::{Mailbox, lock};
use linerate_transport::{
    Bytes, DirEntry, FileDone, FileError, FileId, FileKind, FileOp, FileReply, Files, Metadata, OpenMode,
    Owner, Rights, VirtualPath,
};
use rustix::fd::{AsFd, BorrowedFd};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

/// One built-in file.
#[derive(Clone, Copy, Debug)]
pub struct DemoFile {
    /// Its path under the root, as `docs/index.html`; the directories on the way exist by that.
    pub path: &'static str,
    /// Its content.
    pub bytes: &'static [u8],
    /// Its modification time in ns since 1970-01-01 UTC.
    pub modified_ns: i64,
}

/// All files and directories by path.
pub(super) type Tree = BTreeMap<String, Node>;

#[derive(Clone, Debug)]
pub(super) struct Node {
    meta: Metadata,
    bytes: &'static [u8],
    /// Names and metadata of what lies in a directory.
    children: Vec<DirEntry>,
}

/// Most operations whose answer is not polled yet.
const QUEUE_MAX: usize = 1024;
/// Most open files.
const OPEN_MAX: usize = 4096;

/// A file service over a read-only tree in memory: every operation ends at once, every change is refused with
/// [`FileError::ReadOnly`].
#[derive(Debug)]
pub struct DemoFiles {
    nodes: Arc<Tree>,
    table: FileTable,
    /// An eventfd lets the loop treat this service as it treats the one with threads.
    done: Mailbox<FileDone>,
    finished: VecDeque<FileDone>,
    under_way: usize,
}

impl DemoFiles {
    /// A tree of `files`. Entries whose path is none under the root are left out; of two with one path the later
    /// stays.
    ///
    /// # Errors
    /// The system's, when it has no file descriptor left.
    pub fn new(files: &[DemoFile]) -> std::io::Result<DemoFiles> {
        let mut nodes = BTreeMap::new();
        let newest = files.iter().map(|file| file.modified_ns).max().unwrap_or(0);
        nodes.insert(String::from("/"), directory(newest, 1));
        for file in files {
            let Ok(path) = VirtualPath::parse(file.path) else { continue };
            if path.is_root() {
                continue;
            }
            let meta = Metadata {
                kind: FileKind::File,
                len: file.bytes.len() as u64,
                modified_ns: file.modified_ns,
                changed_ns: file.modified_ns,
                inode: nodes.len() as u64 + 1,
                mode: 0o444,
                rights: Rights::of_class(0o4),
            };
            nodes.insert(path.as_str().to_owned(), Node { meta, bytes: file.bytes, children: Vec::new() });
            let mut parent = path.parent();
            while !nodes.contains_key(parent.as_str()) {
                let inode = nodes.len() as u64 + 1;
                nodes.insert(parent.as_str().to_owned(), directory(newest, inode));
                parent = parent.parent();
            }
        }
        let all: Vec<(String, Metadata)> =
            nodes.iter().map(|(path, node)| (path.clone(), node.meta)).collect();
        for (path, meta) in all {
            let Ok(path) = VirtualPath::parse(&path) else { continue };
            if !path.is_root()
                && let Some(parent) = nodes.get_mut(path.parent().as_str())
            {
                parent.children.push(DirEntry { name: path.name().to_owned(), meta, link: None });
            }
        }
        DemoFiles::over(Arc::new(nodes))
    }

    pub(super) fn over(nodes: Arc<Tree>) -> std::io::Result<DemoFiles> {
        Ok(DemoFiles {
            nodes,
            table: FileTable::new(OPEN_MAX),
            done: Mailbox::new()?,
            finished: VecDeque::new(),
            under_way: 0,
        })
    }

    pub(super) fn tree(&self) -> Arc<Tree> {
        Arc::clone(&self.nodes)
    }

    /// What a transport needs to send these files.
    pub fn access(&self) -> FileAccess {
        FileAccess { table: self.table.clone(), workers: None }
    }

    fn node(&self, path: &VirtualPath) -> Result<&Node, FileError> {
        if let Some(node) = self.nodes.get(path.as_str()) {
            return Ok(node);
        }
        let mut parent = path.parent();
        while !parent.is_root() {
            if let Some(node) = self.nodes.get(parent.as_str()) {
                let file = node.meta.kind == FileKind::File;
                return Err(if file { FileError::NotADirectory } else { FileError::NotFound });
            }
            parent = parent.parent();
        }
        Err(FileError::NotFound)
    }

    fn open(&mut self, path: VirtualPath, mode: OpenMode) -> Result<FileReply, FileError> {
        if mode != OpenMode::Read {
            return Err(FileError::ReadOnly);
        }
        let node = self.node(&path)?;
        let meta = node.meta;
        let content = match meta.kind {
            FileKind::Directory => {
                Content::Dir(OpenDir { path, position: Mutex::new(DirPosition::Entry(0)) })
            }
            FileKind::File | FileKind::Other => Content::Static(node.bytes),
        };
        if self.table.is_full() {
            return Err(FileError::TooManyOpen);
        }
        let file = self.table.insert(Arc::new(OpenFile::new(content, false)));
        file.map(|file| FileReply::Opened { file, meta }).map_err(|_| FileError::TooManyOpen)
    }

    fn read_dir(&self, id: FileId, limit: usize) -> Result<FileReply, FileError> {
        let file = self.table.find(id).ok_or(FileError::Stale)?;
        let Content::Dir(dir) = &file.content else { return Err(FileError::NotADirectory) };
        let children = &self.node(&dir.path)?.children;
        let mut position = lock(&dir.position);
        let DirPosition::Entry(at) = &mut *position else { return Err(FileError::Stale) };
        let limit = limit.clamp(1, READ_DIR_MAX);
        let entries: Vec<DirEntry> = children.iter().skip(*at).take(limit).cloned().collect();
        *at += entries.len();
        Ok(FileReply::Entries(entries))
    }

    fn read(&self, id: FileId, offset: u64, len: usize) -> Result<FileReply, FileError> {
        let file = self.table.find(id).ok_or(FileError::Stale)?;
        let Content::Static(bytes) = file.content else { return Err(FileError::IsADirectory) };
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let end = start.saturating_add(len).min(bytes.len());
        Ok(FileReply::Data(Bytes::from_static(&bytes[start..end])))
    }

    fn perform(&mut self, op: FileOp) -> Result<FileReply, FileError> {
        match op {
            FileOp::Open { path, mode } => self.open(path, mode),
            FileOp::Stat { path } => self.node(&path).map(|node| FileReply::Meta(node.meta)),
            FileOp::ReadDir { dir, limit } => self.read_dir(dir, limit),
            FileOp::Read { file, offset, len } => self.read(file, offset, len),
            FileOp::Close { file } => match self.table.remove(file) {
                Some(_) => Ok(FileReply::Done),
                None => Err(FileError::Stale),
            },
            FileOp::Compute { work } => Ok(FileReply::Data(Bytes::from(work.run()))),
            FileOp::Write { .. }
            | FileOp::WriteParcel { .. }
            | FileOp::Truncate { .. }
            | FileOp::Publish { .. }
            | FileOp::Remove { .. }
            | FileOp::RemoveDir { .. }
            | FileOp::MakeDir { .. }
            | FileOp::Rename { .. }
            | FileOp::SetModified { .. }
            | FileOp::SetMode { .. } => Err(FileError::ReadOnly),
        }
    }
}

fn directory(modified_ns: i64, inode: u64) -> Node {
    let meta = Metadata {
        kind: FileKind::Directory,
        len: 0,
        modified_ns,
        changed_ns: modified_ns,
        inode,
        mode: 0o555,
        rights: Rights::of_class(0o5),
    };
    Node { meta, bytes: &[], children: Vec::new() }
}

impl Files for DemoFiles {
    fn submit(&mut self, owner: Owner, tag: u64, op: FileOp) -> Result<(), FileOp> {
        if self.under_way >= QUEUE_MAX {
            return Err(op);
        }
        self.under_way += 1;
        let result = self.perform(op);
        self.done.push(FileDone { owner, tag, result });
        Ok(())
    }

    fn poll_done(&mut self) -> Option<FileDone> {
        if self.finished.is_empty() {
            self.done.drain_into(&mut self.finished);
        }
        let done = self.finished.pop_front()?;
        self.under_way -= 1;
        Some(done)
    }

    fn stat_now(&mut self, path: &VirtualPath) -> Option<Result<Metadata, FileError>> {
        Some(self.node(path).map(|node| node.meta))
    }

    fn constant(&self, path: &VirtualPath) -> Option<(Metadata, Bytes)> {
        let node = self.nodes.get(path.as_str()).filter(|node| node.meta.kind == FileKind::File)?;
        Some((node.meta, Bytes::from_static(node.bytes)))
    }
}

impl AsFd for DemoFiles {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.done.as_fd()
    }
}
