//! How connections begin and end.

use super::*;
use crate::sys::socket::{TCP_INFO_LEN, tcp_info};
use linerate_transport::{CloseReason, ConnState, ConnectError, ListenError};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

#[test]
fn nobody_listens() {
    let mut rig = Rig::new();
    for ip in ["127.0.0.1", "::1"] {
        let addr = TcpListener::bind((ip, 0)).unwrap().local_addr().unwrap();
        let conn = rig.connect(addr);
        rig.wait("it is refused", |rig| rig.saw(conn, Ready::CLOSED));
        assert!(!rig.saw(conn, Ready::WRITABLE));
        assert_eq!(rig.net.state(conn), ConnState::Closed(CloseReason::Refused));
        assert_eq!(rig.net.send(conn, Payload::Static(b"x")), Err(SendError::Closed));
        assert_eq!(rig.net.info(conn).unwrap().remote, addr);
        rig.net.close(conn);
        assert_eq!(rig.net.state(conn), ConnState::Closed(CloseReason::Stale));
        assert!(rig.net.info(conn).is_none());
    }
    assert_eq!(rig.net.counters().connections, 0);
}

#[test]
fn addresses_that_cannot_be_had() {
    let mut rig = Rig::new();
    let (_, addr) = rig.listen(Some("127.0.0.1"));
    let options = ListenOptions::default();
    let again = ListenAddr { ip: Some(addr.ip()), port: addr.port() };
    assert_eq!(rig.net.listen(SERVER, again, &options), Err(ListenError::InUse));
    let all = ListenAddr { ip: None, port: addr.port() };
    assert_eq!(rig.net.listen(SERVER, all, &options), Err(ListenError::InUse));
    let foreign = ListenAddr { ip: Some("192.0.2.1".parse().unwrap()), port: 0 };
    assert_eq!(rig.net.listen(SERVER, foreign, &options), Err(ListenError::NoSuchAddress));
    let options = SocketOptions::default();
    let local = Some("192.0.2.1:0".parse().unwrap());
    assert_eq!(rig.net.connect(CLIENT, local, addr, &options), Err(ConnectError::Address));
    let local = Some("[::1]:0".parse().unwrap());
    assert_eq!(rig.net.connect(CLIENT, local, addr, &options), Err(ConnectError::Address));
}

#[test]
fn the_source_address_and_port_are_as_asked() {
    let mut rig = Rig::new();
    let (listener, addr) = rig.listen(Some("127.0.0.1"));
    let port = TcpListener::bind("127.0.0.3:0").unwrap().local_addr().unwrap();
    let client = rig.net.connect(CLIENT, Some(port), addr, &SocketOptions::default()).unwrap();
    let server = rig.accept(listener);
    assert_eq!(rig.net.info(server).unwrap().remote, port);
    rig.net.abort(client);
}

/// Packets that the kernel received on a connection.
fn packets_in(stream: &TcpStream) -> u32 {
    let mut info = [0; TCP_INFO_LEN];
    assert!(tcp_info(stream, &mut info).unwrap() >= 144);
    // `tcpi_segs_in` of `struct tcp_info`.
    u32::from_ne_bytes(info[140..144].try_into().unwrap())
}

#[test]
fn the_fin_leaves_with_the_last_bytes() {
    for is_copied in [true, false] {
        let mut rig = Rig::new();
        let (listener, addr) = rig.listen(Some("127.0.0.1"));
        let mut client = TcpStream::connect(addr).unwrap();
        let server = rig.accept(listener);
        let before = packets_in(&client);
        if is_copied {
            rig.net.write(server, b"answer").unwrap();
        } else {
            rig.net.send(server, Payload::Static(b"ans")).unwrap();
            rig.net.send(server, Payload::Shared(b"wer".as_slice().into())).unwrap();
        }
        rig.net.close(server);
        rig.settle();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();
        assert_eq!(answer, b"answer");
        assert_eq!(packets_in(&client) - before, 1, "{is_copied}");
    }
}

