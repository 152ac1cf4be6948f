//! Uploads that do not come to their end.

use super::*;

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
