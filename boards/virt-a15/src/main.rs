//! linerate on the emulator's board `virt` with a Cortex-A15, under FreeRTOS or under Embassy: seed 000's FTP server, with HTTP and iperf3.
//!
//! The tasks are those of all boards under the one or the other. Here is what only this board has: the start, the interrupt
//! controller, timers, the serial line, and the end.
#![no_std]
#![no_main]

mod board;
mod clock;
mod critical;
mod ethernet;
mod interrupts;
mod marks;
mod panic;
mod registers;
mod start;
mod uart;
mod watchdog;

#[cfg(not(feature = "freertos"))]
mod embassy;

#[cfg(not(feature = "freertos"))]
use embassy::begin;
#[cfg(not(feature = "freertos"))]
use linerate_firmware_embassy as system;
#[cfg(feature = "freertos")]
use linerate_firmware_freertos as system;

include!(concat!(env!("OUT_DIR"), "/settings.rs"));

/// Where the start goes on, in supervisor mode with interrupts masked.
fn run() -> ! {
    clock::start();
    uart::start();
    watchdog::note_start();
    interrupts::start();
    begin()
}

/// Hands the processor over.
#[cfg(feature = "freertos")]
fn begin() -> ! {
    system::start::<board::VirtA15>()
}
