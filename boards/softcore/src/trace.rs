//! The trace. There are two tasks, as it and `tasks` tell it: the loop, and what it does while it waits.

use core::sync::atomic::AtomicBool;
use linerate_firmware::trace::Shared;

/// The loop's number.
pub const NETWORK: u16 = 1;
/// That of sleep and application.
pub const IDLE: u16 = 2;

static IS_ON: AtomicBool = AtomicBool::new(false);

/// The trace.
pub static TRACE: Shared = Shared::new(&IS_ON);
