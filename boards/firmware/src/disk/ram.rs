//! The RAM disk: files in blocks, with a bound on all of them together.

use super::RAM;
use super::names::{Names, below};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use linerate_transport::{Bytes, FileError, FileKind, Metadata, OpenMode, Rights, VirtualPath};

/// Bytes of a block.
pub(super) const BLOCK: usize = 1_024;
/// Files and directories at once.
const MOST_NAMES: usize = 64;

/// Names a file, whatever its path is by now.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct NodeId(u32);

struct Node {
    kind: FileKind,
    /// By their numbers.
    blocks: Vec<u32>,
    len: u64,
    modified_ns: i64,
    mode: u16,
    /// How many have it open; one without a name goes with the last of them.
    users: usize,
    has_writer: bool,
    /// The name that it gets when it is published, and whether it may take it from another file.
    unpublished: Option<(String, bool)>,
    /// What a write failed with: those that follow fail likewise.
    failed: Option<FileError>,
}

/// The memory of the disk, taken once: a heap of many small pieces is slow, and may have given it to somebody else by then.
struct Blocks {
    memory: Box<[u8]>,
    free: Vec<u32>,
}

impl Blocks {
    fn new(count: usize) -> Self {
        // Numbers of 32 bits are enough: 2^32 blocks are 4 TiB. The first is taken first.
        let free = (0..u32::try_from(count).unwrap_or(u32::MAX)).rev().collect();
        Blocks { memory: alloc::vec![0; count * BLOCK].into_boxed_slice(), free }
    }

    fn count(&self) -> usize {
        self.memory.len() / BLOCK
    }

    /// A block of zeros.
    fn take(&mut self) -> Option<u32> {
        let block = self.free.pop()?;
        self.bytes_mut(block).fill(0);
        Some(block)
    }

    fn give_back(&mut self, blocks: impl IntoIterator<Item = u32>) {
        self.free.extend(blocks);
    }

    fn bytes(&self, block: u32) -> &[u8] {
        &self.memory[block as usize * BLOCK..][..BLOCK]
    }

    fn bytes_mut(&mut self, block: u32) -> &mut [u8] {
        &mut self.memory[block as usize * BLOCK..][..BLOCK]
    }
}

pub(crate) struct RamDisk {
    /// Without the leading slash; the root is the empty name.
    names: BTreeMap<String, NodeId>,
    nodes: BTreeMap<NodeId, Node>,
    next: u32,
    blocks: Blocks,
    now_ns: i64,
}

/// The path below the RAM disk, empty for the RAM disk itself; `None` for what lies elsewhere.
pub(super) fn inside(path: &str) -> Option<&str> {
    if path == RAM { Some("") } else { below(RAM, path) }
}

/// The same for what is to be changed.
pub(super) fn within(path: &VirtualPath) -> Result<&str, FileError> {
    inside(path.as_str()).ok_or(FileError::ReadOnly)
}

impl RamDisk {
    pub(crate) fn new(bytes: usize, now_ns: i64) -> Self {
        let blocks = Blocks::new(bytes / BLOCK);
        let (names, nodes) = (BTreeMap::new(), BTreeMap::new());
        let mut disk = RamDisk { names, nodes, next: 0, blocks, now_ns };
        let root = disk.add(FileKind::Directory);
        disk.names.insert(String::new(), root);
        disk
    }

    pub(super) fn set_now(&mut self, now_ns: i64) {
        self.now_ns = now_ns;
    }

    pub(super) fn usage(&self) -> (usize, usize) {
        ((self.blocks.count() - self.blocks.free.len()) * BLOCK, self.blocks.count() * BLOCK)
    }

    fn add(&mut self, kind: FileKind) -> NodeId {
        self.next = self.next.wrapping_add(1);
        let id = NodeId(self.next);
        let mode = if kind == FileKind::Directory { 0o755 } else { 0o644 };
        let node = Node {
            kind,
            blocks: Vec::new(),
            len: 0,
            modified_ns: self.now_ns,
            mode,
            users: 0,
            has_writer: false,
            unpublished: None,
            failed: None,
        };
        self.nodes.insert(id, node);
        id
    }

    fn id(&self, name: &str) -> Result<NodeId, FileError> {
        self.names.get(name).copied().ok_or(FileError::NotFound)
    }

    fn node(&mut self, id: NodeId) -> Result<&mut Node, FileError> {
        self.nodes.get_mut(&id).ok_or(FileError::Stale)
    }

    fn meta_of(&self, id: NodeId) -> Result<Metadata, FileError> {
        let node = self.nodes.get(&id).ok_or(FileError::Stale)?;
        let (kind, len) = (node.kind, node.len);
        Ok(Metadata {
            kind,
            len,
            modified_ns: node.modified_ns,
            changed_ns: node.modified_ns,
            inode: id.0.into(),
            mode: node.mode,
            rights: Rights::ALL,
        })
    }

    pub(super) fn meta(&self, name: &str) -> Result<Metadata, FileError> {
        self.id(name).and_then(|id| self.meta_of(id))
    }

