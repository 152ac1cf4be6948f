//! Guessed and forged segments, handshakes that are not, options that lie (RFC 5961, RFC 1337, RFC 6191).

mod common;

use common::frames::*;
use common::peer::{Peer, answers, modern, old};
use common::{Bench, read_all, shown};
use core::time::Duration;
use linerate_transport::{CloseReason, ConnId, ConnState, ListenerId, Transport};
use linerate_wire::arp::Operation;
use linerate_wire::tcp::{Flags, Options, SackBlock, SeqNumber, Timestamps};

const OPEN: ConnState = ConnState::Open { finished: false };

fn connected(options: Options) -> (Bench, Peer, ConnId, ListenerId) {
    let mut bench = Bench::acquainted();
    let listener = bench.host.listen(80);
    let mut peer = Peer::new(20_000, options);
    let conn = peer.connect(&mut bench, listener);
    (bench, peer, conn, listener)
}

#[test]
fn only_the_exact_reset_ends_a_connection() {
    let (mut bench, peer, conn, _) = connected(old());
    for offset in [1u32, 2, 100, 30_000, 65_000] {
        let mut reset = peer.segment(Flags::RST);
        reset.sequence += offset;
        let reply = answers(&bench.ask(&tcp4(reset, &[])));
        assert_eq!(bench.host.stack.state(conn), OPEN);
        assert_eq!((reply[0].flags, reply[0].ack), (Flags::ACK, peer.next), "a challenge, {offset}");
        bench.now += Duration::from_secs(1);
    }
    // Outside the window: not even an answer.
    for offset in [200_000u32, 1 << 30, 0u32.wrapping_sub(1)] {
        let mut reset = peer.segment(Flags::RST);
        reset.sequence += offset;
        assert!(bench.ask(&tcp4(reset, &[])).is_empty());
    }
    let counters = bench.host.stack.counters();
    assert_eq!((counters.drop_tcp_inexact_reset, counters.tcp_challenge_acks), (5, 5));
    bench.ask(&tcp4(peer.segment(Flags::RST), &[]));
    assert_eq!(bench.host.stack.state(conn), ConnState::Closed(CloseReason::Reset));
}

#[test]
fn a_sweep_of_resets_over_all_numbers_needs_the_exact_one() {
    let (mut bench, peer, conn, _) = connected(old());
    // A step of the window, as one who knows everything but the number would try.
    for step in 0..66_000u32 {
        let mut reset = peer.segment(Flags::RST);
        reset.sequence += 7 + step * 65_000;
        bench.feed(&tcp4(reset, &[]));
    }
    assert_eq!(bench.host.stack.state(conn), OPEN);
    let counters = bench.host.stack.counters();
    assert_eq!(counters.drop_tcp_out_of_window + counters.drop_tcp_inexact_reset, 66_000);
}

#[test]
fn a_syn_on_a_connection_is_challenged_wherever_it_lies() {
    let (mut bench, mut peer, conn, _) = connected(old());
    for offset in [0u32, 100, 1 << 30] {
        let mut syn = peer.syn();
        syn.sequence += offset;
        let reply = answers(&bench.ask(&tcp4(syn, &[])));
        assert_eq!((reply[0].flags, reply[0].seq, reply[0].ack), (Flags::ACK, peer.ack, peer.next));
    }
    peer.send(&mut bench, b"still here");
    assert_eq!(bench.host.stack.peek(conn), b"still here");
}

#[test]
fn challenges_are_limited_for_each_connection_alone() {
    let (mut bench, peer, _, listener) = connected(old());
    let mut other = Peer::new(20_001, old());
    other.connect(&mut bench, listener);
    let challenges = |bench: &mut Bench, peer: &Peer, count: usize| {
        let mut reset = peer.segment(Flags::RST);
        reset.sequence += 9;
        (0..count).map(|_| answers(&bench.ask(&tcp4(reset, &[]))).len()).sum::<usize>()
    };
    assert_eq!(challenges(&mut bench, &peer, 500), 10);
    // What was used up there cannot be seen here (CVE-2016-5696).
    assert_eq!(challenges(&mut bench, &other, 500), 10);
    assert_eq!(bench.host.stack.counters().tcp_challenge_acks_limited, 980);
}

