//! A pipe that received bytes go through on their way to a file: the kernel hands its pages on, and only the file system copies.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, retry_on_intr};
use rustix::pipe::{PipeFlags, SpliceFlags};

/// Most bytes that go through at once. Each call costs, and each takes a window's acknowledgement.
pub(crate) const LEN: usize = 1 << 20;

/// A pipe, empty between two calls.
#[derive(Debug)]
pub(crate) struct Pipe {
    output: OwnedFd,
    input: OwnedFd,
}

impl Pipe {
    /// Makes one.
    pub(crate) fn new() -> Result<Pipe, Errno> {
        let (output, input) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // A user may have so many pages in pipes: a shorter one does the same in more calls.
        let _ = rustix::pipe::fcntl_setpipe_size(&input, LEN);
        Ok(Pipe { output, input })
    }

    /// Takes what a socket has, up to `len` bytes; 0 at its end.
    pub(crate) fn fill(&self, socket: BorrowedFd<'_>, len: usize) -> Result<usize, Errno> {
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        retry_on_intr(|| rustix::pipe::splice(socket, None, &self.input, None, len, flags))
    }

    /// Where it comes out.
    pub(crate) fn output(&self) -> BorrowedFd<'_> {
        self.output.as_fd()
    }
}
