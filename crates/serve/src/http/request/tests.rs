//! Every shape of a request that two parsers could read differently, and what is said to it.

use super::*;
use crate::http::headers::{HeadLimits, HeadScan, NO_FIELDS};
use proptest::prelude::*;
use std::string::String;

const LIMITS: HeadLimits = HeadLimits { line: 8192, fields: 16_384 };

fn with<R>(bytes: &[u8], f: impl FnOnce(Result<Head<'_>, RequestError>) -> R) -> R {
    match HeadScan::default().scan(bytes, &LIMITS) {
        Ok(Some(place)) => {
            let mut room = NO_FIELDS;
            f(Head::parse(bytes, place, &mut room))
        }
        Ok(None) => panic!("incomplete: {:?}", String::from_utf8_lossy(bytes)),
        Err(error) => f(Err(error)),
    }
}

fn check_error(head: &str, expected: RequestError, status: u16) {
    with(head.as_bytes(), |result| match result {
        Ok(_) => panic!("taken: {head:?}"),
        Err(error) => {
            assert_eq!(error, expected, "{head:?}");
            assert_eq!(error.status().code(), status, "{head:?}");
        }
    });
}

/// The request line is given, the fields are good.
fn check_line(line: &str, expected: RequestError, status: u16) {
    check_error(&std::format!("{line}\r\nHost: a\r\n\r\n"), expected, status);
}

/// The fields are given (with a good Host before them), the line is good.
fn check_fields(fields: &str, expected: RequestError, status: u16) {
    check_error(&std::format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n"), expected, status);
}

#[test]
fn malformed_request_lines() {
    check_line("GET /", RequestError::Syntax, 400);
    check_line("GET", RequestError::Syntax, 400);
    check_line("GET  / HTTP/1.1", RequestError::Syntax, 400);
    check_line("GET /  HTTP/1.1", RequestError::Syntax, 400);
    check_line("GET / HTTP/1.1 ", RequestError::Syntax, 400);
    check_line("GET / x HTTP/1.1", RequestError::Syntax, 400);
    check_line("GET\t/\tHTTP/1.1", RequestError::Syntax, 400);
    check_line("G(T / HTTP/1.1", RequestError::Syntax, 400);
    check_line("GET / http/1.1", RequestError::Syntax, 400);
    check_line("GET / HTTP/1", RequestError::Syntax, 400);
    check_line("GET / HTTP/1.10", RequestError::Syntax, 400);
    check_line("GET / HTTP/11", RequestError::Syntax, 400);
    check_line("GET / HTTP/1.1\r", RequestError::Syntax, 400);
    check_line("GET / HTTP/2.0", RequestError::Version, 505);
    check_line("PRI * HTTP/2.0", RequestError::Version, 505);
    check_line("GET / HTTP/0.9", RequestError::Version, 505);
    check_line("get / HTTP/1.1", RequestError::Method, 501);
    check_line("BREW / HTTP/1.1", RequestError::Method, 501);
    check_line("GET * HTTP/1.1", RequestError::Target(UriError::Form), 400);
    check_line("GET a:80 HTTP/1.1", RequestError::Target(UriError::Form), 400);
    check_line("CONNECT / HTTP/1.1", RequestError::Target(UriError::Form), 400);
    check_line("GET https://a/ HTTP/1.1", RequestError::Target(UriError::Secured), 421);
    check_line("GET http:/// HTTP/1.1", RequestError::Target(UriError::Authority), 400);
    check_line("GET http://a@b/ HTTP/1.1", RequestError::Target(UriError::Authority), 400);
    check_line("GET /a\x0bb HTTP/1.1", RequestError::Target(UriError::Character), 400);
    check_line("GET /\0 HTTP/1.1", RequestError::Target(UriError::Character), 400);
    check_line("GET /#x HTTP/1.1", RequestError::Target(UriError::Character), 400);
    let long = std::format!("GET /{} HTTP/1.1", "a".repeat(8192));
    check_line(&long, RequestError::LineTooLong, 414);
}

#[test]
fn malformed_fields() {
    check_fields("NoColon", RequestError::Field, 400);
    check_fields("Space : x", RequestError::Field, 400);
    check_fields("Tab\t: x", RequestError::Field, 400);
    check_fields("X: a\r\n folded", RequestError::Field, 400);
    check_fields("X: a\r\n\tfolded: b", RequestError::Field, 400);
    check_fields(": x", RequestError::Field, 400);
    check_fields("X\0: x", RequestError::Field, 400);
    check_fields("X: a\0b", RequestError::Field, 400);
    check_fields("X: a\rb", RequestError::Field, 400);
    check_fields("X: a\x0bb", RequestError::Field, 400);
    check_fields("X: a\x7fb", RequestError::Field, 400);
    check_fields("X(y): a", RequestError::Field, 400);
    check_fields("X\u{e9}: a", RequestError::Field, 400);
    check_fields("X: a\nY: b", RequestError::BareLineFeed, 400);
    check_fields("X: a\n\r\nY: b", RequestError::BareLineFeed, 400);
    check_fields(&std::format!("X: {}", "a".repeat(16_384)), RequestError::FieldsTooLong, 431);
    check_fields(&"X: a\r\n".repeat(100), RequestError::TooManyFields, 431);
    check_error("GET / HTTP/1.1\r\n Host: a\r\n\r\n", RequestError::Field, 400);
}

#[test]
fn shapes_that_smuggle() {
    check_fields("Content-Length: 5\r\nTransfer-Encoding: chunked", RequestError::LengthAndCoding, 400);
    check_fields("Transfer-Encoding: chunked\r\nContent-Length: 0", RequestError::LengthAndCoding, 400);
    check_fields("Transfer-Encoding: \r\nContent-Length: 5", RequestError::LengthAndCoding, 400);
    for value in
        ["", "+5", "-1", "0x5", "5 5", "5,5", "5;", "1e1", "5.0", "99999999999999999999", "\u{0665}", "5 ,5"]
    {
        check_fields(&std::format!("Content-Length: {value}"), RequestError::ContentLength, 400);
    }
    check_fields("Content-Length: 5\r\nContent-Length: 5", RequestError::ContentLength, 400);
    check_fields("Content-Length: 5\r\ncontent-length: 6", RequestError::ContentLength, 400);
    check_fields("Content-Length : 5", RequestError::Field, 400);
    check_fields("Content-Length:\r\n 5", RequestError::Field, 400);
    for value in [
        "gzip",
        "gzip, chunked",
        "chunked, gzip",
        "identity",
        "xchunked",
        "chunked;x",
        "\"chunked\"",
        "chunked chunked",
        "\x0cchunked",
    ] {
        let (error, status) = match value {
            _ if value.starts_with('\x0c') => (RequestError::Field, 400),
            "gzip, chunked" => (RequestError::UnknownCoding, 501),
            _ => (RequestError::TransferCoding, 400),
        };
        check_fields(&std::format!("Transfer-Encoding: {value}"), error, status);
    }
    check_fields("Transfer-Encoding: chunked, chunked", RequestError::TransferCoding, 400);
    check_fields(
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        RequestError::TransferCoding,
        400,
    );
    check_fields("Transfer-Encoding: chunked\r\nTransfer-Encoding: x", RequestError::TransferCoding, 400);
    check_fields("Transfer-Encoding: x\r\nTransfer-Encoding: chunked", RequestError::UnknownCoding, 501);
    check_fields("Transfer-Encoding: chunked, x, chunked", RequestError::TransferCoding, 400);
    check_fields("Transfer-Encoding:", RequestError::TransferCoding, 400);
    check_fields("Transfer-Encoding : chunked", RequestError::Field, 400);
    check_error("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", RequestError::TransferCoding, 400);
}

#[test]
fn hosts() {
    check_error("GET / HTTP/1.1\r\n\r\n", RequestError::Host, 400);
    check_error("GET http://a/ HTTP/1.1\r\n\r\n", RequestError::Host, 400);
    check_error("GET / HTTP/1.1\r\nHost:\r\n\r\n", RequestError::Host, 400);
    check_error("GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", RequestError::Host, 400);
    check_fields("Host: a", RequestError::Host, 400);
    check_fields("host: b", RequestError::Host, 400);
    for host in ["a b", "a/b", "a@b", "a:b", "a:80:80", "[::1", "a, b", "http://a", "a\u{e9}"] {
        check_error(&std::format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"), RequestError::Host, 400);
    }
}

fn check_ok(head: &str, check: impl FnOnce(&Head<'_>)) {
    with(head.as_bytes(), |result| match result {
        Ok(head) => check(&head),
        Err(error) => panic!("{error}: {head:?}"),
    });
}

#[test]
fn good_requests() {
    check_ok("GET /x?y HTTP/1.1\r\nHost: a\r\n\r\n", |head| {
        assert_eq!(head.target, Target::Path { path: b"/x", query: Some(b"y") });
        assert_eq!((head.method, head.version), (Method::Get, Version::Http11));
        assert_eq!((head.keep_alive, head.framing), (true, Framing::Empty));
    });
    check_ok("GET / HTTP/1.2\r\nHost: a:80\r\n\r\n", |head| assert_eq!(head.version, Version::Http11));
    check_ok("GET / HTTP/1.0\r\n\r\n", |head| assert!(!head.keep_alive));
    check_ok("\r\nHEAD http://b/ HTTP/1.0\r\nConnection: x, Keep-Alive\r\n\r\n", |head| {
        assert!(head.keep_alive);
        assert_eq!(head.target, Target::Path { path: b"/", query: None });
    });
    check_ok("GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\nconnection: CLOSE\r\n\r\n", |head| {
        assert!(!head.keep_alive);
    });
    check_ok("OPTIONS * HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", |head| {
        assert_eq!(head.target, Target::Asterisk)
    });
    check_ok("CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", |head| assert_eq!(head.target, Target::Authority));
    check_ok("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0005\r\nExpect: 100-Continue\r\n\r\n", |head| {
        assert_eq!(head.framing, Framing::Length(5));
        assert_eq!(head.expectation, Expectation::Continue);
    });
    check_ok("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: , Chunked ,\r\nExpect: x\r\n\r\n", |head| {
        assert_eq!(head.framing, Framing::Chunked);
        assert_eq!(head.expectation, Expectation::Unknown);
    });
    check_ok("GET / HTTP/1.0\r\nContent-Length: 0\r\nExpect: 100-continue\r\n\r\n", |head| {
        assert_eq!(head.framing, Framing::Empty);
        assert_eq!(head.expectation, Expectation::None);
    });
    let fields = "X: a\r\n".repeat(99);
    check_ok(&std::format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"), |head| {
        assert_eq!(head.fields.all("x").count(), 99);
    });
}

proptest! {
    #[test]
    fn any_bytes_are_taken(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut scan = HeadScan::default();
        if let Ok(Some(place)) = scan.scan(&bytes, &LIMITS) {
            let mut room = NO_FIELDS;
            let _ = Head::parse(&bytes, place, &mut room);
        }
    }

    #[test]
    fn any_lines_are_taken(
        line in "[ -~]{1,30}",
        fields in proptest::collection::vec("[A-Za-z-]{0,12}[: \\t]{0,3}[ -~]{0,12}", 0..5),
    ) {
        let head = std::format!("{line}\r\n{}\r\n\r\n", fields.join("\r\n"));
        if let Ok(Some(place)) = HeadScan::default().scan(head.as_bytes(), &LIMITS) {
            let mut room = NO_FIELDS;
            if let Ok(parsed) = Head::parse(head.as_bytes(), place, &mut room) {
                prop_assert!(parsed.version == Version::Http10 || parsed.fields.all("host").count() == 1);
            }
        }
    }
}
