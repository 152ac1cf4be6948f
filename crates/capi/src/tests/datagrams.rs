//! Datagrams: messages, peers, truncation, families.

use super::*;
use libc::{msghdr, sockaddr_in6};

const AGAIN: ssize_t = -(libc::EAGAIN as ssize_t);

fn message(name: *mut c_void, name_len: socklen_t, pieces: &mut [iovec]) -> msghdr {
    // SAFETY: a C structure of numbers and pointers, for which zero is a value.
    let mut message: msghdr = unsafe { core::mem::zeroed() };
    message.msg_name = name;
    message.msg_namelen = name_len;
    message.msg_iov = pieces.as_mut_ptr();
    message.msg_iovlen = pieces.len() as _;
    message
}

impl Node {
    fn send_to(&self, fd: c_int, ip: &str, port: u16, bytes: &[u8]) -> ssize_t {
        let to = inet(ip, port);
        // SAFETY: live bytes and a live address.
        unsafe {
            lr_sendto(self.stack, fd, bytes.as_ptr().cast(), bytes.len(), 0, (&raw const to).cast(), INET)
        }
    }
}

#[test]
fn messages_go_both_ways() {
    let mut world = World::new();
    let (client, server) = (world.a.socket(libc::SOCK_DGRAM), world.b.socket(libc::SOCK_DGRAM));
    assert_eq!(world.b.bind(server, "0.0.0.0", 7), 0);
    let mut to = inet("10.0.0.2", 7);
    let (mut x, mut y) = (*b"two ", *b"pieces");
    let mut pieces = [piece(&mut x), piece(&mut y)];
    let sent = message((&raw mut to).cast(), INET, &mut pieces);
    // SAFETY: a live message with two live pieces and an address.
    assert_eq!(unsafe { lr_sendmsg(world.a.stack, client, &sent, 0) }, 10);
    world.until(|world| world.b.poll(server, libc::POLLIN) != 0);

    let mut from = inet("0.0.0.0", 0);
    let (mut x, mut y) = ([0; 3], [0; 4]);
    let mut pieces = [piece(&mut x), piece(&mut y)];
    let mut got = message((&raw mut from).cast(), INET, &mut pieces);
    // SAFETY: a live message with two live pieces and room for an address.
    assert_eq!(unsafe { lr_recvmsg(world.b.stack, server, &mut got, 0) }, 7);
    assert_eq!((&x, &y), (b"two", b" pie"));
    assert_eq!((got.msg_flags, got.msg_namelen), (libc::MSG_TRUNC, INET));
    assert_eq!(text(&from), world.a.name(client).replace("0.0.0.0", "10.0.0.1"));
    assert_eq!(world.b.read(server, 9), Err(AGAIN), "the rest of it is lost");

    assert_eq!(world.b.send_to(server, "10.0.0.1", u16::from_be(from.sin_port), b"answer"), 6);
    world.until(|world| world.a.poll(client, libc::POLLIN) != 0);
    assert_eq!(world.a.recv(client, 2, libc::MSG_PEEK | libc::MSG_TRUNC).unwrap().len(), 2);
    assert_eq!(world.a.read(client, 99).unwrap(), b"answer");
}

#[test]
fn datagrams_carry_the_type_of_service_that_was_set() {
    let mut world = World::new();
    let client = world.a.socket(libc::SOCK_DGRAM);
    // The neighbour's address is asked for first.
    assert_eq!(world.a.connect(client, "10.0.0.2", 7), 0);
    assert_eq!(world.a.write(client, b"x"), 1);
    world.pass(5);
    let sends = |world: &mut World, fd| {
        assert_eq!(world.a.send_to(fd, "10.0.0.2", 7, b"x"), 1);
        // SAFETY: a live stack, and its end, which lives as long; its turn is over when that is looked at.
        unsafe {
            assert!(lr_stack_turn(world.a.stack, world.now_ns) >= 0);
            let end = &*world.a.end;
            end.outgoing.borrow_mut().pop_front().unwrap().0[15]
        }
    };
    assert_eq!(sends(&mut world, client), 0);
    assert_eq!(world.a.set(client, libc::IPPROTO_IP, libc::IP_TOS, &0xb8_i32), 0);
    assert_eq!(sends(&mut world, client), 0xb8);
    // Before it is bound, and by the name of the other family.
    let other = world.a.socket(libc::SOCK_DGRAM);
    assert_eq!(world.a.set(other, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &0x2b_i32), 0);
    assert_eq!([sends(&mut world, other), sends(&mut world, client)], [0x28, 0xb8]);
}

#[test]
fn the_buffer_of_datagrams_can_change_while_it_is_used() {
    let mut world = World::new();
    let (client, server) = (world.a.socket(libc::SOCK_DGRAM), world.b.socket(libc::SOCK_DGRAM));
    assert_eq!(world.b.bind(server, "0.0.0.0", 7), 0);
    assert_eq!((world.a.connect(client, "10.0.0.2", 7), world.a.write(client, b"first")), (0, 5));
    world.until(|world| world.b.read(server, 9).is_ok());
    let mut kept = |bytes: Option<c_int>| {
        if let Some(bytes) = bytes {
            assert_eq!(world.b.set(server, libc::SOL_SOCKET, libc::SO_RCVBUF, &bytes), 0);
        }
        (0..20).for_each(|_| assert_eq!(world.a.write(client, &[7; 1_000]), 1_000));
        world.pass(5);
        core::iter::from_fn(|| world.b.read(server, 1_000).ok()).count()
    };
    assert_eq!(kept(None), 20);
    assert!((2..8).contains(&kept(Some(8_000))));
    assert_eq!(kept(Some(100_000)), 20);
}

