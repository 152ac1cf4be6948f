//! Header fields of a request: finding the end of a head as it arrives, and looking fields up by name.

use super::request::RequestError;
use alloc::vec::Vec;

/// Most header fields in one request.
pub const MAX_FIELDS: usize = 100;
/// Header fields that nearly all requests have at most: room for more is made when it is needed.
const USUAL_FIELDS: usize = 24;

/// Limits of a request's head, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeadLimits {
    /// The request line, without its CRLF.
    pub line: usize,
    /// All header fields together, with their CRLFs.
    pub fields: usize,
}

/// Most empty lines before a request that are passed over (RFC 9112 section 2.2 asks for at least one).
const MAX_BLANK_LINES: usize = 2;

/// Looks for the end of a head, over pieces as they arrive; no byte is looked at twice.
///
/// A line that does not end with CRLF is refused at once (RFC 9112 section 2.2 would allow a lone LF, and what follows
/// is where two parsers disagree), as is a connection that does not begin like HTTP at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HeadScan {
    /// Bytes looked at.
    at: usize,
    /// Where the line under way begins.
    line: usize,
    /// Where the request line begins: after blank lines.
    start: usize,
    /// Where the fields begin; zero while the request line is not over.
    fields: usize,
}

/// Where a complete head lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeadEnd {
    /// Where the request line begins.
    pub start: usize,
    /// Where the header fields begin.
    pub fields: usize,
    /// After the empty line: where the body or the next request begins.
    pub end: usize,
}

impl HeadScan {
    /// Goes on with `bytes`: all bytes since the scan began, those already scanned included. `None`: more are needed.
    pub fn scan(&mut self, bytes: &[u8], limits: &HeadLimits) -> Result<Option<HeadEnd>, RequestError> {
        while let Some(found) = bytes.get(self.at..).and_then(|rest| memchr::memchr(b'\n', rest)) {
            let lf = self.at + found;
            if lf == self.line || bytes[lf - 1] != b'\r' {
                return Err(RequestError::BareLineFeed);
            }
            let len = lf - 1 - self.line;
            self.at = lf + 1;
            self.line = lf + 1;
            if self.fields > 0 {
                if self.at - self.fields > limits.fields + 2 {
                    return Err(RequestError::FieldsTooLong);
                }
                if len == 0 {
                    return Ok(Some(HeadEnd { start: self.start, fields: self.fields, end: self.at }));
                }
            } else if len > 0 {
                if !is_token(bytes[self.start]) {
                    return Err(RequestError::Syntax);
                }
                if len > limits.line {
                    return Err(RequestError::LineTooLong);
                }
                self.fields = self.at;
            } else {
                self.start = self.at;
                if self.start > 2 * MAX_BLANK_LINES {
                    return Err(RequestError::Syntax);
                }
            }
        }
        self.at = bytes.len();
        self.check_unfinished(bytes, limits).map(|()| None)
    }

    /// The request line, where it is all that has come.
    pub fn lone_line<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let end = self.fields.checked_sub(2).filter(|_| self.fields == bytes.len())?;
        bytes.get(self.start..end)
    }

    fn check_unfinished(&self, bytes: &[u8], limits: &HeadLimits) -> Result<(), RequestError> {
        if self.fields > 0 {
            if self.at - self.fields > limits.fields + 1 {
                return Err(RequestError::FieldsTooLong);
            }
        } else if let Some(first) = bytes.get(self.start) {
            if *first != b'\r' && !is_token(*first) {
                return Err(RequestError::Syntax);
            }
            if self.at - self.start > limits.line + 1 {
                return Err(RequestError::LineTooLong);
            }
        }
        Ok(())
    }
}

/// Bytes of a kind, to be looked up by their value.
pub(super) struct ByteSet([bool; 256]);

impl ByteSet {
    /// ASCII letters, digits, and these.
    pub const fn alphanumeric_and(others: &[u8]) -> ByteSet {
        let mut set = [false; 256];
        let mut byte = 0;
        while byte < 128 {
            set[byte] = (byte as u8).is_ascii_alphanumeric();
            byte += 1;
        }
        let mut at = 0;
        while at < others.len() {
            set[others[at] as usize] = true;
            at += 1;
        }
        ByteSet(set)
    }

