//! Lines of the control connection: split at LF, bounded in length, Telnet bytes taken out (RFC 959 section 3.1.2.1,
//! RFC 1123 section 4.1.2.10).

use alloc::vec::Vec;
use core::mem;

const IAC: u8 = 255;
const SB: u8 = 250;
const SE: u8 = 240;
const WILL: u8 = 251;
const WONT: u8 = 252;
const DO: u8 = 253;
const DONT: u8 = 254;

/// Most refusals of Telnet options kept until they are sent; further offers are ignored.
const MAX_REFUSALS: usize = 3 * 16;

/// What a line turned out to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Line {
    /// The bytes before CR LF (or a lone LF), without Telnet bytes.
    Text(Vec<u8>),
    /// More bytes than allowed; they were thrown away.
    TooLong,
}

/// Where the reader stands within a Telnet sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Telnet {
    Text,
    /// After IAC.
    Command,
    /// After IAC and WILL, WONT, DO or DONT: the option comes.
    Option(u8),
    /// Within a subnegotiation.
    Sub,
    /// After IAC within a subnegotiation.
    SubCommand,
}

/// Splits the byte stream of a control connection into lines.
#[derive(Clone)]
pub(super) struct LineReader {
    line: Vec<u8>,
    telnet: Telnet,
    overlong: bool,
    refusals: Vec<u8>,
}

impl LineReader {
    pub(super) fn new() -> Self {
        LineReader { line: Vec::new(), telnet: Telnet::Text, overlong: false, refusals: Vec::new() }
    }

    /// Takes bytes up to the end of the first line in `bytes`, or all of them when none ends there. Answers how many
    /// were taken, and the line. `max` is the most bytes a line may have.
    pub(super) fn next(&mut self, bytes: &[u8], max: usize) -> (usize, Option<Line>) {
        for (at, &byte) in bytes.iter().enumerate() {
            if let Some(line) = self.byte(byte, max) {
                return (at + 1, Some(line));
            }
        }
        (bytes.len(), None)
    }

    /// Refusals of Telnet options that are due to the peer.
    pub(super) fn take_refusals(&mut self) -> Vec<u8> {
        mem::take(&mut self.refusals)
    }

    #[cfg(test)]
    pub(super) fn held_len(&self) -> usize {
        self.line.len() + self.refusals.len()
    }

    fn byte(&mut self, byte: u8, max: usize) -> Option<Line> {
        match (self.telnet, byte) {
            (Telnet::Text, IAC) => self.telnet = Telnet::Command,
            (Telnet::Text, b'\n') => return Some(self.end()),
            // What is left of an urgent IAC DM when the transport delivers the urgent byte elsewhere. No verb begins
            // so, and neither does UTF-8 text of an assigned plane.
            (Telnet::Text, SE..) if self.line.is_empty() => {}
            (Telnet::Text, byte) => self.push(byte, max),
            (Telnet::Command, IAC) => {
                self.telnet = Telnet::Text;
                self.push(IAC, max);
            }
            (Telnet::Command, WILL | WONT | DO | DONT) => self.telnet = Telnet::Option(byte),
            (Telnet::Command, SB) => self.telnet = Telnet::Sub,
            (Telnet::Command, _) => self.telnet = Telnet::Text,
            (Telnet::Option(verb), option) => {
                self.telnet = Telnet::Text;
                self.refuse(verb, option);
            }
            (Telnet::Sub, IAC) => self.telnet = Telnet::SubCommand,
            (Telnet::Sub, _) => {}
            (Telnet::SubCommand, SE) => self.telnet = Telnet::Text,
            (Telnet::SubCommand, _) => self.telnet = Telnet::Sub,
        }
        None
    }

    fn push(&mut self, byte: u8, max: usize) {
        // One byte more for the CR, which is not part of the line.
        if self.line.len() > max {
            self.overlong = true;
        } else if !self.overlong {
            self.line.push(byte);
        }
    }

