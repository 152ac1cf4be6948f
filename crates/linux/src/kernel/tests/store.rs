//! Received bytes go to a file without passing through memory of ours, and nothing of them is lost or doubled.

use super::*;
use crate::files::tests::{TempDir, on_processors, open, serve};
use linerate_transport::{CloseReason, ConnState, FileError, FileId, OpenMode, Stored};
use rustix::net::SendFlags;
use std::io::Write;
use std::os::unix::fs::FileExt;

const LEN: u64 = 20 << 20;
/// Largest offset of a file.
const END: u64 = i64::MAX as u64;

/// A transport, a file in memory that takes bytes, and what it is called; the loop has no processor beside it.
fn rig() -> Option<(Rig, crate::files::AnyFiles, FileId, TempDir)> {
    let dir = TempDir::in_memory()?;
    let mut files = on_processors(serve(&dir, true), 1);
    let (file, _) = open(&mut files, "/up", OpenMode::Update).unwrap();
    Some((Rig::with(KernelConfig::default(), files.access()), files, file, dir))
}

fn some(len: usize) -> Option<Stored> {
    Some(Stored { len, error: None })
}

/// Stores what is there; what waits in memory is written from there. Returns the bytes of both ways.
fn drain(rig: &mut Rig, conn: ConnId, file: FileId, dir: &TempDir, at: u64) -> (u64, u64) {
    let (mut stored, mut written) = (0, 0);
    loop {
        match rig.net.store(conn, file, at + stored + written, 300_000) {
            Some(Stored { len: 0, error: None }) => return (stored, written),
            Some(Stored { len, error }) => {
                assert!(len <= 300_000 && error.is_none(), "{error:?}");
                stored += len as u64;
            }
            None => {
                let piece = rig.net.peek(conn).to_vec();
                if piece.is_empty() {
                    return (stored, written);
                }
                let up = std::fs::OpenOptions::new().write(true).open(dir.0.join("up")).unwrap();
                up.write_all_at(&piece, at + stored + written).unwrap();
                rig.net.consume(conn, piece.len());
                written += piece.len() as u64;
            }
        }
    }
}

#[test]
fn all_of_a_stream_is_in_the_file() {
    let Some((mut rig, _files, file, dir)) = rig() else { return };
    let (client, server) = rig.pair("127.0.0.1");
    let (mut sent, mut stored, mut written) = (0, 0, 0);
    rig.wait("the peer has finished", |rig| {
        sent = rig.send_pattern(client, sent, LEN);
        if sent == LEN {
            rig.net.shutdown(client);
        }
        let (by_pipe, by_memory) = drain(rig, server, file, &dir, stored + written);
        (stored, written) = (stored + by_pipe, written + by_memory);
        rig.saw(server, Ready::FINISHED)
    });
    assert_eq!(rig.net.state(server), ConnState::Open { finished: true });
    assert_eq!(stored + written, LEN);
    assert!(stored > written, "{stored} {written}");
    assert_eq!(check_pattern(0, &std::fs::read(dir.0.join("up")).unwrap()), LEN);
    assert_eq!(rig.net.counters().bytes_received, LEN);
    assert_eq!(rig.net.store(server, file, LEN, 10), some(0), "behind the end");
}

#[test]
fn who_looks_at_the_bytes_gets_them_in_memory_again() {
    let Some((mut rig, _files, file, dir)) = rig() else { return };
    let (client, server) = rig.pair("::1");
    assert_eq!(rig.net.store(server, file, 0, 1000), some(0), "nothing is there yet");
    rig.net.write(client, b"0123456789").unwrap();
    rig.wait("it is told of", |rig| rig.saw(server, Ready::READABLE));
    assert_eq!(rig.net.readable(server), 0);
    assert_eq!(rig.net.store(server, file, 0, 4), some(4));
    assert_eq!(rig.read(server, 4), b"4567");
    assert_eq!(rig.net.store(server, file, 4, 1000), None, "some wait in memory");
    assert_eq!(rig.read(server, 2), b"89");
    assert_eq!(rig.net.store(server, file, 4, 1000), some(0));
    rig.forget(server);
    rig.net.write(client, b"ab").unwrap();
    rig.wait("it is told of", |rig| rig.saw(server, Ready::READABLE));
    assert_eq!(rig.net.store(server, file, 4, 1000), some(2));
    assert_eq!(std::fs::read(dir.0.join("up")).unwrap(), b"0123ab");
}

