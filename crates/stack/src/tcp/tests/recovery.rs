//! Loss recovery (RFC 5681, RFC 6298, RFC 6582, RFC 6675, RFC 3042, RFC 2018 section 8).

use super::config;
use super::solo::{ACK, Solo, ms, offer};
use super::world::{Network, World};
use crate::tcp::Config;
use alloc::vec::Vec;
use core::time::Duration;

/// Without SACK.
fn reno() -> Solo {
    Solo::established_with(Config { sack: false, ..config() }, offer(false, false))
}

#[test]
fn three_duplicates_without_sack_repeat_the_first_segment() {
    let mut solo = reno();
    solo.send(60_000);
    assert_eq!(solo.output().len(), 10);
    solo.ack(0);
    assert_eq!(solo.lengths(), [(14_600, 1_460)], "limited transmit (RFC 3042)");
    solo.ack(0);
    assert_eq!(solo.lengths(), [(16_060, 1_460)]);
    solo.ack(0);
    assert_eq!(solo.lengths(), [(0, 1_460)], "fast retransmit");
    let info = solo.connection.info(solo.now);
    assert_eq!(
        info.slow_start_threshold,
        Some(7_300),
        "half of 10: not of limited transmit (RFC 5681 section 3.2)"
    );
    assert_eq!(info.congestion_window, 7_300);
    // Further duplicates let new data out once half a window has arrived (the inflation of RFC 6582).
    let new: Vec<_> = (0..8)
        .map(|_| {
            solo.ack(0);
            solo.lengths().len()
        })
        .collect();
    assert_eq!(new.iter().sum::<usize>(), 4, "{new:?}");
    assert_eq!(solo.connection.counters().fast_recoveries, 1);
    solo.ack(17_520);
    assert!(solo.connection.info(solo.now).congestion_window <= 7_300);
    assert_eq!(solo.connection.counters().timeouts, 0);
}

#[test]
fn a_partial_acknowledgement_repeats_the_next_hole() {
    let mut solo = reno();
    solo.send(14_600);
    solo.output();
    for _ in 0..3 {
        solo.ack(0);
    }
    assert_eq!(solo.lengths(), [(0, 1_460)]);
    solo.ack(4_380);
    assert_eq!(solo.lengths(), [(4_380, 1_460)]);
    solo.ack(7_300);
    assert_eq!(solo.lengths(), [(7_300, 1_460)]);
    solo.ack(14_600);
    assert_eq!(solo.connection.counters().fast_recoveries, 1, "one reduction for one window");
    assert_eq!(solo.connection.unsent(), 0);
}

#[test]
fn duplicates_that_are_none() {
    // RFC 5681 section 2: with data, with another window, or with nothing in flight.
    let mut solo = reno();
    solo.send(14_600);
    solo.output();
    for n in 0..4 {
        let _ = solo.input(ACK, n * 10, 0, 10);
    }
    solo.peer_next = 40;
    for window in [60_000, 59_000, 58_000, 57_000] {
        solo.window = window;
        solo.ack(0);
    }
    assert_eq!(solo.connection.counters().duplicate_acks, 0);
    solo.ack(14_600);
    for _ in 0..4 {
        solo.ack(14_600);
    }
    assert_eq!(solo.connection.counters().duplicate_acks, 0);
    assert_eq!(solo.connection.counters().fast_recoveries, 0);
}

#[test]
fn sack_repeats_only_the_holes() {
    let mut solo = Solo::established();
    solo.send(14_600);
    solo.output();
    solo.sack(0, &[(1_460, 2_920)]);
    solo.sack(0, &[(4_380, 5_840), (1_460, 2_920)]);
    assert!(solo.lengths().is_empty(), "two segments are not enough");
    solo.sack(0, &[(4_380, 14_600), (1_460, 2_920)]);
    assert_eq!(solo.lengths(), [(0, 1_460), (2_920, 1_460)]);
    solo.sack(2_920, &[(4_380, 14_600)]);
    assert!(solo.lengths().is_empty());
    solo.ack(14_600);
    let counters = solo.connection.counters();
    assert_eq!((counters.retransmits, counters.timeouts, counters.fast_recoveries), (2, 0, 1));
}

