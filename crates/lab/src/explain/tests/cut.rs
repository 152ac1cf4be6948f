//! Reports of data out of order that are cut off in part.

use super::*;
use linerate_wire::tcp::{SackBlock, SeqNumber};

const MSS: u64 = 1_460;
/// Segments of a round.
const ROUND: u64 = 20;

/// Rounds of twenty segments at the receiver, of which the third, the seventh and the eleventh are missing and come a round trip
/// later. The report of three blocks is cut off or whole; the receiver repeats but the newest one, as it remembers few.
fn three_gaps(is_cut: bool) -> Trace {
    let mut trace = Trace::new(MSS as u16).open(false);
    for round in 0..50 {
        let (at_us, first) = (20_000 + round * 2 * RTT_US, round * ROUND);
        let range = |from: u64, to: u64| ((first + from) * MSS, (first + to) * MSS);
        for number in 0..ROUND {
            if [2, 6, 10].contains(&number) {
                trace.sent += MSS;
            } else {
                trace.send(at_us + number * 10, MSS, false);
            }
        }
        trace.ack(at_us + 300, range(0, 2).1);
        report(&mut trace, &[range(11, 20), range(7, 10), range(3, 6)], is_cut);
        trace.ack(at_us + 310, range(0, 2).1);
        report(&mut trace, &[range(11, 20)], false);
        let newest = trace.sent;
        for (number, (gap, front)) in [(2, 6), (6, 10), (10, ROUND)].into_iter().enumerate() {
            trace.sent = (first + gap) * MSS;
            let again_us = at_us + RTT_US + 500 + number as u64 * 20;
            trace.send(again_us, MSS, false);
            trace.sent = newest;
            trace.ack(again_us + 15, range(0, front).1);
        }
    }
    trace
}

/// Puts blocks into the last acknowledgement, as the capture has them.
fn report(trace: &mut Trace, blocks: &[(u64, u64)], is_cut: bool) {
    let number = |position: u64| SeqNumber(1 + position as u32);
    let segment = trace.segments.last_mut().unwrap();
    segment.options_len = 16 + 8 * blocks.len() as u32;
    segment.options_cut = is_cut;
    if is_cut {
        segment.cut_sack = Some(number(blocks[0].0));
        return;
    }
    for block in blocks {
        segment.options.sack_blocks.push(SackBlock { left: number(block.0), right: number(block.1) });
    }
}

#[test]
fn what_a_report_that_was_cut_off_may_have_told_was_not_overtaken() {
    for is_cut in [false, true] {
        let found = three_gaps(is_cut).explained();
        let counts = &found.evidence.counts;
        assert_eq!((counts.filled, counts.late_beyond), (150, 0), "{is_cut}: {counts:#?}");
        assert_eq!(found.verdict.cause, Cause::RandomLoss, "{is_cut}: {:?}", found.verdict.because);
    }
}
