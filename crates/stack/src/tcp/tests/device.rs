//! What one connection may have waiting in the device.

use super::config;
use super::solo::{Solo, ms, offer};
use crate::tcp::TxLimits;
use alloc::vec::Vec;
use linerate_nic::TxPacket;
use linerate_transport::{LimitCause, Pacing};
use linerate_wire::tcp::Options;

/// Two super-segments, and what the second may be longer.
const LIMIT: core::ops::Range<usize> = 131_072..131_072 + 65_535;

/// A connection with much to send and a window for it, whose device reports what it has sent.
fn busy() -> Solo {
    let mut config = config();
    config.initial_window_segments = 250;
    let mut solo = Solo::established_with(config, Options { window_scale: Some(4), ..offer(true, false) });
    solo.limits = TxLimits { max_payload: 65_535, completions: true };
    solo.ack(0);
    solo.send(300_000);
    solo
}

/// Hands the device all that is due; bytes and tag of each packet.
fn fill(solo: &mut Solo) -> Vec<(usize, Option<u32>)> {
    let mut packet = TxPacket::new();
    core::iter::from_fn(|| {
        packet.clear();
        let info = solo.connection.poll_transmit(solo.now, &solo.limits, &mut packet, 34)?;
        Some((info.payload_len, info.completion))
    })
    .collect()
}

/// The device reports these packets.
fn report(solo: &mut Solo, packets: &[(usize, Option<u32>)]) {
    for (_, tag) in packets {
        solo.connection.handle_transmitted(solo.now, tag.unwrap());
    }
}

fn bytes(packets: &[(usize, Option<u32>)]) -> usize {
    packets.iter().map(|(bytes, _)| bytes).sum()
}

#[test]
fn two_super_segments_wait_in_the_device_and_the_next_one_when_one_has_left() {
    let mut solo = busy();
    let packets = fill(&mut solo);
    assert!(LIMIT.contains(&bytes(&packets)), "{packets:?}");
    assert_eq!(solo.connection.limited_by(), Some(LimitCause::Device));
    report(&mut solo, &packets[..2]);
    assert_eq!(solo.connection.limited_by(), Some(LimitCause::Processor), "it is woken");
    assert!(bytes(&fill(&mut solo)) > 0);
}

#[test]
fn what_is_acknowledged_has_left_though_no_report_came() {
    let mut solo = busy();
    let first = fill(&mut solo);
    solo.pass(ms(1));
    solo.ack(bytes(&first) as i64);
    let second = fill(&mut solo);
    assert_eq!(bytes(&first) + bytes(&second), 300_000);
    // The reports come late.
    report(&mut solo, &first);
    report(&mut solo, &second);
    assert_eq!(solo.connection.limited_by(), Some(LimitCause::Application));
}

#[test]
fn a_device_that_reports_nothing_has_no_limit() {
    let mut solo = busy();
    solo.limits.completions = false;
    assert_eq!(bytes(&fill(&mut solo)), 300_000);
}

#[test]
fn a_fast_path_may_have_a_millisecond_of_its_rate_in_the_device() {
    let mut solo = busy();
    // 190 KB a 100 us: about 2 GB/s.
    let first = fill(&mut solo);
    report(&mut solo, &first);
    solo.pass(core::time::Duration::from_micros(100));
    solo.ack(bytes(&first) as i64);
    solo.send(bytes(&first));
    let second = fill(&mut solo);
    assert!(bytes(&second) >= LIMIT.end, "{second:?}");
}

#[test]
fn a_paced_connection_waits_for_its_rate_not_for_the_device() {
    let mut solo = busy();
    let mut options = config().socket;
    options.pacing = Pacing::Rate(1_000_000);
    solo.connection.set_options(solo.now, &options);
    let sent = fill(&mut solo);
    assert_eq!(solo.connection.limited_by(), Some(LimitCause::Pacing));
    report(&mut solo, &sent);
    assert_eq!(solo.connection.limited_by(), Some(LimitCause::Pacing));
}

#[test]
fn a_full_link_is_blamed_by_those_who_could_send() {
    let mut solo = busy();
    solo.connection.handle_link_full(solo.now);
    assert_eq!(solo.connection.limited_by(), Some(LimitCause::Device));
    // Until its turn comes, whatever else happens.
    solo.ack(0);
    assert_eq!(solo.connection.limited_by(), Some(LimitCause::Device));
    solo.limits.completions = false;
    fill(&mut solo);
    solo.connection.handle_link_full(solo.now);
    assert_eq!(solo.connection.limited_by(), Some(LimitCause::Application), "it has nothing to send");
}

#[test]
fn reports_come_in_any_order_twice_or_for_nothing() {
    let mut solo = busy();
    let packets = fill(&mut solo);
    assert!(packets.len() >= 2, "{packets:?}");
    let mut backwards = packets.clone();
    backwards.reverse();
    let (first, later) = backwards.split_last().unwrap();
    for _ in 0..2 {
        report(&mut solo, later);
        assert_eq!(solo.connection.limited_by(), Some(LimitCause::Device), "the first one is still there");
    }
    for tag in [0, 99_999, u32::MAX] {
        solo.connection.handle_transmitted(solo.now, tag);
    }
    assert_eq!(solo.connection.limited_by(), Some(LimitCause::Device));
    report(&mut solo, core::slice::from_ref(first));
    assert_eq!(solo.connection.limited_by(), Some(LimitCause::Processor));
    assert!(bytes(&fill(&mut solo)) > 0);
}

#[test]
fn a_report_that_never_comes_delays_the_timeout_but_does_not_prevent_it() {
    let mut solo = busy();
    let packets = fill(&mut solo);
    report(&mut solo, &packets[1..]);
    // Nothing of it arrives either.
    let mut sent_again = 0;
    for _ in 0..4 {
        let due = solo.connection.poll_timeout().expect("a timer runs");
        assert!(due - solo.now < core::time::Duration::from_secs(40));
        solo.now = due;
        solo.connection.handle_timeout(solo.now);
        sent_again += bytes(&fill(&mut solo));
    }
    assert!(sent_again > 0);
}
