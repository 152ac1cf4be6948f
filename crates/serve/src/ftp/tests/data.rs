//! Who may have the data connection.

use super::*;
use crate::ftp::PortShare;
use core::net::IpAddr;
use linerate_transport::ConnId;

/// The remote end of the active open under way.
fn connecting(ftp: &Ftp) -> Option<(ConnId, SocketAddr)> {
    ftp.world.net.connecting.last().copied()
}

#[test]
fn active_mode_connects_to_the_client() {
    for line in ["PORT 10,0,0,9,19,137", "EPRT |1|10.0.0.9|5001|"] {
        let mut ftp = Ftp::anna();
        ftp.expect(line, "200");
        assert!(connecting(&ftp).is_none(), "not before a transfer");
        ftp.expect("RETR a.txt", "150");
        let (data, remote) = connecting(&ftp).unwrap();
        assert_eq!(remote, at_port(PEER, 5001));
        ftp.world.net.client_accept(data);
        ftp.expect_replies("226");
        assert_eq!(ftp.world.received(data), b"one\ntwo\n");
        ftp.expect("RETR a.txt", "425");
        ftp.expect(line, "200");
        ftp.expect("STOR new", "150");
        let (data, _) = connecting(&ftp).unwrap();
        ftp.world.net.client_refuse(data);
        ftp.expect_replies("425");
        ftp.expect(line, "200");
        ftp.expect("RETR a.txt", "150");
        ftp.advance(Duration::from_secs(30));
        ftp.expect_replies("425");
        assert_eq!(ftp.world.files.open_count(), 0);
        assert_eq!(ftp.world.net.held(), 1);
    }
}

#[test]
fn active_mode_waits_for_room_as_a_client_would() {
    let mut ftp = Ftp::anna();
    ftp.world.net.is_full = true;
    ftp.expect("PORT 10,0,0,9,19,137", "200");
    ftp.expect("RETR a.txt", "150");
    ftp.advance(Duration::from_millis(500));
    assert!(connecting(&ftp).is_none() && ftp.replies().is_empty());
    ftp.world.net.is_full = false;
    ftp.advance(Duration::from_millis(50));
    let (data, _) = connecting(&ftp).unwrap();
    ftp.world.net.client_accept(data);
    ftp.expect_replies("226");
    assert_eq!(ftp.world.received(data), b"one\ntwo\n");
    // Not for ever, and not against the client's will.
    ftp.world.net.is_full = true;
    for (end, replies) in [("", "425"), ("ABOR", "426 226")] {
        ftp.expect("PORT 10,0,0,9,19,137", "200");
        ftp.expect("STOR new", "150");
        match end {
            "" => ftp.advance(Duration::from_secs(30)),
            line => ftp.send(line),
        }
        ftp.expect_replies(replies);
    }
    assert_eq!(ftp.world.files.open_count(), 0);
    assert_eq!(ftp.world.net.held(), 1);
}

#[test]
fn ipv6_has_its_own_commands() {
    let mut ftp = Ftp::anna();
    ftp.world.net.local_ip = "fd00::4".parse::<IpAddr>().unwrap();
    ftp.control = ftp.world.connect("[fd00::9]:5000".parse().unwrap(), 21);
    ftp.expect_replies("220");
    ftp.log_in_anna();
    ftp.expect("PASV", "501");
    ftp.expect("PORT 10,0,0,9,19,137", "504");
    ftp.expect("EPSV 1", "522");
    ftp.expect("EPRT |1|10.0.0.9|5001|", "522");
    ftp.expect("EPRT |2|fd00::9|5001|", "200");
    ftp.expect("RETR a.txt", "150");
    let (data, remote) = connecting(&ftp).unwrap();
    assert_eq!(remote, "[fd00::9]:5001".parse().unwrap());
    ftp.world.net.client_accept(data);
    ftp.expect_replies("226");
    let reply = ftp.expect("EPSV 2", "229");
    let port = reply.split('|').nth(3).unwrap().parse().unwrap();
    let data = ftp.world.connect("[fd00::9]:5002".parse().unwrap(), port);
    ftp.expect("RETR a.txt", "150 226");
    assert_eq!(ftp.world.received(data), b"one\ntwo\n");
}

#[test]
fn an_ipv4_client_of_an_ipv6_socket_is_an_ipv4_client() {
    let mut ftp = Ftp::anna();
    ftp.world.net.local_ip = "::ffff:192.168.1.4".parse::<IpAddr>().unwrap();
    ftp.control = ftp.world.connect("[::ffff:10.0.0.9]:5000".parse().unwrap(), 21);
    ftp.expect_replies("220");
    ftp.log_in_anna();
    assert!(ftp.cmd("PASV").contains("(192,168,1,4,"));
    ftp.expect("PORT 10,0,0,9,19,137", "200");
    let port = ftp.epsv();
    let data = ftp.world.connect("[::ffff:10.0.0.9]:5001".parse().unwrap(), port);
    ftp.expect("RETR a.txt", "150 226");
    assert_eq!(ftp.world.received(data), b"one\ntwo\n");
}