#[test]
fn each_side_finishes_on_its_own() {
    let mut rig = Rig::new();
    let (client, server) = rig.pair("127.0.0.1");
    rig.net.write(client, b"question").unwrap();
    rig.net.shutdown(client);
    assert_eq!(rig.net.write(client, b"more"), Err(SendError::Closed));
    rig.wait("the client's FIN is sent", |rig| rig.saw(client, Ready::SENT));
    assert_eq!(rig.net.unsent(client), 0);
    rig.wait("the server sees the end", |rig| rig.saw(server, Ready::READABLE | Ready::FINISHED));
    assert_eq!(rig.net.state(server), ConnState::Open { finished: true });
    assert_eq!(rig.read(server, 8), b"question");
    rig.settle();
    assert!(!rig.saw(server, Ready::CLOSED) && !rig.saw(client, Ready::FINISHED));
    // The other direction goes on.
    rig.net.write(server, b"answer").unwrap();
    assert_eq!(rig.read(client, 6), b"answer");
    rig.net.shutdown(server);
    rig.wait("both are done", |rig| {
        rig.saw(client, Ready::FINISHED | Ready::CLOSED) && rig.saw(server, Ready::SENT | Ready::CLOSED)
    });
    for conn in [client, server] {
        assert_eq!(rig.net.state(conn), ConnState::Closed(CloseReason::Done));
        assert!(rig.net.info(conn).is_some());
        rig.net.close(conn);
    }
    rig.wait("both are gone", |rig| rig.net.counters().connections == 0);
}

#[test]
fn the_end_is_not_told_before_the_last_byte_was_read() {
    let mut rig = Rig::new();
    let (client, server) = rig.pair("127.0.0.1");
    rig.net.shutdown(server);
    rig.net.write(client, b"last words").unwrap();
    rig.net.shutdown(client);
    rig.wait("the server has all", |rig| rig.saw(server, Ready::READABLE | Ready::FINISHED));
    rig.settle();
    assert_eq!(rig.net.state(server), ConnState::Open { finished: true });
    assert_eq!(rig.read(server, 10), b"last words");
    rig.wait("it is over", |rig| rig.saw(server, Ready::CLOSED));
}

#[test]
fn sent_comes_once_for_each_time_the_queue_empties() {
    let mut rig = Rig::new();
    let (client, server) = rig.pair("127.0.0.1");
    rig.settle();
    assert!(!rig.saw(client, Ready::SENT), "nothing was queued");
    for _ in 0..3 {
        rig.net.write(client, b"x").unwrap();
        rig.wait("it is sent", |rig| rig.saw(client, Ready::SENT));
        rig.forget(client);
        rig.settle();
        assert!(!rig.saw(client, Ready::SENT));
    }
    assert_eq!(rig.read(server, 3), b"xxx");
    rig.net.shutdown(client);
    rig.wait("the FIN counts, too", |rig| rig.saw(client, Ready::SENT));
}

#[test]
fn an_abort_is_a_reset() {
    let mut rig = Rig::new();
    let (client, server) = rig.pair("127.0.0.1");
    rig.net.write(client, b"never mind").unwrap();
    rig.wait("it came", |rig| rig.saw(server, Ready::READABLE));
    rig.net.abort(client);
    assert_eq!(rig.net.state(client), ConnState::Closed(CloseReason::Stale));
    rig.wait("the server is told", |rig| rig.saw(server, Ready::CLOSED));
    assert_eq!(rig.net.state(server), ConnState::Closed(CloseReason::Reset));
    assert!(rig.net.peek(server).is_empty());
    assert!(rig.net.info(server).unwrap().bytes_received >= 10);
    rig.net.abort(server);
    rig.net.abort(server);
    assert_eq!(rig.net.counters().connections, 0);
    assert_eq!(rig.net.counters().broken, 1);
}

