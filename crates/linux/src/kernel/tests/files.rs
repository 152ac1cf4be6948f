//! Ranges of files go out by descriptor or from memory, and a file that is too short ends in a reset.

use super::*;
use crate::files::tests::{TempDir, ask, open, serve};
use crate::files::{AnyFiles, DemoFile, DemoFiles};
use linerate_transport::{CloseReason, ConnState, FileId, FileOp, FileRange, OpenMode};
use std::io::Write;

const LEN: u64 = 100 << 20;

/// A file of the pattern.
fn pattern_file(dir: &TempDir, len: u64) {
    let mut file = std::fs::File::create(dir.0.join("big")).unwrap();
    let mut at = 0;
    while at < len {
        let piece = pattern(at, len - at);
        file.write_all(piece).unwrap();
        at += piece.len() as u64;
    }
}

fn rig(files: &AnyFiles) -> Rig {
    Rig::with(KernelConfig::default(), files.access())
}

fn range(file: FileId, offset: u64, len: u64) -> Payload {
    Payload::File(FileRange { file, offset, len })
}

#[test]
fn a_range_that_no_file_has_is_refused() {
    let dir = TempDir::new();
    pattern_file(&dir, 100);
    let mut files = serve(&dir, false);
    let (file, _) = open(&mut files, "/big", OpenMode::Read).unwrap();
    let mut rig = rig(&files);
    let (_, server) = rig.pair("127.0.0.1");
    for (offset, len) in [(0, u64::MAX), (1 << 63, 1), (u64::MAX, 2)] {
        assert_eq!(rig.net.send(server, range(file, offset, len)), Err(SendError::TooLong), "{offset} {len}");
    }
    assert_eq!(rig.net.unsent(server), 0);
}

#[test]
fn a_hundred_mebibytes_go_out_between_other_payloads() {
    let dir = TempDir::new();
    pattern_file(&dir, LEN);
    let mut files = serve(&dir, false);
    let (file, meta) = open(&mut files, "/big", OpenMode::Read).unwrap();
    assert_eq!(meta.len, LEN);
    let mut rig = rig(&files);
    let (client, server) = rig.pair("127.0.0.1");
    rig.net.write(server, b"head").unwrap();
    rig.net.send(server, range(file, 0, LEN)).unwrap();
    rig.net.send(server, range(file, LEN - 1000, 1000)).unwrap();
    rig.net.write(server, b"tail").unwrap();
    rig.net.shutdown(server);
    assert_eq!(rig.net.unsent(server), LEN + 1008);
    // The id may go as soon as the range is queued.
    ask(&mut files, FileOp::Close { file }).unwrap();
    assert_eq!(rig.read(client, 4), b"head");
    let mut got = 0;
    let mut rest = Vec::new();
    rig.wait("the file came", |rig| {
        rig.read_some(client, |piece| {
            let now = piece.len().min((LEN - got) as usize);
            got = check_pattern(got, &piece[..now]);
            rest.extend_from_slice(&piece[now..]);
        });
        rig.saw(client, Ready::FINISHED)
    });
    rig.read_some(client, |piece| rest.extend_from_slice(piece));
    assert_eq!((got, rest.len()), (LEN, 1004));
    check_pattern(LEN - 1000, &rest[..1000]);
    assert_eq!(&rest[1000..], b"tail");
    assert!(rig.saw(server, Ready::SENT));
    assert_eq!(rig.net.unsent(server), 0);
}

#[test]
fn a_file_that_is_truncated_while_it_is_sent_resets_the_connection() {
    let dir = TempDir::new();
    pattern_file(&dir, LEN);
    let mut files = serve(&dir, false);
    let (file, _) = open(&mut files, "/big", OpenMode::Read).unwrap();
    let mut rig = rig(&files);
    let (client, server) = rig.pair("127.0.0.1");
    rig.net.send(server, range(file, 0, LEN)).unwrap();
    let mut got = 0;
    rig.wait("some of it came", |rig| {
        rig.read_some(client, |piece| got = check_pattern(got, piece));
        got > 1 << 20
    });
    std::fs::OpenOptions::new().write(true).open(dir.0.join("big")).unwrap().set_len(2 << 20).unwrap();
    rig.wait("both are told", |rig| {
        rig.read_some(client, |_| {});
        rig.saw(server, Ready::CLOSED) && rig.saw(client, Ready::CLOSED)
    });
    assert_eq!(rig.net.state(server), ConnState::Closed(CloseReason::File));
    assert_eq!(rig.net.state(client), ConnState::Closed(CloseReason::Reset));
    assert!(rig.net.info(server).unwrap().bytes_acked > 1 << 20);
    assert_eq!(rig.net.counters().file_failed, 1);
    rig.net.close(server);
    rig.net.close(client);
    assert_eq!(rig.net.counters().connections, 0);
}

