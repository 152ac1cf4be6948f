//! The queue of readiness events: one entry per socket, its bits the union of what happened.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use linerate_transport::Ready;

/// A socket's slot, by kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Slot {
    Listener(u32),
    Conn(u32),
    Udp(u32),
}

/// A [`Slot`] in four bytes. No table has 2^30 slots.
#[derive(Clone, Copy)]
struct Entry(u32);

const KIND: u32 = 30;

impl From<Slot> for Entry {
    fn from(slot: Slot) -> Entry {
        match slot {
            Slot::Listener(index) => Entry(index),
            Slot::Conn(index) => Entry(1 << KIND | index),
            Slot::Udp(index) => Entry(2 << KIND | index),
        }
    }
}

impl From<Entry> for Slot {
    fn from(Entry(bits): Entry) -> Slot {
        let index = bits & ((1 << KIND) - 1);
        match bits >> KIND {
            0 => Slot::Listener(index),
            1 => Slot::Conn(index),
            _ => Slot::Udp(index),
        }
    }
}

#[derive(Clone, Copy, Default)]
struct State {
    bits: Ready,
    queued: bool,
}

/// The queue. A slot has at most one entry over all its generations, so the queue never grows beyond the slots.
pub(crate) struct ReadyQueue {
    order: VecDeque<Entry>,
    listeners: Box<[State]>,
    conns: Box<[State]>,
    udp: Box<[State]>,
}

impl ReadyQueue {
    /// Room for so many sockets of each kind.
    pub(crate) fn new(listeners: usize, conns: usize, udp: usize) -> Self {
        let states = |count| alloc::vec![State::default(); count].into_boxed_slice();
        ReadyQueue {
            order: VecDeque::with_capacity(listeners + conns + udp),
            listeners: states(listeners),
            conns: states(conns),
            udp: states(udp),
        }
    }

    fn state(&mut self, slot: Slot) -> Option<&mut State> {
        match slot {
            Slot::Listener(index) => self.listeners.get_mut(index as usize),
            Slot::Conn(index) => self.conns.get_mut(index as usize),
            Slot::Udp(index) => self.udp.get_mut(index as usize),
        }
    }

    /// Adds bits to the event of a socket.
    pub(crate) fn raise(&mut self, slot: Slot, bits: Ready) {
        if bits.is_empty() {
            return;
        }
        let Some(state) = self.state(slot) else { return };
        state.bits |= bits;
        if !state.queued {
            state.queued = true;
            self.order.push_back(slot.into());
        }
    }

    /// Forgets what happened to a socket that is gone. Its entry is skipped later.
    pub(crate) fn clear(&mut self, slot: Slot) {
        if let Some(state) = self.state(slot) {
            state.bits = Ready::NONE;
        }
    }

    /// Whether nothing is queued; entries of sockets that are gone count until they are skipped.
    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The next socket with something to tell, and what.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Slot, Ready)> {
        while let Some(entry) = self.order.pop_front() {
            let slot = Slot::from(entry);
            let Some(state) = self.state(slot) else { continue };
            state.queued = false;
            let bits = core::mem::take(&mut state.bits);
            if !bits.is_empty() {
                return Some((slot, bits));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_coalesced_and_forgotten_with_their_socket() {
        let mut queue = ReadyQueue::new(1, 2, 1);
        queue.raise(Slot::Conn(1), Ready::READABLE);
        queue.raise(Slot::Udp(0), Ready::READABLE);
        queue.raise(Slot::Conn(1), Ready::WRITABLE);
        queue.raise(Slot::Conn(0), Ready::CLOSED);
        queue.raise(Slot::Conn(0), Ready::NONE);
        queue.raise(Slot::Conn(77), Ready::CLOSED);
        queue.clear(Slot::Conn(0));
        assert_eq!(queue.pop(), Some((Slot::Conn(1), Ready::READABLE | Ready::WRITABLE)));
        assert_eq!(queue.pop(), Some((Slot::Udp(0), Ready::READABLE)));
        assert_eq!(queue.pop(), None);
        for _ in 0..100 {
            queue.raise(Slot::Conn(0), Ready::READABLE);
            queue.clear(Slot::Conn(0));
        }
        queue.raise(Slot::Conn(0), Ready::SENT);
        assert_eq!(queue.order.len(), 1, "one entry per slot, however often it is used again");
        assert_eq!(queue.pop(), Some((Slot::Conn(0), Ready::SENT)));
    }
}
