//! Uploads that the transport moves to the file by itself.

use super::*;

/// A server whose files are memory, on a transport that stores `room` bytes by itself.
fn server(room: usize) -> Ftp {
    let mut ftp = Ftp::anna();
    (ftp.world.files.written_now, ftp.world.net.stores) = (Some(0), Some(room));
    ftp
}

/// Bytes that the transport stored, and those that were written from its receive buffer.
fn ways(ftp: &Ftp, room: usize) -> (usize, usize) {
    (room - ftp.world.net.stores.unwrap(), ftp.world.files.written_now.unwrap())
}

fn bytes(len: u32) -> Vec<u8> {
    (0..len).map(|i| (i % 241) as u8).collect()
}

const ROOM: usize = 100 << 20;

#[test]
fn they_are_complete_and_in_order() {
    let mut ftp = server(ROOM);
    let content = bytes(3_000_000);
    let mut ran = |command: &[&str], content: &[u8]| {
        let data = ftp.passive();
        for line in command {
            ftp.send(line);
        }
        // In parts, so that some come while nothing is there.
        for part in content.chunks(700_000) {
            ftp.world.client_send(data, part);
            ftp.advance(Duration::from_millis(1));
        }
        ftp.world.net.client_finish(data);
        ftp.advance(Duration::from_secs(1));
        assert!(ftp.replies().contains("226"));
    };
    ran(&["STOR new"], &content);
    ran(&["REST 1000000", "STOR new"], &content[..1_000_000]);
    ran(&["APPE new"], &content[..50_000]);
    let expected = [&content[..1_000_000], &content[..1_000_000], &content[..50_000]].concat();
    assert_eq!(ftp.content("/new"), expected);
    let (stored, written) = ways(&ftp, ROOM);
    // What comes before the file is cut waits in memory.
    assert_eq!(stored + written, 4_050_000);
    assert!(stored > 3_900_000, "{stored}");
    assert_eq!(ftp.world.files.open_count(), 0);
    assert_eq!(ftp.server.stats().bytes_received, 4_050_000);
}

#[test]
fn memory_that_fills_up_ends_them() {
    let mut ftp = server(500_000);
    let data = ftp.passive();
    ftp.expect("STOR new", "150");
    ftp.world.client_send(data, &[9; 2_000_000]);
    let reply = ftp.expect_replies("452");
    let (stored, written) = ways(&ftp, 500_000);
    assert_eq!(stored, 500_000);
    assert!(reply.contains(&format!("{} bytes are kept", stored + written)), "{reply}");
    assert_eq!(ftp.content("/new"), vec![9; stored + written]);
}

#[test]
fn a_full_disk_leaves_the_old_file() {
    let mut ftp = server(500_000);
    let old = ftp.content("/b.bin").to_vec();
    let data = ftp.passive();
    ftp.expect("STOR b.bin", "150");
    ftp.world.client_send(data, &[9; 2_000_000]);
    assert!(ftp.expect_replies("452").contains("the old file stays"));
    assert_eq!(ftp.content("/b.bin"), old);
}

#[test]
fn those_that_are_cut_short_keep_what_came() {
    let mut ftp = server(ROOM);
    let data = ftp.passive();
    ftp.expect("STOR new", "150");
    ftp.world.client_send(data, &bytes(900_000));
    ftp.run();
    ftp.world.net.client_reset(data);
    ftp.expect_replies("426");
    assert_eq!(ftp.content("/new"), bytes(900_000));
    assert!(ways(&ftp, ROOM).0 > 800_000);
}

#[test]
fn lines_are_converted_in_memory() {
    let mut ftp = server(ROOM);
    ftp.expect("TYPE A", "200");
    ftp.store("STOR text", &b"one\r\n".repeat(100_000));
    assert_eq!(ftp.content("/text"), b"one\n".repeat(100_000));
    assert_eq!(ways(&ftp, ROOM), (0, 0));
}
