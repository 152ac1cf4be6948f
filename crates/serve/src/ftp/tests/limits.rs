//! Limits and deadlines: what a client may use, and how long it may be silent.

use super::super::Limits;
use super::*;
use crate::testing::net::Released;

const SECOND: Duration = Duration::from_secs(1);

fn limited(change: impl FnOnce(&mut Limits)) -> Ftp {
    let mut config = config();
    change(&mut config.limits);
    Ftp::with(config)
}

#[test]
fn a_silent_session_ends() {
    let mut ftp = Ftp::anna();
    ftp.advance(299 * SECOND);
    ftp.expect("NOOP", "200");
    ftp.advance(299 * SECOND);
    assert_eq!(ftp.replies(), "");
    // Bytes that are no command do not keep it.
    ftp.world.client_send(ftp.control, b"NOO");
    ftp.advance(SECOND);
    ftp.expect_replies("421");
    assert_eq!(ftp.server.stats().idle_ends, 1);
    ftp.assert_released();
}

#[test]
fn a_transfer_keeps_the_session() {
    let mut ftp = Ftp::anna();
    let data = ftp.passive();
    ftp.expect("STOR new", "150");
    for _ in 0..20 {
        ftp.advance(50 * SECOND);
        ftp.world.client_send(data, b"x");
        assert_eq!(ftp.replies(), "");
    }
    ftp.end_upload(data);
    ftp.expect_replies("226");
    assert_eq!(ftp.content("/new").len(), 20);
    ftp.advance(299 * SECOND);
    ftp.expect("NOOP", "200");
}

#[test]
fn a_stalled_transfer_ends() {
    let mut ftp = Ftp::anna();
    let data = ftp.passive();
    ftp.world.net.client_stall(data, true);
    ftp.expect("RETR b.bin", "150");
    ftp.advance(59 * SECOND);
    assert_eq!(ftp.replies(), "");
    ftp.advance(16 * SECOND);
    ftp.expect_replies("426");
    assert_eq!(ftp.world.net.released(data), Some(Released::Aborted));
    let data = ftp.passive();
    ftp.world.client_send(data, b"begun");
    ftp.expect("STOR new", "150");
    ftp.advance(76 * SECOND);
    ftp.expect_replies("426");
    assert_eq!(ftp.content("/new"), b"begun");
    assert_eq!(ftp.server.stats().stalls, 2);
    assert_eq!(ftp.world.files.open_count(), 0);
    ftp.expect("NOOP", "200");
}

fn dial(ftp: &mut Ftp, ip: &str) -> (ConnId, String) {
    let control = ftp.world.connect(at_port(&format!("{ip}:1"), 5000), 21);
    ftp.run();
    (control, String::from_utf8(ftp.world.received(control)).unwrap())
}

fn log_in(ftp: &mut Ftp, control: ConnId) {
    ftp.world.client_send(control, b"USER anonymous\r\nPASS x\r\n");
    ftp.run();
    assert!(String::from_utf8(ftp.world.received(control)).unwrap().contains("230"));
}

#[test]
fn sessions_are_limited_per_address_and_in_all() {
    let mut ftp = limited(|limits| {
        limits.sessions = 5;
        limits.sessions_per_address = 2;
    });
    // The one of the rig and a second one, both logged in, and both at work.
    let first = ftp.control;
    log_in(&mut ftp, first);
    let (second, greeting) = dial(&mut ftp, "10.0.0.9");
    assert_eq!(codes(&greeting), "220");
    log_in(&mut ftp, second);
    ftp.world.files.hold = true;
    for control in [second, first] {
        ftp.world.client_send(control, b"MDTM a\r\n");
    }
    ftp.run();
    assert_eq!(dial(&mut ftp, "10.0.0.9").1, "421 Too many sessions from your address\r\n");
    // Three that wait for a file, too, so that they cannot give way.
    for i in 1..=3 {
        let (busy, greeting) = dial(&mut ftp, &format!("10.0.1.{i}"));
        assert_eq!(codes(&greeting), "220");
        log_in(&mut ftp, busy);
        ftp.world.client_send(busy, b"MDTM a\r\n");
    }
    ftp.run();
    assert_eq!(dial(&mut ftp, "10.0.2.1").1, "421 Too many sessions, try later\r\n");
    ftp.world.files.hold = false;
    ftp.world.client_send(second, b"QUIT\r\n");
    ftp.run();
    assert_eq!(codes(&dial(&mut ftp, "10.0.0.9").1), "220");
    let stats = ftp.server.stats();
    assert_eq!((stats.sessions, stats.refused_address, stats.refused_full, stats.gave_way), (6, 1, 1, 0));
}

