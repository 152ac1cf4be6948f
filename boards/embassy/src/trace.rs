//! The trace, with a track for each task.

use core::sync::atomic::AtomicBool;
use linerate_firmware::trace::Shared;

static IS_ON: AtomicBool = AtomicBool::new(false);

/// The trace.
pub(crate) static TRACE: Shared = Shared::new(&IS_ON);