#[test]
fn a_connected_socket_hears_only_its_peer() {
    let mut world = World::new();
    let (client, other) = (world.a.socket(libc::SOCK_DGRAM), world.b.socket(libc::SOCK_DGRAM));
    let server = world.b.socket(libc::SOCK_DGRAM);
    assert_eq!(world.b.bind(server, "10.0.0.2", 7), 0);
    assert_eq!(world.a.write(client, b"x"), -(libc::EDESTADDRREQ as ssize_t));
    assert_eq!(world.a.connect(client, "10.0.0.2", 7), 0);
    assert_eq!(world.a.peer(client).unwrap(), "10.0.0.2:7");
    let port: u16 = world.a.name(client).rsplit(':').next().unwrap().parse().unwrap();
    assert_eq!(world.b.send_to(other, "10.0.0.1", port, b"stranger"), 8);
    assert_eq!(world.b.send_to(server, "10.0.0.1", port, b"friend"), 6);
    world.pass(5);
    assert_eq!(world.a.read(client, 99).unwrap(), b"friend");
    assert_eq!(world.a.read(client, 99), Err(AGAIN));
    assert_eq!(world.a.write(client, b"hello"), 5);
    world.until(|world| world.b.poll(server, libc::POLLIN) != 0);
    assert_eq!(world.b.read(server, 99).unwrap(), b"hello");
}

#[test]
fn datagrams_have_bounds() {
    let mut world = World::new();
    let (client, server) = (world.a.socket(libc::SOCK_DGRAM), world.b.socket(libc::SOCK_DGRAM));
    assert_eq!(world.b.bind(server, "10.0.0.2", 7), 0);
    assert_eq!(world.b.bind(server, "10.0.0.2", 8), -libc::EINVAL);
    let long = vec![1; 65_508];
    assert_eq!(world.a.send_to(client, "10.0.0.2", 7, &long), -(libc::EMSGSIZE as ssize_t));
    assert_eq!(world.a.send_to(client, "10.0.0.2", 7, &long[..65_507]), 65_507);
    world.until(|world| world.b.poll(server, libc::POLLIN) != 0);
    assert_eq!(world.b.read(server, 70_000).unwrap().len(), 65_507, "in fragments");
    assert_eq!(world.a.send_to(client, "10.0.0.2", 7, b""), 0);
    world.until(|world| world.b.poll(server, libc::POLLIN) != 0);
    assert_eq!(world.b.read(server, 9).unwrap(), b"");
    assert_eq!(world.a.send_to(client, "192.0.2.1", 7, b"x"), -(libc::ENETUNREACH as ssize_t));
    assert_eq!(world.a.listen(client, 1), -libc::EOPNOTSUPP);
    assert_eq!(world.a.accept(client), -libc::EOPNOTSUPP);
    assert_eq!(world.a.shutdown(client, libc::SHUT_WR), -libc::ENOTCONN);
}

#[test]
fn an_ipv6_socket_talks_to_both_families() {
    for capabilities in [0, LR_DEVICE_IP] {
        let mut world = World::shaped(Shape { capabilities, completions: false, memory: None });
        // SAFETY: live stacks and live addresses of the lengths named.
        unsafe {
            let server = lr_socket(world.b.stack, libc::AF_INET6, libc::SOCK_DGRAM, 0);
            let mut any: sockaddr_in6 = core::mem::zeroed();
            any.sin6_family = libc::AF_INET6 as _;
            any.sin6_port = 7u16.to_be();
            let len = size_of::<sockaddr_in6>() as socklen_t;
            assert_eq!(lr_bind(world.b.stack, server, (&raw const any).cast(), len), 0);
            for to in ["fd00::2", "::ffff:10.0.0.2"] {
                let client = lr_socket(world.a.stack, libc::AF_INET6, libc::SOCK_DGRAM, 0);
                let to: std::net::Ipv6Addr = to.parse().unwrap();
                any.sin6_addr.s6_addr = to.octets();
                assert_eq!(lr_connect(world.a.stack, client, (&raw const any).cast(), len), 0);
                assert_eq!(world.a.write(client, b"hi"), 2);
                world.until(|world| world.b.poll(server, libc::POLLIN) != 0);
                let (mut from, mut from_len) = (any, len);
                let mut bytes = [0u8; 9];
                let (room, from_at) = (bytes.as_mut_ptr().cast(), (&raw mut from).cast::<sockaddr>());
                let got = lr_recvfrom(world.b.stack, server, room, 9, 0, from_at, &mut from_len);
                assert_eq!((got, from_len), (2, len));
                let mapped = std::net::Ipv6Addr::from(from.sin6_addr.s6_addr).to_ipv4_mapped().is_some();
                assert_eq!(mapped, to.to_ipv4_mapped().is_some());
                let sent = lr_sendto(world.b.stack, server, room, 2, 0, from_at, from_len);
                assert_eq!(sent, 2, "an answer to where it came from");
                world.until(|world| world.a.poll(client, libc::POLLIN) != 0);
            }
            let v4 = inet("10.0.0.2", 9);
            let code = lr_connect(world.a.stack, 0, (&raw const v4).cast(), INET);
            assert_eq!(code, -libc::EAFNOSUPPORT);
        }
    }
}
