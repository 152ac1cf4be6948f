//! ARP, neighbour discovery, forged addresses and fragments: what a neighbour can do to a host.

mod common;

use common::frames::*;
use common::peer::{Peer, answers, modern, old};
use common::{Bench, shown};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use linerate_nic::MacAddr;
use linerate_transport::{ListenerId, Transport};
use linerate_wire::arp::{self, Operation};
use linerate_wire::ethernet::EtherType;
use linerate_wire::ip::Protocol;
use linerate_wire::tcp::{Flags, SeqNumber};
use linerate_wire::{ipv4, ndp};

const OTHER_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 0x66]);

fn listening() -> (Bench, ListenerId) {
    let mut bench = Bench::acquainted();
    let listener = bench.host.listen(80);
    (bench, listener)
}

/// An ARP packet from a station of the test's choice, in a frame from that station.
fn arp_from(operation: Operation, mac: MacAddr, ip: Ipv4Addr) -> Vec<u8> {
    let packet = arp::Builder {
        operation,
        sender_mac: mac,
        sender_ip: ip,
        target_mac: MacAddr([2, 0, 0, 0, 0, 1]),
        target_ip: HOST4,
    };
    let mut bytes = [0; arp::PACKET_LEN];
    packet.emit(&mut bytes).unwrap();
    let mut frame = ethernet(MacAddr::BROADCAST, EtherType::ARP, &bytes);
    frame[6..12].copy_from_slice(&mac.0);
    frame
}

/// Where the host's frames with TCP go.
fn destinations(frames: &[Vec<u8>]) -> Vec<[u8; 6]> {
    let is_tcp = |frame: &&Vec<u8>| !answers(core::slice::from_ref(frame)).is_empty();
    frames.iter().filter(is_tcp).map(|frame| frame[..6].try_into().unwrap()).collect()
}

#[test]
fn a_forged_arp_reply_does_not_divert_a_connection() {
    let (mut bench, listener) = listening();
    let mut peer = Peer::new(20_000, old());
    let conn = peer.connect(&mut bench, listener);
    for operation in [Operation::REPLY, Operation::REQUEST] {
        bench.ask(&arp_from(operation, OTHER_MAC, PEER4));
        bench.host.stack.write(conn, b"for the peer").unwrap();
        let frames = bench.receive();
        assert_eq!(destinations(&frames), [[2, 0, 0, 0, 0, 2]]);
        let asked: Vec<_> = bench.pass(Duration::from_millis(10));
        drop(asked);
        // The peer answers the question that the forgery caused, and acknowledges.
        bench.ask(&arp(Operation::REPLY, PEER4, HOST4));
        peer.ack += 12;
        peer.send(&mut bench, &[]);
    }
    assert!(bench.host.stack.counters().neighbors_disputed >= 1);
}

#[test]
fn an_arp_flood_leaves_known_neighbours_alone() {
    let (mut bench, listener) = listening();
    let mut peer = Peer::new(20_000, old());
    let conn = peer.connect(&mut bench, listener);
    for round in 0..200u32 {
        for n in 0..100 {
            let ip = Ipv4Addr::new(10, 0, 0, 10 + ((round * 100 + n) % 240) as u8);
            bench.feed(&arp_from(Operation::REQUEST, OTHER_MAC, ip));
        }
        bench.receive();
        bench.now += Duration::from_millis(10);
        bench.host.stack.write(conn, b"x").unwrap();
        let frames = bench.receive();
        assert_eq!(destinations(&frames), [[2, 0, 0, 0, 0, 2]], "{round}");
        peer.ack += 1;
        peer.send(&mut bench, &[]);
    }
    let counters = bench.host.stack.counters();
    assert_eq!((counters.arp_in, counters.neighbors_unreachable), (20_001, 0), "{:?}", shown(counters));
}

#[test]
fn a_flood_of_solicitations_leaves_known_neighbours_alone() {
    let (mut bench, listener) = listening();
    let mut peer = Peer::new(20_000, old());
    let conn = peer.connect(&mut bench, listener);
    for round in 0..100u32 {
        for n in 0..100 {
            let source = Ipv6Addr::from(HOST6.to_bits() + 1_000 + u128::from(round * 100 + n));
            let option = [ndp::NdpOption::SourceLinkLayer(OTHER_MAC)];
            let message = ndp::Message::NeighbourSolicitation { target: HOST6 };
            bench.feed(&ndp(message, &option, source, HOST6));
        }
        bench.receive();
        bench.now += Duration::from_millis(10);
        bench.host.stack.write(conn, b"x").unwrap();
        assert_eq!(destinations(&bench.receive()), [[2, 0, 0, 0, 0, 2]], "{round}");
        peer.ack += 1;
        peer.send(&mut bench, &[]);
    }
    assert!(bench.host.stack.counters().ndp_in >= 10_000);
    assert_eq!(bench.host.stack.counters().neighbors_unreachable, 0);
}

