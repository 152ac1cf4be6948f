//! Bodies of requests as they arrive: counted bytes, or chunks with trailers (RFC 9112 sections 6 and 7.1).

use super::headers::is_token;
use super::request::Framing;
use super::uri::hex;

/// Longest line before a chunk, extensions included, in bytes without its CRLF.
const MAX_CHUNK_LINE: u32 = 256;
/// Most bytes of chunk lines beyond the digits of their sizes, over one body: extensions mean nothing here, and
/// whoever sends more of them than this wants to keep the server busy.
const MAX_EXTENSIONS: u32 = 16 << 10;
/// Most bytes of trailer fields.
const MAX_TRAILERS: u32 = 8 << 10;

/// Why a body cannot be read to its end. The connection is of no further use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BodyError {
    /// A chunk's size is not a hexadecimal number, its extensions break the grammar, or its line is not ended by CRLF.
    ChunkLine,
    /// A chunk is not followed by CRLF.
    ChunkEnd,
    /// A trailer field breaks the grammar.
    Trailer,
    /// Chunk extensions or trailers are too long.
    Overhead,
}

impl core::fmt::Display for BodyError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            BodyError::ChunkLine => {
                "a chunk's size is not a hexadecimal number, or its line does not end with CRLF"
            }
            BodyError::ChunkEnd => "a chunk is not followed by CRLF",
            BodyError::Trailer => "a trailer field breaks the grammar",
            BodyError::Overhead => "chunk extensions or trailers are too long",
        })
    }
}

/// What a call of [`Body::feed`] found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Bytes that belong to the body (framing included), to be consumed.
    pub used: usize,
    /// Bytes of content among them.
    pub content: u64,
    /// Whether the body is complete.
    pub done: bool,
}

/// A body on its way in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Body {
    part: Part,
    extensions: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    /// This many bytes are left of a counted body.
    Counted(u64),
    /// The size of a chunk: its value so far, and how many digits it has.
    Size { value: u64, digits: u8 },
    /// In the white space between a size and `;`, and the length of the line so far.
    SizeBlank { value: u64, line: u32 },
    /// In the chunk extensions, and the length of the line so far.
    Extension { value: u64, line: u32, at: Extension },
    /// After the CR of a chunk's line.
    SizeEnd(u64),
    /// This many bytes are left of the chunk.
    Data(u64),
    /// After a chunk's data.
    DataEnd,
    /// After the CR that follows the data.
    DataEndLf,
    /// In the trailers; the number is their length so far.
    Trailer(Trailer, u32),
    /// Complete.
    Done,
}

/// Where in `*( ";" name [ "=" ( token / quoted-string ) ] )` (RFC 9112 section 7.1.1). White space is allowed around
/// `;` and `=`, as RFC 9110 section 5.6.3 demands of a recipient, but not at the end of the line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Extension {
    /// After `;`.
    Start,
    /// In a name.
    Name,
    /// After a name and white space.
    NameEnd,
    /// After `=`.
    ValueStart,
    /// In a token as value.
    Value,
    /// In a quoted string.
    Quoted,
    /// After the backslash in one.
    Escape,
    /// After a quoted string.
    QuotedEnd,
    /// After a value and white space.
    ValueEnd,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Trailer {
    /// At the beginning of a line.
    Start,
    /// In a name.
    Name,
    /// In a value.
    Value,
    /// After the CR of a field.
    FieldEnd,
    /// After the CR of the last, empty line.
    LastEnd,
}

impl Body {
    /// A body that begins with the next byte.
    pub fn new(framing: Framing) -> Body {
        let part = match framing {
            Framing::Empty => Part::Done,
            Framing::Length(0) => Part::Done,
            Framing::Length(len) => Part::Counted(len),
            Framing::Chunked => Part::Size { value: 0, digits: 0 },
        };
        Body { part, extensions: 0 }
    }

    /// Whether it is complete.
    pub fn is_done(&self) -> bool {
        self.part == Part::Done
    }

