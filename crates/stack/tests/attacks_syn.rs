//! Floods of SYNs: cookies, the accept queue, and what is left for honest clients.

mod common;

use common::frames::*;
use common::peer::{Peer, answers, modern, old};
use common::{Bench, OWNER, Setup, World, shown};
use core::net::Ipv4Addr;
use core::time::Duration;
use linerate_stack::{StackConfig, TcpOptions};
use linerate_transport::{AcceptBacklog, ListenAddr, ListenOptions, ListenerId, Transport};
use linerate_wire::arp::Operation;
use linerate_wire::ip::Ecn;
use linerate_wire::ipv4;
use linerate_wire::tcp::{self, Flags, Options, SeqNumber};

fn listen(bench: &mut Bench, backlog: u16) -> ListenerId {
    let options = ListenOptions { backlog: AcceptBacklog(backlog), ..ListenOptions::default() };
    bench.host.stack.listen(OWNER, ListenAddr { ip: None, port: 80 }, &options).unwrap()
}

/// A host whose listener has so much backlog, all of it taken by SYNs that nobody completes.
fn flooded(backlog: u16) -> (Bench, ListenerId) {
    flooded_with(backlog, TcpOptions::default())
}

/// The same of a stack that knows only these options.
fn flooded_with(backlog: u16, tcp_options: TcpOptions) -> (Bench, ListenerId) {
    let mut config = StackConfig { tcp_options, ..Setup::default().config[0].clone() };
    config.gateways = vec![PEER4.into()];
    let mut bench = Bench::new(config);
    bench.receive();
    bench.ask(&arp(Operation::REQUEST, PEER4, HOST4));
    let listener = listen(&mut bench, backlog);
    for port in 0..backlog {
        bench.ask(&tcp4(Peer::new(20_000 + port, modern()).syn(), &[]));
    }
    assert_eq!(bench.host.stack.memory().connections, usize::from(backlog));
    assert_eq!(bench.host.stack.counters().syn_cookies_sent, 0);
    (bench, listener)
}

#[test]
fn a_syn_beyond_the_backlog_is_answered_with_a_cookie_and_keeps_nothing() {
    let (mut bench, _) = flooded(8);
    let memory = bench.host.stack.memory();
    for port in 0..300 {
        let frames = bench.ask(&tcp4(Peer::new(30_000 + port, modern()).syn(), &[]));
        assert_eq!(answers(&frames)[0].flags, Flags::SYN | Flags::ACK);
    }
    assert_eq!(bench.host.stack.memory(), memory);
    let counters = bench.host.stack.counters();
    assert_eq!((counters.syn_cookies_sent, counters.tcp_passive_opens), (300, 8));
    assert_eq!((counters.drop_syn_backlog, counters.tcp_resets_out), (0, 0), "never a RST");
}

/// A client with these options connects through a cookie and exchanges data.
#[track_caller]
fn check_cookie(options: Options, segment: u32, scale: bool, sack: bool) {
    let (mut bench, listener) = flooded(8);
    let mut peer = Peer::new(30_000, options);
    let answer = peer.open(&mut bench).unwrap();
    assert_eq!(answer.options.window_scale.is_some(), scale);
    assert_eq!(answer.options.sack_permitted, sack);
    assert_eq!(answer.options.timestamps.is_some(), options.timestamps.is_some());
    peer.window = 500;
    let reply = peer.send(&mut bench, &[]);
    assert!(reply.is_empty(), "{reply:?}");
    let conn = bench.host.stack.accept(listener).expect("accepted");
    let info = bench.host.stack.info(conn).unwrap();
    assert_eq!(info.send_mss, segment);
    assert_eq!(info.send_window, if scale { 500 << 7 } else { 500 });
    assert_eq!(info.rtt, None, "the timestamp of a cookie measures nothing");
    peer.send(&mut bench, b"hello");
    assert_eq!(bench.host.stack.peek(conn), b"hello");
    bench.host.stack.write(conn, b"world").unwrap();
    let reply = answers(&bench.receive());
    assert_eq!((reply[0].seq, &reply[0].payload[..]), (peer.ack, &b"world"[..]));
    assert_eq!(bench.host.stack.counters().syn_cookies_accepted, 1);
}

