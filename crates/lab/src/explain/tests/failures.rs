//! Connections that failed, and how that is told.

use super::super::cause::Cause;
use super::{RTT_US, Trace, beat};
use linerate_wire::tcp::Flags;

/// What is said of packets: microseconds, whether from the client, and control bits.
fn told(packets: &[(u64, bool, Flags)]) -> (Cause, String, f64) {
    let mut trace = Trace::new(1_460);
    for (at_us, from_client, flags) in packets {
        trace.take(*at_us, *from_client, *flags, 0);
    }
    let verdict = trace.explained().verdict;
    (verdict.cause, verdict.because[0].clone(), verdict.confidence)
}

#[test]
fn who_refused_is_told() {
    let (syn, reset) = (Flags::SYN, Flags::RST | Flags::ACK);
    let said = "10.0.0.2:80 answered the SYN with RST after 300 us".to_owned();
    assert_eq!(told(&[(0, true, syn), (300, false, reset)]), (Cause::Refused, said.clone(), 1.0));
    let again = [(0, true, syn), (1_000_000, true, syn), (1_000_300, false, reset)];
    assert_eq!(told(&again), (Cause::Refused, said, 1.0));
}

#[test]
fn what_was_not_answered_is_told() {
    let syn = Flags::SYN;
    let said = "10.0.0.1:40000 sent 3 SYNs in 3 s, and 10.0.0.2:80 answered none".to_owned();
    let asked = [(0, true, syn), (1_000_000, true, syn), (3_000_000, true, syn)];
    assert_eq!(told(&asked), (Cause::NotAnswered, said.clone(), 1.0));
    // Its sender gives up.
    let given_up = [&asked[..], &[(3_500_000, true, Flags::RST)]].concat();
    assert_eq!(told(&given_up), (Cause::NotAnswered, said, 1.0));
    let half = [(0, true, syn), (100, false, syn | Flags::ACK), (1_000_100, false, syn | Flags::ACK)];
    let said = "10.0.0.2:80 sent 2 SYNs in 1 s, and 10.0.0.1:40000 answered none".to_owned();
    assert_eq!(told(&half), (Cause::NotAnswered, said, 1.0));
    // The client went on: the answer passed elsewhere.
    assert_eq!(told(&[(0, true, syn), (20_000, true, Flags::ACK)]).0, Cause::Unknown);
}

#[test]
fn who_reset_it_is_told() {
    let (syn, ack, reset) = (Flags::SYN, Flags::ACK, Flags::RST);
    let open = [(0, true, syn), (10_000, false, syn | ack), (10_010, true, ack)];
    let told_of = |more: &[(u64, bool, Flags)]| told(&[&open[..], more].concat());
    let said = "10.0.0.2:80 reset the connection 2.5 s after it was first seen".to_owned();
    assert_eq!(told_of(&[(2_500_000, false, reset)]), (Cause::Reset, said, 1.0));
    let (fin, done) = (Flags::FIN | ack, 2_000_000);
    let closed = [(done, true, fin), (done + 10_000, false, fin), (done + 10_010, true, reset)];
    assert_eq!(told_of(&closed).0, Cause::Unknown, "both had ended before");
    assert_eq!(told_of(&closed[..1]).0, Cause::Unknown);
    // What limited it until then stays said.
    let mut trace = beat(14_600, 25_000, RTT_US + 100, 200);
    let cause = beat(14_600, 25_000, RTT_US + 100, 200).explained().verdict.cause;
    trace.take(8_000_000, true, reset, 0);
    let found = trace.explained();
    assert_eq!(found.verdict.cause, cause);
    assert!(
        found.notes.iter().any(|note| note.starts_with("10.0.0.1:40000 reset the connection 8 s")),
        "{:?}",
        found.notes
    );
}

/// A port that is used again while the other end still has the connection before: its acknowledgement, which may lie anywhere, is
/// answered by RST, and the same SYN opens the new one.
#[test]
fn what_answers_a_syn_with_an_older_connection_counts_for_nothing() {
    let opened_over = |ack: Option<u32>| {
        let mut trace = Trace::new(1_460);
        trace.take(0, true, Flags::SYN, 0);
        if let Some(ack) = ack {
            let old = trace.take(RTT_US, false, Flags::ACK, 0);
            (old.seq, old.ack) = (77_777, ack);
            trace.take(RTT_US + 10, true, Flags::RST, 0).seq = ack;
        }
        trace.take(1_000_000, true, Flags::SYN, 0);
        trace.take(1_000_000 + RTT_US, false, Flags::SYN | Flags::ACK, 0);
        trace.take(1_000_010 + RTT_US, true, Flags::ACK, 0);
        for number in 0..200 {
            let at_us = 1_020_000 + number * 2_000;
            trace.send(at_us, 1_460, true);
            let sent = trace.sent;
            trace.ack(at_us + RTT_US, sent);
        }
        trace.segments.sort_by_key(|segment| segment.at_ns);
        trace.explained()
    };
    let plain = opened_over(None);
    for ack in [1_000_000_000, 3_000_000_000] {
        let found = opened_over(Some(ack));
        assert_eq!(found.directions[0].bytes, plain.directions[0].bytes, "{ack}");
        assert_eq!(found.directions[0].again, plain.directions[0].again, "{ack}");
        assert_eq!(found.directions[0].counts.missed_bytes, 0, "{ack}");
        assert_eq!(found.verdict.cause, plain.verdict.cause, "{ack}: {:?}", found.verdict);
        assert!(!found.notes.iter().any(|note| note.contains("reset")), "{:?}", found.notes);
    }
    // Nor does it hide that nobody answers.
    let mut trace = Trace::new(1_460);
    trace.take(0, true, Flags::SYN, 0);
    let old = trace.take(RTT_US, false, Flags::ACK, 0);
    (old.seq, old.ack) = (77_777, 1_000_000_000);
    trace.take(RTT_US + 10, true, Flags::RST, 0).seq = 1_000_000_000;
    trace.take(1_000_000, true, Flags::SYN, 0);
    trace.take(3_000_000, true, Flags::SYN, 0);
    assert_eq!(trace.explained().verdict.cause, Cause::NotAnswered);
}

#[test]
fn a_capture_that_ends_before_a_syn_is_sent_again_does_not_tell() {
    let told_after = |end_us: u64| {
        let mut trace = Trace::new(1_460);
        trace.take(0, true, Flags::SYN, 0);
        let mut table = super::Table::default();
        table.take(0, &trace.segments[0]);
        table.finish();
        let end_ns = trace.segments[0].at_ns + end_us * 1_000;
        super::connection::connections(table.views, end_ns).remove(0).verdict
    };
    let once = "10.0.0.1:40000 sent a SYN, and 10.0.0.2:80 did not answer it";
    let sure = told_after(1_000_000);
    assert_eq!((sure.cause, sure.because[0].as_str(), sure.confidence), (Cause::NotAnswered, once, 1.0));
    let soon = "10.0.0.1:40000 sent a SYN, and the capture ends 300 ms later, before it would be sent again";
    let unsure = told_after(300_000);
    assert_eq!((unsure.cause, unsure.because[0].as_str(), unsure.confidence), (Cause::Unknown, soon, 0.0));
    assert!(unsure.would_tell.unwrap().starts_with("a longer capture"));
}
