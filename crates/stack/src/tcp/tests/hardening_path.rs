//! Path MTU: lies about it, black holes, and the search upwards (RFC 5927 section 7, RFC 4821).

use super::config;
use super::solo::{ACK, ISS, Solo, ms, offer};
use crate::tcp::Config;
use alloc::vec::Vec;
use core::time::Duration;
use linerate_transport::{CloseReason, SocketOptions};
use linerate_wire::tcp::SeqNumber;

fn number(at: i64) -> SeqNumber {
    SeqNumber(ISS.wrapping_add(1).wrapping_add(at as u32))
}

fn mss(solo: &Solo) -> u32 {
    solo.connection.info(solo.now).send_mss
}

/// Sends `len` bytes over a path that drops what is longer than `carries` and acknowledges the rest at once, with SACK
/// for what arrives out of order. Returns the lengths sent.
fn send_over(solo: &mut Solo, len: usize, carries: usize) -> Vec<usize> {
    let mut lengths = Vec::new();
    let start = solo.connection.info(solo.now).bytes_acked as i64;
    let (mut una, end) = (start, start + len as i64);
    let mut arrived: Vec<(i64, i64)> = Vec::new();
    solo.send(len);
    for _ in 0..10_000 {
        let sent = solo.output();
        if una >= end {
            return lengths;
        }
        if sent.is_empty() {
            solo.fire();
            continue;
        }
        solo.now += ms(10);
        for segment in sent.iter().filter(|segment| segment.len > 0) {
            lengths.push(segment.len);
            if segment.len > carries {
                continue;
            }
            arrived.push((segment.seq, segment.seq + segment.len as i64));
            arrived.sort_unstable();
            arrived.dedup_by(|next, last| {
                let touches = next.0 <= last.1;
                last.1 = if touches { last.1.max(next.1) } else { last.1 };
                touches
            });
            una = arrived.first().filter(|first| first.0 <= una).map_or(una, |first| first.1);
            let blocks: Vec<_> = arrived.iter().copied().filter(|block| block.0 > una).take(3).collect();
            solo.sack(una, &blocks);
        }
    }
    panic!("{una} of {end} arrived");
}

#[test]
fn a_black_hole_is_left_within_seconds_and_the_search_finds_the_largest_size() {
    let socket = SocketOptions { keep_alive: None, ..SocketOptions::default() };
    let mut solo = Solo::established_with(Config::new(socket, 1_460), offer(true, false));
    assert!(send_over(&mut solo, 50_000, 1_460).iter().all(|&len| len <= 1_460));
    assert_eq!(mss(&solo), 1_460);
    // From here on, what is longer than 1,200 bytes vanishes without a word.
    let begin = solo.now;
    send_over(&mut solo, 20_000, 1_200);
    assert!(solo.now - begin < Duration::from_secs(3), "{:?}", solo.now - begin);
    assert_eq!(solo.connection.counters().black_holes, 1);
    assert!(mss(&solo) <= 1_200);
    let before = *solo.connection.counters();
    for _ in 0..60 {
        solo.pass(ms(1_100));
        send_over(&mut solo, 40_000, 1_200);
    }
    let counters = *solo.connection.counters();
    assert!((1_168..=1_200).contains(&mss(&solo)), "{} after {counters:?}", mss(&solo));
    assert_eq!(counters.timeouts, before.timeouts, "a lost probe costs no timeout");
    assert_eq!(counters.fast_recoveries, before.fast_recoveries, "a lost probe is no congestion");
    assert!((3..=24).contains(&counters.size_probes), "{counters:?}");
    // Ten minutes later the path is as it was.
    let probes = counters.size_probes;
    for _ in 0..5 {
        send_over(&mut solo, 40_000, 1_460);
    }
    assert_eq!(solo.connection.counters().size_probes, probes, "no probe before its time");
    solo.pass(Duration::from_secs(601));
    send_over(&mut solo, 40_000, 1_460);
    send_over(&mut solo, 40_000, 1_460);
    assert_eq!(mss(&solo), 1_460);
    assert_eq!(solo.connection.counters().size_probes, probes + 1);
}

