//! Answers that are ready are those that would have been made.

use super::*;
use proptest::prelude::*;

fn rig(ready_answers: usize) -> Rig {
    let config = config();
    let limits = Limits { ready_answers, ..config.limits };
    let mut rig = Rig::with(Config { limits, ..config });
    // As on Linux: what the kernel has in its caches answers at once.
    rig.world.files.stats_now = Some(0);
    rig.world.turn = Some(0);
    rig.world.files.add_file("/a.css", &[b'a'; 400]);
    rig.world.files.add_file("/a.css.gz", &[b'z'; 40]);
    rig.world.files.add_file("/long", &[b'l'; 5_000]);
    rig
}

fn get(target: &str, fields: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n")
}

/// Asks once; the next turn of the loop.
fn ask(rig: &mut Rig, conn: ConnId, request: &str) -> String {
    rig.world.turn = rig.world.turn.map(|turn| turn + 1);
    rig.exchange(conn, request)
}

#[test]
fn the_third_of_equal_requests_is_answered_with_the_answer_to_the_second() {
    for (request, status) in [
        (get("/hello.txt", ""), "200"),
        (get("/long", ""), "200"),
        (get("/sub/", ""), "200"),
        (get("/memory/100", ""), "200"),
        (get("/memory/5000", ""), "200"),
        (get("/memory/null", ""), "200"),
        (get("/sub", ""), "301"),
        (get("/none", ""), "404"),
        (get("/a.css", "Accept-Encoding: gzip\r\n"), "200"),
        (get("/hello.txt", "If-Modified-Since: Fri, 02 Jan 2026 00:00:00 GMT\r\n"), "304"),
        (get("/hello.txt", "If-Match: \"x\"\r\n"), "412"),
        (owned("HEAD /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n"), "200"),
        (owned("GET /hello.txt HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"), "200"),
    ] {
        let mut rig = rig(4);
        let conn = rig.connect();
        let mut answers = Vec::new();
        for _ in 0..5 {
            answers.push(ask(&mut rig, conn, &request));
        }
        assert_eq!(status_of(&answers[0]), status, "{request}");
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:#?}");
        // The first may have waited for the files.
        let reused = rig.server.counters().reused_answers;
        assert!((2..=3).contains(&reused), "{request}: {reused}");
    }
}

#[test]
fn what_depends_on_more_than_the_request_and_its_files_is_made_each_time() {
    for request in [
        get("/big", ""),
        get("/list/", ""),
        owned("PUT /memory/null HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"),
        get("/hello.txt", "Range: bytes=0-3\r\n"),
        owned("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"),
        owned("POST /hello.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"),
    ] {
        let mut rig = rig(4);
        let conn = rig.connect();
        for _ in 0..4 {
            let answer = ask(&mut rig, conn, &request);
            assert!(!answer.is_empty(), "{request}");
        }
        assert_eq!(rig.server.counters().reused_answers, 0, "{request}");
    }
}

#[test]
fn a_changed_file_is_seen_at_once() {
    let mut rig = rig(4);
    let conn = rig.connect();
    for _ in 0..4 {
        assert!(ask(&mut rig, conn, HELLO).ends_with("hello, world"));
    }
    assert!(rig.server.counters().reused_answers > 0);
    let node = rig.world.files.nodes.get_mut("/hello.txt").unwrap();
    (node.data, node.modified_ns) = (b"other".to_vec(), node.modified_ns + 1);
    assert!(ask(&mut rig, conn, HELLO).ends_with("\r\n\r\nother"));
    rig.world.files.nodes.remove("/hello.txt");
    assert_eq!(status_of(&ask(&mut rig, conn, HELLO)), "404");
}

#[test]
fn the_date_goes_on() {
    let mut rig = rig(4);
    let conn = rig.connect();
    for _ in 0..4 {
        assert_eq!(field(&ask(&mut rig, conn, HELLO), "Date"), Some(DATE));
    }
    rig.advance_ms(1_000);
    assert_eq!(field(&ask(&mut rig, conn, HELLO), "Date"), Some("Fri, 02 Jan 2026 03:04:06 GMT"));
}