#[test]
fn a_file_that_takes_no_more_says_so() {
    let Some((mut rig, _files, file, dir)) = rig() else { return };
    let (client, server) = rig.pair("127.0.0.1");
    assert_eq!(rig.net.store(server, file, 0, 1), some(0));
    rig.net.write(client, &[7; 5000]).unwrap();
    rig.wait("it is told of", |rig| rig.saw(server, Ready::READABLE));
    assert_eq!(rig.net.store(server, file, END - 1000, 1000), some(1000));
    let failed = Some(Stored { len: 0, error: Some(FileError::Io) });
    assert_eq!(rig.net.store(server, file, END, 1000), failed);
    let up = std::fs::File::open(dir.0.join("up")).unwrap();
    assert_eq!(up.metadata().unwrap().len(), END);
    let mut last = [0; 1001];
    assert_eq!(up.read_at(&mut last, END - 1001).unwrap(), 1001);
    assert_eq!((last[0], &last[1..]), (0, &[7; 1000][..]));
    // What follows is thrown away, as after any write that failed.
    assert_eq!(rig.net.store(server, file, 0, 10), None);
    rig.forget(server);
    rig.net.write(client, b"rest").unwrap();
    assert!(rig.read(server, 3004).ends_with(b"rest"));
}

#[test]
fn nothing_goes_to_what_is_no_file_in_memory_that_may_be_written() {
    let Some((mut rig, mut files, _, dir)) = rig() else { return };
    dir.write("old", b"old");
    let (read_only, _) = open(&mut files, "/old", OpenMode::Read).unwrap();
    let (folder, _) = open(&mut files, "/", OpenMode::Read).unwrap();
    let (client, server) = rig.pair("127.0.0.1");
    rig.net.write(client, b"new").unwrap();
    for file in [read_only, folder, FileId::new(99, 0)] {
        assert_eq!(rig.net.store(server, file, 0, 10), None, "{file:?}");
    }
    assert_eq!(rig.net.store(ConnId::new(99, 0), read_only, 0, 10), None);
    assert_eq!(rig.read(server, 3), b"new");
    let disk = TempDir::new();
    let mut files = on_processors(serve(&disk, true), 1);
    let (file, _) = open(&mut files, "/up", OpenMode::Update).unwrap();
    files.access().find(file).unwrap().mute();
    let mut rig = Rig::with(KernelConfig::default(), files.access());
    let (client, server) = rig.pair("127.0.0.1");
    rig.net.write(client, b"new").unwrap();
    assert_eq!(rig.net.store(server, file, 0, 10), None, "on a disk");
    assert_eq!(rig.read(server, 3), b"new");
}

#[test]
fn a_reset_is_told_by_the_state() {
    let Some((mut rig, _files, file, _dir)) = rig() else { return };
    let (client, server) = rig.pair("127.0.0.1");
    assert_eq!(rig.net.store(server, file, 0, 10), some(0));
    rig.net.abort(client);
    rig.wait("it is told", |rig| {
        assert_eq!(rig.net.store(server, file, 0, 10), some(0));
        rig.saw(server, Ready::CLOSED)
    });
    assert_eq!(rig.net.state(server), ConnState::Closed(CloseReason::Reset));
}

#[test]
fn an_urgent_byte_is_one_of_the_others() {
    let Some((mut rig, _files, file, dir)) = rig() else { return };
    let (listener, addr) = rig.listen(Some("127.0.0.1"));
    let mut client = std::net::TcpStream::connect(addr).unwrap();
    let server = rig.accept(listener);
    assert_eq!(rig.net.store(server, file, 0, 10), some(0));
    client.write_all(b"before").unwrap();
    assert_eq!(rustix::net::send(&client, b"!", SendFlags::OOB), Ok(1));
    client.write_all(b"behind").unwrap();
    drop(client);
    let mut at = 0;
    rig.wait("the peer has finished", |rig| {
        let (stored, written) = drain(rig, server, file, &dir, at);
        at += stored + written;
        rig.net.state(server) == ConnState::Open { finished: true }
    });
    assert_eq!(std::fs::read(dir.0.join("up")).unwrap(), b"before!behind");
}

#[test]
fn without_pipes_all_comes_through_memory() {
    let Some((mut rig, _files, file, _dir)) = rig() else { return };
    let (client, server) = rig.pair("127.0.0.1");
    assert_eq!(rig.net.store(server, file, 0, 10), some(0));
    rig.net.hub.pipes = false;
    rig.net.write(client, b"0123").unwrap();
    rig.wait("it is told of", |rig| rig.saw(server, Ready::READABLE));
    assert_eq!(rig.net.store(server, file, 0, 10), None);
    assert_eq!(rig.read(server, 4), b"0123");
}
