//! TCP Fast Open on the server's side (RFC 7413): cookies, data before the handshake ends, and what happens when it fails.

mod common;

use common::Bench;
use common::frames::*;
use common::peer::{Answer, Peer, answers, modern, old};
use common::{OWNER, Setup, read_all, shown};
use core::time::Duration;
use linerate_stack::tcp::State;
use linerate_stack::{Counters, StackConfig};
use linerate_transport::{
    CloseReason, ConnId, ConnState, FastOpen, ListenAddr, ListenOptions, ListenerId, Transport,
};
use linerate_wire::arp::Operation;
use linerate_wire::tcp::{Builder, FastOpenCookie, Flags, Options, Timestamps};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\n\r\n";
const REPLY: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";

fn listen(bench: &mut Bench, fast_open: Option<FastOpen>) -> ListenerId {
    let options = ListenOptions { fast_open, ..ListenOptions::default() };
    bench.host.stack.listen(OWNER, ListenAddr { ip: None, port: 80 }, &options).unwrap()
}

/// A host with a listener that takes so many early requests, and a cookie of it.
fn ready(max_pending: u16) -> (Bench, ListenerId, FastOpenCookie) {
    let mut bench = Bench::acquainted();
    let listener = listen(&mut bench, Some(FastOpen { max_pending }));
    let cookie = ask_for_cookie(&mut bench, 20_000);
    (bench, listener, cookie)
}

/// Asks for a cookie, and refuses the connection.
fn ask_for_cookie(bench: &mut Bench, port: u16) -> FastOpenCookie {
    let mut peer = Peer::new(port, modern());
    let answer = open(bench, &mut peer, Some(FastOpenCookie::REQUEST), &[]);
    reset(bench, &peer);
    answer.options.fast_open.expect("a cookie")
}

fn syn(peer: &Peer, cookie: Option<FastOpenCookie>, data: &[u8]) -> Vec<u8> {
    let options = Options { fast_open: cookie, ..peer.options };
    tcp4(Builder { options, ..peer.segment(Flags::SYN) }, data)
}

/// Sends the SYN; the peer goes on behind the SYN-ACK, which is the only answer.
#[track_caller]
fn open(bench: &mut Bench, peer: &mut Peer, cookie: Option<FastOpenCookie>, data: &[u8]) -> Answer {
    let frames = bench.ask(&syn(peer, cookie, data));
    let mut all = answers(&frames);
    assert_eq!(all.len(), 1, "{all:?}");
    follow(peer, &all[0]);
    all.remove(0)
}

#[track_caller]
fn follow(peer: &mut Peer, syn_ack: &Answer) {
    assert_eq!(syn_ack.flags, Flags::SYN | Flags::ACK);
    assert_eq!(syn_ack.payload, b"");
    peer.next = syn_ack.ack;
    peer.ack = syn_ack.seq + 1;
    peer.options.timestamps = syn_ack
        .options
        .timestamps
        .zip(peer.options.timestamps)
        .map(|(ours, own)| Timestamps { value: own.value + 1, echo: ours.value });
}

fn reset(bench: &mut Bench, peer: &Peer) {
    let frames = bench.ask(&tcp4(peer.segment(Flags::RST), &[]));
    assert!(frames.is_empty());
}

/// Opens early with the request, which the application reads.
#[track_caller]
fn served(bench: &mut Bench, listener: ListenerId, peer: &mut Peer, cookie: FastOpenCookie) -> ConnId {
    let start = peer.next;
    open(bench, peer, Some(cookie), REQUEST);
    assert_eq!(peer.next, start + 1 + REQUEST.len() as u32, "the SYN-ACK acknowledges the request");
    let conn = bench.host.stack.accept(listener).expect("accepted before the handshake has ended");
    assert_eq!(read(bench, conn), REQUEST);
    assert_eq!(bench.host.stack.tcp_state(conn), Some(State::SynReceived));
    conn
}

fn read(bench: &mut Bench, conn: ConnId) -> Vec<u8> {
    let mut bytes = Vec::new();
    read_all(&mut bench.host.stack, conn, &mut bytes);
    bytes
}

fn write(bench: &mut Bench, conn: ConnId, bytes: &[u8]) -> Vec<Answer> {
    bench.host.stack.write(conn, bytes).unwrap();
    answers(&bench.receive())
}

