//! The directory that is served, and the system calls that never leave it.

use super::job::{FileWork, Outcome};
use super::links;
use super::pages::{Page, PagePool};
use super::rights::OurRights;
use super::table::{Content, DirPosition, OpenDir, OpenFile};
use super::upload::{self, Opened, Unpublished};
use super::{READ_DIR_MAX, READ_MAX};
use crate::mailbox::lock;
use linerate_transport::{
    Bytes, DirEntry, FileError, FileKind, FileOp, FileReply, Metadata, OpenMode, Rights, VirtualPath,
};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    Access, AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, Timespec, Timestamps,
};
use rustix::io::Errno;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// The directory that is served.
#[derive(Debug)]
pub(crate) struct Root {
    fd: OwnedFd,
    /// What absolute links may begin with.
    names: Vec<String>,
    writable: AtomicBool,
    rights: OurRights,
}

/// Why a directory cannot be served.
#[derive(Debug)]
pub enum RootError {
    /// It could not be opened as a directory.
    Open(std::io::Error),
    /// This user may not search it.
    Permission,
    /// The kernel lacks `openat2` (it came with Linux 5.6) or something forbids it, so nothing could hold paths
    /// within the root.
    NoOpenat2(std::io::Error),
    /// A thread or a file descriptor was not to be had.
    Resources(std::io::Error),
}

impl std::fmt::Display for RootError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RootError::Open(error) => write!(f, "cannot open the directory: {error}"),
            RootError::Permission => f.write_str(
                "this user may list it at best, and not open what is in it: the directory needs the right to search (x)",
            ),
            RootError::NoOpenat2(error) => write!(
                f,
                "the system call openat2 (Linux 5.6), which keeps every path within the directory, is not available: \
                 {error}"
            ),
            RootError::Resources(error) => write!(f, "cannot start the file workers: {error}"),
        }
    }
}

impl std::error::Error for RootError {}

/// Links may lead anywhere beneath the root; nothing leads out.
pub(super) const RESOLVE: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);
/// Never wait on a FIFO, never inherit, never become a controlling terminal.
pub(super) const SAFE: OFlags = OFlags::NONBLOCK.union(OFlags::CLOEXEC).union(OFlags::NOCTTY);
/// A rename elsewhere in the tree makes the kernel give up a resolution that contains `..` links; try again this often.
const RESOLVE_TRIES: usize = 16;

