//! Uploads that do not come to their end.

use super::*;
use crate::testing::logged;

/// A process that is killed closes both connections, and what has come may be half.
#[test]
fn an_upload_whose_client_closes_the_control_connection_is_cut_short() {
    for data_first in [false, true] {
        let mut ftp = Ftp::anna();
        let data = ftp.passive();
        ftp.expect("STOR a.txt", "150");
        ftp.world.client_send(data, b"half");
        ftp.run();
        let mut ends = [ftp.control, data];
        if data_first {
            ends.reverse();
        }
        ends.into_iter().for_each(|end| ftp.world.net.client_finish(end));
        ftp.run();
        assert_eq!(ftp.content("/a.txt"), b"one\ntwo\n", "data first: {data_first}");
        ftp.assert_released();
    }
    // Also where nothing more comes.
    let mut ftp = Ftp::anna();
    let data = ftp.passive();
    ftp.expect("STOR a.txt", "150");
    ftp.world.client_send(data, b"half");
    ftp.world.net.client_finish(ftp.control);
    ftp.expect_replies("426 226");
    assert_eq!(ftp.content("/a.txt"), b"one\ntwo\n");
    ftp.assert_released();
}

/// Clients send NOOP to keep a connection, and may be killed all the same: whether a command waits in our queue or is not read yet, as there are
/// too many.
#[test]
fn commands_that_wait_make_a_part_no_whole_file() {
    for (noops, data_first) in [(1, false), (1, true), (40, false), (40, true)] {
        for is_seen_before in [false, true] {
            let mut ftp = Ftp::anna();
            let data = ftp.passive();
            ftp.expect("STOR a.txt", "150");
            ftp.world.client_send(data, b"half");
            ftp.world.client_send(ftp.control, "NOOP\r\n".repeat(noops).as_bytes());
            if is_seen_before {
                ftp.run();
            }
            let mut ends = [ftp.control, data];
            if data_first {
                ends.reverse();
            }
            ends.into_iter().for_each(|end| ftp.world.net.client_finish(end));
            ftp.run();
            assert_eq!(ftp.content("/a.txt"), b"one\ntwo\n", "{noops} {data_first} {is_seen_before}");
            ftp.assert_released();
        }
    }
    // Nobody waits for the data either.
    let mut ftp = Ftp::anna();
    ftp.passive();
    ftp.expect("STOR a.txt", "150");
    ftp.send("NOOP");
    ftp.world.net.client_finish(ftp.control);
    ftp.expect_replies("426 226 200");
    ftp.assert_released();
}

/// A script that is piped to the server ends so: `printf 'USER ...STOR a.txt\r\nQUIT\r\n' | nc -N server 21`.
#[test]
fn who_sends_quit_before_closing_has_said_that_the_upload_is_to_end_by_itself() {
    for (lines, is_data_first) in [("QUIT\r\n", false), ("QUIT\r\n", true), ("SIZE a.txt\r\nquit\r\n", true)]
    {
        let mut ftp = Ftp::anna();
        let data = ftp.passive();
        ftp.expect("STOR a.txt", "150");
        let send = |ftp: &mut Ftp| {
            ftp.world.client_send(data, b"all");
            ftp.world.net.client_finish(data);
        };
        if is_data_first {
            send(&mut ftp);
        }
        // In two segments, of which the first ends within the word.
        let (first, second) = lines.split_at(lines.len() - 4);
        ftp.world.client_send(ftp.control, first.as_bytes());
        ftp.world.client_send(ftp.control, second.as_bytes());
        ftp.world.net.client_finish(ftp.control);
        if !is_data_first {
            ftp.run();
            ftp.advance(Duration::from_secs(1));
            send(&mut ftp);
            ftp.run();
            ftp.advance(Duration::from_millis(10));
        }
        let replies = ftp.replies();
        assert!(
            replies.contains("226 Transfer complete") && replies.contains("221 "),
            "{lines:?}: {replies}"
        );
        assert_eq!(ftp.content("/a.txt"), b"all", "{lines:?} {is_data_first}");
        ftp.assert_released();
    }
}

/// The kernel closes them one after the other; the server may look in between.
#[test]
fn a_control_connection_that_ends_just_after_the_data_is_the_end_of_the_upload_too() {
    let took = Duration::from_millis(640);
    for (later, is_whole) in [(Duration::from_millis(9), false), (Duration::from_millis(10), true)] {
        let mut ftp = Ftp::anna();
        let data = ftp.passive();
        ftp.expect("STOR a.txt", "150");
        ftp.world.client_send(data, b"half");
        ftp.run();
        ftp.advance(took);
        ftp.world.net.client_finish(data);
        ftp.run();
        ftp.advance(later);
        ftp.world.net.client_finish(ftp.control);
        ftp.run();
        let content: &[u8] = if is_whole { b"half" } else { b"one\ntwo\n" };
        assert_eq!(ftp.content("/a.txt"), content, "{later:?}");
        ftp.assert_released();
    }
    // Nobody waits for that who was quick.
    let mut ftp = Ftp::anna();
    let data = ftp.passive();
    ftp.expect("STOR a.txt", "150");
    ftp.world.client_send(data, b"all");
    ftp.world.net.client_finish(data);
    ftp.expect_replies("226");
}