#[test]
fn data_with_an_ack_of_the_distant_past_or_of_the_future_is_not_taken() {
    let (mut bench, mut peer, conn, _) = connected(old());
    for offset in [1u32, 100_000, 1 << 30, 0u32.wrapping_sub(9_000_000), 1 << 31] {
        let mut forged = peer.segment(Flags::ACK);
        forged.acknowledgement += offset;
        bench.ask(&tcp4(forged, b"injected"));
        assert_eq!(bench.host.stack.readable(conn), 0, "{offset}");
    }
    assert_eq!(bench.host.stack.counters().drop_tcp_bad_ack, 5);
    peer.send(&mut bench, b"true");
    assert_eq!(bench.host.stack.peek(conn), b"true");
}

#[test]
fn data_that_contradicts_what_was_received_changes_nothing() {
    let (mut bench, mut peer, conn, _) = connected(old());
    peer.send(&mut bench, b"first");
    let mut forged = peer.segment(Flags::ACK);
    forged.sequence -= 5;
    bench.ask(&tcp4(forged, b"wrong!"));
    let mut got = Vec::new();
    read_all(&mut bench.host.stack, conn, &mut got);
    assert_eq!(got, b"first!", "only the byte that is new");
}

/// A connection that we closed first, now in TIME-WAIT.
fn time_wait(options: Options) -> (Bench, Peer, ListenerId) {
    let (mut bench, mut peer, conn, listener) = connected(options);
    bench.host.stack.close(conn);
    end(&mut bench, &mut peer);
    assert_eq!(bench.host.stack.memory().time_wait, 1);
    (bench, peer, listener)
}

/// We have closed a connection: the peer does. The segment is its FIN.
fn end(bench: &mut Bench, peer: &mut Peer) -> Vec<u8> {
    bench.receive();
    peer.ack += 1;
    let fin = tcp4(peer.segment(Flags::FIN | Flags::ACK), &[]);
    peer.next += 1;
    bench.ask(&fin);
    fin
}

/// All share one timer. Each waits for its own time, whoever still has its id, and a FIN that comes again has its own connection wait anew.
#[test]
fn time_wait_lasts_as_long_for_each_of_many() {
    let (mut bench, mut first, conn, listener) = connected(old());
    let mut peers: Vec<Peer> = (1..6).map(|port| Peer::new(20_000 + port, old())).collect();
    let conns: Vec<ConnId> = peers.iter_mut().map(|peer| peer.connect(&mut bench, listener)).collect();
    bench.host.stack.close(conn);
    let fin = end(&mut bench, &mut first);
    let mut begun = vec![bench.now];
    for (number, (peer, conn)) in peers.iter_mut().zip(&conns).enumerate() {
        bench.pass(Duration::from_secs(5));
        // Two keep their ids.
        if number % 2 == 0 {
            bench.host.stack.close(*conn)
        } else {
            bench.host.stack.shutdown(*conn)
        }
        end(&mut bench, peer);
        begun.push(bench.now);
    }
    bench.pass(Duration::from_secs(5));
    assert_eq!(answers(&bench.ask(&fin)).len(), 1, "it is acknowledged again");
    begun.remove(0);
    begun.push(bench.now);
    for (number, begun) in begun.into_iter().enumerate() {
        let almost = begun + Duration::from_millis(59_999);
        bench.pass(almost - bench.now);
        assert_eq!(bench.host.stack.memory().time_wait, 6 - number);
        bench.pass(Duration::from_millis(1));
        assert_eq!(bench.host.stack.memory().time_wait, 5 - number);
    }
    for (number, conn) in conns.into_iter().enumerate() {
        let reason = if number % 2 == 0 { CloseReason::Stale } else { CloseReason::Done };
        assert_eq!(bench.host.stack.state(conn), ConnState::Closed(reason));
    }
}

#[test]
fn a_reset_does_not_end_time_wait() {
    let (mut bench, peer, _) = time_wait(old());
    bench.ask(&tcp4(peer.segment(Flags::RST), &[]));
    // An old duplicate is answered, and the answer's RST changes nothing (RFC 1337).
    let mut duplicate = peer.segment(Flags::ACK);
    duplicate.sequence -= 20;
    let reply = answers(&bench.ask(&tcp4(duplicate, b"old data")));
    assert_eq!((reply.len(), reply[0].flags), (1, Flags::ACK));
    bench.ask(&tcp4(peer.segment(Flags::RST), &[]));
    assert_eq!(bench.host.stack.memory().time_wait, 1);
}

