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
    /// The name that it gets when it is published, and whether it may replace what has it.
    unpublished: Option<(String, bool)>,
    writes: bool,
    failed: Option<FileError>,
}

/// Files by absolute path. Operations are carried out when their completion is polled, in order.
pub struct MemoryFiles {
    pub nodes: BTreeMap<String, Node>,
    open: BTreeMap<FileId, Open>,
    queue: VecDeque<(Owner, u64, FileOp)>,
    next: u32,
    /// While set, nothing finishes: a slow disk.
    pub hold: bool,
    /// While set, no file can be replaced: all are written in place.
    pub in_place: bool,
    /// While set, every change is refused.
    pub read_only: bool,
    /// Most operations under way.
    pub limit: usize,
    /// Files opened so far.
    pub opened: u64,
    /// Most files that may be open.
    pub descriptors: usize,
    /// Bytes that may still be written; the disk is full then.
    pub space: usize,
    /// While set, it is memory, which is written without waiting; counts the bytes.
    pub written_now: Option<usize>,
    /// When set, the next operations fail with it.
    pub fail: Option<FileError>,
    /// When set, metadata are to be had at once; counts how often they were.
    pub stats_now: Option<u64>,
    /// How often a file was said to be the same: only where `stats_now` is set.
    pub same_now: u64,
    /// Whether everything lies in memory and never changes.
    pub constant: bool,
    /// The media type that it knows of all files.
    pub media_type: Option<&'static str>,
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
            in_place: false,
            limit: 64,
            opened: 0,
            descriptors: usize::MAX,
            space: usize::MAX,
            written_now: None,
            fail: None,
            stats_now: None,
            same_now: 0,
            constant: false,
            media_type: None,
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

