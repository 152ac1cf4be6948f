//! What only a board knows, where an operating system or an executor has the tasks.

use crate::counting::Counting;
use crate::disk::FlashFile;
use crate::machine::Parts;
use crate::settings::Settings;
use crate::trace::Tracer;
use crate::watchdog::LastStart;
use alloc::string::String;
use core::fmt::Display;
use linerate_nic::{Interface, Pool};
use linerate_wire::units::Instant;

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
    /// Bytes of the network task's stack, where it has one of its own.
    const NETWORK_STACK: usize;
    /// What `help` says of the commands that only this board has, a line each.
    const HELP: &'static str = "";

    /// The interface.
    type Device: Interface + Counting;
    /// Why it cannot be used.
    type OpenError: Display;

    /// Opens the interface; called once, in the network task. Its interrupt wakes that task from then on.
    fn open() -> Result<Opened<Self::Device>, Self::OpenError>;

    /// Time since the start.
    fn now() -> Instant;

    /// Has the timer's interrupt come after so many nanoseconds, instead of what was asked for before.
    fn wake_after(ns: u64);

    /// Lets the timer interrupt, which wakes the network task.
    fn enable_timer();

    /// A byte that has come over the serial line.
    fn take_key() -> Option<u8>;

    /// Lets the serial line interrupt when a byte has come, which wakes the console.
    fn enable_keys();

    /// Sends text over the serial line, and waits for it.
    fn print(text: &str);

    /// Puts the processor to sleep until an interrupt.
    fn wait_for_interrupt();

    /// Has an interrupt that stands above all tasks ask once a second whether they make progress, from now on.
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

/// What the servers run on: the interface, opened, and what the image has.
///
/// # Panics
/// Where the interface cannot be used: there is nothing else that the board could do.
pub fn open<H: Hardware>(tracer: &'static dyn Tracer) -> Parts<H::Device> {
    let opened = match H::open() {
        Ok(opened) => opened,
        Err(error) => panic!("{error}"),
    };
    Parts {
        device: opened.device,
        receive: opened.receive,
        device_queue: opened.queue,
        batch: opened.batch,
        flash: H::FILES,
        built_ns: H::BUILT_NS,
        tracer,
        exchange: None,
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