#[test]
fn land_and_martian_sources_are_dropped_without_an_answer() {
    let (mut bench, _) = listening();
    let syn = Peer::new(80, modern()).syn();
    bench.receive();
    assert!(bench.ask(&tcp4_from(HOST4, syn, &[])).is_empty());
    assert_eq!(bench.host.stack.counters().drop_land, 1);
    let martians: [[u8; 4]; 8] = [
        [127, 0, 0, 1],
        [0, 0, 0, 0],
        [0, 1, 2, 3],
        [224, 0, 0, 1],
        [239, 255, 255, 250],
        [240, 0, 0, 1],
        [255, 255, 255, 255],
        [10, 0, 0, 255],
    ];
    for martian in martians {
        assert!(bench.ask(&tcp4_from(martian.into(), syn, &[])).is_empty(), "{martian:?}");
    }
    assert_eq!(bench.host.stack.counters().drop_martian_source, 8);
    assert_eq!(bench.host.stack.memory().connections, 0);
}

#[test]
fn a_syn_to_a_broadcast_address_is_dropped() {
    let (mut bench, _) = listening();
    let mut frame = tcp4(Peer::new(20_000, modern()).syn(), &[]);
    frame[..6].copy_from_slice(&[0xff; 6]);
    assert!(bench.ask(&frame).is_empty());
    assert_eq!(bench.host.stack.counters().drop_tcp_broadcast, 1);
}

/// A fragment of a TCP or other datagram from `source`.
fn fragment(source: Ipv4Addr, id: u16, offset: u16, more: bool, payload: &[u8]) -> Vec<u8> {
    let header = ipv4::Builder {
        identification: id,
        fragment_offset: offset,
        more_fragments: more,
        dont_fragment: false,
        ..ipv4::Builder::new(source, HOST4, Protocol::ICMPV4, 0)
    };
    frame4(header, payload)
}

#[test]
fn fragments_of_one_source_do_not_displace_those_of_another() {
    let (mut bench, _) = listening();
    let echo = echo4(&[7; 2_000]);
    let attacker = Ipv4Addr::new(10, 0, 0, 66);
    for round in 0..20u16 {
        bench.ask(&fragment(PEER4, round, 0, true, &echo[..1_000]));
        for n in 0..500 {
            bench.feed(&fragment(attacker, round * 500 + n, 0, true, &[0; 64]));
        }
        let answers = bench.ask(&fragment(PEER4, round, 1_000, false, &echo[1_000..]));
        assert!(!payloads(&answers, Protocol::ICMPV4).is_empty(), "{round}");
    }
    let counters = bench.host.stack.counters();
    assert_eq!(counters.datagrams_reassembled, 20, "{:?}", shown(counters));
    assert!(counters.drop_reassembly_full > 9_000);
}

#[test]
fn a_connection_to_itself_is_refused() {
    let (mut bench, _) = listening();
    for to in ["10.0.0.1:80", "127.0.0.1:80", "[fd00::1]:80", "[::1]:80"] {
        let made = bench.host.stack.connect(common::OWNER, None, to.parse().unwrap(), &Default::default());
        assert!(made.is_err(), "{to}");
    }
}

#[test]
fn a_stray_synack_to_a_listener_is_reset_and_opens_nothing() {
    let (mut bench, listener) = listening();
    let mut peer = Peer::new(20_000, old());
    peer.ack = SeqNumber(5);
    let segment = peer.segment(Flags::SYN | Flags::ACK);
    let reply = answers(&bench.ask(&tcp4(segment, &[])));
    assert_eq!((reply[0].flags, reply[0].seq), (Flags::RST, SeqNumber(5)));
    assert_eq!(bench.host.stack.accept(listener), None);
    assert!(bench.host.stack.addresses().any(|own| own.address() == IpAddr::V4(HOST4)));
}