#[test]
fn retransmissions_are_super_segments_too() {
    let mut solo = Solo::established();
    solo.limits.max_payload = 65_000;
    solo.send(14_600);
    solo.output();
    solo.sack(0, &[(7_300, 14_600)]);
    let mut packet = linerate_nic::TxPacket::new();
    let info = solo.connection.poll_transmit(solo.now, &solo.limits, &mut packet, 34).unwrap();
    assert!(info.retransmission);
    assert_eq!((info.payload_len, info.segments), (7_300, 5));
}

#[test]
fn the_pipe_bounds_recovery() {
    // RFC 6675: no more in the network than the halved window.
    let mut solo = Solo::established();
    solo.send(60_000);
    let mut acked = 0;
    for _ in 0..2 {
        acked += solo.lengths().iter().map(|s| s.1 as i64).sum::<i64>();
        solo.ack(acked);
    }
    let flight: i64 = solo.lengths().iter().map(|s| s.1 as i64).sum();
    let end = acked + flight;
    let window = i64::from(solo.connection.info(solo.now).congestion_window);
    assert!(flight > 14_600 && flight <= window);
    // The first third is lost.
    let third = flight / 4_380 * 1_460;
    solo.sack(acked, &[(acked + third, end)]);
    let again: i64 = solo.lengths().iter().map(|s| s.1 as i64).sum();
    let half = i64::from(solo.connection.info(solo.now).congestion_window);
    assert_eq!(half, flight / 2);
    assert!(again <= half && again > 0, "{again} of {half}");
}

#[test]
fn recovery_reduces_the_window_once() {
    let mut solo = Solo::established();
    solo.send(60_000);
    solo.output();
    solo.sack(0, &[(1_460, 7_300)]);
    solo.output();
    let window = solo.connection.info(solo.now).congestion_window;
    solo.sack(0, &[(8_760, 14_600), (1_460, 7_300)]);
    solo.output();
    assert_eq!(solo.connection.info(solo.now).congestion_window, window);
    assert_eq!(solo.connection.counters().fast_recoveries, 1);
}

#[test]
fn a_timeout_doubles_and_slow_starts() {
    let mut solo = Solo::established();
    solo.send(14_600);
    solo.output();
    let first = solo.connection.info(solo.now).rto.unwrap();
    assert!(solo.time_out() >= first, "after a tail loss probe, which puts it off");
    assert_eq!(solo.lengths(), [(0, 1_460)]);
    assert_eq!(solo.connection.info(solo.now).congestion_window, 1_460);
    assert_eq!(solo.connection.info(solo.now).slow_start_threshold, Some(7_300));
    assert_eq!(solo.fire(), first * 2);
    assert_eq!(solo.connection.info(solo.now).slow_start_threshold, Some(7_300), "once per segment");
    assert_eq!(solo.lengths(), [(0, 1_460)]);
    solo.ack(1_460);
    assert_eq!(solo.lengths(), [(1_460, 1_460), (2_920, 1_460)]);
    solo.ack(4_380);
    assert_eq!(solo.lengths().len(), 3, "RFC 3465 section 2.3: by one segment");
}

#[test]
fn after_a_timeout_reports_still_spare_retransmissions() {
    let mut solo = Solo::established();
    solo.send(7_300);
    solo.output();
    solo.sack(0, &[(2_920, 4_380)]);
    solo.time_out();
    assert_eq!(solo.lengths(), [(0, 1_460)]);
    solo.sack(1_460, &[(2_920, 4_380)]);
    assert_eq!(solo.lengths(), [(1_460, 1_460), (4_380, 1_460)], "not what the peer has");
}

#[test]
fn a_peer_that_goes_back_on_its_reports_is_served() {
    // RFC 2018 section 8.
    let mut solo = Solo::established();
    solo.send(7_300);
    solo.output();
    solo.sack(0, &[(1_460, 7_300)]);
    assert_eq!(solo.lengths(), [(0, 1_460)]);
    solo.ack(1_460);
    let sent: i64 = solo.lengths().iter().map(|s| s.1 as i64).sum();
    assert!(sent >= 1_460, "it is sent again without a timeout");
    let mut acked = 1_460 + sent;
    while acked < 7_300 {
        solo.ack(acked);
        acked += solo.lengths().iter().map(|s| s.1 as i64).sum::<i64>();
    }
    solo.ack(7_300);
    assert_eq!(solo.connection.unsent(), 0);
    // And where it says nothing, the second timeout trusts no report.
    let mut solo = Solo::established();
    solo.send(2_920);
    solo.output();
    solo.sack(0, &[(1_460, 2_920)]);
    solo.fire();
    solo.output();
    solo.fire();
    solo.output();
    solo.ack(1_460);
    assert_eq!(solo.lengths(), [(1_460, 1_460)]);
}

