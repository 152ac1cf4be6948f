//! Loss by time and tail loss probes (RFC 8985), and what is sent in recovery (RFC 9937).

use super::config;
use super::solo::{ACK, Solo, ms, offer};
use super::world::{Network, World};
use crate::tcp::{Config, TxLimits};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;
use linerate_transport::Congestion;

const MSS: i64 = 1_460;

/// Established, `acked` segments sent and acknowledged over a round trip of 40 ms.
fn after_round_trips(acked: i64) -> Solo {
    after_round_trips_with(config(), acked)
}

/// The same with other settings.
fn after_round_trips_with(config: Config, acked: i64) -> Solo {
    let mut solo = Solo::passive(config, offer(true, false));
    solo.output();
    solo.pass(ms(40));
    let _ = solo.input(ACK, 0, 0, 0);
    for n in 1..=acked {
        solo.send(MSS as usize);
        solo.output();
        solo.pass(ms(40));
        solo.ack(n * MSS);
    }
    solo
}

#[test]
fn rfc_8985_6_2_one_report_and_a_quarter_of_a_round_trip_make_a_loss() {
    let mut solo = after_round_trips(20);
    let first = 20 * MSS;
    solo.send(4 * MSS as usize);
    solo.output();
    solo.pass(ms(40));
    solo.sack(first, &[(first + MSS, first + 2 * MSS)]);
    assert!(solo.lengths().is_empty(), "one report may be reordering");
    solo.pass(ms(9));
    assert!(solo.lengths().is_empty());
    solo.pass(ms(1));
    assert_eq!(solo.lengths(), [(first, MSS as usize)], "not what was sent after what arrived");
    let counters = solo.connection.counters();
    assert_eq!((counters.fast_recoveries, counters.reordering_timeouts, counters.timeouts), (1, 1, 0));
}

#[test]
fn rfc_8985_6_2_reordering_within_the_window_sends_nothing_again() {
    let mut solo = after_round_trips(20);
    let mut first = 20 * MSS;
    for reports in [1, 5] {
        solo.send(6 * MSS as usize);
        solo.output();
        solo.pass(ms(40));
        // With five, three reports do not count any more: the path was found to reorder.
        solo.sack(first, &[(first + MSS, first + (1 + reports) * MSS)]);
        assert!(solo.lengths().is_empty());
        solo.pass(ms(9));
        first += 6 * MSS;
        solo.ack(first);
        assert!(solo.connection.counters().reordering_seen);
    }
    let counters = solo.connection.counters();
    assert_eq!((counters.retransmits, counters.fast_recoveries), (0, 0));
}

#[test]
fn rfc_8985_6_2_4_the_window_grows_with_dsack() {
    let mut solo = after_round_trips(20);
    let first = 20 * MSS;
    let waits: Vec<u128> = (0..3)
        .map(|round| {
            let at = first + round * 4 * MSS;
            solo.send(4 * MSS as usize);
            solo.output();
            solo.pass(ms(40));
            solo.sack(at, &[(at + MSS, at + 2 * MSS)]);
            let wait = solo.connection.poll_timeout().unwrap() - solo.now;
            solo.pass(wait);
            assert_eq!(solo.lengths(), [(at, MSS as usize)]);
            // The first transmission arrives late, then the second.
            solo.ack(at + 4 * MSS);
            solo.sack(at + 4 * MSS, &[(at, at + MSS)]);
            wait.as_millis()
        })
        .collect();
    assert_eq!(waits, [10, 20, 30]);
    assert_eq!(solo.connection.counters().spurious_recoveries_undone, 3);
}

#[test]
fn rfc_8985_a_frame_in_the_ring_is_never_lost() {
    let mut solo = after_round_trips(20);
    let first = 20 * MSS;
    solo.limits = TxLimits { max_payload: 0, completions: true };
    solo.send(8 * MSS as usize);
    assert_eq!(solo.output().len(), 8);
    // Six of eight have left.
    solo.report_up_to(6);
    solo.pass(ms(40));
    solo.sack(first, &[(first + MSS, first + 6 * MSS)]);
    assert_eq!(solo.lengths(), [(first, MSS as usize)]);
    // The retransmission waits behind the other two; whatever is reported and however late it is, nothing is sent again.
    solo.report_up_to(7);
    solo.pass(ms(150));
    solo.sack(first, &[(first + MSS, first + 7 * MSS)]);
    solo.pass(ms(5_000));
    assert_eq!((solo.lengths(), solo.connection.counters().timeouts), (Vec::new(), 0));
    solo.report_up_to(9);
    solo.pass(ms(40));
    solo.ack(first + 8 * MSS);
    assert_eq!((solo.connection.unsent(), solo.connection.counters().retransmits), (0, 1));
}

