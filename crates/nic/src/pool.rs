//! Fixed-size buffers that return to their pool when the last handle is dropped.
//!
//! Either everything is allocated when the pool is made ([`Pool::new`]), or a buffer is when it is needed for the first
//! time ([`Pool::on_demand`]), or the memory is the caller's ([`Pool::over`]): what a DMA engine can reach, aligned for it.
//! None is ever freed before the pool. The buffer that came back last is taken first, so that
//! few are in use where few would do. A handle is one pointer; cloning it counts up. Handles are not `Send`: a queue and
//! its buffers belong to one core.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::fmt;
use core::ops::{Deref, DerefMut, Range};

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
    bytes: Bytes,
    shelf: Rc<Shelf>,
}

/// Whose memory it is.
enum Bytes {
    Own(Box<[u8]>),
    Given(&'static mut [u8]),
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Own(bytes) => bytes,
            Bytes::Given(bytes) => bytes,
        }
    }
}

impl DerefMut for Bytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Bytes::Own(bytes) => bytes,
            Bytes::Given(bytes) => bytes,
        }
    }
}

/// Why memory cannot be made into a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RegionError {
    /// The alignment is not a power of two.
    Alignment(usize),
    /// Not one buffer fits.
    TooSmall {
        /// Bytes given.
        len: usize,
        /// Bytes of one buffer.
        buffer_size: usize,
        /// What its address must be a multiple of.
        align: usize,
    },
}

impl fmt::Display for RegionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegionError::Alignment(align) => write!(f, "alignment {align}: expected a power of two"),
            RegionError::TooSmall { len, buffer_size, align } => {
                write!(f, "{len} bytes hold no buffer of {buffer_size} bytes at a multiple of {align}")
            }
        }
    }
}

impl core::error::Error for RegionError {}

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
        if pool.shelf.free.borrow_mut().try_reserve_exact(count).is_err() {
            // Not even their places have room.
            return pool;
        }
        while let Some(block) = pool.make() {
            pool.shelf.free.borrow_mut().push(block);
        }
        pool
    }

    /// A pool of at most `count` buffers of `buffer_size` bytes, each of which is allocated when it is needed for the
    /// first time: what is never used takes no memory. Where the system has no memory left, the pool is out of buffers.
    pub fn on_demand(count: usize, buffer_size: usize) -> Self {
        let shelf = Rc::new(Shelf {
            free: RefCell::default(),
            buffer_size,
            total: count,
            made: Cell::new(0),
            low_water: Cell::new(count),
            exhausted: Cell::new(0),
            pools: Cell::new(1),
        });
        Pool { shelf }
    }

    /// A pool over memory of the caller: a static array, a region that a DMA engine reaches, huge pages. As many buffers of
    /// `buffer_size` bytes as fit begin at multiples of `align` (a power of two). With the length of a cache line no two buffers
    /// share one, nor does any share one with what lies behind it, as long as the region itself ends at such a multiple:
    /// invalidating the lines of one loses nothing of another.
    ///
    /// # Errors
    /// Another alignment, or no room for one buffer.
    pub fn over(memory: &'static mut [u8], buffer_size: usize, align: usize) -> Result<Self, RegionError> {
        if !align.is_power_of_two() {
            return Err(RegionError::Alignment(align));
        }
        let len = memory.len();
        let too_small = RegionError::TooSmall { len, buffer_size, align };
        let stride = buffer_size.max(1).checked_next_multiple_of(align).ok_or(too_small)?;
        let skipped = memory.as_ptr().align_offset(align);
        let region = memory.get_mut(skipped..).ok_or(too_small)?;
        let count = region.len() / stride;
        if count == 0 {
            return Err(too_small);
        }
        let pool = Pool::on_demand(count, buffer_size);
        let blocks = region.chunks_exact_mut(stride).map(|chunk| {
            let (bytes, _) = chunk.split_at_mut(buffer_size);
            Rc::new(Block { bytes: Bytes::Given(bytes), shelf: Rc::clone(&pool.shelf) })
        });
        pool.shelf.free.borrow_mut().extend(blocks);
        pool.shelf.made.set(count);
        Ok(pool)
    }

    /// One buffer more; `None` when all exist, or the system has no memory.
    fn make(&self) -> Option<Rc<Block>> {
        let shelf = &self.shelf;
        if shelf.made.get() == shelf.total {
            return None;
        }
        // It has a place to come back to, so that giving it back allocates nothing.
        let mut free = shelf.free.borrow_mut();
        let places = shelf.made.get() + 1;
        let missing = places.saturating_sub(free.len());
        free.try_reserve(missing).ok()?;
        drop(free);
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(shelf.buffer_size).ok()?;
        bytes.resize(shelf.buffer_size, 0);
        shelf.made.set(shelf.made.get() + 1);
        Some(Rc::new(Block { bytes: Bytes::Own(bytes.into_boxed_slice()), shelf: Rc::clone(shelf) }))
    }

    /// A buffer of which the caller is the only owner; `None` (and counted) when none is free.
    #[inline]
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
    #[inline]
    pub fn free(&self) -> usize {
        self.shelf.total - self.shelf.made.get() + self.shelf.free.borrow().len()
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
#[derive(Default)]
struct Handle {
    // `None` while dropping, and for no buffer.
    block: Option<Rc<Block>>,
}

impl Handle {
    #[inline]
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
    #[inline]
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
    #[inline]
    pub fn len(&self) -> usize {
        self.handle.bytes().len()
    }

    /// Whether the pool's buffers have no bytes at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes, to write to.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // A `Buffer` is the only handle of its block (it cannot be cloned), so `get_mut` never fails.
        match self.handle.block.as_mut().and_then(Rc::get_mut) {
            Some(block) => &mut block.bytes,
            None => &mut [],
        }
    }

    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.handle.bytes()
    }

    /// Gives up writing: the part `range` of the buffer, to be read and shared. Cut to what the buffer has.
    #[inline]
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

