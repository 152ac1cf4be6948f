//! Spurious recoveries are undone (RFC 3522, RFC 3708, RFC 4015, RFC 5682).

use super::config;
use super::solo::{ACK, SYN, Solo, ms, offer};
use super::world::{Network, World};
use crate::tcp::Config;
use core::time::Duration;
use linerate_transport::{Ecn, SocketOptions};
use linerate_wire::tcp::{Flags, Options, Timestamps};

/// An ACK that echoes what we sent `age` ago.
fn ack_with_echo(solo: &mut Solo, ack: i64, age: u64) {
    solo.last_value += 1;
    let echo = (solo.now.as_millis() as u32).wrapping_sub(age as u32);
    let timestamps = Some(Timestamps { value: solo.last_value, echo });
    let _ = solo.input_with(ACK, solo.peer_next, ack, 0, Options { timestamps, ..Options::default() });
}

/// Window and threshold.
fn windows(solo: &Solo) -> (u32, Option<u32>) {
    let info = solo.connection.info(solo.now);
    (info.congestion_window, info.slow_start_threshold)
}

#[test]
fn rfc_3522_a_fast_retransmit_in_vain_is_taken_back_by_the_echo() {
    for (age, undone) in [(40, 1), (0, 0)] {
        let mut solo = Solo::established_with(config(), offer(true, true));
        solo.send(14_480);
        solo.output();
        let before = windows(&solo);
        solo.pass(ms(30));
        solo.sack(0, &[(1_448, 7_240)]);
        assert_eq!(solo.lengths()[0], (0, 1_448));
        assert!(windows(&solo).0 < before.0);
        solo.pass(ms(10));
        ack_with_echo(&mut solo, 7_240, age);
        let counters = solo.connection.counters();
        assert_eq!((counters.fast_recoveries, counters.spurious_recoveries_undone), (1, undone), "age {age}");
        if undone == 1 {
            assert!(counters.reordering_seen);
            let (window, threshold) = windows(&solo);
            assert!(window >= before.0 || threshold.is_none_or(|t| t >= before.0), "slow start leads back");
        }
    }
}

#[test]
fn rfc_3708_all_retransmissions_must_have_been_in_vain() {
    for (reported, undone) in [(&[(0, 1_460)][..], 0), (&[(0, 1_460), (2_920, 4_380)], 1)] {
        let mut solo = Solo::established();
        solo.send(14_600);
        solo.output();
        solo.pass(ms(30));
        solo.sack(0, &[(4_380, 14_600), (1_460, 2_920)]);
        assert_eq!(solo.lengths()[..2], [(0, 1_460), (2_920, 1_460)]);
        solo.pass(ms(20));
        solo.ack(14_600);
        for &block in reported {
            solo.sack(14_600, &[block]);
        }
        assert_eq!(solo.connection.counters().spurious_recoveries_undone, undone, "{reported:?}");
    }
}

#[test]
fn what_arrives_sooner_than_a_round_trip_after_it_was_sent_again_came_by_its_first_transmission() {
    // Whether the retransmission has left is not known: devices report that late, and then its answer comes first.
    for (after, undone) in [(5, 1), (30, 0)] {
        let mut solo = Solo::passive(config(), offer(true, false));
        assert_eq!(solo.output().len(), 1);
        solo.pass(ms(30));
        solo.ack(0);
        solo.limits.completions = true;
        solo.send(14_600);
        solo.output();
        solo.report_up_to(10);
        solo.pass(ms(30));
        solo.sack(0, &[(1_460, 7_300)]);
        assert_eq!(solo.lengths()[0], (0, 1_460));
        solo.pass(ms(after));
        solo.ack(7_300);
        let counters = solo.connection.counters();
        assert_eq!((counters.fast_recoveries, counters.spurious_recoveries_undone), (1, undone), "{after}");
    }
}

#[test]
fn rfc_3522_one_echo_proves_a_whole_recovery() {
    // Three gaps, of which all but one are sent again; then the first transmissions fill them.
    for (age, undone) in [(100, 1), (0, 0)] {
        let mut solo = Solo::established_with(config(), offer(true, true));
        solo.send(14_480);
        solo.output();
        solo.pass(ms(40));
        let segment = |n: i64| n * 1_448;
        let blocks = [(1, 2), (3, 4), (5, 10)].map(|(from, to)| (segment(from), segment(to)));
        solo.sack(0, &blocks);
        assert!(solo.lengths().len() > 1);
        solo.pass(ms(60));
        ack_with_echo(&mut solo, segment(10), age);
        let counters = solo.connection.counters();
        assert_eq!((counters.fast_recoveries, counters.spurious_recoveries_undone), (1, undone), "age {age}");
    }
}

