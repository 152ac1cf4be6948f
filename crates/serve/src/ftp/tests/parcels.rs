//! Uploads whose bytes the transport hands to the files as they are.

use super::*;

fn server() -> Ftp {
    let mut ftp = Ftp::anna();
    ftp.world.net.parcels = Some(0);
    ftp
}

fn bytes(len: u32) -> Vec<u8> {
    (0..len).map(|i| (i % 241) as u8).collect()
}

fn taken(ftp: &Ftp) -> usize {
    ftp.world.net.parcels.unwrap()
}

#[test]
fn they_are_complete_and_in_order() {
    for limit in [1, 100] {
        let mut ftp = server();
        // Operations that are refused are submitted again.
        ftp.world.files.limit = limit;
        let content = bytes(1_000_000);
        let data = ftp.passive();
        ftp.send("STOR new");
        for part in content.chunks(300_001) {
            ftp.world.client_send(data, part);
            ftp.advance(Duration::from_millis(1));
        }
        ftp.end_upload(data);
        ftp.expect_replies("150 226");
        assert_eq!(ftp.content("/new"), content);
        // What comes before the file is cut waits in memory.
        assert!(taken(&ftp) > 900_000, "{}", taken(&ftp));
        assert_eq!(ftp.server.stats().bytes_received, 1_000_000);
        assert_eq!(ftp.world.files.open_count(), 0);
    }
}

#[test]
fn a_slow_disk_holds_the_client_back_and_what_is_told_is_there() {
    let mut ftp = server();
    let data = ftp.passive();
    ftp.expect("STOR new", "150");
    ftp.world.files.hold = true;
    ftp.world.client_send(data, &bytes(900_000));
    ftp.run();
    assert_eq!(taken(&ftp), super::super::receive::PARCELS_MAX * 7_000, "two parcels are under way");
    // However long the disk takes, it is not the client who stalls.
    ftp.advance(Duration::from_secs(600));
    assert_eq!(ftp.replies(), "");
    ftp.send("ABOR");
    ftp.world.files.hold = false;
    let reply = ftp.expect_replies("426 226");
    assert!(reply.contains("14000 bytes are kept"), "{reply}");
    assert_eq!(ftp.content("/new"), bytes(14_000));
}

#[test]
fn a_full_disk_ends_them() {
    let mut ftp = server();
    let old = ftp.content("/b.bin").to_vec();
    let data = ftp.passive();
    ftp.expect("STOR b.bin", "150");
    ftp.world.client_send(data, &bytes(100_000));
    ftp.run();
    ftp.world.files.fail = Some(linerate_transport::FileError::NoSpace);
    ftp.world.client_send(data, &bytes(100_000));
    assert!(ftp.expect_replies("452").contains("the old file stays"));
    ftp.world.files.fail = None;
    assert_eq!(ftp.content("/b.bin"), old);
    assert_eq!(ftp.world.files.open_count(), 0);
}

#[test]
fn a_transport_that_takes_no_more_is_read() {
    let mut ftp = server();
    let data = ftp.passive();
    ftp.expect("STOR new", "150");
    let content = bytes(1_500_000);
    for (number, part) in content.chunks(100_000).enumerate() {
        ftp.world.net.parcels = (number % 2 == 0).then_some(0);
        ftp.world.client_send(data, part);
        ftp.run();
    }
    ftp.world.net.client_finish(data);
    ftp.expect_replies("226");
    assert_eq!(ftp.content("/new"), content);
}

#[test]
fn lines_are_converted_in_memory() {
    let mut ftp = server();
    ftp.expect("TYPE A", "200");
    ftp.store("STOR text", &b"one\r\n".repeat(100_000));
    assert_eq!(ftp.content("/text"), b"one\n".repeat(100_000));
    assert_eq!(taken(&ftp), 0);
}
