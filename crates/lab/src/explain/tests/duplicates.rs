//! Packets of which something on the way made two.

use super::super::segment::Segment;
use super::{OWN_US, RTT_US, Trace};
use linerate_wire::tcp::{SackBlock, SeqNumber};

/// A thousand segments at the receiver, one each millisecond; of one in twenty a second one follows, as `again` makes it.
fn twice(again: impl Fn(&Segment) -> Segment) -> Trace {
    let mut trace = Trace::new(1_460).open(false);
    for number in 0..1_000_u64 {
        let at_us = 20_000 + number * 1_000;
        trace.send(at_us, 1_460, false).identification = Some(7 + number as u16);
        let first = trace.segments.last().unwrap().clone();
        let sent = trace.sent;
        trace.ack(at_us + OWN_US, sent);
        if number % 20 == 10 {
            trace.segments.push(again(&first));
            trace.ack(at_us + 300 + OWN_US, sent);
            let edges = [first.seq, first.seq + 1_460].map(SeqNumber);
            let told = trace.segments.last_mut().unwrap();
            told.options.sack_blocks.push(SackBlock { left: edges[0], right: edges[1] });
        }
    }
    trace
}

#[test]
fn a_packet_that_comes_twice_was_sent_once() {
    let later = |first: &Segment| Segment { at_ns: first.at_ns + 300_000, ..first.clone() };
    let found = twice(later).explained();
    let main = &found.directions[0];
    assert_eq!((main.duplicated, main.again, main.spurious), (50, 0, 0), "{:#?}", main.counts);
    assert_eq!((main.counts.segments, main.counts.bytes_again), (1_000, 0));
    // The counts by Wireshark's rules do not change.
    assert_eq!(found.wireshark.spurious_retransmission, 50);
    // Another packet of the same bytes was sent again.
    let other = |first: &Segment| Segment { identification: Some(60_000), ..later(first) };
    let found = twice(other).explained();
    let main = &found.directions[0];
    assert_eq!((main.duplicated, main.again, main.spurious), (0, 50, 50), "{:#?}", main.counts);
}

#[test]
fn what_is_told_to_have_come_twice_and_was_sent_once_was_duplicated() {
    // At the sender, where the second packets are not seen.
    let mut trace = Trace::new(1_460).open(true);
    for number in 0..1_000_u64 {
        let at_us = 20_000 + number * 1_000;
        trace.send(at_us, 1_460, false);
        if number >= 10 {
            let front = (number - 9) * 1_460;
            trace.ack(at_us + RTT_US % 1_000, front);
            if number % 20 == 0 {
                trace.ack(at_us + 100, front);
                let edges = [1 + front as u32 - 1_460, 1 + front as u32].map(SeqNumber);
                let told = trace.segments.last_mut().unwrap();
                told.options.sack_blocks.push(SackBlock { left: edges[0], right: edges[1] });
            }
        }
    }
    let found = trace.explained();
    let main = &found.directions[0];
    assert_eq!((main.duplicated, main.again, main.spurious), (49, 0, 0), "{:#?}", main.counts);
    let text: String = super::super::text::figures(main).into_iter().map(|(_, value)| value).collect();
    assert!(text.contains("49 duplicated on the way"), "{text}");
}