#[test]
fn rfc_8985_7_a_lost_tail_costs_no_timeout() {
    // The last one, two or three segments of a transfer, FIN included.
    for lost in 1..=3 {
        let mut world = World::plain(1, Network::default());
        world.sides[0].to_send = 100 * 1_448;
        let (mut count, last) = (0, 100);
        world.filter = Some(Box::new(move |side, wire| {
            count += u32::from(side == 0 && !wire.payload.is_empty());
            side == 0 && !wire.payload.is_empty() && count > last - lost && count <= last
        }));
        world.run_to_end(Duration::from_secs(30));
        let counters = world.sides[0].connection.counters();
        assert_eq!(counters.timeouts, 0, "{lost} lost: {counters:?}");
        assert!(counters.tail_loss_probes >= 1);
        let took = world.sides[0].sent.last().unwrap().0 - linerate_wire::units::Instant::from_millis(1_000);
        assert!(took < ms(300), "{lost} lost: {took:?}");
    }
}

#[test]
fn rfc_8985_7_3_a_probe_is_new_data_if_there_is_any() {
    let mut solo = Solo::established();
    solo.send(60_000);
    assert_eq!(solo.output().len(), 10, "the congestion window");
    solo.fire();
    assert_eq!(solo.lengths(), [(14_600, 1_460)], "a probe may exceed it by one");
    solo.pass(ms(100));
    assert!(solo.lengths().is_empty(), "one probe at a time");
    assert_eq!(solo.connection.counters().tail_loss_probes, 1);
    // Without new data the last segment.
    let mut solo = Solo::established();
    solo.send(4_000);
    solo.output();
    solo.fire();
    assert_eq!(solo.lengths(), [(2_920, 1_080)]);
}

#[test]
fn rfc_8985_7_2_a_single_segment_waits_for_a_delayed_acknowledgement() {
    let mut solo = after_round_trips(20);
    solo.send(100);
    solo.output();
    solo.pass(ms(190));
    assert!(solo.lengths().is_empty());
    solo.pass(ms(100));
    assert_eq!(solo.lengths(), [(20 * MSS, 100)]);
    assert_eq!(solo.connection.counters().timeouts, 0);
}

#[test]
fn rfc_8985_7_4_2_a_loss_that_a_probe_repaired_is_congestion() {
    for (duplicate, repaired) in [(false, 1), (true, 0)] {
        let mut solo = after_round_trips(20);
        let first = 20 * MSS;
        solo.send(4 * MSS as usize);
        solo.output();
        solo.fire();
        assert_eq!(solo.lengths(), [(first + 3 * MSS, MSS as usize)]);
        let window = solo.connection.info(solo.now).congestion_window;
        solo.pass(ms(40));
        solo.ack(first + 4 * MSS);
        if duplicate {
            solo.sack(first + 4 * MSS, &[(first + 3 * MSS, first + 4 * MSS)]);
        }
        solo.send(MSS as usize);
        solo.output();
        solo.ack(first + 5 * MSS);
        assert_eq!(solo.connection.counters().tail_losses_repaired, repaired);
        assert_eq!(solo.connection.info(solo.now).congestion_window < window, repaired == 1);
    }
}

/// Drops what `lost` says of the segments with payload of side 0, counted from 1, retransmissions too.
fn drops(mut lost: impl FnMut(u32) -> bool + 'static) -> Option<super::world::Filter> {
    let mut count = 0;
    Some(Box::new(move |side, wire| {
        let is_data = side == 0 && !wire.payload.is_empty();
        count += u32::from(is_data);
        is_data && lost(count)
    }))
}

#[test]
fn rfc_8985_a_window_of_which_one_segment_arrives_is_repaired_without_a_timeout() {
    let mut world = World::plain(1, Network::default());
    world.sides[0].to_send = 2 << 20;
    // Segments 300 to 400 are a window and more, of which one in the middle arrives.
    world.filter = drops(|n| (300..400).contains(&n) && n != 350);
    world.run_to_end(Duration::from_secs(60));
    let counters = world.sides[0].connection.counters();
    assert_eq!(counters.timeouts, 0, "{counters:?}");
    assert!(counters.lost_retransmissions < 100);
}

#[test]
fn lost_acknowledgements_cost_no_retransmission() {
    let mut world = World::plain(1, Network::default());
    world.sides[0].to_send = 2 << 20;
    let mut count = 0;
    world.filter = Some(Box::new(move |side, wire| {
        count += u32::from(side == 1 && wire.payload.is_empty());
        side == 1 && count > 10 && count < 600 && count % 3 != 0
    }));
    world.run_to_end(Duration::from_secs(60));
    let counters = world.sides[0].connection.counters();
    assert_eq!((counters.timeouts, counters.fast_recoveries), (0, 0), "{counters:?}");
    assert_eq!(counters.retransmits, counters.tail_loss_probes, "the last acknowledgement may be missed");
}

