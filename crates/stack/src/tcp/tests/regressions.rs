//! Faults that tables, models and fuzzing found, each by name.

use super::config;
use super::solo::{ACK, FIN, FIN_ACK, Solo, ms, offer};
use crate::tcp::{State, TxLimits};
use core::time::Duration;
use linerate_transport::{
    BufferSize, Bytes, CloseReason, ConnState, FileId, FileRange, Payload, Ready, SocketOptions,
};
use linerate_wire::tcp::Options;

const MSS: i64 = 1_460;

#[test]
fn a_peer_that_takes_probes_and_stays_closed_is_probed_less_and_less_and_left() {
    let mut solo = Solo::established();
    solo.window = 0;
    let _ = solo.input(ACK, 0, 0, 0);
    solo.send(1_000);
    assert!(solo.output().is_empty());
    let begin = solo.now;
    let (mut taken, mut last) = (0, Duration::ZERO);
    while taken < 6 {
        let waited = solo.fire();
        assert_eq!(solo.lengths(), [(taken, 1)]);
        assert!(waited + ms(1) >= last * 2, "{waited:?} after {last:?}");
        last = waited;
        solo.pass(ms(1));
        taken += 1;
        solo.ack(taken);
        assert!(solo.output().is_empty());
    }
    while solo.connection.state() == (ConnState::Open { finished: false }) {
        solo.fire();
        solo.output();
    }
    assert_eq!(solo.connection.state(), ConnState::Closed(CloseReason::TimedOut));
    assert_eq!(solo.now - begin, Duration::from_secs(60), "the user timeout");
}

#[test]
fn a_send_buffer_that_shrinks_below_what_lies_behind_a_file_still_lets_the_file_be_read() {
    let mut solo = Solo::established();
    let range = FileRange { file: FileId::new(0, 0), offset: 0, len: 3_000 };
    solo.connection.send(solo.now, Payload::File(range)).unwrap();
    solo.send(60_000);
    let send_buffer = BufferSize::Fixed(4_000);
    solo.connection.set_options(solo.now, &SocketOptions { send_buffer, ..SocketOptions::default() });
    let mut read = 0;
    while let Some(wanted) = solo.connection.next_file_read() {
        solo.connection.file_read_started(&wanted);
        let data = Bytes::from(alloc::vec![0; wanted.len]);
        solo.connection.handle_file_data(solo.now, wanted.index, Ok(data));
        let sent = solo.output();
        read += wanted.len as i64;
        assert!(!sent.is_empty(), "{read} bytes are read, and none is sent");
        solo.ack(sent.last().map_or(0, |last| last.seq + last.len as i64));
    }
    assert_eq!(read, 3_000);
}

#[test]
fn a_keep_alive_probe_is_answered_and_its_acknowledgement_counts() {
    let mut solo = Solo::established();
    let _ = solo.input(ACK, 0, 0, 500);
    solo.send(100);
    assert_eq!(solo.lengths(), [(0, 100)]);
    let _ = solo.input(ACK, 499, 100, 0);
    assert_eq!(solo.connection.info(solo.now).in_flight, 0);
    let answer = solo.output();
    assert_eq!((answer.len(), answer[0].seq, answer[0].ack, answer[0].len), (1, 100, 500, 0));
}

/// The window, and with it the buffer, may become smaller between the news of room and its use.
#[test]
fn who_finds_no_room_after_all_is_told_when_there_is() {
    let mut solo = Solo::established_with(config(), Options { window_scale: Some(4), ..offer(true, false) });
    let mut una = 0;
    let fill = |solo: &mut Solo| {
        while solo.connection.sendable() > 0 {
            solo.send(MSS as usize);
        }
        solo.lengths().last().map(|&(at, len)| at + len as i64).unwrap()
    };
    // Slow start, a loss, and the window's growth from then on.
    for round in 0..12 {
        let nxt = fill(&mut solo);
        solo.pass(ms(40));
        if round == 5 {
            solo.sack(una, &[(una + MSS, nxt)]);
            solo.output();
        }
        una = nxt;
        solo.ack(una);
    }
    let mut nxt = fill(&mut solo);
    una += (nxt - una) / 2 / MSS * MSS;
    solo.pass(ms(40));
    solo.connection.poll_ready();
    solo.ack(una);
    assert_eq!(solo.connection.poll_ready(), Ready::WRITABLE);
    // Before it is used, a loss is found.
    solo.sack(una, &[(una + MSS, nxt)]);
    assert_eq!(solo.connection.sendable(), 0);
    loop {
        let sent = solo.lengths();
        let Some(end) = sent.iter().map(|&(at, len)| at + len as i64).max() else { break };
        nxt = nxt.max(end);
        solo.sack(una, &[(una + MSS, nxt)]);
    }
    solo.ack(nxt - MSS);
    assert!(solo.connection.sendable() > 0);
    assert_eq!(solo.connection.poll_ready(), Ready::WRITABLE);
}

