//! Replies on the control connection (RFC 959 section 4.2), written so that no name or text can forge a line.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};
use linerate_transport::FileError;

/// A reply of one line.
pub(super) fn reply(code: u16, text: impl fmt::Display) -> Replies {
    let mut replies = Replies::default();
    replies.line(code, text);
    replies
}

/// The reply code for an operation that failed on a file that exists or should (RFC 959 section 4.2.2).
pub(super) fn error_code(error: FileError) -> u16 {
    match error {
        FileError::TooManyOpen | FileError::Busy => 450,
        FileError::Io | FileError::Stale => 451,
        FileError::NoSpace => 452,
        _ => 550,
    }
}

/// The reply code for a name that was to be made: 553 where the name is at fault.
pub(super) fn new_name_code(error: FileError) -> u16 {
    match error_code(error) {
        550 => 553,
        code => code,
    }
}

/// Replies, whole ones in their order: what a command answers, or what waits to be written.
#[derive(Default)]
#[must_use]
pub(super) struct Replies {
    bytes: Vec<u8>,
}

impl Replies {
    /// What waits.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Forgets the first `len` bytes, which were written.
    pub(super) fn written(&mut self, len: usize) {
        self.bytes.drain(..len.min(self.bytes.len()));
    }

    /// Adds other replies.
    pub(super) fn add(&mut self, other: Replies) {
        self.raw(&other.bytes);
    }

    /// Adds bytes as they are (Telnet refusals, lines that were checked already).
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds a reply of one line.
    pub(super) fn line(&mut self, code: u16, text: impl fmt::Display) {
        self.put(format_args!("{code} {text}"));
    }

    /// Begins a reply of several lines; [`Replies::line`] with the same code ends it.
    pub(super) fn first(&mut self, code: u16, text: impl fmt::Display) {
        self.put(format_args!("{code}-{text}"));
    }

    /// Adds a line within a reply of several lines. The space in front keeps a text that begins like a reply from
    /// being taken for the end (RFC 959 section 4.2).
    pub(super) fn middle(&mut self, text: impl fmt::Display) {
        self.put(format_args!(" {text}"));
    }

    fn put(&mut self, text: fmt::Arguments<'_>) {
        // The sink never fails; a `Display` that does leaves its line short.
        let _ = Clean(&mut self.bytes).write_fmt(text);
        self.bytes.extend_from_slice(b"\r\n");
    }
}

/// Replaces control characters, CR and LF above all, on the way into a reply.
struct Clean<'a>(&'a mut Vec<u8>);

impl Write for Clean<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            let c = if c.is_control() { '?' } else { c };
            self.0.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
        Ok(())
    }
}

/// A path in quotes, the quotes within doubled (RFC 959 appendix II).
pub(super) struct Quoted<'a>(pub(super) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            if c == '"' {
                f.write_char('"')?;
            }
            f.write_char(c)?;
        }
        f.write_char('"')
    }
}

/// `text` cut to at most `max` bytes at a character's end, for messages that repeat what the client sent.
pub(super) fn shortened(text: &str, max: usize) -> String {
    let mut end = text.len().min(max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut short = String::from(&text[..end]);
    if end < text.len() {
        short.push_str("...");
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn replies_have_the_form_of_the_rfc() {
        let mut replies = Replies::default();
        replies.first(211, "Features:");
        replies.middle("226 looks like an end");
        replies.line(211, "End");
        replies.line(257, format_args!("{} created", Quoted("/a \"b\"")));
        assert_eq!(
            replies.bytes(),
            b"211-Features:\r\n 226 looks like an end\r\n211 End\r\n257 \"/a \"\"b\"\"\" created\r\n"
        );
        replies.written(4);
        assert!(replies.bytes().starts_with(b"Features"));
    }

    #[test]
    fn a_text_is_shortened_at_a_character() {
        assert_eq!(shortened("aé", 2), "a...");
        assert_eq!(shortened("aé", 3), "aé");
    }

    #[test]
    fn codes_tell_a_lasting_fault_from_a_passing_one() {
        for (error, exists, new) in [
            (FileError::NotFound, 550, 553),
            (FileError::Permission, 550, 553),
            (FileError::NoSpace, 452, 452),
            (FileError::TooManyOpen, 450, 450),
            (FileError::Io, 451, 451),
        ] {
            assert_eq!((error_code(error), new_name_code(error)), (exists, new), "{error:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_a_second_line(text in any::<String>()) {
            let mut replies = Replies::default();
            replies.line(200, &text);
            let ends = replies.bytes().iter().filter(|b| **b == b'\n' || **b == b'\r').count();
            prop_assert_eq!(ends, 2);
        }
    }
}
