//! What is left of a command that is over, or of a data connection, meets the next command.

use super::*;
use crate::testing::net::Released;
use linerate_transport::Files as _;

/// Sends commands in one segment; the port of the last EPSV among them.
fn send_all(ftp: &mut Ftp, lines: &[&str], expected: &str) -> u16 {
    lines.iter().for_each(|line| ftp.send(line));
    let replies = ftp.expect_replies(expected);
    replies.rsplit("(|||").next().and_then(|rest| rest.split('|').next()?.parse().ok()).expect("a port")
}

/// Fetches what the last RETR has offered on `port`.
fn take(ftp: &mut Ftp, port: u16) -> Vec<u8> {
    let data = ftp.world.connect(at_port(PEER, 5001), port);
    ftp.expect_replies("226");
    ftp.world.received(data)
}

#[test]
fn what_was_opened_for_an_aborted_command_is_closed() {
    for (command, codes) in [("STAT /sub", "229 426 226 229 150"), ("STOR x", "229 426 226 229 150")] {
        let mut ftp = Ftp::anna();
        let port = send_all(&mut ftp, &["EPSV", command, "ABOR", "EPSV", "RETR /memory/1"], codes);
        assert_eq!(take(&mut ftp, port), [0], "{command}");
        ftp.expect("QUIT", "221");
        ftp.assert_released();
        assert!(!ftp.world.files.nodes.keys().any(|name| name.starts_with("aside")), "{command}");
    }
}

#[test]
fn what_was_read_for_an_aborted_hash_is_sent_to_nobody() {
    let mut ftp = Ftp::anna();
    ftp.expect("TYPE A", "200");
    ftp.world.files.hold = true;
    ftp.cmd("HASH b.bin");
    ftp.world.files.hold = false;
    let opened = ftp.world.files.poll_done().unwrap();
    ftp.world.files.hold = true;
    ftp.world.with(|ctx| ftp.server.handle_file(ctx, opened));
    let port = send_all(&mut ftp, &["ABOR", "EPSV", "RETR /memory/5"], "426 226 229 150");
    ftp.world.files.hold = false;
    ftp.run();
    assert_eq!(take(&mut ftp, port), [0, 1, 2, 3, 4]);
}

#[test]
fn a_data_connection_that_broke_before_an_empty_transfer_is_noticed() {
    for line in ["RETR empty", "LIST none"] {
        let mut ftp = Ftp::anna();
        ftp.world.files.add_dir("/none");
        let data = ftp.passive();
        ftp.world.files.hold = true;
        ftp.expect(line, "");
        ftp.world.net.client_reset(data);
        ftp.run();
        ftp.world.files.hold = false;
        ftp.expect_replies("150 426");
        assert_eq!(ftp.world.net.released(data), Some(Released::Aborted));
        ftp.expect("QUIT", "221");
        ftp.assert_released();
    }
}
