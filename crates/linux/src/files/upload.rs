//! Files that take their name only when they are complete: written under a name of ours in the same directory, and
//! renamed.
//!
//! A file under way is locked (`flock`), so that one that nobody holds any more, because its server was killed, can be
//! told and removed: when a server starts, and when its directory is listed or removed.

use super::root::{SAFE, error, metadata};
use linerate_transport::{FileError, FileKind};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use std::os::fd::BorrowedFd;

/// How the names of files under way begin. No path with such a component leads anywhere, and none is listed.
pub(super) const PREFIX: &str = ".linerate-upload-";
/// Names tried before giving up.
const TRIES: usize = 16;

/// A file under way, and the name that it is to have. It is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Unpublished {
    dir: OwnedFd,
    temporary: String,
    name: String,
    /// It may take the place of another file.
    replaces: bool,
    /// The old file, locked so that nobody else writes it meanwhile.
    _old: Option<OwnedFd>,
    published: bool,
}

/// How a file that is to be written as a whole was opened.
pub(super) enum Opened {
    /// Under a name of ours.
    Aside(OwnedFd, Unpublished),
    /// In place, as it cannot be replaced: why.
    InPlace(&'static str),
}

/// Opens a new file that is to become `name` in `dir`. `may_replace`: a file of that name may exist.
pub(super) fn open(dir: OwnedFd, name: &str, may_replace: bool) -> Result<Opened, FileError> {
    let old = match rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) if !may_replace => return Err(FileError::Exists),
        Ok(stat) => Some(stat),
        Err(Errno::NOENT) => None,
        Err(errno) => return Err(error(errno)),
    };
    let Some(stat) = old else {
        let (fd, unpublished) = create(dir, name, may_replace, None)?;
        return Ok(Opened::Aside(fd, unpublished));
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Directory => return Err(FileError::IsADirectory),
        // What it leads to is written, and the link stays.
        FileType::Symlink => return Ok(Opened::InPlace("it is a symbolic link")),
        _ => return Err(FileError::Permission),
    }
    // Whoever may not write the file may not replace it either.
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | SAFE;
    let held = rustix::fs::openat(&dir, name, flags, Mode::empty()).map_err(error)?;
    let stat = rustix::fs::fstat(&held).map_err(error)?;
    if metadata(&stat).kind != FileKind::File || stat.st_nlink > 1 {
        // The file has other names, which would keep the old content.
        return Ok(Opened::InPlace("it has other names"));
    }
    lock_for_writing(held.as_fd())?;
    match create(dir, name, may_replace, Some(held)) {
        Ok((fd, unpublished)) if keep_attributes(&fd, &stat) => Ok(Opened::Aside(fd, unpublished)),
        Ok(_) => Ok(Opened::InPlace("its owner or group could not be kept")),
        Err(_) => Ok(Opened::InPlace("its directory takes no new file")),
    }
}

fn create(
    dir: OwnedFd,
    name: &str,
    replaces: bool,
    old: Option<OwnedFd>,
) -> Result<(OwnedFd, Unpublished), FileError> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | SAFE;
    let mut number = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), name);
    for _ in 0..TRIES {
        let temporary = format!("{PREFIX}{number:016x}");
        number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
        let fd = match rustix::fs::openat(&dir, &temporary, flags, Mode::from_raw_mode(0o666)) {
            Ok(fd) => fd,
            Err(Errno::EXIST | Errno::INTR) => continue,
            Err(errno) => return Err(error(errno)),
        };
        let locked = rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive);
        let linked = rustix::fs::fstat(&fd).is_ok_and(|stat| stat.st_nlink > 0);
        if locked == Err(Errno::WOULDBLOCK) || !linked {
            // Somebody who cleans up was faster.
            continue;
        }
        let name = name.to_owned();
        return Ok((fd, Unpublished { dir, temporary, name, replaces, _old: old, published: false }));
    }
    Err(FileError::Io)
}

/// Gives the new file the owner, group and permissions of the old one; false when that is not possible. A group that cannot be kept does
/// no harm where it has no part in who may do what.
fn keep_attributes(fd: &OwnedFd, old: &Stat) -> bool {
    let Ok(new) = rustix::fs::fstat(fd) else { return false };
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid) {
        let owner = rustix::fs::Uid::from_raw(old.st_uid);
        let group = rustix::fs::Gid::from_raw(old.st_gid);
        let keeps_owner = new.st_uid == old.st_uid;
        if rustix::fs::fchown(fd, Some(owner), Some(group)).is_err()
            && !(keeps_owner && is_group_idle(old.st_mode))
        {
            return false;
        }
    }
    rustix::fs::fchmod(fd, Mode::from_raw_mode(old.st_mode & 0o7777)).is_ok()
}

/// Whether a file's group may do exactly what all others may, and who runs the file does not become its group: then any group will do.
fn is_group_idle(mode: u32) -> bool {
    mode >> 3 & 0o7 == mode & 0o7 && mode & 0o2000 == 0
}

/// Locks a file against other writers, here and in other servers; where the file system has no locks there is none.
pub(super) fn lock_for_writing(fd: BorrowedFd<'_>) -> Result<(), FileError> {
    match rustix::fs::flock(fd, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(FileError::Busy),
        _ => Ok(()),
    }
}

impl Unpublished {
    /// Gives the file its name. `whole`: it may take the place of the old one.
    pub(super) fn publish(mut self, whole: bool) -> Result<(), FileError> {
        let Unpublished { dir, temporary, name, .. } = &self;
        let result = if whole && self.replaces {
            rustix::fs::renameat(dir, temporary, dir, name)
        } else {
            match rustix::fs::renameat_with(dir, temporary, dir, name, RenameFlags::NOREPLACE) {
                // A file system that cannot do this: a second name does the same.
                Err(Errno::INVAL | Errno::NOSYS) => {
                    rustix::fs::linkat(dir, temporary, dir, name, AtFlags::empty())
                        .and_then(|()| rustix::fs::unlinkat(dir, temporary, AtFlags::empty()))
                }
                result => result,
            }
        };
        self.published = result.is_ok();
        result.map_err(error)
    }
}

impl Drop for Unpublished {
    fn drop(&mut self) {
        if !self.published {
            // If it cannot be removed now, it is when a server starts.
            let _ = rustix::fs::unlinkat(&self.dir, &self.temporary, AtFlags::empty());
        }
    }
}

/// Removes the file `name` of `dir` if it was under way in a server that is no more.
pub(super) fn remove_if_stale(dir: impl AsFd, name: &str) {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | SAFE;
    let Ok(fd) = rustix::fs::openat(&dir, name, flags, Mode::empty()) else { return };
    let regular = rustix::fs::fstat(&fd).is_ok_and(|stat| metadata(&stat).kind == FileKind::File);
    if regular && rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive).is_ok() {
        // Somebody else may have been faster.
        let _ = rustix::fs::unlinkat(&dir, name, AtFlags::empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_idle_where_it_may_do_what_all_may() {
        for mode in [0o644, 0o666, 0o600, 0o755, 0o100_644, 0o4755] {
            assert!(is_group_idle(mode), "{mode:o}");
        }
        for mode in [0o640, 0o664, 0o660, 0o604, 0o750, 0o2755] {
            assert!(!is_group_idle(mode), "{mode:o}");
        }
    }
}
