//! Files that change, connections that break, new settings, and the end.

use super::*;
use crate::Service as _;
use crate::testing::logged;
use crate::testing::net::Released;
use linerate_transport::{Files as _, ListenError};

const BIG: &str = "GET /big HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn a_changed_file_is_seen_at_once() {
    changes(Rig::new());
}

#[test]
fn a_changed_file_is_seen_at_once_where_nobody_waits_for_metadata() {
    let mut rig = Rig::new();
    rig.world.files.stats_now = Some(0);
    changes(rig);
}

#[test]
fn a_file_that_was_asked_for_a_moment_ago_is_only_compared() {
    let mut rig = Rig::new();
    rig.ask(HELLO);
    rig.world.files.stats_now = Some(0);
    let mut check = |ms: u64, same: u64, stats: u64| {
        rig.advance_ms(ms);
        assert_eq!(split(&rig.get("/hello.txt", "")).1, "hello, world");
        assert_eq!((rig.world.files.same_now, rig.world.files.stats_now), (same, Some(stats)));
    };
    check(0, 1, 0);
    check(999, 2, 0);
    // Longer ago, the kernel may have to look for it on a disk.
    check(1_000, 2, 1);
    check(0, 3, 1);
}

#[test]
fn requests_of_one_turn_share_what_is_known_at_once() {
    let mut rig = Rig::new();
    rig.ask(HELLO);
    rig.world.files.stats_now = Some(0);
    rig.advance_ms(1_000);
    rig.world.turn = Some(7);
    for target in ["/hello.txt", "/hello.txt"] {
        assert_eq!(split(&rig.get(target, "")).1, "hello, world");
    }
    assert_eq!(rig.world.files.stats_now, Some(1));
    rig.world.files.add_file("/hello.txt", b"other");
    rig.world.turn = Some(8);
    assert_eq!(split(&rig.ask(HELLO)).1, "other");
    // What somebody changes within the turn is asked for again.
    rig.world.files.add_file("/hello.txt", b"third");
    let path = linerate_transport::VirtualPath::parse("/hello.txt").unwrap();
    rig.server.handle_change(&crate::Change::Path(path));
    assert_eq!(split(&rig.ask(HELLO)).1, "third");
    rig.world.files.nodes.remove("/hello.txt");
    rig.world.turn = Some(9);
    assert_eq!(status_of(&rig.ask(HELLO)), "404");
    let misses = rig.server.gauges().cache_misses;
    rig.world.turn = Some(10);
    assert_eq!(status_of(&rig.ask(HELLO)), "404");
    assert_eq!(rig.server.gauges().cache_misses, misses, "that it is not there is known at once, too");
}

fn changes(mut rig: Rig) {
    for (target, len) in [("/hello.txt", 5), ("/big", 50_000)] {
        rig.get(target, "");
        // Rewritten in place: the number stays.
        let node = rig.world.files.nodes.get_mut(target).unwrap();
        node.data = (0..len).map(|at| (at % 26) as u8 + b'a').collect();
        node.modified_ns += 1;
        let (answer, etag) = (rig.get(target, ""), rig.etag(target));
        assert_eq!(split(&answer).1.as_bytes(), rig.world.files.content(target).unwrap(), "{target}");
        assert_eq!(field(&answer, "Content-Length"), Some(len.to_string().as_str()));
        assert_eq!(field(&answer, "ETag"), Some(etag.as_str()));
        // Replaced by another file of the same length and age.
        let node = rig.world.files.nodes.get_mut(target).unwrap();
        node.data.reverse();
        node.inode += 1_000;
        assert_eq!(split(&rig.get(target, "")).1.as_bytes(), rig.world.files.content(target).unwrap());
        rig.world.files.nodes.remove(target);
        assert_eq!(status_of(&rig.get(target, "")), "404");
        rig.world.files.add_file(target, b"again");
        assert_eq!(split(&rig.get(target, "")).1, "again");
    }
    assert_eq!(rig.world.files.open_count(), 0);
}