    /// Takes the next bytes. Stops after the last byte of the body, which may be before the end of `bytes`.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Progress, BodyError> {
        let mut progress = Progress { used: 0, content: 0, done: self.is_done() };
        while let Some(rest) = bytes.get(progress.used..).filter(|rest| !rest.is_empty()) {
            match self.part {
                Part::Done => break,
                Part::Counted(left) => {
                    let taken = left.min(rest.len() as u64);
                    self.part = if taken == left { Part::Done } else { Part::Counted(left - taken) };
                    progress.content += taken;
                    progress.used += taken as usize;
                }
                Part::Data(left) => {
                    let taken = left.min(rest.len() as u64);
                    self.part = if taken == left { Part::DataEnd } else { Part::Data(left - taken) };
                    progress.content += taken;
                    progress.used += taken as usize;
                }
                other => {
                    self.part = self.step(other, rest[0])?;
                    progress.used += 1;
                }
            }
        }
        progress.done = self.is_done();
        Ok(progress)
    }

    /// One byte of framing.
    fn step(&mut self, part: Part, byte: u8) -> Result<Part, BodyError> {
        match (part, byte) {
            (Part::Size { value, digits }, _) => step_size(value, digits, byte),
            // Only an extension may follow: without one, some parsers take the line and some do not.
            (Part::SizeBlank { value, line }, b' ' | b'\t') => {
                self.count_extension(line)?;
                Ok(Part::SizeBlank { value, line: line + 1 })
            }
            (Part::SizeBlank { value, line }, b';') => {
                self.count_extension(line)?;
                Ok(Part::Extension { value, line: line + 1, at: Extension::Start })
            }
            (
                Part::Extension {
                    value, at: Extension::Name | Extension::Value | Extension::QuotedEnd, ..
                },
                b'\r',
            ) => Ok(Part::SizeEnd(value)),
            (Part::Extension { value, line, at }, _) => {
                self.count_extension(line)?;
                Ok(Part::Extension { value, line: line + 1, at: step_extension(at, byte)? })
            }
            (Part::SizeEnd(0), b'\n') => Ok(Part::Trailer(Trailer::Start, 0)),
            (Part::SizeEnd(value), b'\n') => Ok(Part::Data(value)),
            (Part::DataEnd, b'\r') => Ok(Part::DataEndLf),
            (Part::DataEndLf, b'\n') => Ok(Part::Size { value: 0, digits: 0 }),
            (Part::DataEnd | Part::DataEndLf, _) => Err(BodyError::ChunkEnd),
            (Part::Trailer(Trailer::LastEnd, _), b'\n') => Ok(Part::Done),
            (Part::Trailer(trailer, len), _) => {
                if len >= MAX_TRAILERS {
                    return Err(BodyError::Overhead);
                }
                Ok(Part::Trailer(step_trailer(trailer, byte)?, len + 1))
            }
            _ => Err(BodyError::ChunkLine),
        }
    }

    /// Counts a byte behind a chunk's size, on a line that is `line` bytes long so far.
    fn count_extension(&mut self, line: u32) -> Result<(), BodyError> {
        self.extensions += 1;
        if line >= MAX_CHUNK_LINE || self.extensions > MAX_EXTENSIONS {
            return Err(BodyError::Overhead);
        }
        Ok(())
    }
}

fn step_size(value: u64, digits: u8, byte: u8) -> Result<Part, BodyError> {
    let line = u32::from(digits) + 1;
    match (byte, hex(byte)) {
        // 15 digits are 60 bits: more than anyone sends, and no sum of chunks overflows.
        (_, Some(digit)) if digits < 15 => {
            Ok(Part::Size { value: value << 4 | u64::from(digit), digits: digits + 1 })
        }
        (b'\r', None) if digits > 0 => Ok(Part::SizeEnd(value)),
        (b' ' | b'\t', None) if digits > 0 => Ok(Part::SizeBlank { value, line }),
        (b';', None) if digits > 0 => Ok(Part::Extension { value, line, at: Extension::Start }),
        _ => Err(BodyError::ChunkLine),
    }
}

