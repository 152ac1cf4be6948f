//! ARP, neighbour discovery, ICMP and fragments, against frames written by hand.

mod common;

use common::frames::*;
use common::peer::{Peer, answers, modern};
use common::{Bench, Setup, World, file_bytes};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use linerate_nic::MacAddr;
use linerate_stack::{Counters, StackConfig};
use linerate_transport::{ConnState, ListenAddr, Payload, Transport, UdpSendError};
use linerate_wire::arp::Operation;
use linerate_wire::ethernet::EtherType;
use linerate_wire::ip::Protocol;
use linerate_wire::ndp::{Message, NdpOption};
use linerate_wire::vlan::{Tag, Tags};
use linerate_wire::{checksum, ethernet, icmpv4, icmpv6, ipv4, ipv6};

/// Sends a frame that must be dropped in silence, for the reason that `counter` counts.
fn check_dropped(bench: &mut Bench, frame: &[u8], counter: fn(&Counters) -> u64) {
    let before = counter(bench.host.stack.counters());
    bench.feed(frame);
    let answers = bench.receive();
    assert_eq!(answers.len(), 0, "{:?}", answers.iter().map(|frame| see(frame)).collect::<Vec<_>>());
    let counters = bench.host.stack.counters();
    assert_eq!(counter(counters), before + 1, "{:?}", common::shown(counters));
}

#[test]
fn addresses_are_announced_and_asked_for() {
    let mut bench = Bench::new(Setup::default().config[0].clone());
    let start = bench.receive();
    assert!(start.iter().any(|frame| see(frame) == Seen::Arp(Operation::REQUEST, HOST4, HOST4)));
    let answers = bench.ask(&arp(Operation::REQUEST, PEER4, HOST4));
    assert_eq!(see(&answers[0]), Seen::Arp(Operation::REPLY, HOST4, PEER4));
    // Who asks is known from now on: no question before an answer to it.
    let answers = bench.ask(&frame4(to_host4(Protocol::ICMPV4), &echo4(b"x")));
    assert_eq!(payloads(&answers, Protocol::ICMPV4).len(), 1);
    // For an address that is not ours there is no answer; for a packet that speaks for others neither.
    assert!(bench.ask(&arp(Operation::REQUEST, PEER4, Ipv4Addr::new(10, 0, 0, 77))).is_empty());
    let mut forged = arp(Operation::REQUEST, PEER4, HOST4);
    forged[22] ^= 0x10;
    check_dropped(&mut bench, &forged, |c| c.drop_arp_malformed);
    // A claim to our address is answered with an announcement.
    let answers = bench.ask(&arp(Operation::REPLY, HOST4, HOST4));
    assert_eq!(see(&answers[0]), Seen::Arp(Operation::REQUEST, HOST4, HOST4));
    assert_eq!(bench.host.stack.counters().arp_conflicts, 1);
}

#[test]
fn neighbours_are_solicited_and_answered() {
    let mut bench = Bench::new(Setup::default().config[0].clone());
    bench.receive();
    let message = Message::NeighbourSolicitation { target: HOST6 };
    let option = [NdpOption::SourceLinkLayer(PEER_MAC)];
    let group = ipv6::solicited_node(HOST6);
    let answers = bench.ask(&ndp(message, &option, PEER6, group));
    let [answer] = &payloads(&answers, Protocol::ICMPV6)[..] else { panic!("{answers:?}") };
    assert!(icmpv6::verify_checksum(HOST6, PEER6, answer));
    assert_eq!((answer[0], &answer[8..24]), (136, &HOST6.octets()[..]));
    // A probe by somebody who wants our address: told to everybody.
    let answers = bench.ask(&ndp(message, &[], Ipv6Addr::UNSPECIFIED, group));
    let Seen::V6(_, to, _) = see(&answers[0]) else { panic!() };
    assert_eq!(to, ipv6::ALL_NODES);
    // A router away: hop limit below 255.
    let mut far = ndp(message, &option, PEER6, group);
    far[14 + 7] = 254;
    check_dropped(&mut bench, &far, |c| c.drop_ndp_invalid);
}