#[test]
fn a_file_that_was_read_right_after_a_change_is_read_again() {
    let mut rig = Rig::new();
    let node = rig.world.files.nodes.get_mut("/hello.txt").unwrap();
    node.modified_ns = rig.world.wall_ns;
    assert_eq!(split(&rig.ask(HELLO)).1, "hello, world");
    // Within the same tick of the file system's clock.
    rig.world.files.nodes.get_mut("/hello.txt").unwrap().data = b"HELLO, WORLD".to_vec();
    assert_eq!(split(&rig.ask(HELLO)).1, "HELLO, WORLD");
    rig.advance_ms(10_000);
    assert_eq!(split(&rig.ask(HELLO)).1, "HELLO, WORLD");
}

#[test]
fn requests_that_come_together_share_an_answer() {
    let mut rig = Rig::new();
    rig.ask(HELLO);
    let before = rig.server.gauges().cache_misses;
    let conns: Vec<ConnId> = (0..50).map(|_| rig.connect()).collect();
    rig.world.files.hold = true;
    for conn in &conns {
        rig.send(*conn, HELLO);
    }
    rig.world.files.hold = false;
    for conn in conns {
        assert_eq!(split(&rig.text(conn)).1, "hello, world");
    }
    assert_eq!(rig.server.gauges().cache_misses, before + 1);
}

#[test]
fn a_change_by_another_server_counts_at_once() {
    let path = |text: &str| linerate_transport::VirtualPath::parse(text).unwrap();
    let timeouts = Timeouts { cache: core::time::Duration::from_secs(1), ..Timeouts::default() };
    for change in [crate::Change::Path(path("/hello.txt")), crate::Change::Tree(path("/"))] {
        let mut rig = Rig::with(Config { timeouts, ..config() });
        let old = rig.ask(HELLO);
        rig.world.files.add_file("/hello.txt", b"other");
        rig.server.handle_change(&crate::Change::Path(path("/hello")));
        assert_eq!(rig.ask(HELLO), old, "another name");
        rig.server.handle_change(&change);
        assert_eq!(split(&rig.ask(HELLO)).1, "other");
        // An answer that may be of before the change is not believed.
        rig.advance_ms(2_000);
        rig.world.files.hold = true;
        let conn = rig.connect();
        rig.send(conn, HELLO);
        rig.world.files.hold = false;
        let stat = rig.world.files.poll_done().unwrap();
        rig.world.files.add_file("/hello.txt", b"third");
        rig.server.handle_change(&change);
        rig.world.with(|ctx| rig.server.handle_file(ctx, stat));
        assert_eq!(split(&rig.text(conn)).1, "third");
    }
}

