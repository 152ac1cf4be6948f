//! UDP through the traits of embedded-nal-async.

mod common;

use common::{World, addr, body};
use core::net::{IpAddr, SocketAddr};
use embedded_io_async::{Error as _, ErrorKind};
use embedded_nal_async::{ConnectedUdp, UdpStack, UnconnectedUdp};
use futures::future::join;
use linerate_embedded::Error;
use linerate_stack::StackConfig;
use linerate_transport::{ListenAddr, ListenError, UdpSendError};
use std::time::Duration;

#[test]
fn datagrams_go_both_ways_and_a_connected_socket_hears_its_peer_only() {
    let world = World::new();
    world.run(Vec::new(), async {
        let (a, b) = (&world.a, &world.b);
        let mut server = UdpStack::bind_multiple(&b, addr("0.0.0.0", 53)).await.unwrap();
        for host in [common::B, "fd00::2"] {
            let (local, mut client) = UdpStack::connect(&a, addr(host, 53)).await.unwrap();
            assert_eq!(local.ip().is_ipv4(), host == common::B);
            assert!(!local.ip().is_unspecified() && local.port() != 0, "{local}");
            let (_, mut stranger) = b.bind_single(addr(host, 0)).await.unwrap();

            client.send(b"question").await.unwrap();
            let mut buffer = [0; 100];
            let (len, to, from) = server.receive_into(&mut buffer).await.unwrap();
            assert_eq!((&buffer[..len], to, from), (&b"question"[..], addr(host, 53), local));

            let anywhere = SocketAddr::new([0, 0, 0, 0].into(), 0);
            UnconnectedUdp::send(&mut stranger, anywhere, from, b"nonsense").await.unwrap();
            UnconnectedUdp::send(&mut server, to, from, b"answer").await.unwrap();
            let len = client.receive_into(&mut buffer).await.unwrap();
            assert_eq!(&buffer[..len], b"answer");
        }
    });
}

#[test]
fn what_is_too_long_is_cut_and_its_length_told() {
    let world = World::new();
    world.run(Vec::new(), async {
        let (a, b) = (&world.a, &world.b);
        let (to, mut server) = b.bind_single(addr(common::B, 9)).await.unwrap();
        let (from, mut client) = a.bind_single(addr("0.0.0.0", 0)).await.unwrap();
        assert_eq!(from.ip(), common::A.parse::<IpAddr>().unwrap(), "one of its addresses, chosen");
        // Longer than a frame, too.
        UnconnectedUdp::send(&mut client, from, to, &body(4_000)).await.unwrap();
        UnconnectedUdp::send(&mut client, from, to, b"").await.unwrap();
        let mut buffer = [0; 1_000];
        let (len, local, remote) = server.receive_into(&mut buffer).await.unwrap();
        assert_eq!((len, local, remote), (4_000, to, from));
        assert!(buffer[..] == body(4_000)[..1_000]);
        assert_eq!(server.receive_into(&mut buffer).await.unwrap().0, 0, "an empty one is one");
    });
}

#[test]
fn senders_wait_while_the_queue_is_full() {
    let world = World::with(|config| StackConfig { datagram_queue: 2, ..config }, |pools| pools);
    world.run(Vec::new(), async {
        let mut server = world.b.bind(ListenAddr { ip: None, port: 9 }, 1 << 20).unwrap();
        let mut client = world.a.bind(ListenAddr { ip: None, port: 0 }, 4_096).unwrap();
        // The first waits for its neighbour's address; nothing after it is to be lost.
        client.send(None, addr(common::B, 9), b"first").await.unwrap();
        server.receive(&mut [0; 10]).await;
        let send = async {
            for i in 0..200u8 {
                client.send(None, addr(common::B, 9), &[i]).await.unwrap();
            }
        };
        let receive = async {
            for i in 0..200u8 {
                let mut byte = [0];
                server.receive(&mut byte).await;
                assert_eq!(byte, [i]);
            }
        };
        let begun = world.time.now();
        join(send, receive).await;
        assert!(world.time.now() - begun < Duration::from_millis(5), "a wait ends when there is room");
    });
}

#[test]
fn a_receive_that_is_dropped_takes_nothing() {
    let world = World::new();
    world.run(Vec::new(), async {
        let mut server = world.b.bind(ListenAddr { ip: None, port: 9 }, 4_096).unwrap();
        let mut client = world.a.bind(ListenAddr { ip: None, port: 0 }, 4_096).unwrap();
        let mut byte = [0; 10];
        assert!(world.within(Duration::from_millis(5), server.receive(&mut byte)).await.is_none());
        client.send(None, addr(common::B, 9), b"x").await.unwrap();
        assert_eq!(server.receive(&mut byte).await.len, 1);
    });
}

#[test]
fn errors_say_what_was_wrong() {
    let world = World::new();
    world.run(Vec::new(), async {
        let net = &world.a;
        let check = |found: Error, expected: Error, kind: ErrorKind| {
            assert_eq!((found, found.kind()), (expected, kind))
        };
        let mut socket = net.bind(ListenAddr { ip: Some(common::A.parse().unwrap()), port: 9 }, 0).unwrap();
        let to = addr(common::B, 9);
        let used = net.bind_single(addr(common::A, 9)).await.map(drop).unwrap_err();
        check(used, Error::Open(ListenError::InUse), ErrorKind::AddrInUse);
        let not_ours = net.bind_multiple(addr("10.0.0.9", 9)).await.map(drop).unwrap_err();
        check(not_ours, Error::Open(ListenError::NoSuchAddress), ErrorKind::AddrNotAvailable);
        let nowhere = UdpStack::connect(&net, addr("203.0.113.1", 9)).await.map(drop).unwrap_err();
        check(nowhere, Error::Send(UdpSendError::Unreachable), ErrorKind::Other);
        for local in [addr(common::A, 10), addr("10.0.0.9", 9)] {
            let other = UnconnectedUdp::send(&mut socket, local, to, b"").await.unwrap_err();
            check(other, Error::Source, ErrorKind::InvalidInput);
        }
        let long = socket.send(None, to, &[0; 65_508]).await.unwrap_err();
        check(long, Error::Send(UdpSendError::TooLong), ErrorKind::InvalidInput);
    });
}
