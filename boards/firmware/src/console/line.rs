//! The line of the console that is being typed.

use super::PROMPT_AGAIN;
use alloc::string::String;

/// The longest line.
const LONGEST: usize = 80;
const ESCAPE: u8 = 0x1b;

/// A line that is being typed.
#[derive(Debug, Default)]
pub struct Line {
    text: String,
    /// The last one that was not empty, for the key Up.
    previous: String,
    before: Before,
}

/// What the byte before was, as far as the next one means something else after it.
#[derive(Clone, Copy, Debug, Default)]
enum Before {
    #[default]
    Nothing,
    /// A return: a new line behind it belongs to it.
    Return,
    /// The first byte of what a terminal sends for keys without a character (ECMA-48, section 5).
    Escape,
    /// Parameters of such a sequence may come, and the byte that ends it and tells the key.
    Sequence,
    /// The next byte ends it, and tells nothing: function keys of Linux's own console.
    Last,
}

/// What a key did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Key {
    /// To be shown.
    Echo(&'static str),
    /// To be shown.
    Char(char),
    /// To be shown in place of the line so far.
    Instead(String),
    /// The line is complete.
    Enter(String),
    /// Nothing.
    Nothing,
}

impl Line {
    /// Without a letter.
    pub const fn new() -> Line {
        Line { text: String::new(), previous: String::new(), before: Before::Nothing }
    }

    /// Takes a byte from the terminal.
    pub fn key(&mut self, byte: u8) -> Key {
        let before = core::mem::take(&mut self.before);
        let (next, key) = match (before, byte) {
            (Before::Return, b'\n') => (Before::Nothing, Key::Nothing),
            (Before::Escape, b'[' | b'O') => (Before::Sequence, Key::Nothing),
            (Before::Escape | Before::Last, b' '..=b'~') => (Before::Nothing, Key::Nothing),
            (Before::Sequence, b' '..=b'?') => (Before::Sequence, Key::Nothing),
            (Before::Sequence, b'[') => (Before::Last, Key::Nothing),
            (Before::Sequence, b'@'..=b'~') => (Before::Nothing, self.arrow(byte)),
            // What controls is heard in the middle of a sequence, too: a line that ends there is not lost.
            (_, ESCAPE) => (Before::Escape, Key::Nothing),
            (_, b'\r') => (Before::Return, self.enter()),
            (_, b'\n') => (Before::Nothing, self.enter()),
            _ => (Before::Nothing, self.edit(byte)),
        };
        self.before = next;
        key
    }

    fn enter(&mut self) -> Key {
        if !self.text.is_empty() {
            self.previous.clone_from(&self.text);
        }
        Key::Enter(core::mem::take(&mut self.text))
    }

    /// Up brings the last line back, down takes it away; the others do nothing.
    fn arrow(&mut self, last: u8) -> Key {
        match last {
            b'A' if !self.previous.is_empty() => {
                self.text.clone_from(&self.previous);
                Key::Instead(self.text.clone())
            }
            b'B' => {
                self.text.clear();
                Key::Echo(PROMPT_AGAIN)
            }
            _ => Key::Nothing,
        }
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

    #[test]
    fn what_keys_without_a_character_send_is_no_part_of_the_line() {
        let check =
            |bytes: &str, expected: &str| assert_eq!(lines(bytes.as_bytes()), [expected], "{bytes:?}");
        // Left, right, Home, Delete, F5, Ctrl-right, F1 in three forms, Alt-b.
        for key in ["[D", "[C", "[H", "[3~", "[15~", "[1;5C", "OP", "[11~", "[[A", "b"] {
            check(&alloc::format!("m\x1b{key}em\r"), "mem");
        }
        check("mem\x1b\r", "mem");
        check("mem\x1b[1\r", "mem");
        check("x\x1b[\x15mem\r", "mem");
    }

    #[test]
    fn up_brings_the_last_line_back() {
        let up = "\x1b[A";
        let check =
            |bytes: &str, expected: &[&str]| assert_eq!(lines(bytes.as_bytes()), expected, "{bytes:?}");
        check(&alloc::format!("mem\r\n\r\nxx{up}\r\n"), &["mem", "", "mem"]);
        check(&alloc::format!("mem\r\x1bOA\x08t\r{up}\r"), &["mem", "met", "met"]);
        check(&alloc::format!("mem\r{up}\x1b[B\r"), &["mem", ""]);
        check(&alloc::format!("{up}log\r"), &["log"]);
        let mut line = Line::new();
        b"mem\r\x1b[".iter().for_each(|byte| drop(line.key(*byte)));
        assert_eq!(line.key(b'A'), Key::Instead("mem".into()));
        assert_eq!((line.key(127), line.key(3)), (Key::Echo("\x08 \x08"), Key::Echo(PROMPT_AGAIN)));
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
