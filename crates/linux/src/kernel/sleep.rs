//! Sleeping on kernel sockets and on what else a loop waits for by one system call, whose events the next turn then has already.

use super::KernelTransport;
use super::hub::{Kind, parse_event_data};
use crate::slab::Key;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use rustix::io::Errno;
use std::time::Duration;

/// What tells them from the mailbox of read-aheads.
const GENERATION: u32 = 1;

/// Descriptors of others in the epoll set.
#[derive(Debug, Default)]
pub(crate) struct Guests {
    /// Their numbers, as they were given.
    numbers: Vec<RawFd>,
    /// Copies, by which they are taken out again: nobody says when the others are closed.
    copies: Vec<OwnedFd>,
}

impl KernelTransport {
    /// Sleeps until a socket has something to do in the next turn, one of `others` can be read, or the time is over; which of these can is told as
    /// bits, the first one the lowest. A signal ends the sleep.
    ///
    /// To be used in place of waiting for the descriptor of the transport. While one of `others` is open it is the same one by its number.
    ///
    /// # Errors
    /// The system's, where it has no descriptor or memory left for `others`.
    pub fn sleep(&mut self, others: &[BorrowedFd<'_>], timeout: Option<Duration>) -> std::io::Result<u32> {
        if !self.guests.numbers.iter().copied().eq(others.iter().map(AsRawFd::as_raw_fd)) {
            self.invite(others)?;
        }
        self.watch_accepted(true);
        if self.is_woken && self.edges.iter().any(|edge| guest(edge).is_none()) {
            // What ended the last sleep is not worked on yet, and no edge comes twice.
            return Ok(0);
        }
        let waited = match self.wait(timeout) {
            // Before Linux 5.11 there are only milliseconds.
            Err(Errno::NOSYS) => {
                self.wait(timeout.map(|time| Duration::from_millis(time.as_micros().div_ceil(1_000) as u64)))
            }
            waited => waited,
        };
        match waited {
            Ok(()) => self.is_woken = true,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(self.edges.iter().filter_map(guest).fold(0, |all, index| all | 1 << index))
    }

    fn wait(&mut self, timeout: Option<Duration>) -> Result<(), Errno> {
        self.edges.clear();
        // A duration beyond what the system call takes is as good as for ever.
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        epoll::wait(&self.hub.epoll, spare_capacity(&mut self.edges), timeout.as_ref()).map(drop)
    }

    /// Has these in the epoll set, and none of those before.
    fn invite(&mut self, others: &[BorrowedFd<'_>]) -> std::io::Result<()> {
        let epoll = &self.hub.epoll;
        let before = std::mem::take(&mut self.guests);
        for copy in &before.copies {
            // Closing it would not do: the descriptor that it is a copy of is open. It is in the set, so that this cannot fail.
            let _ = epoll::delete(epoll, copy);
        }
        for (index, other) in others.iter().enumerate() {
            let copy = other.try_clone_to_owned()?;
            let key = Key { index: index as u32, generation: GENERATION };
            self.hub.watch(&copy, Kind::Other, key, epoll::EventFlags::IN)?;
            self.guests.copies.push(copy);
        }
        self.guests.numbers = others.iter().map(AsRawFd::as_raw_fd).collect();
        Ok(())
    }
}

/// Which of the others an edge is of; `None` if it is one of ours.
fn guest(edge: &epoll::Event) -> Option<u32> {
    match parse_event_data(edge.data) {
        (Kind::Other, key) if key.generation == GENERATION => Some(key.index),
        _ => None,
    }
}
