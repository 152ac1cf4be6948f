//! The console: keys in, answers out, between two turns of the loop.

use crate::uart;
use alloc::string::String;
use linerate_firmware::console::{Key, Line, PROMPT};

/// The line that is being typed, and the command that was.
#[derive(Debug, Default)]
pub struct Console {
    line: Line,
    command: Option<String>,
}

impl Console {
    /// Takes what has been typed; whether a command is complete.
    pub fn read(&mut self) -> bool {
        while self.command.is_none() {
            let Some(byte) = uart::take() else { return false };
            match self.line.key(byte) {
                Key::Echo(text) => uart::print(text),
                Key::Char(char) => uart::print(char.encode_utf8(&mut [0; 4])),
                Key::Enter(text) => {
                    uart::print("\n");
                    self.command = Some(text);
                }
                Key::Nothing => {}
            }
        }
        true
    }

    /// A command that waits to be carried out.
    pub fn command(&mut self) -> Option<String> {
        self.read();
        self.command.take()
    }

    /// Shows the answer to the last one.
    pub fn answer(text: &str) {
        uart::print(text);
        uart::print(PROMPT);
    }
}
