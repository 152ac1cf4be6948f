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
