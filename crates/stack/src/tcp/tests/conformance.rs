//! What conformance suites of others found.

use super::config;
use super::solo::{ACK, RST, Solo, ms, offer};
use crate::tcp::{Config, DropReason, Outcome, Phase, State};
use linerate_transport::CloseReason;
use linerate_wire::tcp::{SackBlock, SeqNumber};

#[test]
fn rfc_3042_the_first_duplicates_release_a_segment_each_and_open_no_window() {
    let mut solo = Solo::established();
    solo.send(60_000);
    assert_eq!(solo.output().len(), 10);
    let window = solo.connection.info(solo.now).congestion_window;
    solo.sack(0, &[(1_460, 2_920)]);
    assert_eq!(solo.lengths(), [(14_600, 1_460)]);
    solo.sack(0, &[(1_460, 4_380)]);
    assert_eq!(solo.lengths(), [(16_060, 1_460)]);
    assert_eq!(solo.connection.info(solo.now).congestion_window, window, "RFC 5681 section 3.2 step 1");
    assert_eq!(solo.connection.details(solo.now).phase, Phase::Disorder);
    // It was reordering: what newly arrived opens the window, not what duplicates told of before.
    solo.ack(4_380);
    assert_eq!(solo.connection.info(solo.now).congestion_window, window + 1_460);
}

#[test]
fn without_sack_an_acknowledgement_counts_what_duplicates_did_not_tell() {
    let mut solo = Solo::established_with(Config { sack: false, ..config() }, offer(false, false));
    solo.send(60_000);
    solo.output();
    let window = solo.connection.info(solo.now).congestion_window;
    solo.ack(0);
    solo.ack(0);
    solo.output();
    solo.ack(4_380);
    assert_eq!(solo.connection.info(solo.now).congestion_window, window + 1_460);
}

#[test]
fn a_path_that_carries_less_changes_what_is_sent_and_not_what_is_offered() {
    let mut solo = Solo::passive(config(), offer(true, false));
    solo.connection.set_out(solo.now, 1_160, 0);
    let syn_ack = solo.output().remove(0);
    assert_eq!(syn_ack.wire.options.mss, Some(1_460), "RFC 9293 section 3.7.1: what we can receive");
    let _ = solo.input(ACK, 0, 0, 0);
    solo.send(3_000);
    assert_eq!(solo.lengths(), [(0, 1_160), (1_160, 1_160), (2_320, 680)]);
}

#[test]
fn rfc_7323_resets_carry_timestamps_and_need_none() {
    let mut solo = Solo::established_with(config(), offer(true, true));
    solo.connection.abort(solo.now, CloseReason::Done);
    let reset = solo.output().remove(0);
    assert!(reset.flags.contains(RST) && reset.wire.options.timestamps.is_some());
    let mut solo = Solo::established_with(config(), offer(true, true));
    assert_eq!(solo.input(RST, 0, 0, 0), Outcome::Accepted, "sent without");
    assert_eq!(solo.connection.tcp_state(), State::Closed);
}

#[test]
fn rfc_2883_of_two_repeated_ranges_the_first_is_reported() {
    let mut solo = Solo::established();
    let _ = solo.input(ACK, 1_000, 0, 200);
    let _ = solo.input(ACK, 1_500, 0, 200);
    solo.output();
    // Covers both, and gaps before, between and behind them.
    let _ = solo.input(ACK, 500, 0, 1_500);
    let first = solo.output()[0].wire.options.sack_blocks.as_slice()[0];
    let number = |at: u32| SeqNumber(super::solo::IRS.wrapping_add(1).wrapping_add(at));
    assert_eq!(first, SackBlock { left: number(1_000), right: number(1_200) });
    // Of two segments, that of the newer.
    let _ = solo.input(ACK, 1_100, 0, 100);
    let _ = solo.input(ACK, 1_600, 0, 100);
    let newest = solo.output()[0].wire.options.sack_blocks.as_slice()[0];
    assert_eq!(newest, SackBlock { left: number(1_600), right: number(1_700) });
}

