//! Waiting for a few descriptors at once, to the nanosecond.

use rustix::event::{Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::time::Duration;

pub use rustix::event::{PollFd, PollFlags};

/// Waits until one of `fds` is ready or `timeout` is over (`None`: however long it takes); returns how many are ready.
/// What they are ready for is in [`PollFd::revents`]; errors and hang-ups are always reported.
///
/// A signal ends the wait with 0, so that the caller looks at its signals and its clock.
pub fn wait(fds: &mut [PollFd<'_>], timeout: Option<Duration>) -> io::Result<usize> {
    // A duration beyond what the system call takes is as good as for ever.
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    match poll(fds, timeout.as_ref()) {
        Ok(ready) => Ok(ready),
        Err(Errno::INTR) => {
            fds.iter_mut().for_each(PollFd::clear_revents);
            Ok(0)
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn tells_which_one_is_ready() {
        let (a, _keep) = UnixStream::pair().unwrap();
        let (b, mut other) = UnixStream::pair().unwrap();
        let mut fds = [PollFd::new(&a, PollFlags::IN), PollFd::new(&b, PollFlags::IN)];
        assert_eq!(wait(&mut fds, Some(Duration::ZERO)).unwrap(), 0);
        assert_eq!(wait(&mut fds, Some(Duration::from_nanos(1))).unwrap(), 0);
        other.write_all(b"x").unwrap();
        assert_eq!(wait(&mut fds, None).unwrap(), 1);
        assert!(fds[0].revents().is_empty());
        assert_eq!(fds[1].revents(), PollFlags::IN);
        drop(other);
        assert_eq!(wait(&mut fds, Some(Duration::MAX)).unwrap(), 1);
        assert!(fds[1].revents().contains(PollFlags::HUP));
    }
}
