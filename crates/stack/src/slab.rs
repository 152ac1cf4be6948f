//! Slots that are used again, told apart by generation.

use alloc::vec::Vec;

/// A bounded table of values with stable slot numbers. Its memory is reserved when it is made.
pub(crate) struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: u32,
    capacity: usize,
    len: usize,
}

struct Slot<T> {
    generation: u32,
    next_free: u32,
    value: Option<T>,
}

const END: u32 = u32::MAX;

impl<T> Slab<T> {
    /// A table for `capacity` values.
    pub(crate) fn new(capacity: usize) -> Self {
        Slab { slots: Vec::with_capacity(capacity), free: END, capacity, len: 0 }
    }

    /// Values in the table.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes that the slots used so far take.
    pub(crate) fn bytes(&self) -> usize {
        self.slots.len() * core::mem::size_of::<Slot<T>>()
    }

    /// Whether no more fit.
    pub(crate) fn is_full(&self) -> bool {
        self.len >= self.capacity
    }

    /// Puts the value that `make` builds for its slot and generation; `None` when the table is full.
    pub(crate) fn insert(&mut self, make: impl FnOnce(u32, u32) -> T) -> Option<u32> {
        if self.is_full() {
            return None;
        }
        let index = if self.free == END {
            self.slots.push(Slot { generation: 0, next_free: END, value: None });
            self.slots.len() as u32 - 1
        } else {
            self.free
        };
        let slot = &mut self.slots[index as usize];
        self.free = slot.next_free;
        slot.next_free = END;
        slot.value = Some(make(index, slot.generation));
        self.len += 1;
        Some(index)
    }

    /// Takes the value of a slot; the next value there has another generation.
    pub(crate) fn remove(&mut self, index: u32) -> Option<T> {
        let slot = self.slots.get_mut(index as usize)?;
        let value = slot.value.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        slot.next_free = self.free;
        self.free = index;
        self.len -= 1;
        Some(value)
    }

    /// The value of a slot, whatever its generation.
    pub(crate) fn at(&self, index: u32) -> Option<&T> {
        self.slots.get(index as usize)?.value.as_ref()
    }

    /// The value of a slot, whatever its generation, to change.
    pub(crate) fn at_mut(&mut self, index: u32) -> Option<&mut T> {
        self.slots.get_mut(index as usize)?.value.as_mut()
    }

    /// The value that was put there in `generation`.
    pub(crate) fn find(&self, index: u32, generation: u32) -> Option<&T> {
        let slot = self.slots.get(index as usize)?;
        if slot.generation == generation { slot.value.as_ref() } else { None }
    }

    /// The value that was put there in `generation`, to change.
    pub(crate) fn find_mut(&mut self, index: u32, generation: u32) -> Option<&mut T> {
        let slot = self.slots.get_mut(index as usize)?;
        if slot.generation == generation { slot.value.as_mut() } else { None }
    }

    /// All values with their slots, for rare work (a change of addresses), never per packet.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| Some((index as u32, slot.value.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_generation_never_reaches_a_new_value() {
        let mut slab = Slab::new(2);
        let first = slab.insert(|index, generation| (index, generation)).unwrap();
        let second = slab.insert(|index, generation| (index, generation)).unwrap();
        assert!(slab.insert(|_, _| (9, 9)).is_none());
        assert_eq!(slab.remove(first), Some((0, 0)));
        assert_eq!(slab.remove(first), None);
        let again = slab.insert(|index, generation| (index, generation)).unwrap();
        assert_eq!(again, first);
        assert_eq!(slab.find(first, 0), None);
        assert_eq!(slab.find(first, 1), Some(&(0, 1)));
        assert_eq!(slab.find_mut(second, 0), Some(&mut (1, 0)));
        assert_eq!(slab.at(7), None);
        assert_eq!(slab.iter().count(), slab.len());
    }
}