#[test]
fn a_tag_is_weak_for_as_long_as_it_was() {
    let mut rig = rig(4);
    let conn = rig.connect();
    rig.world.files.nodes.get_mut("/hello.txt").unwrap().modified_ns = rig.world.wall_ns - 800_000_000;
    for _ in 0..4 {
        assert!(field(&ask(&mut rig, conn, HELLO), "ETag").unwrap().starts_with("W/"));
    }
    // Still the same second.
    rig.advance_ms(300);
    let answer = ask(&mut rig, conn, HELLO);
    assert_eq!(field(&answer, "Date"), Some(DATE));
    assert!(field(&answer, "ETag").unwrap().starts_with('"'));
}

#[test]
fn so_many_are_kept_and_no_more() {
    for (kept, targets, reused) in [(0, 1, 0), (1, 1, 7), (1, 2, 0), (4, 4, 28), (4, 5, 0)] {
        let mut rig = rig(kept);
        let conn = rig.connect();
        // All are known, and what is learned of them is not waited for.
        for _ in 0..2 {
            (0..targets).for_each(|at| drop(ask(&mut rig, conn, &get(&format!("/none{at}"), ""))));
        }
        let before = rig.server.counters().reused_answers;
        for _ in 0..7 {
            (0..targets).for_each(|at| drop(ask(&mut rig, conn, &get(&format!("/none{at}"), ""))));
        }
        let counted = rig.server.counters().reused_answers - before;
        assert!(counted.abs_diff(reused) <= targets, "{kept} of {targets}: {counted}");
    }
}

#[test]
fn none_is_kept_twice() {
    let mut rig = rig(2);
    let conn = rig.connect();
    let (none, some) = (get("/none", ""), get("/a.css", ""));
    for _ in 0..4 {
        ask(&mut rig, conn, &none);
        ask(&mut rig, conn, &some);
    }
    // More at once than is gathered: some of them are answered anew.
    for _ in 0..3 {
        let answers = ask(&mut rig, conn, &some.repeat(64));
        assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 64);
    }
    let before = rig.server.counters().reused_answers;
    ask(&mut rig, conn, &none);
    assert_eq!(rig.server.counters().reused_answers, before + 1);
}

#[test]
fn a_server_that_stops_says_so() {
    let mut rig = rig(4);
    let conn = rig.connect();
    for _ in 0..4 {
        ask(&mut rig, conn, HELLO);
    }
    rig.world.client_send(conn, format!("{HELLO}{HELLO}").as_bytes());
    rig.world.with(|ctx| rig.server.drain(ctx));
    let answer = rig.text(conn);
    assert_eq!(answer.matches("\r\nConnection: close\r\n").count(), 1, "{answer}");
}

/// What a client may do, or somebody else.
#[derive(Clone, Debug)]
enum Deed {
    /// Requests on a kept connection, in one piece or cut at a place.
    Ask {
        conn: usize,
        requests: Vec<usize>,
        cut: usize,
    },
    /// A connection of its own that is over after one request.
    Alone(usize),
    Write {
        file: usize,
        len: usize,
    },
    Remove(usize),
    Wait(u64),
    /// A client takes nothing, or goes on.
    Stall(usize, bool),
    Reload {
        server_header: bool,
    },
}

const FILES: [&str; 5] = ["/hello.txt", "/long", "/a.css", "/a.css.gz", "/sub/index.html"];

fn requests() -> Vec<String> {
    let mut all: Vec<String> = [
        "/hello.txt",
        "/long",
        "/a.css",
        "/sub",
        "/sub/",
        "/none",
        "/big",
        "/list/",
        "/memory/300",
        "/memory/3000",
        "/memory/70000",
    ]
    .iter()
    .flat_map(|target| {
        [
            get(target, ""),
            get(target, "Accept-Encoding: gzip\r\n"),
            get(target, "If-Modified-Since: Fri, 02 Jan 2026 03:04:06 GMT\r\n"),
            get(target, "Range: bytes=1-2\r\n"),
            format!("HEAD {target} HTTP/1.1\r\nHost: a\r\n\r\n"),
        ]
    })
    .collect();
    all.push(owned("POST /hello.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"));
    all
}

