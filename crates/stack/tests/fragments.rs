//! Fragments written by hand: what is answered about them, and what of them counts for the whole.

mod common;

use common::frames::*;
use common::{Bench, OWNER};
use core::net::{Ipv4Addr, SocketAddr};
use core::ops::Range;
use core::time::Duration;
use linerate_nic::MacAddr;
use linerate_stack::Counters;
use linerate_transport::{ListenAddr, Transport as _};
use linerate_wire::ip::{Ecn, Protocol};
use linerate_wire::ndp::{self, Message, NdpOption};
use linerate_wire::{icmpv4, ipv4, ipv6, tcp};

/// Bytes `range` of `whole` in a frame.
fn piece4(header: ipv4::Builder<'_>, whole: &[u8], range: Range<usize>) -> Vec<u8> {
    let header = ipv4::Builder {
        fragment_offset: range.start as u16,
        more_fragments: range.end < whole.len(),
        ..header
    };
    frame4(header, &whole[range])
}

fn piece6(header: ipv6::Builder, kind: Protocol, whole: &[u8], range: Range<usize>) -> Vec<u8> {
    let fragment = ipv6::Fragment {
        next_header: kind,
        offset: range.start as u16,
        more: range.end < whole.len(),
        identification: 7,
    };
    let mut payload = vec![0; ipv6::Fragment::LEN];
    fragment.emit(&mut payload).unwrap();
    payload.extend_from_slice(&whole[range]);
    frame6(ipv6::Builder { next_header: Protocol::FRAGMENT, ..header }, &payload)
}

/// The same frame to all stations.
fn to_all(mut frame: Vec<u8>) -> Vec<u8> {
    frame[..6].copy_from_slice(&MacAddr::BROADCAST.0);
    frame
}

/// RFC 1122 section 3.2.2, RFC 4443 section 2.4(e).
#[test]
fn no_error_is_sent_about_fragments_of_which_one_went_to_a_group() {
    let whole = echo4(&[7; 100]);
    let piece = |range| piece4(to_host4(Protocol::ICMPV4), &whole, range);
    let first =
        |destination| piece4(ipv4::Builder { destination, ..to_host4(Protocol::ICMPV4) }, &whole, 0..64);
    let first6 = |destination| {
        piece6(ipv6::Builder { destination, ..to_host6(Protocol::ICMPV6) }, Protocol(99), &whole, 0..64)
    };
    let check = |frames: &[Vec<u8>], errors| {
        let mut bench = Bench::acquainted();
        frames.iter().for_each(|frame| assert!(bench.ask(frame).is_empty()));
        bench.pass(Duration::from_secs(70));
        let counters = bench.host.stack.counters();
        assert_eq!((counters.drop_reassembly_timeout, counters.icmp_errors_out), (1, errors), "{frames:?}");
    };
    check(&[first(HOST4)], 1);
    check(&[first6(HOST6)], 1);
    check(&[first(Ipv4Addr::new(10, 0, 0, 255))], 0);
    check(&[first6(ipv6::ALL_NODES)], 0);
    check(&[to_all(first(HOST4))], 0);
    check(&[to_all(first6(HOST6))], 0);
    check(&[piece(0..32), to_all(piece(32..64))], 0);
    // Nor about the whole.
    let datagram = udp4(1_000, 2_000, &[7; 100]);
    let piece = |range| piece4(to_host4(Protocol::UDP), &datagram, range);
    let mut bench = Bench::acquainted();
    bench.ask(&to_all(piece(0..64)));
    assert!(bench.ask(&piece(64..108)).is_empty());
    assert_eq!(bench.host.stack.counters().drop_udp_port, 1);
}

