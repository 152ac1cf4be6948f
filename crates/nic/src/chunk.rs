//! A piece of payload in a gather list, whoever owns it.

use crate::pool::Slice;
use alloc::sync::Arc;
use core::fmt;
use core::ops::Range;

/// A contiguous piece of payload, owned or shared, never copied.
#[derive(Clone)]
pub enum Chunk {
    /// In a pool buffer.
    Pool(Slice),
    /// In memory that lives forever: flash, or a constant.
    Static(&'static [u8]),
    /// In a buffer shared with others.
    Shared {
        /// The buffer.
        buffer: Arc<dyn AsRef<[u8]> + Send + Sync>,
        /// First byte.
        start: u32,
        /// One past the last byte.
        end: u32,
    },
}

impl Chunk {
    /// The part `range` of a shared buffer. Ranges beyond 4 GiB or beyond the buffer are cut.
    pub fn shared(buffer: Arc<dyn AsRef<[u8]> + Send + Sync>, range: Range<usize>) -> Chunk {
        let len = (*buffer).as_ref().len().min(u32::MAX as usize);
        let end = range.end.min(len);
        Chunk::Shared { buffer, start: range.start.min(end) as u32, end: end as u32 }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Chunk::Pool(slice) => slice.bytes(),
            Chunk::Static(bytes) => bytes,
            Chunk::Shared { buffer, start, end } => {
                (**buffer).as_ref().get(*start as usize..*end as usize).unwrap_or(&[])
            }
        }
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        match self {
            Chunk::Pool(slice) => slice.len(),
            Chunk::Static(bytes) => bytes.len(),
            Chunk::Shared { start, end, .. } => (end - start) as usize,
        }
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A handle to the part `range`, counted from the start of this chunk; cut to what there is.
    pub fn slice(&self, range: Range<usize>) -> Chunk {
        let end = range.end.min(self.len());
        let from = range.start.min(end);
        match self {
            Chunk::Pool(slice) => Chunk::Pool(slice.slice(from..end)),
            Chunk::Static(bytes) => Chunk::Static(&bytes[from..end]),
            Chunk::Shared { buffer, start, .. } => Chunk::Shared {
                buffer: Arc::clone(buffer),
                start: start + from as u32,
                end: start + end as u32,
            },
        }
    }

    /// Cuts `count` bytes off the front (all, when there are fewer).
    pub fn trim_front(&mut self, count: usize) {
        let count = count.min(self.len());
        match self {
            Chunk::Pool(slice) => slice.trim_front(count),
            Chunk::Static(bytes) => *bytes = &bytes[count..],
            Chunk::Shared { start, .. } => *start += count as u32,
        }
    }
}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            Chunk::Pool(_) => "Pool",
            Chunk::Static(_) => "Static",
            Chunk::Shared { .. } => "Shared",
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
            Chunk::Static(b"01234567"),
            Chunk::shared(Arc::new(vec![b'x', b'0', b'1', b'2', b'3', b'4', b'5', b'6', b'7']), 1..99),
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
