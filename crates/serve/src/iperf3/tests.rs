//! Whole tests against a scripted client.

use super::protocol::framed;
use super::{Config, Server};
use crate::Service as _;
use crate::testing::{OWNER, World};
use alloc::format;
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::time::Duration;
use linerate_transport::{CloseReason, ConnId, ConnState, Transport as _};
use proptest::prelude::*;
use serde_json::Value;

const CLIENT: &str = "192.168.1.1:40000";

fn world() -> (World, Server) {
    let mut world = World::new();
    let mut server = Server::new(Config { owner: OWNER, ..Config::default() });
    world.start(&mut server);
    (world, server)
}

fn cookie(letter: u8) -> Vec<u8> {
    let mut cookie = alloc::vec![letter; 36];
    cookie.push(0);
    cookie
}

fn open(world: &mut World, server: &mut Server, first: &[u8]) -> ConnId {
    let conn = world.connect(CLIENT.parse().unwrap(), 5201);
    world.client_send(conn, first);
    world.run(server);
    conn
}

/// A control connection whose parameters were taken, and the answer to them.
fn negotiate(world: &mut World, server: &mut Server, letter: u8, params: &str) -> (ConnId, Vec<u8>) {
    let control = open(world, server, &cookie(letter));
    assert_eq!(world.received(control), [9]);
    world.client_send(control, &framed(params.as_bytes()));
    world.run(server);
    let answer = world.received(control);
    (control, answer)
}

fn results(bytes: &[u8]) -> Value {
    let (len, rest) = bytes.split_first_chunk::<4>().unwrap();
    let len = u32::from_be_bytes(*len) as usize;
    assert_eq!(rest[len..], [14], "DISPLAY_RESULTS follows the results");
    serde_json::from_slice(&rest[..len]).unwrap()
}

/// Says goodbye after the results; nothing may be left.
fn finish(world: &mut World, server: &mut Server, control: ConnId) -> Value {
    world.client_send(control, &framed(b"{}"));
    world.run(server);
    let json = results(&world.received(control));
    world.client_send(control, &[16]);
    world.run(server);
    assert_eq!((server.tests(), world.net.held()), (0, 0));
    assert_eq!(server.poll_timeout(), None, "no deadline is left behind");
    json
}