    /// Operations submitted and not finished.
    pub fn under_way(&self) -> usize {
        self.queue.len()
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
            changed_ns: node.modified_ns,
            inode: node.inode,
            mode: node.mode,
            rights: Rights::of_class(node.mode >> 6),
        }
    }

    fn node(&mut self, path: &VirtualPath) -> Result<&mut Node, FileError> {
        self.nodes.get_mut(path.as_str()).ok_or(FileError::NotFound)
    }

    fn children(&self, path: &str) -> Vec<DirEntry> {
        let prefix = if path == "/" { String::from("/") } else { alloc::format!("{path}/") };
        let inside = |(name, node): (&String, &Node)| {
            let rest = name.strip_prefix(&prefix).filter(|r| !r.is_empty() && !r.contains('/'))?;
            Some(DirEntry { name: rest.to_string(), meta: Self::meta(node), link: None })
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
        if self.open.len() >= self.descriptors {
            return Err(FileError::TooManyOpen);
        }
        if mode != OpenMode::Read {
            self.check_parent(path)?;
            let kind = self.nodes.get(path.as_str()).map(|node| node.kind);
            match (kind, mode) {
                (Some(FileKind::Directory), _) => return Err(FileError::IsADirectory),
                (Some(_), OpenMode::CreateNew) => return Err(FileError::Exists),
                (Some(_), OpenMode::Create) => self.node(path)?.data.clear(),
                (None, OpenMode::Replace | OpenMode::CreateNew) | (Some(_), OpenMode::Replace) => {
                    return self.open_aside(path, mode);
                }
                (None, OpenMode::Existing) => return Err(FileError::NotFound),
                (None, _) => self.put(path.as_str(), FileKind::File, &[]),
                _ => {}
            }
        }
        let meta = Self::meta(self.node(path)?);
        let writes = mode != OpenMode::Read;
        if writes && self.open.values().any(|open| open.writes && open.path == path.as_str()) {
            return Err(FileError::Busy);
        }
        Ok(self.add_open(path.as_str(), meta, writes, None))
    }

    fn open_aside(&mut self, path: &VirtualPath, mode: OpenMode) -> Result<FileReply, FileError> {
        if self.in_place {
            return self.open(path, OpenMode::Update);
        }
        // No name of a file begins so.
        let aside = alloc::format!("aside {}", self.next);
        self.put(&aside, FileKind::File, &[]);
        let meta = Self::meta(&self.nodes[&aside]);
        let name = (path.as_str().to_string(), mode == OpenMode::Replace);
        Ok(self.add_open(&aside, meta, true, Some(name)))
    }

    fn add_open(
        &mut self,
        path: &str,
        meta: Metadata,
        writes: bool,
        unpublished: Option<(String, bool)>,
    ) -> FileReply {
        self.next += 1;
        let file = FileId::new(self.next, 0);
        self.opened += 1;
        let open = Open { path: path.to_string(), listed: 0, unpublished, writes, failed: None };
        self.open.insert(file, open);
        FileReply::Opened { file, meta }
    }

    fn publish(&mut self, file: FileId, whole: bool) -> Result<(), FileError> {
        let open = self.open.get_mut(&file).ok_or(FileError::Stale)?;
        if let Some(error) = open.failed.filter(|_| whole) {
            return Err(error);
        }
        let Some((name, replaces)) = open.unpublished.take() else { return Ok(()) };
        let node = self.nodes.remove(&open.path).ok_or(FileError::Stale)?;
        if self.nodes.contains_key(&name) && !(whole && replaces) {
            return Err(FileError::Exists);
        }
        open.path.clone_from(&name);
        self.nodes.insert(name, node);
        Ok(())
    }

    pub(super) fn write(&mut self, file: FileId, offset: usize, mut data: Vec<u8>) -> Result<(), FileError> {
        if let Some(error) = self.open.get(&file).ok_or(FileError::Stale)?.failed {
            return Err(error);
        }
        let fits = data.len().min(self.space);
        let full = fits < data.len();
        data.truncate(fits);
        self.space -= fits;
        let node = self.opened(file)?;
        let end = offset + fits;
        if node.data.len() < end {
            node.data.resize(end, 0);
        }
        node.data[offset..end].copy_from_slice(&data);
        if full {
            self.fail_writes(file, FileError::NoSpace);
            return Err(FileError::NoSpace);
        }
        Ok(())
    }

    pub(super) fn fail_writes(&mut self, file: FileId, error: FileError) {
        if let Some(open) = self.open.get_mut(&file) {
            open.failed.get_or_insert(error);
        }
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
                Ok(FileReply::Data(Bytes::from(data[start..end].to_vec())))
            }
            FileOp::Write { file, offset, data } => {
                self.write(file, offset as usize, data).map(|()| FileReply::Done)
            }
            FileOp::WriteParcel { file, offset, parcel } => {
                let data = parcel.into_content::<Vec<u8>>().ok_or(FileError::Io)?;
                self.write(file, offset as usize, data).map(|()| FileReply::Done)
            }
            FileOp::Truncate { file, len } => {
                self.opened(file)?.data.resize(len as usize, 0);
                Ok(FileReply::Done)
            }
            FileOp::Compute { work } => Ok(FileReply::Data(Bytes::from(work.run()))),
            FileOp::Publish { file, whole } => self.publish(file, whole).map(|()| FileReply::Done),
            FileOp::Close { file } => {
                let open = self.open.remove(&file).ok_or(FileError::Stale)?;
                if open.unpublished.is_some() {
                    self.nodes.remove(&open.path);
                }
                open.failed.map_or(Ok(FileReply::Done), Err)
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
        FileOp::Compute { .. }
        | FileOp::Stat { .. }
        | FileOp::ReadDir { .. }
        | FileOp::Read { .. }
        | FileOp::Close { .. } => false,
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
        // What needs no space works on a full disk, too.
        let keeps = self.fail == Some(FileError::NoSpace)
            && matches!(op, FileOp::Truncate { .. } | FileOp::Publish { .. });
        let result = match self.fail {
            Some(error) if !close && !keeps => {
                if let FileOp::Write { file, .. } | FileOp::WriteParcel { file, .. } = op {
                    self.fail_writes(file, error);
                }
                Err(error)
            }
            _ if self.read_only && changes(&op) => Err(FileError::ReadOnly),
            _ => self.on_open(op),
        };
        Some(FileDone { owner, tag, result })
    }

    fn takes_parcels(&self) -> bool {
        true
    }

    fn stat_now(&mut self, path: &VirtualPath) -> Option<Result<Metadata, FileError>> {
        *self.stats_now.as_mut()? += 1;
        if let Some(error) = self.fail {
            return Some(Err(error));
        }
        Some(self.nodes.get(path.as_str()).map(Self::meta).ok_or(FileError::NotFound))
    }

    fn is_same_now(&mut self, path: &VirtualPath, known: &Metadata) -> bool {
        let same = self.stats_now.is_some()
            && self.fail.is_none()
            && self.nodes.get(path.as_str()).is_some_and(|node| Self::meta(node).is_same_file(known));
        self.same_now += u64::from(same);
        same
    }

    fn write_now(&mut self, file: FileId, offset: u64, data: &[u8]) -> usize {
        let Some(before) = self.written_now.filter(|_| self.queue.is_empty() && self.fail.is_none()) else {
            return 0;
        };
        let fits = data.len().min(self.space);
        if fits == 0 || self.write(file, offset as usize, data[..fits].to_vec()).is_err() {
            return 0;
        }
        self.written_now = Some(before + fits);
        fits
    }

    fn media_type(&self, _path: &VirtualPath) -> Option<&'static str> {
        self.media_type
    }

    fn constant(&self, path: &VirtualPath) -> Option<(Metadata, Bytes)> {
        let node = self.nodes.get(path.as_str()).filter(|_| self.constant)?;
        let bytes = || Bytes::from(node.data.clone());
        (node.kind == FileKind::File).then(|| (Self::meta(node), bytes()))
    }
}