#[test]
fn groups_are_reported_to_who_asks() {
    let mut bench = Bench::new(Setup::default().config[0].clone());
    let reports = |frames: &[Vec<u8>]| {
        let mut reports = payloads(frames, Protocol::HOP_BY_HOP);
        reports.iter_mut().for_each(|report| drop(report.drain(..8)));
        assert!(reports.iter().all(|report| report[0] == 143 && report.len() == 28));
        reports.iter().map(|report| (report[8], report[12..].to_vec())).collect::<Vec<_>>()
    };
    let group = ipv6::solicited_node(HOST6).octets().to_vec();
    assert!(reports(&bench.receive()).contains(&(4, group.clone())));
    let message = icmpv6::Message::Other { kind: 130, code: 0, body: &[0; 24] };
    let router: Ipv6Addr = "fe80::99".parse().unwrap();
    let mut bytes = vec![0; message.emitted_len()];
    message.emit(router, ipv6::ALL_NODES, &mut bytes).unwrap();
    let query = |source, hop_limit| {
        let header =
            ipv6::Builder { hop_limit, ..ipv6::Builder::new(source, ipv6::ALL_NODES, Protocol::ICMPV6, 0) };
        frame6(header, &bytes)
    };
    bench.pass(Duration::from_secs(5));
    let answers = reports(&bench.ask(&query(router, 1)));
    assert!(answers.contains(&(2, group)) && answers.len() == 2, "{answers:?}");
    check_dropped(&mut bench, &query(router, 64), |c| c.drop_icmp_type);
    bench.ask(&query(router, 1));
    check_dropped(&mut bench, &query(router, 1), |c| c.drop_icmp_type);
}

#[test]
fn pings_are_answered_with_their_own_bytes() {
    let mut bench = Bench::acquainted();
    for len in [0, 1, 56, 1_400] {
        let data = file_bytes(3, len);
        let answers = bench.ask(&frame4(to_host4(Protocol::ICMPV4), &echo4(&data)));
        let [answer] = &payloads(&answers, Protocol::ICMPV4)[..] else { panic!("{len}") };
        assert!(icmpv4::verify_checksum(answer));
        assert_eq!((answer[0], &answer[4..8], &answer[8..]), (0, &[0, 7, 0, 9][..], &data[..]));
        for to in [HOST6, ipv6::ALL_NODES] {
            let header = ipv6::Builder { destination: to, ..to_host6(Protocol::ICMPV6) };
            let answers = bench.ask(&frame6(header, &echo6(to, &data)));
            let [answer] = &payloads(&answers, Protocol::ICMPV6)[..] else { panic!("{len} {to}") };
            assert!(icmpv6::verify_checksum(HOST6, PEER6, answer), "{len} {to}");
            assert_eq!((answer[0], &answer[8..]), (129, &data[..]));
        }
    }
    assert_eq!(bench.host.stack.counters().echo_replies, 12);
    // Nothing but zeros: of a sum of them, the one complement that is not zero is right (RFC 1071).
    for len in [0, 1, 56] {
        let message = [&[8, 0, 0xf7, 0xff, 0, 0, 0, 0][..], &vec![0; len]].concat();
        let answers = bench.ask(&frame4(to_host4(Protocol::ICMPV4), &message));
        let [answer] = &payloads(&answers, Protocol::ICMPV4)[..] else { panic!("{len}") };
        assert_eq!((&answer[..4], answer.len()), (&[0, 0, 0xff, 0xff][..], 8 + len));
    }
    let mut broken = frame4(to_host4(Protocol::ICMPV4), &echo4(b"broken"));
    *broken.last_mut().unwrap() ^= 1;
    check_dropped(&mut bench, &broken, |c| c.drop_icmp_checksum);
    let all = ipv4::Builder { destination: Ipv4Addr::new(10, 0, 0, 255), ..to_host4(Protocol::ICMPV4) };
    check_dropped(&mut bench, &frame4(all, &echo4(b"all")), |c| c.drop_icmp_broadcast);
}

