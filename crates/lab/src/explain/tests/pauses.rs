//! Seen from the receiver: what a pause is, and what a round trip.

use super::super::cause::Cause;
use super::super::connection::Connection;
use super::{OWN_US, RTT_US, Trace};
use linerate_wire::tcp::Timestamps;

/// Bursts of ten segments, each 100 ms after the one before, at the receiver; each pair is acknowledged as it comes. The first of each burst
/// echoes the last acknowledgement, the others do as well.
fn bursts_with_pauses(is_opened: bool) -> Trace {
    let mut trace = Trace::new(1_460);
    let stamps = |at_us: u64, echo_us: u64| {
        Some(Timestamps { value: (at_us / 1_000) as u32 + 9, echo: (echo_us / 1_000) as u32 + 9 })
    };
    if is_opened {
        trace = trace.open(false);
    }
    let mut told_us = 0;
    for burst in 0..40 {
        let at_us = 100_000 + burst * 100_000;
        let echo_us = told_us;
        for number in 0..10 {
            let here_us = at_us + number * 120;
            trace.send(here_us, 1_448, number == 9).options.timestamps = stamps(here_us, echo_us);
            if number % 2 == 1 {
                told_us = here_us + OWN_US;
                let sent = trace.sent;
                trace.ack(told_us, sent);
                trace.segments.last_mut().unwrap().options.timestamps = stamps(told_us, here_us);
            }
        }
    }
    trace
}

fn least_and_median(found: &Connection) -> (Option<f64>, Option<f64>) {
    (found.evidence.rtt_least_s, found.evidence.rtt_median_s)
}

#[test]
fn a_pause_is_no_round_trip() {
    let found = bursts_with_pauses(true).explained();
    assert_eq!(found.verdict.cause, Cause::SenderApplication, "{:#?}", found.evidence);
    let (least, median) = least_and_median(&found);
    let rtt_s = RTT_US as f64 / 1e6;
    assert!(least.is_some_and(|least| (rtt_s..rtt_s * 1.01).contains(&least)), "{least:?}");
    assert!(median.is_none_or(|median| median < rtt_s * 1.1), "{median:?}");
}

#[test]
fn where_only_pauses_are_seen_the_round_trip_is_not_known() {
    let found = bursts_with_pauses(false).explained();
    assert!(!found.views[0].is_near(0));
    assert_eq!(least_and_median(&found), (None, None));
}
