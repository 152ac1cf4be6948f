//! The heap: blocks of two-level segregated lists, found in constant time.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};
use embedded_alloc::TlsfHeap;
use linerate_firmware::Heap;

/// All of the large memory.
const LEN: usize = 512 << 10;

#[repr(align(32))]
struct Memory(UnsafeCell<MaybeUninit<[u8; LEN]>>);

// SAFETY: only the heap has its address, and hands every byte out once.
unsafe impl Sync for Memory {}

// SAFETY: this section is memory as any other, whose bytes are nothing yet, as the type says.
#[unsafe(link_section = ".heap")]
static MEMORY: Memory = Memory(UnsafeCell::new(MaybeUninit::uninit()));

#[global_allocator]
static HEAP: Counted =
    Counted { heap: TlsfHeap::empty(), used: AtomicUsize::new(0), most: AtomicUsize::new(0) };

/// A heap that knows how much of it is in use.
struct Counted {
    heap: TlsfHeap,
    used: AtomicUsize,
    most: AtomicUsize,
}

/// The port of the AXI's memory in its interconnect (`AXI_TARG7_FN_MOD`), and of it: one read after the other (RM0433).
const PORT: usize = 0x5100_8108;
const SINGLE_READS: u32 = 1;
/// From here on revisions of the chip, X and V, are without the fault.
const MENDED: u16 = 0x2000;

/// Keeps reads of the AXI's memory from coming back with wrong data, as they may on revision Y of the chip (ES0392, 2.2.9); before the
/// first of them, and once.
pub fn mend_reads() {
    if embassy_stm32::pac::DBGMCU.idc().read().rev_id() >= MENDED {
        return;
    }
    // SAFETY: a register of the interconnect, which nothing else of this image writes to and which is no Rust object.
    unsafe { ptr::write_volatile(ptr::with_exposed_provenance_mut(PORT), SINGLE_READS) };
    cortex_m::asm::dsb();
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