    /// Whether a byte is one of them.
    pub const fn has(&self, byte: u8) -> bool {
        self.0[byte as usize]
    }
}

/// RFC 9110 section 5.6.2.
static TOKEN: ByteSet = ByteSet::alphanumeric_and(b"!#$%&'*+-.^_`|~");

/// Whether a byte may stand in a token.
pub(super) fn is_token(byte: u8) -> bool {
    TOKEN.has(byte)
}

/// Room for the fields of one request, kept by the caller while the request is looked at.
pub struct FieldRoom<'a> {
    usual: [httparse::Header<'a>; USUAL_FIELDS],
    all: Vec<httparse::Header<'a>>,
}

/// Empty room for fields.
pub const NO_FIELDS: FieldRoom<'static> =
    FieldRoom { usual: [httparse::EMPTY_HEADER; USUAL_FIELDS], all: Vec::new() };

/// The header fields of one request, in the order they came.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    list: &'a [httparse::Header<'a>],
}

impl<'a> Fields<'a> {
    /// No fields.
    pub const EMPTY: Fields<'static> = Fields { list: &[] };

    /// Parses the fields and the empty line after them: no line folding, no space before a colon, no line without a
    /// colon, no control characters in values (RFC 9112 section 5). Line ends must have been checked by a [`HeadScan`].
    pub fn parse(bytes: &'a [u8], room: &'a mut FieldRoom<'a>) -> Result<Fields<'a>, RequestError> {
        let FieldRoom { usual, all } = room;
        match Self::count(bytes, usual) {
            Err(RequestError::TooManyFields) => {
                all.resize(MAX_FIELDS, httparse::EMPTY_HEADER);
                let count = Self::count(bytes, all)?;
                Ok(Fields { list: all.get(..count).unwrap_or_default() })
            }
            count => Ok(Fields { list: usual.get(..count?).unwrap_or_default() }),
        }
    }

    /// Parses fields into `list`; how many there are.
    fn count(bytes: &'a [u8], list: &mut [httparse::Header<'a>]) -> Result<usize, RequestError> {
        match httparse::parse_headers(bytes, list) {
            Ok(httparse::Status::Complete((len, list))) if len == bytes.len() => Ok(list.len()),
            Ok(_) => Err(RequestError::Field),
            Err(httparse::Error::TooManyHeaders) => Err(RequestError::TooManyFields),
            Err(_) => Err(RequestError::Field),
        }
    }

    /// All values of the field of this name (lower case), without white space around them.
    pub fn all(&self, name: &'static str) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let same = move |field: &&httparse::Header<'a>| field.name.eq_ignore_ascii_case(name);
        self.list.iter().filter(same).map(|field| field.value)
    }

