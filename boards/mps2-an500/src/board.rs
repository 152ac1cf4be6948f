//! The board as what all boards under FreeRTOS share sees it.

use crate::ethernet::{self, Chip};
use crate::{clock, interrupts, marks, uart, watchdog};
use linerate_firmware::disk::FlashFile;
use linerate_firmware::lan9118::{Lan9118, OpenError};
use linerate_firmware::{LastStart, Settings};
use linerate_firmware_freertos::{Hardware, Opened};
use linerate_wire::units::Instant;

/// The board.
pub enum An500 {}

impl Hardware for An500 {
    const SETTINGS: &'static Settings = &crate::SETTINGS;
    const FILES: &'static [FlashFile] = crate::FILES;
    const BUILT_NS: i64 = crate::BUILT_NS;
    /// As in `build.rs`.
    const HEAP: usize = 1 << 20;
    const NETWORK_STACK: usize = 48 << 10;

    type Device = Lan9118<Chip>;
    type OpenError = OpenError;

    fn open() -> Result<Opened<Lan9118<Chip>>, OpenError> {
        ethernet::open()
    }

    fn now() -> Instant {
        clock::now()
    }

    fn wake_after(ns: u64) {
        clock::wake_after(ns);
    }

    fn enable_timer() {
        interrupts::enable(interrupts::TIMER1);
    }

    fn take_key() -> Option<u8> {
        uart::take()
    }

    fn enable_keys() {
        interrupts::enable(interrupts::UART0_RECEIVE);
    }

    fn print(text: &str) {
        uart::print(text);
    }

    fn wait_for_interrupt() {
        cortex_m::asm::wfi();
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
