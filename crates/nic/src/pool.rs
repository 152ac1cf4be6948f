//! Fixed-size buffers that return to their pool when the last handle is dropped.
//!
//! Either everything is allocated when the pool is made ([`Pool::new`]), or a buffer is when it is needed for the first
//! time ([`Pool::on_demand`]); none is ever freed before the pool. The buffer that came back last is taken first, so that
//! few are in use where few would do. A handle is one pointer; cloning it counts up. Handles are not `Send`: a queue and
//! its buffers belong to one core.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::fmt;
use core::ops::Range;

struct Shelf {
    free: RefCell<Vec<Rc<Block>>>,
    buffer_size: usize,
    total: usize,
    /// Buffers that exist; the others are made when they are needed.
    made: Cell<usize>,
    low_water: Cell<usize>,
    exhausted: Cell<u64>,
    /// Live `Pool` handles. At zero nobody takes buffers any more: they are freed instead of shelved.
    pools: Cell<usize>,
}

struct Block {
    bytes: Box<[u8]>,
    shelf: Rc<Shelf>,
}

/// A pool of equal buffers. Clones share the buffers.
pub struct Pool {
    shelf: Rc<Shelf>,
}

/// How full a pool is and was.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PoolStats {
    /// Size of one buffer in bytes.
    pub buffer_size: usize,
    /// Buffers in all.
    pub total: usize,
    /// Buffers free now.
    pub free: usize,
    /// Fewest buffers that were ever free.
    pub low_water: usize,
    /// How often a buffer was asked for and none was free.
    pub exhausted: u64,
}

impl Pool {
    /// A pool of `count` buffers of `buffer_size` bytes, all allocated now.
    pub fn new(count: usize, buffer_size: usize) -> Self {
        let pool = Pool::on_demand(count, buffer_size);
        let blocks = (0..count).map_while(|_| pool.make());
        pool.shelf.free.borrow_mut().extend(blocks);
        pool
    }

    /// A pool of at most `count` buffers of `buffer_size` bytes, each of which is allocated when it is needed for the
    /// first time: what is never used takes no memory. Where the system has no memory left, the pool is out of buffers.
    pub fn on_demand(count: usize, buffer_size: usize) -> Self {
        let shelf = Rc::new(Shelf {
            free: RefCell::new(Vec::with_capacity(count)),
            buffer_size,
            total: count,
            made: Cell::new(0),
            low_water: Cell::new(count),
            exhausted: Cell::new(0),
            pools: Cell::new(1),
        });
        Pool { shelf }
    }

    /// One buffer more; `None` when all exist, or the system has no memory.
    fn make(&self) -> Option<Rc<Block>> {
        let shelf = &self.shelf;
        if shelf.made.get() == shelf.total {
            return None;
        }
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(shelf.buffer_size).ok()?;
        bytes.resize(shelf.buffer_size, 0);
        shelf.made.set(shelf.made.get() + 1);
        Some(Rc::new(Block { bytes: bytes.into_boxed_slice(), shelf: Rc::clone(shelf) }))
    }

    /// A buffer of which the caller is the only owner; `None` (and counted) when none is free.
    pub fn take(&self) -> Option<Buffer> {
        let block = self.shelf.free.borrow_mut().pop();
        match block.or_else(|| self.make()) {
            Some(block) => {
                self.shelf.low_water.set(self.shelf.low_water.get().min(self.free()));
                Some(Buffer { handle: Handle { block: Some(block) } })
            }
            None => {
                self.shelf.exhausted.set(self.shelf.exhausted.get() + 1);
                None
            }
        }
    }

    /// Buffers in all.
    pub fn len(&self) -> usize {
        self.shelf.total
    }

    /// Whether it has no buffers at all.
    pub fn is_empty(&self) -> bool {
        self.shelf.total == 0
    }

    /// Buffers free now.
    pub fn free(&self) -> usize {
        self.shelf.free.borrow().len() + self.shelf.total - self.shelf.made.get()
    }

    /// Size of one buffer in bytes.
    pub fn buffer_size(&self) -> usize {
        self.shelf.buffer_size
    }