#[test]
fn reordering_is_learnt_and_the_window_kept() {
    let network = Network { reorder: 10, ..Network::default() };
    for seed in 0..4 {
        let mut world = World::new(seed, network.clone(), config(), config());
        world.sides[0].to_send = 8 << 20;
        world.run_to_end(Duration::from_secs(60));
        let counters = world.sides[0].connection.counters();
        assert_eq!(counters.timeouts, 0);
        assert!(counters.reordering_seen);
        let kept = counters.fast_recoveries - counters.spurious_recoveries_undone;
        assert!(kept <= 1, "{kept} reductions stayed: {counters:?}");
    }
}

#[test]
fn rfc_9937_recovery_sends_evenly() {
    // 20 ms a round trip, a window of 20 segments, one of them lost: what follows goes out with the acknowledgements.
    let mut solo =
        Solo::established_with(Config { initial_window_segments: 20, ..config() }, offer(true, false));
    solo.send(60_000);
    assert_eq!(solo.output().len(), 20);
    solo.pass(ms(20));
    let sent: Vec<usize> = (2..20)
        .map(|n| {
            solo.pass(Duration::from_micros(100));
            solo.sack(0, &[(MSS, n * MSS)]);
            solo.lengths().len()
        })
        .collect();
    assert!(sent.iter().all(|&n| n <= 2), "no burst: {sent:?}");
    assert!(sent.windows(4).all(|some| some.iter().sum::<usize>() >= 1), "no pause: {sent:?}");
    let in_flight = 20 * MSS + MSS * (sent.iter().sum::<usize>() as i64 - 1) - 18 * MSS;
    let target = i64::from(solo.connection.info(solo.now).slow_start_threshold.unwrap());
    assert!((in_flight - target).abs() <= 3 * MSS, "{in_flight} for {target}");
}

#[test]
fn a_loss_that_is_found_late_reduces_from_what_the_window_allowed() {
    for (congestion, percent) in [(Congestion::Cubic, 70), (Congestion::NewReno, 50)] {
        let mut config = config();
        config.socket.congestion = congestion;
        let mut solo = after_round_trips_with(config, 20);
        // The path reorders: a loss waits for the reordering window, whatever is reported.
        let first = 20 * MSS;
        solo.send(6 * MSS as usize);
        solo.output();
        solo.pass(ms(40));
        solo.sack(first, &[(first + MSS, first + 2 * MSS)]);
        solo.pass(ms(9));
        let first = first + 6 * MSS;
        solo.ack(first);
        solo.send(60_000);
        let segments = solo.output().len() as i64;
        solo.pass(ms(40));
        // All but the first arrive, and new ones take their place before it is found lost.
        solo.sack(first, &[(first + MSS, first + segments * MSS)]);
        assert!(solo.output().len() as i64 >= segments - 1);
        let window = i64::from(solo.connection.info(solo.now).congestion_window);
        solo.pass(ms(20));
        let info = solo.connection.info(solo.now);
        assert_eq!(solo.connection.counters().fast_recoveries, 1);
        let threshold = i64::from(info.slow_start_threshold.unwrap());
        assert_eq!(threshold, window * percent / 100, "{congestion:?}");
    }
}

#[test]
fn losses_among_reordering_still_reduce() {
    // Everything overtakes by up to 10 ms, and one of a thousand is lost.
    let network = Network { reorder: 1_000, bottleneck: Some((6_250_000, 1_250_000)), ..Network::default() };
    for seed in 0..2 {
        let mut world = World::new(seed, network.clone(), config(), config());
        world.sides[0].to_send = 24 << 20;
        let mut count = 0u32;
        world.filter = Some(Box::new(move |side, wire| {
            let is_data = side == 0 && !wire.payload.is_empty();
            count += u32::from(is_data);
            is_data && count.is_multiple_of(1_000)
        }));
        world.run_to_end(Duration::from_secs(60));
        let counters = world.sides[0].connection.counters();
        let kept = counters.fast_recoveries - counters.spurious_recoveries_undone;
        assert!(kept > 10 && counters.spurious_recoveries_undone > 10, "{counters:?}");
    }
}

#[test]
fn a_timeout_in_a_recovery_does_not_reduce_again() {
    for congestion in [Congestion::Cubic, Congestion::NewReno] {
        let mut config = config();
        config.socket.congestion = congestion;
        let mut solo = after_round_trips_with(config, 20);
        let first = 20 * MSS;
        solo.send(10 * MSS as usize);
        assert_eq!(solo.output().len(), 10);
        solo.pass(ms(40));
        solo.sack(first, &[(first + MSS, first + 10 * MSS)]);
        assert_eq!(solo.lengths(), [(first, MSS as usize)]);
        let threshold = solo.connection.info(solo.now).slow_start_threshold;
        // What was sent again is lost, too.
        while solo.connection.counters().timeouts == 0 {
            solo.fire();
            solo.output();
        }
        assert_eq!(solo.connection.info(solo.now).slow_start_threshold, threshold, "{congestion:?}");
    }
}
