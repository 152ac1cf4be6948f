//! Bytes go through whole, in order, and no further than there is room.

use super::*;
use linerate_transport::{BufferSize, ConnState, KeepAlive};
use std::time::Duration;

fn echo(ip: Option<&str>, to: &str) {
    let mut rig = Rig::new();
    let (listener, addr) = rig.listen(ip);
    let client = rig.connect(SocketAddr::new(to.parse().unwrap(), addr.port()));
    let server = rig.accept(listener);
    rig.wait("connected", |rig| rig.saw(client, Ready::WRITABLE));
    assert_eq!(rig.net.state(server), ConnState::Open { finished: false });
    rig.net.write(client, b"hello ").unwrap();
    rig.net.send(client, Payload::Static(b"wor")).unwrap();
    rig.net.send(client, Payload::Shared(b"ld".to_vec().into())).unwrap();
    assert_eq!(rig.net.unsent(client), 11);
    assert_eq!(rig.read(server, 11), b"hello world");
    assert!(rig.saw(server, Ready::READABLE));
    rig.net.write(server, b"back").unwrap();
    assert_eq!(rig.read(client, 4), b"back");
    let (near, far) = (rig.net.info(client).unwrap(), rig.net.info(server).unwrap());
    assert_eq!((near.local, near.remote), (far.remote, far.local));
    assert_eq!(near.remote.ip(), to.parse::<IpAddr>().unwrap(), "IPv4 stays IPv4 over a dual-stack listener");
    assert!(near.rtt.is_some() && near.rto.is_some() && near.send_mss > 500 && near.path_mtu > 500);
    assert!(near.congestion_window > near.send_mss && near.receive_window > 0);
    assert!((11..=12).contains(&near.bytes_acked), "{near:?}");
    assert_eq!((near.bytes_received, near.segments_sent > 0), (4, true));
    assert_eq!(near.retransmits, 0);
}

#[test]
fn both_families_echo() {
    echo(Some("127.0.0.1"), "127.0.0.1");
    echo(Some("::1"), "::1");
    echo(None, "127.0.0.1");
    echo(None, "::1");
}

#[test]
fn urgent_bytes_stay_in_the_stream() {
    let mut rig = Rig::new();
    let (listener, addr) = rig.listen(Some("127.0.0.1"));
    let client = std::net::TcpStream::connect(addr).unwrap();
    let server = rig.accept(listener);
    rustix::net::send(&client, b"ABOR\r\n", rustix::net::SendFlags::OOB).unwrap();
    rustix::net::send(&client, b"NOOP\r\n", rustix::net::SendFlags::empty()).unwrap();
    assert_eq!(rig.read(server, 12), b"ABOR\r\nNOOP\r\n");
}

#[test]
fn sixty_four_mebibytes_go_both_ways_at_once() {
    const TOTAL: u64 = 64 << 20;
    let mut rig = Rig::new();
    let (client, server) = rig.pair("127.0.0.1");
    let ends = [client, server];
    let (mut sent, mut got) = ([0; 2], [0; 2]);
    rig.wait("everything came", |rig| {
        for end in 0..2 {
            sent[end] = rig.send_pattern(ends[end], sent[end], TOTAL);
            rig.read_some(ends[end], |piece| got[end] = check_pattern(got[end], piece));
        }
        got == [TOTAL; 2]
    });
    let info = rig.net.info(client).unwrap();
    assert!(info.bytes_received == TOTAL && info.limits.ns.iter().sum::<u64>() > 0, "{info:?}");
    let counters = rig.net.counters();
    assert_eq!((counters.bytes_sent, counters.bytes_received), (2 * TOTAL, 2 * TOTAL));
    assert_eq!(counters.memory, 0, "buffers are only held while there is something in them");
}

#[test]
fn an_unread_connection_pushes_back_and_goes_on_when_it_is_read() {
    let mut rig = Rig::new();
    let options = SocketOptions {
        send_buffer: BufferSize::Fixed(64 << 10),
        receive_buffer: BufferSize::Fixed(64 << 10),
        ..SocketOptions::default()
    };
    let (listener, addr) = rig.listen_with(
        Some("127.0.0.1"),
        &ListenOptions { socket: options.clone(), ..ListenOptions::default() },
    );
    let client = rig.net.connect(CLIENT, None, addr, &options).unwrap();
    let server = rig.accept(listener);
    rig.wait("connected", |rig| rig.saw(client, Ready::WRITABLE));
    let mut sent = 0;
    let mut quiet = 0;
    while quiet < 3 {
        rig.forget(client);
        let before = sent;
        sent = rig.send_pattern(client, sent, u64::MAX);
        rig.step();
        quiet = if sent == before { quiet + 1 } else { 0 };
    }
    assert!(sent < 2 << 20, "{sent} bytes found room in small buffers");
    assert_eq!(rig.net.sendable(client), 0);
    assert!(rig.net.unsent(client) > 0);
    assert_eq!(rig.net.send(client, Payload::Static(b"x")), Err(SendError::Full));
    assert!(rig.net.readable(server) >= 4096);
    rig.forget(client);
    let mut got = 0;
    rig.wait("the rest comes and room is reported", |rig| {
        rig.read_some(server, |piece| got = check_pattern(got, piece));
        got == sent && rig.saw(client, Ready::WRITABLE | Ready::SENT)
    });
    assert!(rig.net.sendable(client) > 0);
}

