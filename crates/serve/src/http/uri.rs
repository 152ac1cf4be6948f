//! Request targets (RFC 9112 section 3.2, RFC 3986): from their bytes to a path under the root, and back to a URI.

use super::headers::ByteSet;
use alloc::string::String;
use alloc::vec::Vec;
use linerate_transport::{PathError, VirtualPath};

/// A request target, taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target<'a> {
    /// A path as it was sent, percent-encoded, and what follows the `?`.
    Path {
        /// Begins with a slash.
        path: &'a [u8],
        /// Without the question mark.
        query: Option<&'a [u8]>,
    },
    /// `*`: the server as a whole (OPTIONS only).
    Asterisk,
    /// `host:port`, what CONNECT names.
    Authority,
}

/// What a host's name is of, percent signs of its escapes included (RFC 3986 section 3.2.2).
static REG_NAME: ByteSet = ByteSet::alphanumeric_and(b"-._~!$&'()*+,;=%");

/// What is wrong with a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UriError {
    /// Neither a path, nor an http URI, nor `*`.
    Form,
    /// An https URI, which must not be answered on a connection without TLS (RFC 9110 section 7.4).
    Secured,
    /// A byte that no URI holds.
    Character,
    /// `%` without two hexadecimal digits after it.
    Escape,
    /// An escaped slash or NUL, which would name another file than the one it shows.
    Hidden,
    /// The decoded path is not UTF-8.
    Encoding,
    /// The authority (or the Host field) is not one.
    Authority,
    /// The path leads above the root, or is too long.
    Path(PathError),
}

impl<'a> Target<'a> {
    /// Takes a target apart: origin-form, absolute-form, `*`; anything else that could be an authority is one.
    pub fn parse(target: &'a [u8]) -> Result<Target<'a>, UriError> {
        // Bytes above 0x7F are no part of a URI, but clients send them, and they can mean only themselves.
        if target.iter().any(|b| *b <= b' ' || *b == 0x7F || *b == b'#') {
            return Err(UriError::Character);
        }
        match target {
            [] => Err(UriError::Form),
            b"*" => Ok(Target::Asterisk),
            [b'/', ..] => Ok(Target::split(target)),
            _ => match strip(b"http://", target) {
                Some(rest) => {
                    let end = rest.iter().position(|b| matches!(b, b'/' | b'?')).unwrap_or(rest.len());
                    check_authority(&rest[..end])?;
                    match &rest[end..] {
                        [] => Ok(Target::Path { path: b"/", query: None }),
                        [b'?', query @ ..] => Ok(Target::Path { path: b"/", query: Some(query) }),
                        rest => Ok(Target::split(rest)),
                    }
                }
                None if strip(b"https://", target).is_some() => Err(UriError::Secured),
                None if check_authority(target).is_ok() => Ok(Target::Authority),
                None => Err(UriError::Form),
            },
        }
    }

    fn split(target: &'a [u8]) -> Target<'a> {
        match target.iter().position(|b| *b == b'?') {
            Some(at) => Target::Path { path: &target[..at], query: Some(&target[at + 1..]) },
            None => Target::Path { path: target, query: None },
        }
    }
}

fn strip<'a>(scheme: &[u8], target: &'a [u8]) -> Option<&'a [u8]> {
    let (start, rest) = target.split_at_checked(scheme.len())?;
    start.eq_ignore_ascii_case(scheme).then_some(rest)
}

/// Checks `host [":" port]` (RFC 3986 section 3.2), as it stands in an absolute target and in the Host field. An
/// empty host is none (RFC 9110 section 4.2.1), and there is no user before it (section 4.2.4).
pub fn check_authority(authority: &[u8]) -> Result<(), UriError> {
    let (host, port) = match authority {
        [b'[', rest @ ..] => {
            let end = rest.iter().position(|b| *b == b']').ok_or(UriError::Authority)?;
            let inner = &rest[..end];
            let literal = |b: &u8| b.is_ascii_hexdigit() || matches!(b, b':' | b'.');
            if !inner.iter().all(literal) || inner.iter().filter(|b| **b == b':').count() < 2 {
                return Err(UriError::Authority);
            }
            (inner, &rest[end + 1..])
        }
        _ => {
            let end = authority.iter().position(|b| *b == b':').unwrap_or(authority.len());
            if !authority[..end].iter().all(|b| REG_NAME.has(*b)) {
                return Err(UriError::Authority);
            }
            (&authority[..end], &authority[end..])
        }
    };
    let port_is_number = match port {
        [] => true,
        [b':', digits @ ..] => {
            let number = digits.iter().try_fold(0u32, |sum, b| {
                b.is_ascii_digit().then(|| sum.saturating_mul(10).saturating_add(u32::from(b - b'0')))
            });
            number.is_some_and(|number| number <= 65_535)
        }
        _ => false,
    };
    if host.is_empty() || !port_is_number { Err(UriError::Authority) } else { Ok(()) }
}

