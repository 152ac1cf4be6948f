//! Every fault of the send side that made another RTOS stack send 2 Mb/s where it received 80 Mb/s, shown to be absent
//! here, by name. And the complaints that users of other stacks make over and over.

use super::config;
use super::solo::{ACK, Solo, ms, offer};
use super::world::{Network, World};
use crate::tcp::{Config, State, TxLimits};
use core::time::Duration;
use linerate_nic::TxPacket;

#[test]
fn plain_duplicate_acks_trigger_fast_retransmit() {
    // The fault: fast retransmit came from SACK processing only.
    let mut solo = Solo::established_with(Config { sack: false, ..config() }, offer(false, false));
    solo.send(14_600);
    solo.output();
    for _ in 0..3 {
        solo.ack(0);
    }
    assert_eq!(solo.lengths(), [(0, 1_460)]);
    assert_eq!(solo.connection.counters().timeouts, 0);
}

#[test]
fn one_ack_with_three_blocks_is_one_duplicate() {
    // The fault: the counter went up per SACK block, so one ACK fired a retransmission.
    let mut solo = Solo::established();
    solo.send(14_600);
    solo.output();
    solo.sack(0, &[(1_460, 1_560)]);
    solo.sack(0, &[(2_920, 3_020), (1_460, 1_560)]);
    for _ in 0..5 {
        solo.sack(0, &[(2_920, 3_020), (1_460, 1_560), (2_920, 3_020)]);
    }
    assert!(solo.lengths().is_empty());
    assert_eq!(solo.connection.counters().duplicate_acks, 2, "the repetitions are no news");
    solo.sack(0, &[(4_380, 4_480), (2_920, 3_020), (1_460, 1_560)]);
    assert_eq!(solo.lengths(), [(0, 1_460)]);
}

#[test]
fn a_lost_retransmission_is_repeated_without_a_timeout() {
    // The fault: the duplicate counter was never cleared, so a lost retransmission meant a timeout.
    let mut world = World::plain(1, Network::default());
    world.sides[0].to_send = 2 << 20;
    let (mut victim, mut count, mut drops) = (None, 0, 0);
    world.filter = Some(alloc::boxed::Box::new(move |side, wire| {
        if side != 0 || wire.payload.is_empty() {
            return false;
        }
        count += 1;
        if count == 300 {
            victim = Some(wire.seq);
        }
        // The segment, and its first two retransmissions.
        let hit = victim == Some(wire.seq) && drops < 3;
        drops += u32::from(hit);
        hit
    }));
    world.run_to_end(Duration::from_secs(60));
    let counters = world.sides[0].connection.counters();
    assert_eq!((counters.timeouts, counters.lost_retransmissions, counters.retransmits), (0, 2, 3));
}

#[test]
fn recoveries_can_follow_each_other() {
    // The same fault seen from the other side: each loss of a long transfer is repaired fast, not only the first.
    for sack in [true, false] {
        let plain = Config { sack, ..config() };
        let mut world = World::new(1, Network::default(), plain.clone(), plain);
        world.sides[0].to_send = 4 << 20;
        let mut count = 0;
        world.filter = Some(alloc::boxed::Box::new(move |side, wire| {
            let data = side == 0 && !wire.payload.is_empty();
            count += u32::from(data);
            data && count % 500 == 0 && count <= 2_500
        }));
        world.run_to_end(Duration::from_secs(60));
        let counters = world.sides[0].connection.counters();
        assert_eq!((counters.timeouts, counters.fast_recoveries, counters.retransmits), (0, 5, 5));
    }
}

#[test]
fn a_retransmitted_segment_is_not_measured() {
    // The fault: a fast-retransmitted segment was sampled (Karn's algorithm violated).
    let mut solo = Solo::established();
    solo.send(1_460);
    solo.output();
    solo.pass(ms(20));
    solo.ack(1_460);
    let before = solo.connection.info(solo.now).rtt;
    solo.send(14_600);
    solo.output();
    solo.sack(1_460, &[(2_920, 16_060)]);
    assert_eq!(solo.lengths(), [(1_460, 1_460)]);
    solo.pass(ms(150));
    solo.ack(16_060);
    assert_eq!(solo.connection.info(solo.now).rtt, before);
}

#[test]
fn the_timeout_has_a_variance_term_and_a_sane_floor() {
    // The fault: no variance term, floor 100 ms.
    let mut solo = Solo::established();
    for n in 1..50 {
        solo.send(1_460);
        solo.output();
        solo.pass(ms(if n % 2 == 0 { 10 } else { 190 }));
        solo.ack(n * 1_460);
    }
    let info = solo.connection.info(solo.now);
    assert!(info.rto.unwrap() > info.rtt.unwrap() + ms(190), "{info:?}");
    let mut solo = Solo::established();
    for n in 1..50 {
        solo.send(1_460);
        solo.output();
        solo.ack(n * 1_460);
    }
    assert_eq!(solo.connection.info(solo.now).rto, Some(ms(200)));
}

#[test]
fn there_is_a_congestion_window() {
    let mut solo = Solo::established();
    solo.send(60_000);
    assert_eq!(solo.output().len(), 10, "not the peer's 64 KiB at once");
    solo.fire();
    assert_eq!(solo.output().len(), 1);
}