impl Root {
    /// Opens the directory at `path`.
    pub(crate) fn open(path: &Path, writable: bool) -> Result<Root, RootError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(|e| RootError::Open(e.into()))?;
        let names = links::names_of_root(&fd, path);
        let writable = AtomicBool::new(writable);
        let root = Root { fd, names, writable, rights: OurRights::default() };
        match rustix::fs::openat2(&root.fd, ".", flags, Mode::empty(), RESOLVE) {
            Ok(_) => Ok(root),
            Err(Errno::ACCESS) => Err(RootError::Permission),
            Err(error) => Err(RootError::NoOpenat2(error.into())),
        }
    }

    /// Another descriptor of the directory.
    pub(super) fn descriptor(&self) -> Result<OwnedFd, Errno> {
        rustix::io::fcntl_dupfd_cloexec(&self.fd, 0)
    }

    /// Whether `path` leads to this directory still.
    pub(super) fn is_at(&self, path: &Path) -> Result<bool, Errno> {
        let (here, there) = (rustix::fs::fstat(&self.fd)?, rustix::fs::stat(path)?);
        Ok((here.st_dev, here.st_ino) == (there.st_dev, there.st_ino))
    }

    /// Whether there is this name; where that cannot be told, there is.
    pub(super) fn holds(&self, name: &str) -> bool {
        let found = rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW);
        !matches!(found, Err(Errno::NOENT))
    }

    /// Allows or refuses changes from the next operation on; files that are open for writing stay so.
    pub(crate) fn set_writable(&self, writable: bool) {
        self.writable.store(writable, Ordering::Relaxed);
    }

    /// Whether this process has the right to change the directory.
    pub(crate) fn may_change(&self) -> bool {
        let access = Access::WRITE_OK | Access::EXEC_OK;
        rustix::fs::accessat(&self.fd, ".", access, AtFlags::empty()).is_ok()
    }

    /// Does an operation on a path.
    pub(crate) fn perform(&self, op: FileOp) -> Result<Outcome, FileError> {
        let changes = match &op {
            FileOp::Open { mode, .. } => *mode != OpenMode::Read,
            FileOp::Stat { .. } | FileOp::Compute { .. } => false,
            _ => true,
        };
        if changes && !self.writable.load(Ordering::Relaxed) {
            return Err(FileError::ReadOnly);
        }
        // Files under way have no name for anybody but us.
        if paths_of(&op).into_iter().flatten().any(is_under_way) {
            return Err(if changes { FileError::Permission } else { FileError::NotFound });
        }
        match op {
            FileOp::Open { path, mode: mode @ (OpenMode::Replace | OpenMode::CreateNew) } => {
                let (file, meta) = self.open_whole(path, mode)?;
                return Ok(Outcome::Opened(Arc::new(file), meta));
            }
            FileOp::Open { path, mode } => {
                let (file, meta) = self.open_file(path, mode)?;
                return Ok(Outcome::Opened(Arc::new(file), meta));
            }
            FileOp::Stat { path } => return Ok(Outcome::Reply(FileReply::Meta(self.stat(path.relative())?))),
            FileOp::Compute { work } => {
                return Ok(Outcome::Reply(FileReply::Data(Bytes::from(work.run()))));
            }
            FileOp::Remove { path } => self.unlink(&path, AtFlags::empty())?,
            FileOp::RemoveDir { path } => self.remove_dir(&path)?,
            FileOp::MakeDir { path } => {
                let parent = self.parent(&path, FileError::Exists)?;
                rustix::fs::mkdirat(&parent, path.name(), Mode::from_raw_mode(0o777)).map_err(error)?;
            }
            FileOp::Rename { from, to } => {
                let old = self.parent(&from, FileError::Permission)?;
                let new = self.parent(&to, FileError::Permission)?;
                rustix::fs::renameat(&old, from.name(), &new, to.name()).map_err(|errno| match errno {
                    // A directory does not go into itself, however often that is tried.
                    Errno::INVAL => FileError::Permission,
                    errno => error(errno),
                })?;
            }
            FileOp::SetModified { path, modified_ns } => {
                let time = timespec(modified_ns);
                let now = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
                let times = Timestamps { last_access: now, last_modification: time };
                self.change(
                    &path,
                    |fd| rustix::fs::futimens(fd, &times),
                    |name| rustix::fs::utimensat(CWD, name, &times, AtFlags::empty()),
                )?;
            }
            FileOp::SetMode { path, mode } => {
                let mode = Mode::from_raw_mode(u32::from(mode & 0o777));
                self.change(&path, |fd| rustix::fs::fchmod(fd, mode), |name| rustix::fs::chmod(name, mode))?;
            }
            FileOp::ReadDir { .. }
            | FileOp::Read { .. }
            | FileOp::Write { .. }
            | FileOp::WriteParcel { .. }
            | FileOp::Truncate { .. }
            | FileOp::Publish { .. }
            | FileOp::Close { .. } => return Err(FileError::Stale),
        }
        Ok(Outcome::Reply(FileReply::Done))
    }

    /// Does an operation on an open file.
    pub(crate) fn perform_on(
        &self,
        file: &OpenFile,
        work: FileWork,
        pages: &Arc<PagePool>,
    ) -> Result<FileReply, FileError> {
        match (work, &file.content) {
            (FileWork::Close, _) => match lock(&file.late_error).take() {
                Some(error) => Err(error),
                None => Ok(FileReply::Done),
            },
            (FileWork::ReadDir { limit }, Content::Dir(dir)) => {
                self.read_dir(dir, limit.clamp(1, READ_DIR_MAX)).map(FileReply::Entries)
            }
            (FileWork::ReadDir { .. }, _) => Err(FileError::NotADirectory),
            (FileWork::Read { len, .. }, Content::Fd(_)) if len > READ_MAX => Err(FileError::Io),
            (FileWork::Read { offset, len, begun }, Content::Fd(fd)) => {
                let (page, done) = begun.unwrap_or_else(|| (pages.take(len), 0));
                read(fd, offset, page, done)
            }
            (_, Content::Dir(_)) => Err(FileError::IsADirectory),
            (
                FileWork::Write { .. }
                | FileWork::WriteParcel { .. }
                | FileWork::Truncate { .. }
                | FileWork::Publish { .. },
                _,
            ) if !file.writable => Err(FileError::Permission),
            (FileWork::Write { offset, data }, Content::Fd(fd)) => {
                let earlier = *lock(&file.late_error);
                let result = earlier.map_or_else(|| write(fd, offset, &data), Err);
                if let Err(error) = result {
                    file.record_error(error);
                }
                result.map(|()| FileReply::Done)
            }
            (FileWork::WriteParcel { offset, parcel }, Content::Fd(_)) => {
                file.take_parcel(offset, parcel).map(|()| FileReply::Done)
            }
            (FileWork::Truncate { len }, Content::Fd(fd)) => truncate(fd, len).map(|()| FileReply::Done),
            (FileWork::Publish { whole }, Content::Fd(_)) => {
                if let Some(error) = lock(&file.late_error).filter(|_| whole) {
                    return Err(error);
                }
                let unpublished = lock(&file.unpublished).take();
                unpublished.map_or(Ok(()), |file| file.publish(whole)).map(|()| FileReply::Done)
            }
            (_, Content::Static(_)) => Err(FileError::Stale),
        }
    }

    /// Resolves `path` beneath the root.
    fn resolve(&self, path: &str, flags: OFlags, mode: Mode) -> Result<OwnedFd, FileError> {
        match self.try_resolve(path, flags, mode) {
            // Out of the root, or an absolute link that leads back into it.
            Err(Errno::XDEV) => {
                let path =
                    links::rewrite(&self.fd, &self.names, path, RESOLVE).ok_or(FileError::Permission)?;
                self.try_resolve(&path, flags, mode).map_err(error)
            }
            result => result.map_err(error),
        }
    }

    fn try_resolve(&self, path: &str, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        let path = if path.is_empty() { "." } else { path };
        let mut tries = 0;
        loop {
            match rustix::fs::openat2(&self.fd, path, flags | OFlags::CLOEXEC, mode, RESOLVE) {
                Err(Errno::AGAIN | Errno::INTR) if tries < RESOLVE_TRIES => tries += 1,
                result => return result,
            }
        }
    }

    fn parent(&self, path: &VirtualPath, root_error: FileError) -> Result<OwnedFd, FileError> {
        if path.is_root() {
            return Err(root_error);
        }
        self.resolve(path.parent().relative(), OFlags::PATH | OFlags::DIRECTORY, Mode::empty())
    }

    fn unlink(&self, path: &VirtualPath, flags: AtFlags) -> Result<(), FileError> {
        let parent = self.parent(path, FileError::Permission)?;
        rustix::fs::unlinkat(&parent, path.name(), flags).map_err(error)
    }

    fn remove_dir(&self, path: &VirtualPath) -> Result<(), FileError> {
        let result = self.unlink(path, AtFlags::REMOVEDIR);
        if result != Err(FileError::NotEmpty) {
            return result;
        }
        // Perhaps all that is in it is what nobody is shown, and nobody can remove: what a killed server left there, and links that
        // lead nowhere, as those do whose target was removed a moment ago with the rest of a tree.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | SAFE;
        let mut dir = Dir::new(self.resolve(path.relative(), flags, Mode::empty())?).map_err(error)?;
        let mut links = Vec::new();
        while let Some(Ok(entry)) = dir.read() {
            let (Ok(name), Ok(fd)) = (entry.file_name().to_str(), dir.fd()) else { return result };
            match name {
                "." | ".." => {}
                _ if name.starts_with(upload::PREFIX) => upload::remove_if_stale(fd, name),
                _ if self.is_link_to_nowhere(path, fd, name) => links.push(name.to_owned()),
                _ => return result,
            }
        }
        for name in links {
            let fd = dir.fd().map_err(error)?;
            rustix::fs::unlinkat(fd, name, AtFlags::empty()).map_err(error)?;
        }
        self.unlink(path, AtFlags::REMOVEDIR)
    }

    /// Whether `name` in the directory `dir`, which is open as `fd`, is a link whose target is not there. One that leads out of the
    /// root is somebody's who has the host, and stays.
    fn is_link_to_nowhere(&self, dir: &VirtualPath, fd: BorrowedFd<'_>, name: &str) -> bool {
        let stat = rustix::fs::statat(fd, name, AtFlags::SYMLINK_NOFOLLOW);
        if !stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink) {
            return false;
        }
        let Ok(path) = dir.join(name) else { return false };
        matches!(self.stat(path.relative()), Err(FileError::NotFound | FileError::NotADirectory))
    }

    /// Metadata of a path if the kernel has all of it in its caches, so that no disk can stall the caller; `None` where
    /// a worker must look.
    pub(crate) fn stat_cached(&self, path: &VirtualPath) -> Option<Result<Metadata, FileError>> {
        if is_under_way(path) {
            return Some(Err(FileError::NotFound));
        }
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let name = if path.relative().is_empty() { "." } else { path.relative() };
        match rustix::fs::openat2(&self.fd, name, flags, Mode::empty(), RESOLVE | ResolveFlags::CACHED) {
            Ok(fd) => Some(self.metadata_of(&fd)),
            // Not in the caches; a link out of the root, that may lead back; or Linux before 5.12, which lacks this.
            Err(Errno::AGAIN | Errno::INTR | Errno::XDEV | Errno::INVAL) => None,
            Err(failed) => Some(Err(error(failed))),
        }
    }

    /// Whether a path that [`Root::stat_cached`] found a moment ago leads to this same file: one system call in place of three.
    ///
    /// Links are followed wherever they lead, out of the root as well. That gives nothing away: nothing is told of a file but that
    /// its number, times and length are those of the one that was found within the root.
    pub(crate) fn is_same(&self, path: &VirtualPath, known: &Metadata) -> bool {
        rustix::fs::statat(&self.fd, path.relative(), AtFlags::NO_AUTOMOUNT)
            .is_ok_and(|stat| metadata(&stat).is_same_file(known))
    }

    fn stat(&self, path: &str) -> Result<Metadata, FileError> {
        let fd = self.resolve(path, OFlags::PATH, Mode::empty())?;
        self.metadata_of(&fd)
    }

    /// What is known of what a path led to. Whether a directory may be searched is asked where its bits say no, because who asks goes
    /// there next, and an access control list may allow it.
    fn metadata_of(&self, fd: &OwnedFd) -> Result<Metadata, FileError> {
        let stat = rustix::fs::fstat(fd).map_err(error)?;
        let mut meta = self.metadata(&stat);
        if meta.kind == FileKind::Directory && !meta.rights.search {
            meta.rights.search = rustix::fs::accessat(fd, ".", Access::EXEC_OK, AtFlags::empty()).is_ok();
        }
        Ok(meta)
    }

    fn metadata(&self, stat: &Stat) -> Metadata {
        Metadata { rights: self.rights.of(stat), ..metadata(stat) }
    }

    /// Changes the attributes of a file or directory by a descriptor; or by a name that leads to the one that was found beneath
    /// the root, because its owner may change what nobody may open.
    fn change(
        &self,
        path: &VirtualPath,
        by_fd: impl FnOnce(BorrowedFd<'_>) -> Result<(), Errno>,
        by_name: impl FnOnce(&str) -> Result<(), Errno>,
    ) -> Result<(), FileError> {
        let open = |flags| self.resolve(path.relative(), flags, Mode::empty());
        // A file that may be written and not read, as in a drop box, is the second.
        let opened = open(OFlags::RDONLY | SAFE).or_else(|_| open(OFlags::WRONLY | SAFE));
        let (fd, is_open) = match opened {
            Ok(fd) => (fd, true),
            Err(_) => (open(OFlags::PATH)?, false),
        };
        if metadata(&rustix::fs::fstat(&fd).map_err(error)?).kind == FileKind::Other {
            return Err(FileError::Permission);
        }
        let changed = match is_open {
            true => by_fd(fd.as_fd()),
            false => by_name(&format!("/proc/self/fd/{}", rustix::fd::AsRawFd::as_raw_fd(&fd))),
        };
        changed.map_err(error)
    }

    /// Opens a file that is to be written as a whole.
    fn open_whole(&self, path: VirtualPath, mode: OpenMode) -> Result<(OpenFile, Metadata), FileError> {
        let dir = self.parent(&path, FileError::IsADirectory)?;
        match upload::open(dir, path.name(), mode == OpenMode::Replace)? {
            Opened::InPlace(why) => {
                // Until the new content is whole, there is neither the old nor the new file.
                log::info!("{path} is overwritten in place: {why}");
                self.open_file(path, OpenMode::Update)
            }
            Opened::Aside(fd, unpublished) => {
                let meta = self.metadata(&rustix::fs::fstat(&fd).map_err(error)?);
                let file = OpenFile::new(Content::Fd(fd), true);
                let waiting: Option<Unpublished> = Some(unpublished);
                *lock(&file.unpublished) = waiting;
                Ok((file, meta))
            }
        }
    }

    fn open_file(&self, path: VirtualPath, mode: OpenMode) -> Result<(OpenFile, Metadata), FileError> {
        let flags = match mode {
            OpenMode::Read => OFlags::RDONLY,
            OpenMode::Existing => OFlags::WRONLY,
            // Emptied below, once it is known to be a regular file.
            _ => OFlags::WRONLY | OFlags::CREATE,
        };
        let creates = flags.contains(OFlags::CREATE);
        let create = if creates { Mode::from_raw_mode(0o666) } else { Mode::empty() };
        let fd = self.resolve(path.relative(), flags | SAFE, create)?;
        let mut meta = self.metadata(&rustix::fs::fstat(&fd).map_err(error)?);
        let content = match meta.kind {
            FileKind::Other => return Err(FileError::Permission),
            FileKind::Directory => Content::Dir(OpenDir {
                path,
                position: Mutex::new(DirPosition::Stream(Dir::new(fd).map_err(error)?)),
            }),
            FileKind::File => {
                if mode != OpenMode::Read {
                    upload::lock_for_writing(fd.as_fd())?;
                }
                if mode == OpenMode::Create && meta.len > 0 {
                    rustix::fs::ftruncate(&fd, 0).map_err(error)?;
                    meta.len = 0;
                }
                Content::Fd(fd)
            }
        };
        Ok((OpenFile::new(content, mode != OpenMode::Read), meta))
    }

    fn read_dir(&self, dir: &OpenDir, limit: usize) -> Result<Vec<DirEntry>, FileError> {
        let mut position = lock(&dir.position);
        let DirPosition::Stream(stream) = &mut *position else { return Err(FileError::Stale) };
        let mut entries = Vec::with_capacity(limit.min(64));
        while entries.len() < limit {
            let entry = match stream.read() {
                None => break,
                Some(entry) => entry.map_err(error)?,
            };
            // A name with control characters can be in no virtual path, and would forge lines of a listing.
            let Ok(name) = entry.file_name().to_str() else { continue };
            if name == "." || name == ".." || name.chars().any(char::is_control) {
                continue;
            }
            let Ok(fd) = stream.fd() else { return Err(FileError::Io) };
            if name.starts_with(upload::PREFIX) {
                if self.writable.load(Ordering::Relaxed) {
                    upload::remove_if_stale(fd, name);
                }
                continue;
            }
            let Ok(stat) = rustix::fs::statat(fd, name, AtFlags::SYMLINK_NOFOLLOW) else {
                // Removed since the directory was read.
                continue;
            };
            let (mut meta, mut link) = (self.metadata(&stat), None);
            if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
                // A link that leads out, or nowhere, stays what it is: something never opened.
                if let Ok(path) = dir.path.join(name)
                    && let Ok(target) = self.stat(path.relative())
                {
                    meta = target;
                    if meta.kind == FileKind::Directory {
                        let target = links::rewrite(&self.fd, &self.names, path.relative(), RESOLVE);
                        link = target.map(|target| format!("/{target}"));
                    }
                }
            }
            entries.push(DirEntry { name: name.to_owned(), meta, link });
        }
        Ok(entries)
    }
}

