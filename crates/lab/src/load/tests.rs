//! Loads against servers of a few lines: what was due is answered or has failed, each in its own way.

use super::*;
use proptest::prelude::*;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
const LAST: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc";

/// Reads up to the end of a request; false at the end of the connection.
fn request(stream: &mut TcpStream, text: &mut String) -> bool {
    text.clear();
    let mut byte = [0];
    while !text.ends_with("\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => text.push(byte[0] as char),
            _ => return false,
        }
    }
    true
}

/// A server with a thread for each connection, which does with it what is said. Its listener lives as long as the test.
fn server(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let serve = Arc::clone(&serve);
            std::thread::spawn(move || serve(stream));
        }
    });
    address
}

/// A server that answers each request with the same text, closing after it where the client or the text wants it.
fn answering(answer: &'static str) -> SocketAddr {
    server(move |mut stream| {
        let mut text = String::new();
        while request(&mut stream, &mut text) && stream.write_all(answer.as_bytes()).is_ok() {
            if text.contains("Connection: close") || !answer.contains("Content-Length: 3") {
                return;
            }
        }
    })
}

const REQUESTS: Arrivals = Arrivals::Opened { rate: 100.0, requests: 3, pace: Pace::Requests };
const SESSIONS: Arrivals = Arrivals::Opened { rate: 100.0, requests: 3, pace: Pace::Connections };
const SINGLE: Arrivals = Arrivals::Opened { rate: 100.0, requests: 1, pace: Pace::Requests };
const KEPT: Arrivals = Arrivals::Kept { connections: 3, rate: 100.0 };

fn load(server: SocketAddr, arrivals: Arrivals) -> Load {
    Load {
        server,
        host: server.to_string(),
        path: "/".into(),
        arrivals,
        time: Duration::from_millis(100),
        timeout: Duration::from_millis(400),
        status: 200,
        sources: Vec::new(),
        threads: 1,
        spin: false,
    }
}

/// What is counted against a server: all that was due, what was answered, and kinds of failure.
fn check(load: &Load, offered: u64, answered: u64, faults: &[Fault]) -> Tally {
    let tally = run(load).unwrap();
    assert_eq!(tally.offered, tally.answered + tally.failed(), "{tally:?}");
    assert_eq!((tally.offered, tally.answered), (offered, answered), "{:?}", tally.faults);
    let found: Vec<Fault> = tally.faults.keys().copied().collect();
    // Whether a peer that is gone shows as an end or as a reset is a matter of moments.
    if !(faults == [Fault::Closed] && found.iter().all(|fault| matches!(fault, Fault::Closed | Fault::Reset)))
    {
        assert_eq!(found, faults);
    }
    tally
}

#[test]
fn all_that_is_due_is_answered() {
    for threads in [1, 3] {
        for (arrivals, offered) in [(REQUESTS, 30), (SESSIONS, 30), (SINGLE, 10), (KEPT, 10)] {
            let load = Load { threads, ..load(answering(OK), arrivals) };
            let tally = check(&load, offered, offered, &[]);
            assert_eq!((tally.response.len(), tally.first_byte.len()), (offered, offered));
            assert_eq!(tally.received, offered * OK.len() as u64);
            assert_eq!(tally.body_len, Some(3));
            assert_eq!(tally.open.len(), SAMPLES, "a sample each");
            assert_eq!(tally.thread_cpu.len(), threads);
            assert!(tally.established >= if arrivals == KEPT { 3 } else { 10 });
        }
    }
}

#[test]
fn each_failure_has_its_kind() {
    let silent = || {
        server(|stream| {
            std::thread::sleep(Duration::from_secs(2));
            drop(stream);
        })
    };
    let closing = || {
        server(|mut stream| {
            request(&mut stream, &mut String::new());
        })
    };
    let gone = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (arrivals, offered) in [(REQUESTS, 30), (SESSIONS, 30), (SINGLE, 10), (KEPT, 10)] {
        check(
            &load(answering("HTTP/1.1 404 No\r\nContent-Length: 3\r\n\r\nabc"), arrivals),
            offered,
            0,
            &[Fault::Status],
        );
        check(&load(answering("SSH-2.0-x\r\n\r\n"), arrivals), offered, 0, &[Fault::Malformed]);
        check(
            &load(answering("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc"), arrivals),
            offered,
            0,
            &[Fault::ShortBody],
        );
        check(&load(answering("HTTP/1.1 200 O"), arrivals), offered, 0, &[Fault::ShortBody]);
        check(
            &load(answering("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcd"), arrivals),
            offered,
            0,
            &[Fault::Malformed],
        );
        check(&load(closing(), arrivals), offered, 0, &[Fault::Closed]);
        check(&load(gone(), arrivals), offered, 0, &[Fault::Refused]);
        let tally = check(&load(silent(), arrivals), offered, 0, &[Fault::Timeout]);
        // What never came has taken as long as it was waited for.
        assert!(tally.response.min() >= 390_000_000, "{}", tally.response.min());
    }
}

