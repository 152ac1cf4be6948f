//! Sends at a rate on whole connections.

use super::config;
use super::solo::{Solo, ms, offer};
use crate::tcp::TxLimits;
use core::time::Duration;
use linerate_transport::{LimitCause, Pacing};
use linerate_wire::units::Instant;

fn paced(pacing: Pacing) -> Solo {
    let mut config = config();
    config.socket.pacing = pacing;
    Solo::established_with(config, offer(true, false))
}

/// Sends for `time` with acknowledgements at once; when each packet left, and its payload.
fn run(solo: &mut Solo, time: Duration) -> alloc::vec::Vec<(Instant, usize)> {
    let end = solo.now + time;
    let mut sent = alloc::vec::Vec::new();
    let mut next = 0;
    while solo.now < end {
        let output = solo.output();
        for segment in &output {
            sent.push((solo.now, segment.len));
            next = next.max(segment.seq + segment.len as i64);
        }
        if !output.is_empty() {
            solo.ack(next);
        } else if solo.connection.poll_timeout().is_some_and(|at| at < end) {
            solo.fire();
        } else {
            break;
        }
    }
    sent
}

#[test]
fn a_rate_is_kept_from_the_first_byte_on() {
    let mut solo = paced(Pacing::Rate(1_000_000));
    let start = solo.now;
    solo.send(100_000);
    let sent = run(&mut solo, ms(90));
    let mut bytes = 0;
    for (at, len) in &sent {
        bytes += len;
        let allowed = (*at - start).as_micros() as usize + 1_000 + 1_460;
        assert!(bytes <= allowed, "{bytes} bytes after {:?}", *at - start);
    }
    assert!(bytes >= 88_000, "{bytes} bytes in 90 ms");
    assert_eq!(solo.connection.limited_by(), Some(LimitCause::Pacing));
}

#[test]
fn the_deadline_is_that_of_the_next_piece() {
    let mut solo = paced(Pacing::Rate(1_000_000));
    solo.send(14_600);
    assert_eq!(solo.lengths(), [(0, 1_460)]);
    let at = solo.connection.poll_timeout().unwrap();
    assert_eq!(at - solo.now, Duration::from_micros(460));
    solo.pass(Duration::from_micros(459));
    assert!(solo.lengths().is_empty());
    solo.pass(Duration::from_micros(1));
    assert_eq!(solo.lengths(), [(1_460, 1_460)]);
}

#[test]
fn super_segments_are_what_the_rate_carries_in_a_millisecond() {
    let largest = |rate| {
        let mut solo = paced(Pacing::Rate(rate));
        solo.limits = TxLimits { max_payload: 65_535, completions: false };
        solo.send(14_600);
        let mut packet = linerate_nic::TxPacket::new();
        solo.connection.poll_transmit(solo.now, &solo.limits, &mut packet, 34).unwrap().payload_len
    };
    assert_eq!((largest(1_000), largest(6_000_000), largest(1_000_000_000)), (2_920, 5_840, 14_600));
}

#[test]
fn an_automatic_rate_spreads_the_window_over_the_round_trip() {
    let mut solo = paced(Pacing::Auto);
    solo.send(60_000);
    // Without a round-trip time there is no rate: the initial window leaves at once.
    assert_eq!(solo.output().len(), 10);
    solo.pass(ms(100));
    solo.ack(14_600);
    // Slow start: the window in half a round trip, less the credit of a millisecond.
    let (start, rtt) = (solo.now, solo.connection.info(solo.now).rtt.unwrap());
    let mut count = solo.output().len();
    assert!((1..=5).contains(&count), "{count} segments at once");
    while solo.connection.poll_timeout().is_some_and(|at| at < start + rtt) && count < 20 {
        solo.fire();
        count += solo.output().len();
    }
    assert_eq!(count, 20);
    let took = solo.now - start;
    assert!(took > rtt / 3 && took <= rtt / 2, "{took:?} of {rtt:?}");
    assert_eq!(solo.connection.counters().retransmits, 0);
}

#[test]
fn without_pacing_there_is_no_timer() {
    let mut solo = paced(Pacing::Off);
    solo.send(60_000);
    assert_eq!(solo.output().len(), 10);
    let at = solo.connection.poll_timeout().unwrap();
    assert!(at - solo.now >= ms(2), "the first is that of the tail loss probe");
}
