//! Words of memory-mapped hardware.

use core::ptr;

/// Reads a register.
///
/// The addresses of this board's peripherals are written down in this crate alone, and nothing else lies there. Memory that is measured
/// (`rates.rs`) or looked behind (`caches.rs`) is exposed by who has it, and touched in no other way meanwhile.
#[inline(always)]
pub fn read(address: usize) -> u32 {
    // SAFETY: the callers of this crate name registers of peripherals, or such memory: aligned words.
    unsafe { ptr::read_volatile(ptr::with_exposed_provenance(address)) }
}

/// Writes a register.
#[inline(always)]
pub fn write(address: usize, value: u32) {
    // SAFETY: as above; nothing that is written so changes other memory that Rust knows.
    unsafe { ptr::write_volatile(ptr::with_exposed_provenance_mut(address), value) }
}

/// Loops over memory, of `rates.s`: what is measured is not left to the compiler.
pub mod loops {
    /// Loads of a round.
    const ROUND: usize = 32;

    // SAFETY: these are their signatures; they keep what a function has to keep.
    unsafe extern "C" {
        fn rates_chase(from: usize, rounds: usize);
        fn rates_read(from: usize, end: usize);
        fn rates_fill(from: usize, end: usize);
        fn rates_copy(from: usize, end: usize, to: usize);
    }

    /// Goes from place to place, each of which has the next one's address.
    pub fn chase(from: usize, count: usize) {
        // SAFETY: it loads words of memory that is measured, and nothing else; once at least.
        unsafe { rates_chase(from, (count / ROUND).max(1)) }
    }

    /// Adds the words of all lines of 32 bytes up to `end`, and of one at least.
    pub fn read(from: usize, end: usize) {
        // SAFETY: it loads words of memory that is measured.
        unsafe { rates_read(from, end) }
    }

    /// Fills them.
    pub fn fill(from: usize, end: usize) {
        // SAFETY: it stores words of memory that is measured, which nothing else touches.
        unsafe { rates_fill(from, end) }
    }

    /// Copies them to another place.
    pub fn copy(from: usize, end: usize, to: usize) {
        // SAFETY: it loads and stores words of memory that is measured, which nothing else touches.
        unsafe { rates_copy(from, end, to) }
    }
}

/// Where the compiler's counters begin and end.
#[cfg(counters)]
pub fn counters() -> core::ops::Range<usize> {
    // SAFETY: the linker places these two around the section; only their addresses are used.
    unsafe extern "C" {
        static __start___llvm_prf_cnts: u32;
        static __stop___llvm_prf_cnts: u32;
    }
    let [start, end] = [&raw const __start___llvm_prf_cnts, &raw const __stop___llvm_prf_cnts]
        .map(<*const u32>::expose_provenance);
    start..end
}
