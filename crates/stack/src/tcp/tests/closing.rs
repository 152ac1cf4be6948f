//! Closing a connection (RFC 9293 sections 3.6 and 3.10), the state table, resets, TIME-WAIT.

use super::config;
use super::solo::{ACK, FIN, FIN_ACK, RST, SYN, Solo, ms, offer};
use super::world::{Network, World};
use crate::tcp::state::Event;
use crate::tcp::{Config, DropReason, Outcome, SegmentIn, State, reset_for};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;
use linerate_transport::{CloseReason, ConnState, Ready, SendError};
use linerate_wire::tcp::{Flags, SeqNumber, Timestamps};

#[test]
fn the_state_table() {
    let events = [
        Event::Syn,
        Event::SynAck,
        Event::SynAcked,
        Event::FinSent,
        Event::FinReceived,
        Event::FinAcked,
        Event::Expired,
        Event::Abort,
    ];
    let mut table = String::new();
    for state in State::ALL {
        let row: Vec<String> = events
            .iter()
            .map(|&event| state.after(event).map_or(String::from("-"), |next| format!("{next:?}")))
            .collect();
        table += &format!("{state:?}: {}\n", row.join(" "));
    }
    // Columns: SYN, SYN+ACK, ACK of SYN, FIN sent, FIN received, ACK of FIN, 2 MSL, abort.
    let expected = "\
Listen: - - - - - - - -
SynSent: SynReceived Established - - - - - Closed
SynReceived: - - Established FinWait1 CloseWait - - Closed
Established: - - - FinWait1 CloseWait - - Closed
FinWait1: - - - - Closing FinWait2 - Closed
FinWait2: - - - - TimeWait - - Closed
CloseWait: - - - LastAck - - - Closed
Closing: - - - - - TimeWait - Closed
LastAck: - - - - - Closed - Closed
TimeWait: - - - - - - Closed Closed
Closed: - - - - - - - -
";
    assert_eq!(table, expected);
}

/// A segment in a state: the state after it, and what is sent.
#[track_caller]
fn check(
    state: State,
    flags: Flags,
    seq: i64,
    ack: i64,
    len: usize,
    next: State,
    reply: &[(i64, i64, Flags)],
) {
    let mut solo = Solo::in_state(state);
    let _ = solo.input(flags, seq, ack, len);
    assert_eq!(solo.connection.tcp_state(), next, "{state:?} {flags:?}");
    let sent: Vec<_> = solo.output().iter().map(|s| (s.seq, s.ack, s.flags)).collect();
    assert_eq!(sent, reply, "{state:?} {flags:?}");
}

#[test]
fn segments_in_every_state() {
    use State::*;
    // A FIN (RFC 9293 section 3.10.7.4, eighth step).
    check(Established, FIN_ACK, 0, 0, 0, CloseWait, &[(0, 1, ACK)]);
    check(Established, FIN_ACK, 0, 0, 5, CloseWait, &[(0, 6, ACK)]);
    check(FinWait1, FIN_ACK, 0, 0, 0, Closing, &[(1, 1, ACK)]);
    check(FinWait1, FIN_ACK, 0, 1, 0, TimeWait, &[(1, 1, ACK)]);
    check(FinWait2, FIN_ACK, 0, 1, 0, TimeWait, &[(1, 1, ACK)]);
    for state in [CloseWait, Closing, LastAck, TimeWait] {
        let acked = if state == TimeWait { 1 } else { 0 };
        let own = if state == CloseWait { 0 } else { 1 };
        check(state, FIN_ACK, 0, acked, 0, state, &[(own, 1, ACK)]);
    }
    // The acknowledgement of our FIN (fifth step).
    check(FinWait1, ACK, 0, 1, 0, FinWait2, &[]);
    check(Closing, ACK, 1, 1, 0, TimeWait, &[]);
    check(LastAck, ACK, 1, 1, 0, Closed, &[]);
    // Data while half-closed by us.
    check(FinWait1, ACK, 100, 0, 900, FinWait1, &[(1, 0, ACK)]);
    check(FinWait2, ACK, 100, 1, 900, FinWait2, &[(1, 0, ACK)]);
    check(FinWait2, ACK, 0, 1, 900, FinWait2, &[]);
    // A RST at the edge (second step), except in TIME-WAIT (RFC 1337).
    for state in [Established, FinWait1, FinWait2] {
        check(state, RST, 0, 0, 0, Closed, &[]);
    }
    for state in [CloseWait, Closing, LastAck] {
        check(state, RST, 1, 0, 0, Closed, &[]);
    }
    check(TimeWait, RST, 1, 0, 0, TimeWait, &[]);
    // A SYN (RFC 5961 section 4): an ACK, whatever its number.
    for state in [Established, FinWait1, FinWait2, CloseWait, Closing, LastAck, TimeWait] {
        let next = matches!(state, CloseWait | Closing | LastAck | TimeWait) as i64;
        let own = matches!(state, FinWait1 | FinWait2 | Closing | LastAck | TimeWait) as i64;
        check(state, SYN, next, 0, 0, state, &[(own, next, ACK)]);
        check(state, SYN, 900_000, 0, 0, state, &[(own, next, ACK)]);
    }
    // An acknowledgement of what was never sent.
    check(Established, ACK, 0, 700, 0, Established, &[(0, 0, ACK)]);
    // No ACK bit.
    check(Established, Flags::EMPTY, 0, 0, 10, Established, &[]);
    check(Closed, ACK, 0, 0, 10, Closed, &[]);
}