/// A counted reference to a part of a pool buffer. Cloning shares the bytes; the default is no byte of no buffer.
#[derive(Clone, Default)]
pub struct Slice {
    handle: Handle,
    start: u32,
    end: u32,
}

impl Slice {
    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.handle.bytes()[self.start as usize..self.end as usize]
    }

    /// The bytes, to change in place; `None` when another handle shares the buffer.
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        let block = self.handle.block.as_mut().and_then(Rc::get_mut)?;
        block.bytes.get_mut(self.start as usize..self.end as usize)
    }

    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// Whether it covers no byte.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Size of the whole buffer that this handle keeps from returning: what to charge a socket for.
    #[inline]
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
    #[inline]
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
    #[inline]
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
    extern crate std;

    use super::*;

    #[test]
    fn a_pool_of_more_than_there_can_be_is_out_of_buffers_when_memory_is() {
        let pool = Pool::on_demand(usize::MAX, 64);
        let taken: std::vec::Vec<_> = (0..100).map(|_| pool.take().unwrap()).collect();
        assert_eq!(pool.free(), usize::MAX - 100);
        drop(taken);
        assert_eq!(pool.free(), usize::MAX);
        assert!(Pool::on_demand(1, usize::MAX / 2).take().is_none());
        assert_eq!(Pool::new(usize::MAX, usize::MAX / 2).shelf.free.borrow().len(), 0);
    }

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

    /// Where the regions of all tests are: who looks for leaks finds them here.
    static REGIONS: std::sync::Mutex<Vec<usize>> = std::sync::Mutex::new(Vec::new());

    /// Memory that starts `at` bytes behind a multiple of 256, and is never given back.
    fn region(at: usize, len: usize) -> &'static mut [u8] {
        let memory = Box::leak(alloc::vec![0u8; at + len + 256].into_boxed_slice());
        REGIONS.lock().unwrap().push(memory.as_ptr() as usize);
        let skip = memory.as_ptr().align_offset(256) + at;
        &mut memory[skip..skip + len]
    }

    #[test]
    fn buffers_lie_in_the_callers_memory_and_share_no_cache_line() {
        let memory = region(3, 10_000);
        let bounds = memory.as_ptr_range();
        let pool = Pool::over(memory, 1_514, 64).unwrap();
        assert_eq!(
            (pool.len(), pool.free(), pool.buffer_size()),
            (6, 6, 1_514),
            "61 bytes skipped, 1,536 each"
        );
        let mut buffers: Vec<Buffer> = core::iter::from_fn(|| pool.take()).collect();
        assert_eq!(buffers.len(), 6);
        let mut lines: Vec<usize> = Vec::new();
        for buffer in &mut buffers {
            buffer.bytes_mut().fill(7);
            let range = buffer.bytes().as_ptr_range();
            assert!(bounds.start <= range.start && range.end <= bounds.end);
            assert_eq!((range.start as usize % 64, buffer.len()), (0, 1_514));
            lines.extend(range.start as usize / 64..=(range.end as usize - 1) / 64);
        }
        lines.sort_unstable();
        assert!(lines.windows(2).all(|pair| pair[0] < pair[1]), "a line of two buffers");
        drop(buffers);
        assert_eq!(pool.free(), 6, "they come back");
    }

    #[test]
    fn memory_that_holds_no_buffer_is_refused_with_the_reason() {
        for (at, len, size, align, expected) in [
            (0, 4_096, 1_024, 48, "alignment 48: expected a power of two"),
            (0, 4_096, 1_024, 0, "alignment 0: expected a power of two"),
            (0, 1_023, 1_024, 1, "1023 bytes hold no buffer of 1024 bytes at a multiple of 1"),
            (1, 1_024, 1_024, 64, "1024 bytes hold no buffer of 1024 bytes at a multiple of 64"),
            (1, 10, 4, 64, "10 bytes hold no buffer of 4 bytes at a multiple of 64"),
            (
                0,
                10,
                usize::MAX,
                64,
                &alloc::format!("10 bytes hold no buffer of {} bytes at a multiple of 64", usize::MAX),
            ),
        ] {
            let error = Pool::over(region(at, len), size, align).unwrap_err();
            assert_eq!(alloc::format!("{error}"), expected);
        }
        assert_eq!(Pool::over(region(0, 2_048), 1_024, 256).unwrap().len(), 2);
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