    fn end(&mut self) -> Line {
        let mut line = mem::take(&mut self.line);
        if mem::take(&mut self.overlong) {
            return Line::TooLong;
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Line::Text(line)
    }

    /// No option is ever taken on, so only offers and requests need an answer (RFC 854: no answer to WONT and DONT,
    /// which would go on for ever).
    fn refuse(&mut self, verb: u8, option: u8) {
        let answer = match verb {
            WILL => DONT,
            DO => WONT,
            _ => return,
        };
        if self.refusals.len() < MAX_REFUSALS {
            self.refusals.extend_from_slice(&[IAC, answer, option]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    fn all(reader: &mut LineReader, mut bytes: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        while !bytes.is_empty() {
            let (taken, line) = reader.next(bytes, 32);
            bytes = &bytes[taken..];
            lines.extend(line);
        }
        lines
    }

    fn check(bytes: &[u8], expected: &[&[u8]]) {
        let expected: Vec<Line> = expected.iter().map(|line| Line::Text(line.to_vec())).collect();
        assert_eq!(all(&mut LineReader::new(), bytes), expected, "{bytes:?}");
        let mut reader = LineReader::new();
        let bytewise: Vec<Line> = bytes.iter().flat_map(|byte| all(&mut reader, &[*byte])).collect();
        assert_eq!(bytewise, expected, "{bytes:?} byte by byte");
    }

    #[test]
    fn lines_are_split_whatever_the_segments() {
        check(b"NOOP\r\n", &[b"NOOP"]);
        check(b"NOOP\n", &[b"NOOP"]);
        check(b"USER a\r\nPASS b\r\nCW", &[b"USER a", b"PASS b"]);
        check(b"\r\n\r\n", &[b"", b""]);
        check(b"a\rb\r\r\n", &[b"a\rb\r"]);
        check(b"a\0b\r\n", &[b"a\0b"]);
    }

    #[test]
    fn telnet_bytes_are_taken_out() {
        check(b"\xff\xf4\xff\xf2ABOR\r\n", &[b"ABOR"]);
        check(b"\xff\xf4\xf2ABOR\r\n", &[b"ABOR"]);
        check(b"\xf2ABOR\r\n", &[b"ABOR"]);
        check(b"NO\xff\xf1OP\r\n", &[b"NOOP"]);
        check(b"CWD a\xff\xffb\r\n", &[b"CWD a\xffb"]);
        check(b"\xff\xfa\x18\x01\xff\xff\n\xff\xf0SYST\r\n", &[b"SYST"]);
        check(b"\xff\xfb\x01\xff\xfd\x03SYST\r\n", &[b"SYST"]);
    }

    #[test]
    fn options_are_refused_but_not_for_ever() {
        let mut reader = LineReader::new();
        all(&mut reader, b"\xff\xfb\x01\xff\xfd\x03\xff\xfc\x05\xff\xfe\x06");
        assert_eq!(reader.take_refusals(), b"\xff\xfe\x01\xff\xfc\x03");
        for _ in 0..100 {
            all(&mut reader, b"\xff\xfb\x01");
        }
        assert_eq!(reader.take_refusals().len(), MAX_REFUSALS);
    }

    #[test]
    fn a_line_too_long_is_one_error_and_the_next_one_counts() {
        let mut bytes = vec![b'a'; 1000];
        bytes.extend_from_slice(b"\r\nNOOP\r\n");
        let lines = all(&mut LineReader::new(), &bytes);
        assert_eq!(lines, [Line::TooLong, Line::Text(b"NOOP".to_vec())]);
        let mut exact = vec![b'a'; 32];
        exact.extend_from_slice(b"\r\n");
        assert_eq!(all(&mut LineReader::new(), &exact), [Line::Text(vec![b'a'; 32])]);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_grow(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let mut reader = LineReader::new();
            for line in all(&mut reader, &bytes) {
                if let Line::Text(text) = line {
                    prop_assert!(text.len() <= 33 && !text.contains(&b'\n'));
                }
            }
            prop_assert!(reader.line.len() <= 33);
            prop_assert!(reader.refusals.len() <= MAX_REFUSALS);
        }
    }
}
