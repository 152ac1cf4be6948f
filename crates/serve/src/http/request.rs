//! The head of a request: its grammar, strictly (RFC 9112), and what it says of the body and the connection.

use super::headers::{FieldRoom, Fields, HeadEnd, is_token};
use super::method::Method;
use super::response::Status;
use super::uri::{self, Target, UriError};
use core::fmt;

/// The protocol version a request is answered in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Version {
    /// HTTP/1.0: a connection ends with its response unless asked otherwise.
    Http10,
    /// HTTP/1.1, and later minor versions, which are compatible with it (RFC 9110 section 2.5).
    Http11,
}

/// How the end of a request's body is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framing {
    /// There is no body.
    Empty,
    /// This many bytes follow, at least 1.
    Length(u64),
    /// Chunks follow (RFC 9112 section 7.1).
    Chunked,
}

/// What a client expects before it sends a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expectation {
    /// Nothing.
    None,
    /// An interim response 100.
    Continue,
    /// Something unknown, which is refused with 417.
    Unknown,
}

/// A parsed head.
#[derive(Clone, Copy)]
pub struct Head<'a> {
    /// The method.
    pub method: Method,
    /// What is asked for.
    pub target: Target<'a>,
    /// The version.
    pub version: Version,
    /// Whether the client wants to keep the connection.
    pub keep_alive: bool,
    /// Where the body ends.
    pub framing: Framing,
    /// What the client expects.
    pub expectation: Expectation,
    /// All fields.
    pub fields: Fields<'a>,
}

/// What is wrong with a head. After each of them the connection is closed, as nobody knows where the next request
/// would begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestError {
    /// The request line is not `method SP target SP version`.
    Syntax,
    /// A line ends with LF alone.
    BareLineFeed,
    /// The request line is too long.
    LineTooLong,
    /// The header fields are too long together.
    FieldsTooLong,
    /// There are more than [`MAX_FIELDS`](super::headers::MAX_FIELDS) header fields.
    TooManyFields,
    /// A header field breaks the grammar: no colon, space before it, a folded line, a control character.
    Field,
    /// A method nobody knows.
    Method,
    /// Another major version than 1.
    Version,
    /// The target is not one.
    Target(UriError),
    /// The Host field is missing, comes several times, or is no host.
    Host,
    /// Content-Length is not a number, or comes several times.
    ContentLength,
    /// Content-Length and Transfer-Encoding together.
    LengthAndCoding,
    /// Transfer-Encoding in HTTP/1.0, without `chunked` at its end, or with more than one of it.
    TransferCoding,
    /// A transfer coding that is not implemented.
    UnknownCoding,
}

impl RequestError {
    /// The status that it is answered with.
    pub fn status(self) -> Status {
        match self {
            RequestError::LineTooLong => Status::UriTooLong,
            RequestError::Target(UriError::Secured) => Status::MisdirectedRequest,
            RequestError::FieldsTooLong | RequestError::TooManyFields => Status::FieldsTooLarge,
            RequestError::Method | RequestError::UnknownCoding => Status::NotImplemented,
            RequestError::Version => Status::VersionNotSupported,
            _ => Status::BadRequest,
        }
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RequestError::Syntax => "malformed request line",
            RequestError::BareLineFeed => "line ends with LF alone",
            RequestError::LineTooLong => "request line too long",
            RequestError::FieldsTooLong => "header fields too long",
            RequestError::TooManyFields => "too many header fields",
            RequestError::Field => "malformed header field",
            RequestError::Method => "unknown method",
            RequestError::Version => "unsupported version",
            RequestError::Target(UriError::Form) => "malformed target",
            RequestError::Target(UriError::Secured) => "https on a connection without TLS",
            RequestError::Target(UriError::Character) => "forbidden character in target",
            RequestError::Target(UriError::Escape) => "malformed percent-escape",
            RequestError::Target(UriError::Hidden) => "escaped slash or NUL",
            RequestError::Target(UriError::Encoding) => "path is not UTF-8",
            RequestError::Target(UriError::Authority) => "malformed authority",
            RequestError::Target(UriError::Path(error)) => return error.fmt(f),
            RequestError::Host => "missing, repeated or malformed Host",
            RequestError::ContentLength => "malformed or repeated Content-Length",
            RequestError::LengthAndCoding => "both Content-Length and Transfer-Encoding",
            RequestError::TransferCoding => "malformed Transfer-Encoding",
            RequestError::UnknownCoding => "unknown transfer coding",
        })
    }
}

impl core::error::Error for RequestError {}

impl From<UriError> for RequestError {
    fn from(error: UriError) -> Self {
        RequestError::Target(error)
    }
}