#[test]
fn neighbour_discovery_in_fragments_is_ignored() {
    let message = Message::NeighbourSolicitation { target: HOST6 };
    let options = [NdpOption::SourceLinkLayer(PEER_MAC)];
    let mut whole = vec![0; message.emitted_len(&options)];
    message.emit(&options, PEER6, HOST6, &mut whole).unwrap();
    let header = ipv6::Builder { hop_limit: ndp::HOP_LIMIT, ..to_host6(Protocol::ICMPV6) };
    let piece = |range| piece6(header, Protocol::ICMPV6, &whole, range);
    let check = |frames: &[Vec<u8>]| {
        let mut bench = Bench::acquainted();
        let count = |c: &Counters| (c.ndp_in, c.drop_ndp_invalid);
        let (taken, invalid) = count(bench.host.stack.counters());
        frames.iter().for_each(|frame| assert!(bench.ask(frame).is_empty()));
        assert_eq!(count(bench.host.stack.counters()), (taken, invalid + 1));
    };
    // An atomic fragment; two; and behind another header in them.
    check(&[piece(0..whole.len())]);
    check(&[piece(0..16), piece(16..whole.len())]);
    let options = [&[Protocol::ICMPV6.0, 0, 1, 4, 0, 0, 0, 0][..], &whole].concat();
    let piece = |range| piece6(header, Protocol::DESTINATION_OPTIONS, &options, range);
    check(&[piece(0..options.len())]);
    check(&[piece(0..24), piece(24..options.len())]);
}

/// RFC 792 and RFC 4443 section 3.3: who sent it looks for what it sent.
#[test]
fn the_packet_that_is_quoted_is_the_one_that_came() {
    let whole = echo4(&[7; 200]);
    let first = piece4(to_host4(Protocol::ICMPV4), &whole, 0..64);
    let second = piece4(to_host4(Protocol::ICMPV4), &whole, 64..128);
    let header = || ipv6::Builder { flow_label: 0x1_2345, ..to_host6(Protocol::ICMPV6) };
    let first6 = piece6(header(), Protocol(99), &whole, 0..64);
    let second6 = piece6(header(), Protocol(99), &whole, 64..128);
    let options = ipv4::Builder { options: &[1, 1, 1, 0], ..to_host4(Protocol::ICMPV4) };
    let with_options = piece4(options, &whole, 0..64);
    let check = |frames: &[&Vec<u8>]| {
        let mut bench = Bench::acquainted();
        frames.iter().for_each(|frame| assert!(bench.ask(frame).is_empty()));
        let sent: Vec<_> = bench.pass(Duration::from_secs(70)).into_iter().map(|(_, frame)| frame).collect();
        let mut errors = [payloads(&sent, Protocol::ICMPV4), payloads(&sent, Protocol::ICMPV6)].concat();
        errors.retain(|message| message[..2] == [11, 1] || message[..2] == [3, 1]);
        let [error] = &errors[..] else { panic!("{errors:?}") };
        error[8..].to_vec()
    };
    assert_eq!(check(&[&first]), first[14..]);
    assert_eq!(check(&[&second, &first]), first[14..]);
    assert_eq!(check(&[&first6]), first6[14..]);
    assert_eq!(check(&[&second6, &first6]), first6[14..]);
    // Options are not kept.
    assert_eq!(check(&[&with_options]), first[14..]);
}

/// The only IPv4 packet among frames.
fn only4(frames: &[Vec<u8>]) -> ipv4::Header<'_> {
    let [frame] = frames else { panic!("{frames:?}") };
    ipv4::Header::parse(&frame[14..]).unwrap()
}

/// RFC 6864 section 4.
#[test]
fn what_routers_may_fragment_has_an_identification_of_its_own() {
    let mut bench = Bench::acquainted();
    let mut seen = Vec::new();
    for _ in 0..10 {
        let answers = bench.ask(&frame4(to_host4(Protocol::ICMPV4), &echo4(b"x")));
        let answer = only4(&answers);
        assert!(!answer.dont_fragment() && !seen.contains(&answer.identification()));
        seen.push(answer.identification());
    }
    let syn =
        tcp::Builder { flags: tcp::Flags::SYN, source_port: 5, destination_port: 6, ..Default::default() };
    assert!(only4(&bench.ask(&tcp4(syn, &[]))).dont_fragment(), "a reset");
    let addr = ListenAddr { ip: None, port: 7 };
    let socket = bench.host.stack.udp_bind(OWNER, addr, 1 << 16).unwrap();
    let send = |bench: &mut Bench| {
        bench.host.stack.udp_send(socket, None, (PEER4, 9).into(), &[7; 1_000]).unwrap();
        bench.receive()
    };
    let datagram = send(&mut bench);
    assert!(only4(&datagram).dont_fragment());
    // A router says what it cannot carry: from then on it comes in fragments, which it may cut again.
    let message = icmpv4::Message::DestinationUnreachable {
        code: icmpv4::UnreachableCode::FRAGMENTATION_NEEDED,
        next_hop_mtu: 600,
        quoted: icmpv4::Quoted(&datagram[0][14..14 + 28]),
    };
    let mut bytes = vec![0; message.emitted_len()];
    message.emit(&mut bytes).unwrap();
    bench.ask(&frame4(to_host4(Protocol::ICMPV4), &bytes));
    let pieces = send(&mut bench);
    assert_eq!(pieces.len(), 2);
    for piece in &pieces {
        let header = ipv4::Header::parse(&piece[14..]).unwrap();
        assert!(header.is_fragment() && !header.dont_fragment() && header.total_len() <= 600);
    }
}