#[test]
fn resets_must_hit_the_edge() {
    // RFC 5961 section 3.2.
    let mut solo = Solo::established();
    assert_eq!(solo.input(RST, 1, 0, 0), Outcome::Dropped(DropReason::InexactReset));
    assert_eq!(solo.output().len(), 1, "a challenge ACK");
    assert_eq!(solo.input(RST, -1, 0, 0), Outcome::Dropped(DropReason::OutOfWindow));
    assert_eq!(solo.input(RST, 900_000, 0, 0), Outcome::Dropped(DropReason::OutOfWindow));
    assert!(solo.output().is_empty());
    assert_eq!(solo.connection.tcp_state(), State::Established);
    assert_eq!(solo.input(RST, 0, 0, 0), Outcome::Accepted);
    assert_eq!(solo.connection.state(), ConnState::Closed(CloseReason::Reset));
    assert_eq!(solo.connection.poll_ready(), Ready::CLOSED);
    assert!(solo.output().is_empty(), "a RST is never answered");
}

#[test]
fn challenge_acks_are_limited_per_second() {
    let mut solo = Solo::established();
    for _ in 0..100 {
        let _ = solo.input(RST, 1, 0, 0);
        solo.output();
    }
    assert_eq!(solo.connection.counters().challenge_acks, 10);
    assert_eq!(solo.connection.counters().challenge_acks_limited, 90);
    solo.pass(ms(1_000));
    let _ = solo.input(SYN, 0, 0, 0);
    assert_eq!(solo.output().len(), 1);
}

#[test]
fn acknowledgements_of_the_distant_past_are_challenged() {
    // RFC 5961 section 5.2.
    let mut solo = Solo::established();
    assert_eq!(solo.input(ACK, 0, -65_537, 100), Outcome::Dropped(DropReason::BadAck));
    assert_eq!(solo.connection.readable(), 0, "the data is not taken either");
    assert_eq!(solo.input(ACK, 0, -65_535, 100), Outcome::Accepted);
    assert_eq!(solo.connection.readable(), 100);
}

#[test]
fn resets_for_segments_without_connection() {
    // RFC 9293 section 3.10.7.1.
    let segment = |flags, seq, ack| SegmentIn {
        seq: SeqNumber(seq),
        ack: SeqNumber(ack),
        flags,
        ..SegmentIn::default()
    };
    assert_eq!(reset_for(&segment(RST, 1, 2), 5, 6), None);
    assert_eq!(reset_for(&segment(RST | ACK, 1, 2), 5, 6), None);
    let reset = reset_for(&segment(ACK, 1, 2), 5, 6).unwrap();
    assert_eq!((reset.sequence, reset.flags), (SeqNumber(2), RST));
    assert_eq!((reset.source_port, reset.destination_port), (6, 5));
    let reset = reset_for(&segment(SYN, u32::MAX, 0), 5, 6).unwrap();
    assert_eq!((reset.sequence, reset.acknowledgement, reset.flags), (SeqNumber(0), SeqNumber(0), RST | ACK));
}

#[test]
fn the_fin_goes_after_everything_queued_and_with_the_last_segment() {
    let mut solo = Solo::established();
    solo.send(2_000);
    solo.connection.shutdown(solo.now);
    assert_eq!(
        solo.connection.send(solo.now, linerate_transport::Payload::Static(b"x")),
        Err(SendError::Closed)
    );
    let sent = solo.output();
    assert_eq!(sent.iter().map(|s| (s.seq, s.len)).collect::<Vec<_>>(), [(0, 1_460), (1_460, 540)]);
    assert!(sent[1].flags.contains(FIN) && !sent[0].flags.contains(FIN));
    solo.ack(2_000);
    assert_eq!(solo.connection.poll_ready(), Ready::NONE, "SENT comes with the ACK of the FIN");
    solo.ack(2_001);
    assert_eq!(solo.connection.poll_ready(), Ready::SENT);
    assert_eq!(solo.connection.tcp_state(), State::FinWait2);
}

