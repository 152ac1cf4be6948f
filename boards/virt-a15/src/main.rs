//! linerate on the emulator's board `virt` with a Cortex-A15, under FreeRTOS: seed 000's FTP server, with HTTP and iperf3.
//!
//! The tasks are those of all boards under FreeRTOS. Here is what only this board has: the start, the interrupt controller, timers, the
//! serial line, and the end.
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

include!(concat!(env!("OUT_DIR"), "/settings.rs"));

/// Where the start goes on, in supervisor mode with interrupts masked.
// SAFETY: no other function has this name; `start.s` calls it once, with a stack and all statics in place.
#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    clock::start();
    uart::start();
    interrupts::start();
    linerate_firmware_freertos::start::<board::VirtA15>()
}
