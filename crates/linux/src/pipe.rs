//! Pipes that received bytes go through on their way to a file: the kernel hands its pages on, and only the file system copies.

use crate::mailbox::lock;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, retry_on_intr};
use rustix::pipe::{PipeFlags, SpliceFlags};
use std::sync::{Arc, Mutex};

/// Most bytes that go through at once. Each call costs, and each takes a window's acknowledgement.
pub(crate) const LEN: usize = 1 << 20;
/// Most pipes of a pool in use at a time: a user who is not root has 64 MiB for all pipes, and each takes two descriptors.
const IN_USE_MAX: usize = 16;
/// Most unused ones kept.
const IDLE_MAX: usize = 4;

#[derive(Debug)]
struct Ends {
    output: OwnedFd,
    input: OwnedFd,
}

impl Ends {
    fn new() -> Result<Ends, Errno> {
        let (output, input) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // A user may have so many pages in pipes: a shorter one does the same in more calls.
        let _ = rustix::pipe::fcntl_setpipe_size(&input, LEN);
        Ok(Ends { output, input })
    }
}

/// The pipes of a transport.
#[derive(Debug, Default)]
pub(crate) struct PipePool(Mutex<Pipes>);

#[derive(Debug, Default)]
struct Pipes {
    idle: Vec<Ends>,
    in_use: usize,
}

impl PipePool {
    /// An empty pipe, unless too many are in use or there are no descriptors.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Pipe> {
        let mut pipes = lock(&self.0);
        if pipes.in_use >= IN_USE_MAX {
            return None;
        }
        let ends = pipes.idle.pop().map_or_else(Ends::new, Ok).ok()?;
        pipes.in_use += 1;
        Some(Pipe { ends: Some(ends), len: 0, pool: Arc::clone(self) })
    }
}

/// A pipe; it goes back to its pool when it is dropped, unless something is left in it.
#[derive(Debug)]
pub(crate) struct Pipe {
    /// Gone only in `drop`.
    ends: Option<Ends>,
    /// Bytes in it.
    len: usize,
    pool: Arc<PipePool>,
}

impl Pipe {
    /// Bytes in it.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes what a socket has, up to `len` bytes; 0 at its end.
    pub(crate) fn fill(&mut self, socket: BorrowedFd<'_>, len: usize) -> Result<usize, Errno> {
        let Some(ends) = &self.ends else { return Err(Errno::BADF) };
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        let len = len.min(LEN);
        let came = retry_on_intr(|| rustix::pipe::splice(socket, None, &ends.input, None, len, flags))?;
        self.len += came;
        Ok(came)
    }

    /// Moves some of what is in it to a file, at `offset`, which moves with it.
    pub(crate) fn drain(&mut self, file: BorrowedFd<'_>, offset: &mut u64) -> Result<usize, Errno> {
        let Some(ends) = &self.ends else { return Err(Errno::BADF) };
        let moved =
            rustix::pipe::splice(ends.output.as_fd(), None, file, Some(offset), self.len, SpliceFlags::MOVE)?;
        self.len -= moved;
        Ok(moved)
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let mut pipes = lock(&self.pool.0);
        pipes.in_use -= 1;
        if self.len == 0 && pipes.idle.len() < IDLE_MAX {
            pipes.idle.extend(self.ends.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn what_goes_in_comes_out_and_the_end_is_told() {
        let pool = Arc::new(PipePool::default());
        let (mut writer, reader) = UnixStream::pair().unwrap();
        let mut file = std::fs::File::from(
            rustix::fs::memfd_create("pipe", rustix::fs::MemfdFlags::CLOEXEC).expect("a file in memory"),
        );
        let mut pipe = pool.take().unwrap();
        reader.set_nonblocking(true).unwrap();
        assert_eq!(pipe.fill(reader.as_fd(), 10), Err(Errno::AGAIN));
        writer.write_all(b"0123456789").unwrap();
        assert_eq!(pipe.fill(reader.as_fd(), 4), Ok(4));
        assert_eq!(pipe.fill(reader.as_fd(), 100), Ok(6));
        let mut at = 3;
        while !pipe.is_empty() {
            assert!(pipe.drain(file.as_fd(), &mut at).unwrap() > 0);
        }
        assert_eq!(at, 13);
        let mut all = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut all).unwrap();
        assert_eq!(all, b"\0\0\x000123456789");
        drop(writer);
        assert_eq!(pipe.fill(reader.as_fd(), 10), Ok(0));
    }

    #[test]
    fn so_many_are_in_use_at_most_and_what_is_left_in_one_goes_with_it() {
        let pool = Arc::new(PipePool::default());
        let mut pipes: Vec<Pipe> = std::iter::from_fn(|| pool.take()).collect();
        assert_eq!(pipes.len(), IN_USE_MAX);
        let (mut writer, reader) = UnixStream::pair().unwrap();
        writer.write_all(b"left").unwrap();
        assert_eq!(pipes[0].fill(reader.as_fd(), 4), Ok(4));
        drop(pipes.remove(0));
        assert!(lock(&pool.0).idle.is_empty(), "something is left in it");
        pipes.clear();
        let idle = lock(&pool.0).idle.len();
        assert_eq!((idle, lock(&pool.0).in_use), (IDLE_MAX, 0));
        assert!(pool.take().unwrap().is_empty());
    }
}