#[test]
fn a_path_of_576_bytes_is_reached_in_two_steps() {
    let mut solo = Solo::established();
    send_over(&mut solo, 5_000, 536);
    assert_eq!(solo.connection.counters().black_holes, 2);
    assert_eq!(mss(&solo), 536);
}

#[test]
fn an_outage_costs_one_probe() {
    let mut solo = Solo::established();
    send_over(&mut solo, 50_000, 1_460);
    solo.send(100_000);
    for _ in 0..4 {
        solo.time_out();
    }
    assert_eq!(mss(&solo), 536, "three timeouts and more");
    // It is over: everything arrives from now on.
    let mut una = 50_000;
    for _ in 0..2_000 {
        for segment in solo.output() {
            una = una.max(segment.seq + segment.len as i64);
        }
        solo.pass(ms(10));
        solo.ack(una);
    }
    assert_eq!(una, 150_000);
    send_over(&mut solo, 50_000, 1_460);
    assert_eq!(mss(&solo), 1_460);
    assert_eq!(solo.connection.counters().size_probes, 1);
}

#[test]
fn few_data_are_no_probe() {
    let mut solo = Solo::established();
    send_over(&mut solo, 5_000, 536);
    for _ in 0..20 {
        solo.pass(ms(2_000));
        let lengths = send_over(&mut solo, 536 * 5, 1_460);
        assert!(
            lengths.iter().all(|&len| len <= 536),
            "a probe at the end could only be missed by a timeout"
        );
    }
}

#[test]
fn a_lie_about_a_size_that_arrived_is_not_believed() {
    let mut solo = Solo::established();
    send_over(&mut solo, 50_000, 1_460);
    for round in 0..10 {
        let at = 50_000 + round * 1_460;
        solo.send(1_460);
        solo.output();
        assert!(solo.connection.handle_path_mss(solo.now, 600, Some(number(at))));
        assert_eq!((mss(&solo), solo.output().len()), (1_460, 0), "it waits");
        solo.ack(at + 1_460);
        assert_eq!((mss(&solo), solo.connection.poll_path_mss()), (1_460, None), "the segment arrived");
    }
}

#[test]
fn the_truth_about_a_path_that_changed_is_believed_with_the_first_timeout() {
    let mut solo = Solo::established();
    send_over(&mut solo, 50_000, 1_460);
    solo.send(14_600);
    solo.output();
    assert!(solo.connection.handle_path_mss(solo.now, 1_000, Some(number(50_000))));
    assert_eq!(mss(&solo), 1_460);
    solo.time_out();
    assert_eq!((mss(&solo), solo.connection.poll_path_mss()), (1_000, Some(1_000)));
    let again = solo.output();
    assert!(again[0].seq == 50_000 && again[0].len == 1_000, "{again:?}");
    assert_eq!(solo.connection.counters().black_holes, 0);
}

#[test]
fn errors_about_what_is_not_in_flight_are_ignored() {
    let mut solo = Solo::established_with(config(), offer(true, false));
    solo.send(3_000);
    solo.output();
    for at in [-1, 3_000, 3_001, 1 << 30, -(1 << 30)] {
        assert!(!solo.connection.handle_path_mss(solo.now, 600, Some(number(at))), "{at}");
        assert!(!solo.connection.handle_icmp_error(solo.now, number(at), true, CloseReason::Refused), "{at}");
    }
    assert_eq!(mss(&solo), 1_460);
    for at in [0, 1, 1_460, 2_999] {
        assert!(solo.connection.handle_icmp_error(solo.now, number(at), true, CloseReason::Refused), "{at}");
    }
    let _ = solo.input(ACK, 0, 3_000, 0);
    assert!(
        !solo.connection.handle_icmp_error(solo.now, number(0), true, CloseReason::Refused),
        "acknowledged"
    );
}
