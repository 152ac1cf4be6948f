//! Doubly linked lists through a table of slots: joining and leaving are O(1).

use crate::crowd;
use alloc::vec::Vec;

/// No slot.
pub(super) const NONE: u32 = u32::MAX;

/// The ends of one list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ends {
    pub(super) first: u32,
    last: u32,
}

impl Ends {
    /// An empty list.
    pub(super) const EMPTY: Ends = Ends { first: NONE, last: NONE };
}

impl Default for Ends {
    fn default() -> Self {
        Ends::EMPTY
    }
}

/// The links of all slots; a slot is in one list at most.
#[derive(Debug, Default)]
pub(super) struct Links(Vec<(u32, u32)>);

impl Links {
    /// Puts a slot that is in no list at the end of this one.
    pub(super) fn push(&mut self, list: &mut Ends, slot: u32) {
        let at = slot as usize;
        if at >= self.0.len() {
            crowd::grow(&mut self.0, at + 1, || (NONE, NONE));
        }
        self.0[at] = (list.last, NONE);
        match self.0.get_mut(list.last as usize) {
            Some(before) => before.1 = slot,
            None => list.first = slot,
        }
        list.last = slot;
    }

    /// Takes a slot out of the list that it is in.
    pub(super) fn remove(&mut self, list: &mut Ends, slot: u32) {
        let Some(link) = self.0.get_mut(slot as usize) else { return };
        let (before, after) = core::mem::replace(link, (NONE, NONE));
        match self.0.get_mut(before as usize) {
            Some(before) => before.1 = after,
            None => list.first = after,
        }
        match self.0.get_mut(after as usize) {
            Some(after) => after.0 = before,
            None => list.last = before,
        }
    }
}
