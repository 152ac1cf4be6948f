//! The files of a machine without a disk: a folder in flash, a RAM disk, and files that are written when they are read.
//!
//! | path | what it is |
//! |---|---|
//! | `/...` | the folder that was built into the image; only to read, never copied |
//! | `/ram/...` | a RAM disk of blocks with a bound, empty at start |
//! | [`LIVE`] | what the machine knows of itself at that moment |
//! | [`TRACE`], [`CAPTURE`] | what instruments have kept; to open one of them ends it, so that it stays as it is |
//!
//! Every operation ends at once; it waits in a queue only so that its answer comes as [`Files`] demands it.

mod kept;
mod names;
mod ram;
#[cfg(test)]
mod tests;

use crate::capture::Capture;
use crate::held::Held;
use crate::trace::Tracer;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
pub use kept::{CAPTURE, TRACE};
use kept::{Instruments, Kept};
use linerate_transport::{
    Bytes, FileDone, FileError, FileId, FileKind, FileOp, FileReply, Files, Metadata, OpenMode, Owner,
    Rights, VirtualPath,
};
use names::Names;
use ram::NodeId;
pub(crate) use ram::RamDisk;

/// A file that is made anew each time somebody opens it.
pub const LIVE: &str = "/stats";
/// Where the RAM disk is.
pub const RAM: &str = "/ram";
/// Operations under way at once.
const OPERATIONS: usize = 32;
/// Open files at once.
const OPEN: usize = 64;

/// A file in flash.
#[derive(Clone, Copy, Debug)]
pub struct FlashFile {
    /// Its path, as `/index.html`.
    pub path: &'static str,
    /// What is in it.
    pub bytes: &'static [u8],
}

/// What an open file is.
enum Open {
    Flash(&'static [u8]),
    Live(Bytes),
    /// What an instrument has kept.
    Kept(Kept),
    /// A file of the RAM disk, and whether it was opened for writing.
    Ram(NodeId, bool),
    /// A directory with the names that were not told yet.
    Directory(Names),
}

/// The file system.
pub struct Disk {
    flash: &'static [FlashFile],
    /// When the image was built, in ns since 1970: the time of the files in it.
    built_ns: i64,
    ram: Held<RamDisk>,
    queue: VecDeque<(Owner, u64, FileOp)>,
    open: Vec<Option<Open>>,
    /// How often the place of an open file was taken: an id that is used again is a new one.
    generation: u32,
    ids: Vec<FileId>,
    live: Option<(Live, Bytes)>,
    /// How often the live file was made.
    lives: u64,
    instruments: Option<Instruments>,
}

/// What the machine writes for a file that is made when it is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Live {
    /// All of [`LIVE`].
    Stats,
    /// The beginning of [`TRACE`].
    Trace,
}

impl Disk {
    /// A disk with these files in flash and so many bytes of RAM disk.
    pub fn new(flash: &'static [FlashFile], built_ns: i64, ram: usize) -> Self {
        Disk::over(flash, built_ns, Held::own(RamDisk::new(ram, built_ns)))
    }

    /// A disk with these files in flash and a RAM disk that others may use too.
    pub(crate) fn over(flash: &'static [FlashFile], built_ns: i64, ram: Held<RamDisk>) -> Self {
        Disk {
            flash,
            built_ns,
            ram,
            queue: VecDeque::with_capacity(OPERATIONS),
            open: Vec::with_capacity(OPEN),
            generation: 0,
            ids: Vec::with_capacity(OPEN),
            live: None,
            lives: 0,
            instruments: None,
        }
    }

    /// Adds the files of the instruments, those that there is memory for.
    pub(crate) fn set_instruments(&mut self, tracer: &'static dyn Tracer, capture: Held<Capture>) {
        self.instruments = Some(Instruments::new(tracer, capture));
    }

