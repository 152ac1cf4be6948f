//! Transfers, both ways, and how they end.

use super::*;
use crate::testing::net::Released;
use linerate_transport::FileError;

#[test]
fn files_are_retrieved_as_they_are() {
    let mut ftp = Ftp::anonymous();
    let b = ftp.content("/b.bin").to_vec();
    assert_eq!(ftp.fetch("RETR b.bin"), b);
    assert_eq!(ftp.fetch("RETR /empty"), b"");
    assert_eq!(ftp.fetch("RETR sub/x y"), b"xy");
    ftp.expect("REST 199990", "350");
    assert_eq!(ftp.fetch("RETR b.bin"), &b[199_990..]);
    assert_eq!(ftp.fetch("RETR b.bin"), b, "REST is for one transfer");
    ftp.expect("REST 200000", "350");
    assert_eq!(ftp.fetch("RETR b.bin"), b"");
    ftp.expect("REST 200001", "350");
    ftp.passive();
    ftp.expect("RETR b.bin", "554");
    ftp.expect("RETR nothere", "550");
    ftp.expect("RETR sub", "550");
    assert_eq!(ftp.world.files.open_count(), 0);
}

#[test]
fn a_slash_at_the_end_names_no_file() {
    let mut ftp = Ftp::anna();
    ftp.passive();
    for (line, code) in [
        ("RETR a.txt/", "550"),
        ("RETR a.txt/.", "550"),
        ("HASH a.txt/", "550"),
        ("SIZE a.txt/", "550"),
        ("DELE a.txt/", "550"),
        ("MDTM a.txt/", "550"),
        ("MLST a.txt/", "550"),
        ("RNFR a.txt/", "550"),
        ("STAT a.txt/", "550"),
        ("LIST a.txt/", "550"),
        ("CWD a.txt/", "550"),
        ("STOR new/", "553"),
        ("APPE a.txt/", "553"),
        ("STOU new/", "553"),
    ] {
        ftp.expect(line, code);
    }
    assert_eq!(ftp.content("/a.txt"), b"one\ntwo\n");
    ftp.expect("MDTM sub/", "213");
    ftp.expect("CWD sub/", "250");
    assert_eq!(ftp.world.files.open_count(), 0);
}

#[test]
fn a_reply_tells_the_size() {
    let mut ftp = Ftp::anonymous();
    ftp.passive();
    assert!(ftp.cmd("RETR b.bin").contains("(200000 bytes)"));
}

#[test]
fn files_are_stored_and_resumed() {
    let mut ftp = Ftp::anna();
    let content: Vec<u8> = (0..700_000u32).map(|i| (i % 253) as u8).collect();
    ftp.store("STOR new", &content);
    assert_eq!(ftp.content("/new"), content);
    ftp.store("STOR new", b"short");
    assert_eq!(ftp.content("/new"), b"short");
    ftp.store("APPE new", b" and more");
    assert_eq!(ftp.content("/new"), b"short and more");
    ftp.expect("REST 6", "350");
    ftp.store("STOR new", b"sweet");
    assert_eq!(ftp.content("/new"), b"short sweet", "what lay behind the offset gives way");
    ftp.expect("REST 100", "350");
    ftp.passive();
    ftp.expect("STOR new", "554");
    assert_eq!(ftp.content("/new"), b"short sweet");
    ftp.store("APPE other", b"x");
    assert_eq!(ftp.content("/other"), b"x");
    ftp.store("STOR empty2", b"");
    assert_eq!(ftp.content("/empty2"), b"");
    ftp.passive();
    ftp.expect("STOR sub", "553");
    ftp.expect("STOR nothere/x", "553");
    assert_eq!(ftp.world.files.open_count(), 0);
}

#[test]
fn stou_finds_a_new_name() {
    let mut ftp = Ftp::anna();
    let mut names = Vec::new();
    for _ in 0..3 {
        let reply = ftp.store("STOU", b"unique");
        let name = reply.lines().next().unwrap().strip_prefix("150 FILE: ").unwrap();
        assert_eq!(ftp.content(&format!("/{name}")), b"unique");
        names.push(String::from(name));
    }
    names.dedup();
    assert_eq!(names.len(), 3);
    let reply = ftp.store("STOU sub/base", b"unique");
    assert!(reply.starts_with("150 FILE: base."), "{reply}");
}