    /// The value of a field that must not come twice: nothing when it is missing or comes several times.
    pub fn single(&self, name: &'static str) -> Option<&'a [u8]> {
        let mut values = self.all(name);
        let first = values.next()?;
        values.next().is_none().then_some(first)
    }

    /// Whether a field of this name is there.
    pub fn has(&self, name: &'static str) -> bool {
        self.all(name).next().is_some()
    }

    /// The elements of a comma-separated list, over all fields of this name, empty ones left out.
    pub fn elements(&self, name: &'static str) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.all(name)
            .flat_map(|value| value.split(|b| *b == b','))
            .map(<[u8]>::trim_ascii)
            .filter(|element| !element.is_empty())
    }

    /// Names and values, in the order they came.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> + use<'a> {
        self.list.iter().map(|field| (field.name, field.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: HeadLimits = HeadLimits { line: 20, fields: 30 };

    fn check(bytes: &str, expected: Result<Option<(usize, usize, usize)>, RequestError>) {
        let whole = HeadScan::default().scan(bytes.as_bytes(), &LIMITS);
        let tuple = |found: Option<HeadEnd>| found.map(|e| (e.start, e.fields, e.end));
        assert_eq!(whole.map(tuple), expected, "{bytes:?}");
        // Byte by byte the same comes out, at the latest with the last byte.
        let mut scan = HeadScan::default();
        for len in 0..=bytes.len() {
            match scan.scan(&bytes.as_bytes()[..len], &LIMITS) {
                Ok(None) => {}
                end => return assert_eq!(end, whole, "{bytes:?} after {len}"),
            }
        }
        assert_eq!(whole, Ok(None), "{bytes:?}");
    }

    #[test]
    fn heads_end_with_an_empty_line() {
        check("GET / HTTP/1.1\r\n\r\n", Ok(Some((0, 16, 18))));
        check("GET / HTTP/1.1\r\nA: b\r\n\r\n", Ok(Some((0, 16, 24))));
        check("\r\n\r\nGET / HTTP/1.1\r\n\r\n", Ok(Some((4, 20, 22))));
        check("GET / HTTP/1.1\r\nA: b\r\n", Ok(None));
        check("\r\n", Ok(None));
        check("", Ok(None));
    }

    #[test]
    fn other_line_ends_are_refused() {
        check("GET / HTTP/1.1\n", Err(RequestError::BareLineFeed));
        check("GET / HTTP/1.1\r\nA: b\n", Err(RequestError::BareLineFeed));
        check("GET / HTTP/1.1\r\nA: b\r\n\n", Err(RequestError::BareLineFeed));
        check("\n", Err(RequestError::BareLineFeed));
        check("\r\n\r\n\r\n", Err(RequestError::Syntax));
        check("\x16\x03\x01", Err(RequestError::Syntax));
        check(" GET / HTTP/1.1\r\n", Err(RequestError::Syntax));
    }

    #[test]
    fn limits_hold_before_a_line_ends() {
        check("GET /aaaaaa HTTP/1.1\r\n", Ok(None));
        check("GET /aaaaaaa HTTP/1.1\r\n", Err(RequestError::LineTooLong));
        check("GET /aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", Err(RequestError::LineTooLong));
        check("G / H\r\nA: aaaaaaaaaaaaaaaaaaaaaaaaa\r\n\r\n", Ok(Some((0, 7, 39))));
        check("G / H\r\nA: aaaaaaaaaaaaaaaaaaaaaaaaaa\r\n\r\n", Err(RequestError::FieldsTooLong));
        check("G / H\r\nA: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", Err(RequestError::FieldsTooLong));
        check("G / H\r\nA: a\r\nA: a\r\nA: a\r\nA: a\r\nA: a\r\nA:", Err(RequestError::FieldsTooLong));
    }

    #[test]
    fn fields_are_found_by_name() {
        let mut room = NO_FIELDS;
        let fields = Fields::parse(b"Host: a\r\nX:1, ,2\r\nx: \t3 \r\nE:\r\n\r\n", &mut room).unwrap();
        assert!(fields.all("x").eq([&b"1, ,2"[..], b"3"]));
        assert!(fields.elements("x").eq([&b"1"[..], b"2", b"3"]));
        assert_eq!(fields.single("host"), Some(&b"a"[..]));
        assert_eq!(fields.single("x"), None);
        assert_eq!(fields.single("e"), Some(&b""[..]));
        assert!(fields.has("x") && !fields.has("y"));
    }

    #[test]
    fn many_fields_are_found_and_too_many_are_refused() {
        for count in [0, 1, USUAL_FIELDS - 1, USUAL_FIELDS, USUAL_FIELDS + 1, MAX_FIELDS, MAX_FIELDS + 1] {
            let mut bytes = b"X: 1\r\n".repeat(count);
            bytes.extend_from_slice(b"\r\n");
            let mut room = NO_FIELDS;
            match Fields::parse(&bytes, &mut room) {
                Ok(fields) => assert_eq!(fields.all("x").count(), count),
                Err(error) => assert_eq!((count, error), (MAX_FIELDS + 1, RequestError::TooManyFields)),
            }
        }
    }

    proptest! {
        #[test]
        fn splitting_changes_nothing(bytes in "[\\r\\nA-C: /]{0,60}", cut in 0usize..60) {
            let bytes = bytes.as_bytes();
            let whole = HeadScan::default().scan(bytes, &LIMITS);
            let mut scan = HeadScan::default();
            let first = scan.scan(&bytes[..cut.min(bytes.len())], &LIMITS);
            match first {
                Ok(None) => prop_assert_eq!(scan.scan(bytes, &LIMITS), whole),
                // A limit that is passed already may be noticed before another fault.
                other => prop_assert_eq!(other.is_ok(), whole.is_ok()),
            }
        }
    }
}
