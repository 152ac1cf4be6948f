//! What is joined because it comes together.

use super::config;
use super::solo::{ACK, IRS, ISS, Solo, ms, offer};
use crate::tcp::SegmentIn;
use linerate_wire::tcp::SeqNumber;

#[test]
fn acknowledgements_that_come_together_tell_no_more_than_the_last() {
    let mss = 1_460;
    let ack_of = |solo: &Solo, ack: i64| SegmentIn {
        seq: SeqNumber(IRS.wrapping_add(1)),
        ack: SeqNumber(ISS.wrapping_add(1).wrapping_add(ack as u32)),
        flags: ACK,
        window: solo.window,
        ..SegmentIn::default()
    };
    let may_join = |solo: &Solo, segment: &SegmentIn| {
        segment.head().is_some_and(|head| solo.connection.may_join_acks(&head))
    };
    let run = |one_by_one: bool| {
        let mut solo = Solo::established_with(config(), offer(true, false));
        solo.send(10 * mss);
        let mut at = solo.output().len() as i64 * mss as i64;
        assert!(!may_join(&solo, &ack_of(&solo, mss as i64)), "each tells of the path in slow start");
        solo.pass(ms(10));
        solo.ack(at);
        // The window has room for twice as many: it is not used any more.
        solo.send(4 * mss);
        assert_eq!(solo.output().len(), 4);
        solo.pass(ms(10));
        let first = ack_of(&solo, at + mss as i64);
        assert!(may_join(&solo, &first));
        assert!(!may_join(&solo, &ack_of(&solo, at)), "nothing new");
        assert!(!may_join(&solo, &ack_of(&solo, at + 5 * mss as i64)), "never sent");
        if one_by_one {
            let _ = solo.connection.handle_segment(solo.now, first);
        } else {
            solo.connection.count_joined(1);
        }
        at += 3 * mss as i64;
        solo.ack(at);
        solo.send(60 * mss);
        let counters = solo.connection.counters().segments_received;
        // The smoothed round-trip time has a sample less, weighted for what it covers.
        (counters, solo.lengths())
    };
    let (one_by_one, joined) = (run(true), run(false));
    assert_eq!(one_by_one, joined);
    assert!(one_by_one.1.len() > 10);
}