fn deed() -> impl Strategy<Value = Deed> {
    let request = prop_oneof![3 => Just(0usize), 2 => Just(5), 2 => 0usize..46];
    let requests = proptest::collection::vec(request.clone(), 1..4);
    prop_oneof![
        12 => (0usize..3, requests, 0usize..400).prop_map(|(conn, requests, cut)| Deed::Ask { conn, requests, cut }),
        2 => request.prop_map(Deed::Alone),
        1 => (0usize..5, 1usize..4_000).prop_map(|(file, len)| Deed::Write { file, len }),
        1 => (0usize..5).prop_map(Deed::Remove),
        2 => (1u64..1_500).prop_map(Deed::Wait),
        1 => (0usize..3, any::<bool>()).prop_map(|(conn, stalled)| Deed::Stall(conn, stalled)),
        1 => any::<bool>().prop_map(|server_header| Deed::Reload { server_header }),
    ]
}

/// Does it; what every client has got since, and whether it is over for him.
fn perform(rig: &mut Rig, conns: &mut [ConnId], deed: &Deed) -> Vec<(Vec<u8>, bool)> {
    rig.world.turn = rig.world.turn.map(|turn| turn + 1);
    let requests_ = requests();
    let mut extra = Vec::new();
    match deed {
        Deed::Ask { conn, requests, cut } => {
            let bytes: String = requests.iter().map(|at| requests_[*at].as_str()).collect();
            let (first, second) = bytes.as_bytes().split_at((*cut).min(bytes.len()));
            rig.send(conns[*conn], first);
            if !second.is_empty() {
                rig.send(conns[*conn], second);
            }
        }
        Deed::Alone(at) => {
            let conn = rig.connect();
            let request = requests_[*at].replace("Host: a\r\n", "Host: a\r\nConnection: close\r\n");
            rig.send(conn, request);
            extra.push((rig.received(conn), rig.world.net.client_sees_end(conn)));
            rig.world.net.client_reset(conn);
            rig.run();
        }
        Deed::Write { file, len } => {
            let now = rig.world.wall_ns;
            rig.world.files.add_file(FILES[*file], &std::vec![b'w'; *len]);
            rig.world.files.nodes.get_mut(FILES[*file]).unwrap().modified_ns = now;
        }
        Deed::Remove(file) => drop(rig.world.files.nodes.remove(FILES[*file])),
        Deed::Wait(ms) => rig.advance_ms(*ms),
        Deed::Stall(conn, stalled) => {
            rig.world.net.client_stall(conns[*conn], *stalled);
            rig.run();
        }
        Deed::Reload { server_header } => {
            let config = Config { server_header: *server_header, ..rig.server.config().clone() };
            rig.server.reload(config);
        }
    }
    for conn in conns {
        extra.push((rig.received(*conn), rig.world.net.client_sees_end(*conn)));
        if rig.world.net.client_sees_end(*conn) {
            rig.world.net.client_reset(*conn);
            rig.run();
            *conn = rig.connect();
        }
    }
    extra
}

proptest! {
    #[test]
    fn clients_cannot_tell_whether_answers_were_ready(deeds in proptest::collection::vec(deed(), 1..60)) {
        let (mut with, mut without) = (rig(4), rig(0));
        let mut conns = [&mut with, &mut without].map(|rig| [rig.connect(), rig.connect(), rig.connect()]);
        for deed in &deeds {
            let [ours, theirs] = &mut conns;
            let (got, expected) = (perform(&mut with, ours, deed), perform(&mut without, theirs, deed));
            prop_assert_eq!(got, expected, "{:?}", deed);
            let counted = |rig: &Rig| Counters { reused_answers: 0, ..rig.server.counters() };
            prop_assert_eq!(counted(&with), counted(&without), "{:?}", deed);
            // Buffers for heads are used again, and may be longer than they need to be. What turns out to be another file
            // is looked up twice.
            let held = |rig: &Rig| Gauges { head_memory: 0, cache_hits: 0, ..rig.server.gauges() };
            prop_assert_eq!(held(&with), held(&without), "{:?}", deed);
            prop_assert!(with.server.gauges().cache_hits >= without.server.gauges().cache_hits, "{:?}", deed);
        }
        prop_assert_eq!(without.server.counters().reused_answers, 0);
    }
}
