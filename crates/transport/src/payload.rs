//! Owned payload: bytes that a server hands over and that nothing copies on their way to the device.

use crate::files::FileId;

/// A range of a reference-counted buffer; a clone shares the bytes. [`Bytes::from_owner`] makes one of any buffer.
pub use bytes::Bytes;

/// Longest payload of memory that a transport takes in one call, in bytes.
pub const MAX_PAYLOAD: usize = 64 << 10;

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

impl FileRange {
    /// Whether a file can be so long: positions in files have 63 bits (POSIX `off_t`).
    pub fn is_possible(&self) -> bool {
        self.offset.checked_add(self.len).is_some_and(|end| i64::try_from(end).is_ok())
    }
}

/// What a server queues for sending.
#[derive(Clone, Debug)]
pub enum Payload {
    /// Bytes that live forever: flash, or a constant.
    Static(&'static [u8]),
    /// Shared bytes, kept alive until acknowledged and transmitted.
    Shared(Bytes),
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