#[test]
fn an_acknowledgement_that_was_overtaken_still_tells_what_arrived() {
    let mut solo = Solo::established_with(config(), offer(true, true));
    solo.send(14_480);
    solo.output();
    solo.pass(ms(30));
    solo.last_value += 10;
    solo.sack(0, &[(4_344, 5_792)]);
    let before = solo.connection.details(solo.now).sacked;
    // Sent 5 ms before that one.
    solo.last_value -= 6;
    solo.sack(0, &[(1_448, 2_896)]);
    let after = solo.connection.details(solo.now).sacked;
    assert_eq!(before + 1, after);
    assert_eq!(solo.connection.counters().challenge_acks, 0);
    // What is older than a retransmission timeout is of an earlier time, as far as anybody knows.
    solo.last_value = solo.last_value.wrapping_sub(5_000);
    solo.sack(0, &[(7_240, 8_688)]);
    assert_eq!(solo.connection.details(solo.now).sacked, after);
    assert_eq!(solo.connection.counters().challenge_acks, 1);
}

#[test]
fn a_path_that_became_shorter_proves_nothing() {
    // The least round trip was 60 ms; the answer to what was sent again comes after 20, and its echo says so.
    for lost_at_once in [true, false] {
        let mut solo = Solo::passive(config(), offer(true, true));
        assert_eq!(solo.output().len(), 1);
        solo.pass(ms(60));
        solo.ack(0);
        solo.send(14_480);
        solo.output();
        if lost_at_once {
            solo.time_out();
        } else {
            solo.pass(ms(60));
            solo.sack(0, &[(1_448, 7_240)]);
        }
        assert_eq!(solo.lengths()[0], (0, 1_448));
        solo.pass(ms(20));
        ack_with_echo(&mut solo, 1_448, 20);
        let counters = solo.connection.counters();
        assert_eq!((counters.spurious_recoveries_undone, counters.spurious_timeouts_undone), (0, 0));
    }
}

#[test]
fn rfc_3168_a_mark_during_a_recovery_makes_it_final() {
    for is_marked in [false, true] {
        let config = Config { socket: SocketOptions { ecn: Ecn::Request, ..config().socket }, ..config() };
        let mut solo = Solo::passive_with_flags(config, SYN | Flags::ECE | Flags::CWR, offer(true, true));
        assert_eq!(solo.output().len(), 1);
        solo.ack(0);
        solo.send(14_480);
        solo.output();
        solo.pass(ms(30));
        solo.sack(0, &[(1_448, 7_240)]);
        assert_eq!(solo.lengths()[0], (0, 1_448));
        if is_marked {
            let _ = solo.input(ACK | Flags::ECE, solo.peer_next, 0, 0);
        }
        solo.pass(ms(10));
        ack_with_echo(&mut solo, 7_240, 40);
        assert_eq!(solo.connection.counters().spurious_recoveries_undone, u64::from(!is_marked));
    }
}

#[test]
fn what_seemed_lost_with_the_rest_is_looked_at_again_after_an_undo() {
    let mut solo = Solo::established_with(config(), offer(true, true));
    solo.send(14_480);
    solo.output();
    solo.pass(ms(40));
    // Two are missing. The first is sent again, and then comes by its first transmission; the second is really lost.
    for end in [4_344, 5_792, 7_240] {
        solo.sack(0, &[(2_896, end)]);
    }
    assert_eq!(solo.lengths(), [(0, 1_448)]);
    solo.pass(ms(1));
    ack_with_echo(&mut solo, 1_448, 41);
    assert_eq!(solo.connection.counters().spurious_recoveries_undone, 1);
    while solo.connection.counters().timeouts == 0 && solo.connection.counters().retransmits < 2 {
        solo.fire();
        solo.output();
    }
    assert_eq!((solo.connection.counters().timeouts, solo.connection.counters().retransmits), (0, 2));
}

#[test]
fn without_sack_window_updates_that_overtook_each_other_are_no_duplicates() {
    let mut solo = Solo::established_with(config(), offer(false, true));
    solo.send(14_480);
    solo.output();
    solo.pass(ms(30));
    solo.last_value += 10;
    for window in [65_535, 60_000, 55_000, 50_000] {
        solo.window = window;
        solo.ack(0);
        solo.last_value -= 3;
    }
    assert_eq!(solo.connection.counters().fast_recoveries, 0);
}

#[test]
fn a_recovery_from_a_loss_stays() {
    let mut world = World::plain(1, Network { loss: 5, ..Network::default() });
    world.sides[0].to_send = 4 << 20;
    world.run_to_end(Duration::from_secs(60));
    let counters = world.sides[0].connection.counters();
    assert!(counters.fast_recoveries > 3);
    assert_eq!(
        (counters.spurious_recoveries_undone, counters.spurious_timeouts_undone),
        (0, 0),
        "{counters:?}"
    );
}