/// As does a pause, after which the window is as at the start.
#[test]
fn who_finds_no_room_after_a_pause_is_told_when_there_is() {
    let mut solo = Solo::established_with(config(), Options { window_scale: Some(4), ..offer(true, false) });
    let mut una = 0;
    for _ in 0..6 {
        while solo.connection.sendable() > 0 {
            solo.send(MSS as usize);
        }
        una = solo.lengths().last().map(|&(at, len)| at + len as i64).unwrap();
        solo.pass(ms(40));
        solo.ack(una);
    }
    while let Some(&(at, len)) = solo.lengths().last() {
        una = at + len as i64;
        solo.pass(ms(40));
        solo.ack(una);
    }
    solo.pass(ms(10_000));
    solo.connection.poll_ready();
    // A little more than the buffer at the start, so that the first acknowledgement makes some room, but not much.
    solo.send(91 * MSS as usize);
    assert!(solo.connection.sendable() > 0);
    solo.output();
    assert_eq!(solo.connection.sendable(), 0, "the buffer is as at the start, too");
    for _ in 0..20 {
        solo.pass(ms(40));
        let Some(info) = Some(solo.connection.info(solo.now)).filter(|info| info.in_flight > 0) else {
            break;
        };
        una += i64::from(info.in_flight);
        solo.ack(una);
        if solo.connection.poll_ready().contains(Ready::WRITABLE) {
            assert!(solo.connection.unsent() > 0);
            return;
        }
        solo.output();
    }
    panic!("nobody told");
}

/// Whoever waited for room and then gave an end waits no longer: the connection can fall asleep in TIME-WAIT.
#[test]
fn a_full_buffer_and_an_end_leave_nothing_that_waits() {
    let mut solo = Solo::established();
    while solo.connection.sendable() > 0 {
        solo.send(MSS as usize);
    }
    solo.connection.shutdown(solo.now);
    let mut end = 0;
    loop {
        let sent = solo.output();
        let Some(last) = sent.last() else { break };
        end = last.seq + last.len as i64 + i64::from(last.flags.contains(FIN));
        solo.pass(ms(40));
        solo.ack(end);
    }
    let _ = solo.input(FIN_ACK, 0, end, 0);
    solo.output();
    assert_eq!(solo.connection.tcp_state(), State::TimeWait);
    solo.pass(ms(5_000));
    solo.output();
    assert!(falls_asleep(&mut solo));
}

/// A lower path MTU has everything sent again; where it arrives before, nothing is forced out later.
#[test]
fn what_a_lower_path_mtu_had_sent_again_may_have_arrived_all_the_same() {
    let mut solo = Solo::established();
    solo.limits = TxLimits { max_payload: 0, completions: true };
    solo.send(3 * MSS as usize);
    assert_eq!(solo.output().len(), 3);
    assert!(solo.connection.handle_path_mss(solo.now, 1_000, None));
    assert!(solo.lengths().is_empty(), "the device has them still");
    solo.pass(ms(10));
    solo.report_up_to(3);
    solo.ack(3 * MSS);
    solo.pass(ms(5_000));
    solo.output();
    assert!(falls_asleep(&mut solo));
}

/// Whether it does once all that it has to tell is taken.
fn falls_asleep(solo: &mut Solo) -> bool {
    solo.connection.poll_ready();
    solo.connection.poll_path_mss();
    solo.connection.take_tally();
    solo.connection.fall_asleep(solo.now).is_some()
}
