//! What servers count together that share a limit, as those on several queues of a device do.

use super::Source;
use alloc::boxed::Box;
use core::fmt;

/// Connections of several crowds: all of them, and those of each source. Kept by who runs the servers.
///
/// Asking and counting are two steps: servers that admit in the same moment may go beyond a limit by one each.
pub trait Census {
    /// All connections.
    fn total(&self) -> usize;

    /// Those of a source.
    fn held_by(&self, source: Source) -> usize;

    /// One more, or one less.
    fn change(&self, source: Source, comes: bool);
}

/// The census of a crowd, if it has others beside it.
#[derive(Default)]
pub(super) struct Shared(pub(super) Option<Box<dyn Census>>);

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = self.0.as_ref().map(|census| census.total());
        f.debug_tuple("Shared").field(&counted).finish()
    }
}
