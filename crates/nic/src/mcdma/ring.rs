//! Positions in a ring of descriptors.

use crate::bus::Bus;
use crate::mcdma::descriptor;
use crate::mcdma::descriptor::SIZE;

/// Which descriptors of a ring the engine has: those from the oldest to before the next.
///
/// Positions count up for ever, and the descriptor is the remainder. One descriptor always stays with the driver: the
/// doorbell names the last one given, and would say the same of a full ring and an empty one.
#[derive(Debug)]
pub(crate) struct Ring {
    base: u64,
    len: u64,
    oldest: u64,
    next: u64,
}

impl Ring {
    /// A ring of `len` descriptors from bus address `base` on.
    pub fn new(base: u64, len: usize) -> Self {
        Ring { base, len: len as u64, oldest: 0, next: 0 }
    }

    /// Makes each descriptor name the next, and the last the first; none is the engine's.
    pub fn link(&mut self, bus: &impl Bus) {
        (self.oldest, self.next) = (0, 0);
        for position in 0..self.len {
            descriptor::link(bus, self.address(position), self.address(position + 1));
        }
    }

    /// Bus address of the descriptor at a position.
    pub fn address(&self, position: u64) -> u64 {
        self.base + self.slot(position) as u64 * SIZE
    }

    /// Index of the descriptor at a position.
    pub fn slot(&self, position: u64) -> usize {
        remainder(position, self.len) as usize
    }

    /// Position of the descriptor that was given first of those that the engine has.
    pub fn oldest(&self) -> u64 {
        self.oldest
    }

    /// Position of the descriptor that will be given next.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Descriptors that the engine has.
    pub fn in_use(&self) -> usize {
        (self.next - self.oldest) as usize
    }

    /// Descriptors that can be given.
    pub fn room(&self) -> usize {
        self.len as usize - 1 - self.in_use()
    }

    /// `count` descriptors were given; they reach the engine with the doorbell.
    pub fn give(&mut self, count: usize) {
        debug_assert!(count <= self.room(), "more descriptors than there are");
        self.next += count as u64;
    }

    /// The oldest `count` descriptors have come back.
    pub fn take_back(&mut self, count: usize) {
        debug_assert!(count <= self.in_use(), "more descriptors than were given");
        self.oldest += count as u64;
    }

    /// The address for the doorbell: the descriptor that was given last.
    pub fn tail(&self) -> u64 {
        self.address(self.next + self.len - 1)
    }
}

/// `position % len`. Rings have a power of two of places, and a division of 64 bits is a hundred instructions where the processor has
/// 32.
#[inline]
pub(crate) fn remainder(position: u64, len: u64) -> u64 {
    let mask = len.wrapping_sub(1);
    if len & mask == 0 { position & mask } else { position % len }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remainders_are_those_of_a_division() {
        for len in 1..70 {
            for position in [0, 1, 63, 64, 65, 1_000, u64::MAX - 1, u64::MAX] {
                assert_eq!(remainder(position, len), position % len, "{position} % {len}");
            }
        }
    }

    #[test]
    fn positions_wrap_and_one_descriptor_stays() {
        let mut ring = Ring::new(0x1000, 4);
        assert_eq!((ring.room(), ring.in_use()), (3, 0));
        for round in 0..10u64 {
            ring.give(3);
            assert_eq!((ring.room(), ring.in_use()), (0, 3));
            assert_eq!(ring.tail(), ring.address(round * 3 + 2));
            ring.take_back(1);
            assert_eq!(ring.slot(ring.oldest()) as u64, (round * 3 + 1) % 4);
            ring.take_back(2);
        }
        assert_eq!(ring.address(7), 0x1000 + 3 * 64);
        assert_eq!(ring.address(8), 0x1000);
    }
}