/// RFC 4443 section 2.4(e.1) and (e.2): also where what is wrong stands before it.
#[test]
fn no_error_answers_an_error_behind_other_headers() {
    let options = |next: Protocol, option: u8| [next.0, 0, option, 4, 0, 0, 0, 0];
    let routing = |next: Protocol| [next.0, 0, 0, 1, 0, 0, 0, 0];
    let fragment = |next: Protocol, low: u8| [next.0, 0, 0, low, 0, 0, 0, 7];
    let icmp = Protocol::ICMPV6;
    let check = |first: Protocol, headers: &[[u8; 8]], kind: u8, errors| {
        let mut bench = Bench::acquainted();
        let payload = [headers.as_flattened(), &[kind; 44]].concat();
        bench.feed(&frame6(to_host6(first), &payload));
        let sent = bench.host.stack.counters().icmp_errors_out;
        assert_eq!(sent, errors, "{first:?} {headers:?} {kind}");
    };
    for (kind, errors) in [(1, 0), (4, 0), (100, 0), (137, 0), (128, 1), (200, 1)] {
        // An option that is to be reported, a routing header with segments left, a length that no fragment may have.
        check(Protocol::DESTINATION_OPTIONS, &[options(icmp, 0x80)], kind, errors);
        check(Protocol::ROUTING, &[routing(icmp)], kind, errors);
        check(Protocol::FRAGMENT, &[fragment(icmp, 1)], kind, errors);
        let behind = [options(Protocol::ROUTING, 1), routing(icmp)];
        check(Protocol::DESTINATION_OPTIONS, &behind, kind, errors);
        let behind = [fragment(Protocol::DESTINATION_OPTIONS, 0), options(icmp, 0x80)];
        check(Protocol::FRAGMENT, &behind, kind, errors);
        let behind = [fragment(Protocol::DESTINATION_OPTIONS, 1), options(icmp, 1)];
        check(Protocol::FRAGMENT, &behind, kind, errors);
    }
    // What is not there cannot be an error.
    check(Protocol::ROUTING, &[routing(Protocol(99))], 1, 1);
}

#[test]
fn datagrams_and_their_fragments_carry_the_type_of_service_of_their_socket() {
    let mut bench = Bench::acquainted();
    let bind = |bench: &mut Bench, port| {
        bench.host.stack.udp_bind(OWNER, ListenAddr { ip: None, port }, 1 << 16).unwrap()
    };
    let (socket, other) = (bind(&mut bench, 7), bind(&mut bench, 8));
    let check = |bench: &mut Bench, from, dscp| {
        for remote in [(PEER4, 9).into(), (PEER6, 9).into()] {
            for (len, frames) in [(100, 1), (2_000, 2)] {
                bench.host.stack.udp_send(from, None, remote, &vec![7; len]).unwrap();
                let sent = bench.receive();
                assert_eq!(sent.len(), frames);
                for frame in &sent {
                    let (found, ecn) = match remote {
                        SocketAddr::V4(_) => {
                            let header = ipv4::Header::parse(&frame[14..]).unwrap();
                            (header.dscp(), header.ecn())
                        }
                        SocketAddr::V6(_) => {
                            let header = ipv6::Header::parse(&frame[14..]).unwrap();
                            (header.dscp(), header.ecn())
                        }
                    };
                    assert_eq!((found, ecn), (dscp, Ecn::NotCapable), "{remote} {len}");
                }
            }
        }
    };
    check(&mut bench, socket, 0);
    // The bits of ECN are not for sockets to set.
    bench.host.stack.udp_set_tos(socket, 0xbb);
    check(&mut bench, socket, 46);
    check(&mut bench, other, 0);
    bench.host.stack.udp_set_tos(socket, 0);
    check(&mut bench, socket, 0);
}
