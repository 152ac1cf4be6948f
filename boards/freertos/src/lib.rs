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
mod tasks;
#[allow(unsafe_code, reason = "names that FreeRTOS' part in C looks for")]
mod trace;
pub mod wake;
#[allow(unsafe_code, reason = "reads where a task waits")]
pub mod watch;

use ::alloc::string::String;
use core::fmt::Display;
use freertos_next::FreeRtosUtils;
use linerate_firmware::disk::FlashFile;
use linerate_firmware::{Counting, LastStart, Settings, log};
use linerate_nic::{Interface, Pool};
use linerate_wire::units::Instant;

#[global_allocator]
static HEAP: heap::Heap = heap::Heap;

/// What only a board knows.
pub trait Hardware: 'static {
    /// What was decided when the image was built.
    const SETTINGS: &'static Settings;
    /// The files of the image.
    const FILES: &'static [FlashFile];
    /// When the image was built, in ns since 1970.
    const BUILT_NS: i64;
    /// Bytes of the heap.
    const HEAP: usize;
    /// Bytes of the network task's stack.
    const NETWORK_STACK: usize;
    /// What `help` says of the commands that only this board has, a line each.
    const HELP: &'static str = "";

    /// The interface.
    type Device: Interface + Counting;
    /// Why it cannot be used.
    type OpenError: Display;

    /// Opens the interface; called once, in the network task. Its interrupt calls [`wake::on_frame`] from then on.
    fn open() -> Result<Opened<Self::Device>, Self::OpenError>;

    /// Time since the start.
    fn now() -> Instant;

    /// Has the timer's interrupt come after so many nanoseconds, instead of what was asked for before.
    fn wake_after(ns: u64);

    /// Lets the timer interrupt, which calls [`wake::on_time`].
    fn enable_timer();

    /// A byte that has come over the serial line.
    fn take_key() -> Option<u8>;

    /// Lets the serial line interrupt when a byte has come, which calls [`wake::on_key`].
    fn enable_keys();

    /// Sends text over the serial line, and waits for it.
    fn print(text: &str);

    /// Puts the processor to sleep until an interrupt.
    fn wait_for_interrupt();

    /// Has an interrupt that stands above all tasks call [`watch::check`] once a second from now on.
    fn start_watchdog();

    /// Why the board started.
    fn last_start() -> LastStart;

    /// Comes by one of the marks between which instructions are counted.
    fn mark(starts: bool);

    /// Carries out a command that only this board has.
    fn command(_line: &str) -> Option<String> {
        None
    }
}

/// An interface that was opened.
pub struct Opened<D> {
    /// The interface.
    pub device: D,
    /// The pool that it receives into.
    pub receive: Pool,
    /// Frames that wait in it beyond the pool's buffers.
    pub queue: usize,
    /// Frames taken in at once, and packets on their way to it.
    pub batch: usize,
}

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
