//! The board as what all boards under FreeRTOS, or under Embassy, share sees it.

use crate::system::{Hardware, Opened};
use crate::{clock, critical, ethernet, interrupts, marks, uart, watchdog};
use linerate_firmware::disk::FlashFile;
use linerate_firmware::{LastStart, Settings};
use linerate_wire::units::Instant;

/// The board.
pub enum VirtA15 {}

impl Hardware for VirtA15 {
    const SETTINGS: &'static Settings = &crate::SETTINGS;
    const FILES: &'static [FlashFile] = crate::FILES;
    const BUILT_NS: i64 = crate::BUILT_NS;
    /// As in `build.rs`.
    const HEAP: usize = 64 << 20;
    const NETWORK_STACK: usize = 128 << 10;

    type Device = ethernet::Device;
    type OpenError = ethernet::OpenError;

    fn open() -> Result<Opened<ethernet::Device>, ethernet::OpenError> {
        ethernet::open()
    }

    fn now() -> Instant {
        clock::now()
    }

    fn wake_after(ns: u64) {
        clock::wake_after(ns);
    }

    fn enable_timer() {
        interrupts::enable(interrupts::WAKE);
    }

    fn take_key() -> Option<u8> {
        uart::take()
    }

    fn enable_keys() {
        interrupts::enable(interrupts::UART);
    }

    fn print(text: &str) {
        uart::print(text);
    }

    fn wait_for_interrupt() {
        critical::wait_for_interrupt();
    }

    fn start_watchdog() {
        watchdog::start();
    }

    fn last_start() -> LastStart {
        watchdog::last_start()
    }

    fn mark(starts: bool) {
        marks::mark(starts);
    }
}