#[test]
fn a_peer_that_resets_while_we_send_frees_what_was_queued() {
    let mut rig = Rig::new();
    let (client, server) = rig.pair("127.0.0.1");
    let mut sent = rig.send_pattern(server, 0, u64::MAX);
    rig.step();
    sent = rig.send_pattern(server, sent, u64::MAX);
    assert!(sent > 0 && rig.net.unsent(server) > 0);
    rig.net.abort(client);
    rig.wait("the server is told", |rig| rig.saw(server, Ready::CLOSED));
    assert_eq!(rig.net.state(server), ConnState::Closed(CloseReason::Reset));
    assert_eq!((rig.net.unsent(server), rig.net.sendable(server)), (0, 0));
    assert_eq!(rig.net.counters().memory, 0);
    rig.forget(server);
    rig.net.shutdown(server);
    rig.settle();
    assert!(!rig.saw(server, Ready::SENT), "nothing comes after the end");
    // A connection that is being closed breaks just as quietly.
    let (client, server) = rig.pair("127.0.0.1");
    rig.send_pattern(server, 0, u64::MAX);
    rig.net.close(server);
    rig.net.abort(client);
    rig.wait("it is gone", |rig| rig.net.counters().connections == 1);
}

#[test]
fn a_closed_connection_still_delivers_everything() {
    let mut rig = Rig::new();
    let (listener, addr) = rig.listen(Some("127.0.0.1"));
    let peer = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(addr).unwrap();
        // Data that the server never reads must not turn its FIN into a reset.
        stream.write_all(&[1; 300_000]).unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        all
    });
    let server = rig.accept(listener);
    let sent = rig.send_pattern(server, 0, u64::MAX);
    assert!(sent > 100_000);
    rig.net.close(server);
    assert_eq!(rig.net.state(server), ConnState::Closed(CloseReason::Stale));
    assert_eq!(rig.net.send(server, Payload::Static(b"x")), Err(SendError::Closed));
    assert!(rig.net.peek(server).is_empty());
    rig.forget(server);
    rig.wait("the peer has finished", |rig| rig.net.counters().connections == 0);
    let all = peer.join().unwrap();
    assert_eq!(check_pattern(0, &all), sent);
    assert!(!rig.seen.contains_key(&Source::Conn(server)), "no event after close");
    assert_eq!(rig.net.counters().linger_expired, 0);
}

#[test]
fn a_peer_that_never_finishes_is_given_up() {
    let mut rig = Rig::new();
    let (listener, addr) = rig.listen(Some("127.0.0.1"));
    let mut peer = TcpStream::connect(addr).unwrap();
    let server = rig.accept(listener);
    rig.net.write(server, b"bye").unwrap();
    rig.net.close(server);
    let mut bytes = Vec::new();
    rig.wait("the FIN is sent", |rig| {
        rig.net.poll_timeout().is_some_and(|at| at <= rig.now() + Duration::from_secs(10))
    });
    peer.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, b"bye");
    rig.settle();
    assert_eq!(rig.net.counters().connections, 1);
    rig.skipped_ns = 11_000_000_000;
    rig.step();
    let counters = rig.net.counters();
    assert_eq!((counters.connections, counters.linger_expired), (0, 1));
    assert_eq!(rig.net.poll_timeout(), None);
}

#[test]
fn a_peer_that_never_reads_is_given_up_after_the_user_timeout() {
    let mut rig = Rig::new();
    let (listener, addr) = rig.listen(Some("127.0.0.1"));
    let mut peer = TcpStream::connect(addr).unwrap();
    let server = rig.accept(listener);
    // More than the kernel's buffers hold.
    let mut sent = 0;
    let mut quiet = 0;
    while quiet < 3 {
        let before = sent;
        sent = rig.send_pattern(server, sent, u64::MAX);
        rig.step();
        quiet = if sent == before { quiet + 1 } else { 0 };
    }
    rig.net.close(server);
    rig.settle();
    rig.skipped_ns = 59_000_000_000;
    rig.settle();
    assert_eq!(rig.net.counters().connections, 1);
    rig.skipped_ns = 70_000_000_000;
    rig.step();
    let counters = rig.net.counters();
    assert_eq!((counters.connections, counters.linger_expired, counters.memory), (0, 1, 0));
    let mut bytes = Vec::new();
    assert!(peer.read_to_end(&mut bytes).is_err(), "the peer gets a reset instead of a false end");
}

