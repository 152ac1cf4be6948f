//! The serial line of the console (CMSDK UART 0).

use crate::registers::{read, write};
use core::fmt;

const UART0: usize = 0x4000_4000;
const DATA: usize = UART0;
const STATE: usize = UART0 + 4;
const CTRL: usize = UART0 + 8;
const INTERRUPTS: usize = UART0 + 12;
const BAUD_DIVIDER: usize = UART0 + 16;

const SEND_FULL: u32 = 1;
const HAS_BYTE: u32 = 2;
const SEND: u32 = 1;
const RECEIVE: u32 = 2;
const RECEIVE_INTERRUPT: u32 = 8;
/// 115,200 baud at 25 MHz.
const DIVIDER: u32 = 217;

/// Switches the line on.
pub fn start() {
    write(BAUD_DIVIDER, DIVIDER);
    write(CTRL, SEND | RECEIVE | RECEIVE_INTERRUPT);
}

/// A byte that has come.
pub fn take() -> Option<u8> {
    (read(STATE) & HAS_BYTE != 0).then(|| read(DATA) as u8)
}

/// The interrupt was heard.
pub fn acknowledge() {
    write(INTERRUPTS, RECEIVE);
}

/// Sends text, and waits for the line.
pub fn print(text: &str) {
    for byte in text.bytes() {
        if byte == b'\n' {
            put(b'\r');
        }
        put(byte);
    }
}

fn put(byte: u8) {
    while read(STATE) & SEND_FULL != 0 {}
    write(DATA, byte.into());
}

/// The line for what is formatted without memory of the heap.
pub struct Out;

impl fmt::Write for Out {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        print(text);
        Ok(())
    }
}