#[test]
fn a_new_syn_takes_the_place_of_time_wait_if_it_is_newer() {
    // RFC 6191 section 2: by the timestamp, whatever the sequence number.
    for (newer, number, opens) in [(true, 0u32, true), (false, 0, false), (false, 100_000, false)] {
        let (mut bench, peer, _) = time_wait(modern());
        let mut again = Peer::new(peer.port, modern());
        let value = if newer { 60_000 } else { 40_000 };
        again.options.timestamps = Some(Timestamps { value, echo: 0 });
        again.next += number;
        let reply = answers(&bench.ask(&tcp4(again.syn(), &[])));
        let opened = reply.first().is_some_and(|reply| reply.flags == Flags::SYN | Flags::ACK);
        assert_eq!(opened, opens, "{newer} {number}");
    }
}

#[test]
fn options_that_make_no_sense_are_skipped() {
    let mut bench = Bench::acquainted();
    bench.host.listen(80);
    let zero_len = [8u8, 0, 0, 0];
    let beyond = [2u8, 40, 5, 180];
    let unknown = [254u8, 4, 1, 2].repeat(10);
    let repeated = [2u8, 4, 2, 0].repeat(10);
    let nops = [1u8; 40];
    let sack = [5u8, 2, 5, 34, 0, 0, 0, 1];
    for (number, raw) in
        [&zero_len[..], &beyond[..], &unknown[..], &repeated[..], &nops[..], &sack[..]].iter().enumerate()
    {
        let port = 21_000 + number as u16;
        let frame = with_options(Peer::new(port, Options::default()), raw);
        let reply = answers(&bench.ask(&frame));
        assert_eq!(reply[0].flags, Flags::SYN | Flags::ACK, "{raw:?}");
        assert!(reply[0].options.timestamps.is_none() && !reply[0].options.sack_permitted);
    }
}

/// A SYN with these bytes for options.
fn with_options(peer: Peer, raw: &[u8]) -> Vec<u8> {
    let mut segment = vec![0; 20 + raw.len()];
    peer.syn().emit(&mut segment).unwrap();
    segment[12] = ((segment.len() / 4) as u8) << 4;
    segment[20..].copy_from_slice(raw);
    let header =
        linerate_wire::ipv4::Builder::new(PEER4, HOST4, linerate_wire::ip::Protocol::TCP, segment.len());
    let mut sum = header.pseudo_header();
    segment[16..18].fill(0);
    sum.add(&segment);
    linerate_wire::tcp::set_checksum(&mut segment, sum.finish()).unwrap();
    frame4(header, &segment)
}

#[test]
fn sack_blocks_that_make_no_sense_change_nothing() {
    let (mut bench, mut peer, conn, _) = connected(modern());
    bench.host.stack.write(conn, &[7; 10_000]).unwrap();
    bench.receive();
    let base = peer.ack;
    let nonsense =
        [(0u32, 0u32), (5_000, 4_000), (20_000, 30_000), (1 << 31, 1), (0u32.wrapping_sub(9_000), 10)];
    for (left, right) in nonsense {
        let mut ack = peer.segment(Flags::ACK);
        assert!(ack.options.sack_blocks.push(SackBlock { left: base + left, right: base + right }));
        bench.ask(&tcp4(ack, &[]));
    }
    let info = bench.host.stack.info(conn).unwrap();
    assert_eq!((info.retransmits, info.in_flight), (0, 10_000), "{:?}", shown(bench.host.stack.counters()));
    peer.ack += 10_000;
    peer.send(&mut bench, &[]);
    assert_eq!(bench.host.stack.info(conn).unwrap().bytes_acked, 10_000);
}

#[test]
fn a_peer_that_never_sends_its_fin_is_given_up() {
    let (mut bench, mut peer, conn, _) = connected(old());
    bench.host.stack.close(conn);
    bench.receive();
    peer.ack += 1;
    peer.send(&mut bench, &[]);
    for _ in 0..50 {
        bench.pass(Duration::from_secs(1));
        bench.ask(&arp(Operation::REQUEST, PEER4, HOST4));
        // It goes on sending, and stays in FIN-WAIT-2 for it no longer.
        peer.send(&mut bench, b"more");
    }
    assert_eq!(bench.host.stack.memory().connections, 1);
    bench.pass(Duration::from_secs(15));
    assert_eq!(bench.host.stack.memory().connections, 0);
}

#[test]
fn who_scans_hears_at_most_half_of_the_resets() {
    let mut bench = Bench::acquainted();
    for port in 0..200 {
        let mut stray = Peer::new(20_000 + port, old());
        stray.ack = SeqNumber(9);
        bench.ask(&tcp4(stray.segment(Flags::ACK), &[]));
    }
    let counters = bench.host.stack.counters();
    assert_eq!((counters.tcp_resets_out, counters.drop_reset_limited), (50, 150));
}