#[test]
fn a_ping_with_a_code_gets_it_back() {
    let mut bench = Bench::acquainted();
    let with_code = |mut message: Vec<u8>| {
        message[1] = 9;
        // The code is the low byte of the first word.
        let sum = u16::from_be_bytes([message[2], message[3]]);
        message[2..4].copy_from_slice(&checksum::update(sum, 0, 9).to_be_bytes());
        message
    };
    let answers = bench.ask(&frame4(to_host4(Protocol::ICMPV4), &with_code(echo4(b"code"))));
    let [answer] = &payloads(&answers, Protocol::ICMPV4)[..] else { panic!("no answer to version 4") };
    assert!(icmpv4::verify_checksum(answer));
    assert_eq!((&answer[..2], &answer[8..]), (&[0, 9][..], &b"code"[..]));
    let answers = bench.ask(&frame6(to_host6(Protocol::ICMPV6), &with_code(echo6(HOST6, b"code"))));
    let [answer] = &payloads(&answers, Protocol::ICMPV6)[..] else { panic!("no answer to version 6") };
    assert!(icmpv6::verify_checksum(HOST6, PEER6, answer));
    assert_eq!((&answer[..2], &answer[8..]), (&[129, 9][..], &b"code"[..]));
}

#[test]
fn packets_that_nobody_should_send_are_dropped() {
    let mut bench = Bench::acquainted();
    let echo = echo4(b"x");
    let from = |source: [u8; 4]| {
        frame4(ipv4::Builder { source: source.into(), ..to_host4(Protocol::ICMPV4) }, &echo4(b"x"))
    };
    check_dropped(&mut bench, &from([10, 0, 0, 1]), |c| c.drop_land);
    check_dropped(&mut bench, &from([127, 0, 0, 1]), |c| c.drop_martian_source);
    check_dropped(&mut bench, &from([224, 0, 0, 5]), |c| c.drop_martian_source);
    check_dropped(&mut bench, &from([10, 0, 0, 255]), |c| c.drop_martian_source);
    let elsewhere = ipv4::Builder { destination: [10, 0, 0, 3].into(), ..to_host4(Protocol::ICMPV4) };
    check_dropped(&mut bench, &frame4(elsewhere, &echo), |c| c.drop_not_our_address);
    let routed = ipv4::Builder { options: &[131, 7, 4, 1, 2, 3, 4], ..to_host4(Protocol::ICMPV4) };
    check_dropped(&mut bench, &frame4(routed, &echo), |c| c.drop_ipv4_source_route);
    let mut broken = frame4(to_host4(Protocol::ICMPV4), &echo);
    broken[14 + 8] ^= 1;
    check_dropped(&mut bench, &broken, |c| c.drop_ipv4_checksum);
    let mapped = ipv6::Builder { source: PEER4.to_ipv6_mapped(), ..to_host6(Protocol::ICMPV6) };
    check_dropped(&mut bench, &frame6(mapped, &echo), |c| c.drop_martian_source);
    let mut other = frame4(to_host4(Protocol::ICMPV4), &echo);
    other[5] = 0x77;
    check_dropped(&mut bench, &other, |c| c.drop_ethernet_not_for_us);
    check_dropped(&mut bench, &ethernet(HOST_MAC, EtherType(0x88cc), &[0; 46]), |c| c.drop_ethertype);
    check_dropped(&mut bench, &[0; 13], |c| c.drop_ethernet_malformed);
    // A routing header with segments left, and a type-0 one: refused with the place of the fault.
    let answers = bench.ask(&frame6(to_host6(Protocol::ROUTING), &[58, 0, 0, 1, 0, 0, 0, 0, 128, 0]));
    let [problem] = &payloads(&answers, Protocol::ICMPV6)[..] else { panic!() };
    assert_eq!((problem[0], problem[1], &problem[4..8]), (4, 0, &[0, 0, 0, 42][..]));
}

