//! A queue from other threads to a loop, with an eventfd that wakes it.

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock; a thread that panicked while it held it left the queues behind it whole, as every change to them is
/// one call.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The queue. Its length is bounded by who sends: a message answers a request, and requests are bounded; or it is sent
/// [within](Mailbox::push_within) a bound.
#[derive(Debug)]
pub struct Mailbox<T> {
    queue: Mutex<VecDeque<T>>,
    /// Set while the eventfd is readable; changed under the lock, read without it as a hint.
    signalled: AtomicBool,
    event: OwnedFd,
}

impl<T> Mailbox<T> {
    /// An empty queue; the error is the system's when it has no file descriptor left.
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Mailbox { queue: Mutex::new(VecDeque::new()), signalled: AtomicBool::new(false), event })
    }

    /// Adds a message and wakes the loop if it was not woken yet.
    pub fn push(&self, message: T) {
        self.put(lock(&self.queue), message);
    }

    /// The same unless `most` messages wait already: then the message is dropped, and the answer is false. For what
    /// nobody has asked for, and who sent it can do without.
    pub fn push_within(&self, most: usize, message: T) -> bool {
        let queue = lock(&self.queue);
        let has_room = queue.len() < most;
        if has_room {
            self.put(queue, message);
        }
        has_room
    }

    fn put(&self, mut queue: MutexGuard<'_, VecDeque<T>>, message: T) {
        queue.push_back(message);
        if !self.signalled.swap(true, Ordering::AcqRel) {
            // Cannot fail: the counter goes from 0 to 1, far from its limit.
            let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
        }
    }

    /// Moves all messages to the end of `into` and silences the eventfd. Costs no system call when there are none.
    pub fn drain_into(&self, into: &mut VecDeque<T>) {
        if !self.signalled.load(Ordering::Acquire) {
            return;
        }
        let mut queue = lock(&self.queue);
        if self.signalled.swap(false, Ordering::AcqRel) {
            let mut count = [0; 8];
            let _ = rustix::io::read(&self.event, &mut count);
        }
        into.append(&mut queue);
    }
}

impl<T> AsFd for Mailbox<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
