//! The serial line: the first UART of the processing system (Cadence; UG1087, module UART).

use crate::registers::{read, write};
use core::fmt;

const BASE: usize = 0xff00_0000;
const CONTROL: usize = BASE;
const MODE: usize = BASE + 0x04;
const INTERRUPT_ENABLE: usize = BASE + 0x08;
const INTERRUPT_DISABLE: usize = BASE + 0x0c;
const INTERRUPT_STATUS: usize = BASE + 0x14;
const BAUD: usize = BASE + 0x18;
const RECEIVE_LEVEL: usize = BASE + 0x20;
const STATUS: usize = BASE + 0x2c;
const FIFO: usize = BASE + 0x30;
const BAUD_DIVIDER: usize = BASE + 0x34;

/// Both FIFOs emptied, receiver and transmitter on.
const ON: u32 = 1 | 1 << 1 | 1 << 2 | 1 << 4;
/// Eight bits, no parity, one stop bit.
const LINE: u32 = 0x20;
/// 115,200 baud of 100 MHz: divided by 124 and by 6 + 1.
const DIVIDERS: (u32, u32) = (124, 6);
const RECEIVE_EMPTY: u32 = 1 << 1;
const SEND_EMPTY: u32 = 1 << 3;
const SEND_FULL: u32 = 1 << 4;
/// A byte is on its way.
const SENDING: u32 = 1 << 11;
/// As many bytes have come as [`RECEIVE_LEVEL`] says.
const RECEIVED: u32 = 1;

/// Switches the line on.
pub fn start() {
    write(INTERRUPT_DISABLE, !0);
    write(MODE, LINE);
    write(BAUD, DIVIDERS.0);
    write(BAUD_DIVIDER, DIVIDERS.1);
    write(RECEIVE_LEVEL, 1);
    write(CONTROL, ON);
    write(INTERRUPT_ENABLE, RECEIVED);
}

/// A byte that has come.
pub fn take() -> Option<u8> {
    (read(STATUS) & RECEIVE_EMPTY == 0).then(|| read(FIFO) as u8)
}

/// The interrupt was heard.
pub fn acknowledge() {
    write(INTERRUPT_STATUS, RECEIVED);
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

/// Waits until what was sent has left.
pub fn drain() {
    while read(STATUS) & (SEND_EMPTY | SENDING) != SEND_EMPTY {}
}

fn put(byte: u8) {
    while read(STATUS) & SEND_FULL != 0 {}
    write(FIFO, byte.into());
}

/// The line for what is formatted without memory of the heap.
pub struct Out;

impl fmt::Write for Out {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        print(text);
        Ok(())
    }
}