#[test]
fn unknown_protocols_and_ports_are_reported_at_a_limited_rate() {
    let mut bench = Bench::acquainted();
    let answers = bench.ask(&frame4(to_host4(Protocol(99)), b"????????"));
    let [error] = &payloads(&answers, Protocol::ICMPV4)[..] else { panic!() };
    assert_eq!((error[0], error[1]), (3, 2));
    let datagram = frame4(to_host4(Protocol::UDP), &udp4(1_000, 2_000, &[7; 1_000]));
    let answers = bench.ask(&datagram);
    let [error] = &payloads(&answers, Protocol::ICMPV4)[..] else { panic!() };
    assert_eq!((error[0], error[1], error.len()), (3, 3, 556), "576 bytes with the IP header");
    assert!(icmpv4::verify_checksum(error));
    assert_eq!(error[8..], datagram[14..14 + 548]);
    let answers = bench.ask(&frame6(to_host6(Protocol(99)), b"????????"));
    let [problem] = &payloads(&answers, Protocol::ICMPV6)[..] else { panic!() };
    assert_eq!((problem[0], problem[1], &problem[4..8]), (4, 1, &[0, 0, 0, 6][..]));
    for _ in 0..200 {
        bench.ask(&datagram);
    }
    let counters = bench.host.stack.counters();
    // Half of the burst for one source, and one for another, unless the key puts both into one group.
    assert!((10..=11).contains(&counters.icmp_errors_out), "{}", counters.icmp_errors_out);
    assert_eq!(counters.icmp_errors_out + counters.drop_icmp_error_limited, 203);
    // No error about an error.
    let error_about = frame4(to_host4(Protocol::ICMPV4), &error[..]);
    check_dropped(&mut bench, &error_about, |c| c.drop_icmp_error_unknown);
}

#[test]
fn a_vlan_is_taken_off_and_put_on() {
    let config = StackConfig { vlan: Some(5), ..Setup::default().config[0].clone() };
    let mut bench = Bench::new(config);
    bench.receive();
    let tagged = |id| {
        let tags = Tags::one(Tag { protocol: EtherType::VLAN, priority: 0, drop_eligible: false, id });
        let plain = arp(Operation::REQUEST, PEER4, HOST4);
        let header = ethernet::Builder {
            destination: MacAddr::BROADCAST,
            source: PEER_MAC,
            tags,
            ether_type: EtherType::ARP,
        };
        let mut frame = vec![0; header.header_len()];
        header.emit(&mut frame).unwrap();
        frame.extend_from_slice(&plain[14..]);
        frame
    };
    let answers = bench.ask(&tagged(5));
    assert_eq!(answers[0][12..16], [0x81, 0, 0, 5]);
    check_dropped(&mut bench, &tagged(6), |c| c.drop_vlan);
    check_dropped(&mut bench, &arp(Operation::REQUEST, PEER4, HOST4), |c| c.drop_vlan);
}

/// An ICMP echo request of `len` data bytes in fragments of `step` bytes.
fn echo_fragments4(len: usize, step: usize) -> Vec<Vec<u8>> {
    let whole = echo4(&file_bytes(0, len));
    let piece = |(at, part): (usize, &[u8])| {
        let offset = at * step;
        let header = ipv4::Builder {
            identification: 42,
            fragment_offset: offset as u16,
            more_fragments: offset + part.len() < whole.len(),
            ..to_host4(Protocol::ICMPV4)
        };
        frame4(header, part)
    };
    whole.chunks(step).enumerate().map(piece).collect()
}

fn fragment6(whole: &[u8], offset: usize, end: usize, identification: u32) -> Vec<u8> {
    let header = ipv6::Fragment {
        next_header: Protocol::ICMPV6,
        offset: offset as u16,
        more: end < whole.len(),
        identification,
    };
    let mut payload = vec![0; ipv6::Fragment::LEN];
    header.emit(&mut payload).unwrap();
    payload.extend_from_slice(&whole[offset..end]);
    frame6(to_host6(Protocol::FRAGMENT), &payload)
}

