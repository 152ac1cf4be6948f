//! Owned payload: bytes that a server hands over and that nothing copies on their way to the device.

use crate::files::FileId;
use alloc::sync::Arc;
use core::fmt;
use core::ops::Range;

/// A range of a reference-counted buffer; a clone shares the bytes.
#[derive(Clone)]
pub struct Shared {
    buffer: Arc<dyn AsRef<[u8]> + Send + Sync>,
    start: usize,
    end: usize,
}

impl Shared {
    /// All of `buffer`.
    pub fn new(buffer: Arc<dyn AsRef<[u8]> + Send + Sync>) -> Self {
        let end = (*buffer).as_ref().len();
        Shared { buffer, start: 0, end }
    }

    /// The part `range` of these bytes; `None` when it reaches beyond them.
    pub fn slice(&self, range: Range<usize>) -> Option<Shared> {
        if range.start > range.end || range.end > self.len() {
            return None;
        }
        Some(Shared {
            buffer: Arc::clone(&self.buffer),
            start: self.start + range.start,
            end: self.start + range.end,
        })
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// The buffer and the range of it, for layers below that share it under a type of their own.
    pub fn into_parts(self) -> (Arc<dyn AsRef<[u8]> + Send + Sync>, Range<usize>) {
        (self.buffer, self.start..self.end)
    }
}

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        // A buffer whose `as_ref` shrank since `new` yields nothing rather than a panic.
        (*self.buffer).as_ref().get(self.start..self.end).unwrap_or(&[])
    }
}

impl From<alloc::vec::Vec<u8>> for Shared {
    fn from(bytes: alloc::vec::Vec<u8>) -> Self {
        Shared::new(Arc::new(bytes))
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shared({} bytes)", self.len())
    }
}

/// A range of an open file. The file must stay open until the range was sent or the connection is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileRange {
    /// The open file.
    pub file: FileId,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
}

/// What a server queues for sending.
#[derive(Clone, Debug)]
pub enum Payload {
    /// Bytes that live forever: flash, or a constant.
    Static(&'static [u8]),
    /// Shared bytes, kept alive until acknowledged and transmitted.
    Shared(Shared),
    /// A range of a file, read (or sent by the kernel) when its turn comes.
    File(FileRange),
}

impl Payload {
    /// Length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Payload::Static(bytes) => bytes.len() as u64,
            Payload::Shared(bytes) => bytes.len() as u64,
            Payload::File(range) => range.len,
        }
    }

    /// Whether there is no byte to send.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn a_slice_of_a_slice_counts_from_the_slice() {
        let all = Shared::from(vec![0, 1, 2, 3, 4, 5]);
        let part = all.slice(2..5).unwrap();
        assert_eq!(part.slice(1..3).unwrap().as_ref(), &[3, 4]);
        assert!(part.slice(1..4).is_none());
        assert!(part.slice(3..3).unwrap().is_empty());
    }
}
