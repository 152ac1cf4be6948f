//! A real directory, with everything in it that could lead astray.

mod at_once;
mod changes;
mod demo;
mod reading;

use super::*;
use linerate_transport::{Bytes, DirEntry, FileKind, Metadata, OpenMode, VirtualPath};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that is removed at the end.
pub(crate) struct TempDir(pub(crate) PathBuf);

impl TempDir {
    pub(crate) fn new() -> TempDir {
        TempDir::within(std::env::temp_dir())
    }

    /// One that is memory, where the machine has such.
    pub(crate) fn in_memory() -> Option<TempDir> {
        let memory = PathBuf::from("/dev/shm");
        memory.is_dir().then(|| TempDir::within(memory))
    }

    fn within(folder: PathBuf) -> TempDir {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("linerate-files-{}-{number}", std::process::id());
        let path = folder.join(name);
        std::fs::create_dir(&path).unwrap();
        TempDir(path)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.0.join(name), bytes).unwrap();
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // What a failed test leaves behind is better than a second panic.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) const OWNER: Owner = Owner(7);

pub(crate) fn path(path: &str) -> VirtualPath {
    VirtualPath::parse(path).unwrap()
}

/// A server whose sweep is over: while it lasts, it may have got hold of a file just made, which is then left for it to remove.
pub(crate) fn serve(dir: &TempDir, writable: bool) -> AnyFiles {
    let mut files = start(dir, writable);
    if let AnyFiles::Directory(files) = &mut files
        && let Some(Crew { _sweep: Some(sweep), .. }) = Arc::get_mut(&mut files.crew)
    {
        sweep.wait();
    }
    files
}

/// As where there are so many processors.
pub(crate) fn on_processors(files: AnyFiles, count: usize) -> AnyFiles {
    let AnyFiles::Directory(workers) = &files else { panic!("not a directory") };
    workers.crew.work.processors.store(count, Ordering::Relaxed);
    files
}

/// A server whose sweep may be under way.
pub(crate) fn start(dir: &TempDir, writable: bool) -> AnyFiles {
    let config = WorkerConfig { writable, ..WorkerConfig::default() };
    AnyFiles::Directory(WorkerFiles::start(&dir.0, config).unwrap())
}

/// The next finished operation; waits by the descriptor as the loop does.
pub(crate) fn next(files: &mut AnyFiles) -> FileDone {
    for _ in 0..1200 {
        if let Some(done) = files.poll_done() {
            return done;
        }
        let timeout = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        let mut fds = [PollFd::new(&*files, PollFlags::IN)];
        poll(&mut fds, Some(&timeout)).unwrap();
    }
    panic!("no operation finishes");
}

/// Does one operation.
pub(crate) fn ask(files: &mut AnyFiles, op: FileOp) -> Result<FileReply, FileError> {
    files.submit(OWNER, 42, op).unwrap();
    let done = next(files);
    assert_eq!((done.owner, done.tag), (OWNER, 42));
    done.result
}

pub(crate) fn open(
    files: &mut AnyFiles,
    name: &str,
    mode: OpenMode,
) -> Result<(FileId, Metadata), FileError> {
    match ask(files, FileOp::Open { path: path(name), mode })? {
        FileReply::Opened { file, meta } => Ok((file, meta)),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn read(files: &mut AnyFiles, file: FileId, offset: u64, len: usize) -> Result<Bytes, FileError> {
    match ask(files, FileOp::Read { file, offset, len })? {
        FileReply::Data(data) => Ok(data),
        other => panic!("{other:?}"),
    }
}

fn stat(files: &mut AnyFiles, name: &str) -> Result<Metadata, FileError> {
    match ask(files, FileOp::Stat { path: path(name) })? {
        FileReply::Meta(meta) => Ok(meta),
        other => panic!("{other:?}"),
    }
}

/// All entries of a directory, by pages of `limit`, sorted.
fn list(files: &mut AnyFiles, name: &str, limit: usize) -> Vec<DirEntry> {
    let (dir, meta) = open(files, name, OpenMode::Read).unwrap();
    assert_eq!(meta.kind, FileKind::Directory);
    let mut all = Vec::new();
    loop {
        match ask(files, FileOp::ReadDir { dir, limit }).unwrap() {
            FileReply::Entries(entries) if entries.is_empty() => break,
            FileReply::Entries(entries) => {
                assert!(entries.len() <= limit.min(READ_DIR_MAX));
                all.extend(entries);
            }
            other => panic!("{other:?}"),
        }
    }
    done(ask(files, FileOp::Close { file: dir }));
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

fn done(result: Result<FileReply, FileError>) {
    assert!(matches!(result, Ok(FileReply::Done)), "{result:?}");
}

fn fails(result: Result<FileReply, FileError>, error: FileError) {
    assert_eq!(result.map(|reply| format!("{reply:?}")), Err(error));
}