/// Puts the host's fragments of one packet together.
fn join4(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut whole = Vec::new();
    for frame in frames {
        let ip = ipv4::Header::parse(&frame[14..]).unwrap();
        assert_eq!(usize::from(ip.fragment_offset()), whole.len());
        assert!(frame.len() <= 1_514);
        whole.extend_from_slice(ip.payload());
    }
    assert!(!ipv4::Header::parse(&frames.last().unwrap()[14..]).unwrap().more_fragments());
    whole
}

#[test]
fn the_longest_ping_comes_and_goes_in_fragments() {
    let mut bench = Bench::acquainted();
    let len = 65_535 - 20 - 8;
    let mut answers = Vec::new();
    for fragment in echo_fragments4(len, 1_480).into_iter().rev() {
        answers.extend(bench.ask(&fragment));
    }
    let answer = join4(&answers);
    assert!(icmpv4::verify_checksum(&answer));
    assert!(answer[8..] == file_bytes(0, len));
    let whole = echo6(HOST6, &file_bytes(0, 65_000));
    let mut answers = Vec::new();
    for offset in (0..whole.len()).step_by(1_448) {
        answers.extend(bench.ask(&fragment6(&whole, offset, (offset + 1_448).min(whole.len()), 1)));
    }
    let mut joined = Vec::new();
    for frame in &answers {
        let chain = ipv6::Header::parse(&frame[14..]).unwrap().chain().unwrap();
        assert_eq!(usize::from(chain.fragment.unwrap().offset), joined.len());
        joined.extend_from_slice(chain.payload);
    }
    assert!(icmpv6::verify_checksum(HOST6, PEER6, &joined));
    assert!(joined[8..] == file_bytes(0, 65_000));
    let memory = bench.host.stack.memory();
    assert_eq!(memory.datagrams.free, memory.datagrams.total);
    assert_eq!(bench.pool.free(), 1_024);
}

#[test]
fn an_atomic_fragment_is_a_whole_packet() {
    let mut bench = Bench::acquainted();
    let whole = echo6(HOST6, b"atomic");
    // Half of a datagram with the same identification does not disturb it (RFC 6946).
    let long = echo6(HOST6, &[0; 64]);
    bench.ask(&fragment6(&long, 0, 32, 9));
    let answers = bench.ask(&fragment6(&whole, 0, whole.len(), 9));
    assert_eq!(payloads(&answers, Protocol::ICMPV6).len(), 1);
}

#[test]
fn overlapping_and_tiny_fragments_are_refused() {
    let mut bench = Bench::acquainted();
    let whole = echo6(HOST6, &[7; 100]);
    bench.ask(&fragment6(&whole, 0, 64, 1));
    let mut evil = fragment6(&whole, 56, whole.len(), 1);
    *evil.last_mut().unwrap() ^= 1;
    check_dropped(&mut bench, &evil, |c| c.drop_fragment_overlap);
    assert!(bench.ask(&fragment6(&whole, 64, whole.len(), 1)).is_empty(), "the first part is gone");
    // A first fragment of TCP without the whole header: RFC 7112 wants a parameter problem of code 3.
    let header = ipv6::Fragment { next_header: Protocol::TCP, offset: 0, more: true, identification: 2 };
    let mut payload = vec![0; 16];
    header.emit(&mut payload).unwrap();
    let answers = bench.ask(&frame6(to_host6(Protocol::FRAGMENT), &payload));
    let [problem] = &payloads(&answers, Protocol::ICMPV6)[..] else { panic!() };
    assert_eq!((problem[0], problem[1]), (4, 3));
    let tiny = ipv4::Builder { more_fragments: true, ..to_host4(Protocol::TCP) };
    check_dropped(&mut bench, &frame4(tiny, &[0; 16]), |c| c.drop_fragment_tiny);
    // Not a multiple of 8, and not the last: the pointer is to the payload length.
    let mut payload = vec![0; 8 + 13];
    ipv6::Fragment { next_header: Protocol::ICMPV6, offset: 8, more: true, identification: 3 }
        .emit(&mut payload)
        .unwrap();
    let answers = bench.ask(&frame6(to_host6(Protocol::FRAGMENT), &payload));
    let [problem] = &payloads(&answers, Protocol::ICMPV6)[..] else { panic!() };
    assert_eq!((problem[0], problem[1], &problem[4..8]), (4, 0, &[0, 0, 0, 4][..]));
}

