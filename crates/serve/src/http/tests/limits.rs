//! Deadlines and bounds: what a peer can make the server hold, and for how long.

use super::*;
use crate::testing::net::Released;
use core::time::Duration;

const BIG: &str = "GET /big HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn a_line_without_version_is_refused_at_once() {
    for (line, status) in [("GET /hello.txt\r\n", "400"), ("GET / HTTP/0.9\r\n", "505")] {
        let mut rig = Rig::new();
        let conn = rig.connect();
        for piece in [&line[..3], &line[3..]] {
            rig.send(conn, piece);
        }
        let answer = rig.text(conn);
        assert_eq!((status_of(&answer), field(&answer, "Connection")), (status, Some("close")), "{line:?}");
    }
    let mut rig = Rig::new();
    let conn = rig.connect();
    rig.send(conn, "GET /hello.txt HTTP/1.1\r\n");
    assert_eq!(status_of(&rig.exchange(conn, "Host: a\r\n\r\n")), "200");
}

#[test]
fn a_head_must_come_in_ten_seconds_however_it_trickles() {
    let mut rig = Rig::new();
    let conn = rig.connect();
    rig.advance_ms(5_000);
    for byte in HELLO.bytes().take(10) {
        rig.send(conn, [byte]);
        rig.advance_ms(999);
    }
    assert_eq!(rig.text(conn), "");
    rig.advance_ms(10);
    let answer = rig.text(conn);
    assert_eq!((status_of(&answer), field(&answer, "Connection")), ("408", Some("close")));
    assert!(rig.world.net.client_sees_end(conn));
    // The client keeps sending; two seconds later it is forgotten.
    rig.send(conn, "more");
    rig.advance_ms(1_999);
    assert_eq!(rig.world.net.released(conn), None);
    rig.advance_ms(1);
    assert_eq!(rig.world.net.released(conn), Some(Released::Closed));
    assert_eq!(rig.server.counters().head_timeouts, 1);
    rig.check_at_rest();
}

#[test]
fn an_idle_connection_is_closed_after_a_minute() {
    let mut rig = Rig::new();
    let silent = rig.connect();
    let used = rig.connect();
    rig.advance_ms(30_000);
    assert_eq!(status_of(&rig.exchange(used, HELLO)), "200");
    rig.advance_ms(29_999);
    assert_eq!(rig.world.net.released(silent), None);
    rig.advance_ms(1);
    assert_eq!(rig.world.net.released(silent), Some(Released::Closed));
    assert_eq!(rig.world.net.released(used), None);
    rig.advance_ms(30_000);
    assert_eq!(rig.world.net.released(used), Some(Released::Closed));
    assert_eq!(rig.server.counters().idle_timeouts, 2);
    rig.check_at_rest();
}

#[test]
fn a_peer_that_takes_nothing_is_reset_after_a_minute() {
    let mut rig = Rig::new();
    for request in [BIG, "GET /memory/1G HTTP/1.1\r\nHost: a\r\n\r\n"] {
        let conn = rig.connect();
        rig.world.net.client_stall(conn, true);
        rig.send(conn, request);
        rig.advance_ms(59_999);
        assert_eq!(rig.world.net.released(conn), None, "{request}");
        rig.advance_ms(1);
        assert_eq!(rig.world.net.released(conn), Some(Released::Aborted), "{request}");
    }
    assert_eq!(rig.server.counters().progress_timeouts, 2);
    rig.check_at_rest();
}

