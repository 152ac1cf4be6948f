//! What a driver asks of the platform about memory that a device reads and writes by itself.

use core::sync::atomic::{Ordering, compiler_fence};

/// Addresses and caches, as a device sees memory. Implemented by the board, used by drivers; nothing above a driver knows it.
///
/// A driver holds on to a buffer from the moment it tells the device about it until the device is done, so that nobody
/// else reads or writes it meanwhile. What the device read or wrote then counts as read in [`Dma::clean`] and written in
/// [`Dma::invalidate`]: to the program, these two are the accesses. That is why one takes the bytes shared and the other takes
/// them alone, and why a driver needs no `unsafe`; an implementation on hardware must be opaque to the compiler (it touches
/// the cache by assembly, or is at least a compiler barrier).
///
/// Operations on a cache work on whole lines: receive buffers must not share one with anything else
/// ([`Pool::over`](crate::Pool::over) with the line's length as alignment).
pub trait Dma {
    /// Where the device finds these bytes; `None` if it does not reach them, or not in one piece. They must then be copied.
    fn bus_address(&self, bytes: &[u8]) -> Option<u64>;

    /// The device is going to read `bytes`: what the cache holds of them is written back to memory.
    fn clean(&self, bytes: &[u8]);

    /// The device is going to be given `bytes` to write: no dirty line may be written over its data later. What has to be done is
    /// what [`Dma::invalidate`] does, unless the cache never has dirty lines.
    fn give(&self, bytes: &mut [u8]) {
        self.invalidate(bytes);
    }

    /// What the cache holds of `bytes` is dropped: before the device is given them to write (so that no dirty line is written
    /// over its data later), and again before the processor reads what it wrote (so that no stale line is read).
    fn invalidate(&self, bytes: &mut [u8]);
}

/// A platform without address translation whose caches the device sees through, or that has none. Keeping the order of memory
/// and registers (a barrier before the doorbell) is the business of whoever writes the registers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Coherent;

impl Dma for Coherent {
    fn bus_address(&self, bytes: &[u8]) -> Option<u64> {
        Some(bytes.as_ptr() as u64)
    }

    fn clean(&self, bytes: &[u8]) {
        core::hint::black_box(bytes);
        compiler_fence(Ordering::SeqCst);
    }

    fn invalidate(&self, bytes: &mut [u8]) {
        compiler_fence(Ordering::SeqCst);
        core::hint::black_box(bytes);
    }
}