/// A decoded path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DecodedPath {
    /// Where it leads.
    pub path: VirtualPath,
    /// Whether it was written as a directory: with a slash, `.` or `..` at its end.
    pub directory: bool,
}

/// Decodes a path once and resolves it under the root.
pub fn decode_path(path: &[u8]) -> Result<DecodedPath, UriError> {
    let mut decoded;
    let bytes = if path.contains(&b'%') {
        decoded = Vec::with_capacity(path.len());
        unescape(path, &mut decoded)?;
        decoded.as_slice()
    } else {
        path
    };
    let text = core::str::from_utf8(bytes).map_err(|_| UriError::Encoding)?;
    let last = bytes.iter().rposition(|byte| *byte == b'/').map_or(bytes, |at| &bytes[at + 1..]);
    let directory = matches!(last, b"" | b"." | b"..");
    let path = VirtualPath::parse(text).map_err(UriError::Path)?;
    Ok(DecodedPath { path, directory })
}

fn unescape(path: &[u8], out: &mut Vec<u8>) -> Result<(), UriError> {
    let mut rest = path;
    while let [first, tail @ ..] = rest {
        rest = tail;
        let mut byte = *first;
        if byte == b'%' {
            let [high, low, tail @ ..] = rest else { return Err(UriError::Escape) };
            rest = tail;
            let (Some(high), Some(low)) = (hex(*high), hex(*low)) else { return Err(UriError::Escape) };
            byte = high << 4 | low;
            if matches!(byte, 0 | b'/') {
                return Err(UriError::Hidden);
            }
        }
        out.push(byte);
    }
    Ok(())
}

/// The value of a hexadecimal digit.
pub(super) fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// Appends `text` with everything escaped but unreserved characters (RFC 3986 section 2.3) and slashes: safe in a
/// Location field, in an attribute of HTML, and as a path that no browser takes for a host.
pub fn append_escaped(out: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'/') {
            out.push(char::from(byte));
        } else {
            append_escape(out, byte);
        }
    }
}

/// Appends a query as it came, but for bytes that a field or an attribute must not hold.
pub fn append_query(out: &mut String, query: &[u8]) {
    for byte in query {
        if byte.is_ascii_graphic()
            && !matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}')
        {
            out.push(char::from(*byte));
        } else {
            append_escape(out, *byte);
        }
    }
}

