//! Windows whose scale no SYN tells.

use super::super::cause::Cause;
use super::{RTT_US, Trace};
use std::collections::VecDeque;

const MSS: u64 = 1_460;

/// A window that is full all the time, at the sender: each acknowledgement lets go what it has room for in whole segments. Two round trips
/// of three take a fifth longer than the least, so that the window over the usual one is less than what was measured.
fn filled(window: u64) -> Trace {
    let mut trace = Trace::new(MSS as u16);
    trace.window = window;
    trace.ack(0, 0);
    let mut acks = VecDeque::from([(10, 0)]);
    let mut turn = 0;
    while let Some((at_us, front)) = acks.pop_front().filter(|(at_us, _)| *at_us < 2_000_000) {
        trace.ack(at_us, front);
        while trace.sent + MSS <= front + window {
            trace.send(at_us + 5, MSS, false);
            turn += 1;
            let longer_us = if (turn / (window / MSS)).is_multiple_of(3) { 0 } else { RTT_US / 5 };
            let last_us = acks.back().map_or(0, |(last_us, _)| *last_us);
            acks.push_back(((at_us + RTT_US + longer_us).max(last_us + 50), trace.sent));
        }
    }
    trace
}

#[test]
fn who_stops_at_the_very_edge_again_and_again_proves_the_scale() {
    let found = filled(29 * MSS).explained();
    assert_eq!(found.evidence.window_most, 29 * MSS, "{:#?}", found.evidence);
    assert_eq!(found.verdict.cause, Cause::ReceiverWindow, "{:?}", found.verdict.because);
    let is_proven =
        |found: &super::Connection| found.views[0].halves.iter().any(|half| half.wire.guess.is_proven());
    assert!(is_proven(&found));
    // Somewhere below it, nothing is proven.
    assert!(!is_proven(&filled(29 * MSS + 700).explained()));
}
