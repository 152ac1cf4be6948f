//! Queues of slots as linked lists through fixed arrays: connections that wait for a neighbour, and those that may give way.

use alloc::boxed::Box;

const END: u32 = u32::MAX;

/// The lists. A slot is in one list at most; joining and leaving are O(1), and nothing is allocated later.
pub(crate) struct Lists {
    ends: Box<[Ends]>,
    links: Box<[Link]>,
}

#[derive(Clone, Copy)]
struct Ends {
    first: u32,
    last: u32,
}

#[derive(Clone, Copy)]
struct Link {
    list: u32,
    previous: u32,
    next: u32,
}

const EMPTY: Ends = Ends { first: END, last: END };
const FREE: Link = Link { list: END, previous: END, next: END };

impl Lists {
    /// So many lists for so many slots.
    pub(crate) fn new(lists: usize, slots: usize) -> Self {
        Lists {
            ends: alloc::vec![EMPTY; lists].into_boxed_slice(),
            links: alloc::vec![FREE; slots].into_boxed_slice(),
        }
    }

    /// Puts a slot at the end of a list (and takes it out of another).
    pub(crate) fn join(&mut self, list: u32, slot: u32) {
        self.leave(slot);
        let (Some(ends), Some(link)) = (self.ends.get_mut(list as usize), self.links.get_mut(slot as usize))
        else {
            return;
        };
        *link = Link { list, previous: ends.last, next: END };
        let before = core::mem::replace(&mut ends.last, slot);
        match self.links.get_mut(before as usize) {
            Some(before) => before.next = slot,
            None => ends.first = slot,
        }
    }

    /// Takes a slot out of the list that it is in, if any.
    pub(crate) fn leave(&mut self, slot: u32) {
        let Some(link) = self.links.get_mut(slot as usize) else { return };
        let Link { list, previous, next } = core::mem::replace(link, FREE);
        let Some(ends) = self.ends.get_mut(list as usize) else { return };
        match self.links.get_mut(previous as usize) {
            Some(before) => before.next = next,
            None => ends.first = next,
        }
        match self.links.get_mut(next as usize) {
            Some(after) => after.previous = previous,
            None => ends.last = previous,
        }
    }

    /// The list that a slot is in.
    pub(crate) fn list_of(&self, slot: u32) -> Option<u32> {
        self.links.get(slot as usize).map(|link| link.list).filter(|&list| list != END)
    }

    /// The first slot of a list.
    pub(crate) fn first(&self, list: u32) -> Option<u32> {
        self.ends.get(list as usize).map(|ends| ends.first).filter(|&slot| slot != END)
    }

    /// The slot after this one in its list.
    pub(crate) fn next(&self, slot: u32) -> Option<u32> {
        self.links.get(slot as usize).map(|link| link.next).filter(|&slot| slot != END)
    }

    /// Takes the first slot out of a list.
    pub(crate) fn pop(&mut self, list: u32) -> Option<u32> {
        let first = self.first(list)?;
        self.leave(first);
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    proptest! {
        /// Against plain queues: every slot is in the list that it joined last, once, in order.
        #[test]
        fn lists_agree_with_queues(ops in proptest::collection::vec((0u32..3, 0u32..6, 0u8..4), 0..200)) {
            let mut lists = Lists::new(3, 6);
            let mut model: Vec<VecDeque<u32>> = alloc::vec![VecDeque::new(); 3];
            for (list, slot, op) in ops {
                match op {
                    0 => prop_assert_eq!(lists.pop(list), model[list as usize].pop_front()),
                    1 => {
                        lists.leave(slot);
                        model.iter_mut().for_each(|list| list.retain(|&s| s != slot));
                    }
                    _ => {
                        lists.join(list, slot);
                        model.iter_mut().for_each(|list| list.retain(|&s| s != slot));
                        model[list as usize].push_back(slot);
                    }
                }
                for (list, model) in model.iter().enumerate() {
                    let walk = core::iter::successors(lists.first(list as u32), |&slot| lists.next(slot));
                    prop_assert_eq!(&walk.collect::<VecDeque<u32>>(), model);
                }
                for slot in 0..6 {
                    let list = model.iter().position(|list| list.contains(&slot));
                    prop_assert_eq!(lists.list_of(slot), list.map(|list| list as u32));
                }
            }
        }
    }
}