    /// Counters.
    pub fn stats(&self) -> PoolStats {
        PoolStats {
            buffer_size: self.shelf.buffer_size,
            total: self.shelf.total,
            free: self.free(),
            low_water: self.shelf.low_water.get(),
            exhausted: self.shelf.exhausted.get(),
        }
    }
}

impl Clone for Pool {
    fn clone(&self) -> Self {
        self.shelf.pools.set(self.shelf.pools.get() + 1);
        Pool { shelf: Rc::clone(&self.shelf) }
    }
}

impl Drop for Pool {
    /// Free blocks point back at the shelf: the last pool handle breaks that cycle.
    fn drop(&mut self) {
        self.shelf.pools.set(self.shelf.pools.get() - 1);
        if self.shelf.pools.get() == 0 {
            let blocks = core::mem::take(&mut *self.shelf.free.borrow_mut());
            drop(blocks);
        }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stats().fmt(f)
    }
}

/// The counted pointer that everything else wraps; on the last drop the block goes back to its shelf.
struct Handle {
    // `None` only while dropping.
    block: Option<Rc<Block>>,
}

impl Handle {
    fn bytes(&self) -> &[u8] {
        self.block.as_ref().map_or(&[], |block| &block.bytes)
    }
}

impl Clone for Handle {
    fn clone(&self) -> Self {
        Handle { block: self.block.clone() }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Some(block) = self.block.take()
            && Rc::strong_count(&block) == 1
        {
            let shelf = Rc::clone(&block.shelf);
            if shelf.pools.get() > 0 {
                shelf.free.borrow_mut().push(block);
            }
        }
    }
}

/// A pool buffer with one owner, who may write to it.
pub struct Buffer {
    handle: Handle,
}

impl Buffer {
    /// Size in bytes.
    pub fn len(&self) -> usize {
        self.handle.bytes().len()
    }

    /// Whether the pool's buffers have no bytes at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes, to write to.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // A `Buffer` is the only handle of its block (it cannot be cloned), so `get_mut` never fails.
        match self.handle.block.as_mut().and_then(Rc::get_mut) {
            Some(block) => &mut block.bytes,
            None => &mut [],
        }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        self.handle.bytes()
    }

    /// Gives up writing: the part `range` of the buffer, to be read and shared. Cut to what the buffer has.
    pub fn freeze(self, range: Range<usize>) -> Slice {
        let len = self.len();
        let end = range.end.min(len);
        let start = range.start.min(end);
        Slice { handle: self.handle, start: start as u32, end: end as u32 }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.len())
    }
}

/// A counted reference to a part of a pool buffer. Cloning shares the bytes.
#[derive(Clone)]
pub struct Slice {
    handle: Handle,
    start: u32,
    end: u32,
}

impl Slice {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.handle.bytes()[self.start as usize..self.end as usize]
    }

    /// The bytes, to change in place; `None` when another handle shares the buffer.
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        let block = self.handle.block.as_mut().and_then(Rc::get_mut)?;
        block.bytes.get_mut(self.start as usize..self.end as usize)
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// Whether it covers no byte.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Size of the whole buffer that this handle keeps from returning: what to charge a socket for.
    pub fn held(&self) -> usize {
        self.handle.bytes().len()
    }

    /// Copies `bytes` into the buffer behind this slice, which then covers them too. False, and nothing is done, when
    /// another handle shares the buffer or they do not fit.
    pub fn extend(&mut self, bytes: &[u8]) -> bool {
        let (start, end) = (self.end as usize, self.end as usize + bytes.len());
        let block = self.handle.block.as_mut().and_then(Rc::get_mut);
        let Some(room) = block.and_then(|block| block.bytes.get_mut(start..end)) else { return false };
        room.copy_from_slice(bytes);
        self.end = end as u32;
        true
    }

    /// Cuts `count` bytes off the front (all, when there are fewer).
    pub fn trim_front(&mut self, count: usize) {
        self.start = self.start.saturating_add(u32::try_from(count).unwrap_or(u32::MAX)).min(self.end);
    }

    /// Keeps the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        if len < self.len() {
            self.end = self.start + len as u32;
        }
    }

    /// A handle to the part `range`, counted from the start of this slice; cut to what there is.
    pub fn slice(&self, range: Range<usize>) -> Slice {
        let mut part = self.clone();
        part.truncate(range.end);
        part.trim_front(range.start);
        part
    }

    /// Turns the slice back into a writable buffer when it is the only handle; gives it back otherwise.
    pub fn try_into_buffer(mut self) -> Result<Buffer, Slice> {
        let unique = self.handle.block.as_mut().is_some_and(|block| Rc::get_mut(block).is_some());
        if unique { Ok(Buffer { handle: self.handle }) } else { Err(self) }
    }
}

