//! The trace, which FreeRTOS' switch of tasks (`trace.h`) notes events in, too.

use core::sync::atomic::AtomicBool;
use linerate_firmware::trace::Shared;

/// Whether events are noted.
// SAFETY: no other object has this name; trace.h declares it as a byte, which an AtomicBool is.
#[unsafe(export_name = "linerate_trace_is_on")]
static IS_ON: AtomicBool = AtomicBool::new(false);

/// The trace.
pub(crate) static TRACE: Shared = Shared::new(&IS_ON);

/// FreeRTOS goes over to the task of this number, with interrupts masked, and is not called from here.
// SAFETY: no other function has this name; trace.h declares it with this type.
#[unsafe(export_name = "linerate_trace_task")]
extern "C" fn run_task(number: u32) {
    TRACE.run_task(number as u16);
}