#[test]
fn a_lost_fin_is_repeated() {
    let mut solo = Solo::established();
    solo.connection.shutdown(solo.now);
    assert_eq!(solo.output()[0].flags, FIN_ACK);
    solo.fire();
    let again = solo.output();
    assert_eq!((again.len(), again[0].flags, again[0].seq), (1, FIN_ACK, 0));
    solo.ack(1);
    assert_eq!(solo.connection.tcp_state(), State::FinWait2);
}

#[test]
fn half_close_goes_on_reading() {
    let mut solo = Solo::established();
    solo.connection.shutdown(solo.now);
    solo.output();
    solo.ack(1);
    let _ = solo.input(ACK, 0, 1, 500);
    assert_eq!(solo.connection.readable(), 500);
    solo.pass(Duration::from_secs(59));
    assert_eq!(solo.connection.tcp_state(), State::FinWait2, "no time limit: the application still reads");
    let _ = solo.input(FIN_ACK, 500, 1, 0);
    assert_eq!(solo.connection.state(), ConnState::Closed(CloseReason::Done));
    assert!(solo.connection.poll_ready().contains(Ready::FINISHED | Ready::CLOSED));
    assert_eq!(solo.connection.readable(), 500, "what was received can still be read");
    solo.connection.consume(solo.now, 500);
    assert_eq!(solo.resources.budget.used(), 0);
}

#[test]
fn simultaneous_close_of_two_connections() {
    let mut world = World::plain(3, Network::default());
    world.sides[0].shutdown_at_end = false;
    world.sides[1].shutdown_at_end = false;
    world.run_for(ms(100));
    let now = world.now;
    for side in &mut world.sides {
        side.connection.shutdown(now);
    }
    world.run_for(ms(6));
    assert!(world.sides.iter().all(|side| side.connection.tcp_state() == State::Closing));
    world.run_for(ms(10));
    assert!(world.sides.iter().all(|side| side.connection.tcp_state() == State::TimeWait));
}

#[test]
fn time_wait_lasts_two_msl_and_starts_anew_with_a_fin() {
    let mut solo = Solo::in_state(State::TimeWait);
    solo.pass(Duration::from_secs(50));
    let _ = solo.input(FIN_ACK, 0, 1, 0);
    assert_eq!(solo.output().len(), 1, "the last ACK was lost: again");
    solo.pass(Duration::from_secs(59));
    assert_eq!(solo.connection.tcp_state(), State::TimeWait);
    solo.pass(Duration::from_secs(1));
    assert_eq!(solo.connection.tcp_state(), State::Closed);
    assert!(solo.connection.is_finished());
}

#[test]
fn time_wait_gives_way_to_a_newer_syn() {
    let syn = |seq: i64, value: Option<u32>| {
        let mut segment = SegmentIn {
            seq: SeqNumber(super::solo::IRS.wrapping_add(1).wrapping_add(seq as u32)),
            flags: SYN,
            ..SegmentIn::default()
        };
        segment.options.timestamps = value.map(|value| Timestamps { value, echo: 0 });
        segment
    };
    let solo = Solo::in_state(State::TimeWait);
    assert!(solo.connection.may_reopen(&syn(1, None)) && solo.connection.may_reopen(&syn(900_000, None)));
    assert!(!solo.connection.may_reopen(&syn(0, None)));
    assert!(solo.connection.may_reopen(&syn(-500, Some(1))), "RFC 6191: timestamps only in the new one");
    let plain = Config { timestamps: false, ..config() };
    let mut solo = Solo::established_with(plain, offer(true, true));
    solo.connection.shutdown(solo.now);
    solo.output();
    let _ = solo.input(FIN_ACK, 0, 1, 0);
    assert_eq!(solo.connection.tcp_state(), State::TimeWait);
    assert!(!solo.connection.may_reopen(&syn(-500, Some(1))), "RFC 6191: the new one has none either");
    assert!(!Solo::in_state(State::FinWait2).connection.may_reopen(&syn(1, None)));
    let mut solo = Solo::established_with(config(), offer(true, true));
    solo.connection.shutdown(solo.now);
    solo.output();
    let _ = solo.input(FIN_ACK, 0, 1, 0);
    assert_eq!(solo.connection.tcp_state(), State::TimeWait);
    assert!(solo.connection.may_reopen(&syn(-500, Some(solo.last_value + 1))), "RFC 6191");
    assert!(!solo.connection.may_reopen(&syn(-500, Some(solo.last_value))));
}