fn append_escape(out: &mut String, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.push('%');
    out.push(char::from(DIGITS[usize::from(byte >> 4)]));
    out.push(char::from(DIGITS[usize::from(byte & 15)]));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check_target(target: &str, expected: Result<(&str, Option<&str>), UriError>) {
        let parsed = match Target::parse(target.as_bytes()) {
            Ok(Target::Path { path, query }) => {
                let text = |b| core::str::from_utf8(b).unwrap();
                Ok((text(path), query.map(text)))
            }
            Ok(other) => panic!("{target}: {other:?}"),
            Err(error) => Err(error),
        };
        assert_eq!(parsed, expected, "{target}");
    }

    #[test]
    fn targets_are_taken_apart() {
        check_target("/", Ok(("/", None)));
        check_target("/a?b?c", Ok(("/a", Some("b?c"))));
        check_target("/a?", Ok(("/a", Some(""))));
        check_target("//x/y", Ok(("//x/y", None)));
        check_target("http://h/a", Ok(("/a", None)));
        check_target("HTTP://h:80/a?b", Ok(("/a", Some("b"))));
        check_target("HTTPS://h:80/a?b", Err(UriError::Secured));
        check_target("http://h", Ok(("/", None)));
        check_target("http://h?q=/", Ok(("/", Some("q=/"))));
        check_target("http://[::1]:8080/", Ok(("/", None)));
        check_target("http:///a", Err(UriError::Authority));
        check_target("http://u@h/a", Err(UriError::Authority));
        check_target("http://h:99999/", Err(UriError::Authority));
        check_target("http://h:80a/", Err(UriError::Authority));
        check_target("http://[::1/", Err(UriError::Authority));
        check_target("", Err(UriError::Form));
        check_target("/a#b", Err(UriError::Character));
        check_target("/a b", Err(UriError::Character));
        check_target("/a\tb", Err(UriError::Character));
        check_target("/a\0", Err(UriError::Character));
        check_target("ftp://h/a", Err(UriError::Form));
        check_target("a/b", Err(UriError::Form));
        assert_eq!(Target::parse(b"*"), Ok(Target::Asterisk));
        assert_eq!(Target::parse(b"h:443"), Ok(Target::Authority));
        assert_eq!(Target::parse(b"index.html"), Ok(Target::Authority));
    }

    #[test]
    fn authorities_are_hosts_and_ports() {
        for good in ["h", "a.b-c", "1.2.3.4:80", "h:", "[::1]", "[fe80::1]:65535", "h%41"] {
            assert_eq!(check_authority(good.as_bytes()), Ok(()), "{good}");
        }
        for bad in [
            "", ":80", "h:65536", "h:-1", "a b", "a/b", "a@b", "[]", "[::1]x", "[::g]", "a,b/", "h:80:80",
            "é", "[1]",
        ] {
            assert_eq!(check_authority(bad.as_bytes()), Err(UriError::Authority), "{bad}");
        }
    }

    fn check_path(path: &str, expected: Result<(&str, bool), UriError>) {
        let decoded = decode_path(path.as_bytes());
        let decoded = decoded.as_ref().map(|d| (d.path.as_str(), d.directory)).map_err(|e| *e);
        assert_eq!(decoded, expected, "{path}");
    }

    #[test]
    fn paths_are_decoded_once() {
        check_path("/", Ok(("/", true)));
        check_path("/a%20b", Ok(("/a b", false)));
        check_path("/a/", Ok(("/a", true)));
        check_path("//a//b", Ok(("/a/b", false)));
        check_path("/a/.", Ok(("/a", true)));
        check_path("/a/b/..", Ok(("/a", true)));
        check_path("/%2e%2E/x", Err(UriError::Path(PathError::AboveRoot)));
        check_path("/..", Err(UriError::Path(PathError::AboveRoot)));
        check_path("/a/../../b", Err(UriError::Path(PathError::AboveRoot)));
        check_path("/%252e%252e/x", Ok(("/%2e%2e/x", false)));
        check_path("/a%2Fb", Err(UriError::Hidden));
        check_path("/a%2fb", Err(UriError::Hidden));
        check_path("/a%00", Err(UriError::Hidden));
        check_path("/a%0d%0a", Err(UriError::Path(PathError::ControlCharacter)));
        check_path("/a%", Err(UriError::Escape));
        check_path("/a%2", Err(UriError::Escape));
        check_path("/a%zz", Err(UriError::Escape));
        check_path("/a%+1", Err(UriError::Escape));
        check_path("/%c0%ae%c0%ae/", Err(UriError::Encoding));
        check_path("/%C3%A9", Ok(("/é", false)));
        check_path("/é", Ok(("/é", false)));
        check_path("/a\\..\\b", Ok(("/a\\..\\b", false)));
    }

    proptest! {
        #[test]
        fn what_is_escaped_decodes_to_itself(name in "[^/\\x00-\\x1f\\x7f-\\u{9f}]{1,40}") {
            prop_assume!(name != "." && name != ".." && name.len() < 250);
            let mut escaped = String::from("/");
            append_escaped(&mut escaped, &name);
            prop_assert!(escaped.bytes().all(|b| b.is_ascii_graphic() && !b"\"<>&'\\".contains(&b)));
            let decoded = decode_path(escaped.as_bytes()).unwrap();
            prop_assert_eq!(decoded.path.relative(), name);
        }

        #[test]
        fn any_bytes_are_taken(target in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(Target::Path { path, query }) = Target::parse(&target) {
                let _ = decode_path(path);
                let mut out = String::new();
                append_query(&mut out, query.unwrap_or(b""));
                prop_assert!(out.bytes().all(|b| b.is_ascii_graphic()));
            }
        }

        #[test]
        fn no_path_leaves_the_root(path in "(/|%2e|\\.|%2f|%5c|a|%|\\\\){0,24}") {
            if let Ok(decoded) = decode_path(path.as_bytes()) {
                prop_assert!(decoded.path.as_str().split('/').all(|part| part != ".." && part != "."));
            }
        }
    }
}
