//! Arbitrary frames and a link that loses, repeats, delays and corrupts: nothing panics, leaks, or arrives wrong.

mod common;

use common::frames::*;
use common::{Bench, OWNER, Setup, World, file_bytes, read_all};
use core::time::Duration;
use linerate_nic::Capabilities;
use linerate_nic::loopback::Verdict;
use linerate_stack::StackConfig;
use linerate_transport::{Bytes, ListenAddr, ListenOptions, Payload, SendError, Transport};
use linerate_wire::arp::Operation;
use linerate_wire::ip::Protocol;
use linerate_wire::ipv4;
use linerate_wire::tcp::{self, Flags, SeqNumber};
use proptest::collection::vec;
use proptest::prelude::*;

/// A host that listens everywhere it can, with little memory.
fn victim() -> Bench {
    let config = StackConfig {
        memory: 1 << 20,
        max_connections: 32,
        max_neighbors: 16,
        slaac: true,
        dhcp: true,
        ..Setup::default().config[0].clone()
    };
    let mut bench = Bench::new(config);
    bench.pass(Duration::from_secs(2));
    bench.ask(&arp(Operation::REQUEST, PEER4, HOST4));
    for port in [80, 81] {
        let addr = ListenAddr { ip: None, port };
        bench.host.stack.listen(OWNER, addr, &ListenOptions::default()).unwrap();
    }
    bench.host.stack.udp_bind(OWNER, ListenAddr { ip: None, port: 7 }, 20_000).unwrap();
    bench
}

/// Lets every timer run out, and checks that everything is free again.
fn check_clean(bench: &mut Bench) {
    let socket = linerate_transport::UdpId::new(0, 0);
    while bench.host.stack.udp_peek(socket).is_some() {
        bench.host.stack.udp_consume(socket);
    }
    for index in 0..2 {
        let listener = linerate_transport::ListenerId::new(index, 0);
        while let Some(conn) = bench.host.stack.accept(listener) {
            bench.host.stack.abort(conn);
        }
    }
    while bench.host.stack.poll_event().is_some() {}
    bench.pass(Duration::from_secs(300));
    let memory = bench.host.stack.memory();
    assert_eq!((memory.used, memory.connections), (0, 0), "{memory:?}");
    assert_eq!(memory.pages.free, memory.pages.total);
    assert_eq!(memory.datagrams.free, memory.datagrams.total);
    assert_eq!(bench.pool.free(), bench.pool.stats().total);
}

/// Frames that look like something: any protocol, any payload, sometimes with a byte changed.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let payload = || vec(any::<u8>(), 0..120);
    let protocol = prop::sample::select(&[1u8, 6, 17, 58, 0, 43, 44, 60, 99][..]);
    let any_frame = vec(any::<u8>(), 0..200);
    let typed = (prop::sample::select(&[0x0800u16, 0x0806, 0x86dd, 0x8100][..]), payload())
        .prop_map(|(kind, data)| ethernet(HOST_MAC, linerate_wire::ethernet::EtherType(kind), &data));
    let ip4 = (protocol.clone(), payload(), any::<u16>(), any::<bool>()).prop_map(
        |(protocol, data, offset, more)| {
            let header = ipv4::Builder {
                fragment_offset: offset % 256 * 8,
                more_fragments: more,
                ..to_host4(Protocol(protocol))
            };
            frame4(header, &data)
        },
    );
    let ip6 = (protocol, payload()).prop_map(|(protocol, data)| frame6(to_host6(Protocol(protocol)), &data));
    let segment = (0u16..4, 79u16..82, any::<u32>(), any::<u32>(), any::<u8>(), payload()).prop_map(
        |(from, to, seq, ack, flags, data)| {
            let segment = tcp::Builder {
                source_port: 5_000 + from,
                destination_port: to,
                sequence: SeqNumber(seq % 4_000),
                acknowledgement: SeqNumber(ack),
                flags: Flags(flags),
                window: 4_000,
                ..tcp::Builder::default()
            };
            tcp4(segment, &data)
        },
    );
    let datagram = payload().prop_map(|data| frame4(to_host4(Protocol::UDP), &udp4(9, 7, &data)));
    let echo = payload().prop_map(|data| frame4(to_host4(Protocol::ICMPV4), &echo4(&data)));
    let base = prop_oneof![any_frame, typed, ip4, ip6, segment.clone(), segment, datagram, echo];
    (base, prop::option::of((any::<prop::sample::Index>(), any::<u8>()))).prop_map(|(mut frame, change)| {
        if let Some((at, value)) = change
            && !frame.is_empty()
        {
            let at = at.index(frame.len());
            frame[at] = value;
        }
        frame
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn arbitrary_frames_do_no_harm(frames in vec((frame(), any::<bool>(), 0u64..2_000), 0..60)) {
        let mut bench = victim();
        for (frame, past_the_port, ms) in frames {
            if past_the_port {
                bench.feed(&frame);
            } else if frame.len() <= 1_514 {
                bench.send(&frame);
            }
            bench.pass(Duration::from_millis(ms));
        }
        check_clean(&mut bench);
    }
}

/// What a bad link does with a frame, by a random number.
fn misfortune(random: u64) -> Verdict {
    match random % 100 {
        0..4 => Verdict::Drop,
        4..6 => Verdict::Duplicate,
        6..10 => Verdict::Delay(Duration::from_micros(random / 100 % 5_000)),
        10..12 => Verdict::Corrupt { at: (random / 100 % 1_500) as usize, mask: 1 << (random / 7 % 8) },
        _ => Verdict::Deliver,
    }
}

#[test]
fn a_bad_link_delays_but_never_falsifies() {
    for seed in 1..6u64 {
        for offloads in [Capabilities::NONE, Capabilities::ALL] {
            let mut world = World::new(Setup { offloads, ..Setup::default() });
            let (client, server) = world.connected("10.0.0.2:80");
            for (end, host) in [&world.a, &world.b].into_iter().enumerate() {
                let link = host.port.device();
                let mut state = seed * 2 + end as u64;
                link.set_delay(Duration::from_micros(200));
                link.set_hook(move |_| {
                    state =
                        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    misfortune(state >> 20)
                });
            }
            let len = 500_000;
            let (mut sent, mut there, mut back) = (0, Vec::new(), Vec::new());
            let done = world.run_for(Duration::from_secs(600), |world| {
                while sent < len {
                    let shared = Bytes::from(file_bytes(sent as u64, 10_000));
                    match world.a.stack.send(client, Payload::Shared(shared)) {
                        Ok(()) => sent += 10_000,
                        Err(SendError::Full) => break,
                        Err(error) => panic!("{error:?}"),
                    }
                }
                let before = there.len();
                read_all(&mut world.b.stack, server, &mut there);
                // It sends back what it gets, as far as there is room.
                if there.len() > before && world.b.stack.sendable(server) > 0 {
                    let _ = world.b.stack.write(server, &there[before..(before + 60_000).min(there.len())]);
                }
                read_all(&mut world.a.stack, client, &mut back);
                there.len() == len
            });
            assert!(
                done,
                "seed {seed}: {} bytes, {:?}",
                there.len(),
                common::shown(world.b.stack.counters())
            );
            assert!(there == file_bytes(0, len), "seed {seed}");
            world.a.stack.abort(client);
            world.b.stack.abort(server);
            world.pass(Duration::from_secs(300));
            assert_eq!((world.a.stack.memory().used, world.b.stack.memory().used), (0, 0));
            assert_eq!(world.b.stack.memory().connections, 0);
            assert_eq!(world.pool.free(), world.pool.stats().total);
        }
    }
}