#[test]
fn close_delivers_the_rest_and_discards_what_comes() {
    let mut solo = Solo::established();
    let _ = solo.input(ACK, 0, 0, 1_000);
    solo.send(1_000);
    solo.connection.close(solo.now);
    assert_eq!(solo.resources.budget.used(), 0, "unread data is gone");
    let sent = solo.output();
    assert_eq!((sent[0].len, sent[0].ack), (1_000, 1_000));
    assert!(sent[0].flags.contains(FIN));
    let _ = solo.input(ACK, 1_000, 1_001, 1_460);
    let _ = solo.input(ACK, 2_460, 1_001, 1_460);
    assert_eq!((solo.connection.readable(), solo.resources.budget.used()), (0, 0));
    assert_eq!(solo.output()[0].ack, 3_920, "acknowledged all the same");
    assert_eq!(solo.connection.poll_ready(), Ready::NONE);
    assert_eq!(solo.connection.tcp_state(), State::FinWait2);
    solo.pass(Duration::from_secs(60));
    assert!(solo.connection.is_finished(), "a peer that never finishes is left after the time limit");
}

#[test]
fn a_peer_that_goes_on_sending_after_close_is_reset() {
    let mut solo = Solo::established();
    solo.send(1_000);
    solo.connection.close(solo.now);
    solo.output();
    let mut seq = 0;
    let mut send = |solo: &mut Solo, ack: i64| {
        let _ = solo.input(ACK, seq, ack, 1_460);
        seq += 1_460;
        let sent = solo.output();
        sent.iter().any(|segment| segment.flags.contains(RST))
    };
    // Our own data is not delivered yet: a RST could destroy it.
    for _ in 0..1_000 {
        assert!(!send(&mut solo, 0));
    }
    // Now it is. What the peer had under way is taken.
    let taken = (0..10_000).take_while(|_| !send(&mut solo, 1_001)).count();
    assert!((10..1_000).contains(&taken), "{taken}");
    assert!(solo.connection.is_finished());
}

#[test]
fn close_with_a_stalled_peer_is_bounded_by_the_user_timeout() {
    let mut solo = Solo::established();
    solo.send(1_000);
    solo.connection.close(solo.now);
    solo.output();
    for _ in 0..40 {
        solo.pass(Duration::from_secs(2));
        solo.output();
    }
    assert!(solo.connection.is_finished());
    assert_eq!(solo.resources.budget.used(), 0);
}

#[test]
fn abort_resets_where_the_peer_knows_of_us() {
    for state in State::ALL {
        if state == State::Listen {
            continue;
        }
        let mut solo = Solo::in_state(state);
        solo.connection.abort(solo.now, CloseReason::Done);
        let expected = !matches!(state, State::SynSent | State::TimeWait | State::Closed);
        let sent = solo.output();
        assert_eq!(!sent.is_empty(), expected, "{state:?}");
        assert!(sent.iter().all(|s| s.flags == RST | ACK));
        assert!(solo.connection.is_finished() && solo.connection.poll_timeout().is_none());
    }
}

#[test]
fn shedding_for_want_of_memory_frees_everything() {
    let mut solo = Solo::established();
    let _ = solo.input(ACK, 0, 0, 1_000);
    let _ = solo.input(ACK, 5_000, 0, 1_000);
    solo.connection.write(solo.now, &[0; 5_000]).unwrap();
    assert!(solo.resources.budget.used() > 0);
    solo.connection.abort(solo.now, CloseReason::NoMemory);
    assert_eq!(solo.connection.state(), ConnState::Closed(CloseReason::NoMemory));
    assert_eq!(solo.resources.budget.used(), 0);
    assert_eq!(solo.output()[0].flags, RST | ACK);
}

#[test]
fn data_after_fin_is_not_taken() {
    let mut solo = Solo::in_state(State::CloseWait);
    assert_eq!(solo.input(ACK, 1, 0, 100), Outcome::Dropped(DropReason::AfterFin));
    assert_eq!(solo.connection.readable(), 0);
    // The FIN came first, out of order: what lies beyond it is cut.
    let mut solo = Solo::established();
    let _ = solo.input(FIN_ACK, 100, 0, 0);
    assert_eq!(solo.connection.tcp_state(), State::Established);
    assert_eq!(solo.input(ACK, 0, 0, 150), Outcome::Dropped(DropReason::AfterFin));
    assert_eq!(solo.connection.readable(), 100);
    assert_eq!(solo.connection.tcp_state(), State::CloseWait);
}