#[test]
fn ascii_converts_line_ends_both_ways() {
    let mut ftp = Ftp::anna();
    ftp.expect("TYPE A", "200");
    assert_eq!(ftp.fetch("RETR a.txt"), b"one\r\ntwo\r\n");
    ftp.expect("REST 4", "350");
    assert_eq!(ftp.fetch("RETR a.txt"), b"\ntwo\r\n", "the offset counts bytes of the network form");
    ftp.world.files.add_file("/dos.txt", b"one\r\ntwo\r\n");
    assert_eq!(ftp.fetch("RETR dos.txt"), b"one\r\ntwo\r\n", "no second CR");
    ftp.store("STOR c.txt", b"x\r\ny\r\n\r");
    assert_eq!(ftp.content("/c.txt"), b"x\ny\n\r");
    let lines: Vec<u8> = core::iter::repeat_n(*b"\n", 100_000).flatten().collect();
    ftp.world.files.add_file("/lines", &lines);
    assert_eq!(ftp.fetch("RETR lines").len(), 200_000);
    ftp.expect("REST 4", "350");
    ftp.passive();
    ftp.expect("STOR c.txt", "554");
    let memory = ftp.fetch("RETR memory/100K");
    let ends = (0..102_400).filter(|i| i % 65_536 % 251 == 10).count();
    assert_eq!(memory.len(), 102_400 + ends);
}

#[test]
fn the_final_reply_waits_for_the_acknowledgement() {
    let mut ftp = Ftp::anna();
    let data = ftp.passive();
    ftp.world.net.client_stall(data, true);
    ftp.expect("RETR b.bin", "150");
    assert_eq!(ftp.replies(), "");
    ftp.world.net.client_stall(data, false);
    ftp.expect_replies("226");
    assert_eq!(ftp.server.stats().bytes_sent, 200_000);
}

#[test]
fn the_final_reply_to_an_upload_waits_for_the_disk() {
    let mut ftp = Ftp::anna();
    let data = ftp.passive();
    ftp.expect("STOR new", "150");
    ftp.world.client_send(data, &[7; 1000]);
    ftp.run();
    ftp.world.files.hold = true;
    ftp.world.client_send(data, &[8; 1000]);
    ftp.world.net.client_finish(data);
    assert_eq!(ftp.replies(), "");
    ftp.world.files.hold = false;
    ftp.expect_replies("226");
    assert_eq!(ftp.content("/new").len(), 2_000);
}

#[test]
fn a_slow_disk_holds_the_client_back() {
    let mut ftp = Ftp::anna();
    let data = ftp.passive();
    ftp.expect("STOR new", "150");
    ftp.world.files.hold = true;
    let content = vec![5; 10 << 20];
    ftp.world.client_send(data, &content);
    ftp.run();
    let limits = &ftp.server.config().limits;
    let bound = limits.write_chunk_len * (limits.writes_under_way + 1);
    let left = linerate_transport::Transport::readable(&ftp.world.net, data);
    assert!(content.len() - left <= bound, "{} bytes taken", content.len() - left);
    // However long the disk takes, it is not the client who stalls.
    ftp.advance(Duration::from_secs(600));
    assert_eq!(ftp.replies(), "");
    ftp.world.files.hold = false;
    ftp.run();
    ftp.end_upload(data);
    ftp.expect_replies("226");
    assert_eq!(ftp.content("/new"), content);
}

