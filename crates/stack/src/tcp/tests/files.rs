//! File ranges in the send queue.

use super::solo::{ACK, Solo, ms, offer};
use super::stream;
use crate::tcp::{FileRead, State};
use alloc::vec::Vec;
use linerate_transport::{
    BufferSize, Bytes, CloseReason, ConnState, FileError, FileId, FileRange, Payload, Ready, SendError,
    SocketOptions,
};

fn range(offset: u64, len: u64) -> Payload {
    Payload::File(FileRange { file: FileId::new(3, 1), offset, len })
}

fn contents(read: &FileRead) -> Bytes {
    Bytes::from(stream(read.offset..read.offset + read.len as u64))
}

fn start_reads(solo: &mut Solo) -> Vec<FileRead> {
    let mut reads = Vec::new();
    while let Some(read) = solo.connection.next_file_read() {
        solo.connection.file_read_started(&read);
        reads.push(read);
    }
    reads
}

#[test]
fn a_range_that_no_file_has_is_refused_and_changes_nothing() {
    let mut solo = Solo::established();
    for (offset, len) in [(0, u64::MAX), (0, 1 << 63), (1 << 63, 1), (u64::MAX, 2), (i64::MAX as u64, 1)] {
        let sent = solo.connection.send(solo.now, range(offset, len));
        assert_eq!(sent, Err(SendError::TooLong), "{offset} {len}");
    }
    // Each could be, but not all of them behind each other.
    solo.connection.send(solo.now, range(0, 1 << 62)).unwrap();
    assert_eq!(solo.connection.send(solo.now, range(0, 1 << 62)), Err(SendError::TooLong));
    assert_eq!(solo.connection.unsent(), 1 << 62);
    solo.connection.write(solo.now, b"behind").unwrap();
    assert!(!start_reads(&mut solo).is_empty(), "it is read");
}

#[test]
fn a_file_is_read_ahead_in_bounded_pieces_and_sent_in_order() {
    let mut solo = Solo::established();
    solo.connection.send(solo.now, Payload::Static(b"head")).unwrap();
    solo.connection.send(solo.now, range(0, 3_000_000)).unwrap();
    solo.connection.shutdown(solo.now);
    assert_eq!(solo.connection.unsent(), 3_000_004);
    assert_eq!(solo.lengths(), [], "the head goes with the file");
    let (mut got, mut acked, mut most) = (Vec::new(), 0, 0);
    let mut late: Vec<FileRead> = Vec::new();
    while acked < 3_000_005 {
        let mut reads = start_reads(&mut solo);
        most = most.max(reads.iter().map(|r| r.len).sum::<usize>());
        // Answers come backwards, and one of them a round later.
        let old = core::mem::take(&mut late);
        if reads.len() > 1 {
            late.push(reads.remove(0));
        }
        for read in reads.iter().rev().chain(&old) {
            solo.connection.handle_file_data(solo.now, read.index, Ok(contents(read)));
        }
        for segment in solo.output() {
            assert!(segment.seq >= acked);
            got.extend_from_slice(&segment.wire.payload);
            acked = segment.seq + segment.len as i64 + i64::from(segment.flags.contains(super::solo::FIN));
        }
        solo.pass(ms(1));
        solo.ack(acked);
    }
    assert_eq!(&got[..4], b"head");
    assert!(got[4..] == stream(0..3_000_000));
    assert!(most <= 1 << 20, "{most}");
    assert_eq!(solo.connection.tcp_state(), State::FinWait2);
    assert!(solo.connection.poll_ready().contains(Ready::SENT));
    assert_eq!(solo.resources.budget.used(), 0);
}

#[test]
fn no_short_segment_goes_out_while_the_file_is_being_read() {
    let mut solo = Solo::established();
    solo.connection.send(solo.now, range(0, 200_000)).unwrap();
    let reads = start_reads(&mut solo);
    assert!(reads.len() >= 2);
    solo.connection.handle_file_data(solo.now, reads[0].index, Ok(contents(&reads[0])));
    let sent = solo.lengths();
    assert!(sent.iter().all(|s| s.1 == 1_460), "{sent:?}");
}

#[test]
fn reads_stay_within_the_send_buffer() {
    let socket = SocketOptions { send_buffer: BufferSize::Fixed(20_000), ..SocketOptions::default() };
    let small = crate::tcp::Config::new(socket, 1_460);
    let mut solo = Solo::established_with(small, offer(true, false));
    solo.connection.send(solo.now, range(0, 1 << 40)).unwrap();
    assert!(solo.connection.sendable() > 0, "a range takes no memory");
    let reads = start_reads(&mut solo);
    assert_eq!(reads.iter().map(|r| r.len).collect::<Vec<_>>(), [5_000; 4]);
    assert_eq!(solo.connection.sendable(), 0);
    assert_eq!(solo.connection.next_file_read(), None);
    for read in &reads {
        solo.connection.handle_file_data(solo.now, read.index, Ok(contents(read)));
    }
    assert_eq!(solo.output().len(), 10);
    solo.ack(14_600);
    assert_eq!(start_reads(&mut solo).len(), 2);
}

#[test]
fn a_file_that_fails_resets_the_connection() {
    for data in [Err(FileError::Io), Ok(Bytes::from(stream(0..99)))] {
        let mut solo = Solo::established();
        solo.connection.send(solo.now, range(0, 100)).unwrap();
        let reads = start_reads(&mut solo);
        solo.connection.handle_file_data(solo.now, reads[0].index, data);
        assert_eq!(solo.connection.state(), ConnState::Closed(CloseReason::File));
        assert!(solo.connection.poll_ready().contains(Ready::CLOSED));
        assert!(solo.output()[0].flags.contains(super::solo::RST));
        assert_eq!(solo.resources.budget.used(), 0);
    }
}

#[test]
fn data_that_comes_after_the_end_is_ignored() {
    let mut solo = Solo::established();
    solo.connection.send(solo.now, range(0, 100)).unwrap();
    let reads = start_reads(&mut solo);
    let _ = solo.input(super::solo::RST, 0, 0, 0);
    solo.connection.handle_file_data(solo.now, reads[0].index, Ok(contents(&reads[0])));
    assert_eq!(solo.connection.state(), ConnState::Closed(CloseReason::Reset));
    assert_eq!((solo.resources.budget.used(), solo.connection.next_file_read()), (0, None));
}

#[test]
fn a_closed_application_still_gets_its_file_delivered() {
    let mut solo = Solo::established();
    solo.connection.send(solo.now, range(0, 5_000)).unwrap();
    solo.connection.close(solo.now);
    let reads = start_reads(&mut solo);
    solo.connection.handle_file_data(solo.now, reads[0].index, Ok(contents(&reads[0])));
    let sent = solo.output();
    assert_eq!(sent.iter().map(|s| s.len).sum::<usize>(), 5_000);
    let _ = solo.input(ACK, 0, 5_001, 0);
    assert_eq!(solo.connection.tcp_state(), State::FinWait2);
}
