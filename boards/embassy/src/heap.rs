//! The heap: blocks of two-level segregated lists, found in constant time.

use core::alloc::{GlobalAlloc, Layout};
use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};
use embedded_alloc::TlsfHeap;
use linerate_firmware::Heap;

#[global_allocator]
static HEAP: Counted = Counted {
    heap: TlsfHeap::empty(),
    total: AtomicUsize::new(0),
    used: AtomicUsize::new(0),
    most: AtomicUsize::new(0),
};

/// A heap that knows how much of it is in use.
struct Counted {
    heap: TlsfHeap,
    total: AtomicUsize,
    used: AtomicUsize,
    most: AtomicUsize,
}

/// Makes the heap; before anything is allocated.
///
/// # Safety
/// The memory is nobody else's, and this is called once.
pub(crate) unsafe fn start(memory: Range<usize>) {
    HEAP.total.store(memory.len(), Ordering::Relaxed);
    // SAFETY: the caller's promises.
    unsafe { HEAP.heap.init(memory.start, memory.len()) };
}

/// How full it is, by what was asked for.
pub(crate) fn state() -> Heap {
    let total = HEAP.total.load(Ordering::Relaxed);
    let free = |used: &AtomicUsize| total - used.load(Ordering::Relaxed);
    Heap { total, free: free(&HEAP.used), lowest: free(&HEAP.most) }
}

// SAFETY: all of it is the heap's; the counts do not touch memory.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are the heap's.
        let at = unsafe { self.heap.alloc(layout) };
        if !at.is_null() {
            let used = self.used.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
            self.most.fetch_max(used, Ordering::Relaxed);
        }
        at
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        self.used.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { self.heap.dealloc(at, layout) };
    }
}
