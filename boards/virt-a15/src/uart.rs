//! The serial line of the console (PL011).

use crate::registers::{read, write};
use core::fmt;

const UART: usize = 0x0900_0000;
const DATA: usize = UART;
const FLAGS: usize = UART + 0x18;
const BAUD_WHOLE: usize = UART + 0x24;
const BAUD_FRACTION: usize = UART + 0x28;
const LINE_CTRL: usize = UART + 0x2c;
const CTRL: usize = UART + 0x30;
const INTERRUPT_MASK: usize = UART + 0x38;
const INTERRUPT_CLEAR: usize = UART + 0x44;

const RECEIVE_EMPTY: u32 = 1 << 4;
const SEND_FULL: u32 = 1 << 5;
/// Eight bits, no parity, one stop bit, with FIFOs.
const LINE: u32 = 3 << 5 | 1 << 4;
const ENABLE: u32 = 1 | 1 << 8 | 1 << 9;
/// A byte has come, or some lie there and no more come.
const RECEIVE: u32 = 1 << 4 | 1 << 6;
/// 115,200 baud at 24 MHz: 13 and 1/64.
const DIVIDER: (u32, u32) = (13, 1);

/// Switches the line on.
pub fn start() {
    write(CTRL, 0);
    write(BAUD_WHOLE, DIVIDER.0);
    write(BAUD_FRACTION, DIVIDER.1);
    write(LINE_CTRL, LINE);
    write(INTERRUPT_MASK, RECEIVE);
    write(CTRL, ENABLE);
}

/// A byte that has come.
pub fn take() -> Option<u8> {
    (read(FLAGS) & RECEIVE_EMPTY == 0).then(|| read(DATA) as u8)
}

/// The interrupt was heard.
pub fn acknowledge() {
    write(INTERRUPT_CLEAR, RECEIVE);
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
    while read(FLAGS) & SEND_FULL != 0 {}
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