    /// What the next operation waits for until [`Disk::supply`].
    pub fn wants_live(&self) -> Option<Live> {
        let (FileOp::Open { path, mode: OpenMode::Read } | FileOp::Stat { path }) = &self.queue.front()?.2
        else {
            return None;
        };
        let has_trace = || self.instruments.as_ref().is_some_and(Instruments::has_trace);
        let wanted = match path.as_str() {
            LIVE => Live::Stats,
            TRACE if has_trace() => Live::Trace,
            _ => return None,
        };
        self.live.as_ref().is_none_or(|(live, _)| *live != wanted).then_some(wanted)
    }

    /// Whether operations wait for their answer.
    pub fn has_work(&self) -> bool {
        !self.queue.is_empty()
    }

    /// What the operation waits for.
    pub fn supply(&mut self, live: Live, text: String) {
        self.lives += 1;
        self.live = Some((live, Bytes::from(text)));
    }

    /// Bytes of the RAM disk in use, and all of it.
    pub fn ram_usage(&self) -> (usize, usize) {
        self.ram.with(|ram| ram.usage())
    }

    /// Sets the time that files written from now on get, in ns since 1970.
    pub fn set_wall(&mut self, wall_ns: i64) {
        self.ram.with(|ram| ram.set_now(wall_ns));
    }

    /// The place that the next open file gets.
    fn vacant(&self) -> Result<usize, FileError> {
        let place = self.open.iter().position(Option::is_none).unwrap_or(self.open.len());
        if place < OPEN { Ok(place) } else { Err(FileError::TooManyOpen) }
    }

    fn add(&mut self, place: usize, open: Open) -> FileId {
        if place == self.open.len() {
            self.open.push(None);
            self.ids.push(FileId::new(0, 0));
        }
        self.generation = self.generation.wrapping_add(1);
        self.open[place] = Some(open);
        self.ids[place] = FileId::new(place as u32, self.generation);
        self.ids[place]
    }

    fn at(&mut self, file: FileId) -> Result<&mut Open, FileError> {
        let place = self.ids.iter().position(|id| *id == file).ok_or(FileError::Stale)?;
        self.open.get_mut(place).and_then(Option::as_mut).ok_or(FileError::Stale)
    }

    /// The RAM disk's file behind an id that was opened for writing.
    fn ram_at(&mut self, file: FileId) -> Result<NodeId, FileError> {
        match self.at(file)? {
            Open::Ram(node, true) => Ok(*node),
            _ => Err(FileError::ReadOnly),
        }
    }

