//! What can be read or written at once, without waiting for a disk: pieces in the page cache, and file systems that are
//! memory.

use super::root::error;
use super::table::{Content, OpenFile};
use crate::mailbox::lock;
use crate::pipe::Pipe;
use linerate_transport::{FileError, Parcel};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::{Errno, ReadWriteFlags};
use std::io::IoSliceMut;
use std::sync::atomic::{AtomicU8, Ordering};

/// `TMPFS_MAGIC` and `RAMFS_MAGIC` of linux/magic.h.
const MEMORY_MAGICS: [u32; 2] = [0x0102_1994, 0x8584_58f6];

/// Where a file system keeps a file, as far as it is known.
#[derive(Debug, Default)]
pub(super) struct Medium(AtomicU8);

/// Nothing is known yet.
const UNKNOWN: u8 = 0;
/// It is memory (tmpfs, ramfs). It may be swapped out, but so may we.
const MEMORY: u8 = 1;
/// Not memory. Whether it tells what is in the page cache is not known, or it does.
const DISK: u8 = 2;
/// Not memory, and it cannot tell.
const MUTE: u8 = 3;

impl Medium {
    /// Whether all of it can be read at once, or nothing ever; `None` when each piece has to be asked for.
    pub(super) fn is_always_resident(&self) -> Option<bool> {
        match self.0.load(Ordering::Relaxed) {
            MEMORY => Some(true),
            MUTE => Some(false),
            _ => None,
        }
    }

    /// As on a disk that tells nothing.
    #[cfg(test)]
    pub(super) fn mute(&self) {
        self.0.store(MUTE, Ordering::Relaxed);
    }

    /// Whether the file is in memory and nowhere else.
    fn is_memory(&self, fd: BorrowedFd<'_>) -> bool {
        match self.0.load(Ordering::Relaxed) {
            UNKNOWN => {}
            known => return known == MEMORY,
        }
        let is_memory =
            rustix::fs::fstatfs(fd).is_ok_and(|system| MEMORY_MAGICS.contains(&(system.f_type as u32)));
        self.0.store(if is_memory { MEMORY } else { DISK }, Ordering::Relaxed);
        is_memory
    }

    /// Reads what needs no waiting. `AGAIN`: the disk comes first; `OPNOTSUPP`: nobody can tell.
    pub(super) fn read(&self, fd: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
        // A negative offset means the position of the descriptor.
        if i64::try_from(offset).is_err() {
            return Err(Errno::INVAL);
        }
        match self.0.load(Ordering::Relaxed) {
            MEMORY => return rustix::io::pread(fd, buffer, offset),
            MUTE => return Err(Errno::OPNOTSUPP),
            _ => {}
        }
        match rustix::io::preadv2(fd, &mut [IoSliceMut::new(buffer)], offset, ReadWriteFlags::NOWAIT) {
            // tmpfs has no such flag.
            Err(Errno::OPNOTSUPP) if self.is_memory(fd) => rustix::io::pread(fd, buffer, offset),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                self.0.store(MUTE, Ordering::Relaxed);
                Err(Errno::OPNOTSUPP)
            }
            result => result,
        }
    }
}

/// How far reading at once got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reach {
    /// All that the file has of it.
    Whole,
    /// The rest has to wait: for the disk, or for who tells of an error.
    Part,
}

impl OpenFile {
    /// Whether reading at once is worth a try.
    pub(super) fn reads_now(&self) -> bool {
        matches!(self.content, Content::Fd(_)) && self.medium.is_always_resident() != Some(false)
    }

    /// Reads what is in memory of the piece at `offset`; `done` counts its bytes.
    pub(super) fn read_now(&self, buffer: &mut [u8], offset: u64, done: &mut usize) -> Reach {
        let Content::Fd(fd) = &self.content else { return Reach::Part };
        while *done < buffer.len() {
            let Some(at) = offset.checked_add(*done as u64) else { return Reach::Part };
            match self.medium.read(fd.as_fd(), &mut buffer[*done..], at) {
                Ok(0) => break,
                Ok(count) => *done += count,
                Err(Errno::INTR) => {}
                Err(_) => return Reach::Part,
            }
        }
        Reach::Whole
    }

    /// Whether bytes may be written without waiting: see [`OpenFile::write_now`].
    pub(crate) fn takes_now(&self) -> bool {
        let Content::Fd(fd) = &self.content else { return false };
        self.writable
            && self.medium.is_memory(fd.as_fd())
            && lock(&self.late_error).is_none()
            && !self.is_busy()
    }

    /// Writes what a transport took, behind no write that failed.
    pub(super) fn take_parcel(&self, offset: u64, parcel: Parcel) -> Result<(), FileError> {
        if let Some(error) = *lock(&self.late_error) {
            return Err(error);
        }
        // Of another transport than those here.
        let Some(mut pipe) = parcel.into_content::<Pipe>() else { return Err(FileError::Io) };
        self.take_from(&mut pipe, offset).1.map_or(Ok(()), Err)
    }

    /// Takes all that waits in a pipe; returns how many bytes, and why not all. It may wait, unless [`OpenFile::takes_now`].
    pub(crate) fn take_from(&self, pipe: &mut Pipe, offset: u64) -> (usize, Option<FileError>) {
        let Content::Fd(fd) = &self.content else { return (0, Some(FileError::Io)) };
        let (mut at, mut done) = (offset, 0);
        while !pipe.is_empty() {
            let errno = match pipe.drain(fd.as_fd(), &mut at) {
                Ok(count) if count > 0 => {
                    done += count;
                    continue;
                }
                Ok(_) => Errno::IO,
                Err(Errno::INTR) => continue,
                Err(errno) => errno,
            };
            self.record_error(error(errno));
            return (done, Some(error(errno)));
        }
        (done, None)
    }

    /// Writes to a file that is memory; returns how many bytes. Elsewhere a journal, or too many pages that wait for the
    /// disk, can hold up any write.
    pub(super) fn write_now(&self, offset: u64, data: &[u8]) -> usize {
        let Content::Fd(fd) = &self.content else { return 0 };
        if !self.writable || !self.medium.is_memory(fd.as_fd()) || lock(&self.late_error).is_some() {
            return 0;
        }
        rustix::io::pwrite(fd, data, offset).unwrap_or(0)
    }

    /// As on a disk that tells nothing.
    #[cfg(test)]
    pub(crate) fn mute(&self) {
        self.medium.mute();
    }

    /// Whether an operation submitted earlier is not finished.
    pub(super) fn is_busy(&self) -> bool {
        lock(&self.queue).busy
    }
}