#[test]
fn idle_sessions_with_a_login_give_way_to_others_of_their_address() {
    let mut ftp = limited(|limits| limits.sessions_per_address = 4);
    ftp.log_in_anna();
    let others: Vec<_> = (0..3).map(|_| dial(&mut ftp, "10.0.0.9").0).collect();
    for control in &others {
        ftp.advance(SECOND);
        log_in(&mut ftp, *control);
    }
    // The first says something, so that the first of the others is who waits longest.
    ftp.expect("NOOP", "200");
    let (newcomer, greeting) = dial(&mut ftp, "10.0.0.9");
    assert_eq!(codes(&greeting), "220");
    assert_eq!(codes(&String::from_utf8(ftp.world.received(others[0])).unwrap()), "421");
    assert!(ftp.world.net.client_sees_end(others[0]) && !ftp.world.net.client_sees_end(others[1]));
    log_in(&mut ftp, newcomer);
    // Guessers take no places from those who are logged in: half of them wait for the answer to a wrong password.
    for _ in 0..2 {
        let (guesser, greeting) = dial(&mut ftp, "10.0.0.9");
        assert_eq!(codes(&greeting), "220");
        ftp.world.client_send(guesser, b"USER anna\r\nPASS wrong\r\n");
        ftp.run();
    }
    assert_eq!(dial(&mut ftp, "10.0.0.9").1, "421 Too many sessions from your address\r\n");
    ftp.advance(2 * SECOND);
    assert_eq!(codes(&dial(&mut ftp, "10.0.0.9").1), "220");
}

#[test]
fn sessions_without_login_give_way_first_and_then_idle_ones() {
    let mut ftp = limited(|limits| {
        limits.sessions = 10;
        limits.sessions_per_address = 4;
    });
    let (first, (named, _)) = (ftp.control, dial(&mut ftp, "10.0.0.1"));
    log_in(&mut ftp, first);
    log_in(&mut ftp, named);
    let silent: Vec<_> = (0..4).map(|_| dial(&mut ftp, "10.0.0.2").0).collect();
    // One more of the same address: the first of them goes, with a word.
    assert_eq!(codes(&dial(&mut ftp, "10.0.0.2").1), "220");
    assert!(ftp.world.net.client_sees_end(silent[0]));
    assert_eq!(codes(&String::from_utf8(ftp.world.received(silent[0])).unwrap()), "421");
    // What is said before the login does not help.
    ftp.world.client_send(silent[1], b"NOOP\r\n");
    for i in 0..6 {
        ftp.advance(SECOND);
        assert_eq!(codes(&dial(&mut ftp, &format!("10.0.1.{i}")).1), "220", "{i}");
    }
    assert!(ftp.world.net.client_sees_end(silent[1]));
    assert!(!ftp.world.net.client_sees_end(named), "who has logged in stays while others have not");
    assert_eq!(ftp.server.stats().refused_full, 0);
    ftp.expect("NOOP", "200");
}

#[test]
fn long_lines_are_refused_and_the_next_one_counts() {
    let mut ftp = Ftp::anna();
    let long = |len: usize| "x".repeat(len);
    ftp.expect(&format!("CWD {}", long(200)), "550");
    ftp.expect(&format!("CWD {}", long(300)), "550");
    ftp.expect(&format!("CWD {}", long(9_000)), "500");
    ftp.expect(&format!("NOOP {}", long(5_000)), "500");
    ftp.expect("NOOP", "200");
    for _ in 0..1_000 {
        ftp.world.client_send(ftp.control, &[b'y'; 1_000]);
        ftp.run();
        assert!(ftp.server.held_len() < 10_000);
    }
    assert_eq!(ftp.replies(), "");
    ftp.expect("", "500");
    assert_eq!(ftp.server.stats().overlong_lines, 3);
}

