//! The memory of a connection's queues, for the next one: most connections need the same little of it, and those that come and go, or fall
//! asleep and wake up, need it each time.

use super::connection::Packet;
use super::departures::Departure;
use super::send_queue::Item;
use alloc::collections::VecDeque;
use linerate_nic::Slice;

/// Entries that a queue may have room for to keep its memory: what a short exchange needs.
const MOST: usize = 8;

/// Empties a queue; its memory stays where it is little.
pub(super) fn empty<T>(queue: &mut VecDeque<T>) {
    if queue.capacity() > MOST {
        *queue = VecDeque::new();
    } else {
        queue.clear();
    }
}

/// Empty queues.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    pub(super) sending: VecDeque<Item>,
    pub(super) departures: VecDeque<Departure>,
    pub(super) in_device: VecDeque<Packet>,
    pub(super) received: VecDeque<Slice>,
}

impl Queues {
    /// Bytes that they take elsewhere.
    pub(crate) fn bytes(&self) -> usize {
        self.sending.capacity() * size_of::<Item>()
            + self.departures.capacity() * size_of::<Departure>()
            + self.in_device.capacity() * size_of::<Packet>()
            + self.received.capacity() * size_of::<Slice>()
    }
}

/// What is left of a queue that is not needed any more: nothing in it, and memory where it is little.
pub(super) fn left_of<T>(queue: &mut VecDeque<T>) -> VecDeque<T> {
    empty(queue);
    core::mem::take(queue)
}

/// A queue that has no memory gets this.
pub(super) fn lend<T>(queue: &mut VecDeque<T>, spare: VecDeque<T>) {
    if queue.capacity() == 0 {
        *queue = spare;
    }
}