#[test]
fn incomplete_datagrams_time_out_and_a_flood_of_them_is_bounded() {
    let mut bench = Bench::acquainted();
    let fragments = echo_fragments4(3_000, 1_480);
    bench.ask(&fragments[0]);
    let sent = bench.pass(Duration::from_secs(40));
    let errors: Vec<_> =
        sent.iter().filter(|(_, frame)| matches!(see(frame), Seen::V4(Protocol::ICMPV4, ..))).collect();
    let [(when, error)] = &errors[..] else { panic!("{sent:?}") };
    assert_eq!(when.as_millis() / 1_000, 30);
    let Seen::V4(_, _, error) = see(error) else { panic!() };
    assert_eq!((error[0], error[1]), (11, 1));
    assert!(icmpv4::verify_checksum(&error));
    for id in 0..1_000u16 {
        let header = ipv4::Builder { identification: id, more_fragments: true, ..to_host4(Protocol::UDP) };
        bench.ask(&frame4(header, &[0; 64]));
    }
    let counters = bench.host.stack.counters();
    assert!(counters.drop_reassembly_full > 900);
    let memory = bench.host.stack.memory();
    assert!(memory.datagrams.free >= memory.datagrams.total / 4, "sending is not starved");
    bench.pass(Duration::from_secs(60));
    let memory = bench.host.stack.memory();
    assert_eq!(memory.datagrams.free, memory.datagrams.total);
}

#[test]
fn datagrams_go_both_ways_also_in_fragments() {
    for offloads in [linerate_nic::Capabilities::ALL, linerate_nic::Capabilities::NONE] {
        let mut world = World::new(Setup { offloads, ..Setup::default() });
        let bind = |host: &mut common::Host, port| {
            host.stack.udp_bind(common::OWNER, ListenAddr { ip: None, port }, 1 << 20).unwrap()
        };
        let (a, b) = (bind(&mut world.a, 5_000), bind(&mut world.b, 6_000));
        for to in ["10.0.0.2:6000", "[fd00::2]:6000"] {
            for len in [0, 1, 1_400, 4_096, 5_000, 65_507] {
                let data = file_bytes(len as u64, len);
                world.a.stack.udp_send(a, None, to.parse().unwrap(), &data).unwrap();
                world.exchange();
                let datagram = world.b.stack.udp_peek(b).unwrap();
                assert!(datagram.data == data);
                assert_eq!(datagram.local.to_string(), to);
                assert_eq!(datagram.remote.port(), 5_000);
                let (local, remote) = (datagram.local, datagram.remote);
                world.b.stack.udp_consume(b);
                // Back from the address that was asked.
                world.b.stack.udp_send(b, Some(local), remote, b"pong").unwrap();
                world.exchange();
                assert_eq!(world.a.stack.udp_peek(a).unwrap().data, b"pong");
                world.a.stack.udp_consume(a);
            }
        }
        world.a.stack.udp_close(a);
        world.b.stack.udp_close(b);
        assert_eq!((world.a.stack.memory().used, world.b.stack.memory().used), (0, 0));
        assert_eq!(world.pool.free(), world.pool.stats().total);
    }
}

