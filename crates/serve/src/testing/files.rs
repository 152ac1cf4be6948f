//! The in-memory file system.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use linerate_transport::*;

#[derive(Clone)]
pub struct Node {
    pub kind: FileKind,
    pub data: Vec<u8>,
    pub modified_ns: i64,
    pub mode: u16,
    pub inode: u64,
}

struct Open {
    path: String,
    listed: usize,
}

/// Files by absolute path. Operations are carried out when their completion is polled, in order.
pub struct MemoryFiles {
    pub nodes: BTreeMap<String, Node>,
    open: BTreeMap<FileId, Open>,
    queue: VecDeque<(Owner, u64, FileOp)>,
    next: u32,
    /// While set, nothing finishes: a slow disk.
    pub hold: bool,
    /// While set, every change is refused.
    pub read_only: bool,
    /// Most operations under way.
    pub limit: usize,
    /// Files opened so far.
    pub opened: u64,
    /// When set, the next operations fail with it.
    pub fail: Option<FileError>,
}

impl MemoryFiles {
    pub fn new() -> Self {
        let mut files = MemoryFiles {
            nodes: BTreeMap::new(),
            open: BTreeMap::new(),
            queue: VecDeque::new(),
            next: 0,
            hold: false,
            read_only: false,
            limit: 64,
            opened: 0,
            fail: None,
        };
        files.add_dir("/");
        files
    }

    fn put(&mut self, path: &str, kind: FileKind, data: &[u8]) {
        self.next += 1;
        let inode = u64::from(self.next);
        // 2024-02-29T12:00:00Z
        let modified_ns = 1_709_208_000_000_000_000;
        let mode = if kind == FileKind::Directory { 0o755 } else { 0o644 };
        self.nodes.insert(path.to_string(), Node { kind, data: data.to_vec(), modified_ns, mode, inode });
    }

    pub fn add_dir(&mut self, path: &str) {
        self.put(path, FileKind::Directory, &[]);
    }

    pub fn add_file(&mut self, path: &str, data: &[u8]) {
        self.put(path, FileKind::File, data);
    }

    pub fn content(&self, path: &str) -> Option<&[u8]> {
        self.nodes.get(path).map(|node| node.data.as_slice())
    }

    /// Files that are open now.
    pub fn open_count(&self) -> usize {
        self.open.len()
    }

    /// The bytes of a queued range; `None` when the file is shorter or closed.
    pub fn range(&self, range: FileRange) -> Option<Vec<u8>> {
        let node = self.nodes.get(&self.open.get(&range.file)?.path)?;
        let start = usize::try_from(range.offset).ok()?;
        let end = start.checked_add(usize::try_from(range.len).ok()?)?;
        node.data.get(start..end).map(<[u8]>::to_vec)
    }

    fn meta(node: &Node) -> Metadata {
        Metadata {
            kind: node.kind,
            len: node.data.len() as u64,
            modified_ns: node.modified_ns,
            inode: node.inode,
            mode: node.mode,
        }
    }

    fn node(&mut self, path: &VirtualPath) -> Result<&mut Node, FileError> {
        self.nodes.get_mut(path.as_str()).ok_or(FileError::NotFound)
    }

    fn children(&self, path: &str) -> Vec<DirEntry> {
        let prefix = if path == "/" { String::from("/") } else { alloc::format!("{path}/") };
        let inside = |(name, node): (&String, &Node)| {
            let rest = name.strip_prefix(&prefix).filter(|r| !r.is_empty() && !r.contains('/'))?;
            Some(DirEntry { name: rest.to_string(), meta: Self::meta(node) })
        };
        self.nodes.iter().filter_map(inside).collect()
    }

    fn check_parent(&self, path: &VirtualPath) -> Result<(), FileError> {
        match self.nodes.get(path.parent().as_str()) {
            Some(node) if node.kind == FileKind::Directory => Ok(()),
            Some(_) => Err(FileError::NotADirectory),
            None => Err(FileError::NotFound),
        }
    }

    fn open(&mut self, path: &VirtualPath, mode: OpenMode) -> Result<FileReply, FileError> {
        if mode != OpenMode::Read {
            self.check_parent(path)?;
            let kind = self.nodes.get(path.as_str()).map(|node| node.kind);
            match (kind, mode) {
                (Some(FileKind::Directory), _) => return Err(FileError::IsADirectory),
                (Some(_), OpenMode::CreateNew) => return Err(FileError::Exists),
                (Some(_), OpenMode::Create) => self.node(path)?.data.clear(),
                (None, _) => self.put(path.as_str(), FileKind::File, &[]),
                _ => {}
            }
        }
        let meta = Self::meta(self.node(path)?);
        self.next += 1;
        let file = FileId::new(self.next, 0);
        self.opened += 1;
        self.open.insert(file, Open { path: path.as_str().to_string(), listed: 0 });
        Ok(FileReply::Opened { file, meta })
    }