#[test]
fn rfc_4015_a_delay_is_no_loss() {
    // In the middle of a transfer the path becomes longer; timestamps tell, or without them F-RTO does.
    for timestamps in [true, false] {
        let config = Config { timestamps, ..config() };
        let mut world = World::new(1, Network::default(), config.clone(), config);
        world.sides[0].to_send = 8 << 20;
        world.run_for(ms(100));
        let before = world.sides[0].connection.info(world.now).congestion_window;
        world.network.delay = ms(200);
        world.run_until(Duration::from_secs(5), |world| {
            world.sides[0].connection.counters().spurious_timeouts_undone > 0
        });
        let counters = *world.sides[0].connection.counters();
        assert_eq!(counters.spurious_timeouts_undone, 1, "timestamps {timestamps}: {counters:?}");
        let info = world.sides[0].connection.info(world.now);
        let heading = info.slow_start_threshold.unwrap_or(u32::MAX).max(info.congestion_window);
        assert!(heading >= before / 2, "{heading} of {before}");
        assert!(info.rto.unwrap() > ms(400), "the next delay of this kind does not time out");
        world.run_to_end(Duration::from_secs(60));
    }
}

/// An ACK of everything up to `ack` that reports `twice` as received twice, and echoes what we sent `age` ago.
fn ack_of_a_duplicate(solo: &mut Solo, ack: i64, twice: (i64, i64), age: u64) {
    solo.last_value += 1;
    let echo = (solo.now.as_millis() as u32).wrapping_sub(age as u32);
    let timestamps = Some(Timestamps { value: solo.last_value, echo });
    let mut options = Options { timestamps, ..Options::default() };
    assert!(options.sack_blocks.push(solo.block(twice)));
    let _ = solo.input_with(ACK, solo.peer_next, ack, 0, options);
}

#[test]
fn a_lost_acknowledgement_is_no_slow_path() {
    // A segment arrived, its acknowledgement was lost, and the one that comes answers a retransmission: what it echoes, the
    // transmission before, tells nothing of the path.
    for timeouts in 1..=3 {
        let mut solo = Solo::established_with(config(), offer(true, true));
        let mut end = 0;
        for _ in 0..20 {
            solo.send(1_448);
            solo.output();
            solo.pass(ms(2));
            end += 1_448;
            ack_with_echo(&mut solo, end, 2);
        }
        let before = solo.connection.info(solo.now).rtt;
        solo.send(1_448);
        solo.output();
        let mut waited = 0;
        for _ in 0..timeouts {
            waited = solo.time_out().as_millis() as u64;
            assert_eq!(solo.lengths()[0].0, end);
        }
        solo.pass(ms(2));
        ack_of_a_duplicate(&mut solo, end + 1_448, (end, end + 1_448), waited + 2);
        assert_eq!(solo.connection.info(solo.now).rtt, before, "after {timeouts} timeouts");
    }
}

#[test]
fn rfc_5682_new_data_decides_where_there_are_no_timestamps() {
    for spurious in [true, false] {
        let mut solo = Solo::established();
        solo.send(60_000);
        assert_eq!(solo.output().len(), 10);
        // The probe is lost or late as well.
        solo.time_out();
        let again = solo.lengths();
        assert_eq!(again, [(0, 1_460)]);
        solo.pass(ms(20));
        solo.ack(1_460);
        let new = solo.lengths();
        assert!(new.len() == 2 && new[0].0 >= 14_600, "new data instead of what seems lost: {new:?}");
        solo.pass(ms(20));
        if spurious {
            solo.ack(2_920);
        } else {
            solo.sack(1_460, &[(new[0].0, new[0].0 + 1_460)]);
        }
        assert_eq!(solo.connection.counters().spurious_timeouts_undone, u64::from(spurious));
        let sent = solo.lengths();
        assert_eq!(sent.iter().any(|s| s.0 == 1_460), !spurious, "{sent:?}");
    }
}

#[test]
fn what_its_own_retransmission_overtook_is_reported() {
    // The late original has an older timestamp than what came after it (PAWS): the sender learns of it all the same.
    let mut solo = Solo::established_with(config(), offer(true, true));
    let old = Options { timestamps: Some(Timestamps { value: 1_500, echo: 0 }), ..Options::default() };
    let new = Options { timestamps: Some(Timestamps { value: 1_700, echo: 0 }), ..Options::default() };
    let _ = solo.input_with(ACK, 0, 0, 1_000, new);
    solo.pass(ms(50));
    solo.output();
    let _ = solo.input_with(ACK, 0, 0, 1_000, old);
    let reply = solo.output().remove(0);
    let blocks = reply.wire.options.sack_blocks;
    assert_eq!(blocks.len(), 1, "a DSACK");
    assert_eq!(blocks.as_slice()[0].right - blocks.as_slice()[0].left, 1_000);
    assert_eq!(reply.ack, 1_000);
}