impl<'a> Head<'a> {
    /// Parses a complete head, `place` being where a [`HeadScan`](super::headers::HeadScan) found it in `bytes`.
    pub fn parse(
        bytes: &'a [u8],
        place: HeadEnd,
        room: &'a mut FieldRoom<'a>,
    ) -> Result<Head<'a>, RequestError> {
        let line = place.fields.checked_sub(2).and_then(|end| bytes.get(place.start..end));
        let (Some(line), Some(fields)) = (line, bytes.get(place.fields..place.end)) else {
            return Err(RequestError::Syntax);
        };
        let (method, target, version) = parse_line(line)?;
        let fields = Fields::parse(fields, room)?;
        let framing = framing(&fields, version)?;
        check_host(&fields, version)?;
        let target = Target::parse(target)?;
        let method = Method::parse(method).ok_or(RequestError::Method)?;
        let form_fits = match target {
            Target::Path { .. } => method != Method::Connect,
            Target::Asterisk => method == Method::Options,
            Target::Authority => method == Method::Connect,
        };
        if !form_fits {
            return Err(RequestError::Target(UriError::Form));
        }
        Ok(Head {
            method,
            target,
            version,
            keep_alive: keep_alive(&fields, version),
            framing,
            expectation: expectation(&fields, version),
            fields,
        })
    }
}

/// Whether a request line is one, its method and target aside.
pub(super) fn check_line(line: &[u8]) -> Result<(), RequestError> {
    parse_line(line).map(|_| ())
}

fn parse_line(line: &[u8]) -> Result<(&[u8], &[u8], Version), RequestError> {
    let mut parts = line.split(|b| *b == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(RequestError::Syntax);
    };
    if method.is_empty() || !method.iter().all(|b| is_token(*b)) {
        return Err(RequestError::Syntax);
    }
    let version = match version {
        b"HTTP/1.0" => Version::Http10,
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'0'..=b'9'] => Version::Http11,
        [b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9'] => return Err(RequestError::Version),
        _ => return Err(RequestError::Syntax),
    };
    Ok((method, target, version))
}

/// RFC 9112 section 6.3, without the leniency that it grants.
fn framing(fields: &Fields<'_>, version: Version) -> Result<Framing, RequestError> {
    let mut lengths = fields.all("content-length");
    let length = lengths.next();
    if lengths.next().is_some() {
        return Err(RequestError::ContentLength);
    }
    if fields.has("transfer-encoding") {
        if length.is_some() {
            return Err(RequestError::LengthAndCoding);
        }
        // HTTP/1.0 has no transfer codings: one who sends them has been tampered with (RFC 9112 section 6.1).
        if version == Version::Http10 {
            return Err(RequestError::TransferCoding);
        }
        let (mut count, mut chunked, mut last) = (0, 0, false);
        for coding in fields.elements("transfer-encoding") {
            last = coding.eq_ignore_ascii_case(b"chunked");
            chunked += u32::from(last);
            count += 1;
        }
        // Without `chunked` at the end nobody knows where the body ends: 400 (section 6.3, rule 4), whatever the other
        // codings are. With it, a coding that we do not have is 501 (section 6.1).
        return match (last && chunked == 1, count) {
            (false, _) => Err(RequestError::TransferCoding),
            (true, 1) => Ok(Framing::Chunked),
            (true, _) => Err(RequestError::UnknownCoding),
        };
    }
    let Some(digits) = length else { return Ok(Framing::Empty) };
    let number = digits.iter().try_fold(0u64, |sum, b| {
        if !b.is_ascii_digit() {
            return None;
        }
        sum.checked_mul(10)?.checked_add(u64::from(b - b'0'))
    });
    match number {
        _ if digits.is_empty() => Err(RequestError::ContentLength),
        None => Err(RequestError::ContentLength),
        Some(0) => Ok(Framing::Empty),
        Some(len) => Ok(Framing::Length(len)),
    }
}

/// RFC 9112 section 3.2: exactly one Host in HTTP/1.1, at most one in HTTP/1.0.
fn check_host(fields: &Fields<'_>, version: Version) -> Result<(), RequestError> {
    let mut hosts = fields.all("host");
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => uri::check_authority(host).map_err(|_| RequestError::Host),
        (None, None) if version == Version::Http10 => Ok(()),
        _ => Err(RequestError::Host),
    }
}

/// RFC 9112 section 9.3.
fn keep_alive(fields: &Fields<'_>, version: Version) -> bool {
    let says = |option: &[u8]| fields.elements("connection").any(|e| e.eq_ignore_ascii_case(option));
    !says(b"close") && (version == Version::Http11 || says(b"keep-alive"))
}

/// RFC 9110 section 10.1.1.
fn expectation(fields: &Fields<'_>, version: Version) -> Expectation {
    if version == Version::Http10 {
        return Expectation::None;
    }
    let mut expected = Expectation::None;
    for element in fields.elements("expect") {
        if !element.eq_ignore_ascii_case(b"100-continue") {
            return Expectation::Unknown;
        }
        expected = Expectation::Continue;
    }
    expected
}

#[cfg(test)]
mod tests;