    /// Whether something new may get this name.
    fn check_parent(&self, name: &str) -> Result<(), FileError> {
        let parent = name.rsplit_once('/').map_or("", |(parent, _)| parent);
        match self.meta(parent)?.kind {
            FileKind::Directory if self.nodes.len() < MOST_NAMES => Ok(()),
            FileKind::Directory => Err(FileError::NoSpace),
            _ => Err(FileError::NotADirectory),
        }
    }

    pub(super) fn open_for_reading(&mut self, name: &str) -> Result<NodeId, FileError> {
        let id = self.id(name)?;
        self.node(id)?.users += 1;
        Ok(id)
    }

    pub(super) fn open_for_writing(
        &mut self,
        name: &str,
        mode: OpenMode,
    ) -> Result<(NodeId, Metadata), FileError> {
        let known = self.id(name).ok();
        if let Some(id) = known {
            let node = self.node(id)?;
            if node.kind == FileKind::Directory {
                return Err(FileError::IsADirectory);
            }
            if mode == OpenMode::CreateNew {
                return Err(FileError::Exists);
            }
            if node.has_writer && mode != OpenMode::Replace {
                return Err(FileError::Busy);
            }
        }
        let id = match (known, mode) {
            (Some(id), OpenMode::Create | OpenMode::Update | OpenMode::Existing) => id,
            (None, OpenMode::Existing) => return Err(FileError::NotFound),
            (None, OpenMode::Create | OpenMode::Update) => {
                self.check_parent(name)?;
                let id = self.add(FileKind::File);
                self.names.insert(name.into(), id);
                id
            }
            _ => {
                self.check_parent(name)?;
                let id = self.add(FileKind::File);
                self.node(id)?.unpublished = Some((name.into(), mode == OpenMode::Replace));
                id
            }
        };
        if mode == OpenMode::Create {
            self.truncate(id, 0)?;
        }
        let node = self.node(id)?;
        node.users += 1;
        node.has_writer = true;
        node.failed = None;
        Ok((id, self.meta_of(id)?))
    }

    pub(super) fn read(&self, id: NodeId, offset: u64, len: usize) -> Result<Bytes, FileError> {
        let node = self.nodes.get(&id).ok_or(FileError::Stale)?;
        if node.kind == FileKind::Directory {
            return Err(FileError::IsADirectory);
        }
        let from = offset.min(node.len) as usize;
        let to = from.saturating_add(len).min(node.len as usize);
        let mut bytes = Vec::with_capacity(to - from);
        let mut at = from;
        while at < to {
            let start = at % BLOCK;
            let end = (start + to - at).min(BLOCK);
            bytes.extend_from_slice(&self.blocks.bytes(node.blocks[at / BLOCK])[start..end]);
            at += end - start;
        }
        Ok(Bytes::from(bytes))
    }

    pub(super) fn write(&mut self, id: NodeId, offset: u64, data: &[u8]) -> Result<(), FileError> {
        if let Some(error) = self.node(id)?.failed {
            return Err(error);
        }
        if data.is_empty() {
            // Nothing is written, and so nothing lies between the end and it.
            return Ok(());
        }
        let written = self.write_what_fits(id, offset, data);
        if let Err(error) = written {
            self.node(id)?.failed = Some(error);
        }
        written
    }

    fn write_what_fits(&mut self, id: NodeId, offset: u64, data: &[u8]) -> Result<(), FileError> {
        let start = usize::try_from(offset).map_err(|_| FileError::NoSpace)?;
        let end = start.checked_add(data.len()).ok_or(FileError::NoSpace)?;
        if start >= self.most(id)? {
            // Not a byte fits: a gap before it would be all that the write leaves.
            return Err(FileError::NoSpace);
        }
        let room = self.grow(id, end)?;
        let node = self.nodes.get_mut(&id).ok_or(FileError::Stale)?;
        let (mut at, mut rest) = (start, &data[..data.len().min(room.saturating_sub(start))]);
        let is_whole = rest.len() == data.len();
        node.modified_ns = self.now_ns;
        while !rest.is_empty() {
            let from = at % BLOCK;
            let (piece, tail) = rest.split_at(rest.len().min(BLOCK - from));
            let block = self.blocks.bytes_mut(node.blocks[at / BLOCK]);
            block[from..from + piece.len()].copy_from_slice(piece);
            at += piece.len();
            rest = tail;
        }
        node.len = node.len.max(at as u64);
        if is_whole { Ok(()) } else { Err(FileError::NoSpace) }
    }

    /// How long a file can become, in bytes: with its blocks and all that are free.
    fn most(&mut self, id: NodeId) -> Result<usize, FileError> {
        let free = self.blocks.free.len();
        Ok((self.node(id)?.blocks.len() + free) * BLOCK)
    }

    /// Gives a file blocks for so many bytes, as far as there are any; returns for how many it has them.
    fn grow(&mut self, id: NodeId, bytes: usize) -> Result<usize, FileError> {
        let node = self.nodes.get_mut(&id).ok_or(FileError::Stale)?;
        while node.blocks.len() * BLOCK < bytes
            && let Some(block) = self.blocks.take()
        {
            node.blocks.push(block);
        }
        Ok(node.blocks.len() * BLOCK)
    }