    fn opened(&mut self, file: FileId) -> Result<&mut Node, FileError> {
        let path = &self.open.get(&file).ok_or(FileError::Stale)?.path;
        self.nodes.get_mut(path).ok_or(FileError::Stale)
    }

    fn on_open(&mut self, op: FileOp) -> Result<FileReply, FileError> {
        match op {
            FileOp::ReadDir { dir, limit } => {
                let open = self.open.get(&dir).ok_or(FileError::Stale)?;
                let (path, listed) = (open.path.clone(), open.listed);
                let entries: Vec<DirEntry> =
                    self.children(&path).into_iter().skip(listed).take(limit).collect();
                if let Some(open) = self.open.get_mut(&dir) {
                    open.listed += entries.len();
                }
                Ok(FileReply::Entries(entries))
            }
            FileOp::Read { file, offset, len } => {
                let data = &self.opened(file)?.data;
                let start = (offset as usize).min(data.len());
                let end = start.saturating_add(len).min(data.len());
                Ok(FileReply::Data(Shared::from(data[start..end].to_vec())))
            }
            FileOp::Write { file, offset, data } => {
                let node = self.opened(file)?;
                let end = offset as usize + data.len();
                if node.data.len() < end {
                    node.data.resize(end, 0);
                }
                node.data[offset as usize..end].copy_from_slice(&data);
                Ok(FileReply::Done)
            }
            FileOp::Truncate { file, len } => {
                self.opened(file)?.data.resize(len as usize, 0);
                Ok(FileReply::Done)
            }
            FileOp::Close { file } => {
                self.open.remove(&file).ok_or(FileError::Stale).map(|_| FileReply::Done)
            }
            other => self.on_path(other),
        }
    }

    fn on_path(&mut self, op: FileOp) -> Result<FileReply, FileError> {
        match op {
            FileOp::Open { path, mode } => return self.open(&path, mode),
            FileOp::Stat { path } => return Ok(FileReply::Meta(Self::meta(self.node(&path)?))),
            FileOp::Remove { path } => {
                if self.node(&path)?.kind == FileKind::Directory {
                    return Err(FileError::IsADirectory);
                }
                self.nodes.remove(path.as_str());
            }
            FileOp::RemoveDir { path } => {
                if self.node(&path)?.kind != FileKind::Directory {
                    return Err(FileError::NotADirectory);
                }
                if !self.children(path.as_str()).is_empty() {
                    return Err(FileError::NotEmpty);
                }
                self.nodes.remove(path.as_str());
            }
            FileOp::MakeDir { path } => {
                self.check_parent(&path)?;
                if self.node(&path).is_ok() {
                    return Err(FileError::Exists);
                }
                self.add_dir(path.as_str());
            }
            FileOp::Rename { from, to } => {
                self.check_parent(&to)?;
                let node = self.nodes.remove(from.as_str()).ok_or(FileError::NotFound)?;
                self.nodes.insert(to.as_str().to_string(), node);
            }
            FileOp::SetModified { path, modified_ns } => self.node(&path)?.modified_ns = modified_ns,
            FileOp::SetMode { path, mode } => self.node(&path)?.mode = mode,
            _ => return Err(FileError::Io),
        }
        Ok(FileReply::Done)
    }
}

fn changes(op: &FileOp) -> bool {
    match op {
        FileOp::Open { mode, .. } => *mode != OpenMode::Read,
        FileOp::Stat { .. } | FileOp::ReadDir { .. } | FileOp::Read { .. } | FileOp::Close { .. } => false,
        _ => true,
    }
}

impl Files for MemoryFiles {
    fn submit(&mut self, owner: Owner, tag: u64, op: FileOp) -> Result<(), FileOp> {
        if self.queue.len() >= self.limit {
            return Err(op);
        }
        self.queue.push_back((owner, tag, op));
        Ok(())
    }

    fn poll_done(&mut self) -> Option<FileDone> {
        if self.hold {
            return None;
        }
        let (owner, tag, op) = self.queue.pop_front()?;
        let close = matches!(op, FileOp::Close { .. });
        let result = match self.fail {
            Some(error) if !close => Err(error),
            _ if self.read_only && changes(&op) => Err(FileError::ReadOnly),
            _ => self.on_open(op),
        };
        Some(FileDone { owner, tag, result })
    }
}