/// The paths that an operation names.
fn paths_of(op: &FileOp) -> [Option<&VirtualPath>; 2] {
    match op {
        FileOp::Open { path, .. }
        | FileOp::Stat { path }
        | FileOp::Remove { path }
        | FileOp::RemoveDir { path }
        | FileOp::MakeDir { path }
        | FileOp::SetModified { path, .. }
        | FileOp::SetMode { path, .. } => [Some(path), None],
        FileOp::Rename { from, to } => [Some(from), Some(to)],
        _ => [None, None],
    }
}

/// Whether a component of the path is the name of a file under way.
fn is_under_way(path: &VirtualPath) -> bool {
    path.relative().split('/').any(|name| name.starts_with(upload::PREFIX))
}

/// Fills the page from its byte `done` on; its first byte is that at `offset`.
fn read(fd: &OwnedFd, offset: u64, mut page: Page, mut done: usize) -> Result<FileReply, FileError> {
    let buffer = page.as_mut();
    while done < buffer.len() {
        let Some(at) = offset.checked_add(done as u64) else { break };
        match rustix::io::pread(fd, &mut buffer[done..], at) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(error(errno)),
        }
    }
    Ok(FileReply::Data(page.into_shared(done)))
}

/// Sets the length of a file that has another. ext4 takes a file that is cut to nothing for one that is being replaced, though it
/// was empty: it begins to write it to the disk when it is closed, and whoever closes it waits for half a second a gigabyte.
fn truncate(fd: &OwnedFd, len: u64) -> Result<(), FileError> {
    let has = rustix::fs::fstat(fd).map_err(error)?.st_size;
    if u64::try_from(has) == Ok(len) { Ok(()) } else { rustix::fs::ftruncate(fd, len).map_err(error) }
}

