//! How requests are read: whole, in pieces, several at once, with bodies, and broken.

use super::*;
use crate::testing::net::Released;
use proptest::prelude::*;

fn last(status: &str) -> String {
    page_response(status, "Connection: close\r\n")
}

#[test]
fn broken_requests_get_their_status_and_the_connection_ends() {
    let mut rig = Rig::new();
    let long_line = format!("GET /{} HTTP/1.1\r\n", "a".repeat(9_000));
    let long_fields = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "a".repeat(17_000));
    for (request, status) in [
        ("GET / HTTP/1.1\n", "400 Bad Request"),
        ("GET / HTTP/1.1\r\n\r\n", "400 Bad Request"),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", "400 Bad Request"),
        ("GET / HTTP/1.1\r\nHost: a\r\nNo colon\r\n\r\n", "400 Bad Request"),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "400 Bad Request",
        ),
        ("GET /../etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n", "400 Bad Request"),
        ("GET /%2e%2e/etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n", "400 Bad Request"),
        ("GET /a%2fb HTTP/1.1\r\nHost: a\r\n\r\n", "400 Bad Request"),
        ("GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", "400 Bad Request"),
        ("GET /\r\n", "400 Bad Request"),
        ("\x16\x03\x01\x02\0\x01\0\x01", "400 Bad Request"),
        (&long_line, "414 URI Too Long"),
        (&long_fields, "431 Request Header Fields Too Large"),
        ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", "400 Bad Request"),
        ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n", "400 Bad Request"),
        ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "501 Not Implemented"),
        ("BREW / HTTP/1.1\r\nHost: a\r\n\r\n", "501 Not Implemented"),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505 HTTP Version Not Supported"),
    ] {
        let conn = rig.connect();
        assert_eq!(rig.exchange(conn, request), last(status), "{request:?}");
        assert!(rig.world.net.client_sees_end(conn), "{request:?}");
        // What follows is not read as a request, and not answered by a reset either.
        assert_eq!(rig.exchange(conn, HELLO), "", "{request:?}");
        rig.world.net.client_finish(conn);
        rig.run();
        assert_eq!(rig.world.net.released(conn), Some(crate::testing::net::Released::Closed));
    }
    assert_eq!(rig.server.counters().malformed, 18);
    rig.check_at_rest();
}

#[test]
fn a_path_that_no_file_can_have_is_404_and_the_connection_goes_on() {
    let mut rig = Rig::new();
    let conn = rig.connect();
    let (name, deep) = ("a".repeat(256), "/ab".repeat(2_000));
    for target in [format!("/{name}"), format!("/sub/{name}/x"), format!("/{name}/"), deep] {
        let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(rig.exchange(conn, request), page_response("404 Not Found", ""), "{target}");
    }
    assert_eq!(status_of(&rig.exchange(conn, format!("HEAD /{name} HTTP/1.1\r\nHost: a\r\n\r\n"))), "404");
    assert_eq!(status_of(&rig.exchange(conn, format!("DELETE /{name} HTTP/1.1\r\nHost: a\r\n\r\n"))), "405");
    assert_eq!(rig.exchange(conn, HELLO), hello(&rig));
}

#[test]
fn a_request_may_come_byte_by_byte() {
    let mut rig = Rig::new();
    let expected = hello(&rig);
    let conn = rig.connect();
    for byte in HELLO.bytes() {
        assert_eq!(rig.text(conn), "");
        rig.send(conn, [byte]);
    }
    assert_eq!(rig.text(conn), expected);
}

