//! How fast data got to the other end.

use super::Trace;
use linerate_wire::tcp::Flags;

/// A hundred segments sent in 10 ms into a queue that lets one through each millisecond; as many are acknowledged as were captured.
fn queued(acknowledged: u64) -> Trace {
    let mut trace = Trace::new(1_000).open(true);
    for number in 0..100 {
        trace.send(20_000 + number * 100, 1_000, false);
    }
    for number in 1..=acknowledged {
        trace.ack(29_900 + number * 1_000, number * 1_000);
    }
    trace
}

#[test]
fn what_still_waits_in_a_queue_was_not_carried() {
    let rate = |trace: Trace| {
        let found = trace.explained();
        let main = &found.directions[0];
        assert!((main.goodput_bps / 8.0 - found.evidence.rate).abs() < 1.0, "{main:#?}");
        assert_eq!(main.bytes, 100_000);
        (found.evidence.rate, main.time_s)
    };
    assert_eq!(rate(queued(100)), (100_000.0 / 0.1099, 0.1099));
    assert_eq!(rate(queued(50)), (50_000.0 / 0.0599, 0.0599), "the capture ends before the queue");
    // The end of the stream is acknowledged long after the last byte.
    let mut trace = queued(100);
    trace.take(9_000_000, true, Flags::ACK | Flags::FIN, 0);
    trace.ack(9_010_000, 100_001);
    assert_eq!(rate(trace), (100_000.0 / 0.1099, 0.1099));
}

#[test]
fn a_delayed_acknowledgement_at_the_end_tells_nothing_of_the_path() {
    let mut trace = queued(100);
    trace.send(129_000, 88, true);
    trace.ack(180_000, 100_088);
    assert_eq!(trace.explained().evidence.rate, 100_000.0 / 0.1099);
    // It is all there is of a single segment.
    let mut trace = Trace::new(1_000).open(true);
    trace.send(20_000, 88, true);
    trace.ack(70_000, 88);
    assert_eq!(trace.explained().directions[0].goodput_bps, 88.0 * 8.0 / 0.05);
}

#[test]
fn what_was_sent_in_less_than_a_round_trip_has_no_rate() {
    let carried = |acknowledged: u64| {
        let found = queued(acknowledged).explained();
        let told = super::super::text::carried(&found.directions[0]);
        (told, found.verdict.because, found.verdict.would_tell)
    };
    let (rate, because, would_tell) = carried(0);
    assert_eq!((rate.as_str(), would_tell.as_deref()), ("-", Some("a capture of more than a round trip")));
    assert!(!because.iter().any(|sentence| sentence.contains("measured")), "{because:?}");
    assert_eq!(carried(100).0, "910 kB/s");
}

#[test]
fn the_least_round_trip_is_the_same_everywhere_and_no_stroke_is_more_than_was_under_way() {
    let found = super::beat(1_460, 1_000, 10_100, 500).explained();
    let main = &found.directions[0];
    // That of the handshake is less than any of data.
    assert!(main.rtt_least_ns < main.rtt_ns.least(), "{main:#?}");
    let figures = super::super::text::figures(main);
    let value = |name: &str| figures.iter().find(|(known, _)| *known == name).unwrap().1.clone();
    assert!(value("round trip").starts_with("10 ms least"), "{}", value("round trip"));
    assert!(main.burst.most() <= main.flight.most(), "{:?} {:?}", main.burst, main.flight);
}