#[test]
fn a_status_that_is_expected_is_no_failure() {
    let server = answering("HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nabc");
    check(&Load { status: 404, ..load(server, REQUESTS) }, 30, 30, &[]);
}

#[test]
fn bodies_without_a_length() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3;x\r\nabc\r\n0\r\nT: r\r\n\r\n";
    assert_eq!(check(&load(answering(chunked), SINGLE), 10, 10, &[]).body_len, Some(3));
    let to_the_end = "HTTP/1.0 200 OK\r\n\r\nabcde";
    assert_eq!(check(&load(answering(to_the_end), SINGLE), 10, 10, &[]).body_len, Some(5));
    // What a connection still owed when its server closed it has failed.
    check(&load(answering(to_the_end), REQUESTS), 30, 10, &[Fault::Closed]);
    check(&load(answering(LAST), SESSIONS), 30, 10, &[Fault::Closed]);
    // Those that are kept are opened again.
    check(&load(answering(to_the_end), KEPT), 10, 10, &[]);
}

#[test]
fn a_server_that_ends_within_a_level() {
    let served = Arc::new(AtomicU32::new(0));
    let address = server(move |mut stream| {
        let mut text = String::new();
        while request(&mut stream, &mut text) && served.fetch_add(1, Ordering::Relaxed) < 12 {
            let _ = stream.write_all(OK.as_bytes());
        }
    });
    check(&load(address, REQUESTS), 30, 12, &[Fault::Closed]);
}

#[test]
fn a_pause_of_the_server_counts_for_all_that_were_due_within_it() {
    // 100 requests a second, one at a time: the fifth takes 250 ms, so those behind it, due every 10 ms, wait for 240, 230, ...
    for arrivals in [
        Arrivals::Opened { rate: 1.0, requests: 100, pace: Pace::Requests },
        Arrivals::Kept { connections: 1, rate: 100.0 },
    ] {
        let number = AtomicU32::new(0);
        let address = server(move |mut stream| {
            let mut text = String::new();
            while request(&mut stream, &mut text) {
                if number.fetch_add(1, Ordering::Relaxed) == 5 {
                    std::thread::sleep(Duration::from_millis(250));
                }
                let _ = stream.write_all(OK.as_bytes());
            }
        });
        let (time, timeout) = (Duration::from_secs(1), Duration::from_secs(10));
        let tally = check(&Load { time, timeout, ..load(address, arrivals) }, 100, 100, &[]);
        // At least 15 of them are late by 100 ms, though one was slow.
        let late = tally.response.len() - tally.response.count_between(0, 100_000_000);
        assert!(late >= 15, "{late}");
        let slow = tally.first_byte.len() - tally.first_byte.count_between(0, 100_000_000);
        assert!(slow >= 1 && slow < late, "a client that waits would have seen {slow}");
        assert!(tally.response.max() >= 250_000_000);
    }
}

#[test]
fn a_closed_loop_asks_when_it_is_answered() {
    let address = server(|mut stream| {
        while request(&mut stream, &mut String::new()) {
            std::thread::sleep(Duration::from_millis(5));
            let _ = stream.write_all(OK.as_bytes());
        }
    });
    let tally = run(&load(address, Arrivals::Kept { connections: 1, rate: 0.0 })).unwrap();
    assert!((1..=20).contains(&tally.answered) && tally.failed() == 0, "{tally:?}");
    assert!(tally.response.min() >= 4_900_000);
    // It ends where nobody listens.
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let tally = run(&load(gone, Arrivals::Kept { connections: 1, rate: 0.0 })).unwrap();
    assert_eq!(tally.answered, 0);
}

