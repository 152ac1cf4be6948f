//! More connections than there is room for, and less memory than everybody wants.

use super::*;
use crate::kernel::hub;
use crate::sys::socket as sys;
use rustix::net::sockopt;
use std::time::Duration;

#[test]
fn connections_beyond_the_bound_are_reset_at_once() {
    let mut rig =
        Rig::with(KernelConfig { connections_max: 4, ..KernelConfig::default() }, FileAccess::none());
    let (listener, addr) = rig.listen(Some("127.0.0.1"));
    let mut peers: Vec<_> = (0..6).map(|_| std::net::TcpStream::connect(addr).unwrap()).collect();
    let mut servers: Vec<ConnId> = (0..4).map(|_| rig.accept(listener)).collect();
    assert!(rig.net.accept(listener).is_none());
    assert_eq!(rig.net.counters().accept_refused, 2);
    for peer in peers.drain(4..) {
        let error = std::io::Read::read(&mut &peer, &mut [0]).expect_err("a reset");
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    }
    // Whose server has closed it gives way, before its peer has closed too: the oldest first.
    rig.net.close(servers.remove(1));
    rig.net.close(servers.remove(0));
    rig.settle();
    let newcomers: Vec<_> = (0..2).map(|_| std::net::TcpStream::connect(addr).unwrap()).collect();
    for newcomer in &newcomers {
        let server = rig.accept(listener);
        assert_eq!(rig.net.remote_addr(server), Some(newcomer.local_addr().unwrap()));
        servers.push(server);
    }
    let counters = rig.net.counters();
    assert_eq!((counters.gave_way, counters.accept_refused, counters.connections), (2, 2, 4));
    for peer in &peers[..2] {
        assert_eq!(std::io::Read::read(&mut &*peer, &mut [0]).unwrap(), 0, "FIN, not a reset");
    }
    drop(peers);
}

#[test]
fn a_storm_of_connections_is_accepted_in_portions() {
    let mut rig = Rig::new();
    let (listener, addr) = rig.listen(Some("127.0.0.1"));
    let peers: Vec<_> = (0..150).map(|_| std::net::TcpStream::connect(addr).unwrap()).collect();
    let mut portions = Vec::new();
    rig.wait("all are accepted", |rig| {
        let mut portion = 0;
        while rig.net.accept(listener).is_some() {
            portion += 1;
        }
        portions.push(portion);
        portions.iter().sum::<usize>() == peers.len()
    });
    assert!(portions.iter().all(|&portion| portion <= 64), "{portions:?}");
}

#[test]
fn without_memory_connections_still_work() {
    let config = KernelConfig { memory_max: 0, ..KernelConfig::default() };
    let mut rig = Rig::with(config, FileAccess::none());
    let (client, server) = rig.pair("127.0.0.1");
    let (mut sent, mut got) = (0, 0);
    rig.wait("all came", |rig| {
        sent = rig.send_pattern(client, sent, 2 << 20);
        rig.read_some(server, |piece| {
            assert!(piece.len() <= 4096);
            got = check_pattern(got, piece);
        });
        got == 2 << 20
    });
    assert!(rig.net.counters().buffers_refused > 0);
}

#[test]
fn one_busy_connection_does_not_starve_another() {
    let mut rig = Rig::new();
    let (busy, busy_server) = rig.pair("127.0.0.1");
    let (calm, calm_server) = rig.pair("127.0.0.1");
    let (mut sent, mut got) = (0, 0);
    for _ in 0..50 {
        rig.net.write(calm, b"x").unwrap();
        let mut turns = 0;
        while rig.net.readable(calm_server) == 0 {
            sent = rig.send_pattern(busy, sent, u64::MAX);
            rig.step();
            rig.read_some(busy_server, |piece| got = check_pattern(got, piece));
            turns += 1;
            assert!(turns < 20, "the calm connection starves");
        }
        rig.net.consume(calm_server, 1);
    }
    assert!(got > 1 << 20);
}