/// What the host sends within this time.
fn wait(bench: &mut Bench, time: Duration) -> Vec<Answer> {
    let frames: Vec<Vec<u8>> = bench.pass(time).into_iter().map(|(_, frame)| frame).collect();
    answers(&frames)
}

fn ack(bench: &mut Bench, peer: &Peer) -> Vec<Answer> {
    answers(&bench.ask(&tcp4(peer.segment(Flags::ACK), &[])))
}

fn counters(bench: &Bench) -> Counters {
    *bench.host.stack.counters()
}

/// Bytes charged, free pages, free receive buffers, connections.
fn held(bench: &Bench) -> (usize, usize, Option<usize>, usize) {
    let memory = bench.host.stack.memory();
    (memory.used, memory.pages.free, memory.receive.map(|pool| pool.free), memory.connections)
}

#[track_caller]
fn check_state(bench: &Bench, conn: ConnId, expected: State) {
    let stack = &bench.host.stack;
    assert_eq!(stack.tcp_state(conn), Some(expected), "{:?}", shown(stack.counters()));
}

/// A request that was not taken with the SYN is answered after the handshake.
#[track_caller]
fn check_ordinary(bench: &mut Bench, listener: ListenerId, peer: &mut Peer) {
    assert!(bench.host.stack.accept(listener).is_none(), "not before the handshake has ended");
    peer.send(bench, REQUEST);
    let conn = bench.host.stack.accept(listener).expect("accepted");
    assert_eq!(read(bench, conn), REQUEST);
    bench.host.stack.abort(conn);
    bench.receive();
}

/// RFC 7413 section 4.1.2: a server that does not do Fast Open ignores the option and the data.
#[test]
fn it_is_off_by_default() {
    let mut bench = Bench::acquainted();
    let listener = listen(&mut bench, None);
    for cookie in [FastOpenCookie::REQUEST, FastOpenCookie::new(&[7; 8]).unwrap()] {
        let mut peer = Peer::new(30_000, modern());
        let start = peer.next;
        let answer = open(&mut bench, &mut peer, Some(cookie), REQUEST);
        assert_eq!((answer.ack, answer.options.fast_open), (start + 1, None));
        check_ordinary(&mut bench, listener, &mut peer);
    }
    let counters = counters(&bench);
    assert_eq!((counters.tfo_cookies_sent, counters.tfo_cookies_rejected), (0, 0));
}

/// RFC 7413 section 4.1.2 and section 3.1, steps 1 and 2.
#[test]
fn a_request_gets_a_cookie_in_the_syn_ack() {
    for options in [modern(), old(), Options::default()] {
        let (mut bench, listener, cookie) = ready(8);
        assert_eq!(cookie.as_slice().len(), 8);
        let mut peer = Peer::new(30_000, options);
        let start = peer.next;
        let answer = open(&mut bench, &mut peer, Some(FastOpenCookie::REQUEST), REQUEST);
        assert_eq!(answer.options.fast_open, Some(cookie), "one address, one cookie");
        assert_eq!(answer.ack, start + 1, "data beside a request for a cookie is not taken");
        check_ordinary(&mut bench, listener, &mut peer);
        assert_eq!(counters(&bench).tfo_cookies_sent, 2);
    }
}

/// RFC 7413 section 4.1.2: who does not ask gets none; data without a cookie comes again.
#[test]
fn a_syn_without_the_option_opens_the_ordinary_way() {
    let (mut bench, listener, _) = ready(8);
    let mut peer = Peer::new(30_000, modern());
    let answer = open(&mut bench, &mut peer, None, REQUEST);
    assert_eq!(answer.options.fast_open, None);
    check_ordinary(&mut bench, listener, &mut peer);
}

/// RFC 7413 section 4.2.2, server step 3.
#[test]
fn an_invalid_cookie_opens_the_ordinary_way_and_brings_a_good_one() {
    let (mut bench, listener, cookie) = ready(8);
    let mut wrong = cookie.as_slice().to_vec();
    wrong[7] ^= 1;
    for (port, wrong) in [(30_000, &wrong[..]), (30_001, &wrong[..4]), (30_002, &[0; 16])] {
        let mut peer = Peer::new(port, modern());
        let start = peer.next;
        let answer = open(&mut bench, &mut peer, FastOpenCookie::new(wrong), REQUEST);
        assert_eq!((answer.ack, answer.options.fast_open), (start + 1, Some(cookie)));
        check_ordinary(&mut bench, listener, &mut peer);
    }
    let counters = counters(&bench);
    assert_eq!((counters.tfo_cookies_rejected, counters.tfo_cookies_accepted), (3, 0));
    assert_eq!((counters.tfo_cookies_sent, counters.tfo_data_accepted), (4, 0));
}