#[test]
fn a_closed_listener_resets_who_was_not_accepted() {
    let mut rig = Rig::new();
    let (listener, addr) = rig.listen(Some("127.0.0.1"));
    let accepted = rig.connect(addr);
    let server = rig.accept(listener);
    let waiting = rig.connect(addr);
    rig.wait("connected", |rig| rig.saw(waiting, Ready::WRITABLE));
    rig.net.close_listener(listener);
    assert!(rig.net.listener_addr(listener).is_none());
    assert!(rig.net.accept(listener).is_none());
    rig.wait("it is reset", |rig| rig.saw(waiting, Ready::CLOSED));
    assert_eq!(rig.net.state(waiting), ConnState::Closed(CloseReason::Reset));
    rig.net.write(accepted, b"alive").unwrap();
    assert_eq!(rig.read(server, 5), b"alive");
}

#[test]
fn an_open_that_nobody_answers_times_out() {
    let mut rig = Rig::new();
    // A listener whose accept queue is full answers no SYN.
    let backlog = linerate_transport::AcceptBacklog(1);
    let (_, addr) =
        rig.listen_with(Some("127.0.0.1"), &ListenOptions { backlog, ..ListenOptions::default() });
    let conns: Vec<ConnId> = (0..6).map(|_| rig.connect(addr)).collect();
    rig.settle();
    let stuck: Vec<ConnId> =
        conns.into_iter().filter(|&conn| rig.net.state(conn) == ConnState::Connecting).collect();
    assert!(!stuck.is_empty());
    rig.skipped_ns = 61_000_000_000;
    rig.wait("they time out", |rig| stuck.iter().all(|&conn| rig.saw(conn, Ready::CLOSED)));
    for conn in stuck {
        assert_eq!(rig.net.state(conn), ConnState::Closed(CloseReason::TimedOut));
    }
}

/// A client that has sent its last words, and the server's end of its connection, which has read them.
fn last_words(rig: &mut Rig) -> (TcpStream, ConnId) {
    let (listener, addr) = rig.listen(Some("127.0.0.1"));
    let mut client = TcpStream::connect(addr).unwrap();
    let server = rig.accept(listener);
    client.write_all(b"last").unwrap();
    assert_eq!(rig.read(server, 4), b"last");
    (client, server)
}

#[test]
fn a_peer_that_is_done_is_not_waited_for() {
    let mut rig = Rig::new();
    for len in [0, 3, 3 << 20] {
        let (mut client, server) = last_words(&mut rig);
        // The client never finishes by itself: it waits for our end.
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            client.read_to_end(&mut all).map(|_| (all, client))
        });
        let mut sent = rig.send_pattern(server, 0, len);
        while sent < len {
            rig.step();
            sent = rig.send_pattern(server, sent, len);
        }
        rig.net.close_done(server);
        assert_eq!(rig.net.state(server), ConnState::Closed(CloseReason::Stale));
        rig.wait("it is gone", |rig| rig.net.counters().connections == 0);
        let (all, _client) = reader.join().unwrap().expect("no reset");
        assert_eq!(check_pattern(0, &all), len);
    }
    assert_eq!(rig.net.counters().broken, 0);
}

#[test]
fn a_peer_that_was_not_done_after_all_is_waited_for_where_it_is_seen() {
    let mut rig = Rig::new();
    let (mut client, server) = last_words(&mut rig);
    client.write_all(b"and more").unwrap();
    rig.wait("it came", |rig| rig.net.readable(server) == 8);
    rig.net.consume(server, 8);
    rig.net.write(server, b"answer").unwrap();
    client.write_all(b"and more").unwrap();
    rig.net.close_done(server);
    rig.wait("it is gone", |rig| rig.net.counters().connections == 0);
}
