//! The data cache and the buffers that the interface writes to.
//!
//! The cache writes through, so there is nothing to write back, and it can only be emptied as a whole. That takes a clock for each of its
//! 512 lines, and what was in it has to come from memory again. So it is emptied only where it must be: a buffer that was given to the
//! interface since the cache was last emptied may have lines in it; one that was given before has none, as nobody has looked at it
//! since, and the processor fetches nothing ahead.

use crate::ethernet::UNCACHED;
use crate::registers::{read, write};
use crate::{SETTINGS, processor};
use core::sync::atomic::{AtomicU32, Ordering};

/// Bytes of a receive buffer, a multiple of the cache's lines.
pub const BUFFER: usize = 2_048;

/// Times that the cache was emptied.
static EMPTIED: AtomicU32 = AtomicU32::new(0);
/// What that was when each buffer was given to the interface.
static GIVEN: [AtomicU32; SETTINGS.receive_buffers] = [const { AtomicU32::new(0) }; SETTINGS.receive_buffers];
/// Where the buffers begin.
static BUFFERS: AtomicU32 = AtomicU32::new(0);

/// Remembers where the buffers are.
pub fn start(buffers: usize) {
    BUFFERS.store(buffers as u32, Ordering::Relaxed);
}

fn given(bytes: &[u8]) -> &'static AtomicU32 {
    let at = bytes.as_ptr().addr() - BUFFERS.load(Ordering::Relaxed) as usize;
    &GIVEN[at / BUFFER]
}

/// The interface is given this buffer.
pub fn give(bytes: &[u8]) {
    given(bytes).store(EMPTIED.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// The interface has written to this buffer: loads of it come from memory from now on.
pub fn invalidate(bytes: &mut [u8]) {
    let emptied = EMPTIED.load(Ordering::Relaxed);
    if given(bytes).load(Ordering::Relaxed) == emptied {
        processor::empty_data_cache();
        EMPTIED.store(emptied.wrapping_add(1), Ordering::Relaxed);
    }
}

/// Times that the cache was emptied.
pub fn emptied() -> u32 {
    EMPTIED.load(Ordering::Relaxed)
}

/// What the cache makes of a word that changes behind its back, as the interface would change it: what is read then, and what is
/// read once the cache was emptied. The word was 1 and becomes 2.
pub fn look_behind() -> (u32, u32) {
    static WORD: AtomicU32 = AtomicU32::new(0);
    let at = (&raw const WORD).expose_provenance();
    write(at, 1);
    // The line comes into the cache.
    let _one = read(at);
    write(UNCACHED | at, 2);
    let stale = read(at);
    processor::empty_data_cache();
    EMPTIED.store(emptied().wrapping_add(1), Ordering::Relaxed);
    (stale, read(at))
}