#[test]
fn segments_are_cut_when_they_are_sent() {
    // The fault: pre-cut segments were never split, so a smaller window or path stopped the transfer.
    let mut solo = Solo::established();
    solo.send(4_380);
    assert_eq!(solo.lengths(), [(0, 1_460), (1_460, 1_460), (2_920, 1_460)]);
    solo.connection.handle_path_mss(solo.now, 600, None);
    let sent = solo.lengths();
    assert!(sent.len() >= 7 && sent.iter().all(|s| s.1 <= 600), "{sent:?}");
}

#[test]
fn a_closed_window_is_probed() {
    let mut solo = Solo::established();
    solo.window = 0;
    let _ = solo.input(ACK, 0, 0, 0);
    solo.send(1_000);
    solo.output();
    solo.fire();
    assert_eq!(solo.lengths(), [(0, 1)]);
}

#[test]
fn no_ghost_sends() {
    // The fault: a segment was marked sent before there was a buffer for it; when that failed it counted as sent.
    let mut solo = Solo::established();
    solo.send(14_600);
    let mut full = TxPacket::new();
    while full.push_chunk(linerate_nic::Chunk::constant(b"x")).is_ok() {}
    for _ in 0..3 {
        assert!(solo.connection.poll_transmit(solo.now, &solo.limits, &mut full, 34).is_none());
    }
    let info = solo.connection.info(solo.now);
    assert_eq!((info.in_flight, info.segments_sent), (0, 0));
    // Not being polled is not sending either: no timer runs for what never went out.
    solo.pass(Duration::from_secs(20));
    assert_eq!(solo.connection.counters().timeouts, 0);
    assert_eq!(solo.output().len(), 10);
}

#[test]
fn a_pass_sends_all_that_the_windows_allow() {
    // The fault: at most 8 segments a pass, then nothing until the timeout.
    let mut solo = Solo::established();
    solo.window = 65_535;
    solo.send(60_000);
    let mut acked = 0;
    let mut most = 0;
    while acked < 60_000 {
        let sent = solo.lengths();
        most = most.max(sent.len());
        assert!(!sent.is_empty());
        acked += sent.iter().map(|s| s.1 as i64).sum::<i64>();
        solo.ack(acked);
    }
    assert!(most >= 20, "{most}");
    assert_eq!(solo.connection.counters().timeouts, 0);
}

#[test]
fn the_timeout_runs_from_transmission() {
    // The complaint: it ran from queueing, so a slow device caused retransmissions of what had never left.
    let mut solo = Solo::established();
    solo.limits = TxLimits { max_payload: 0, completions: true };
    solo.send(2_920);
    let mut packet = TxPacket::new();
    let mut tags = alloc::vec::Vec::new();
    while let Some(info) = solo.connection.poll_transmit(solo.now, &solo.limits, &mut packet, 34) {
        tags.push(info.completion.unwrap());
        packet.clear();
    }
    assert_eq!(tags.len(), 2);
    solo.pass(Duration::from_secs(10));
    assert_eq!(solo.connection.counters().timeouts, 0, "both still wait in the device");
    solo.connection.handle_transmitted(solo.now, tags[0]);
    let rto = solo.connection.info(solo.now).rto.unwrap();
    solo.pass(ms(90));
    solo.ack(1_460);
    let rtt = solo.connection.info(solo.now).rtt.unwrap();
    assert!(rtt <= ms(90), "and round trips are measured from there: {rtt:?}");
    solo.pass(rto * 3);
    assert_eq!(solo.connection.counters().timeouts, 0, "the second has not left");
    solo.connection.handle_transmitted(solo.now, tags[1]);
    // The tail loss probe that comes first leaves at once.
    solo.limits.completions = false;
    assert!(solo.time_out() >= rto, "from here");
    assert_eq!(solo.connection.counters().timeouts, 1);
}

#[test]
fn what_waits_in_the_device_is_not_sent_again() {
    let mut solo = Solo::established();
    solo.limits = TxLimits { max_payload: 0, completions: true };
    solo.send(14_600);
    solo.output();
    solo.report_up_to(9);
    solo.sack(0, &[(1_460, 13_140)]);
    assert_eq!(solo.lengths(), [(0, 1_460)]);
    solo.fire();
    solo.pass(Duration::from_secs(5));
    assert!(solo.lengths().is_empty(), "the retransmission has not left the ring");
    solo.report_up_to(11);
    solo.fire();
    assert_eq!(solo.lengths(), [(0, 1_460)], "now a timeout is one");
}

#[test]
fn an_in_window_reset_does_not_kill() {
    let mut solo = Solo::established();
    for seq in 1..200 {
        let _ = solo.input(super::solo::RST, seq * 300, 0, 0);
    }
    assert_eq!(solo.connection.tcp_state(), State::Established);
}

#[test]
fn a_stalled_direction_does_not_stall_the_other() {
    let mut world = World::plain(1, Network::default());
    world.sides[0].to_send = 1 << 20;
    world.sides[1].to_send = 1 << 20;
    world.sides[0].reads = false;
    let done = world.run_until(Duration::from_secs(20), |world| world.sides[1].read == 1 << 20);
    assert!(done, "side 0 sends though it does not read");
    world.sides[0].reads = true;
    world.run_to_end(Duration::from_secs(60));
}