#[test]
fn refused_operations_are_submitted_again_in_order() {
    let mut ftp = Ftp::anna();
    ftp.world.files.limit = 1;
    let content: Vec<u8> = (0..3_000_000u32).map(|i| (i % 241) as u8).collect();
    let data = ftp.passive();
    ftp.world.client_send(data, &content);
    ftp.world.net.client_finish(data);
    ftp.send("STOR new");
    ftp.advance(Duration::from_secs(5));
    ftp.expect_replies("150 226");
    assert_eq!(ftp.content("/new"), content);
    assert!(ftp.server.stats().deferred_operations > 0);
    // Closing must not overtake the writes that wait, although there is room again.
    let data = ftp.passive();
    ftp.world.files.limit = 64;
    ftp.expect("STOR other", "150");
    ftp.world.files.limit = 0;
    ftp.world.client_send(data, &content[..1_000]);
    ftp.run();
    ftp.world.files.limit = 64;
    ftp.world.net.client_finish(data);
    assert_eq!(ftp.replies(), "");
    ftp.advance(Duration::from_millis(5));
    ftp.expect_replies("226");
    assert_eq!(ftp.content("/other"), &content[..1_000]);
}

#[test]
fn what_is_stored_in_memory_is_written_from_where_it_came() {
    let mut ftp = Ftp::anna();
    ftp.world.files.written_now = Some(0);
    let content: Vec<u8> = (0..3_000_000u32).map(|i| (i % 241) as u8).collect();
    let mut ran = |command: &[&str], content: &[u8]| {
        let data = ftp.passive();
        for line in command {
            ftp.send(line);
        }
        ftp.world.client_send(data, content);
        ftp.world.net.client_finish(data);
        ftp.advance(Duration::from_secs(1));
        assert!(ftp.replies().contains("226"));
    };
    ran(&["STOR new"], &content);
    ran(&["REST 1000000", "STOR new"], &content[..1_000_000]);
    ran(&["APPE new"], b"end");
    assert_eq!(ftp.world.files.written_now, Some(4_000_003));
    let expected = [&content[..1_000_000], &content[..1_000_000], b"end"].concat();
    assert_eq!(ftp.content("/new"), expected, "cut at the offset before anything was written");
    assert_eq!(ftp.world.files.open_count(), 0);
}

#[test]
fn memory_that_fills_up_ends_the_upload() {
    let mut ftp = Ftp::anna();
    (ftp.world.files.written_now, ftp.world.files.space) = (Some(0), 700_000);
    let data = ftp.passive();
    ftp.expect("STOR new", "150");
    ftp.world.client_send(data, &[9; 2_000_000]);
    assert!(ftp.expect_replies("452").contains("700000 bytes are kept"));
    assert_eq!(ftp.content("/new"), [9; 700_000]);
    assert_eq!(ftp.world.files.written_now, Some(700_000));
}

#[test]
fn writing_at_once_overtakes_no_operation_that_waits() {
    let mut ftp = Ftp::anna();
    let old = ftp.content("/b.bin").to_vec();
    let data = ftp.passive();
    ftp.expect("REST 1000", "350");
    (ftp.world.files.written_now, ftp.world.files.limit) = (Some(0), 0);
    ftp.send("STOR b.bin");
    ftp.world.client_send(data, b"first");
    ftp.run();
    // The file opens; that it be cut is refused for a while.
    ftp.world.files.limit = 1;
    ftp.world.files.hold = true;
    ftp.advance(Duration::from_millis(5));
    assert_eq!(ftp.world.files.written_now, Some(0));
    ftp.world.files.hold = false;
    ftp.world.net.client_finish(data);
    ftp.advance(Duration::from_millis(100));
    ftp.expect_replies("150 226");
    assert_eq!(ftp.content("/b.bin"), [&old[..1_000], b"first"].concat());
}

#[test]
fn a_disk_that_fills_up_ends_the_upload() {
    let mut ftp = Ftp::anna();
    let data = ftp.passive();
    ftp.expect("STOR new", "150");
    ftp.world.client_send(data, b"first");
    ftp.run();
    ftp.world.files.fail = Some(FileError::NoSpace);
    ftp.world.client_send(data, b"second");
    assert!(ftp.expect_replies("452").contains("5 bytes are kept"));
    ftp.world.files.fail = None;
    assert_eq!(ftp.content("/new"), b"first");
    assert_eq!(ftp.server.stats().failed_transfers, 1);
}