/// What a datagram's two parts are made of does not show: by value, as it lies, copied, or cut into fragments.
#[test]
fn a_datagram_of_two_parts_is_one() {
    let body: &'static [u8] = file_bytes(7, 65_507).leak();
    for offloads in [linerate_nic::Capabilities::ALL, linerate_nic::Capabilities::NONE] {
        let mut world = World::new(Setup { offloads, ..Setup::default() });
        let bind = |host: &mut common::Host, port| {
            host.stack.udp_bind(common::OWNER, ListenAddr { ip: None, port }, 1 << 20).unwrap()
        };
        let (a, b) = (bind(&mut world.a, 5_000), bind(&mut world.b, 6_000));
        for to in ["10.0.0.2:6000", "[fd00::2]:6000"] {
            for head in [0, 1, 12, 15, 16, 31, 32, 33, 200] {
                let head = file_bytes(0, head);
                for len in [0, 1, 3, 1_400, 1_472, 1_473, 2_001, 65_507 - head.len()] {
                    let expected = [&head, &body[..len]].concat();
                    let to = to.parse().unwrap();
                    world.a.stack.udp_send_with(a, None, to, &head, &body[..len]).unwrap();
                    world.exchange();
                    let datagram = world.b.stack.udp_peek(b).unwrap();
                    assert!(datagram.data == expected, "{offloads:?}, {to}, {} and {len} bytes", head.len());
                    world.b.stack.udp_consume(b);
                }
            }
        }
        let to = "10.0.0.2:6000".parse().unwrap();
        assert_eq!(world.a.stack.udp_send_with(a, None, to, &[0], body), Err(UdpSendError::TooLong));
        world.a.stack.udp_close(a);
        world.b.stack.udp_close(b);
        assert_eq!((world.a.stack.memory().used, world.b.stack.memory().used), (0, 0));
        assert_eq!(world.pool.free(), world.pool.stats().total);
    }
}

/// Datagrams in fragments come in by way of few buffers for the longest there can be; more than those may wait to be read.
#[test]
fn datagrams_of_many_fragments_may_wait() {
    let mut world = World::new(Setup::default());
    let bind = |host: &mut common::Host, port| {
        host.stack.udp_bind(common::OWNER, ListenAddr { ip: None, port }, 1 << 20).unwrap()
    };
    let (a, b) = (bind(&mut world.a, 5_000), bind(&mut world.b, 6_000));
    let data = |i: usize| file_bytes(i as u64, 8_000);
    let buffers = world.b.stack.memory().datagrams.total;
    let count = 4 * buffers;
    for i in 0..count {
        world.a.stack.udp_send(a, None, "10.0.0.2:6000".parse().unwrap(), &data(i)).unwrap();
        world.exchange();
    }
    let memory = world.b.stack.memory();
    assert_eq!(memory.datagrams.free, buffers, "{memory:?}");
    assert!((count * 8_000..count * 8_200).contains(&memory.used), "{memory:?}");
    for i in 0..count {
        assert!(world.b.stack.udp_peek(b).unwrap().data == data(i), "{i} of {count}");
        world.b.stack.udp_consume(b);
    }
    assert_eq!(world.b.stack.memory().used, 0);
}

#[test]
fn receive_buffers_of_udp_are_bounded() {
    let mut bench = Bench::acquainted();
    let addr = ListenAddr { ip: Some(IpAddr::V4(HOST4)), port: 7 };
    let socket = bench.host.stack.udp_bind(common::OWNER, addr, 10 * 2_048).unwrap();
    for i in 0..30u8 {
        bench.ask(&frame4(to_host4(Protocol::UDP), &udp4(9, 7, &[i; 100])));
    }
    assert_eq!(bench.host.stack.counters().drop_udp_receive_full, 20);
    for i in 0..10u8 {
        assert_eq!(bench.host.stack.udp_peek(socket).unwrap().data, [i; 100]);
        bench.host.stack.udp_consume(socket);
    }
    assert!(bench.host.stack.udp_peek(socket).is_none());
    let mut broken = frame4(to_host4(Protocol::UDP), &udp4(9, 7, b"broken"));
    *broken.last_mut().unwrap() ^= 1;
    check_dropped(&mut bench, &broken, |c| c.drop_udp_checksum);
}