#[test]
fn ten_unknown_commands_before_login_end_the_session() {
    let mut ftp = Ftp::new();
    for _ in 0..9 {
        ftp.expect("XYZZY", "500");
    }
    ftp.expect("XYZZY", "500 421");
    ftp.assert_released();
    let mut ftp = Ftp::anna();
    for _ in 0..30 {
        ftp.expect("XYZZY", "500");
    }
}

#[test]
fn a_browser_is_sent_away() {
    for line in ["GET / HTTP/1.1", "POST /x HTTP/1.0", "Host: example.com", "CONNECT x:1 HTTP/1.1"] {
        let mut ftp = Ftp::anna();
        ftp.send(line);
        ftp.send("DELE a.txt");
        ftp.expect_replies("500");
        assert_eq!(ftp.content("/a.txt"), b"one\ntwo\n");
        assert_eq!(ftp.server.stats().http_ends, 1);
        ftp.assert_released();
    }
}

#[test]
fn commands_that_wait_are_bounded_and_none_is_lost() {
    let mut ftp = Ftp::anna();
    let data = ftp.passive();
    ftp.world.net.client_stall(data, true);
    ftp.expect("RETR b.bin", "150");
    for i in 0..2_000 {
        ftp.send(&format!("CWD /{}{i}", "d".repeat(100)));
    }
    assert_eq!(ftp.replies(), "");
    assert!(ftp.server.held_len() < 20_000, "{}", ftp.server.held_len());
    ftp.world.net.client_stall(data, false);
    let replies = ftp.replies();
    assert_eq!(codes(&replies), format!("226{}", " 550".repeat(2_000)));
}

#[test]
fn a_client_that_reads_no_replies_gets_no_more_done() {
    let mut ftp = Ftp::anna();
    ftp.world.net.client_stall(ftp.control, true);
    for _ in 0..2_000 {
        for _ in 0..10 {
            ftp.send("HELP");
        }
        ftp.run();
        assert!(ftp.server.held_len() < 30_000, "{}", ftp.server.held_len());
    }
    assert!(ftp.server.stats().commands < 10_000);
    ftp.advance(300 * SECOND);
    assert_eq!(ftp.world.net.released(ftp.control), Some(Released::Aborted));
    ftp.assert_released();
}

#[test]
fn paths_do_not_lead_out() {
    let mut ftp = Ftp::anna();
    ftp.passive();
    for line in
        ["CWD ..", "RETR ../etc/passwd", "RETR /../../etc/passwd", "LIST ../..", "STAT ..", "SIZE ../x"]
    {
        ftp.expect(line, "550");
    }
    ftp.expect("STOR ../x", "553");
    assert_eq!(ftp.server.stats().above_root, 7);
}

#[test]
fn draining_finishes_what_is_under_way() {
    let mut ftp = Ftp::anna();
    let idle = ftp.world.connect("10.0.0.10:5000".parse().unwrap(), 21);
    let data = ftp.passive();
    ftp.world.net.client_stall(data, true);
    ftp.expect("RETR b.bin", "150");
    ftp.send("NOOP");
    let server = &mut ftp.server;
    ftp.world.with(|ctx| server.drain(ctx));
    assert!(!ftp.world.net.listens(21));
    ftp.run();
    assert!(
        ftp.world
            .received(idle)
            .ends_with(b"421 The server is going down, closing the control connection\r\n")
    );
    assert!(!ftp.server.is_idle());
    ftp.world.net.client_stall(data, false);
    ftp.expect_replies("226 421");
    assert_eq!(ftp.world.received(data).len(), 200_000);
    ftp.assert_released();
}