fn write(fd: &OwnedFd, offset: u64, data: &[u8]) -> Result<(), FileError> {
    let mut done = 0;
    while done < data.len() {
        let at = offset.checked_add(done as u64).ok_or(FileError::NoSpace)?;
        match rustix::io::pwrite(fd, &data[done..], at) {
            Ok(0) => return Err(FileError::Io),
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(error(errno)),
        }
    }
    Ok(())
}

/// What a `stat` tells; what this process may do is not looked at.
pub(super) fn metadata(stat: &Stat) -> Metadata {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        _ => FileKind::Other,
    };
    Metadata {
        kind,
        len: u64::try_from(stat.st_size).unwrap_or(0),
        modified_ns: nanos(stat.st_mtime, i64::try_from(stat.st_mtime_nsec)),
        changed_ns: nanos(stat.st_ctime, i64::try_from(stat.st_ctime_nsec)),
        inode: stat.st_ino,
        mode: (stat.st_mode & 0o777) as u16,
        rights: Rights::ALL,
    }
}

fn nanos<E>(seconds: i64, rest: Result<i64, E>) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(rest.unwrap_or(0))
}

fn timespec(ns: i64) -> Timespec {
    Timespec { tv_sec: ns.div_euclid(1_000_000_000), tv_nsec: ns.rem_euclid(1_000_000_000) as _ }
}

/// What an error of the system means to a server.
pub(super) fn error(errno: Errno) -> FileError {
    match errno {
        // A name that is too long for the file system is that of no file.
        Errno::NOENT | Errno::NAMETOOLONG => FileError::NotFound,
        // `openat2` reports a way out of the root as XDEV, a magic or circular link as LOOP, and opening a FIFO or a
        // socket ends in NXIO.
        Errno::ACCESS | Errno::PERM | Errno::XDEV | Errno::LOOP | Errno::NXIO | Errno::TXTBSY => {
            FileError::Permission
        }
        Errno::NOTDIR => FileError::NotADirectory,
        Errno::ISDIR => FileError::IsADirectory,
        Errno::EXIST => FileError::Exists,
        Errno::NOTEMPTY => FileError::NotEmpty,
        Errno::NOSPC | Errno::DQUOT | Errno::FBIG => FileError::NoSpace,
        Errno::ROFS => FileError::ReadOnly,
        Errno::MFILE | Errno::NFILE => FileError::TooManyOpen,
        _ => FileError::Io,
    }
}
