//! linerate on the MPS2 board with a Cortex-M7 (AN500), under FreeRTOS: seed 002's iperf3 server, with HTTP and FTP.
//!
//! Three tasks: the network, which runs stack and servers and sleeps until the Ethernet interrupt or a deadline; the console;
//! and an application that computes whenever nobody else does. Code and data lie in the fast memories, packets in a region of
//! their own, as on the seed's STM32H7.
#![no_std]
#![no_main]

mod board;
mod clock;
mod ethernet;
mod interrupts;
mod marks;
mod panic;
mod registers;
mod uart;
mod watchdog;

include!(concat!(env!("OUT_DIR"), "/settings.rs"));

#[cortex_m_rt::entry]
fn main() -> ! {
    clock::start();
    uart::start();
    watchdog::note_start();
    linerate_firmware_freertos::start::<board::An500>()
}