#[test]
fn a_full_disk_is_told_before_the_data_connection_is_reset() {
    let old: Vec<u8> = vec![1; 1_000];
    for (target, left) in [("new", "200000 bytes are kept"), ("old", "the old file stays")] {
        let mut ftp = Ftp::anna();
        ftp.world.files.add_file("/old", &old);
        ftp.world.files.space = 250_000;
        let data = ftp.passive();
        ftp.expect(&format!("STOR {target}"), "150");
        let mut replies = String::new();
        for _ in 0..100 {
            ftp.world.client_send(data, &[7; 100_000]);
            replies += &ftp.replies();
            assert_eq!(
                ftp.world.net.released(data),
                None,
                "the client goes on sending, and can read why not"
            );
        }
        assert!(codes(&replies) == "452" && replies.contains(left), "{replies}");
        assert_eq!(linerate_transport::Transport::readable(&ftp.world.net, data), 0);
        match target {
            // Whole pieces only: what the reply tells is what SIZE tells.
            "new" => assert_eq!(ftp.cmd("SIZE new"), "213 200000\r\n"),
            _ => assert_eq!(ftp.content("/old"), old),
        }
        ftp.expect("RETR a.txt", "425");
        // A client that never looks is cut off, one that ends its side is let go in order.
        match target {
            "new" => ftp.advance(Duration::from_secs(2)),
            _ => {
                ftp.world.net.client_finish(data);
                ftp.run();
            }
        }
        let how = if target == "new" { Released::Aborted } else { Released::Closed };
        assert_eq!(ftp.world.net.released(data), Some(how));
        ftp.world.files.space = usize::MAX;
        ftp.store("STOR other", b"x");
        ftp.world.net.client_reset(ftp.control);
        ftp.assert_released();
    }
}

#[test]
fn nobody_sees_half_an_upload() {
    let mut ftp = Ftp::anna();
    for target in ["/a.txt", "/new"] {
        let old = ftp.world.files.content(target).map(<[u8]>::to_vec);
        let listing = ftp.fetch("NLST -a");
        let data = ftp.passive();
        ftp.expect(&format!("STOR {target}"), "150");
        ftp.world.client_send(data, &[7; 600_000]);
        ftp.run();
        assert_eq!(ftp.world.files.content(target).map(<[u8]>::to_vec), old, "{target}");
        let other = ftp.world.connect(at_port(PEER, 5009), 21);
        ftp.world.client_send(other, b"USER ftp\r\nPASS x\r\nSTAT -a /\r\n");
        ftp.run();
        let status = String::from_utf8(ftp.world.received(other)).unwrap();
        assert_eq!(status.matches("ftp      ftp").count(), listing.split(|b| *b == b'\n').count() - 1);
        ftp.world.net.client_finish(data);
        ftp.expect_replies("226");
        assert_eq!(ftp.content(target), vec![7; 600_000]);
    }
    // Where a file cannot be replaced it is written as it is.
    ftp.world.files.in_place = true;
    ftp.store("STOR a.txt", b"in place");
    assert_eq!(ftp.content("/a.txt"), b"in place");
}