/// Without that, the next retransmission may be due when the user timeout has ended the connection.
#[test]
fn what_was_sent_in_vain_is_sent_again_when_the_link_is_back() {
    let mut bench = Bench::acquainted();
    let listener = bench.host.listen(80);
    let mut peer = Peer::new(4_000, modern());
    let conn = peer.connect(&mut bench, listener);
    let idle = Peer::new(4_001, modern()).connect(&mut bench, listener);
    bench.host.stack.send(conn, Payload::Shared(vec![7; 1_000].into())).unwrap();
    let first = answers(&bench.receive()).remove(0);
    bench.host.stack.handle_link(bench.now, false);
    bench.pass(Duration::from_secs(20));
    assert_eq!(answers(&bench.receive()), []);
    bench.host.stack.handle_link(bench.now, true);
    let again = answers(&bench.receive());
    assert_eq!(again.len(), 1, "{again:?}");
    // Maybe a part only: the path may have become too narrow.
    assert!(
        again[0].seq == first.seq
            && first.payload.starts_with(&again[0].payload)
            && again[0].payload.len() > 500
    );
    // Were this lost too, the next ones would be close.
    let sent = bench.pass(Duration::from_secs(3));
    let frames: Vec<_> = sent.into_iter().map(|(_, frame)| frame).collect();
    assert!(answers(&frames).len() >= 2, "{frames:?}");
    peer.ack = first.seq + 1_000;
    assert_eq!(peer.send(&mut bench, &[]), []);
    // Nothing waits now, and nothing is sent again.
    bench.host.stack.handle_link(bench.now, true);
    assert_eq!(answers(&bench.receive()), []);
    for conn in [conn, idle] {
        assert_eq!(bench.host.stack.state(conn), ConnState::Open { finished: false });
    }
}

#[test]
fn open_connections_follow_a_change_of_routes() {
    let mut bench = Bench::acquainted();
    let gateway = |last| IpAddr::from(Ipv4Addr::new(10, 0, 0, last));
    bench.host.stack.add_gateway(bench.now, gateway(9)).unwrap();
    bench.host.connect("192.0.2.1:80");
    let is_syn = |frame: &Vec<u8>| {
        frame[..6] == PEER_MAC.0 && !payloads(std::slice::from_ref(frame), Protocol::TCP).is_empty()
    };
    assert!(bench.receive().iter().any(is_syn));
    // A route that is no better changes nothing.
    bench.host.stack.add_gateway(bench.now, gateway(8)).unwrap();
    assert!(bench.pass(Duration::from_millis(1_100)).iter().any(|(_, frame)| is_syn(frame)));
    bench.host.stack.remove_gateway(bench.now, gateway(9));
    let sent: Vec<_> = bench.pass(Duration::from_millis(2_200)).into_iter().map(|(_, frame)| frame).collect();
    assert!(!sent.iter().any(is_syn), "not to the gateway that is gone");
    let asked = Seen::Arp(Operation::REQUEST, HOST4, Ipv4Addr::new(10, 0, 0, 8));
    assert!(sent.iter().any(|frame| see(frame) == asked), "{sent:?}");
    // Without any route left it goes on to the last one: another may come.
    bench.ask(&arp(Operation::REPLY, Ipv4Addr::new(10, 0, 0, 8), HOST4));
    bench.host.stack.remove_gateway(bench.now, gateway(8));
    assert!(bench.pass(Duration::from_millis(8_000)).iter().any(|(_, frame)| is_syn(frame)));
}

#[test]
fn who_waits_for_a_gateway_that_is_replaced_asks_for_the_other() {
    let mut bench = Bench::acquainted();
    let gateway = |last| IpAddr::from(Ipv4Addr::new(10, 0, 0, last));
    bench.host.stack.add_gateway(bench.now, gateway(7)).unwrap();
    let conn = bench.host.connect("192.0.2.1:80");
    bench.receive();
    bench.host.stack.add_gateway(bench.now, gateway(9)).unwrap();
    bench.host.stack.remove_gateway(bench.now, gateway(7));
    // At the latest when the first is given up.
    let is_syn = |frame: &[u8]| frame[..6] == PEER_MAC.0;
    assert!(bench.pass(Duration::from_secs(5)).iter().any(|(_, frame)| is_syn(frame)));
    assert_eq!(bench.host.stack.state(conn), ConnState::Connecting);
}
