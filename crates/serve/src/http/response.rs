//! Heads of responses: status lines and fields, appended to a buffer.

use super::date::{self, DATE_LEN};
use super::request::Version;
use alloc::vec::Vec;
use core::fmt;

/// The status codes that this server sends (RFC 9110 section 15).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub enum Status {
    /// The whole representation, or the result.
    Ok = 200,
    /// Parts of the representation.
    PartialContent = 206,
    /// The directory's name has a slash at its end.
    MovedPermanently = 301,
    /// The client has it already.
    NotModified = 304,
    /// Not HTTP as we understand it.
    BadRequest = 400,
    /// The file system does not permit it.
    Forbidden = 403,
    /// No such file.
    NotFound = 404,
    /// Another method is needed.
    MethodNotAllowed = 405,
    /// The head did not come in time.
    RequestTimeout = 408,
    /// A precondition is false.
    PreconditionFailed = 412,
    /// The body is longer than we take.
    ContentTooLarge = 413,
    /// The request line is longer than we take.
    UriTooLong = 414,
    /// No range lies within the representation.
    RangeNotSatisfiable = 416,
    /// An unknown expectation.
    ExpectationFailed = 417,
    /// What is asked for is not to be had on this connection.
    MisdirectedRequest = 421,
    /// The header fields are longer, or more, than we take.
    FieldsTooLarge = 431,
    /// The file system failed.
    InternalError = 500,
    /// Unknown method or transfer coding.
    NotImplemented = 501,
    /// Too much is going on.
    Unavailable = 503,
    /// Not HTTP/1.
    VersionNotSupported = 505,
}

impl Status {
    /// The number.
    pub fn code(self) -> u16 {
        self as u16
    }

    /// The number and the reason phrase, as the status line has them.
    pub fn line(self) -> &'static str {
        match self {
            Status::Ok => "200 OK",
            Status::PartialContent => "206 Partial Content",
            Status::MovedPermanently => "301 Moved Permanently",
            Status::NotModified => "304 Not Modified",
            Status::BadRequest => "400 Bad Request",
            Status::Forbidden => "403 Forbidden",
            Status::NotFound => "404 Not Found",
            Status::MethodNotAllowed => "405 Method Not Allowed",
            Status::RequestTimeout => "408 Request Timeout",
            Status::PreconditionFailed => "412 Precondition Failed",
            Status::ContentTooLarge => "413 Content Too Large",
            Status::UriTooLong => "414 URI Too Long",
            Status::RangeNotSatisfiable => "416 Range Not Satisfiable",
            Status::ExpectationFailed => "417 Expectation Failed",
            Status::MisdirectedRequest => "421 Misdirected Request",
            Status::FieldsTooLarge => "431 Request Header Fields Too Large",
            Status::InternalError => "500 Internal Server Error",
            Status::NotImplemented => "501 Not Implemented",
            Status::Unavailable => "503 Service Unavailable",
            Status::VersionNotSupported => "505 HTTP Version Not Supported",
        }
    }

    /// Whether it reports a fault (4xx, 5xx).
    pub fn is_error(self) -> bool {
        self.code() >= 400
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.line())
    }
}

/// 2000-01-01: a clock that shows an earlier time was never set.
const FIRST_BELIEVED_SECS: i64 = 946_684_800;
const NANOS_PER_SEC: i64 = 1_000_000_000;

/// A wall-clock time, unless it shows that the clock was never set.
pub(super) fn believed(wall_ns: i64) -> Option<i64> {
    (wall_ns >= FIRST_BELIEVED_SECS * NANOS_PER_SEC).then_some(wall_ns)
}

/// What goes into every head: the date, made once a second, and the name of the server.
#[derive(Clone, Debug)]
pub(super) struct Common {
    secs: i64,
    wall_ns: i64,
    date: [u8; DATE_LEN],
    /// Whether to send `Server`.
    pub server: bool,
}

impl Common {
    pub fn new(server: bool) -> Common {
        Common { secs: i64::MIN, wall_ns: i64::MIN, date: *b"Thu, 01 Jan 1970 00:00:00 GMT", server }
    }

    /// Notes what time it is; whether another second has begun.
    pub fn set_time(&mut self, wall_ns: i64) -> bool {
        self.wall_ns = wall_ns;
        // Divided once a second: on a processor of 32 bits that takes long.
        let passed_ns = wall_ns.saturating_sub(self.secs.saturating_mul(NANOS_PER_SEC));
        let is_another = !(0..NANOS_PER_SEC).contains(&passed_ns);
        if is_another {
            self.secs = wall_ns.div_euclid(NANOS_PER_SEC);
            self.date = date::format(self.secs);
        }
        is_another
    }

    /// Nanoseconds since 1970; `None` where no clock was set.
    pub fn wall_ns(&self) -> Option<i64> {
        believed(self.wall_ns)
    }

    /// Seconds since 1970.
    pub fn secs(&self) -> i64 {
        self.secs
    }
}

/// How the connection goes on after a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum After {
    /// The next request may come.
    KeepAlive(Version),
    /// It ends.
    Close,
}

