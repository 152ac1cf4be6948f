//! Received bytes go to a file on a disk in pipes, by way of the workers, and nothing of them is lost or doubled.

use super::*;
use crate::files::AnyFiles;
use crate::files::tests::{OWNER, TempDir, next, open, serve};
use linerate_transport::{CloseReason, ConnState, FileError, FileId, FileOp, Files, OpenMode, Parcel};

const LEN: u64 = 20 << 20;

fn rig() -> (Rig, AnyFiles, FileId, TempDir) {
    let dir = TempDir::new();
    let mut files = serve(&dir, true);
    let (file, _) = open(&mut files, "/up", OpenMode::Update).unwrap();
    (Rig::with(KernelConfig::default(), files.access()), files, file, dir)
}

fn submit(files: &mut AnyFiles, file: FileId, offset: u64, parcel: Parcel) {
    files.submit(OWNER, offset, FileOp::WriteParcel { file, offset, parcel }).unwrap();
}

#[test]
fn all_of_a_stream_is_in_the_file() {
    let (mut rig, mut files, file, dir) = rig();
    let (client, server) = rig.pair("127.0.0.1");
    let (mut sent, mut taken) = (0, 0);
    let mut under_way = 0;
    rig.wait("the peer has finished", |rig| {
        sent = rig.send_pattern(client, sent, LEN);
        if sent == LEN {
            rig.net.shutdown(client);
        }
        while let Some(done) = files.poll_done() {
            assert!(done.result.is_ok(), "{:?}", done.result);
            under_way -= 1;
        }
        // Several at a time are written in order.
        while under_way < 3
            && let Some(parcel) = rig.net.take(server, 300_000).filter(|parcel| !parcel.is_empty())
        {
            assert!(parcel.len() <= 300_000);
            let len = parcel.len() as u64;
            submit(&mut files, file, taken, parcel);
            taken += len;
            under_way += 1;
        }
        rig.saw(server, Ready::FINISHED)
    });
    for _ in 0..under_way {
        assert!(next(&mut files).result.is_ok());
    }
    assert_eq!(rig.net.state(server), ConnState::Open { finished: true });
    assert_eq!((taken, rig.net.counters().bytes_received), (LEN, LEN));
    assert_eq!(check_pattern(0, &std::fs::read(dir.0.join("up")).unwrap()), LEN);
    assert!(rig.net.take(server, 10).is_some_and(|parcel| parcel.is_empty()), "behind the end");
}

#[test]
fn who_has_no_pipe_left_reads() {
    let (mut rig, mut files, file, dir) = rig();
    let (client, server) = rig.pair("::1");
    assert!(rig.net.take(server, 1000).is_some_and(|parcel| parcel.is_empty()), "nothing is there yet");
    rig.net.write(client, &[b'x'; 100]).unwrap();
    rig.wait("it is told of", |rig| rig.saw(server, Ready::READABLE));
    let mut held = Vec::new();
    let mut at = 0;
    while let Some(parcel) = rig.net.take(server, 1) {
        assert_eq!(parcel.len(), 1);
        held.push(parcel);
        at += 1;
    }
    assert!((1..100).contains(&at), "{at} pipes");
    assert_eq!(rig.read(server, 2), b"xx");
    for (offset, parcel) in held.into_iter().enumerate() {
        submit(&mut files, file, offset as u64, parcel);
        assert!(next(&mut files).result.is_ok());
    }
    assert_eq!(std::fs::read(dir.0.join("up")).unwrap(), vec![b'x'; at]);
    assert!(rig.net.take(server, 10).is_none(), "some wait in memory");
    rig.read(server, 98 - at);
    rig.forget(server);
    rig.net.write(client, b"abc").unwrap();
    assert!(rig.net.take(server, 10).is_some_and(|parcel| parcel.is_empty()));
    rig.wait("it is told of", |rig| rig.saw(server, Ready::READABLE));
    assert_eq!(rig.net.take(server, 10).map(|parcel| parcel.len()), Some(3), "pipes came back");
}

#[test]
fn a_file_that_takes_no_more_says_so_and_what_is_left_goes_nowhere() {
    let (mut rig, mut files, file, dir) = rig();
    let (client, server) = rig.pair("127.0.0.1");
    let take = |rig: &mut Rig, bytes: &[u8]| {
        rig.forget(server);
        assert!(rig.net.take(server, 100).is_some_and(|parcel| parcel.is_empty()));
        rig.net.write(client, bytes).unwrap();
        rig.wait("it is told of", |rig| rig.saw(server, Ready::READABLE));
        rig.net.take(server, 100).unwrap()
    };
    let lost = take(&mut rig, b"lost");
    let end = i64::MAX as u64;
    submit(&mut files, file, end, lost);
    assert_eq!(next(&mut files).result.unwrap_err(), FileError::Io);
    // What follows would leave a gap.
    let behind = take(&mut rig, b"behind");
    submit(&mut files, file, 0, behind);
    assert_eq!(next(&mut files).result.unwrap_err(), FileError::Io);
    assert_eq!(std::fs::read(dir.0.join("up")).unwrap(), b"");
    // Another file gets its own bytes alone.
    let (other, _) = open(&mut files, "/other", OpenMode::Update).unwrap();
    let own = take(&mut rig, b"own");
    submit(&mut files, other, 0, own);
    assert!(next(&mut files).result.is_ok());
    assert_eq!(std::fs::read(dir.0.join("other")).unwrap(), b"own");
    // And what no transport here has taken goes nowhere.
    submit(&mut files, other, 3, Parcel::new(3, b"foreign"));
    assert_eq!(next(&mut files).result.unwrap_err(), FileError::Io);
}

#[test]
fn a_reset_is_told_by_the_state() {
    let (mut rig, _files, _file, _dir) = rig();
    let (client, server) = rig.pair("127.0.0.1");
    assert!(rig.net.take(server, 10).is_some_and(|parcel| parcel.is_empty()));
    rig.net.abort(client);
    rig.wait("it is told", |rig| {
        assert!(rig.net.take(server, 10).is_some_and(|parcel| parcel.is_empty()));
        rig.saw(server, Ready::CLOSED)
    });
    assert_eq!(rig.net.state(server), ConnState::Closed(CloseReason::Reset));
}