#[test]
fn the_first_position_behind_the_window_is_not_in_it() {
    let mut solo = Solo::established();
    let window = i64::from(solo.connection.info(solo.now).receive_window);
    assert_eq!(solo.input(RST, window, 0, 0), Outcome::Dropped(DropReason::OutOfWindow));
    assert!(solo.output().is_empty(), "RFC 5961 section 3.2: silently");
    let inside = solo.input(RST, window - 1, 0, 0);
    assert_eq!(inside, Outcome::Dropped(DropReason::InexactReset));
    assert_eq!(solo.output()[0].flags, ACK, "in the window: a challenge");
    // A peer that has filled the window, of which the beginning was lost.
    solo.send(100);
    solo.output();
    let window = i64::from(solo.connection.info(solo.now).receive_window);
    let _ = solo.input(ACK, window, 100, 0);
    assert_eq!(solo.output()[0].flags, ACK, "RFC 9293 section 3.10.7.4, first");
    assert_eq!(solo.connection.unsent(), 0, "its acknowledgement is believed");
}

#[test]
fn rfc_1122_data_after_a_strict_close_is_answered_with_a_reset() {
    let mut solo = Solo::established();
    solo.connection.close_strictly(solo.now);
    solo.output();
    let _ = solo.input(ACK, 0, 1, 0);
    assert_eq!(solo.connection.tcp_state(), State::FinWait2);
    let _ = solo.input(ACK, 0, 1, 10);
    let reset = solo.output().remove(0);
    assert_eq!((reset.flags, reset.seq, solo.connection.tcp_state()), (RST, 1, State::Closed));
    assert!(solo.connection.is_finished());
    // A server's close lets the last reply arrive instead.
    let mut solo = Solo::established();
    solo.connection.close(solo.now);
    solo.output();
    let _ = solo.input(ACK, 0, 1, 10);
    solo.pass(ms(45));
    assert_eq!(solo.output()[0].flags, ACK);
}

#[test]
fn the_first_segments_are_acknowledged_at_once() {
    let mut solo = Solo::established_with(Config { quick_acks: 3, ..config() }, offer(true, false));
    let acks: alloc::vec::Vec<_> = (0..5)
        .map(|n| {
            let _ = solo.input(ACK, n * 100, 0, 100);
            solo.output().len()
        })
        .collect();
    assert_eq!(acks, [1, 1, 1, 0, 0]);
    let mut solo = Solo::established_with(Config { quick_acks: 3, ..config() }, offer(true, false));
    let _ = solo.input(ACK, 0, 0, 100);
    solo.send(10);
    assert_eq!(solo.output().len(), 1, "the answer acknowledges");
    let _ = solo.input(ACK, 100, 10, 100);
    assert!(solo.output().is_empty(), "they talk in turns");
}

#[test]
fn details_tell_what_is_under_way() {
    let mut solo = Solo::established_with(config(), offer(true, true));
    solo.pass(ms(500));
    let before = solo.connection.details(solo.now);
    assert_eq!((before.phase, before.busy, before.since_received), (Phase::Open, ms(0), ms(500)));
    solo.send(14_480);
    solo.output();
    solo.pass(ms(10));
    let _ = solo.input(ACK, 0, 0, 700);
    solo.peer_next = 700;
    solo.sack(0, &[(4_344, 8_688)]);
    let now = solo.connection.details(solo.now);
    assert_eq!((now.phase, now.sacked, now.lost), (Phase::Recovery, 3, 3));
    assert_eq!((now.busy, now.since_received, now.receive_mss), (ms(10), ms(0), 700));
    solo.output();
    let now = solo.connection.details(solo.now);
    assert_eq!((now.lost, now.resent), (3, 1));
    solo.pass(ms(5));
    solo.ack(14_480);
    solo.pass(ms(5));
    let after = solo.connection.details(solo.now);
    assert_eq!((after.busy, after.since_acknowledged), (ms(15), ms(5)));
}