/// A head under construction. Values must be free of control characters.
pub(super) struct HeadWriter<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> HeadWriter<'a> {
    /// Begins with the status line and the common fields.
    pub fn begin(out: &'a mut Vec<u8>, common: &Common, status: Status, after: After) -> HeadWriter<'a> {
        out.extend_from_slice(b"HTTP/1.1 ");
        out.extend_from_slice(status.line().as_bytes());
        if common.server {
            out.extend_from_slice(b"\r\nServer: linerate");
        }
        // RFC 9110 section 6.6.1: who has no clock sends no date.
        if common.secs >= FIRST_BELIEVED_SECS {
            out.extend_from_slice(b"\r\nDate: ");
            out.extend_from_slice(&common.date);
        }
        out.extend_from_slice(match after {
            After::KeepAlive(Version::Http11) => b"\r\n",
            // RFC 9112 appendix C.2.2: an old client must be told.
            After::KeepAlive(Version::Http10) => b"\r\nConnection: keep-alive\r\n",
            After::Close => b"\r\nConnection: close\r\n",
        });
        HeadWriter { out }
    }

    /// Adds a field.
    pub fn field(&mut self, name: &str, value: &[u8]) -> &mut Self {
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b": ");
        self.out.extend_from_slice(value);
        self.out.extend_from_slice(b"\r\n");
        self
    }

    /// Adds `Content-Length`.
    pub fn content_length(&mut self, len: u64) -> &mut Self {
        self.out.extend_from_slice(b"Content-Length: ");
        append_decimal(self.out, len);
        self.out.extend_from_slice(b"\r\n");
        self
    }

    /// Adds lines that are complete already.
    pub fn lines(&mut self, lines: &[u8]) -> &mut Self {
        self.out.extend_from_slice(lines);
        self
    }

    /// Ends the head and gives the buffer back, for a short body.
    pub fn end(self) -> &'a mut Vec<u8> {
        self.out.extend_from_slice(b"\r\n");
        self.out
    }
}

/// Appends a number in decimal digits.
pub(super) fn append_decimal(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a number in hexadecimal digits.
pub(super) fn append_hex(out: &mut Vec<u8>, value: u64) {
    let digits = (16 - value.leading_zeros() / 4).max(1);
    for place in (0..digits).rev() {
        out.push(b"0123456789abcdef"[(value >> (place * 4) & 15) as usize]);
    }
}

/// The page that goes with an error or a redirect.
pub(super) fn append_page(out: &mut Vec<u8>, status: Status) {
    out.extend_from_slice(b"<!DOCTYPE html>\n<html lang=\"en\"><head><title>");
    out.extend_from_slice(status.line().as_bytes());
    out.extend_from_slice(b"</title></head>\n<body><h1>");
    out.extend_from_slice(status.line().as_bytes());
    out.extend_from_slice(b"</h1></body></html>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use proptest::prelude::*;

    #[test]
    fn status_lines_begin_with_their_codes() {
        use Status::*;
        for status in [
            Ok,
            PartialContent,
            MovedPermanently,
            NotModified,
            BadRequest,
            Forbidden,
            NotFound,
            MethodNotAllowed,
            RequestTimeout,
            PreconditionFailed,
            ContentTooLarge,
            UriTooLong,
            RangeNotSatisfiable,
            ExpectationFailed,
            FieldsTooLarge,
            InternalError,
            NotImplemented,
            Unavailable,
            VersionNotSupported,
        ] {
            let code = status.line().split_once(' ').map(|(code, _)| code);
            assert_eq!(code, Some(alloc::format!("{}", status.code()).as_str()));
        }
    }

    #[test]
    fn a_head_has_a_status_line_and_fields() {
        let mut common = Common::new(true);
        common.set_time(1_767_323_045_900_000_000);
        let mut out = Vec::new();
        let mut head = HeadWriter::begin(&mut out, &common, Status::Ok, After::KeepAlive(Version::Http11));
        head.content_length(5).field("A", b"b").lines(b"C: d\r\n");
        head.end().extend_from_slice(b"hello");
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "HTTP/1.1 200 OK\r\nServer: linerate\r\nDate: Fri, 02 Jan 2026 03:04:05 GMT\r\nContent-Length: 5\r\n\
             A: b\r\nC: d\r\n\r\nhello"
        );
    }

    #[test]
    fn connections_are_told_how_they_go_on_even_without_a_clock() {
        let common = Common::new(false);
        let check = |after, expected: &str| {
            let mut out = Vec::new();
            HeadWriter::begin(&mut out, &common, Status::NotFound, after).end();
            let expected = alloc::format!("HTTP/1.1 404 Not Found\r\n{expected}\r\n");
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        };
        check(After::KeepAlive(Version::Http11), "");
        check(After::KeepAlive(Version::Http10), "Connection: keep-alive\r\n");
        check(After::Close, "Connection: close\r\n");
    }

    proptest! {
        #[test]
        fn numbers_are_as_rust_writes_them(value in any::<u64>(), shift in 0u32..64) {
            let value = value >> shift;
            let mut out = Vec::new();
            append_decimal(&mut out, value);
            out.push(b' ');
            append_hex(&mut out, value);
            prop_assert_eq!(String::from_utf8(out).unwrap(), alloc::format!("{value} {value:x}"));
        }
    }
}