#[test]
fn the_server_attacks_nobody() {
    let mut ftp = Ftp::anna();
    let refused = [
        "PORT 10,0,0,8,19,137",
        "PORT 127,0,0,1,19,137",
        "PORT 192,168,1,4,19,137",
        "PORT 0,0,0,0,19,137",
        "PORT 10,0,0,9,0,22",
        "PORT 10,0,0,9,3,255",
        "PORT 10,0,0,9,0,0",
        "EPRT |1|10.0.0.8|5001|",
        "EPRT |1|10.0.0.9|1023|",
    ];
    for (at, line) in refused.iter().enumerate() {
        ftp.expect(line, "504");
        assert_eq!(ftp.server.stats().bounces_refused, at as u64 + 1);
        ftp.expect("LIST", "425");
        ftp.expect("RETR a.txt", "425");
    }
    assert!(connecting(&ftp).is_none());
    ftp.expect("PORT 10,0,0,9,4,0", "200");
}

#[test]
fn a_stranger_does_not_get_the_data_connection() {
    let mut ftp = Ftp::anna();
    let port = ftp.epsv();
    let stranger = ftp.world.connect("10.0.0.8:5001".parse().unwrap(), port);
    ftp.expect("RETR a.txt", "150");
    assert_eq!(ftp.world.net.released(stranger), Some(crate::testing::net::Released::Aborted));
    assert_eq!(ftp.world.received(stranger), b"");
    assert_eq!(ftp.server.stats().foreign_data, 1);
    let own = ftp.world.connect(at_port(PEER, 5001), port);
    ftp.expect_replies("226");
    assert_eq!(ftp.world.received(own), b"one\ntwo\n");
}

#[test]
fn one_data_listener_per_session_and_one_connection_per_listener() {
    let mut ftp = Ftp::anna();
    let first = ftp.epsv();
    let second = ftp.epsv();
    assert_ne!(first, second, "ports are random");
    assert!(!ftp.world.net.listens(first));
    assert!(ftp.world.net.listens(second));
    ftp.world.connect(at_port(PEER, 5001), second);
    ftp.run();
    assert!(!ftp.world.net.listens(second));
    ftp.expect("PORT 10,0,0,9,19,137", "200");
    assert_eq!(ftp.world.net.held(), 1, "another agreement takes the place of the connection");
    let third = ftp.epsv();
    ftp.expect("QUIT", "221");
    assert!(!ftp.world.net.listens(third));
    ftp.assert_released();
}

#[test]
fn passive_ports_are_those_of_the_range() {
    let mut ftp = Ftp::with(Config {
        passive_ports: 40_000..=40_001,
        passive_address: Some([203, 0, 113, 5].into()),
        ..config()
    });
    ftp.log_in_anna();
    let reply = ftp.expect("PASV", "227");
    assert!(reply.contains("(203,0,113,5,156,6"), "{reply}");
    let mut others = Vec::new();
    for i in 0..2 {
        let control = ftp.world.connect(at_port(PEER, 6000 + i), 21);
        ftp.world.client_send(control, b"USER ftp\r\nPASS x\r\nEPSV\r\n");
        ftp.run();
        others.push(String::from_utf8(ftp.world.received(control)).unwrap());
    }
    assert_eq!(codes(&others[0]), "220 331 230 229");
    assert_eq!(codes(&others[1]), "220 331 230 425", "no port is left");
    ftp.expect("EPSV", "229");
}

#[test]
fn a_server_keeps_to_its_share_of_the_passive_ports() {
    let mut ftp = Ftp::with(Config {
        passive_ports: 40_000..=40_007,
        passive_share: PortShare { index: 1, servers: 4 },
        ..config()
    });
    ftp.log_in_anna();
    let mut ports: Vec<u16> = (0..40).map(|_| ftp.epsv()).collect();
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports, [40_001, 40_005]);
}

#[test]
fn epsv_all_means_it() {
    let mut ftp = Ftp::anna();
    ftp.expect("EPSV ALL", "200");
    for line in ["PASV", "PORT 10,0,0,9,19,137", "EPRT |1|10.0.0.9|5001|"] {
        ftp.expect(line, "501");
    }
    ftp.expect("EPSV", "229");
}

#[test]
fn a_data_connection_that_is_lost_early_is_noticed() {
    let mut ftp = Ftp::anna();
    let data = ftp.passive();
    ftp.world.net.client_reset(data);
    ftp.run();
    ftp.expect("RETR a.txt", "425");
    let data = ftp.passive();
    ftp.world.client_send(data, b"all of it");
    ftp.world.net.client_finish(data);
    ftp.run();
    ftp.expect("STOR new", "150 226");
    assert_eq!(ftp.content("/new"), b"all of it", "data and FIN may come before the command");
}