#[test]
fn a_peer_that_takes_little_but_enough_is_served_to_the_end() {
    let mut rig = Rig::new();
    let conn = rig.connect();
    rig.world.net.client_stall(conn, true);
    rig.send(conn, "GET /memory/1M HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut received = 0;
    // A bufferful every 50 seconds.
    for _ in 0..5 {
        rig.advance_ms(50_000);
        rig.world.net.client_stall(conn, false);
        received += rig.world.received(conn).len();
        rig.world.net.client_stall(conn, true);
        rig.run();
    }
    assert!(received > 1 << 20, "{received}");
    assert_eq!(rig.server.counters().progress_timeouts, 0);
}

#[test]
fn a_body_must_make_progress() {
    let mut rig = Rig::new();
    let conn = rig.connect();
    rig.send(conn, "PUT /memory/null HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
    for _ in 0..3 {
        rig.advance_ms(59_000);
        rig.send(conn, [0; 4_096]);
    }
    assert_eq!(rig.text(conn), "");
    for _ in 0..10 {
        rig.advance_ms(10_000);
        rig.send(conn, [0; 10]);
    }
    let answer = rig.text(conn);
    assert_eq!((status_of(&answer), field(&answer, "Connection")), ("408", Some("close")));
    assert_eq!(rig.server.counters().progress_timeouts, 1);
    rig.advance_ms(2_000);
    rig.check_at_rest();
}

#[test]
fn a_slow_disk_is_waited_for_half_a_minute() {
    let mut rig = Rig::new();
    rig.world.files.hold = true;
    let file = rig.connect();
    let listing = rig.connect();
    rig.send(file, HELLO);
    rig.send(listing, "GET /list/ HTTP/1.1\r\nHost: a\r\n\r\n");
    rig.world.files.hold = false;
    rig.run();
    assert_eq!(status_of(&rig.text(file)), "200");
    assert_eq!(status_of(&rig.text(listing)), "200");
    rig.world.files.hold = true;
    rig.advance_ms(2_000);
    rig.send(file, HELLO);
    rig.send(listing, "GET /list/ HTTP/1.1\r\nHost: a\r\n\r\n");
    rig.advance_ms(29_999);
    assert_eq!((rig.text(file), rig.text(listing)), (String::new(), String::new()));
    rig.advance_ms(1);
    for conn in [file, listing] {
        assert_eq!(rig.text(conn), page_response_at("503 Service Unavailable", rig.world.wall_ns));
    }
    assert_eq!(rig.server.counters().file_timeouts, 2);
    // Late answers do no harm.
    rig.world.files.hold = false;
    rig.advance_ms(2_000);
    rig.check_at_rest();
}

/// A last response of that second.
fn page_response_at(status: &str, wall_ns: i64) -> String {
    let date = date::format(wall_ns / 1_000_000_000);
    let response = page_response(status, "Connection: close\r\nRetry-After: 1\r\n");
    response.replace(DATE, core::str::from_utf8(&date).unwrap())
}

#[test]
fn a_busy_file_system_is_asked_again() {
    let mut rig = Rig::new();
    rig.world.files.limit = 1;
    rig.world.files.hold = true;
    let conns: Vec<_> = (0..5).map(|_| rig.connect()).collect();
    for (conn, target) in conns.iter().zip(["/hello.txt", "/big", "/sub/", "/list/", "/none"]) {
        rig.send(*conn, format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
    }
    rig.world.files.hold = false;
    rig.advance_ms(100);
    for (conn, status) in conns.iter().zip(["200", "200", "200", "200", "404"]) {
        assert_eq!(status_of(&rig.text(*conn)), status);
    }
}

#[test]
fn too_many_connections_are_told_so() {
    let limits = Limits { connections: 3, connections_per_address: 2, ..Limits::default() };
    let mut rig = Rig::with(Config { limits, ..config() });
    let busy = |rig: &mut Rig, remote: &str| {
        let conn = rig.connect_from(remote);
        rig.world.net.client_stall(conn, true);
        rig.send(conn, BIG);
        conn
    };
    let first = busy(&mut rig, "10.0.0.1:1");
    busy(&mut rig, "10.0.0.1:2");
    let refused = format!(
        "{}Connection: close\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n",
        head("503 Service Unavailable")
    );
    let third = rig.connect_from("10.0.0.1:3");
    assert_eq!(rig.text(third), refused);
    assert_eq!(rig.world.net.released(third), Some(Released::Closed));
    busy(&mut rig, "10.0.0.2:1");
    let fifth = rig.connect_from("10.0.0.3:1");
    assert_eq!(rig.text(fifth), refused);
    rig.world.net.client_reset(first);
    rig.run();
    let again = rig.connect_from("10.0.0.1:4");
    assert_eq!(status_of(&rig.exchange(again, HELLO)), "200");
    let counters = rig.server.counters();
    assert_eq!((counters.refused_address, counters.refused_total, counters.accepted), (1, 1, 6));
    assert_eq!(counters.gave_way, 0);
}

#[test]
fn who_waits_longest_gives_way_to_newcomers() {
    let limits = Limits { connections: 10, connections_per_address: 6, ..Limits::default() };
    let mut rig = Rig::with(Config { limits, ..config() });
    let of_crowd: Vec<_> = (0..6).map(|n| rig.connect_from(&format!("10.0.0.1:{n}"))).collect();
    // One more of the same address takes the place of its first.
    rig.advance_ms(10);
    let seventh = rig.connect_from("10.0.0.1:7");
    assert_eq!(rig.world.net.released(of_crowd[0]), Some(Released::Closed));
    assert_eq!(status_of(&rig.exchange(seventh, HELLO)), "200");
    let others: Vec<_> = (2..5).map(|n| rig.connect_from(&format!("10.0.0.{n}:1"))).collect();
    // Who asks for something waits anew; who has sent half a head does not.
    assert_eq!(status_of(&rig.exchange(of_crowd[1], HELLO)), "200");
    rig.send(of_crowd[2], "GET / HT");
    rig.advance_ms(10);
    for n in [2, 3, 4, 5] {
        let newcomer = rig.connect_from(&format!("10.0.1.{n}:1"));
        assert_eq!(status_of(&rig.exchange(newcomer, HELLO)), "200", "{n}");
        assert_eq!(rig.world.net.released(newcomer), None);
    }
    for conn in [of_crowd[3], of_crowd[4], of_crowd[5], seventh] {
        assert_eq!(rig.world.net.released(conn), Some(Released::Closed));
        assert_eq!(rig.text(conn), "", "FIN and nothing else");
    }
    let kept = [of_crowd[1], of_crowd[2], others[0], others[1], others[2]];
    assert!(kept.iter().all(|conn| rig.world.net.released(*conn).is_none()));
    assert_eq!(rig.server.counters().gave_way, 5);
}

#[test]
fn slow_heads_and_bodies_give_way_with_a_word() {
    let limits = Limits { connections: 10, connections_per_address: 10, ..Limits::default() };
    let mut rig = Rig::with(Config { limits, ..config() });
    let fast = rig.connect_from("10.0.0.9:1");
    rig.send(fast, "PUT /memory/null HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n");
    let heads: Vec<_> = (0..4).map(|n| rig.connect_from(&format!("10.0.0.1:{n}"))).collect();
    let bodies: Vec<_> = (0..4).map(|n| rig.connect_from(&format!("10.0.0.2:{n}"))).collect();
    heads.iter().for_each(|conn| rig.send(*conn, "GET / HTTP/1.1\r\n"));
    let body = "PUT /memory/null HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n";
    bodies.iter().for_each(|conn| rig.send(*conn, body));
    for _ in 0..20 {
        rig.advance_ms(100);
        rig.send(fast, [0; 4_096]);
        heads.iter().for_each(|conn| rig.send(*conn, "X"));
        bodies.iter().for_each(|conn| rig.send(*conn, "X"));
    }
    for n in 0..8 {
        let newcomer = rig.connect_from(&format!("10.0.1.{n}:1"));
        assert_eq!(status_of(&rig.exchange(newcomer, HELLO)), "200", "{n}");
        rig.send(newcomer, body);
        rig.advance_ms(1);
    }
    for conn in heads.iter().chain(&bodies) {
        assert_eq!(status_of(&rig.text(*conn)), "408");
        assert_eq!(rig.world.net.released(*conn), Some(Released::Closed));
    }
    assert_eq!(rig.world.net.released(fast), None, "what moves stays");
    assert_eq!(rig.server.counters().gave_way, 8);
}

#[test]
fn unfinished_heads_share_a_bound() {
    let limits = Limits { head_memory: 20_000, ..Limits::default() };
    let mut rig = Rig::with(Config { limits, ..config() });
    let part = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "a".repeat(6_000));
    let conns: Vec<_> = (0..8).map(|_| rig.connect()).collect();
    for conn in &conns {
        rig.send(*conn, &part);
    }
    assert!(rig.server.gauges().head_memory <= 20_000);
    let refused = conns.iter().filter(|conn| status_of(&rig.text(**conn)) == "503").count();
    assert!((5..8).contains(&refused), "{refused}");
    assert_eq!(rig.server.counters().head_memory_refused, refused as u64);
}

#[test]
fn heads_that_wait_for_a_slow_disk_share_it_too() {
    let limits = Limits { head_memory: 20_000, ..Limits::default() };
    let mut rig = Rig::with(Config { limits, ..config() });
    rig.world.files.hold = true;
    let conns: Vec<_> = (0..8).map(|_| rig.connect()).collect();
    for conn in &conns {
        rig.send(*conn, format!("GET /hello.txt HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "a".repeat(6_000)));
    }
    assert!(rig.server.gauges().head_memory <= 20_000);
    rig.world.files.hold = false;
    rig.run();
    let answers: Vec<String> = conns.iter().map(|conn| owned(status_of(&rig.text(*conn)))).collect();
    assert!(answers.iter().all(|status| status == "200" || status == "503"), "{answers:?}");
    let served = answers.iter().filter(|status| *status == "200").count();
    assert!((1..4).contains(&served), "{answers:?}");
    assert_eq!(rig.server.counters().head_memory_refused, 8 - served as u64);
}

#[test]
fn requests_wait_for_their_turn_to_open_a_file() {
    let limits = Limits { open_files: 1, ..Limits::default() };
    let mut rig = Rig::with(Config { limits, ..config() });
    for i in 0..5 {
        rig.world.files.add_file(&format!("/big{i}"), &big());
    }
    let conns: Vec<_> = (0..5).map(|_| rig.connect()).collect();
    for (i, conn) in conns.iter().enumerate() {
        rig.world.net.client_stall(*conn, true);
        rig.send(*conn, format!("GET /big{i} HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert_eq!(rig.world.files.open_count(), 1);
    }
    for conn in conns {
        rig.world.net.client_stall(conn, false);
        assert!(rig.received(conn).ends_with(&big()));
        assert_eq!(rig.world.files.open_count(), 1);
    }
}

#[test]
fn files_that_nobody_sends_give_up_their_descriptors() {
    let mut rig = Rig::new();
    rig.world.files.descriptors = 3;
    for i in 0..12 {
        rig.world.files.add_file(&format!("/big{i}"), &big());
        assert_eq!(status_of(&rig.get(&format!("/big{i}"), "")), "200", "{i}");
    }
    // Where all are being sent, there is none.
    let conns: Vec<_> = (0..4).map(|_| rig.connect()).collect();
    for (i, conn) in conns.iter().enumerate() {
        rig.world.net.client_stall(*conn, true);
        rig.send(*conn, format!("GET /big{i} HTTP/1.1\r\nHost: a\r\n\r\n"));
    }
    for (i, conn) in conns.into_iter().enumerate() {
        rig.world.net.client_stall(conn, false);
        let expected = if i < 3 { "200" } else { "503" };
        assert_eq!(status_of(&rig.text(conn)), expected, "{i}");
    }
}

#[test]
fn the_cache_stays_within_its_bounds() {
    let limits = Limits { cache_entries: 8, cache_memory: 5_000, cached_file: 2_000, ..Limits::default() };
    let mut rig = Rig::with(Config { limits, ..config() });
    for i in 0..40 {
        rig.world.files.add_file(&format!("/f{i}"), &[b'a' + i % 26; 1_500]);
    }
    for round in 0..3 {
        for i in 0..40u8 {
            let answer =
                rig.get(&format!("/f{}", u32::from(i) * 7 % 40), "Accept-Encoding: gzip, br, zstd\r\n");
            assert_eq!((status_of(&answer), split(&answer).1.len()), ("200", 1_500), "{round} {i}");
            let gauges = rig.server.gauges();
            assert!(gauges.cache_entries <= 8 && gauges.cache_memory <= 5_000, "{gauges:?}");
        }
    }
    // All at once, with room for one at a time.
    let conns: Vec<_> = (0..40).map(|_| rig.connect()).collect();
    rig.advance_ms(2_000);
    rig.world.files.hold = true;
    for (i, conn) in conns.iter().enumerate() {
        rig.send(*conn, format!("GET /f{i} HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip, br\r\n\r\n"));
    }
    rig.world.files.hold = false;
    rig.run();
    for (i, conn) in conns.iter().enumerate() {
        let expected = std::vec![b'a' + (i as u8) % 26; 1_500];
        assert!(rig.received(*conn).ends_with(&expected), "{i}");
    }
}

#[test]
fn listings_at_once_are_bounded() {
    let limits = Limits { listings: 2, ..Limits::default() };
    // That it is a directory is still known.
    let timeouts = Timeouts { cache: Duration::from_secs(1), ..Timeouts::default() };
    let mut rig = Rig::with(Config { limits, timeouts, ..config() });
    rig.get("/list/", "");
    rig.world.files.hold = true;
    let conns: Vec<_> = (0..3).map(|_| rig.connect()).collect();
    for conn in &conns {
        rig.send(*conn, "GET /list/ HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    assert_eq!(status_of(&rig.text(conns[2])), "503");
    // One gives up: its place is free when the directory is closed.
    rig.world.net.client_reset(conns[0]);
    rig.run();
    rig.world.files.hold = false;
    assert_eq!(status_of(&rig.text(conns[1])), "200");
    assert_eq!(status_of(&rig.exchange(conns[2], "GET /list/ HTTP/1.1\r\nHost: a\r\n\r\n")), "200");
    assert_eq!((rig.server.counters().listings_refused, rig.server.gauges().listings), (1, 0));
}

#[test]
fn a_peer_that_keeps_sending_after_the_end_is_cut() {
    let mut rig = Rig::new();
    let conn = rig.connect();
    rig.send(conn, "BREW / HTTP/1.1\r\nHost: a\r\n\r\n");
    for _ in 0..4 {
        assert_eq!(rig.world.net.released(conn), None);
        rig.send(conn, std::vec![0; 65_536]);
    }
    assert_eq!(rig.world.net.released(conn), Some(Released::Closed));
    rig.check_at_rest();
}

#[test]
fn deadlines_are_settings() {
    let timeouts =
        Timeouts { idle: Duration::from_secs(1), head: Duration::from_millis(100), ..Timeouts::default() };
    let mut rig = Rig::with(Config { timeouts, ..config() });
    let idle = rig.connect();
    let slow = rig.connect();
    rig.send(slow, "GET");
    rig.advance_ms(100);
    assert_eq!(status_of(&rig.text(slow)), "408");
    rig.advance_ms(900);
    assert_eq!(rig.world.net.released(idle), Some(Released::Closed));
}
