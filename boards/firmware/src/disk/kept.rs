//! The files of the instruments, made of what these have kept as they are read.

use crate::capture::Capture;
use crate::held::Held;
use crate::trace::{self, Tracer};
use linerate_transport::{Bytes, FileError};

/// The trace, as JSON.
pub const TRACE: &str = "/trace";
/// The capture, as pcapng.
pub const CAPTURE: &str = "/capture.pcapng";

/// The instruments that have files.
pub(super) struct Instruments {
    tracer: &'static dyn Tracer,
    capture: Held<Capture>,
}

impl Instruments {
    pub(super) fn new(tracer: &'static dyn Tracer, capture: Held<Capture>) -> Self {
        Instruments { tracer, capture }
    }

    /// Whether there is a trace, on or off.
    pub(super) fn has_trace(&self) -> bool {
        let mut has_room = false;
        self.tracer.with(&mut |ring| has_room = ring.room() > 0);
        has_room
    }

    /// Ends what is kept for this file.
    pub(super) fn end(&self, path: &str) {
        match path {
            TRACE => self.tracer.switch(false),
            CAPTURE => self.capture.with(Capture::stop),
            _ => {}
        }
    }

    /// The file of this path, as it is now; `head` is what the machine has supplied.
    pub(super) fn file(&self, path: &str, head: impl FnOnce() -> Bytes) -> Option<Kept> {
        match path {
            TRACE if self.has_trace() => {
                Some(Kept::Trace(self.tracer, trace::File::new(self.tracer, head())))
            }
            CAPTURE if self.capture.with(|capture| capture.has_room()) => {
                let generation = self.capture.with(|capture| capture.generation());
                Some(Kept::Capture { capture: self.capture.clone(), generation })
            }
            _ => None,
        }
    }
}

/// A file of an instrument.
pub(super) enum Kept {
    Trace(&'static dyn Tracer, trace::File),
    Capture { capture: Held<Capture>, generation: u32 },
}

impl Kept {
    /// Bytes of it.
    pub(super) fn len(&self) -> u64 {
        match self {
            Kept::Trace(_, file) => file.len(),
            Kept::Capture { capture, .. } => capture.with(|capture| capture.len()) as u64,
        }
    }

    /// A number that changes with its content.
    pub(super) fn inode(&self) -> u64 {
        let (kind, generation) = match self {
            Kept::Trace(_, file) => (1, file.generation()),
            Kept::Capture { generation, .. } => (2, *generation),
        };
        kind << 32 | u64::from(generation)
    }

    /// A part of it, unless another trace or capture was begun since it was opened.
    pub(super) fn read(&self, offset: u64, len: usize) -> Result<Bytes, FileError> {
        match self {
            Kept::Trace(tracer, file) => {
                file.read(*tracer, offset, len).map(Bytes::from).ok_or(FileError::Stale)
            }
            Kept::Capture { capture, generation } => {
                let read = |capture: &mut Capture| {
                    (capture.generation() == *generation).then(|| capture.read(offset, len))
                };
                capture.with(read).map(Bytes::from).ok_or(FileError::Stale)
            }
        }
    }
}