#[test]
fn an_upload_goes_on_only_with_a_file_that_is_there() {
    let mut ftp = Ftp::anna();
    ftp.passive();
    ftp.expect("REST 100", "350");
    ftp.expect("STOR nothing", "554");
    assert!(!ftp.world.files.nodes.contains_key("/nothing"));
}

#[test]
fn what_is_cut_short_does_not_replace_a_whole_file() {
    let mut ftp = Ftp::anna();
    let data = ftp.passive();
    ftp.expect("STOR a.txt", "150");
    ftp.world.client_send(data, b"half");
    ftp.run();
    ftp.world.net.client_reset(data);
    assert!(ftp.expect_replies("426").contains("the old file stays"));
    assert_eq!(ftp.content("/a.txt"), b"one\ntwo\n");
    // Not even the session's end changes that.
    let data = ftp.passive();
    ftp.expect("STOR a.txt", "150");
    ftp.world.client_send(data, b"half");
    ftp.run();
    ftp.world.net.client_reset(ftp.control);
    ftp.assert_released();
    assert_eq!(ftp.content("/a.txt"), b"one\ntwo\n");
    assert!(ftp.world.files.nodes.keys().all(|name| name.starts_with('/')));
    // Nothing came: nothing is left.
    let mut ftp = Ftp::anna();
    ftp.passive();
    ftp.expect("STOR nothing", "150");
    ftp.expect("ABOR", "426 226");
    assert_eq!(ftp.world.files.content("/nothing"), None);
}

/// The only line that was logged of a transfer.
#[track_caller]
fn logged() -> String {
    let lines: Vec<String> =
        logged::take().into_iter().filter(|line| line.contains(" Mb/s, type ")).collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    lines[0].clone()
}

#[track_caller]
fn check_logged(parts: &[&str]) {
    let line = logged();
    for part in parts {
        assert!(line.contains(part), "{part:?} is not in {line:?}");
    }
}

#[test]
fn every_transfer_that_is_cut_off_has_its_line() {
    logged::keep();
    // By the end of the server, and by that of the session.
    for by_server in [true, false] {
        let why = if by_server { "cut off by the end of the server" } else { "the session ended" };
        for (name, stored) in [("new", 4), ("a.txt", 0)] {
            let mut ftp = Ftp::anna();
            let data = ftp.passive();
            ftp.expect(&format!("STOR {name}"), "150");
            ftp.world.client_send(data, b"half");
            ftp.run();
            ftp.end_session(by_server);
            check_logged(&[&format!("anna STOR /{name} received {stored} bytes in"), why]);
        }
        let mut ftp = Ftp::anna();
        let data = ftp.passive();
        ftp.world.net.client_stall(data, true);
        ftp.expect("RETR b.bin", "150");
        ftp.end_session(by_server);
        check_logged(&["anna RETR /b.bin sent 0 bytes in", why]);
    }
    // Where the client breaks off, what he has counts, too.
    let mut ftp = Ftp::anna();
    let data = ftp.passive();
    ftp.world.net.client_stall(data, true);
    ftp.expect("RETR b.bin", "150");
    ftp.world.net.client_reset(data);
    ftp.expect_replies("426");
    check_logged(&["RETR /b.bin sent 0 bytes in", "data connection"]);
}

#[test]
fn bytes_of_an_upload_in_the_log_are_those_in_the_file() {
    logged::keep();
    for (name, stored) in [("new", 4), ("a.txt", 0)] {
        let mut ftp = Ftp::anna();
        let data = ftp.passive();
        ftp.expect(&format!("STOR {name}"), "150");
        ftp.world.client_send(data, b"half");
        ftp.run();
        ftp.world.net.client_reset(data);
        ftp.expect_replies("426");
        check_logged(&[&format!("STOR /{name} received {stored} bytes in"), "data connection"]);
        let data = ftp.passive();
        ftp.expect(&format!("STOR {name}"), "150");
        ftp.world.client_send(data, b"whole");
        ftp.world.net.client_finish(data);
        ftp.expect_replies("226");
        check_logged(&[&format!("STOR /{name} received 5 bytes in"), "complete"]);
    }
}

impl Ftp {
    /// The client goes, or the whole server, and the files do what is left to do.
    fn end_session(&mut self, by_server: bool) {
        if by_server {
            self.world.with(|ctx| self.server.cut_off(ctx));
        } else {
            self.world.net.client_reset(self.control);
        }
        self.run();
        assert!(self.server.is_idle());
    }
}