#[test]
fn a_file_that_nobody_asks_for_is_closed_and_opened_again() {
    let mut rig = Rig::new();
    let conn = rig.connect();
    rig.world.net.client_stall(conn, true);
    rig.send(conn, "GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
    // One that is being sent stays open.
    rig.advance_ms(30_000);
    assert_eq!(rig.world.files.open_count(), 1);
    rig.world.net.client_stall(conn, false);
    assert!(rig.received(conn).ends_with(&big()));
    for _ in 0..3 {
        rig.advance_ms(9_000);
        assert_eq!(status_of(&rig.get("/big", "")), "200");
        assert_eq!((rig.world.files.open_count(), rig.world.files.opened), (1, 1), "it is asked for");
    }
    // Removed, it would keep its room on the disk.
    rig.world.files.nodes.remove("/big");
    rig.advance_ms(20_000);
    assert_eq!(rig.world.files.open_count(), 0);
    rig.world.files.add_file("/big", &big());
    assert_eq!(status_of(&rig.get("/big", "")), "200");
    rig.world.net.client_reset(conn);
    rig.check_at_rest();
}

#[test]
fn a_file_that_another_server_has_changed_is_closed_at_once() {
    let path = |text: &str| linerate_transport::VirtualPath::parse(text).unwrap();
    for change in [crate::Change::Path(path("/big")), crate::Change::Tree(path("/"))] {
        let mut rig = Rig::new();
        rig.get("/big", "");
        rig.world.files.nodes.remove("/big");
        rig.server.handle_change(&crate::Change::Path(path("/hello.txt")));
        rig.run();
        assert_eq!(rig.world.files.open_count(), 1, "another name");
        rig.server.handle_change(&change);
        rig.run();
        assert_eq!(rig.world.files.open_count(), 0);
    }
}

#[test]
fn a_changed_file_is_seen_after_the_time_that_was_set() {
    let timeouts = Timeouts { cache: core::time::Duration::from_secs(1), ..Timeouts::default() };
    let mut rig = Rig::with(Config { timeouts, ..config() });
    let old = hello(&rig);
    assert_eq!(rig.ask(HELLO), old);
    rig.world.files.add_file("/hello.txt", b"HELLO, WORLD");
    rig.advance_ms(999);
    assert_eq!(rig.ask(HELLO), old);
    rig.advance_ms(1);
    assert_eq!(split(&rig.ask(HELLO)).1, "HELLO, WORLD");
    rig.world.files.nodes.remove("/hello.txt");
    rig.advance_ms(1_000);
    assert_eq!(status_of(&rig.ask(HELLO)), "404");
    rig.world.files.add_dir("/hello.txt");
    rig.advance_ms(1_000);
    assert_eq!(status_of(&rig.ask(HELLO)), "301");
}

#[test]
fn files_without_numbers_are_told_apart_by_name() {
    let mut rig = Rig::new();
    rig.world.files.add_file("/a", b"1234");
    rig.world.files.add_file("/b", b"5678");
    for node in rig.world.files.nodes.values_mut() {
        node.inode = 0;
    }
    let (a, b) = (rig.get("/a", ""), rig.get("/b", ""));
    assert_ne!(field(&a, "ETag").unwrap(), field(&b, "ETag").unwrap());
}

#[test]
fn an_unchanged_file_is_not_read_again() {
    let mut rig = Rig::new();
    rig.ask(HELLO);
    rig.world.files.opened = 0;
    for _ in 0..10 {
        assert_eq!(split(&rig.ask(HELLO)).1, "hello, world");
    }
    // It is asked for by its metadata alone.
    assert_eq!(rig.world.files.opened, 0);
    assert_eq!(rig.server.gauges().cache_memory, 12);
}

#[test]
fn a_file_that_never_changes_is_sent_without_an_operation() {
    let mut rig = Rig::new();
    rig.world.files.add_file("/big", &[b'a'; 100_000]);
    (rig.world.files.constant, rig.world.files.hold, rig.world.files.limit) = (true, true, 0);
    for _ in 0..3 {
        let answer = rig.ask(HELLO);
        assert_eq!(split(&answer).1, "hello, world");
        assert!(!answer.contains("W/"), "another tag later: {answer}");
        assert_eq!(split(&rig.get("/big", "")).1.len(), 100_000);
        assert_eq!(split(&rig.get("/big", "Range: bytes=99998-\r\n")).1.len(), 2);
    }
    assert_eq!((rig.world.files.opened, rig.server.gauges().cache_memory), (0, 0));
    // It holds no place of those that may be in use.
    assert_eq!(rig.server.gauges().open_files, 0);
}

#[test]
fn a_replaced_file_is_sent_to_the_end_by_those_who_began() {
    let mut rig = Rig::new();
    let slow = rig.connect();
    rig.world.net.client_stall(slow, true);
    rig.send(slow, BIG);
    rig.advance_ms(2_000);
    let other = [&big()[..], b"more"].concat();
    rig.world.files.add_file("/other", &other);
    let node = rig.world.files.nodes["/other"].clone();
    // Under its name is another file now; the open one lives on.
    let old = rig.world.files.nodes.remove("/big").unwrap();
    rig.world.files.nodes.insert(owned("/big"), node);
    let new = rig.connect();
    rig.send(new, BIG);
    assert!(rig.received(new).ends_with(&other));
    assert_eq!(rig.world.files.open_count(), 2);
    rig.world.files.nodes.insert(owned("/big"), old);
    rig.world.net.client_stall(slow, false);
    assert!(rig.received(slow).ends_with(&big()));
    assert_eq!(rig.world.files.open_count(), 1);
}

#[test]
fn a_file_that_shrinks_resets_the_connection() {
    let mut rig = Rig::new();
    let conn = rig.connect();
    rig.world.net.client_stall(conn, true);
    rig.send(conn, BIG);
    rig.world.files.nodes.get_mut("/big").unwrap().data.truncate(50);
    rig.world.net.client_stall(conn, false);
    rig.run();
    assert!(rig.world.net.released(conn).is_some());
    assert_eq!(rig.server.counters().files_changed, 1);
    assert_eq!(rig.server.counters().aborted, 1);
    rig.check_at_rest();
}

#[test]
fn a_client_that_vanishes_leaves_nothing_behind() {
    let mut rig = Rig::new();
    let requests = [
        "",
        "GET / HT",
        BIG,
        "GET /memory/1G HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /list/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /none HTTP/1.1\r\nHost: a\r\n\r\n",
        "PUT /memory/null HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc",
        "BREW / HTTP/1.1\r\nHost: a\r\n\r\n",
    ];
    for hold in [false, true] {
        for request in requests {
            rig.world.files.hold = hold;
            let conn = rig.connect();
            rig.world.net.client_stall(conn, true);
            rig.send(conn, request);
            rig.world.net.client_reset(conn);
            rig.run();
            rig.world.files.hold = false;
            rig.check_at_rest();
            rig.advance_ms(1_500);
        }
    }
}

#[test]
fn the_end_waits_for_what_is_under_way() {
    let mut rig = Rig::new();
    let idle = rig.connect();
    let sending = rig.connect();
    let resolving = rig.connect();
    let partial = rig.connect();
    rig.world.net.client_stall(sending, true);
    rig.send(sending, BIG);
    rig.world.files.hold = true;
    rig.send(resolving, HELLO);
    rig.send(partial, &HELLO[..20]);
    // One that waits to be accepted, with its request.
    let late = rig.world.connect("10.0.0.9:9".parse().unwrap(), PORT);
    rig.world.client_send(late, HELLO.as_bytes());
    rig.world.with(|ctx| rig.server.drain(ctx));
    assert!(!rig.world.net.listens(PORT));
    assert!(!rig.server.is_idle());
    rig.run();
    assert!(rig.world.net.client_sees_end(idle));
    rig.world.files.hold = false;
    for conn in [resolving, late] {
        let answer = rig.text(conn);
        assert_eq!((status_of(&answer), field(&answer, "Connection")), ("200", Some("close")));
        assert!(rig.world.net.client_sees_end(conn));
    }
    let answer = rig.exchange(partial, &HELLO[20..]);
    assert_eq!((status_of(&answer), field(&answer, "Connection")), ("200", Some("close")));
    rig.world.net.client_stall(sending, false);
    assert!(rig.received(sending).ends_with(&big()));
    assert!(rig.world.net.client_sees_end(sending));
    rig.advance_ms(2_000);
    rig.check_at_rest();
    assert!(rig.server.is_idle());
    assert_eq!(rig.world.files.open_count(), 0);
}

#[test]
fn idle_clients_do_not_hold_the_end_up() {
    let mut rig = Rig::new();
    let never_asked = rig.connect();
    let kept = rig.connect();
    let answer = rig.exchange(kept, HELLO);
    assert_eq!(status_of(&answer), "200");
    rig.world.with(|ctx| rig.server.drain(ctx));
    // No time passes, and neither client does anything.
    rig.run();
    assert!(rig.world.net.client_sees_end(never_asked) && rig.world.net.client_sees_end(kept));
    assert!(rig.server.is_idle());
}

#[test]
fn pipelined_requests_end_with_the_one_that_says_so() {
    let mut rig = Rig::new();
    let conn = rig.connect();
    rig.world.client_send(conn, HELLO.repeat(3).as_bytes());
    rig.world.with(|ctx| rig.server.drain(ctx));
    let answer = rig.text(conn);
    // The first answer is the last: it says that the connection is closed.
    assert_eq!((answer.matches("200 OK").count(), field(&answer, "Connection")), (1, Some("close")));
}

#[test]
fn new_settings_leave_connections_alone() {
    let mut rig = Rig::new();
    let conn = rig.connect();
    rig.world.net.client_stall(conn, true);
    rig.send(conn, BIG);
    rig.server.reload(Config { server_header: false, autoindex: false, ..config() });
    rig.run();
    rig.world.net.client_stall(conn, false);
    assert!(rig.received(conn).ends_with(&big()));
    let answer = rig.exchange(conn, HELLO);
    assert_eq!((status_of(&answer), field(&answer, "Server")), ("200", None));
    assert_eq!(status_of(&rig.exchange(conn, "GET /list/ HTTP/1.1\r\nHost: a\r\n\r\n")), "403");
    // Files are looked at anew.
    rig.world.files.add_file("/hello.txt", b"new");
    rig.server.reload(config());
    assert_eq!(split(&rig.exchange(conn, HELLO)).1, "new");
}

#[test]
fn listeners_follow_the_settings() {
    let mut rig = Rig::new();
    let on =
        |ports: &[u16]| ports.iter().map(|port| ListenAddr { ip: None, port: *port }).collect::<Vec<_>>();
    let waiting = rig.world.connect("10.0.0.9:9".parse().unwrap(), 80);
    rig.world.client_send(waiting, HELLO.as_bytes());
    rig.server.reload(Config { listen: on(&[8080, 8081]), ..config() });
    rig.run();
    assert_eq!(status_of(&rig.text(waiting)), "200");
    let listens: Vec<bool> = [80, 8080, 8081].iter().map(|port| rig.world.net.listens(*port)).collect();
    assert_eq!(listens, [false, true, true]);
    // An address that is taken: the others are served.
    let options = linerate_transport::ListenOptions::default();
    let taken = ListenAddr { ip: None, port: 9000 };
    linerate_transport::Transport::listen(&mut rig.world.net, linerate_transport::Owner(9), taken, &options)
        .unwrap();
    rig.server.reload(Config { listen: on(&[8081, 9000]), ..config() });
    rig.run();
    assert_eq!(rig.server.counters().listen_failures, 1);
    assert_eq!(rig.server.listeners().count(), 1);
    let error =
        rig.world.with(|ctx| Server::new(OWNER, Config { listen: on(&[7000, 9000]), ..config() }).start(ctx));
    let error = error.unwrap_err();
    assert_eq!((error.what.as_str(), error.why), ("http port 9000", ListenError::InUse));
    assert!(!rig.world.net.listens(7000));
}

#[test]
fn a_file_that_changes_while_it_is_read_is_read_again() {
    let mut rig = Rig::new();
    // As often as it is tried, the file becomes shorter between its metadata and its content.
    let change = |rig: &mut Rig, times: usize| {
        let conn = rig.connect();
        rig.world.files.hold = true;
        rig.send(conn, HELLO);
        rig.world.files.hold = false;
        for _ in 0..times {
            let opened = rig.world.files.poll_done().unwrap();
            rig.world.files.nodes.get_mut("/hello.txt").unwrap().data.pop();
            rig.world.with(|ctx| rig.server.handle_file(ctx, opened));
            let short = rig.world.files.poll_done().unwrap();
            rig.world.with(|ctx| rig.server.handle_file(ctx, short));
            // The file that was read is closed.
            let closed = rig.world.files.poll_done().unwrap();
            rig.world.with(|ctx| rig.server.handle_file(ctx, closed));
        }
        rig.text(conn)
    };
    assert_eq!(status_of(&change(&mut rig, 3)), "500");
    let answer = change(&mut rig, 2);
    assert_eq!((status_of(&answer), split(&answer).1), ("200", "hello, "));
    assert_eq!(rig.world.files.open_count(), 0);
}

#[test]
fn a_reset_in_the_middle_is_not_a_request() {
    let mut rig = Rig::new();
    let conn = rig.connect();
    rig.world.client_send(conn, HELLO.as_bytes());
    rig.world.net.client_reset(conn);
    rig.run();
    assert_eq!(rig.world.net.released(conn), Some(Released::Closed));
    rig.check_at_rest();
}

/// The bytes of a line of the access log in JSON, and whether it says that the response was cut.
fn logged() -> Vec<(u64, bool)> {
    let field =
        |line: &str| line.split_once("\"bytes\":").and_then(|(_, rest)| rest.split_once(',')?.0.parse().ok());
    let lines = logged::take();
    lines.iter().filter_map(|line| Some((field(line)?, line.contains("\"cut\":true")))).collect()
}

#[test]
fn of_a_file_that_is_cut_what_the_client_has_is_logged() {
    logged::keep();
    let mut rig = Rig::with(Config { access_log: Some(LogFormat::Json), ..config() });
    let len = big().len() as u64;
    // The client takes nothing of the second one and resets, the file becomes shorter, and the end comes.
    type End = fn(&mut Rig, ConnId);
    let ends: [(&str, End); 3] = [
        ("reset", |rig, conn| rig.world.net.client_reset(conn)),
        ("shorter", |rig, conn| {
            rig.world.files.nodes.get_mut("/big").unwrap().data.truncate(50);
            rig.world.net.client_stall(conn, false);
        }),
        ("end", |rig, _| rig.world.with(|ctx| rig.server.cut_off(ctx))),
    ];
    for (name, end) in ends {
        let mut before = rig.server.counters().content_sent;
        rig.world.files.nodes.get_mut("/big").unwrap().data = big();
        let conn = rig.connect();
        rig.send(conn, BIG);
        assert_eq!(logged(), [(len, false)], "{name}");
        before += len;
        rig.world.net.client_stall(conn, true);
        rig.send(conn, BIG.repeat(2));
        end(&mut rig, conn);
        rig.run();
        assert_eq!(logged(), [(0, true), (0, true)], "{name}");
        assert_eq!(rig.server.counters().content_sent, before, "{name}");
        rig.check_at_rest();
    }
}

#[test]
fn of_a_response_that_is_cut_what_went_out_is_counted() {
    let mut rig = Rig::new();
    let ask = "GET /memory/1G HTTP/1.1\r\nHost: a\r\n\r\n";
    let conn = rig.connect();
    rig.world.net.client_stall(conn, true);
    rig.send(conn, ask);
    rig.world.net.client_reset(conn);
    rig.run();
    assert_eq!(rig.server.counters().aborted, 1);
    // As much as the client had acknowledged.
    assert_eq!(rig.server.counters().content_sent, 0);
    // One that is given up: the client has taken nothing.
    let before = rig.server.counters().content_sent;
    let conn = rig.connect();
    rig.world.net.client_stall(conn, true);
    rig.send(conn, ask);
    rig.advance_ms(60_000);
    assert_eq!(rig.world.net.released(conn), Some(Released::Aborted));
    assert_eq!(rig.server.counters().content_sent, before);
    rig.check_at_rest();
}

/// Files of which a client has asked for several at once, without waiting for the first.
#[test]
fn files_follow_each_other_without_waiting_until_one_has_arrived() {
    const COUNT: usize = 20;
    let end = "GET /hello.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let cut = "POST /hello.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc";
    let mut rig = Rig::new();
    // What comes behind them, whether the client ends its side, and whether the connection is over then.
    for (tail, finishes, is_over) in [
        ("", false, false),
        ("", true, true),
        (end, false, true),
        (cut, true, true),
        ("nonsense\r\n\r\n", false, true),
    ] {
        let conn = rig.connect();
        let one = rig.exchange(conn, BIG);
        rig.world.net.client_stall(conn, true);
        let answered = rig.server.counters().responses_2xx;
        rig.send(conn, BIG.repeat(COUNT) + tail);
        if finishes {
            rig.world.net.client_finish(conn);
            rig.run();
        }
        // Nothing has left, and yet more than the first one is on its way; how many is limited.
        let begun = rig.server.counters().responses_2xx - answered;
        assert!((2..COUNT as u64).contains(&begun), "{begun}");
        rig.world.net.client_stall(conn, false);
        let text = rig.text(conn);
        let (files, rest) = text.split_at(one.len() * COUNT);
        assert!(files == one.repeat(COUNT), "{tail:?}");
        let expected = match tail {
            "" => None,
            _ if tail == cut => None,
            _ if tail == end => Some("200"),
            _ => Some("400"),
        };
        assert_eq!((!rest.is_empty()).then(|| status_of(rest)), expected, "{tail:?}");
        assert_eq!(rig.world.net.client_sees_end(conn), is_over, "{tail:?}");
        if !is_over {
            assert_eq!(status_of(&rig.exchange(conn, HELLO)), "200");
        }
        rig.world.net.client_reset(conn);
        rig.run();
    }
    rig.check_at_rest();
}

#[test]
fn a_client_that_breaks_off_leaves_no_file_open() {
    let mut rig = Rig::new();
    let conn = rig.connect();
    rig.world.net.client_stall(conn, true);
    rig.send(conn, BIG.repeat(20));
    rig.world.net.client_reset(conn);
    rig.check_at_rest();
    // One that takes nothing is given up, and nothing went out of what was on its way.
    let before = (rig.server.counters().content_sent, rig.server.counters().aborted);
    let conn = rig.connect();
    rig.world.net.client_stall(conn, true);
    rig.send(conn, BIG.repeat(20));
    rig.advance_ms(120_000);
    assert_eq!(rig.world.net.released(conn), Some(Released::Aborted));
    let after = (rig.server.counters().content_sent, rig.server.counters().aborted);
    assert_eq!(after, (before.0, before.1 + 9));
    rig.check_at_rest();
}
