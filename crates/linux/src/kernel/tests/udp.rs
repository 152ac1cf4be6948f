//! Datagrams keep their boundaries and their addresses.

use super::*;
use linerate_transport::{ListenError, UdpId, UdpSendError};

fn bind(rig: &mut Rig, ip: Option<&str>) -> (UdpId, SocketAddr) {
    let ip = ip.map(|ip| ip.parse().unwrap());
    let socket = rig.net.udp_bind(SERVER, ListenAddr { ip, port: 0 }, 1 << 20).unwrap();
    let addr = rig.net.udp_addr(socket).unwrap();
    (socket, addr)
}

/// Sends to `to` and answers from the address that it was sent to.
fn check(bound: Option<&str>, client: &str, to: &str) {
    let mut rig = Rig::new();
    let (server, addr) = bind(&mut rig, bound);
    let (client, client_addr) = bind(&mut rig, Some(client));
    let to = SocketAddr::new(to.parse().unwrap(), addr.port());
    rig.net.udp_send_with(client, None, to, b"pi", b"ng").unwrap();
    rig.net.udp_send(client, None, to, b"").unwrap();
    rig.wait("both came", |rig| rig.net.counters().datagrams_received == 2);
    assert!(rig.seen[&Source::Udp(server)].contains(Ready::READABLE));
    let first = rig.net.udp_peek(server).unwrap();
    assert_eq!((first.remote, first.local, first.data), (client_addr, to, &b"ping"[..]));
    rig.net.udp_consume(server);
    assert!(rig.net.udp_peek(server).unwrap().data.is_empty());
    rig.net.udp_consume(server);
    assert!(rig.net.udp_peek(server).is_none());
    rig.net.udp_send(server, Some(to), client_addr, b"pong").unwrap();
    rig.wait("the answer came", |rig| rig.net.udp_peek(client).is_some());
    let answer = rig.net.udp_peek(client).unwrap();
    assert_eq!((answer.remote, answer.data), (to, &b"pong"[..]));
}

#[test]
fn answers_come_from_the_address_that_was_asked() {
    check(Some("127.0.0.1"), "127.0.0.1", "127.0.0.1");
    check(Some("::1"), "::1", "::1");
    check(None, "::1", "::1");
    check(None, "127.0.0.1", "127.0.0.1");
    check(None, "127.0.0.1", "127.0.0.9");
    check(Some("0.0.0.0"), "127.0.0.1", "127.0.0.8");
}

#[test]
fn many_datagrams_in_order_and_none_too_long() {
    let mut rig = Rig::new();
    let (server, addr) = bind(&mut rig, Some("127.0.0.1"));
    let (client, _) = bind(&mut rig, Some("127.0.0.1"));
    let data = vec![9; 65_507];
    assert_eq!(rig.net.udp_send(client, None, addr, &[0; 65_508]), Err(UdpSendError::TooLong));
    let mut next = 0u32;
    for round in 0..200u32 {
        let len = 4 + (round as usize * 977) % (data.len() - 4);
        let mut datagram = data[..len].to_vec();
        datagram[..4].copy_from_slice(&round.to_be_bytes());
        rig.net.udp_send(client, None, addr, &datagram).unwrap();
        if round % 4 == 3 {
            rig.wait("the batch came", |rig| {
                while let Some(datagram) = rig.net.udp_peek(server) {
                    assert_eq!(datagram.data[..4], next.to_be_bytes());
                    next += 1;
                    rig.net.udp_consume(server);
                }
                next == round + 1
            });
        }
    }
    let again = ListenAddr { ip: Some(addr.ip()), port: addr.port() };
    assert_eq!(rig.net.udp_bind(SERVER, again, 4096), Err(ListenError::InUse));
    rig.net.udp_close(server);
    assert!(rig.net.udp_peek(server).is_none());
    assert_eq!(rig.net.udp_send(server, None, addr, b""), Err(UdpSendError::Closed));
    // Nobody is there any more; the ICMP errors that come back stop no later datagram.
    for _ in 0..10 {
        rig.net.udp_send(client, None, addr, b"x").unwrap();
        rig.step();
    }
}

#[test]
fn the_source_towards_an_address_is_known() {
    let rig = Rig::new();
    for own in ["127.0.0.1", "::1"] {
        let own = own.parse().unwrap();
        assert_eq!(rig.net.source_for(own), Some(own));
    }
}

/// Of both families, where one socket has both.
#[test]
fn the_type_of_service_reaches_the_kernel() {
    use rustix::net::sockopt;
    let mut rig = Rig::new();
    for (ip, families) in
        [(Some("127.0.0.1"), [true, false]), (Some("::1"), [false, true]), (None, [true, true])]
    {
        let (socket, _) = bind(&mut rig, ip);
        // Once more after it was set, without the bits of ECN.
        for (tos, set) in [(0xb8, 0xb8), (0x2b, 0x28), (0, 0)] {
            rig.net.udp_set_tos(socket, tos);
            let fd = &rig.net.udps.get(super::super::udp_key(socket)).unwrap().fd;
            let kept = [sockopt::ip_tos(fd).ok(), sockopt::ipv6_tclass(fd).ok().map(|class| class as u8)];
            for (kept, is_there) in kept.into_iter().zip(families) {
                assert!(!is_there || kept == Some(set), "{ip:?} {kept:?} {tos:#x}");
            }
        }
    }
}