#[test]
fn a_cookie_remembers_what_the_client_offered() {
    check_cookie(modern(), 1_448, true, true);
    check_cookie(Options { window_scale: None, ..modern() }, 1_448, false, true);
    check_cookie(Options { sack_permitted: false, ..modern() }, 1_448, true, false);
    check_cookie(Options { mss: Some(1_300), ..modern() }, 1_220 - 12, true, true);
    check_cookie(old(), 1_460, false, false);
    check_cookie(Options { mss: None, ..old() }, 536, false, false);
}

#[test]
fn a_cookie_agrees_to_nothing_that_the_stack_does_not_know() {
    let all = TcpOptions::default();
    let without = [
        TcpOptions { timestamps: false, ..all },
        TcpOptions { sack: false, ..all },
        TcpOptions { window_scaling: false, ..all },
    ];
    for known in without {
        let (mut bench, listener) = flooded_with(8, known);
        let mut peer = Peer::new(30_000, modern());
        let agreed = peer.open(&mut bench).unwrap().options;
        // A cookie has room for the others only in the timestamp.
        let with = |option| option && known.timestamps;
        assert_eq!(agreed.timestamps.is_some(), known.timestamps);
        assert_eq!(
            (agreed.window_scale.is_some(), agreed.sack_permitted),
            (with(known.window_scaling), with(known.sack))
        );
        peer.window = 500;
        peer.send(&mut bench, b"hello");
        let conn = bench.host.stack.accept(listener).expect("accepted");
        assert_eq!(bench.host.stack.peek(conn), b"hello", "{known:?}");
        let scale = agreed.window_scale.map_or(0, |_| 7);
        assert_eq!(bench.host.stack.info(conn).unwrap().send_window, 500 << scale);
        bench.host.stack.write(conn, b"world").unwrap();
        let reply = answers(&bench.receive());
        assert_eq!(
            (&reply[0].payload[..], reply[0].options.timestamps.is_some()),
            (&b"world"[..], known.timestamps)
        );
    }
}

#[test]
fn a_cookie_remembers_congestion_notification() {
    for (options, agreed) in [(modern(), true), (old(), false)] {
        let (mut bench, listener) = flooded(8);
        let mut peer = Peer::new(30_000, options);
        let asks = peer.syn();
        let frames =
            bench.ask(&tcp4(tcp::Builder { flags: Flags::SYN | Flags::ECE | Flags::CWR, ..asks }, &[]));
        assert_eq!(answers(&frames)[0].flags.contains(Flags::ECE), agreed);
        peer.ack = answers(&frames)[0].seq + 1;
        peer.next += 1;
        let own = peer.options.timestamps;
        peer.options.timestamps = answers(&frames)[0]
            .options
            .timestamps
            .zip(own)
            .map(|(ours, own)| tcp::Timestamps { value: own.value + 1, echo: ours.value });
        peer.send(&mut bench, &[]);
        let conn = bench.host.stack.accept(listener).expect("accepted");
        bench.host.stack.write(conn, b"capable").unwrap();
        let frame = bench.receive().remove(0);
        assert_eq!(ipv4::Header::parse(&frame[14..]).unwrap().ecn() == Ecn::Capable0, agreed);
    }
}

#[test]
fn data_may_come_with_the_ack_of_a_cookie() {
    let (mut bench, listener) = flooded(8);
    let mut peer = Peer::new(30_000, modern());
    peer.open(&mut bench).unwrap();
    let reply = peer.send(&mut bench, b"GET / HTTP/1.1\r\n\r\n");
    let conn = bench.host.stack.accept(listener).expect("accepted");
    assert_eq!(bench.host.stack.peek(conn), b"GET / HTTP/1.1\r\n\r\n");
    assert!(reply.iter().all(|answer| answer.ack == peer.next && !answer.flags.contains(Flags::RST)));
}

