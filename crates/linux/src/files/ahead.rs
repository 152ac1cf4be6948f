//! Reading ahead: pieces of files that are to be in the page cache when they are sent.

use super::table::{Content, OpenFile};
use rustix::fs::Advice;
use rustix::io::{Errno, pread};
use std::num::NonZeroU64;

/// Of so many bytes one is read, to wait for them: the disk is asked for more at once, and pages that come with one request are
/// there at the same time. What comes later all the same is waited for when it is sent.
const STRIDE: u64 = 128 << 10;

/// Brings a piece of a file into the page cache, waits for it, and has the system begin with the piece behind it.
pub(super) fn read_ahead(file: &OpenFile, offset: u64, len: u64) {
    let Content::Fd(fd) = &file.content else { return };
    let end = offset.saturating_add(len);
    if len == 0 || i64::try_from(end).is_err() {
        // No file is that long; the system would say so with an error.
        return;
    }
    // Only advice: what it does not do, the reads below do.
    let _ = rustix::fs::fadvise(fd, offset, NonZeroU64::new(len.saturating_mul(2)), Advice::WillNeed);
    let mut at = offset;
    while at < end {
        // The last byte, as requests begin where pieces do.
        let last = at.saturating_add(STRIDE).min(end) - 1;
        match pread(fd, &mut [0], last) {
            Ok(1) => at = last + 1,
            Err(Errno::INTR) => {}
            // The end, or an error: who sends the piece will meet it.
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::read_ahead;
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
    fn a_piece_is_in_memory_afterwards() {
        let dir = TempDir::new();
        let (path, len) = (dir.0.join("cold"), 3 << 20);
        std::fs::write(&path, vec![7; len]).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        file.sync_all().unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        let opened = OpenFile::new(Content::Fd(file.try_clone().unwrap().into()), false);
        read_ahead(&opened, 1 << 20, 1 << 20);
        for at in (1 << 20..2 << 20).step_by(4096) {
            // One of several requests may come later.
            let comes = (0..500).any(|look| {
                if look > 0 {
                    std::thread::sleep(std::time::Duration::from_millis(2));
                }
                lies_in_memory(&file, at) != Some(false)
            });
            assert!(comes, "{at}");
        }
        // Beyond the end, and where no offset can be: nothing happens, and it comes back.
        read_ahead(&opened, len as u64 - 5, 1 << 20);
        read_ahead(&opened, 1 << 40, 1);
        read_ahead(&opened, u64::MAX, 1);
        read_ahead(&opened, 5, 0);
    }
}