#[test]
fn one_upload_to_a_name_at_a_time() {
    let mut ftp = Ftp::anna();
    let first = ftp.control;
    let data = ftp.passive();
    ftp.expect("STOR sub/up", "150");
    ftp.world.client_send(data, b"first");
    ftp.control = ftp.world.connect(at_port(PEER, 6000), 21);
    ftp.expect_replies("220");
    ftp.log_in_anna();
    ftp.passive();
    ftp.expect("REST 0", "350");
    for line in ["STOR sub/up", "STOR /sub/./up", "APPE sub/up", "DELE sub/up", "RNFR sub/up", "RNFR sub"] {
        assert!(ftp.expect(line, "450").contains("upload"), "{line}");
    }
    ftp.expect("RNFR a.txt", "350");
    ftp.expect("RNTO sub/up", "450");
    ftp.expect("RMD sub", "450");
    // A directory would be in the way of the file when that gets its name.
    ftp.expect("MKD sub/up", "450");
    // One above it is there already, which clients that copy trees ask about by trying.
    ftp.expect("MKD sub", "550");
    ftp.store("STOR sub/up2", b"another name");
    ftp.world.net.client_finish(data);
    ftp.run();
    assert!(ftp.world.received(first).starts_with(b"226"));
    assert_eq!(ftp.content("/sub/up"), b"first");
    ftp.store("STOR sub/up", b"second");
    assert_eq!(ftp.content("/sub/up"), b"second");
    // However an upload ends, the name is free again.
    for end in ["ABOR", "reset", "vanish", "refused"] {
        let uploader = ftp.world.connect(at_port(PEER, 6100), 21);
        let other = core::mem::replace(&mut ftp.control, uploader);
        ftp.expect_replies("220");
        ftp.log_in_anna();
        let data = ftp.passive();
        if end == "refused" {
            ftp.expect("STOR sub", "553");
        } else {
            ftp.expect("STOR sub/up", "150");
        }
        match end {
            "ABOR" => drop(ftp.expect("ABOR", "426 226")),
            "reset" => ftp.world.net.client_reset(data),
            _ => ftp.world.net.client_reset(uploader),
        }
        ftp.run();
        ftp.control = other;
        ftp.store("STOR sub/up", end.as_bytes());
        ftp.expect("RNFR sub", "350");
        assert_eq!(ftp.content("/sub/up"), end.as_bytes());
    }
}

#[test]
fn changes_are_told_to_the_other_servers() {
    use crate::Change;
    let mut ftp = Ftp::anna();
    let path = |text: &str| linerate_transport::VirtualPath::parse(text).unwrap();
    let told = |ftp: &mut Ftp, name: &str| {
        let changes: Vec<Change> = core::iter::from_fn(|| ftp.server.poll_change()).collect();
        changes.iter().any(|change| change.concerns(&path(name)))
    };
    assert!(!told(&mut ftp, "/"));
    ftp.store("STOR a.txt", b"new");
    assert!(told(&mut ftp, "/a.txt"));
    ftp.store("APPE a.txt", b"new");
    assert!(told(&mut ftp, "/a.txt"));
    for (line, code, name) in [
        ("DELE a.txt", "250", "/a.txt"),
        ("RNFR sub", "350", ""),
        ("RNTO other", "250", "/sub/x y"),
        ("MKD made", "257", "/made"),
        ("RMD made", "250", "/made"),
        ("MFMT 20200102030405 b.bin", "213", "/b.bin"),
        ("SITE CHMOD 600 b.bin", "200", "/b.bin"),
        ("SIZE b.bin", "213", ""),
    ] {
        ftp.expect(line, code);
        assert_eq!(!name.is_empty() && told(&mut ftp, name), !name.is_empty(), "{line}");
    }
    let data = ftp.passive();
    ftp.expect("STOR late", "150");
    ftp.world.client_send(data, b"late");
    ftp.run();
    ftp.world.net.client_reset(ftp.control);
    ftp.assert_released();
    assert!(told(&mut ftp, "/late"));
}

#[test]
fn a_file_that_becomes_shorter_ends_the_download() {
    let mut ftp = Ftp::anna();
    let data = ftp.passive();
    ftp.world.net.client_stall(data, true);
    ftp.expect("RETR b.bin", "150");
    ftp.world.files.nodes.get_mut("/b.bin").unwrap().data.truncate(100);
    ftp.world.net.client_stall(data, false);
    ftp.expect_replies("451");
    assert_eq!(ftp.world.files.open_count(), 0);
}

#[test]
fn what_came_before_a_reset_stays_for_a_resume() {
    let mut ftp = Ftp::anna();
    let data = ftp.passive();
    ftp.expect("STOR new", "150");
    ftp.world.client_send(data, b"first part,");
    ftp.run();
    ftp.world.net.client_reset(data);
    ftp.expect_replies("426");
    assert_eq!(ftp.content("/new"), b"first part,");
    ftp.expect("SIZE new", "213");
    ftp.store("APPE new", b" second part");
    assert_eq!(ftp.content("/new"), b"first part, second part");
    let data = ftp.passive();
    ftp.world.net.client_stall(data, true);
    ftp.expect("RETR b.bin", "150");
    ftp.world.net.client_reset(data);
    ftp.expect_replies("426");
    assert_eq!(ftp.world.files.open_count(), 0);
}

