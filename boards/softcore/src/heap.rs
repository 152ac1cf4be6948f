//! The heap: blocks of two-level segregated lists, found in constant time.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicUsize, Ordering};
use embedded_alloc::TlsfHeap;
use linerate_firmware::Heap;

/// Everything that is allocated: what sockets, RAM disk and receive buffers may take together, and room beside.
const LEN: usize = 24 << 20;

#[repr(align(64))]
struct Memory(UnsafeCell<[u8; LEN]>);

// SAFETY: only the heap has its address, and hands every byte out once.
unsafe impl Sync for Memory {}

// SAFETY: memory as any other, which the heap does not expect to begin as anything.
#[unsafe(link_section = ".later")]
static MEMORY: Memory = Memory(UnsafeCell::new([0; LEN]));

#[global_allocator]
static HEAP: Counted =
    Counted { heap: TlsfHeap::empty(), used: AtomicUsize::new(0), most: AtomicUsize::new(0) };

/// A heap that knows how much of it is in use.
struct Counted {
    heap: TlsfHeap,
    used: AtomicUsize,
    most: AtomicUsize,
}

/// Makes the heap; before anything is allocated, and once.
pub fn start() {
    // SAFETY: nothing else uses this memory, and this is its length.
    unsafe { HEAP.heap.init(MEMORY.0.get().expose_provenance(), LEN) };
}

/// How full it is, by what was asked for.
pub fn state() -> Heap {
    let free = |used: &AtomicUsize| LEN - used.load(Ordering::Relaxed);
    Heap { total: LEN, free: free(&HEAP.used), lowest: free(&HEAP.most) }
}

// SAFETY: all of it is the heap's; the counts do not touch memory.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are the heap's.
        let at = unsafe { self.heap.alloc(layout) };
        if !at.is_null() {
            // One core, no interrupts: nothing comes between.
            let used = self.used.load(Ordering::Relaxed) + layout.size();
            self.used.store(used, Ordering::Relaxed);
            self.most.store(self.most.load(Ordering::Relaxed).max(used), Ordering::Relaxed);
        }
        at
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        self.used.store(self.used.load(Ordering::Relaxed) - layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { self.heap.dealloc(at, layout) };
    }
}
