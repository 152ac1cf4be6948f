//! A round of connections that have something to do: each is in it once at most.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

/// How a slot stands to the round.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It has none.
    Out,
    /// Its turn will come.
    In,
    /// It has one that it gave up.
    GivenUp,
}

/// The round. Its memory is taken when it is made; a slot that is used again never has a second place in it.
pub(crate) struct Ring {
    order: VecDeque<u32>,
    places: Box<[Place]>,
    /// Slots whose turn will come.
    len: usize,
}

impl Ring {
    /// A round for so many slots.
    pub(crate) fn new(slots: usize) -> Self {
        let places = alloc::vec![Place::Out; slots].into_boxed_slice();
        Ring { order: VecDeque::with_capacity(slots), places, len: 0 }
    }

    /// Puts a slot at the end, if it is not in the round yet. One that gave its place up gets it back.
    pub(crate) fn push(&mut self, slot: u32) {
        if self.enter(slot) == Some(Place::Out) {
            self.order.push_back(slot);
        }
    }

    /// Puts a slot back to the front, because its turn was cut short.
    pub(crate) fn push_front(&mut self, slot: u32) {
        if self.enter(slot) == Some(Place::Out) {
            self.order.push_front(slot);
        }
    }

    /// Notes that a slot is in the round; how it was before.
    fn enter(&mut self, slot: u32) -> Option<Place> {
        let place = self.places.get_mut(slot as usize)?;
        self.len += usize::from(*place != Place::In);
        Some(core::mem::replace(place, Place::In))
    }

    /// Takes a slot out, if it is in.
    pub(crate) fn remove(&mut self, slot: u32) {
        if let Some(place) = self.places.get_mut(slot as usize)
            && *place == Place::In
        {
            *place = Place::GivenUp;
            self.len -= 1;
        }
    }

    /// Takes the slot whose turn it is.
    pub(crate) fn pop(&mut self) -> Option<u32> {
        loop {
            let slot = self.order.pop_front()?;
            if core::mem::replace(&mut self.places[slot as usize], Place::Out) == Place::In {
                self.len -= 1;
                return Some(slot);
            }
        }
    }

    /// Slots in the round.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

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

    proptest! {
        /// Against a plain queue; but a slot that was taken out and comes again may come earlier than at its end.
        #[test]
        fn each_slot_has_one_turn(ops in proptest::collection::vec((0u32..4, 0u8..5), 0..200)) {
            let mut ring = Ring::new(4);
            let mut model: Vec<u32> = Vec::new();
            for (slot, op) in ops {
                match op {
                    0 => match ring.pop() {
                        Some(slot) => {
                            let at = model.iter().position(|known| *known == slot);
                            prop_assert!(at.is_some(), "slot {} was not in", slot);
                            model.remove(at.unwrap());
                        }
                        None => prop_assert!(model.is_empty()),
                    },
                    1 => {
                        ring.remove(slot);
                        model.retain(|known| *known != slot);
                    }
                    2 => {
                        ring.push_front(slot);
                        if !model.contains(&slot) {
                            model.push(slot);
                        }
                    }
                    _ => {
                        ring.push(slot);
                        if !model.contains(&slot) {
                            model.push(slot);
                        }
                    }
                }
                prop_assert_eq!(ring.len(), model.len());
                prop_assert!(ring.order.len() <= 4, "more places than slots");
            }
        }
    }
}
