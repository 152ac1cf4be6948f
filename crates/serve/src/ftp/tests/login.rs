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

/// Another session from `ip`, with the greeting read.
fn dial(ftp: &mut Ftp, ip: &str, port: u16) -> ConnId {
    let control = ftp.world.connect(at_port(&format!("{ip}:1"), port), 21);
    ftp.run();
    ftp.world.received(control);
    control
}

#[test]
fn guessing_slows_down_the_guesser_only() {
    let mut ftp = Ftp::new();
    let guessers: Vec<ConnId> = (0..20).map(|i| dial(&mut ftp, "10.0.0.9", 6000 + i)).collect();
    for guesser in &guessers {
        ftp.world.client_send(*guesser, b"USER anna\r\nPASS wrong\r\n");
    }
    ftp.run();
    assert_eq!(ftp.server.stats().login_failures, 20);
    // Somebody at the same address who knows the password is let in at once.
    ftp.log_in_anna();
    let answered = |ftp: &mut Ftp| {
        ftp.run();
        let replies = guessers.iter().map(|guesser| ftp.world.received(*guesser));
        replies.filter(|replies| replies.windows(4).any(|w| w == b"530 ")).count()
    };
    assert_eq!(answered(&mut ftp), 0);
    for (seconds, expected) in [(1, 3), (1, 1), (2, 1), (4, 1), (7, 0), (1, 14)] {
        ftp.advance(seconds * SECOND);
        assert_eq!(answered(&mut ftp), expected);
    }
}

#[test]
fn leaving_early_does_not_speed_up_guessing() {
    let mut config = config();
    config.limits.sessions_per_address = 10;
    let mut ftp = Ftp::with(config);
    let mut tried = 0;
    let mut guess = |ftp: &mut Ftp| {
        let control = ftp.world.connect(at_port("10.0.5.5:1", 6000 + tried), 21);
        tried += 1;
        ftp.world.client_send(control, b"USER anna\r\nPASS wrong\r\n");
        ftp.run();
        ftp.world.net.client_reset(control);
        ftp.run();
        String::from_utf8(ftp.world.received(control)).unwrap()
    };
    for _ in 0..5 {
        guess(&mut ftp);
    }
    let failures = ftp.server.stats().login_failures;
    for _ in 0..5 {
        guess(&mut ftp);
    }
    assert_eq!((ftp.server.stats().login_failures, ftp.server.stats().refused_guessers), (failures, 5));
    // Others are not concerned, and neither is the address for ever.
    ftp.log_in_anna();
    ftp.advance(16 * SECOND);
    guess(&mut ftp);
    assert_eq!(ftp.server.stats().login_failures, failures + 1);
    // Where somebody has logged in there is room for him beside the guesser.
    let control = ftp.world.connect(at_port("10.0.5.5:1", 7000), 21);
    ftp.world.client_send(control, b"USER anna\r\nPASS secret\r\n");
    ftp.run();
    for _ in 0..5 {
        guess(&mut ftp);
    }
    let control = ftp.world.connect(at_port("10.0.5.5:1", 7001), 21);
    ftp.world.client_send(control, b"USER anna\r\nPASS secret\r\n");
    ftp.run();
    assert!(String::from_utf8(ftp.world.received(control)).unwrap().contains("230 "));
    ftp.advance(60 * SECOND);
    ftp.world.client_send(ftp.control, b"QUIT\r\n");
    ftp.advance(300 * SECOND);
    ftp.assert_released();
}

#[test]
fn a_bounded_number_of_passwords_is_checked_at_once_and_addresses_take_turns() {
    let mut ftp = Ftp::new();
    let guessers: Vec<ConnId> = (0..40).map(|i| dial(&mut ftp, "10.0.0.9", 6000 + i)).collect();
    let other = dial(&mut ftp, "10.0.1.1", 5000);
    ftp.world.files.hold = true;
    for guesser in &guessers {
        ftp.world.client_send(*guesser, b"USER anna\r\nPASS wrong\r\n");
    }
    ftp.run();
    ftp.world.client_send(other, b"USER anna\r\nPASS secret\r\n");
    ftp.run();
    assert_eq!(ftp.world.files.under_way(), 2);
    ftp.world.files.hold = false;
    let mut checked = 0;
    while ftp.server.stats().logins == 0 {
        let done = linerate_transport::Files::poll_done(&mut ftp.world.files).unwrap();
        let server = &mut ftp.server;
        ftp.world.with(|ctx| server.handle_file(ctx, done));
        assert!(ftp.world.files.under_way() <= 2);
        checked += 1;
    }
    assert!(checked <= 4, "{checked} were checked before the one of another address");
    // Clients that leave while they wait hold up nobody.
    for guesser in guessers {
        ftp.world.net.client_reset(guesser);
    }
    ftp.run();
    assert_eq!(ftp.world.files.under_way(), 0);
    ftp.log_in_anna();
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
    let usual = ftp.cmd("USER anna");
    for name in ["anonymous", "FTP"] {
        assert_eq!(ftp.cmd(&format!("USER {name}")), usual);
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