fn step_extension(at: Extension, byte: u8) -> Result<Extension, BodyError> {
    use Extension::*;
    Ok(match (at, byte) {
        (Start, b' ' | b'\t') => Start,
        (NameEnd | Name, b' ' | b'\t') => NameEnd,
        (ValueStart, b' ' | b'\t') => ValueStart,
        (Value | QuotedEnd | ValueEnd, b' ' | b'\t') => ValueEnd,
        (Start | Name, byte) if is_token(byte) => Name,
        (ValueStart | Value, byte) if is_token(byte) => Value,
        (Name | NameEnd, b'=') => ValueStart,
        (Name | NameEnd | Value | QuotedEnd | ValueEnd, b';') => Start,
        (ValueStart, b'"') => Quoted,
        (Quoted, b'"') => QuotedEnd,
        (Quoted, b'\\') => Escape,
        (Quoted | Escape, b'\t' | b' '..=b'~' | 0x80..) => Quoted,
        _ => return Err(BodyError::ChunkLine),
    })
}

fn step_trailer(trailer: Trailer, byte: u8) -> Result<Trailer, BodyError> {
    match (trailer, byte) {
        (Trailer::Start, b'\r') => Ok(Trailer::LastEnd),
        (Trailer::Start | Trailer::Name, byte) if is_token(byte) => Ok(Trailer::Name),
        (Trailer::Name, b':') => Ok(Trailer::Value),
        (Trailer::Value, b'\r') => Ok(Trailer::FieldEnd),
        (Trailer::Value, b'\t' | b' '..=b'~' | 0x80..) => Ok(Trailer::Value),
        (Trailer::FieldEnd, b'\n') => Ok(Trailer::Start),
        _ => Err(BodyError::Trailer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use proptest::prelude::*;

    /// Feeds everything at once and byte by byte; both must agree.
    fn check(framing: Framing, bytes: &[u8], expected: Result<(usize, u64, bool), BodyError>) {
        let mut body = Body::new(framing);
        let whole = body.feed(bytes).map(|p| (p.used, p.content, p.done));
        assert_eq!(whole, expected, "{:?}", String::from_utf8_lossy(bytes));
        let mut body = Body::new(framing);
        let (mut used, mut content, mut done) = (0, 0, body.is_done());
        for byte in bytes {
            match body.feed(&[*byte]) {
                Ok(progress) => {
                    used += progress.used;
                    content += progress.content;
                    done = progress.done;
                }
                Err(error) => return assert_eq!(Err(error), expected),
            }
        }
        assert_eq!(Ok((used, content, done)), expected);
    }

    #[test]
    fn counted_bodies_end_where_they_say() {
        check(Framing::Empty, b"GET", Ok((0, 0, true)));
        check(Framing::Length(3), b"abcGET", Ok((3, 3, true)));
        check(Framing::Length(3), b"ab", Ok((2, 2, false)));
        check(Framing::Length(u64::MAX), b"ab", Ok((2, 2, false)));
    }

    #[test]
    fn chunks_end_with_an_empty_one() {
        let check = |text: &str, expected| check(Framing::Chunked, text.as_bytes(), expected);
        check("3\r\nabc\r\n0\r\n\r\nGET", Ok((13, 3, true)));
        check("0\r\n\r\n", Ok((5, 0, true)));
        check("000A\r\n0123456789\r\n0\r\n\r\n", Ok((23, 10, true)));
        check("3;a=b;c=\"d\"\r\nabc\r\n0;x\r\n\r\n", Ok((25, 3, true)));
        check("3; a\t= b ;c = \"d \\\" e;\"\r\nabc\r\n0\r\n\r\n", Ok((35, 3, true)));
        check("3 ;a=b\r\nabc\r\n0\t ;x\r\n\r\n", Ok((22, 3, true)));
        check("0\r\nA: b\r\nC:\r\n\r\n", Ok((15, 0, true)));
        check("3\r\nab", Ok((5, 2, false)));
        check("0\r\n\r", Ok((4, 0, false)));
    }

    #[test]
    fn shapes_that_smuggle_are_refused() {
        let check = |text: &str, expected| check(Framing::Chunked, text.as_bytes(), Err(expected));
        for line in [
            "\r\n",
            "g\r\n",
            "0x3\r\n",
            "+3\r\n",
            "-3\r\n",
            " 3\r\n",
            "3 \r\n",
            "3\t\r\n",
            "3 \n",
            "3 a\r\n",
            "3 3\r\n",
            "3 ;\r\n",
            "3 ;;a\r\n",
            " ;a\r\n",
            "3\n",
            "3\r\r\n",
            ";a\r\n",
            "3_0\r\n",
            "3;a\nabc",
            "3;a\0\r\n",
            "3;\r\n",
            "3;;a\r\n",
            "3;=b\r\n",
            "3;a=\r\n",
            "3;a=b=c\r\n",
            "3;a b\r\n",
            "3;a \r\n",
            "3;a=b \r\n",
            "3;a=b c\r\n",
            "3;a=\"b\r\n",
            "3;a=\"b\"c\r\n",
            "3;a=b\"c\"\r\n",
            "3;(a)\r\n",
            "3;a=\"\\\r\n",
            "1000000000000000\r\n",
            "3\rabc",
        ] {
            check(line, BodyError::ChunkLine);
        }
        check("3\r\nabcd\r\n", BodyError::ChunkEnd);
        check("3\r\nabc\n0\r\n\r\n", BodyError::ChunkEnd);
        check("3\r\nabc0\r\n\r\n", BodyError::ChunkEnd);
        check("3\r\nabc\r0\r\n", BodyError::ChunkEnd);
        for trailer in [
            "0\r\nA b\r\n",
            "0\r\nA : b\r\n",
            "0\r\n A: b\r\n",
            "0\r\n\n",
            "0\r\nA: b\n",
            "0\r\n: b\r\n",
            "0\r\nA: b\r\r\n",
            "0\r\nA\r\n",
        ] {
            check(trailer, BodyError::Trailer);
        }
        check(&alloc::format!("1;{}\r\n", "x".repeat(300)), BodyError::Overhead);
        check(&alloc::format!("1{};x\r\n", " ".repeat(300)), BodyError::Overhead);
        check(&alloc::format!("0\r\nA: {}\r\n", "x".repeat(9_000)), BodyError::Overhead);
        check(&alloc::format!("1;{}\r\na\r\n", "x".repeat(200)).repeat(100), BodyError::Overhead);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken_and_never_more_used_than_given(bytes in "[0-3a;:\\r\\n x]{0,60}") {
            let mut body = Body::new(Framing::Chunked);
            if let Ok(progress) = body.feed(bytes.as_bytes()) {
                prop_assert!(progress.used <= bytes.len());
                prop_assert!(progress.content <= progress.used as u64);
                prop_assert_eq!(progress.done || progress.used == bytes.len(), true);
            }
        }

        #[test]
        fn content_is_counted_exactly(chunks in proptest::collection::vec(1usize..40, 0..8), cut in 0usize..400) {
            let mut text = String::new();
            for len in &chunks {
                text += &alloc::format!("{len:x}\r\n{}\r\n", "y".repeat(*len));
            }
            text += "0\r\n\r\n";
            let cut = cut.min(text.len());
            let mut body = Body::new(Framing::Chunked);
            let first = body.feed(&text.as_bytes()[..cut]).unwrap();
            let second = body.feed(&text.as_bytes()[cut..]).unwrap();
            prop_assert!(second.done);
            prop_assert_eq!(first.content + second.content, chunks.iter().sum::<usize>() as u64);
        }
    }
}