#[test]
fn ranges_of_no_file_reset_the_connection() {
    let dir = TempDir::new();
    dir.write("small", b"0123456789");
    let mut files = serve(&dir, false);
    let (file, _) = open(&mut files, "/small", OpenMode::Read).unwrap();
    let (folder, _) = open(&mut files, "/", OpenMode::Read).unwrap();
    let mut rig = rig(&files);
    for (payload, queued) in [
        (range(FileId::new(99, 0), 0, 1), false),
        (range(folder, 0, 1), true),
        (range(file, 5, 6), true),
        (range(file, 1 << 40, 1), true),
        (range(file, i64::MAX as u64 - 1, 1), true),
    ] {
        let (client, server) = rig.pair("::1");
        assert_eq!(rig.net.send(server, payload).is_ok(), queued);
        rig.wait("both are told", |rig| {
            rig.read_some(client, |_| {});
            rig.saw(server, Ready::CLOSED) && rig.saw(client, Ready::CLOSED)
        });
        assert_eq!(rig.net.state(server), ConnState::Closed(CloseReason::File));
    }
}

#[test]
fn a_file_that_is_not_in_memory_is_read_ahead() {
    let dir = TempDir::new();
    let len = 8 << 20;
    pattern_file(&dir, len);
    let big = std::fs::File::open(dir.0.join("big")).unwrap();
    big.sync_all().unwrap();
    // Asks the system to forget the content; one that keeps files in memory only does not.
    rustix::fs::fadvise(&big, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    let mut byte = [0];
    let mut slices = [std::io::IoSliceMut::new(&mut byte)];
    let nowait = rustix::io::ReadWriteFlags::NOWAIT;
    let cold = rustix::io::preadv2(&big, &mut slices, 0, nowait).is_err();
    let mut files = serve(&dir, false);
    let (file, _) = open(&mut files, "/big", OpenMode::Read).unwrap();
    let mut rig = rig(&files);
    let (client, server) = rig.pair("127.0.0.1");
    rig.net.send(server, range(file, 0, len)).unwrap();
    let mut got = 0;
    rig.wait("the file came", |rig| {
        rig.read_some(client, |piece| got = check_pattern(got, piece));
        got == len
    });
    assert!(!cold || rig.net.counters().read_aheads > 0);
}

#[test]
fn built_in_files_go_out_from_memory() {
    static BYTES: &[u8] = &[5; 3 << 20];
    let tree = [DemoFile { path: "five", bytes: BYTES, modified_ns: 0 }];
    let mut files = AnyFiles::Demo(DemoFiles::new(&tree).unwrap());
    let (file, meta) = open(&mut files, "/five", OpenMode::Read).unwrap();
    let mut rig = rig(&files);
    let (client, server) = rig.pair("127.0.0.1");
    rig.net.send(server, range(file, 1, meta.len - 1)).unwrap();
    let bytes = rig.read(client, BYTES.len() - 1);
    assert!(bytes == BYTES[1..]);
    rig.net.send(server, range(file, meta.len - 1, 2)).unwrap();
    rig.wait("it is too short", |rig| rig.saw(server, Ready::CLOSED));
    assert_eq!(rig.net.state(server), ConnState::Closed(CloseReason::File));
}

#[test]
fn a_closed_connection_sends_its_file_to_the_end() {
    let dir = TempDir::new();
    let len = 20 << 20;
    pattern_file(&dir, len);
    let mut files = serve(&dir, false);
    let (file, _) = open(&mut files, "/big", OpenMode::Read).unwrap();
    let mut rig = rig(&files);
    let (client, server) = rig.pair("127.0.0.1");
    rig.net.send(server, range(file, 0, len)).unwrap();
    ask(&mut files, FileOp::Close { file }).unwrap();
    rig.net.close(server);
    let mut got = 0;
    rig.wait("the file came", |rig| {
        rig.read_some(client, |piece| got = check_pattern(got, piece));
        rig.saw(client, Ready::FINISHED) && got == len
    });
    rig.net.close(client);
    rig.wait("all are gone", |rig| rig.net.counters().connections == 0);
}
