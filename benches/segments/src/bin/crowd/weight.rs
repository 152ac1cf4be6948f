//! An allocator that weighs what is allocated within chosen calls.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Bytes that are allocated and were since the first [`weighed`]. A constant without a destructor needs no memory itself.
    static BYTES: Cell<isize> = const { Cell::new(0) };
    static WEIGHS: Cell<bool> = const { Cell::new(false) };
}

/// Does something, and counts the memory that it takes and gives back.
pub fn weighed<T>(does: impl FnOnce() -> T) -> T {
    WEIGHS.set(true);
    let result = does();
    WEIGHS.set(false);
    result
}

/// Bytes that all calls within [`weighed`] have taken and not given back.
pub fn bytes() -> usize {
    usize::try_from(BYTES.get()).unwrap_or(0)
}

fn weigh(bytes: isize) {
    if WEIGHS.get() {
        BYTES.set(BYTES.get() + bytes);
    }
}

struct Weighing;

// SAFETY: every call goes to the system's allocator as it came; counting touches no memory but the counter.
unsafe impl GlobalAlloc for Weighing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        weigh(layout.size() as isize);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        weigh(layout.size() as isize);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        weigh(-(layout.size() as isize));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        weigh(size as isize - layout.size() as isize);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Weighing = Weighing;
