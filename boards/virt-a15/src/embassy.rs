//! The start under Embassy, with the memory that its tasks have: the heap, and the stack that this image began on.

use crate::board::VirtA15;
use crate::critical;
use crate::system::{self, Hardware, Memory};
use core::cell::UnsafeCell;

#[repr(align(64))]
struct Heap(UnsafeCell<[u8; <VirtA15 as Hardware>::HEAP]>);

// SAFETY: whoever is told where it lies has it alone: that is the allocator.
unsafe impl Sync for Heap {}

static HEAP: Heap = Heap(UnsafeCell::new([0; <VirtA15 as Hardware>::HEAP]));

// SAFETY: memory.x has these names; only their addresses are used.
unsafe extern "C" {
    static __watchdog_stack: u8;
    static __supervisor_stack: u8;
}

/// Hands the processor over.
pub fn begin() -> ! {
    critical::unmask();
    // SAFETY: the start goes on here once, on that stack, and the heap is memory of its own.
    unsafe { system::start::<VirtA15>(memory()) }
}

/// Where both lie.
fn memory() -> Memory {
    let heap = HEAP.0.get().expose_provenance();
    Memory {
        heap: heap..heap + <VirtA15 as Hardware>::HEAP,
        stack: (&raw const __watchdog_stack).expose_provenance()..(&raw const __supervisor_stack).addr(),
    }
}