#[test]
fn a_request_may_be_cut_anywhere_even_before_another() {
    let mut rig = Rig::new();
    let body = "POST /memory/null HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\n";
    let both = format!("\r\n{HELLO}{body}{HELLO}");
    let conn = rig.connect();
    let whole = rig.exchange(conn, &both);
    assert_eq!(whole.matches("HTTP/1.1 200 OK").count(), 3);
    for cut in 0..=both.len() {
        let conn = rig.connect();
        rig.send(conn, &both[..cut]);
        rig.send(conn, &both[cut..]);
        assert_eq!(rig.text(conn), whole, "cut at {cut}");
    }
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let mut rig = Rig::new();
    // A small and cached file, one from an open file, a listing, an error, a memory file.
    let targets = ["/hello.txt", "/big", "/list/", "/none", "/memory/100K", "/sub/"];
    let mut expected = Vec::new();
    for target in targets {
        let conn = rig.connect();
        rig.send(conn, format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
        expected.extend(rig.received(conn));
    }
    let all: String = targets.iter().map(|t| format!("GET {t} HTTP/1.1\r\nHost: a\r\n\r\n")).collect();
    let conn = rig.connect();
    rig.send(conn, &all);
    assert!(rig.received(conn) == expected);
    // Many more than one turn takes.
    rig.send(conn, HELLO.repeat(1_000));
    let one = hello(&rig);
    assert_eq!(rig.text(conn), one.repeat(1_000));
}

#[test]
fn a_client_that_reads_nothing_gets_no_more_answers() {
    let mut rig = Rig::new();
    let conn = rig.connect();
    rig.world.net.client_stall(conn, true);
    rig.send(conn, HELLO.repeat(5_000));
    let answered = rig.server.counters().responses_2xx;
    // The send buffer, and what was gathered when it was full.
    assert!(answered * 200 < (512 << 10), "{answered}");
    rig.world.net.client_stall(conn, false);
    let one = hello(&rig);
    assert_eq!(rig.text(conn).len(), one.len() * 5_000);
}

#[test]
fn bodies_nobody_wants_are_read_over() {
    let mut rig = Rig::new();
    let one = hello(&rig);
    let conn = rig.connect();
    let get = |fields: &str, body: &str| format!("GET /hello.txt HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}");
    assert_eq!(rig.exchange(conn, get("Content-Length: 5\r\n", "12345")), one);
    assert_eq!(rig.exchange(conn, get("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n")), one);
    let trailers = get("Transfer-Encoding: chunked\r\n", "0\r\nA: b\r\nC: d\r\n\r\n");
    assert_eq!(rig.exchange(conn, format!("{trailers}{HELLO}")), one.repeat(2));
    // A request hidden in a body stays a body.
    let hidden = get(&format!("Content-Length: {}\r\n", HELLO.len()), HELLO);
    assert_eq!(rig.exchange(conn, hidden), one);
    let post = format!("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab{HELLO}");
    let expected = page_response("405 Method Not Allowed", "Allow: GET, HEAD, OPTIONS\r\n");
    assert_eq!(rig.exchange(conn, post), format!("{expected}{one}"));
    let broken = get("Transfer-Encoding: chunked\r\n", "3\r\nabcd\r\n");
    assert_eq!(rig.exchange(conn, broken), last("400 Bad Request"));
    assert_eq!(rig.server.counters().bad_bodies, 1);
}

#[test]
fn bodies_that_are_too_long_are_refused() {
    let mut rig = Rig::new();
    let get = |fields: &str| format!("GET /hello.txt HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    assert_eq!(rig.ask(&get("Content-Length: 1048577\r\n")), last("413 Content Too Large"));
    assert_eq!(rig.ask(&get("Content-Length: 1048576\r\n")), "");
    let conn = rig.connect();
    rig.send(conn, get("Transfer-Encoding: chunked\r\n"));
    for _ in 0..1_024 {
        rig.send(conn, format!("400\r\n{}\r\n", "x".repeat(1_024)));
    }
    assert_eq!(rig.text(conn), "");
    assert_eq!(rig.exchange(conn, "1\r\nx\r\n"), last("413 Content Too Large"));
}

#[test]
fn expectations_are_met_or_refused() {
    let mut rig = Rig::new();
    let conn = rig.connect();
    let put = "PUT /memory/null HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n";
    assert_eq!(rig.exchange(conn, put), "HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(split(&rig.exchange(conn, "abc")).1, "3\n");
    // Refused before the body: it may or may not come, so the connection ends.
    let answer = rig.ask(&put.replace("/memory/null", "/x"));
    assert_eq!((status_of(&answer), field(&answer, "Connection")), ("405", Some("close")));
    let answer = rig.ask(&put.replace("100-continue", "tea"));
    assert_eq!(answer, last("417 Expectation Failed"));
    assert_eq!(
        status_of(&rig.ask(&put.replace("/memory/null", "/x").replace("th: 3", "th: 3333333"))),
        "413"
    );
    let old = put.replace("HTTP/1.1", "HTTP/1.0");
    assert_eq!(rig.ask(&old), "");
}

#[test]
fn connections_are_kept_as_the_versions_say() {
    let mut rig = Rig::new();
    let mut check = |request: &str, connection: Option<&str>, kept: bool| {
        let conn = rig.connect();
        let answer = rig.exchange(conn, request);
        assert_eq!(status_of(&answer), "200");
        assert_eq!(field(&answer, "Connection"), connection, "{request}");
        assert_eq!(rig.world.net.client_sees_end(conn), !kept, "{request}");
        assert_eq!(!rig.exchange(conn, HELLO).is_empty(), kept, "{request}");
    };
    check(HELLO, None, true);
    check("GET /hello.txt HTTP/1.9\r\nHost: a\r\n\r\n", None, true);
    check("GET /hello.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", Some("close"), false);
    check("GET /big HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", Some("close"), false);
    check("GET /hello.txt HTTP/1.0\r\n\r\n", Some("close"), false);
    check("GET /hello.txt HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", Some("keep-alive"), true);
}

#[test]
fn a_client_that_has_finished_still_gets_its_answer() {
    let mut rig = Rig::new();
    let conn = rig.connect();
    rig.world.client_send(conn, "GET /big HTTP/1.1\r\nHost: a\r\n\r\n".as_bytes());
    rig.world.net.client_finish(conn);
    assert!(rig.received(conn).ends_with(&big()));
    assert!(rig.world.net.client_sees_end(conn));
    rig.check_at_rest();
    // Half a request is none.
    let conn = rig.connect();
    rig.send(conn, "GET / HT");
    rig.world.net.client_finish(conn);
    assert_eq!(rig.text(conn), "");
    rig.check_at_rest();
    let conn = rig.connect();
    rig.send(conn, "PUT /memory/null HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc");
    rig.world.net.client_finish(conn);
    assert_eq!(rig.text(conn), "");
    rig.check_at_rest();
    assert_eq!(rig.server.counters().aborted, 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whatever_comes_nothing_breaks_and_nothing_stays(
        pieces in proptest::collection::vec(
            prop_oneof![
                Just(HELLO.as_bytes().to_vec()),
                Just(b"GET /big HTTP/1.1\r\nHost: a\r\nRange: bytes=0-9,5-6\r\n\r\n".to_vec()),
                Just(b"PUT /memory/null HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec()),
                Just(b"5\r\nhello\r\n0\r\n\r\n".to_vec()),
                Just(b"GET /list/ HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\nabcd".to_vec()),
                Just(b"\r\n".to_vec()),
                proptest::collection::vec(any::<u8>(), 0..40),
                "[A-Z]{1,5} /[a-z%.]{0,6} HTTP/1.[01]\r\n([A-Z]: [a-z]{0,4}\r\n){0,3}".prop_map(String::into_bytes),
            ],
            0..12,
        ),
        clients in 1usize..3,
        hold in any::<bool>(),
    ) {
        let mut rig = Rig::new();
        let conns: Vec<_> = (0..clients).map(|_| rig.connect()).collect();
        rig.world.files.hold = hold;
        for piece in &pieces {
            for conn in &conns {
                rig.send(*conn, piece);
            }
        }
        prop_assert!(rig.server.gauges().head_memory < clients as u64 * 64 * 1024);
        rig.world.files.hold = false;
        for conn in conns {
            rig.world.net.client_reset(conn);
        }
        rig.check_at_rest();
    }
}

#[test]
fn only_after_a_last_request_without_a_body_is_nothing_more_waited_for() {
    let check = |request: &str, pipelined: &str, how: Released| {
        let mut rig = Rig::new();
        let conn = rig.connect();
        let answer = rig.exchange(conn, [request, pipelined].concat());
        assert!(answer.starts_with("HTTP/1.1 "), "{request}");
        rig.world.net.client_finish(conn);
        rig.run();
        assert_eq!(rig.world.net.released(conn), Some(how), "{request}");
    };
    let last = "GET /hello.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    check(last, "", Released::Done);
    check("GET /big HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "", Released::Done);
    check("GET /hello.txt HTTP/1.0\r\n\r\n", "", Released::Done);
    // It said so and went on.
    check(last, HELLO, Released::Closed);
    // It did not say so.
    check(HELLO, "", Released::Closed);
    check("GET /\r\n\r\n", "", Released::Closed);
    // An old client may send a line end behind a body.
    let body = "POST /memory/null HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx";
    check(body, "", Released::Closed);
}