/// RFC 7413 section 3.1, steps 3 to 6, and section 4.2.2: request and reply within the first round trip.
#[test]
fn a_request_is_served_before_the_handshake_has_ended() {
    for options in [modern(), old()] {
        let (mut bench, listener, cookie) = ready(8);
        let mut peer = Peer::new(30_000, options);
        let conn = served(&mut bench, listener, &mut peer, cookie);
        assert_eq!(bench.host.stack.state(conn), ConnState::Open { finished: false });
        let reply = write(&mut bench, conn, REPLY);
        assert_eq!((reply.len(), reply[0].seq, reply[0].ack), (1, peer.ack, peer.next));
        assert_eq!((&reply[0].payload[..], reply[0].options.fast_open), (REPLY, None));
        peer.ack += REPLY.len() as u32;
        assert_eq!(ack(&mut bench, &peer), []);
        check_state(&bench, conn, State::Established);
        assert_eq!(bench.host.stack.unsent(conn), 0);
        // And it goes on as any connection.
        peer.send(&mut bench, b"more");
        assert_eq!(read(&mut bench, conn), b"more");
        assert_eq!(write(&mut bench, conn, b"yes")[0].payload, b"yes");
        let counters = counters(&bench);
        assert_eq!((counters.tfo_cookies_accepted, counters.tfo_data_accepted), (1, 1));
        assert_eq!((counters.tcp_retransmits, counters.tcp_established), (0, 1));
    }
}

/// RFC 7413 section 4.2.2: the reply may be written before the SYN-ACK has left; the SYN-ACK goes first.
#[test]
fn the_syn_ack_goes_before_the_reply() {
    let (mut bench, listener, cookie) = ready(8);
    let mut peer = Peer::new(30_000, modern());
    bench.feed(&syn(&peer, Some(cookie), REQUEST));
    let conn = bench.host.stack.accept(listener).expect("accepted");
    let all = write(&mut bench, conn, REPLY);
    follow(&mut peer, &all[0]);
    assert_eq!((all.len(), &all[1].payload[..], all[1].seq), (2, REPLY, peer.ack));
}

/// A server that speaks first does so at once to a client with a cookie and nothing to say.
#[test]
fn a_cookie_without_data_opens_early_too() {
    let (mut bench, listener, cookie) = ready(8);
    let mut peer = Peer::new(30_000, modern());
    open(&mut bench, &mut peer, Some(cookie), &[]);
    let conn = bench.host.stack.accept(listener).expect("accepted");
    assert_eq!(write(&mut bench, conn, b"220 welcome\r\n")[0].payload, b"220 welcome\r\n");
    assert_eq!(counters(&bench).tfo_data_accepted, 0);
    peer.ack += 13;
    ack(&mut bench, &peer);
    check_state(&bench, conn, State::Established);
}

/// RFC 7413 section 4.2.2: the reply is bounded by the initial window, and by the window in the SYN.
#[test]
fn the_reply_keeps_to_the_initial_window() {
    for (window, most) in [(65_535, 10 * 1_448), (3_000, 3_000), (0, 0)] {
        let (mut bench, listener, cookie) = ready(8);
        let mut peer = Peer::new(30_000, modern());
        peer.window = window;
        let conn = served(&mut bench, listener, &mut peer, cookie);
        let start = peer.ack;
        let bytes_of = |all: &[Answer]| all.iter().map(|segment| segment.payload.len()).sum::<usize>();
        let mut sent = bytes_of(&write(&mut bench, conn, &[b'x'; 40_000]));
        assert!(sent <= most && sent + 1_448 >= most, "{sent} of {most}");
        // What is left follows after the handshake.
        peer.window = 1_000;
        for _ in 0..20 {
            peer.ack = start + sent as u32;
            sent += bytes_of(&ack(&mut bench, &peer));
        }
        assert_eq!((sent, bench.host.stack.unsent(conn)), (40_000, 0));
    }
}