#[test]
fn an_upload_that_never_comes_about_harms_nothing() {
    let mut ftp = Ftp::anna();
    ftp.epsv();
    ftp.expect("STOR a.txt", "150");
    ftp.advance(Duration::from_secs(31));
    ftp.expect_replies("425");
    assert_eq!(ftp.content("/a.txt"), b"one\ntwo\n");
    ftp.expect("NOOP", "200");
}

#[test]
fn abort_ends_a_transfer_with_two_replies() {
    let mut ftp = Ftp::anna();
    let data = ftp.passive();
    ftp.world.net.client_stall(data, true);
    ftp.expect("RETR b.bin", "150");
    ftp.world.client_send(ftp.control, b"\xff\xf4\xff\xf2ABOR\r\n");
    ftp.expect_replies("426 226");
    assert_eq!(ftp.world.net.released(data), Some(crate::testing::net::Released::Aborted));
    let data = ftp.passive();
    ftp.expect("STOR new", "150");
    ftp.world.client_send(data, b"partial");
    ftp.run();
    ftp.world.files.hold = true;
    ftp.world.client_send(data, b" upload");
    ftp.expect("ABOR", "");
    ftp.expect("SIZE new", "");
    ftp.world.files.hold = false;
    ftp.expect_replies("426 226 213");
    assert_eq!(ftp.content("/new"), b"partial upload", "what was received is written before the reply");
    ftp.epsv();
    ftp.expect("RETR a.txt", "150");
    ftp.expect("ABOR", "426 226");
    ftp.passive();
    ftp.expect("ABOR", "226");
    ftp.expect("RETR a.txt", "425");
    assert_eq!(ftp.world.files.open_count(), 0);
}

#[test]
fn quit_waits_for_a_transfer_but_not_for_a_connection_that_does_not_come() {
    let mut ftp = Ftp::anna();
    let data = ftp.passive();
    ftp.world.net.client_stall(data, true);
    ftp.expect("RETR b.bin", "150");
    ftp.expect("QUIT", "");
    ftp.world.net.client_stall(data, false);
    ftp.expect_replies("226 221");
    assert_eq!(ftp.world.received(data).len(), 200_000);
    ftp.assert_released();
    let mut ftp = Ftp::anna();
    ftp.epsv();
    ftp.expect("RETR b.bin", "150");
    ftp.expect("QUIT", "425 221");
    ftp.assert_released();
}

#[test]
fn a_client_that_vanishes_leaves_nothing_behind() {
    for line in ["RETR b.bin", "STOR new", "LIST", "HASH b.bin", "STAT sub", "CWD sub", "NOOP"] {
        for hold in [false, true] {
            let mut ftp = Ftp::anna();
            let data = ftp.passive();
            ftp.world.net.client_stall(data, true);
            ftp.world.client_send(data, b"some data");
            ftp.world.files.hold = hold;
            ftp.cmd(line);
            ftp.world.net.client_reset(ftp.control);
            ftp.run();
            ftp.world.files.hold = false;
            ftp.assert_released();
        }
    }
}

#[test]
fn many_transfers_at_once_do_not_disturb_each_other() {
    let mut ftp = Ftp::anonymous();
    let mut clients = Vec::new();
    for i in 0..40 {
        let control = ftp.world.connect(at_port(PEER, 6000 + i), 21);
        ftp.world.client_send(control, b"USER ftp\r\nPASS x\r\nTYPE I\r\nEPSV\r\nRETR b.bin\r\n");
        ftp.run();
        let replies = String::from_utf8(ftp.world.received(control)).unwrap();
        let port = replies.split('|').nth(3).unwrap().parse().unwrap();
        clients.push((control, port));
    }
    for (i, (control, port)) in clients.iter().enumerate() {
        let data = ftp.world.connect(at_port(PEER, 7000 + i as u16), *port);
        ftp.run();
        assert_eq!(ftp.world.received(data), ftp.content("/b.bin"));
        assert!(ftp.world.received(*control).starts_with(b"226"));
    }
}
