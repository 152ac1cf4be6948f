//! Logging in, and the pace of wrong passwords.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_wrong_password_is_answered_late_and_three_end_the_session() {
    let mut ftp = Ftp::new();
    for attempt in 1..=3 {
        ftp.expect("USER anna", "331");
        ftp.expect("PASS wrong", "");
        ftp.expect("NOOP", "");
        ftp.advance(SECOND - Duration::from_millis(1));
        assert_eq!(ftp.replies(), "");
        ftp.advance(Duration::from_millis(1));
        ftp.expect_replies(if attempt < 3 { "530 200" } else { "530 421" });
    }
    assert_eq!(ftp.server.stats().login_failures, 3);
    assert_eq!(ftp.server.stats().login_ends, 1);
    ftp.assert_released();
}

#[test]
fn a_new_connection_does_not_speed_up_guessing() {
    let mut ftp = Ftp::new();
    ftp.expect("USER anna", "331");
    ftp.expect("PASS wrong", "");
    ftp.control = ftp.world.connect(at_port(PEER, 5002), 21);
    ftp.expect_replies("220");
    ftp.expect("USER anna", "331");
    ftp.expect("PASS secret", "");
    ftp.advance(SECOND);
    ftp.expect_replies("230");
    assert_eq!(ftp.server.stats().logins, 1);
    ftp.control = ftp.world.connect("10.0.0.10:5002".parse().unwrap(), 21);
    ftp.expect_replies("220");
    ftp.log_in_anna();
}

#[test]
fn one_password_is_checked_per_turn() {
    let mut ftp = Ftp::new();
    for i in 0..5u8 {
        let control = ftp.world.connect(SocketAddr::new([10, 0, 1, i].into(), 5000), 21);
        ftp.world.client_send(control, b"USER anna\r\nPASS secret\r\n");
        while let Some(event) = linerate_transport::Transport::poll_event(&mut ftp.world.net) {
            let server = &mut ftp.server;
            ftp.world.with(|ctx| server.handle_event(ctx, event));
        }
    }
    for checked in 1..=5 {
        let server = &mut ftp.server;
        assert_eq!(server.poll_timeout(), Some(ftp.world.now), "the next turn comes at once");
        ftp.world.with(|ctx| server.handle_timeout(ctx));
        assert_eq!(server.stats().logins, checked);
    }
}

#[test]
fn names_are_not_told_apart() {
    let mut ftp = Ftp::new();
    let known = ftp.cmd("USER anna");
    ftp.expect("PASS wrong", "");
    ftp.advance(SECOND);
    let wrong = ftp.replies();
    assert_eq!(ftp.cmd("USER nobody"), known);
    ftp.expect("PASS wrong", "");
    ftp.advance(SECOND);
    assert_eq!(ftp.replies(), wrong);
    ftp.expect("USER nobody", "331");
    // Nor does the password of somebody else help.
    ftp.expect("PASS secret", "");
    ftp.advance(SECOND);
    ftp.expect_replies("530 421");
}

#[test]
fn anonymous_can_be_switched_off() {
    let mut ftp = Ftp::with(Config { anonymous: false, ..config() });
    for name in ["anonymous", "FTP"] {
        ftp.expect(&format!("USER {name}"), "331");
        ftp.expect("PASS x", "");
        ftp.advance(SECOND);
        ftp.expect_replies("530");
    }
}

#[test]
fn nobody_writes_where_the_server_is_read_only() {
    let mut ftp = Ftp::with(Config { writable: false, ..config() });
    ftp.log_in_anna();
    ftp.passive();
    let changes = [
        ("STOR new", "553"),
        ("APPE a.txt", "553"),
        ("STOU", "553"),
        ("DELE a.txt", "550"),
        ("MKD new", "550"),
        ("RMD sub", "550"),
        ("RNFR a.txt", "550"),
        ("MFMT 20200102030405 a.txt", "550"),
        ("SITE CHMOD 600 a.txt", "550"),
    ];
    for (line, code) in changes {
        ftp.expect(line, code);
    }
    assert!(ftp.cmd("MLST a.txt").contains("Perm=r;"));
    let mut ftp = Ftp::anonymous();
    ftp.passive();
    for (line, code) in changes {
        ftp.expect(line, code);
    }
}

#[test]
fn a_user_command_takes_the_rights_away() {
    let mut ftp = Ftp::anna();
    ftp.expect("USER anonymous", "331");
    ftp.expect("RETR a.txt", "530");
    ftp.expect("PASS x", "230");
    ftp.expect("DELE a.txt", "550");
}

#[test]
fn a_reload_applies_at_the_next_command_and_drops_nobody() {
    let mut ftp = Ftp::anna();
    let data = ftp.passive();
    ftp.world.net.client_stall(data, true);
    ftp.expect("RETR b.bin", "150");
    let mut changed = Config { writable: false, banner: "two\nlines".into(), ..config() };
    changed.listen = vec![linerate_transport::ListenAddr { ip: None, port: 2121 }];
    let server = &mut ftp.server;
    ftp.world.with(|ctx| server.reload(ctx, changed.clone())).unwrap();
    assert!(!ftp.world.net.listens(21) && ftp.world.net.listens(2121));
    ftp.world.net.client_stall(data, false);
    ftp.expect_replies("226");
    ftp.expect("DELE a.txt", "550");
    changed.limits.idle = Duration::ZERO;
    let server = &mut ftp.server;
    assert!(ftp.world.with(|ctx| server.reload(ctx, changed)).is_err());
    assert!(!ftp.server.config().limits.idle.is_zero(), "wrong settings change nothing");
    ftp.control = ftp.world.connect(at_port(PEER, 5002), 2121);
    assert_eq!(ftp.replies(), "220-two\r\n220 lines\r\n");
}