    pub(super) fn truncate(&mut self, id: NodeId, len: u64) -> Result<(), FileError> {
        let bytes = usize::try_from(len).map_err(|_| FileError::NoSpace)?;
        if bytes > self.most(id)? {
            return Err(FileError::NoSpace);
        }
        self.grow(id, bytes)?;
        let node = self.nodes.get_mut(&id).ok_or(FileError::Stale)?;
        self.blocks.give_back(node.blocks.drain(bytes.div_ceil(BLOCK)..));
        // What lies behind the end reads as zero when the file grows again.
        if let Some(last) = node.blocks.last().filter(|_| !bytes.is_multiple_of(BLOCK)) {
            self.blocks.bytes_mut(*last)[bytes % BLOCK..].fill(0);
        }
        node.len = len;
        node.modified_ns = self.now_ns;
        Ok(())
    }

    pub(super) fn publish(&mut self, id: NodeId, whole: bool) -> Result<(), FileError> {
        let node = self.node(id)?;
        if let Some(error) = node.failed.filter(|_| whole) {
            return Err(error);
        }
        let Some((name, replaces)) = node.unpublished.take() else { return Ok(()) };
        if self.names.contains_key(&name) {
            if !(whole && replaces) {
                return Err(FileError::Exists);
            }
            self.unname(&name);
        }
        self.names.insert(name, id);
        Ok(())
    }

    /// Ends one use of a file; the writer hears of the write that failed.
    pub(super) fn close(&mut self, id: NodeId, writes: bool) -> Result<(), FileError> {
        let is_named = self.names.values().any(|named| *named == id);
        let node = self.node(id)?;
        node.users = node.users.saturating_sub(1);
        let mut failed = None;
        if writes {
            node.has_writer = false;
            failed = node.failed.take();
        }
        if node.users == 0 && !is_named {
            self.free(id);
        }
        failed.map_or(Ok(()), Err)
    }

    /// Takes a name away; the file stays for those who have it open.
    fn unname(&mut self, name: &str) {
        let Some(id) = self.names.remove(name) else { return };
        if self.nodes.get(&id).is_some_and(|node| node.users == 0) {
            self.free(id);
        }
    }

    fn free(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.remove(&id) {
            self.blocks.give_back(node.blocks);
        }
    }

    pub(super) fn remove(&mut self, name: &str, kind: FileKind) -> Result<(), FileError> {
        match (self.meta(name)?.kind, kind) {
            (FileKind::Directory, FileKind::File) => return Err(FileError::IsADirectory),
            (FileKind::Directory, _) if name.is_empty() => return Err(FileError::Permission),
            (FileKind::Directory, _) if self.names.keys().any(|other| below(name, other).is_some()) => {
                return Err(FileError::NotEmpty);
            }
            (FileKind::File, FileKind::Directory) => return Err(FileError::NotADirectory),
            _ => {}
        }
        self.unname(name);
        Ok(())
    }

    pub(super) fn make_directory(&mut self, name: &str) -> Result<(), FileError> {
        if self.names.contains_key(name) {
            return Err(FileError::Exists);
        }
        self.check_parent(name)?;
        let id = self.add(FileKind::Directory);
        self.names.insert(name.into(), id);
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> Result<(), FileError> {
        let kind = self.meta(from)?.kind;
        if from.is_empty() || below(from, to).is_some() {
            return Err(FileError::Permission);
        }
        if from == to {
            return Ok(());
        }
        let parent = to.rsplit_once('/').map_or("", |(parent, _)| parent);
        if self.meta(parent)?.kind != FileKind::Directory {
            return Err(FileError::NotADirectory);
        }
        if self.names.contains_key(to) {
            self.remove(to, kind)?;
        }
        let moved: Vec<String> =
            self.names.keys().filter(|name| below(from, name).is_some()).cloned().collect();
        for name in moved {
            if let Some(id) = self.names.remove(&name) {
                self.names.insert(alloc::format!("{to}{}", &name[from.len()..]), id);
            }
        }
        if let Some(id) = self.names.remove(from) {
            self.names.insert(to.into(), id);
        }
        Ok(())
    }

    pub(super) fn set_modified(&mut self, name: &str, modified_ns: i64) -> Result<(), FileError> {
        let id = self.id(name)?;
        self.node(id)?.modified_ns = modified_ns;
        Ok(())
    }

    pub(super) fn set_mode(&mut self, name: &str, mode: u16) -> Result<(), FileError> {
        let id = self.id(name)?;
        self.node(id)?.mode = mode & 0o777;
        Ok(())
    }

    pub(super) fn names(&self, name: &str) -> Names {
        let mut names = Names::default();
        for (other, id) in &self.names {
            let Some(rest) = (if name.is_empty() { Some(other.as_str()) } else { below(name, other) }) else {
                continue;
            };
            if let (false, Ok(meta)) = (rest.is_empty() || rest.contains('/'), self.meta_of(*id)) {
                names.add(rest, meta);
            }
        }
        names
    }
}
