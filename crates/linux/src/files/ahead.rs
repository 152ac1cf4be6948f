//! Reading ahead: pieces of files that are to be in the page cache when they are sent.
//!
//! They are read one behind the other, so that the system reads ahead of us as of everybody who does: by its own measure, and in
//! large folios. What it is advised to read (`POSIX_FADV_WILLNEED`) it reads page by page, which costs twice the processor time.

use super::table::{Content, OpenFile};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Bytes copied at a time, where nothing else is left.
const SCRATCH_LEN: usize = 128 << 10;

/// Where bytes go that are only read to be in memory.
#[derive(Debug)]
pub(super) struct Sink {
    /// `/dev/null`: what is sent there is waited for, but not copied.
    null: Option<OwnedFd>,
    scratch: Vec<u8>,
}

impl Sink {
    /// One for a thread.
    pub(super) fn new() -> Sink {
        let null = rustix::fs::open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
        Sink { null: null.ok(), scratch: Vec::new() }
    }

    /// Brings a piece of a file into the page cache, and waits for it.
    pub(super) fn read_ahead(&mut self, file: &OpenFile, offset: u64, len: u64) {
        let Content::Fd(fd) = &file.content else { return };
        if i64::try_from(offset.saturating_add(len)).is_err() {
            // No file is that long; the system would say so with the error that is understood otherwise below.
            return;
        }
        let mut done = 0;
        while done < len {
            match self.take(fd.as_fd(), offset.saturating_add(done), len - done) {
                Ok(count) if count > 0 => done += count as u64,
                Err(Errno::INTR) => {}
                // Not every file system hands pages on.
                Err(Errno::INVAL | Errno::NOSYS) if self.null.is_some() => self.null = None,
                // The end, or an error: who sends the piece will meet it.
                _ => return,
            }
        }
    }

    fn take(&mut self, fd: BorrowedFd<'_>, offset: u64, len: u64) -> Result<usize, Errno> {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        if let Some(null) = &self.null {
            let mut at = offset;
            return rustix::fs::sendfile(null, fd, Some(&mut at), len);
        }
        self.scratch.resize(SCRATCH_LEN, 0);
        let len = len.min(SCRATCH_LEN);
        rustix::io::pread(fd, &mut self.scratch[..len], offset)
    }
}

#[cfg(test)]
mod tests {
    use super::Sink;
    use crate::files::table::{Content, OpenFile};
    use crate::files::tests::TempDir;

    /// Whether a byte of the file can be read without waiting for a disk; `None` where nobody can tell.
    fn lies_in_memory(file: &std::fs::File, offset: u64) -> Option<bool> {
        let mut byte = [0];
        let mut slices = [std::io::IoSliceMut::new(&mut byte)];
        match rustix::io::preadv2(file, &mut slices, offset, rustix::io::ReadWriteFlags::NOWAIT) {
            Ok(count) => Some(count == 1),
            Err(rustix::io::Errno::AGAIN) => Some(false),
            Err(_) => None,
        }
    }

    #[test]
    fn a_piece_is_in_memory_afterwards_with_and_without_a_place_to_send_it() {
        for with_null in [true, false] {
            let dir = TempDir::new();
            let (path, len) = (dir.0.join("cold"), 3 << 20);
            std::fs::write(&path, vec![7; len]).unwrap();
            let file = std::fs::File::open(&path).unwrap();
            file.sync_all().unwrap();
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
            let opened = OpenFile::new(Content::Fd(file.try_clone().unwrap().into()), false);
            let mut sink = Sink::new();
            assert!(sink.null.is_some());
            if !with_null {
                sink.null = None;
            }
            sink.read_ahead(&opened, 1 << 20, 1 << 20);
            assert_eq!(sink.scratch.is_empty(), with_null);
            for at in (1 << 20..2 << 20).step_by(4096) {
                assert_ne!(lies_in_memory(&file, at), Some(false), "{at}");
            }
            // Beyond the end, and where no offset can be: nothing happens, and it comes back.
            sink.read_ahead(&opened, len as u64 - 5, 1 << 20);
            sink.read_ahead(&opened, 1 << 40, 1);
            sink.read_ahead(&opened, u64::MAX, 1);
            assert_eq!(sink.null.is_some(), with_null);
        }
    }
}
