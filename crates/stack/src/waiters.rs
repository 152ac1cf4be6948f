//! Connections that wait for a neighbour to be resolved: linked lists through fixed arrays, one list per neighbour.

use alloc::boxed::Box;

const END: u32 = u32::MAX;

/// The lists. A connection is in one list at most; joining and leaving are O(1), and nothing is allocated later.
pub(crate) struct Waiters {
    heads: Box<[u32]>,
    links: Box<[Link]>,
}

#[derive(Clone, Copy)]
struct Link {
    list: u32,
    previous: u32,
    next: u32,
}

const FREE: Link = Link { list: END, previous: END, next: END };

impl Waiters {
    /// Lists for so many neighbours and connections.
    pub(crate) fn new(neighbors: usize, connections: usize) -> Self {
        Waiters {
            heads: alloc::vec![END; neighbors].into_boxed_slice(),
            links: alloc::vec![FREE; connections].into_boxed_slice(),
        }
    }

    /// Puts a connection into the list of a neighbour (and takes it out of another).
    pub(crate) fn join(&mut self, neighbor: u32, conn: u32) {
        self.leave(conn);
        let (Some(head), Some(link)) =
            (self.heads.get_mut(neighbor as usize), self.links.get_mut(conn as usize))
        else {
            return;
        };
        *link = Link { list: neighbor, previous: END, next: *head };
        if let Some(second) = self.links.get_mut(*head as usize) {
            second.previous = conn;
        }
        *head = conn;
    }

    /// Takes a connection out of the list that it is in, if any.
    pub(crate) fn leave(&mut self, conn: u32) {
        let Some(link) = self.links.get_mut(conn as usize) else { return };
        let Link { list, previous, next } = core::mem::replace(link, FREE);
        if list == END {
            return;
        }
        match self.links.get_mut(previous as usize) {
            Some(before) => before.next = next,
            None => self.heads[list as usize] = next,
        }
        if let Some(after) = self.links.get_mut(next as usize) {
            after.previous = previous;
        }
    }

    /// Whether a connection waits.
    pub(crate) fn is_waiting(&self, conn: u32) -> bool {
        self.links.get(conn as usize).is_some_and(|link| link.list != END)
    }

    /// Whether anybody waits for this neighbour.
    pub(crate) fn any(&self, neighbor: u32) -> bool {
        self.heads.get(neighbor as usize).is_some_and(|&head| head != END)
    }

    /// Takes one connection out of a neighbour's list.
    pub(crate) fn pop(&mut self, neighbor: u32) -> Option<u32> {
        let head = *self.heads.get(neighbor as usize)?;
        if head == END {
            return None;
        }
        self.leave(head);
        Some(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    proptest! {
        /// Against plain vectors: every waiter is in the list it joined last, once.
        #[test]
        fn lists_agree_with_vectors(ops in proptest::collection::vec((0u32..3, 0u32..6, 0u8..4), 0..200)) {
            let mut waiters = Waiters::new(3, 6);
            let mut model: Vec<Vec<u32>> = alloc::vec![Vec::new(); 3];
            for (neighbor, conn, op) in ops {
                match op {
                    0 => {
                        let popped = waiters.pop(neighbor);
                        prop_assert_eq!(popped, model[neighbor as usize].pop());
                    }
                    1 => {
                        waiters.leave(conn);
                        model.iter_mut().for_each(|list| list.retain(|&c| c != conn));
                    }
                    _ => {
                        waiters.join(neighbor, conn);
                        model.iter_mut().for_each(|list| list.retain(|&c| c != conn));
                        model[neighbor as usize].push(conn);
                    }
                }
                for neighbor in 0..3 {
                    prop_assert_eq!(waiters.any(neighbor), !model[neighbor as usize].is_empty());
                }
                for conn in 0..6 {
                    prop_assert_eq!(waiters.is_waiting(conn), model.iter().any(|list| list.contains(&conn)));
                }
            }
        }
    }
}