    fn flash_file(&self, path: &str) -> Option<&'static FlashFile> {
        self.flash.iter().find(|file| file.path == path)
    }

    fn meta(&mut self, path: &VirtualPath) -> Result<Metadata, FileError> {
        let text = path.as_str();
        if let Some(rest) = ram::inside(text) {
            return self.ram.with(|ram| ram.meta(rest));
        }
        if text == LIVE {
            let len = self.live.as_ref().map_or(0, |(_, live)| live.len() as u64);
            // Another file each time: nobody shall take an old one for it.
            return Ok(self.made_meta(u64::MAX - self.lives, len));
        }
        if let Some(kept) = self.kept(text) {
            return Ok(self.made_meta(kept.inode(), kept.len()));
        }
        if let Some(file) = self.flash_file(text) {
            return Ok(self.flash_meta(FileKind::File, file.bytes.len() as u64));
        }
        let is_directory =
            path.is_root() || self.flash.iter().any(|file| names::below(text, file.path).is_some());
        if is_directory { Ok(self.flash_meta(FileKind::Directory, 0)) } else { Err(FileError::NotFound) }
    }

    /// What an instrument has kept, if the path is that of its file.
    fn kept(&self, path: &str) -> Option<Kept> {
        let head = || self.live.as_ref().map(|(_, head)| head.clone()).unwrap_or_default();
        self.instruments.as_ref()?.file(path, head)
    }

    /// What is made when it is asked for: it has no date, so that nobody asks whether it is newer than what he has.
    fn made_meta(&self, inode: u64, len: u64) -> Metadata {
        Metadata { inode, modified_ns: 0, changed_ns: 0, ..self.flash_meta(FileKind::File, len) }
    }

    fn flash_meta(&self, kind: FileKind, len: u64) -> Metadata {
        let mode = if kind == FileKind::Directory { 0o555 } else { 0o444 };
        let (modified_ns, rights) = (self.built_ns, Rights::ALL);
        Metadata { kind, len, modified_ns, changed_ns: modified_ns, inode: 0, mode, rights }
    }

    fn open(&mut self, path: &VirtualPath, mode: OpenMode) -> Result<FileReply, FileError> {
        if mode != OpenMode::Read {
            let Some(rest) = ram::inside(path.as_str()) else { return Err(FileError::ReadOnly) };
            // Before anything is changed: what has no place is not closed either.
            let place = self.vacant()?;
            let (node, meta) = self.ram.with(|ram| ram.open_for_writing(rest, mode))?;
            return Ok(FileReply::Opened { file: self.add(place, Open::Ram(node, true)), meta });
        }
        let place = self.vacant()?;
        if let Some(instruments) = &self.instruments {
            // What is read stays as it is.
            instruments.end(path.as_str());
        }
        let meta = self.meta(path)?;
        let open = if meta.kind == FileKind::Directory {
            Open::Directory(self.names(path))
        } else if let Some(rest) = ram::inside(path.as_str()) {
            Open::Ram(self.ram.with(|ram| ram.open_for_reading(rest))?, false)
        } else if path.as_str() == LIVE {
            Open::Live(self.live.clone().map(|(_, live)| live).unwrap_or_default())
        } else if let Some(kept) = self.kept(path.as_str()) {
            Open::Kept(kept)
        } else {
            Open::Flash(self.flash_file(path.as_str()).ok_or(FileError::NotFound)?.bytes)
        };
        Ok(FileReply::Opened { file: self.add(place, open), meta })
    }

    /// What is in a directory.
    fn names(&self, path: &VirtualPath) -> Names {
        if let Some(rest) = ram::inside(path.as_str()) {
            return self.ram.with(|ram| ram.names(rest));
        }
        let mut names = Names::default();
        for file in self.flash {
            let Some(rest) = names::below(path.as_str(), file.path) else { continue };
            match rest.split_once('/') {
                Some((directory, _)) => names.add(directory, self.flash_meta(FileKind::Directory, 0)),
                None => names.add(rest, self.flash_meta(FileKind::File, file.bytes.len() as u64)),
            }
        }
        if path.is_root() {
            if let Ok(meta) = self.ram.with(|ram| ram.meta("")) {
                names.add(&RAM[1..], meta);
            }
            names.add(&LIVE[1..], self.flash_meta(FileKind::File, 0));
            for path in [TRACE, CAPTURE] {
                if let Some(kept) = self.kept(path) {
                    names.add(&path[1..], self.flash_meta(FileKind::File, kept.len()));
                }
            }
        }
        names
    }

    fn read(&mut self, file: FileId, offset: u64, len: usize) -> Result<Bytes, FileError> {
        let cut = |all: usize| {
            let from = usize::try_from(offset).unwrap_or(usize::MAX).min(all);
            from..from.saturating_add(len).min(all)
        };
        match self.at(file)? {
            Open::Flash(bytes) => {
                let bytes: &'static [u8] = bytes;
                Ok(Bytes::from_static(&bytes[cut(bytes.len())]))
            }
            Open::Live(bytes) => Ok(bytes.slice(cut(bytes.len()))),
            Open::Kept(kept) => kept.read(offset, len),
            Open::Ram(node, _) => {
                let node = *node;
                self.ram.with(|ram| ram.read(node, offset, len))
            }
            Open::Directory(_) => Err(FileError::IsADirectory),
        }
    }

    /// Ends the use of an id.
    fn close(&mut self, file: FileId) -> Result<FileReply, FileError> {
        let place = self.ids.iter().position(|id| *id == file).ok_or(FileError::Stale)?;
        match self.open[place].take().ok_or(FileError::Stale)? {
            Open::Ram(node, writes) => self.ram.with(|ram| ram.close(node, writes)).map(|()| FileReply::Done),
            _ => Ok(FileReply::Done),
        }
    }

    fn run(&mut self, op: FileOp) -> Result<FileReply, FileError> {
        let done = |result: Result<(), FileError>| result.map(|()| FileReply::Done);
        match op {
            FileOp::Open { path, mode } => self.open(&path, mode),
            FileOp::Stat { path } => self.meta(&path).map(FileReply::Meta),
            FileOp::ReadDir { dir, limit } => match self.at(dir)? {
                Open::Directory(names) => Ok(FileReply::Entries(names.take(limit))),
                _ => Err(FileError::NotADirectory),
            },
            FileOp::Read { file, offset, len } => self.read(file, offset, len).map(FileReply::Data),
            FileOp::Write { file, offset, data } => {
                let node = self.ram_at(file)?;
                done(self.ram.with(|ram| ram.write(node, offset, &data)))
            }
            // What says that it takes none gets none.
            FileOp::WriteParcel { .. } => Err(FileError::Io),
            FileOp::Truncate { file, len } => {
                let node = self.ram_at(file)?;
                done(self.ram.with(|ram| ram.truncate(node, len)))
            }
            FileOp::Publish { file, whole } => {
                let node = self.ram_at(file)?;
                done(self.ram.with(|ram| ram.publish(node, whole)))
            }
            FileOp::Close { file } => self.close(file),
            FileOp::Compute { work } => Ok(FileReply::Data(Bytes::from(work.run()))),
            FileOp::Rename { from, to } => match (ram::inside(from.as_str()), ram::inside(to.as_str())) {
                (Some(from), Some(to)) => done(self.ram.with(|ram| ram.rename(from, to))),
                _ => Err(FileError::ReadOnly),
            },
            FileOp::Remove { path } => {
                let name = ram::within(&path)?;
                done(self.ram.with(|ram| ram.remove(name, FileKind::File)))
            }
            FileOp::RemoveDir { path } => {
                let name = ram::within(&path)?;
                done(self.ram.with(|ram| ram.remove(name, FileKind::Directory)))
            }
            FileOp::MakeDir { path } => {
                let name = ram::within(&path)?;
                done(self.ram.with(|ram| ram.make_directory(name)))
            }
            FileOp::SetModified { path, modified_ns } => {
                let name = ram::within(&path)?;
                done(self.ram.with(|ram| ram.set_modified(name, modified_ns)))
            }
            FileOp::SetMode { path, mode } => {
                let name = ram::within(&path)?;
                done(self.ram.with(|ram| ram.set_mode(name, mode)))
            }
        }
    }
}