impl fmt::Debug for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slice({} of {} bytes)", self.len(), self.held())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_handle_returns_the_buffer() {
        let pool = Pool::new(2, 64);
        let mut buffer = pool.take().unwrap();
        buffer.bytes_mut()[..3].copy_from_slice(b"abc");
        let slice = buffer.freeze(0..3);
        let part = slice.slice(1..9);
        assert_eq!(part.bytes(), b"bc");
        drop(slice);
        assert_eq!(pool.free(), 1, "a part keeps the whole buffer");
        drop(part);
        assert_eq!(pool.free(), 2);
    }

    #[test]
    fn an_empty_pool_is_a_counted_state() {
        let pool = Pool::new(1, 64);
        let held = pool.take().unwrap();
        assert!(pool.take().is_none());
        assert_eq!(
            pool.stats(),
            PoolStats { buffer_size: 64, total: 1, free: 0, low_water: 0, exhausted: 1 }
        );
        drop(held);
        assert!(pool.take().is_some());
    }

    #[test]
    fn only_a_sole_owner_writes_again() {
        let pool = Pool::new(1, 8);
        let slice = pool.take().unwrap().freeze(2..4);
        let other = slice.clone();
        let mut slice = slice.try_into_buffer().unwrap_err();
        assert!(slice.bytes_mut().is_none());
        drop(other);
        slice.bytes_mut().unwrap().copy_from_slice(b"ab");
        assert_eq!(slice.bytes(), b"ab");
        assert_eq!(slice.try_into_buffer().unwrap().len(), 8);
    }

    #[test]
    fn buffers_on_demand_exist_once_they_were_needed() {
        let pool = Pool::on_demand(3, 64);
        let made = || pool.shelf.made.get();
        assert_eq!((made(), pool.free(), pool.len()), (0, 3, 3));
        for _ in 0..10 {
            let two = (pool.take().unwrap(), pool.take().unwrap());
            assert_eq!((made(), pool.free()), (2, 1));
            drop(two);
        }
        let all: Vec<Buffer> = core::iter::from_fn(|| pool.take()).collect();
        assert_eq!((all.len(), pool.free(), pool.stats().low_water), (3, 0, 0));
        drop(all);
        assert_eq!((made(), pool.free()), (3, 3));
    }

    #[test]
    fn a_sole_owner_extends_into_the_rest_of_the_buffer() {
        let pool = Pool::new(1, 8);
        let mut buffer = pool.take().unwrap();
        buffer.bytes_mut().copy_from_slice(b"..abcxxx");
        let mut slice = buffer.freeze(2..5);
        assert!(!slice.extend(b"defg"), "no room");
        assert!(slice.extend(b"de"));
        assert_eq!(slice.bytes(), b"abcde");
        let other = slice.clone();
        assert!(!slice.extend(b"f"), "somebody else may read there");
        drop(other);
        assert!(slice.extend(b"f") && !slice.extend(b"g"));
        assert_eq!(slice.bytes(), b"abcdef");
    }

    #[test]
    fn a_dropped_pool_lets_its_buffers_outlive_it() {
        let pool = Pool::new(3, 8);
        let weak = Rc::downgrade(&pool.shelf);
        let clone = pool.clone();
        drop(pool);
        let out = clone.take().unwrap();
        drop(clone);
        assert_eq!(out.len(), 8);
        drop(out);
        assert!(weak.upgrade().is_none(), "no cycle is left behind");
    }
}
