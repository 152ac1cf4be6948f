//! The further pieces of a coalesced frame, in lists that are allocated once and used again.

use crate::pool::Slice;
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::ops::{Deref, DerefMut};

type Spare = Rc<RefCell<Vec<Box<List>>>>;

#[derive(Debug, Default)]
struct List {
    slices: Vec<Slice>,
    /// Where the list belongs; `None` while it lies there.
    shelf: Option<Spare>,
}

/// A list of slices. Empty ones own no memory and are one pointer; one from a [`PieceShelf`] returns its memory there when it
/// is dropped.
#[derive(Debug, Default)]
pub struct Pieces {
    list: Option<Box<List>>,
}

impl Pieces {
    /// An empty list without memory of its own; it allocates if slices are pushed.
    pub const fn new() -> Self {
        Pieces { list: None }
    }

    /// Appends a slice. A list from a shelf does not allocate while it [has room](Pieces::has_room).
    pub fn push(&mut self, slice: Slice) {
        self.list.get_or_insert_default().slices.push(slice);
    }

    /// Whether one more slice fits without allocating.
    pub fn has_room(&self) -> bool {
        self.list.as_ref().is_some_and(|list| list.slices.len() < list.slices.capacity())
    }

    /// Length of all slices together in bytes.
    #[inline]
    pub fn len_bytes(&self) -> usize {
        self.iter().map(Slice::len).sum()
    }

    /// Takes all slices out, in order.
    pub fn drain(&mut self) -> impl Iterator<Item = Slice> {
        self.list.iter_mut().flat_map(|list| list.slices.drain(..))
    }
}

impl Deref for Pieces {
    type Target = [Slice];
    #[inline]
    fn deref(&self) -> &[Slice] {
        self.list.as_ref().map_or(&[], |list| &list.slices)
    }
}

impl DerefMut for Pieces {
    fn deref_mut(&mut self) -> &mut [Slice] {
        self.list.as_mut().map_or(&mut [], |list| &mut list.slices)
    }
}

impl From<Vec<Slice>> for Pieces {
    fn from(slices: Vec<Slice>) -> Self {
        let list = if slices.is_empty() { None } else { Some(Box::new(List { slices, shelf: None })) };
        Pieces { list }
    }
}

impl<'a> IntoIterator for &'a Pieces {
    type Item = &'a Slice;
    type IntoIter = core::slice::Iter<'a, Slice>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Drop for Pieces {
    #[inline]
    fn drop(&mut self) {
        if let Some(list) = self.list.take() {
            give_back(list);
        }
    }
}

#[inline(never)]
fn give_back(mut list: Box<List>) {
    if let Some(shelf) = list.shelf.take() {
        list.slices.clear();
        shelf.borrow_mut().push(list);
    }
}

/// A bounded stock of lists, all allocated when it is made.
#[derive(Debug)]
pub struct PieceShelf {
    spare: Spare,
}

impl PieceShelf {
    /// `count` lists of room for `room` slices each.
    pub fn new(count: usize, room: usize) -> Self {
        let mut spare = Vec::with_capacity(count);
        spare.resize_with(count, || Box::new(List { slices: Vec::with_capacity(room), shelf: None }));
        PieceShelf { spare: Rc::new(RefCell::new(spare)) }
    }

    /// An empty list; `None` when all are in use.
    pub fn take(&self) -> Option<Pieces> {
        let mut list = self.spare.borrow_mut().pop()?;
        list.shelf = Some(Rc::clone(&self.spare));
        Some(Pieces { list: Some(list) })
    }

    /// Lists that are not in use.
    pub fn free(&self) -> usize {
        self.spare.borrow().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::Pool;

    #[test]
    fn lists_and_buffers_return_when_dropped() {
        let pool = Pool::new(2, 8);
        let shelf = PieceShelf::new(1, 2);
        for _ in 0..3 {
            let mut pieces = shelf.take().unwrap();
            assert!(shelf.take().is_none());
            for _ in 0..2 {
                assert!(pieces.has_room());
                pieces.push(pool.take().unwrap().freeze(0..3));
            }
            assert!(!pieces.has_room());
            assert_eq!((pieces.len(), pieces.len_bytes()), (2, 6));
            drop(pieces);
            assert_eq!((pool.free(), shelf.free()), (2, 1));
        }
    }

    #[test]
    fn a_list_outlives_its_shelf() {
        let shelf = PieceShelf::new(1, 1);
        let pieces = shelf.take().unwrap();
        drop(shelf);
        assert!(pieces.is_empty());
    }
}