impl Files for Disk {
    fn submit(&mut self, owner: Owner, tag: u64, op: FileOp) -> Result<(), FileOp> {
        if self.queue.len() == OPERATIONS {
            return Err(op);
        }
        self.queue.push_back((owner, tag, op));
        Ok(())
    }

    fn poll_done(&mut self) -> Option<FileDone> {
        if self.wants_live().is_some() {
            return None;
        }
        let (owner, tag, op) = self.queue.pop_front()?;
        let is_open = matches!(op, FileOp::Open { .. });
        let result = self.run(op);
        if is_open {
            // Whoever opens it next gets a new one.
            self.live = None;
        }
        Some(FileDone { owner, tag, result })
    }

    fn stat_now(&mut self, path: &VirtualPath) -> Option<Result<Metadata, FileError>> {
        // What is made or ended when it is opened has a state that only that tells.
        let is_made = matches!(path.as_str(), LIVE | TRACE | CAPTURE);
        (!is_made).then(|| self.meta(path))
    }

    fn media_type(&self, path: &VirtualPath) -> Option<&'static str> {
        matches!(path.as_str(), LIVE | TRACE).then_some("application/json")
    }

    fn constant(&self, path: &VirtualPath) -> Option<(Metadata, Bytes)> {
        let text = path.as_str();
        if ram::inside(text).is_some() || text == LIVE || self.kept(text).is_some() {
            return None;
        }
        let file = self.flash_file(text)?;
        Some((self.flash_meta(FileKind::File, file.bytes.len() as u64), Bytes::from_static(file.bytes)))
    }
}
