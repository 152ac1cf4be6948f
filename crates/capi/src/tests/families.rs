//! Streams over IPv6, and listeners for both families.

use super::*;
use libc::sockaddr_in6;
use std::net::Ipv6Addr;

const INET6: socklen_t = size_of::<sockaddr_in6>() as socklen_t;

fn inet6(ip: &str, port: u16) -> sockaddr_in6 {
    // SAFETY: a C structure of numbers, for which zero is a value.
    let mut address: sockaddr_in6 = unsafe { core::mem::zeroed() };
    address.sin6_family = libc::AF_INET6 as _;
    address.sin6_port = port.to_be();
    address.sin6_addr.s6_addr = ip.parse::<Ipv6Addr>().unwrap().octets();
    address
}

/// An IPv6 listener of `b` on all addresses.
fn listener6(world: &World, v6_only: c_int) -> c_int {
    let any = inet6("::", 80);
    // SAFETY: a live stack and a live address of that length.
    unsafe {
        let fd = lr_socket(world.b.stack, libc::AF_INET6, libc::SOCK_STREAM, 0);
        assert_eq!(world.b.set(fd, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, &v6_only), 0);
        assert_eq!(lr_bind(world.b.stack, fd, (&raw const any).cast(), INET6), 0);
        assert_eq!(world.b.listen(fd, 4), 0);
        assert_eq!(
            world.b.set(fd, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, &v6_only),
            -libc::EINVAL,
            "too late"
        );
        fd
    }
}

/// Accepts, and returns the descriptor and the peer's address.
fn accept6(world: &mut World, listener: c_int) -> (c_int, Ipv6Addr) {
    world.until(|world| world.b.poll(listener, libc::POLLIN) != 0);
    let (mut peer, mut len) = (inet6("::", 0), INET6);
    // SAFETY: a live stack and a live address of that length.
    let fd = unsafe { lr_accept(world.b.stack, listener, (&raw mut peer).cast(), &mut len) };
    assert!(fd >= 0 && len == INET6);
    (fd, Ipv6Addr::from(peer.sin6_addr.s6_addr))
}

#[test]
fn data_arrives_over_ipv6_also_without_a_link_layer() {
    for capabilities in [0, LR_DEVICE_IP] {
        let mut world = World::shaped(Shape { capabilities, completions: true, memory: None });
        let listener = listener6(&world, 1);
        let to = inet6("fd00::2", 80);
        // SAFETY: a live stack and a live address of that length.
        let client = unsafe {
            let fd = lr_socket(world.a.stack, libc::AF_INET6, libc::SOCK_STREAM, 0);
            assert_eq!(lr_connect(world.a.stack, fd, (&raw const to).cast(), INET6), -libc::EINPROGRESS);
            fd
        };
        let (server, peer) = accept6(&mut world, listener);
        assert_eq!(peer, "fd00::1".parse::<Ipv6Addr>().unwrap());
        assert_eq!(world.b.write(server, b"six"), 3);
        world.until(|world| world.a.poll(client, libc::POLLIN) != 0);
        assert_eq!(world.a.read(client, 9).unwrap(), b"six");
    }
}

#[test]
fn an_ipv6_listener_sees_ipv4_peers_mapped() {
    let mut world = World::new();
    let listener = listener6(&world, 0);
    let client = world.a.socket(libc::SOCK_STREAM);
    world.a.connect(client, "10.0.0.2", 80);
    let (_, peer) = accept6(&mut world, listener);
    assert_eq!(peer, "::ffff:10.0.0.1".parse::<Ipv6Addr>().unwrap());
}

#[test]
fn a_listener_for_ipv6_only_turns_ipv4_away() {
    let mut world = World::new();
    let listener = listener6(&world, 1);
    let client = world.a.socket(libc::SOCK_STREAM);
    world.a.connect(client, "10.0.0.2", 80);
    world.until(|world| {
        assert_eq!(world.b.poll(listener, libc::POLLIN), 0);
        world.a.poll(client, 0) & libc::POLLERR != 0
    });
    assert_eq!(world.a.error(client), libc::ECONNRESET);
}
