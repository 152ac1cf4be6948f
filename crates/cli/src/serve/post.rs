//! What the threads of a server tell each other. There is one for each queue of its device; the first is the one that the
//! process began with.

use super::engine::Figures;
use crate::settings::Settings;
use crate::status::catalogue::{self, Tally};
use linerate_linux::mailbox::Mailbox;
use linerate_nic::DeviceError;
use linerate_serve::{Change, ftp};
use linerate_stack::{Letter, Message, Seat, To};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// Packets that may wait for another thread: as many as it takes from its device in some turns. More are dropped and counted.
const MOST_PACKETS: usize = 4_096;

/// What is told.
#[derive(Debug)]
pub enum Post {
    /// From stack to stack.
    Letter(Message),
    /// Something was changed in the files.
    Changed(Change),
    /// Take these settings.
    Reload(Arc<(Settings, Vec<ftp::User>)>),
    /// Finish what is under way.
    Drain,
    /// End. `resets`: reset what is under way.
    End {
        /// Whether anything may be under way.
        resets: bool,
    },
    /// Tell what you count.
    Ask,
    /// To the first: what this one counts.
    Told(Told),
    /// To the first: whether this one, draining, has nothing under way.
    Idle(usize, bool),
    /// To the first: the thread of this seat has ended.
    Ended(usize, Ending),
}

/// What one thread counts.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// Totals and gauges.
    pub figures: Figures,
    /// Every counter.
    pub tallies: Vec<Tally>,
}

impl Told {
    /// Adds what another one counts.
    pub fn add(&mut self, other: Told) {
        self.figures = self.figures + other.figures;
        catalogue::add(&mut self.tallies, other.tallies);
    }
}

/// How a thread ended.
#[derive(Debug)]
pub enum Ending {
    /// As it was told to.
    Done {
        /// What it had moved.
        figures: Figures,
        /// Connections that it cut off.
        cut_off: u64,
    },
    /// Its device failed.
    Failed(DeviceError),
    /// It panicked.
    Panicked,
}

/// What one thread tells others by.
#[derive(Clone, Debug)]
pub struct Outbox {
    /// Who this is.
    pub seat: Seat,
    boxes: Arc<[Mailbox<Post>]>,
}

/// One thread's end of the post.
#[derive(Debug)]
pub struct PostOffice {
    /// What it tells others by.
    pub out: Outbox,
    inbox: VecDeque<Post>,
}

impl PostOffice {
    /// The ends for so many threads.
    pub fn open(seats: u16) -> io::Result<Vec<PostOffice>> {
        let boxes = (0..seats).map(|_| Mailbox::new()).collect::<io::Result<Vec<_>>>()?;
        let boxes: Arc<[Mailbox<Post>]> = boxes.into();
        let end = |index| PostOffice {
            out: Outbox { seat: Seat { index, seats }, boxes: Arc::clone(&boxes) },
            inbox: VecDeque::new(),
        };
        Ok((0..seats).map(end).collect())
    }

    /// Who this is.
    pub fn seat(&self) -> Seat {
        self.out.seat
    }

    /// What has come, the oldest first. Costs no system call while nothing has.
    pub fn poll(&mut self) -> Option<Post> {
        if self.inbox.is_empty()
            && let Some(mailbox) = self.out.boxes.get(usize::from(self.out.seat.index))
        {
            mailbox.drain_into(&mut self.inbox);
        }
        self.inbox.pop_front()
    }
}

impl Outbox {
    /// Tells one of them.
    pub fn tell(&self, seat: usize, post: Post) {
        if let Some(mailbox) = self.boxes.get(seat) {
            mailbox.push(post);
        }
    }

    /// Tells all others.
    pub fn tell_others(&self, post: impl Fn() -> Post) {
        for seat in To::Others.seats(self.seat) {
            self.tell(usize::from(seat), post());
        }
    }

    /// Carries a letter to whom it is addressed; returns how many of them had no room for it. Packets wait within a bound: what
    /// is lost, its sender sends again.
    pub fn carry(&self, letter: Letter) -> usize {
        let Letter { to, message } = letter;
        let most = if message.is_packet() { MOST_PACKETS } else { usize::MAX };
        let mut message = Some(message);
        let mut seats = to.seats(self.seat).peekable();
        let mut refused = 0;
        while let Some(seat) = seats.next() {
            // The last one gets the message itself, which may be a packet.
            let copy = if seats.peek().is_some() { message.clone() } else { message.take() };
            let mailbox = self.boxes.get(usize::from(seat));
            if let (Some(copy), Some(mailbox)) = (copy, mailbox) {
                refused += usize::from(!mailbox.push_within(most, Post::Letter(copy)));
            }
        }
        refused
    }
}

impl AsFd for PostOffice {
    /// Becomes readable when something comes.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.out.boxes[usize::from(self.out.seat.index)].as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn post_reaches_whom_it_is_for_from_any_thread() {
        let mut ends = PostOffice::open(3).unwrap();
        let third = ends.pop().unwrap();
        std::thread::spawn(move || {
            third.out.tell_others(|| Post::Drain);
            third.out.tell(0, Post::Idle(2, true));
        })
        .join()
        .unwrap();
        assert!(matches!(ends[0].poll(), Some(Post::Drain)));
        assert!(matches!(ends[0].poll(), Some(Post::Idle(2, true))));
        assert!(ends[0].poll().is_none());
        assert!(matches!(ends[1].poll(), Some(Post::Drain)));
        assert!(ends[1].poll().is_none());
    }
}
