//! The line of the console that is being typed.

use super::PROMPT_AGAIN;
use alloc::string::String;

/// The longest line.
const LONGEST: usize = 80;

/// A line that is being typed.
#[derive(Debug, Default)]
pub struct Line {
    text: String,
    before: Before,
}

/// What the byte before was, as far as the next one means something else after it.
#[derive(Clone, Copy, Debug, Default)]
enum Before {
    #[default]
    Nothing,
    /// A return: a new line behind it belongs to it.
    Return,
}

/// What a key did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Key {
    /// To be shown.
    Echo(&'static str),
    /// To be shown.
    Char(char),
    /// The line is complete.
    Enter(String),
    /// Nothing.
    Nothing,
}

impl Line {
    /// Without a letter.
    pub const fn new() -> Line {
        Line { text: String::new(), before: Before::Nothing }
    }

    /// Takes a byte from the terminal.
    pub fn key(&mut self, byte: u8) -> Key {
        let before = core::mem::take(&mut self.before);
        let (next, key) = match (before, byte) {
            (Before::Return, b'\n') => (Before::Nothing, Key::Nothing),
            (_, b'\r') => (Before::Return, Key::Enter(core::mem::take(&mut self.text))),
            (_, b'\n') => (Before::Nothing, Key::Enter(core::mem::take(&mut self.text))),
            _ => (Before::Nothing, self.edit(byte)),
        };
        self.before = next;
        key
    }

    fn edit(&mut self, byte: u8) -> Key {
        match byte {
            // Backspace, delete.
            8 | 127 => match self.text.pop() {
                Some(_) => Key::Echo("\x08 \x08"),
                None => Key::Nothing,
            },
            // ^C, ^U: the line is given up.
            3 | 21 => {
                self.text.clear();
                Key::Echo(PROMPT_AGAIN)
            }
            b' '..=b'~' if self.text.len() < LONGEST => {
                self.text.push(byte.into());
                Key::Char(byte.into())
            }
            _ => Key::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    /// The lines that these bytes make.
    fn lines(bytes: &[u8]) -> Vec<String> {
        let mut line = Line::new();
        let of = |key| if let Key::Enter(text) = key { Some(text) } else { None };
        bytes.iter().filter_map(|byte| of(line.key(*byte))).collect()
    }

    #[test]
    fn each_kind_of_line_end_ends_one_line() {
        let check =
            |bytes: &str, expected: &[&str]| assert_eq!(lines(bytes.as_bytes()), expected, "{bytes:?}");
        check("mem\r\n", &["mem"]);
        check("mem\rlog\r", &["mem", "log"]);
        check("mem\nlog\n", &["mem", "log"]);
        check("mem\r\nlog\r\n\r\n", &["mem", "log", ""]);
        check("mem\n\rlog\r\r\n\n", &["mem", "", "log", "", ""]);
        check("mem\ra\n", &["mem", "a"]);
    }

    proptest! {
        #[test]
        fn a_line_is_short_and_has_characters_alone(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            for line in lines(&bytes) {
                prop_assert!(line.len() <= LONGEST && line.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{:?}", line);
            }
        }
    }
}
