//! A piece of payload in a gather list, whoever owns it.

use crate::pool::Slice;
use bytes::{Buf, Bytes};
use core::fmt;
use core::ops::Range;

/// A contiguous piece of payload, owned or shared, never copied.
#[derive(Clone)]
pub enum Chunk {
    /// In a pool buffer.
    Pool(Slice),
    /// In a buffer shared with others, or in memory that lives forever: flash, or a constant.
    Shared(Bytes),
}

impl Chunk {
    /// Memory that lives forever.
    pub const fn constant(bytes: &'static [u8]) -> Chunk {
        Chunk::Shared(Bytes::from_static(bytes))
    }

    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Chunk::Pool(slice) => slice.bytes(),
            Chunk::Shared(bytes) => bytes,
        }
    }

    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Chunk::Pool(slice) => slice.len(),
            Chunk::Shared(bytes) => bytes.len(),
        }
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A handle to the part `range`, counted from the start of this chunk; cut to what there is.
    #[inline]
    pub fn slice(&self, range: Range<usize>) -> Chunk {
        let end = range.end.min(self.len());
        let from = range.start.min(end);
        match self {
            Chunk::Pool(slice) => Chunk::Pool(slice.slice(from..end)),
            Chunk::Shared(bytes) => Chunk::Shared(bytes.slice(from..end)),
        }
    }

    /// Cuts `count` bytes off the front (all, when there are fewer).
    #[inline]
    pub fn trim_front(&mut self, count: usize) {
        let count = count.min(self.len());
        match self {
            Chunk::Pool(slice) => slice.trim_front(count),
            Chunk::Shared(bytes) => bytes.advance(count),
        }
    }
}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            Chunk::Pool(_) => "Pool",
            Chunk::Shared(_) => "Shared",
        };
        write!(f, "{kind}({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::Pool;
    use alloc::vec;

    #[test]
    fn all_kinds_cut_alike() {
        let mut buffer = Pool::new(1, 8).take().unwrap();
        buffer.bytes_mut().copy_from_slice(b"01234567");
        let chunks = [
            Chunk::Pool(buffer.freeze(0..8)),
            Chunk::Shared(Bytes::from_static(b"01234567")),
            Chunk::Shared(Bytes::from(vec![b'x', b'0', b'1', b'2', b'3', b'4', b'5', b'6', b'7']).slice(1..)),
        ];
        for chunk in chunks {
            let mut part = chunk.slice(2..100);
            assert_eq!(part.bytes(), b"234567");
            part.trim_front(4);
            assert_eq!(part.bytes(), b"67");
            part.trim_front(4);
            assert!(part.is_empty());
        }
    }
}