/// RFC 7413 section 4.2.2: the client's timeout sends the SYN without data; its data was taken all the same.
#[test]
fn a_repeated_syn_is_answered_as_the_first_one_was() {
    let (mut bench, listener, cookie) = ready(8);
    let mut peer = Peer::new(30_000, modern());
    let first = peer.clone();
    let conn = served(&mut bench, listener, &mut peer, cookie);
    for again in [syn(&first, None, &[]), syn(&first, Some(cookie), REQUEST)] {
        let reply = answers(&bench.ask(&again));
        assert_eq!((reply.len(), reply[0].flags), (1, Flags::SYN | Flags::ACK));
        assert_eq!((reply[0].seq + 1, reply[0].ack), (peer.ack, peer.next));
        assert_eq!(reply[0].options.fast_open, None);
    }
    assert_eq!(ack(&mut bench, &peer), []);
    check_state(&bench, conn, State::Established);
    assert_eq!(read(&mut bench, conn), b"", "the request is delivered once");
    assert_eq!(counters(&bench).tfo_data_accepted, 1);
}

/// RFC 7413 section 4.2.2: a SYN-ACK that is sent again carries no data and none follows; data comes after the handshake.
#[test]
fn after_a_lost_syn_ack_the_reply_waits_for_the_handshake() {
    let (mut bench, listener, cookie) = ready(8);
    let mut peer = Peer::new(30_000, modern());
    let conn = served(&mut bench, listener, &mut peer, cookie);
    // The SYN-ACK and this are lost.
    assert_eq!(write(&mut bench, conn, REPLY).len(), 1);
    let again = wait(&mut bench, Duration::from_millis(1_500));
    assert_eq!((again.len(), again[0].flags), (1, Flags::SYN | Flags::ACK));
    assert_eq!((again[0].seq + 1, again[0].ack, &again[0].payload[..]), (peer.ack, peer.next, &b""[..]));
    assert_eq!(write(&mut bench, conn, b"and more"), [], "nothing before the handshake has ended");
    let all = ack(&mut bench, &peer);
    check_state(&bench, conn, State::Established);
    let bytes: Vec<u8> = all.iter().flat_map(|segment| segment.payload.clone()).collect();
    assert_eq!((bytes, all[0].seq), ([REPLY, b"and more"].concat(), peer.ack));
    peer.ack += (REPLY.len() + 8) as u32;
    assert_eq!(ack(&mut bench, &peer), []);
    assert_eq!(bench.host.stack.unsent(conn), 0);
}

/// The SYN-ACK was not lost but slow: the reply that followed it had arrived, and is not sent again.
#[test]
fn what_was_taken_back_counts_when_it_is_acknowledged() {
    let (mut bench, listener, cookie) = ready(8);
    let mut peer = Peer::new(30_000, modern());
    let conn = served(&mut bench, listener, &mut peer, cookie);
    write(&mut bench, conn, REPLY);
    assert_eq!(wait(&mut bench, Duration::from_millis(1_500)).len(), 1);
    peer.ack += REPLY.len() as u32;
    assert_eq!(ack(&mut bench, &peer), []);
    check_state(&bench, conn, State::Established);
    assert_eq!(bench.host.stack.unsent(conn), 0);
    assert_eq!(wait(&mut bench, Duration::from_secs(5)), []);
    assert_eq!(write(&mut bench, conn, b"next")[0].seq, peer.ack);
}

/// The reply is lost, the SYN-ACK is not: it is data like any other once the handshake has ended.
#[test]
fn a_lost_reply_is_sent_again() {
    for options in [modern(), old(), Options { sack_permitted: false, window_scale: None, ..old() }] {
        let (mut bench, listener, cookie) = ready(8);
        let mut peer = Peer::new(30_000, options);
        let conn = served(&mut bench, listener, &mut peer, cookie);
        assert_eq!(write(&mut bench, conn, REPLY).len(), 1);
        assert_eq!(ack(&mut bench, &peer), [], "an acknowledgement of the SYN repeats nothing");
        let again = wait(&mut bench, Duration::from_secs(2));
        assert_eq!((&again[0].payload[..], again[0].seq), (REPLY, peer.ack));
        peer.ack += REPLY.len() as u32;
        assert_eq!(ack(&mut bench, &peer), []);
        assert_eq!(bench.host.stack.unsent(conn), 0);
        assert_eq!(wait(&mut bench, Duration::from_secs(5)), []);
    }
}

