//! What boards under FreeRTOS have in common: the tasks, the console, the log, the application that computes, and who is
//! woken by which interrupt. A board brings its clock, its serial line, its timer and its interface ([`Hardware`]).
//!
//! FreeRTOS is never called within a critical section of ours, and so nothing is allocated or freed there: its own sections
//! end with interrupts on, whatever they were before.
#![no_std]
#![deny(unsafe_code)]

extern crate alloc;

mod application;
#[allow(unsafe_code, reason = "reads a stack")]
pub mod backtrace;
mod board;
mod console;
mod control;
#[allow(unsafe_code, reason = "an allocator")]
mod heap;
#[allow(unsafe_code, reason = "functions in assembly that compilers call")]
mod memory;
mod tasks;
#[allow(unsafe_code, reason = "names that FreeRTOS' part in C looks for")]
mod trace;
pub mod wake;
#[allow(unsafe_code, reason = "reads where a task waits")]
pub mod watch;

use freertos_next::FreeRtosUtils;
use linerate_firmware::log;
pub use linerate_firmware::{Hardware, Opened};

#[global_allocator]
static HEAP: heap::Heap = heap::Heap;

/// Makes the tasks and hands the processor over to FreeRTOS.
pub fn start<H: Hardware>() -> ! {
    log::to_ring(H::now);
    trace::TRACE.prepare(H::SETTINGS.trace, H::now);
    if H::SETTINGS.watchdog > 0 {
        watch::WATCHDOG.set(H::SETTINGS.watchdog);
        H::start_watchdog();
    }
    tasks::spawn::<H>();
    FreeRtosUtils::start_scheduler()
}