#[test]
fn consuming_less_than_was_shown_keeps_the_rest_and_the_order() {
    let mut rig = Rig::new();
    let (client, server) = rig.pair("::1");
    let total = 3 << 20;
    let (mut sent, mut got) = (0, 0);
    rig.wait("all came", |rig| {
        sent = rig.send_pattern(client, sent, total);
        // An odd piece at a time, so that the ring wraps.
        for _ in 0..50 {
            let piece = rig.net.peek(server);
            let len = piece.len().min(10_007);
            got = check_pattern(got, &piece[..len]);
            assert!(rig.net.readable(server) >= len);
            rig.net.consume(server, len);
        }
        got == total
    });
    rig.net.consume(server, 1000);
    assert_eq!(rig.net.readable(server), 0);
}

#[test]
fn five_hundred_connections_at_once() {
    const COUNT: usize = 500;
    let mut rig = Rig::new();
    let (listener, addr) = rig.listen(None);
    let to = SocketAddr::new("127.0.0.1".parse().unwrap(), addr.port());
    let clients: Vec<ConnId> = (0..COUNT).map(|_| rig.connect(to)).collect();
    let mut servers = Vec::new();
    rig.wait("all are accepted", |rig| {
        while let Some(conn) = rig.net.accept(listener) {
            servers.push((conn, 0u64));
        }
        servers.len() == COUNT
    });
    assert_eq!(rig.net.counters().connections, 2 * COUNT as u64);
    let total = 100_000;
    let mut sent = vec![0; COUNT];
    rig.wait("each has moved its bytes", |rig| {
        for (client, sent) in clients.iter().zip(&mut sent) {
            if rig.saw(*client, Ready::WRITABLE) {
                *sent = rig.send_pattern(*client, *sent, total);
            }
        }
        for (server, got) in &mut servers {
            rig.read_some(*server, |piece| *got = check_pattern(*got, piece));
        }
        servers.iter().all(|(_, got)| *got == total)
    });
    for client in clients {
        rig.net.close(client);
    }
    rig.wait("all have finished", |rig| servers.iter().all(|(server, _)| rig.saw(*server, Ready::FINISHED)));
    for (server, _) in servers {
        rig.net.close(server);
    }
    rig.wait("all are gone", |rig| rig.net.counters().connections == 0);
    assert_eq!(rig.net.counters().memory, 0);
    assert_eq!(rig.net.poll_timeout(), None);
}

#[test]
fn long_and_empty_payloads() {
    let mut rig = Rig::new();
    let (client, server) = rig.pair("127.0.0.1");
    assert_eq!(rig.net.send(client, Payload::Shared(vec![0; 65_537].into())), Err(SendError::TooLong));
    assert_eq!(rig.net.write(client, &[0; 65_537]), Err(SendError::TooLong));
    assert_eq!(rig.net.send(client, Payload::Static(b"")), Ok(()));
    assert_eq!(rig.net.write(client, b""), Ok(()));
    assert_eq!(rig.net.unsent(client), 0);
    rig.net.write(client, &[7; 65_536]).unwrap();
    assert_eq!(rig.read(server, 65_536), [7; 65_536]);
}

#[test]
fn settings_reach_the_kernel() {
    let mut rig = Rig::new();
    let options = SocketOptions {
        mss: Some(700),
        no_delay: false,
        tos: 0x28,
        user_timeout: Duration::from_secs(7),
        keep_alive: Some(KeepAlive {
            idle: Duration::from_secs(30),
            interval: Duration::from_millis(10),
            probes: 3,
        }),
        ..SocketOptions::default()
    };
    let (listener, addr) = rig.listen_with(
        Some("127.0.0.1"),
        &ListenOptions { socket: options.clone(), ..ListenOptions::default() },
    );
    let client = rig.connect(addr);
    let server = rig.accept(listener);
    let check = |rig: &Rig, conn, no_delay| {
        use rustix::net::sockopt;
        let fd = rig.net.conn(conn).unwrap().fd().unwrap();
        assert_eq!(sockopt::tcp_nodelay(fd).unwrap(), no_delay);
        assert_eq!(sockopt::ip_tos(fd).unwrap(), 0x28);
        assert_eq!(sockopt::tcp_user_timeout(fd).unwrap(), 7_000);
        assert_eq!(sockopt::tcp_keepidle(fd).unwrap(), Duration::from_secs(30));
        assert_eq!(sockopt::tcp_keepintvl(fd).unwrap(), Duration::from_secs(1));
        assert_eq!(sockopt::tcp_keepcnt(fd).unwrap(), 3);
    };
    check(&rig, server, false);
    assert!(rig.net.info(server).unwrap().send_mss <= 700);
    rig.net.set_options(client, &SocketOptions { no_delay: true, ..options });
    check(&rig, client, true);
}