#[test]
fn a_forward_test_counts_what_it_received() {
    let (mut world, mut server) = world();
    let (control, answer) =
        negotiate(&mut world, &mut server, b'a', r#"{"tcp":true,"time":10,"parallel":2,"len":1000}"#);
    assert_eq!(answer, [10]);
    let first = open(&mut world, &mut server, &cookie(b'a'));
    assert!(world.received(control).is_empty(), "not before all streams are there");
    let second = open(&mut world, &mut server, &[cookie(b'a'), alloc::vec![1; 5000]].concat());
    assert_eq!(world.received(control), [1, 2]);
    world.client_send(first, &[0; 10_000]);
    world.advance(&mut server, Duration::from_millis(2500));
    world.client_send(second, &[0; 7]);
    world.client_send(control, &[4]);
    world.run(&mut server);
    assert_eq!(world.received(control), [13]);
    let json = finish(&mut world, &mut server, control);
    assert_eq!(json["streams"][0]["id"], 1);
    assert_eq!(json["streams"][1]["id"], 3);
    assert_eq!(json["streams"][0]["bytes"], 10_000);
    assert_eq!(json["streams"][1]["bytes"], 5_007);
    assert_eq!(json["sender_has_retransmits"], -1);
    assert_eq!(json["streams"][0]["end_time"], 2.5);
    assert_eq!(server.counters().completed, 1);
}

#[test]
fn a_reverse_test_sends_at_its_rate() {
    let (mut world, mut server) = world();
    let params = r#"{"tcp":true,"time":1,"reverse":true,"len":1250,"bandwidth":10000000}"#;
    let (control, _) = negotiate(&mut world, &mut server, b'b', params);
    let stream = open(&mut world, &mut server, &cookie(b'b'));
    world.advance(&mut server, Duration::from_secs(1));
    let got = world.received(stream).len();
    assert!((1_240_000..1_265_000).contains(&got), "{got}");
    world.client_send(control, &[4]);
    world.run(&mut server);
    assert_eq!(world.received(control), [1, 2, 13]);
    let json = finish(&mut world, &mut server, control);
    assert_eq!(json["sender_has_retransmits"], 1);
    assert_eq!(json["congestion_used"], "cubic");
    assert!(json["streams"][0]["bytes"].as_u64().unwrap() >= got as u64);
}

#[test]
fn a_test_of_known_length_waits_for_its_last_bytes() {
    let (mut world, mut server) = world();
    let (control, _) = negotiate(&mut world, &mut server, b'c', r#"{"tcp":true,"num":20000}"#);
    let stream = open(&mut world, &mut server, &cookie(b'c'));
    world.client_send(stream, &[0; 15_000]);
    world.client_send(control, &[4]);
    world.run(&mut server);
    assert_eq!(world.received(control), [1, 2]);
    world.client_send(stream, &[0; 5_000]);
    world.advance(&mut server, Duration::from_millis(210));
    world.client_send(stream, &[0; 1_000]);
    world.advance(&mut server, Duration::from_millis(210));
    assert!(world.received(control).is_empty(), "a client may send a block more than it announced");
    world.advance(&mut server, Duration::from_millis(50));
    assert_eq!(world.received(control), [13]);
    assert_eq!(finish(&mut world, &mut server, control)["streams"][0]["bytes"], 21_000);
}

#[test]
fn a_reverse_test_of_known_length_sends_just_that() {
    for (length, total) in [(r#""num":3000000"#, 3_000_000), (r#""blockcount":25"#, 25 * 4096)] {
        for direction in [r#""reverse":true"#, r#""reverse":true,"parallel":3"#, r#""bidirectional":true"#] {
            let (mut world, mut server) = world();
            let params = format!(r#"{{"tcp":true,{direction},"len":4096,{length}}}"#);
            let (control, _) = negotiate(&mut world, &mut server, b'n', &params);
            let streams = if direction.contains("parallel") { 3 } else { 1 };
            let streams = if direction.contains("bidirectional") { 2 } else { streams };
            let conns: Vec<ConnId> =
                (0..streams).map(|_| open(&mut world, &mut server, &cookie(b'n'))).collect();
            let mut got = alloc::vec![0; conns.len()];
            for _ in 0..2_000 {
                world.advance(&mut server, Duration::from_millis(1));
                for (sum, conn) in got.iter_mut().zip(&conns) {
                    *sum += world.received(*conn).len();
                }
            }
            assert_eq!(got.iter().sum::<usize>(), total, "{params}");
            // Each has its share, to a block.
            if direction.contains("parallel") {
                let spread = got.iter().max().unwrap() - got.iter().min().unwrap();
                assert!(spread <= 4096 + 1, "{got:?}");
            }
            world.client_send(control, &[4]);
            world.advance(&mut server, Duration::from_secs(1));
            world.received(control);
            let json = finish(&mut world, &mut server, control);
            let sum: u64 =
                json["streams"].as_array().unwrap().iter().map(|s| s["bytes"].as_u64().unwrap()).sum();
            assert_eq!(sum, total as u64, "{params}");
        }
    }
}

#[test]
fn a_length_does_not_end_what_a_client_may_not_count() {
    // A client waits for all datagrams of the length, and some get lost; with an omit time it counts less than was sent.
    for params in [
        r#"{"udp":true,"reverse":true,"len":1000,"num":5000,"bandwidth":8000000}"#,
        r#"{"tcp":true,"reverse":true,"len":1000,"num":5000,"omit":1,"bandwidth":8000000}"#,
    ] {
        let (mut world, mut server) = world();
        negotiate(&mut world, &mut server, b'o', params);
        let sent = if params.contains("udp") {
            let socket = world.net.udp_on(5201).unwrap();
            world.net.client_datagram(socket, "192.168.1.1:5555".parse().unwrap(), b"9876");
            world.advance(&mut server, Duration::from_millis(500));
            (world.net.sent.len() - 1) * 1000
        } else {
            let conn = open(&mut world, &mut server, &cookie(b'o'));
            world.advance(&mut server, Duration::from_millis(500));
            world.received(conn).len()
        };
        assert!(sent >= 490_000, "{params}: {sent}");
    }
}

#[test]
fn lost_last_bytes_do_not_hold_a_test_for_ever() {
    let (mut world, mut server) = world();
    let (control, _) = negotiate(&mut world, &mut server, b'c', r#"{"tcp":true,"num":20000}"#);
    open(&mut world, &mut server, &cookie(b'c'));
    world.client_send(control, &[4]);
    world.advance(&mut server, Duration::from_millis(600));
    assert_eq!(world.received(control), [1, 2, 13]);
}

/// Whatever was reported of the omit time: the first interval after it is like the others.
#[test]
fn the_first_interval_after_the_omit_time_has_what_was_sent_in_it() {
    let (mut world, mut server) = world();
    let params = r#"{"tcp":true,"reverse":true,"time":5,"omit":3,"len":1250,"bandwidth":10000000,"get_server_output":1}"#;
    let (control, _) = negotiate(&mut world, &mut server, b'i', params);
    let stream = open(&mut world, &mut server, &cookie(b'i'));
    // A loop that is called a little late each time.
    for _ in 0..6_000 {
        world.now += Duration::from_micros(1_003);
        world.run(&mut server);
    }
    world.received(stream);
    world.client_send(control, &[4]);
    world.run(&mut server);
    world.received(control);
    let json = finish(&mut world, &mut server, control);
    let report = json["server_output_text"].as_str().unwrap();
    let first = report.lines().find(|line| line.starts_with("[SUM]   0.00-1.0")).expect(report);
    let rate: f64 = first.split("MBytes").nth(1).unwrap().split_whitespace().next().unwrap().parse().unwrap();
    assert!((9.5..10.5).contains(&rate), "{report}");
}

#[test]
fn omitted_time_does_not_count() {
    let (mut world, mut server) = world();
    let (control, _) = negotiate(&mut world, &mut server, b'd', r#"{"tcp":true,"time":2,"omit":1}"#);
    let stream = open(&mut world, &mut server, &cookie(b'd'));
    world.client_send(stream, &[0; 9_999]);
    world.advance(&mut server, Duration::from_millis(1001));
    world.client_send(stream, &[0; 100]);
    world.advance(&mut server, Duration::from_secs(2));
    world.client_send(control, &[4]);
    world.run(&mut server);
    world.received(control);
    assert_eq!(finish(&mut world, &mut server, control)["streams"][0]["bytes"], 100);
}

#[test]
fn data_that_flows_keeps_a_test_without_a_known_end() {
    // Of the first one less comes in the minute in which the omit time ends than in the one before.
    for params in [r#"{"tcp":true,"num":1000000000,"omit":70}"#, r#"{"tcp":true,"time":0,"num":0}"#] {
        let (mut world, mut server) = world();
        let (control, _) = negotiate(&mut world, &mut server, b'd', params);
        let stream = open(&mut world, &mut server, &cookie(b'd'));
        for second in 0..200 {
            world.client_send(stream, &[0; 1_000]);
            world.advance(&mut server, Duration::from_secs(1));
            assert_eq!(server.tests(), 1, "{params}: {second} s");
        }
        assert_eq!(world.received(control), [1, 2]);
        world.advance(&mut server, Duration::from_secs(121));
        assert_eq!((server.tests(), server.counters().timed_out), (0, 1), "{params}");
    }
}

#[test]
fn both_directions_at_once() {
    let (mut world, mut server) = world();
    let params =
        r#"{"tcp":true,"time":1,"bidirectional":true,"len":1250,"bandwidth":1000000,"get_server_output":1}"#;
    let (control, _) = negotiate(&mut world, &mut server, b'e', params);
    let up = open(&mut world, &mut server, &cookie(b'e'));
    let down = open(&mut world, &mut server, &cookie(b'e'));
    world.client_send(up, &[0; 3000]);
    world.advance(&mut server, Duration::from_secs(1));
    assert!(world.received(up).is_empty());
    assert!(world.received(down).len() > 100_000);
    world.client_send(control, &[4]);
    world.run(&mut server);
    world.received(control);
    let json = finish(&mut world, &mut server, control);
    assert_eq!(json["streams"][0]["bytes"], 3000);
    let report = json["server_output_text"].as_str().unwrap();
    assert!(report.contains("receiver") && report.contains("sender"), "{report}");
}

fn datagram(sequence: u32, len: usize) -> Vec<u8> {
    let mut data = alloc::vec![0; len];
    data[8..12].copy_from_slice(&sequence.to_be_bytes());
    data
}

#[test]
fn datagrams_are_counted_with_their_gaps() {
    let (mut world, mut server) = world();
    let (control, answer) = negotiate(&mut world, &mut server, b'f', r#"{"udp":true,"time":1,"len":100}"#);
    assert_eq!(answer, [10]);
    let socket = world.net.udp_on(5201).unwrap();
    let remote: SocketAddr = "192.168.1.1:5555".parse().unwrap();
    world.net.client_datagram(socket, remote, b"9876");
    world.run(&mut server);
    assert_eq!(world.net.sent[0].data, b"6789");
    assert_eq!(world.received(control), [1, 2]);
    for sequence in [1, 2, 5, 4] {
        world.net.client_datagram(socket, remote, &datagram(sequence, 100));
    }
    world.net.client_datagram(socket, "192.168.1.9:1".parse().unwrap(), &datagram(1, 100));
    world.run(&mut server);
    world.client_send(control, &[4]);
    world.run(&mut server);
    world.received(control);
    let json = finish(&mut world, &mut server, control);
    let stream = &json["streams"][0];
    assert_eq!(
        (&stream["packets"], &stream["errors"], &stream["bytes"]),
        (&5.into(), &1.into(), &400.into())
    );
    assert_eq!(server.counters().stray_datagrams, 1);
}

#[test]
fn the_last_datagrams_of_a_known_length_count_if_they_come_soon() {
    let (mut world, mut server) = world();
    let (control, _) = negotiate(&mut world, &mut server, b'f', r#"{"udp":true,"num":500,"len":100}"#);
    let socket = world.net.udp_on(5201).unwrap();
    let remote: SocketAddr = "192.168.1.1:5555".parse().unwrap();
    world.net.client_datagram(socket, remote, b"9876");
    world.run(&mut server);
    for sequence in [1, 2, 3] {
        world.net.client_datagram(socket, remote, &datagram(sequence, 100));
    }
    world.run(&mut server);
    world.client_send(control, &[4]);
    for sequence in [4, 5] {
        world.advance(&mut server, Duration::from_millis(400));
        world.net.client_datagram(socket, remote, &datagram(sequence, 100));
    }
    world.run(&mut server);
    assert_eq!(world.received(control), [1, 2]);
    // One that goes on and on is not waited for.
    let mut sequence = 5;
    while world.received(control).is_empty() {
        sequence += 1;
        assert!(sequence < 100, "it has no end");
        world.net.client_datagram(socket, remote, &datagram(sequence, 100));
        world.advance(&mut server, Duration::from_millis(100));
    }
    let json = finish(&mut world, &mut server, control);
    let stream = &json["streams"][0];
    assert_eq!((&stream["packets"], &stream["errors"]), (&sequence.into(), &0.into()));
    assert!((46..50).contains(&sequence), "{sequence}");
}

#[test]
fn datagrams_are_sent_at_their_rate() {
    let (mut world, mut server) = world();
    let params = r#"{"udp":true,"time":1,"len":1250,"reverse":true,"bandwidth":1000000,"udp_counters_64bit":1,"TOS":184}"#;
    let (control, _) = negotiate(&mut world, &mut server, b'g', params);
    let socket = world.net.udp_on(5201).unwrap();
    world.net.client_datagram(socket, "192.168.1.1:5555".parse().unwrap(), b"9876");
    world.advance(&mut server, Duration::from_secs(1));
    let sent = world.net.sent.len() - 1;
    assert!((98..=104).contains(&sent), "{sent}");
    assert!(world.net.sent[1..].iter().all(|sent| sent.tos == 184));
    assert_eq!(world.net.sent[sent].data[8..16], (sent as u64).to_be_bytes());
    world.client_send(control, &[4]);
    world.run(&mut server);
    world.received(control);
    assert_eq!(finish(&mut world, &mut server, control)["streams"][0]["packets"], sent);
}

#[test]
fn two_udp_tests_from_one_address_open_their_streams_in_turn() {
    let (mut world, mut server) = world();
    let params = r#"{"udp":true,"time":1,"len":100}"#;
    let (_one, answer) = negotiate(&mut world, &mut server, b'h', params);
    assert_eq!(answer, [10]);
    let (two, answer) = negotiate(&mut world, &mut server, b'i', params);
    assert!(answer.is_empty());
    let socket = world.net.udp_on(5201).unwrap();
    world.net.client_datagram(socket, "192.168.1.1:5555".parse().unwrap(), b"9876");
    world.run(&mut server);
    assert_eq!(world.received(two), [10]);
}

#[test]
fn bad_parameters_are_answered_with_their_number() {
    for (params, code) in [(r#"{"tcp":true,"parallel":1000}"#, 6), ("nonsense", 114)] {
        let (mut world, mut server) = world();
        let (_, answer) = negotiate(&mut world, &mut server, b'j', params);
        assert_eq!(answer, [0xfe, 0, 0, 0, code, 0, 0, 0, 0]);
        assert_eq!(server.tests(), 0);
    }
}

#[test]
fn a_wrong_cookie_is_denied() {
    let (mut world, mut server) = world();
    let conn = open(&mut world, &mut server, &[b'!'; 37]);
    assert_eq!(world.received(conn), [0xff]);
    assert_eq!((server.counters().refused, world.net.held()), (1, 0));
}

#[test]
fn silence_in_every_phase_ends_by_its_deadline() {
    let (mut world, mut server) = world();
    open(&mut world, &mut server, b"half a cookie");
    open(&mut world, &mut server, &cookie(b'a'));
    negotiate(&mut world, &mut server, b'b', r#"{"tcp":true,"time":1}"#);
    negotiate(&mut world, &mut server, b'c', r#"{"tcp":true,"time":5}"#);
    open(&mut world, &mut server, &cookie(b'c'));
    let (control, _) = negotiate(&mut world, &mut server, b'd', r#"{"tcp":true,"num":1}"#);
    open(&mut world, &mut server, &[cookie(b'd'), alloc::vec![1]].concat());
    world.client_send(control, &[4]);
    world.advance(&mut server, Duration::from_secs(46));
    assert_eq!((server.tests(), world.net.held(), server.counters().timed_out), (0, 0, 5));
    assert_eq!(server.poll_timeout(), None);
}

#[test]
fn a_vanished_client_takes_its_streams_along() {
    let (mut world, mut server) = world();
    let (control, _) = negotiate(&mut world, &mut server, b'k', r#"{"tcp":true,"time":10}"#);
    let stream = open(&mut world, &mut server, &cookie(b'k'));
    world.net.client_reset(control);
    world.run(&mut server);
    assert_eq!(world.net.state(stream), ConnState::Closed(CloseReason::Stale));
    assert_eq!((server.tests(), world.net.held()), (0, 0));
}

proptest! {
    #[test]
    fn any_bytes_on_any_connection_leave_nothing_behind(
        first in proptest::collection::vec(any::<u8>(), 0..80),
        params in proptest::collection::vec(any::<u8>(), 0..200),
        states in proptest::collection::vec(any::<u8>(), 0..20),
        good_cookie: bool,
        good_params in 0usize..4,
    ) {
        let (mut world, mut server) = world();
        let conn = open(&mut world, &mut server, if good_cookie { b"" } else { &first });
        if good_cookie {
            world.client_send(conn, &cookie(b'z'));
        }
        let texts = ["", r#"{"tcp":true,"time":1}"#, r#"{"udp":1,"num":5}"#, r#"{"tcp":true,"num":9,"parallel":2}"#];
        match good_params {
            0 => world.client_send(conn, &params),
            n => world.client_send(conn, &framed(texts[n].as_bytes())),
        }
        world.run(&mut server);
        let stream = open(&mut world, &mut server, &cookie(b'z'));
        world.client_send(stream, &first);
        world.client_send(conn, &states);
        world.run(&mut server);
        world.advance(&mut server, Duration::from_secs(120));
        prop_assert_eq!(server.tests(), 0, "{}", format!("{:?}", server.counters()));
        prop_assert_eq!(world.net.held(), 0);
    }
}

#[test]
fn who_says_nothing_gives_way_to_a_client_with_a_test() {
    let mut world = World::new();
    let config = Config {
        owner: OWNER,
        max_connections: 20,
        connections_per_address: 10,
        max_tests: 2,
        ..Config::default()
    };
    let mut server = Server::new(config);
    world.start(&mut server);
    let dial = |world: &mut World, server: &mut Server, ip: &str, first: &[u8]| {
        let conn = world.connect(SocketAddr::new(ip.parse().unwrap(), 40_000), 5201);
        world.client_send(conn, first);
        world.run(server);
        conn
    };
    for n in 0..100 {
        dial(&mut world, &mut server, if n % 3 == 0 { "10.0.0.1" } else { "10.0.0.2" }, b"");
    }
    assert_eq!((server.counters().refused, server.counters().gave_way), (0, 82));
    // Two tests that never begin, and a third one.
    let first = dial(&mut world, &mut server, "10.0.0.3", &cookie(b'a'));
    dial(&mut world, &mut server, "10.0.0.3", &cookie(b'b'));
    world.advance(&mut server, Duration::from_secs(1));
    let control = dial(&mut world, &mut server, "10.0.0.4", &cookie(b'c'));
    assert_eq!(world.received(control), [9]);
    assert_eq!(world.received(first), [9, 0xff], "it is told why");
    assert!(world.net.client_sees_end(first));
    world.client_send(control, &framed(br#"{"tcp":true,"time":1,"parallel":1,"len":1000}"#));
    world.run(&mut server);
    assert_eq!(world.received(control), [10]);
    dial(&mut world, &mut server, "10.0.0.4", &cookie(b'c'));
    assert_eq!(world.received(control), [1, 2]);
    // A test that runs stays, whoever comes.
    for n in 0..100 {
        dial(&mut world, &mut server, &format!("10.0.1.{n}"), b"");
    }
    assert!(!world.net.client_sees_end(control));
    assert_eq!(server.counters().refused, 0);
}

#[test]
fn of_clients_that_come_at_once_the_first_has_its_test_and_the_others_are_told() {
    let mut world = World::new();
    let mut server = Server::new(Config { owner: OWNER, max_tests: 1, ..Config::default() });
    world.start(&mut server);
    let (control, answer) = negotiate(&mut world, &mut server, b'a', r#"{"tcp":true,"time":1}"#);
    assert_eq!(answer, [10]);
    for letter in b'b'..b'f' {
        let other = open(&mut world, &mut server, &cookie(letter));
        assert_eq!(world.received(other), [0xff]);
        assert!(world.net.client_sees_end(other));
    }
    open(&mut world, &mut server, &cookie(b'a'));
    assert_eq!(world.received(control), [1, 2]);
    assert_eq!((server.counters().refused, server.counters().gave_way), (4, 0));
}

#[test]
fn a_window_is_offered_while_streams_that_want_it_come() {
    let (mut world, mut server) = world();
    let offered = |world: &World| world.net.offered_buffer(5201);
    let (small, _) = negotiate(&mut world, &mut server, b'a', r#"{"tcp":true,"time":1,"window":4096}"#);
    assert_eq!(offered(&world), Some(4096));
    open(&mut world, &mut server, &cookie(b'a'));
    assert_eq!((world.received(small), offered(&world)), (alloc::vec![1, 2], None));
    // Of two at once it is the newer one's.
    let (_, _) = negotiate(&mut world, &mut server, b'b', r#"{"tcp":true,"time":1,"window":2048}"#);
    let (other, _) = negotiate(&mut world, &mut server, b'c', r#"{"tcp":true,"time":1}"#);
    assert_eq!(offered(&world), None);
    world.net.client_reset(other);
    world.run(&mut server);
    assert_eq!(offered(&world), Some(2048));
    // It never opens its streams.
    world.advance(&mut server, Duration::from_secs(31));
    assert_eq!(offered(&world), None);
    negotiate(&mut world, &mut server, b'd', r#"{"udp":true,"time":1,"window":2048}"#);
    assert_eq!(offered(&world), None, "datagrams have a socket of their own");
}
