//! A round of connections that have something to do: each is in it once at most.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

/// The round. Its memory is taken when it is made; a slot that is used again never has a second place in it.
pub(crate) struct Ring {
    order: VecDeque<u32>,
    queued: Box<[bool]>,
}

impl Ring {
    /// A round for so many slots.
    pub(crate) fn new(slots: usize) -> Self {
        Ring { order: VecDeque::with_capacity(slots), queued: alloc::vec![false; slots].into_boxed_slice() }
    }

    /// Puts a slot at the end, if it is not in the round yet.
    pub(crate) fn push(&mut self, slot: u32) {
        if let Some(queued) = self.queued.get_mut(slot as usize)
            && !core::mem::replace(queued, true)
        {
            self.order.push_back(slot);
        }
    }

    /// Puts a slot back to the front, because its turn was cut short.
    pub(crate) fn push_front(&mut self, slot: u32) {
        if let Some(queued) = self.queued.get_mut(slot as usize)
            && !core::mem::replace(queued, true)
        {
            self.order.push_front(slot);
        }
    }

    /// Takes the slot whose turn it is.
    pub(crate) fn pop(&mut self) -> Option<u32> {
        let slot = self.order.pop_front()?;
        self.queued[slot as usize] = false;
        Some(slot)
    }

    /// Slots in the round.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_has_one_place() {
        let mut ring = Ring::new(3);
        for slot in [1, 0, 1, 2, 0, 9] {
            ring.push(slot);
        }
        assert_eq!(ring.len(), 3);
        assert_eq!(ring.pop(), Some(1));
        ring.push_front(1);
        ring.push_front(2);
        assert_eq!([ring.pop(), ring.pop(), ring.pop(), ring.pop()], [Some(1), Some(0), Some(2), None]);
    }
}