#[test]
fn connections_come_from_the_address_that_was_chosen() {
    let address = server(|mut stream| {
        let source = stream.peer_addr().unwrap().ip();
        let is_chosen = ["127.0.0.2", "127.0.0.3"].iter().any(|chosen| source.to_string() == *chosen);
        if request(&mut stream, &mut String::new()) && is_chosen {
            let _ = stream.write_all(LAST.as_bytes());
        }
    });
    let sources = vec!["127.0.0.2".parse().unwrap(), "127.0.0.3".parse().unwrap()];
    check(&Load { sources, ..load(address, SINGLE) }, 10, 10, &[]);
    let none = vec!["192.0.2.77".parse().unwrap()];
    check(&Load { sources: none, ..load(address, SINGLE) }, 10, 0, &[Fault::NoPort]);
}

/// Status, length of the body, and whether the connection is kept; `None`: it is no answer.
type Expected = Option<(u16, u64, bool)>;

const ANSWERS: [(&str, Expected); 16] = [
    (OK, Some((200, 3, true))),
    (LAST, Some((200, 3, false))),
    ("HTTP/1.1 404 Not Found\nContent-Length: 0\n\n", Some((404, 0, true))),
    ("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", Some((200, 1, false))),
    ("HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: Keep-Alive\r\n\r\nx", Some((200, 1, true))),
    ("HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\n\r\n", Some((304, 0, true))),
    ("HTTP/1.1 204 No Content\r\n\r\n", Some((204, 0, true))),
    ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", Some((200, 2, true))),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1A\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\n\r\n",
        Some((200, 29, true)),
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\n1 ; a=\"b\"\r\nx\r\n00\r\nA: b\r\nC: d\r\n\r\n",
        Some((200, 1, true)),
    ),
    ("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", None),
    ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", None),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", None),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n", None),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n11111111111111111\r\n", None),
    ("220 ftp\r\n", None),
];

/// Takes an answer in pieces; bytes that it used, or that it is none.
fn in_pieces(response: &mut Response, bytes: &[u8], cuts: &[usize]) -> Result<Option<usize>, Malformed> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    for pair in cuts.windows(2) {
        if let Some(used) = response.take(&bytes[pair[0]..pair[1]])? {
            return Ok(Some(pair[0] + used));
        }
    }
    Ok(None)
}

proptest! {
    #[test]
    fn an_answer_is_the_same_in_any_pieces(number in 0..ANSWERS.len(), cuts in prop::collection::vec(0..200usize, 0..8)) {
        let (text, expected) = ANSWERS[number];
        // What follows an answer does not belong to it.
        let bytes = format!("{text}{OK}").into_bytes();
        let mut response = Response::default();
        for _ in 0..2 {
            let taken = in_pieces(&mut response, &bytes, &cuts);
            match expected {
                Some((status, body, keeps)) => {
                    prop_assert_eq!(taken, Ok(Some(text.len())));
                    prop_assert_eq!((response.status(), response.body_len(), response.keeps()), (status, body, keeps));
                }
                None => prop_assert!(taken.is_err()),
            }
            response.clear();
            prop_assert!(response.is_empty());
        }
    }

    #[test]
    fn nothing_that_comes_breaks_the_reader(
        start in 0..ANSWERS.len(),
        keep in 0..200usize,
        noise in prop::collection::vec(any::<u8>(), 0..200),
        cuts in prop::collection::vec(0..400usize, 0..8),
    ) {
        let text = ANSWERS[start].0.as_bytes();
        let bytes = [&text[..keep.min(text.len())], &noise].concat();
        let (mut once, mut pieces) = (Response::default(), Response::default());
        let whole = in_pieces(&mut once, &bytes, &[]);
        prop_assert_eq!(whole, in_pieces(&mut pieces, &bytes, &cuts));
        prop_assert_eq!((once.status(), once.body_len()), (pieces.status(), pieces.body_len()));
        prop_assert!(!matches!(whole, Ok(Some(used)) if used > bytes.len()));
    }
}

#[test]
fn bounds_of_what_is_no_answer() {
    let endless = |start: &str, rest: &str| {
        let mut response = Response::default();
        response.take(start.as_bytes())?;
        (0..100_000).try_for_each(|_| response.take(rest.as_bytes()).map(drop))
    };
    assert!(endless("HTTP/1.1 200 OK\r\nA: ", "b").is_err());
    assert!(endless("HTTP/1.1 200 OK\r\n", "A: b\r\n").is_err());
    assert!(endless("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", "b").is_err());
}