#[test]
fn a_full_accept_queue_resets_who_comes_by_a_cookie_instead_of_leaving_him_waiting() {
    let mut bench = Bench::acquainted();
    let listener = listen(&mut bench, 2);
    let mut peers: Vec<Peer> = (0..70).map(|n| Peer::new(30_000 + n, modern())).collect();
    // All SYNs come before any ACK: two take the backlog, the others get cookies.
    for peer in &mut peers {
        peer.open(&mut bench).unwrap();
    }
    // Most of these find a place beyond the backlog, as they were told to come; the others are told that there is none.
    let answers: Vec<_> = peers.iter_mut().map(|peer| peer.send(&mut bench, &[])).collect();
    for (n, answer) in answers.iter().enumerate() {
        let is_reset = answer.iter().any(|segment| segment.flags.contains(Flags::RST));
        assert_eq!((is_reset, answer.is_empty()), (n >= 64, n < 64), "{n}");
    }
    let counters = bench.host.stack.counters();
    assert_eq!((counters.syn_cookies_sent, counters.drop_syn_cookie_backlog), (68, 6));
    // A further SYN is dropped now: it could not be accepted.
    assert!(Peer::new(31_000, modern()).open(&mut bench).is_none());
    assert_eq!(bench.host.stack.counters().drop_syn_backlog, 1);
    let accepted = core::iter::from_fn(|| bench.host.stack.accept(listener)).count();
    assert_eq!(accepted, 64);
}

#[test]
fn a_full_table_resets_who_comes_by_a_cookie() {
    let mut config = Setup::default().config[0].clone();
    (config.max_connections, config.max_half_open) = (4, 2);
    let mut bench = Bench::new(config);
    bench.receive();
    bench.ask(&arp(Operation::REQUEST, PEER4, HOST4));
    let listener = listen(&mut bench, 100);
    for n in 0..4 {
        Peer::new(20_000 + n, modern()).connect(&mut bench, listener);
    }
    let mut peer = Peer::new(30_000, modern());
    peer.open(&mut bench).unwrap();
    let answer = peer.send(&mut bench, &[]);
    assert_eq!(answer.len(), 1);
    assert!(answer[0].flags.contains(Flags::RST));
    assert_eq!(bench.host.stack.counters().drop_syn_cookie_table, 1);
}

#[test]
fn guessed_acks_open_nothing() {
    let (mut bench, listener) = flooded(8);
    Peer::new(30_000, modern()).open(&mut bench).unwrap();
    for guess in 0..20_000u32 {
        let mut peer = Peer::new(31_000 + (guess % 1_000) as u16, old());
        peer.ack = SeqNumber(guess.wrapping_mul(0x9e37_79b9));
        bench.feed(&tcp4(peer.segment(Flags::ACK), &[]));
    }
    assert!(bench.receive().is_empty(), "an ACK that fits no cookie is dropped in silence");
    assert_eq!(bench.host.stack.accept(listener), None);
    assert_eq!(bench.host.stack.counters().syn_cookies_failed, 20_000);
    // Minutes after the flood, it is answered as always.
    bench.pass(Duration::from_secs(200));
    bench.ask(&arp(Operation::REQUEST, PEER4, HOST4));
    let mut stray = Peer::new(32_000, old());
    stray.ack = SeqNumber(77);
    assert_eq!(stray.send(&mut bench, &[])[0].flags, Flags::RST);
}

#[test]
fn a_cookie_from_before_is_not_taken() {
    let (mut bench, listener) = flooded(8);
    let mut early = Peer::new(30_000, modern());
    early.open(&mut bench).unwrap();
    for _ in 0..4 {
        bench.pass(Duration::from_secs(60));
        for port in 0..9 {
            bench.ask(&tcp4(Peer::new(21_000 + port, modern()).syn(), &[]));
        }
    }
    early.send(&mut bench, &[]);
    assert_eq!(bench.host.stack.accept(listener), None);
    assert_eq!(bench.host.stack.counters().syn_cookies_failed, 1);
}

#[test]
fn half_open_connections_are_bounded_for_all_listeners_together() {
    let mut config = Setup::default().config[0].clone();
    config.max_half_open = 10;
    let mut bench = Bench::new(config);
    bench.receive();
    bench.ask(&arp(Operation::REQUEST, PEER4, HOST4));
    listen(&mut bench, 1_000);
    for port in 0..50 {
        bench.ask(&tcp4(Peer::new(20_000 + port, modern()).syn(), &[]));
    }
    assert_eq!(bench.host.stack.memory().connections, 10);
    assert_eq!(bench.host.stack.counters().syn_cookies_sent, 40);
    // The SYN-ACK goes four times in all, and then the half-open connection is gone.
    let sent = bench.pass(Duration::from_secs(60));
    let again = sent.iter().filter(|(_, frame)| !answers(core::slice::from_ref(frame)).is_empty()).count();
    assert_eq!(again, 30);
    assert_eq!(bench.host.stack.memory().connections, 0);
}