/// RFC 9293 section 3.10.4, as ever with us: FIN waits for the end of the handshake.
#[test]
fn a_fin_waits_for_the_end_of_the_handshake() {
    let (mut bench, listener, cookie) = ready(8);
    let mut peer = Peer::new(30_000, modern());
    let conn = served(&mut bench, listener, &mut peer, cookie);
    bench.host.stack.write(conn, REPLY).unwrap();
    bench.host.stack.close(conn);
    let reply = answers(&bench.receive());
    assert_eq!(reply.len(), 1);
    assert!(!reply[0].flags.contains(Flags::FIN) && reply[0].payload == REPLY);
    peer.ack += REPLY.len() as u32;
    let fin = ack(&mut bench, &peer);
    assert!(fin[0].flags.contains(Flags::FIN) && fin[0].seq == peer.ack);
}

/// RFC 7413 section 5.1: the RST of a host whose address was borrowed frees the connection, but makes no room for more
/// requests for a minute.
#[test]
fn a_reset_ends_the_connection_with_a_reason() {
    let (mut bench, listener, cookie) = ready(1);
    let memory = held(&bench);
    let mut peer = Peer::new(30_000, modern());
    let conn = served(&mut bench, listener, &mut peer, cookie);
    reset(&mut bench, &peer);
    assert_eq!(bench.host.stack.state(conn), ConnState::Closed(CloseReason::Reset));
    bench.host.stack.close(conn);
    assert_eq!(held(&bench), memory);
    bench.pass(Duration::from_secs(59));
    let mut second = Peer::new(30_001, modern());
    open(&mut bench, &mut second, Some(cookie), REQUEST);
    check_ordinary(&mut bench, listener, &mut second);
    assert_eq!(counters(&bench).tfo_pending_limited, 1);
    bench.pass(Duration::from_secs(2));
    served(&mut bench, listener, &mut Peer::new(30_002, modern()), cookie);
}

/// A request that nobody has accepted yet leaves the queue with its connection.
#[test]
fn a_reset_takes_the_connection_out_of_the_accept_queue() {
    let (mut bench, listener, cookie) = ready(4);
    let memory = held(&bench);
    let mut peer = Peer::new(30_000, modern());
    open(&mut bench, &mut peer, Some(cookie), REQUEST);
    reset(&mut bench, &peer);
    assert!(bench.host.stack.accept(listener).is_none());
    assert_eq!(held(&bench), memory);
}

/// RFC 7413 section 5.1: beyond PendingFastOpenRequests the handshake comes first.
#[test]
fn beyond_the_limit_the_handshake_comes_first() {
    let (mut bench, listener, cookie) = ready(2);
    let mut peers: Vec<Peer> = (0..3).map(|n| Peer::new(30_000 + n, modern())).collect();
    served(&mut bench, listener, &mut peers[0], cookie);
    served(&mut bench, listener, &mut peers[1], cookie);
    let start = peers[2].next;
    let answer = open(&mut bench, &mut peers[2], Some(cookie), REQUEST);
    assert_eq!((answer.ack, answer.options.fast_open), (start + 1, None));
    check_ordinary(&mut bench, listener, &mut peers[2]);
    ack(&mut bench, &peers[0]);
    served(&mut bench, listener, &mut Peer::new(30_003, modern()), cookie);
    let counters = counters(&bench);
    assert_eq!((counters.tfo_pending_limited, counters.tfo_cookies_accepted), (1, 3));
}

/// A limit of 0 gives cookies and takes no data.
#[test]
fn a_limit_of_zero_takes_no_data() {
    let (mut bench, listener, cookie) = ready(0);
    let mut peer = Peer::new(30_000, modern());
    open(&mut bench, &mut peer, Some(cookie), REQUEST);
    check_ordinary(&mut bench, listener, &mut peer);
}

/// RFC 7413 section 5.1: a flood with a stolen cookie leaves an ordinary client alone.
#[test]
fn a_flood_of_early_requests_leaves_room_for_others() {
    let (mut bench, listener, cookie) = ready(16);
    for port in 0..2_000 {
        let peer = Peer::new(30_000 + port, modern());
        bench.ask(&syn(&peer, Some(cookie), REQUEST));
    }
    assert_eq!(counters(&bench).tfo_data_accepted, 16);
    let early: Vec<ConnId> = core::iter::from_fn(|| bench.host.stack.accept(listener)).collect();
    assert_eq!(early.len(), 16);
    let mut honest = Peer::new(20_500, modern());
    honest.open(&mut bench).expect("a SYN-ACK");
    honest.send(&mut bench, REQUEST);
    let conn = bench.host.stack.accept(listener).expect("accepted");
    assert_eq!(read(&mut bench, conn), REQUEST);
}