/// Runs a test in a process of its own, whose limit of descriptors it may lower.
#[track_caller]
fn check_child(name: &str) {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args([name, "--ignored", "--test-threads=1"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn running_out_of_descriptors_is_counted_and_survived() {
    check_child("child_without_descriptors");
}

#[test]
fn where_few_descriptors_are_left_only_what_is_sent_gives_way() {
    check_child("child_with_few_descriptors");
}

#[test]
#[ignore = "lowers the limit of the whole process; another test runs it as a child"]
fn child_with_few_descriptors() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    const LEN: u64 = 16 << 20;
    let used = std::fs::read_dir("/proc/self/fd").unwrap().count() as u64;
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = Some(used + 60);
    setrlimit(Resource::Nofile, limit).unwrap();
    let mut rig = Rig::new();
    let (listener, addr) = rig.listen(Some("127.0.0.1"));
    // The oldest have more than the kernel takes, and their peers do not read; others are all sent.
    let slow: Vec<_> = (0..3).map(|_| std::net::TcpStream::connect(addr).unwrap()).collect();
    let quick: Vec<_> = (0..3).map(|_| std::net::TcpStream::connect(addr).unwrap()).collect();
    let late = Unconnected::new();
    let servers: Vec<ConnId> = (0..6).map(|_| rig.accept(listener)).collect();
    let mut sent = [0; 3];
    for (sent, &server) in sent.iter_mut().zip(&servers) {
        let mut before = u64::MAX;
        while *sent < LEN && *sent != before {
            before = *sent;
            *sent = rig.send_pattern(server, *sent, LEN);
            rig.settle();
        }
        assert!(rig.net.unsent(server) > 0);
    }
    servers.iter().for_each(|&server| rig.net.close(server));
    rig.settle();
    let mut others = Vec::new();
    while others.last().is_none_or(|other: &std::fs::File| {
        (std::os::fd::AsRawFd::as_raw_fd(other) as u64) < used + 60 - hub::DESCRIPTORS_FOR_FILES
    }) {
        others.push(std::fs::File::open("/dev/null").unwrap());
    }
    let late = late.connect(addr);
    let newcomer = rig.accept(listener);
    assert_eq!(rig.net.remote_addr(newcomer), Some(late.local_addr().unwrap()));
    assert_eq!(rig.net.counters().gave_way, 3);
    for (peer, sent) in slow.iter().zip(sent) {
        peer.set_nonblocking(true).unwrap();
        let (mut got, mut is_over) = (0, false);
        let mut buffer = vec![0; 1 << 16];
        rig.wait("all came", |_| {
            match std::io::Read::read(&mut &*peer, &mut buffer) {
                Ok(0) => is_over = true,
                Ok(len) => got = check_pattern(got, &buffer[..len]),
                Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
            }
            is_over
        });
        assert_eq!(got, sent);
    }
    drop(quick);
}

#[test]
#[ignore = "lowers the limit of the whole process; another test runs it as a child"]
fn child_without_descriptors() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut rig = Rig::new();
    let (listener, addr) = rig.listen(Some("127.0.0.1"));
    let peers: Vec<_> = (0..20).map(|_| std::net::TcpStream::connect(addr).unwrap()).collect();
    let late = Unconnected::new();
    let used = std::fs::read_dir("/proc/self/fd").unwrap().count() as u64;
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = Some(used + 5);
    setrlimit(Resource::Nofile, limit).unwrap();
    let mut servers = Vec::new();
    while let Some(conn) = rig.net.accept(listener) {
        servers.push(conn);
    }
    for _ in 0..3 {
        rig.step();
        while let Some(conn) = rig.net.accept(listener) {
            servers.push(conn);
        }
    }
    let accepted = servers.len();
    assert!((1..20).contains(&accepted), "{accepted}");
    // The others are told at once, by means of the descriptor in reserve.
    assert_eq!(rig.net.counters().accept_refused as usize, peers.len() - accepted);
    for peer in &peers[accepted..] {
        let error = std::io::Read::read(&mut &*peer, &mut [0]).expect_err("a reset");
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    }
    assert!(!rig.net.pending(), "it does not spin");
    // Somebody takes the reserve in its moment: waiting for a time is what is left.
    limit.current = Some(0);
    setrlimit(Resource::Nofile, limit).unwrap();
    // The client's socket exists already.
    let late = late.connect(addr);
    while rig.net.poll_timeout().is_none() {
        rig.step();
        assert!(rig.net.accept(listener).is_none());
    }
    assert!(rig.net.counters().accept_starved > 0 && !rig.net.pending());
    assert!(rig.net.poll_timeout().unwrap() <= rig.now() + Duration::from_millis(100));
    limit.current = Some(used + 100);
    setrlimit(Resource::Nofile, limit).unwrap();
    rig.wait("he is accepted later", |rig| {
        servers.extend(rig.net.accept(listener));
        servers.len() > accepted
    });
    assert_eq!(rig.net.remote_addr(servers[accepted]), Some(late.local_addr().unwrap()));
}

/// A socket that connects later.
struct Unconnected(rustix::fd::OwnedFd);

impl Unconnected {
    fn new() -> Self {
        use rustix::net::{AddressFamily, SocketType, socket};
        Unconnected(socket(AddressFamily::INET, SocketType::STREAM, None).unwrap())
    }

    fn connect(self, addr: std::net::SocketAddr) -> std::net::TcpStream {
        rustix::net::connect(&self.0, &addr).unwrap();
        self.0.into()
    }
}

#[test]
fn a_listener_offers_another_buffer_for_a_while() {
    /// Where `struct tcp_info` has the window that the other end offers (`tcpi_snd_wnd`).
    const WINDOW: std::ops::Range<usize> = 228..232;
    let mut rig = Rig::new();
    let (listener, addr) = rig.listen(Some("127.0.0.1"));
    let mut come = |offered: Option<usize>| {
        rig.net.offer_buffer(listener, offered);
        let peer = std::net::TcpStream::connect(addr).unwrap();
        let server = rig.accept(listener);
        let fd = rig.net.conn(server).unwrap().fd().unwrap();
        let mut info = [0; sys::TCP_INFO_LEN];
        sys::tcp_info(&peer, &mut info).unwrap();
        let window = u32::from_ne_bytes(info[WINDOW].try_into().unwrap());
        (sockopt::socket_recv_buffer_size(fd).unwrap(), window as usize)
    };
    let usual = come(None);
    for wanted in [4096, 8192] {
        let (buffer, window) = come(Some(wanted));
        assert_eq!(buffer, 2 * wanted);
        // The handshake itself tells of no more: a client cuts its segments by the largest window that it was ever told.
        assert!(window <= buffer, "{window}");
    }
    assert_eq!(come(None), usual);
}
