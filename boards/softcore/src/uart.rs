//! The serial line of the simulation: a register each way.

use crate::registers::{read, write};
use core::fmt;

const LINE: usize = 0xf001_0000;
/// There was a byte.
const CAME: u32 = 1 << 8;

/// A byte that has come.
pub fn take() -> Option<u8> {
    let word = read(LINE);
    (word & CAME != 0).then_some(word as u8)
}

/// Sends text.
pub fn print(text: &str) {
    for byte in text.bytes() {
        if byte == b'\n' {
            write(LINE, b'\r'.into());
        }
        write(LINE, byte.into());
    }
}

/// Sends a byte as it is.
pub fn send(byte: u8) {
    write(LINE, byte.into());
}

/// The line for what is formatted without memory of the heap.
pub struct Out;

impl fmt::Write for Out {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        print(text);
        Ok(())
    }
}
