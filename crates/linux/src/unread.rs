//! Writing to a descriptor whose reader may be slow, or not there.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::{Errno, retry_on_intr, write};
use std::os::fd::{AsFd, BorrowedFd};

/// What can be written without waiting where the descriptor says that there is room (POSIX: `PIPE_BUF`).
const PIECE: usize = 4_096;

/// Writes as much as the descriptor takes without waiting, and says how many bytes that are. All of them count as taken when it
/// fails for good: its reader has gone, the disk is full.
pub fn write_without_waiting(fd: impl AsFd, bytes: &[u8]) -> usize {
    let fd = fd.as_fd();
    // Files never wait for a reader.
    let is_file =
        fstat(fd).is_ok_and(|status| FileType::from_raw_mode(status.st_mode) == FileType::RegularFile);
    let piece = if is_file { bytes.len() } else { PIECE };
    let mut taken = 0;
    while taken < bytes.len() && (is_file || has_room(fd)) {
        let end = bytes.len().min(taken + piece);
        match retry_on_intr(|| write(fd, &bytes[taken..end])) {
            Ok(count) => taken += count,
            Err(Errno::AGAIN) => break,
            Err(_) => return bytes.len(),
        }
    }
    taken
}

fn has_room(fd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::OUT)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    // Hung up counts: the write says that it fails.
    !matches!(retry_on_intr(|| poll(&mut fds, Some(&at_once))), Ok(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, memfd_create};
    use std::io::{Read as _, Seek as _};

    #[test]
    fn a_full_pipe_takes_no_more_and_an_emptied_one_does() {
        let (mut reader, writer) = std::io::pipe().expect("a pipe");
        let bytes: Vec<u8> = (0..300_000).map(|n| n as u8).collect();
        let first = write_without_waiting(&writer, &bytes);
        assert!(first >= PIECE && first < bytes.len(), "{first}");
        assert_eq!(write_without_waiting(&writer, &bytes[first..]), 0);
        let mut got = vec![0; first];
        reader.read_exact(&mut got).expect("what was written");
        let second = write_without_waiting(&writer, &bytes[first..]);
        let mut rest = vec![0; second];
        reader.read_exact(&mut rest).expect("what was written");
        got.extend(rest);
        assert_eq!(got, bytes[..first + second]);
        // Nobody will ever read it.
        drop(reader);
        assert_eq!(write_without_waiting(&writer, &bytes), bytes.len());
    }

    #[test]
    fn a_file_takes_everything() {
        let file = memfd_create("file", MemfdFlags::CLOEXEC).expect("a file");
        let bytes = [7; 3 * PIECE + 1];
        assert_eq!(write_without_waiting(&file, &bytes), bytes.len());
        let (mut file, mut got) = (std::fs::File::from(file), Vec::new());
        file.rewind().expect("it goes back");
        file.read_to_end(&mut got).expect("what was written");
        assert_eq!(got, bytes);
    }
}