#[test]
fn a_client_that_proved_itself_takes_the_place_of_the_oldest_half_open_one() {
    let mut config = Setup::default().config[0].clone();
    (config.max_connections, config.max_half_open) = (8, 4);
    let mut bench = Bench::new(config);
    bench.receive();
    bench.ask(&arp(Operation::REQUEST, PEER4, HOST4));
    let listener = listen(&mut bench, 100);
    for port in 0..4 {
        Peer::new(20_000 + port, modern()).open(&mut bench).unwrap();
    }
    // Half of the table is half-open; the other half, and then the places of these, go to clients with cookies.
    for n in 0..8 {
        Peer::new(30_000 + n, modern()).connect(&mut bench, listener);
    }
    let counters = bench.host.stack.counters();
    assert_eq!((counters.syn_cookies_accepted, counters.tcp_half_open_evicted), (8, 4));
    assert_eq!(counters.tcp_resets_out, 0);
    assert_eq!(bench.host.stack.memory().connections, 8);
}

#[test]
fn clients_connect_during_a_flood_from_forged_addresses() {
    let (mut bench, listener) = flooded(64);
    let free = bench.pool.free();
    let mut forged = 0u32;
    for round in 0..20 {
        for _ in 0..500 {
            forged += 1;
            let source = Ipv4Addr::from(0x0b00_0000 + forged.wrapping_mul(7_919) % 0x00ff_ffff);
            bench.feed(&tcp4_from(source, Peer::new(1_024 + (forged % 60_000) as u16, modern()).syn(), &[]));
        }
        bench.receive();
        let mut peer = Peer::new(40_000 + round, modern());
        let conn = peer.connect(&mut bench, listener);
        peer.send(&mut bench, b"through");
        assert_eq!(bench.host.stack.peek(conn), b"through");
        bench.now += Duration::from_millis(50);
    }
    let counters = bench.host.stack.counters();
    assert_eq!(counters.tcp_established, 20, "{:?}", shown(counters));
    assert!(counters.syn_cookies_sent >= 10_000 && counters.drop_no_route == 0, "{:?}", shown(counters));
    assert_eq!(bench.pool.free(), free, "a SYN holds no buffer");
    assert_eq!(bench.host.stack.memory().connections, 64 + 20);
}

#[test]
fn our_own_clients_understand_our_cookies() {
    let mut world = World::new(Setup::default());
    let options = ListenOptions { backlog: AcceptBacklog(3), ..ListenOptions::default() };
    let listener = world.b.stack.listen(OWNER, ListenAddr { ip: None, port: 80 }, &options).unwrap();
    let mut accepted = Vec::new();
    let clients: Vec<_> =
        (0..20).map(|n| world.a.connect(if n % 2 == 0 { "10.0.0.2:80" } else { "[fd00::2]:80" })).collect();
    world.exchange();
    for client in &clients {
        world.a.stack.write(*client, b"hello").unwrap();
    }
    let done = world.run_for(Duration::from_secs(30), |world| {
        while let Some(conn) = world.b.stack.accept(listener) {
            accepted.push(conn);
        }
        accepted.iter().filter(|conn| world.b.stack.readable(**conn) == 5).count() == 20
    });
    let counters = world.b.stack.counters();
    assert!(done, "{:?}", shown(counters));
    assert!(counters.syn_cookies_accepted >= 10, "{:?}", shown(counters));
}

#[test]
fn a_flood_of_syns_leaves_room_for_answers_of_address_resolution() {
    let (mut bench, _) = flooded(8);
    // All at once, before anything can be sent.
    for n in 0..600 {
        let source = Ipv4Addr::from_bits(0x0b00_0000 + n);
        bench.feed(&tcp4_from(source, Peer::new(30_000, modern()).syn(), &[]));
    }
    bench.feed(&arp(Operation::REQUEST, PEER4, HOST4));
    let frames = bench.receive();
    assert!(bench.host.stack.counters().drop_control_full > 0);
    assert!(frames.iter().any(|frame| matches!(see(frame), Seen::Arp(Operation::REPLY, ..))));
}
