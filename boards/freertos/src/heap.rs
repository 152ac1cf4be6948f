//! The heap: that of FreeRTOS, which aligns to eight bytes, made fit for types that want more.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr;
use freertos_next::FreeRtosAllocator;

/// What FreeRTOS aligns to (`portBYTE_ALIGNMENT`).
const ALIGNED: usize = 8;

/// The heap.
pub(crate) struct Heap;

impl Heap {
    /// Bytes that are free, and the fewest that ever were.
    pub fn free(&self) -> (usize, usize) {
        (FreeRtosAllocator.get_free_size(), FreeRtosAllocator.get_min_free_size())
    }
}

/// Whether FreeRTOS aligns well enough.
fn is_plain(layout: Layout) -> bool {
    layout.align() <= ALIGNED
}

// SAFETY: what FreeRTOS hands out is nobody else's, and at a multiple of 8. For a larger alignment so many bytes more are taken: the next
// multiple of it lies at least 8 and at most `align` bytes behind the beginning, so what follows is as long as it was asked for,
// and the word in front is part of the block too. It says where the block begins, for the day when it is freed.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_plain(layout) {
            // SAFETY: the caller's promises are those of FreeRTOS' allocator.
            return unsafe { FreeRtosAllocator.alloc(layout) };
        }
        let size = layout.size().checked_add(layout.align());
        let Some(block) = size.and_then(|size| Layout::from_size_align(size, ALIGNED).ok()) else {
            return ptr::null_mut();
        };
        // SAFETY: the size is not zero.
        let begin = unsafe { FreeRtosAllocator.alloc(block) };
        if begin.is_null() {
            return begin;
        }
        let offset = layout.align() - begin.addr() % layout.align();
        // SAFETY: 8 to `align` bytes into the block, see above; the word in front lies in it and is aligned.
        unsafe {
            let at = begin.add(offset);
            at.cast::<*mut u8>().sub(1).write(begin);
            at
        }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: `at` came from `alloc` with this layout, which left the beginning of the block in front of it.
        unsafe {
            let begin = if is_plain(layout) { at } else { at.cast::<*mut u8>().sub(1).read() };
            FreeRtosAllocator.dealloc(begin, layout);
        }
    }
}