/// A handshake that never ends closes the connection with a reason, and gives everything back.
#[test]
fn a_handshake_that_never_ends_times_out() {
    let (mut bench, listener, cookie) = ready(1);
    let memory = held(&bench);
    let mut peer = Peer::new(30_000, modern());
    let conn = served(&mut bench, listener, &mut peer, cookie);
    write(&mut bench, conn, REPLY);
    let repeated = wait(&mut bench, Duration::from_secs(60));
    assert!(repeated.iter().all(|segment| segment.flags == Flags::SYN | Flags::ACK), "{repeated:?}");
    assert_eq!(repeated.len(), 3);
    assert_eq!(bench.host.stack.state(conn), ConnState::Closed(CloseReason::TimedOut));
    bench.host.stack.close(conn);
    assert_eq!(held(&bench), memory);
}

/// RFC 7413 section 4.1.2: the key changes; the cookie of the last one is good, and is replaced.
#[test]
fn an_old_cookie_is_replaced_and_a_very_old_one_refused() {
    let (mut bench, listener, cookie) = ready(8);
    let later = |bench: &mut Bench| {
        bench.pass(Duration::from_secs(3_600));
        bench.ask(&arp(Operation::REQUEST, PEER4, HOST4));
    };
    later(&mut bench);
    let mut peer = Peer::new(30_000, modern());
    let answer = open(&mut bench, &mut peer, Some(cookie), REQUEST);
    let fresh = answer.options.fast_open.expect("a new cookie");
    assert_ne!(fresh, cookie);
    let conn = bench.host.stack.accept(listener).expect("accepted early");
    assert_eq!(read(&mut bench, conn), REQUEST);
    ack(&mut bench, &peer);
    later(&mut bench);
    served(&mut bench, listener, &mut Peer::new(30_001, modern()), fresh);
    open(&mut bench, &mut Peer::new(30_002, modern()), Some(cookie), REQUEST);
    assert_eq!(counters(&bench).tfo_cookies_rejected, 1);
}

/// The listener goes while a request waits in SYN-RECEIVED: who was accepted stays, who was not is reset.
#[test]
fn a_listener_that_closes_resets_what_nobody_accepted() {
    let (mut bench, listener, cookie) = ready(8);
    let mut kept = Peer::new(30_000, modern());
    let conn = served(&mut bench, listener, &mut kept, cookie);
    let mut waiting = Peer::new(30_001, modern());
    open(&mut bench, &mut waiting, Some(cookie), REQUEST);
    bench.host.stack.close_listener(listener);
    let all = answers(&bench.receive());
    assert_eq!((all.len(), all[0].port), (1, 30_001));
    assert!(all[0].flags.contains(Flags::RST));
    ack(&mut bench, &kept);
    check_state(&bench, conn, State::Established);
    assert_eq!(write(&mut bench, conn, REPLY)[0].payload, REPLY);
}

/// RFC 7413 section 5.1: what was accepted is bounded by the limit alone; a table that is full takes from those that nobody
/// has accepted.
#[test]
fn an_accepted_request_gives_way_to_nobody() {
    let config = StackConfig { max_connections: 2, ..Setup::default().config[0].clone() };
    let mut bench = Bench::new(config);
    bench.receive();
    bench.ask(&arp(Operation::REQUEST, PEER4, HOST4));
    let listener = listen(&mut bench, Some(FastOpen { max_pending: 8 }));
    let cookie = ask_for_cookie(&mut bench, 20_000);
    let mut early = Peer::new(30_000, modern());
    let conn = served(&mut bench, listener, &mut early, cookie);
    Peer::new(30_001, modern()).open(&mut bench).expect("the second slot");
    let mut proven = Peer::new(30_002, modern());
    proven.open(&mut bench).expect("a SYN cookie");
    proven.send(&mut bench, REQUEST);
    let other = bench.host.stack.accept(listener).expect("it showed that it receives");
    assert_eq!(read(&mut bench, other), REQUEST);
    check_state(&bench, conn, State::SynReceived);
    assert_eq!(counters(&bench).tcp_half_open_evicted, 1);
}