#[test]
fn nonsense_reports_change_nothing() {
    let mut solo = Solo::established();
    solo.send(7_300);
    solo.output();
    solo.sack(0, &[(9_000, 20_000), (-5_000, 3_000), (4_000, 2_000), (0, 0)]);
    assert!(solo.lengths().is_empty());
    solo.ack(7_300);
    assert_eq!(solo.connection.unsent(), 0);
    assert_eq!(solo.connection.counters().fast_recoveries, 0);
}

#[test]
fn duplicate_reports_are_counted_and_cause_nothing() {
    let mut solo = Solo::established();
    solo.send(14_600);
    solo.output();
    solo.sack(2_920, &[(0, 1_460)]);
    solo.sack(2_920, &[(4_380, 5_840), (4_380, 7_300)]);
    let counters = solo.connection.counters();
    assert_eq!((counters.duplicates_reported, counters.fast_recoveries), (2, 0));
}

#[test]
fn the_round_trip_is_measured_per_window_without_timestamps() {
    let mut solo = Solo::established();
    for n in 1..30 {
        solo.send(1_460);
        solo.output();
        solo.pass(ms(if n % 2 == 0 { 80 } else { 20 }));
        solo.ack(n * 1_460);
    }
    let info = solo.connection.info(solo.now);
    let (rtt, var) = (info.rtt.unwrap(), info.rtt_var.unwrap());
    assert!(rtt > ms(30) && rtt < ms(70), "{rtt:?}");
    assert!(var > ms(15), "{var:?}");
    assert!(info.rto.unwrap() >= rtt + var * 4 - ms(1));
}

#[test]
fn timestamps_measure_retransmissions_too() {
    let mut solo = Solo::established_with(config(), offer(true, true));
    solo.send(1_460);
    solo.time_out();
    let backed_off = solo.connection.info(solo.now).rto.unwrap();
    solo.output();
    solo.pass(ms(30));
    // The peer echoes the retransmission's time stamp (30 ms ago; the bench echoes 10 ms).
    solo.ack(1_448);
    assert!(solo.connection.info(solo.now).rto.unwrap() < backed_off);
}

#[test]
fn the_timer_restarts_with_progress_and_stops_at_the_end() {
    let mut solo = Solo::established();
    let idle = solo.connection.poll_timeout();
    solo.send(4_380);
    solo.output();
    let first = solo.connection.poll_timeout().unwrap();
    solo.pass(ms(100));
    solo.ack(1_460);
    assert!(solo.connection.poll_timeout().unwrap() >= first);
    solo.ack(4_380);
    assert!(solo.connection.poll_timeout() >= idle, "only the keep-alive and lazy timers are left");
    solo.pass(Duration::from_secs(30));
    assert_eq!(solo.connection.counters().timeouts, 0);
}

#[test]
fn tail_losses_need_a_timeout_and_nothing_more() {
    let mut world = World::plain(1, Network::default());
    world.sides[0].to_send = 100_000;
    let mut dropped = 0;
    world.filter = Some(alloc::boxed::Box::new(move |side, wire| {
        let last = side == 0 && wire.flags.contains(linerate_wire::tcp::Flags::FIN) && dropped < 2;
        dropped += u32::from(last);
        last
    }));
    world.run_to_end(Duration::from_secs(30));
    assert!(world.sides[0].connection.counters().timeouts <= 2);
}

#[test]
fn bursts_of_loss_do_not_take_a_timeout() {
    // 40 segments in a row from the middle of a window of hundreds.
    let mut world = World::plain(1, Network::default());
    world.sides[0].to_send = 2 << 20;
    let mut count = 0;
    world.filter = Some(alloc::boxed::Box::new(move |side, wire| {
        count += u32::from(side == 0 && !wire.payload.is_empty());
        side == 0 && !wire.payload.is_empty() && (400..440).contains(&count)
    }));
    world.run_to_end(Duration::from_secs(60));
    let counters = world.sides[0].connection.counters();
    assert_eq!((counters.timeouts, counters.fast_recoveries, counters.retransmits), (0, 1, 40));
}
