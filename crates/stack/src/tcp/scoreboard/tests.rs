//! The scoreboard against a plain model, and what its operations cost.

use super::*;
use alloc::collections::BTreeMap as Model;
use alloc::vec::Vec;
use proptest::prelude::*;

const MSS: u64 = 100;
const WAIT: Duration = Duration::from_millis(10);

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn clues(now: u64) -> Clues {
    Clues { now: at(now), fack: 0, least_rtt: Duration::ZERO, early: Duration::ZERO, echo: None }
}

/// A board with `count` segments that left, one each millisecond from 1 on, as transmissions 1 and up.
fn board(count: u64) -> Scoreboard {
    let mut board = Scoreboard::default();
    for n in 1..=count {
        let serial = board.new_serial();
        board.left_first(n * MSS, serial, at(n));
    }
    board
}

fn sack(board: &mut Scoreboard, start: u64, end: u64, now: u64) -> Arrivals {
    let mut arrivals = Arrivals::default();
    board.sack(start * MSS, end * MSS, &clues(now), &mut arrivals);
    arrivals
}

fn rule(arrivals: &Arrivals, now: u64) -> Rule {
    Rule { now: at(now), newest: arrivals.newest.unwrap(), wait: WAIT }
}

fn resend(board: &mut Scoreboard, start: u64, end: u64, now: u64) -> u64 {
    let (serial, _) = board.mark_resent(at(now), start * MSS, end * MSS, now as u32);
    board.left_again(start * MSS, end * MSS, serial, at(now));
    serial
}

fn lost(board: &Scoreboard) -> Vec<(u64, u64)> {
    let mut ranges: Vec<_> = board.lost.descending().map(|(start, end)| (start / MSS, end / MSS)).collect();
    ranges.reverse();
    ranges
}

#[test]
fn rfc_8985_6_2_5_only_what_was_sent_before_the_newest_arrival_and_long_enough_ago_is_lost() {
    let mut board = board(10);
    // The segment that left at 6 ms arrives.
    let arrivals = sack(&mut board, 5, 6, 16);
    assert_eq!(arrivals.newest.map(|n| (n.serial, n.end, n.left)), Some((6, 600, at(6))));
    let found = board.detect(0, &rule(&arrivals, 13));
    assert_eq!(
        (found, lost(&board)),
        (Found { lost: true, again: 0, next: Some(at(14)) }, Vec::from([(0, 3)]))
    );
    let found = board.detect(0, &rule(&arrivals, 14));
    assert_eq!((found.next, lost(&board)), (Some(at(15)), Vec::from([(0, 4)])));
    let found = board.detect(0, &rule(&arrivals, 99));
    assert_eq!((found.next, lost(&board)), (None, Vec::from([(0, 5)])), "not what was sent later");
    assert_eq!(board.detect(0, &rule(&arrivals, 99)), Found::default(), "once");
}

#[test]
fn reported_and_lost_bytes_are_not_in_the_pipe() {
    let mut board = board(20);
    let arrivals = sack(&mut board, 5, 10, 50);
    assert_eq!((arrivals.delivered, board.pipe(0, 2_000)), (500, 1_500));
    board.detect(0, &rule(&arrivals, 50));
    assert_eq!(board.pipe(0, 2_000), 1_000, "what is lost is not in the network");
    resend(&mut board, 0, 2, 50);
    assert_eq!(board.pipe(0, 2_000), 1_200, "until it is sent again");
    let mut arrivals = Arrivals::default();
    board.acknowledge(0, 600, &clues(60), &mut arrivals);
    assert_eq!((arrivals.delivered, arrivals.unexpected), (500, 300), "three arrived that seemed lost");
    assert_eq!(board.pipe(600, 2_000), 1_000);
}

#[test]
fn a_lost_retransmission_is_found_by_what_was_sent_after_it() {
    let mut board = board(10);
    let arrivals = sack(&mut board, 1, 10, 20);
    board.detect(0, &rule(&arrivals, 20));
    resend(&mut board, 0, 1, 20);
    // New data, sent after the retransmission, arrives; the retransmission does not.
    let serial = board.new_serial();
    board.left_first(11 * MSS, serial, at(21));
    let arrivals = sack(&mut board, 10, 11, 31);
    let found = board.detect(0, &rule(&arrivals, 29));
    assert_eq!((found.again, found.next), (0, Some(at(30))));
    assert_eq!(board.detect(0, &rule(&arrivals, 30)).again, 1);
    assert_eq!(lost(&board), [(0, 1)]);
    // A later retransmission tells as well.
    resend(&mut board, 0, 1, 31);
    assert_eq!(board.detect(0, &rule(&arrivals, 99)).again, 0, "nothing sent later has arrived");
}

#[test]
fn what_has_not_left_is_never_lost() {
    let mut board = board(10);
    let arrivals = sack(&mut board, 1, 10, 20);
    board.detect(0, &rule(&arrivals, 20));
    board.mark_resent(at(20), 0, MSS, 20);
    let serial = board.new_serial();
    board.left_first(11 * MSS, serial, at(21));
    let arrivals = sack(&mut board, 10, 11, 31);
    assert_eq!(board.detect(0, &rule(&arrivals, 999)), Found::default());
    // A first transmission that waits in the device is not even known.
    let bound = board.departures.end_before(u64::MAX, u64::MAX);
    assert_eq!(bound, 11 * MSS);
    board.mark_timed_out(0, 0, at(9_999), None);
    assert_eq!(lost(&board), []);
}

#[test]
fn parts_of_a_retransmission_are_tracked() {
    let mut board = board(9);
    let arrivals = sack(&mut board, 3, 6, 20);
    board.detect(0, &rule(&arrivals, 20));
    resend(&mut board, 0, 3, 20);
    sack(&mut board, 1, 2, 31);
    assert_eq!(board.pipe(0, 600), 200);
    let serial = board.new_serial();
    board.left_first(10 * MSS, serial, at(21));
    let arrivals = sack(&mut board, 9, 10, 40);
    assert_eq!(board.detect(0, &rule(&arrivals, 40)).again, 2, "both remaining parts");
    assert_eq!(lost(&board), [(0, 1), (2, 3), (6, 9)]);
}

#[test]
fn rfc_8985_6_3_a_timeout_takes_only_what_was_long_outstanding() {
    let mut board = board(10);
    board.mark_timed_out(0, MSS, at(14), Some(WAIT));
    assert_eq!(lost(&board), [(0, 4)]);
    board.mark_timed_out(0, MSS, at(14), None);
    assert_eq!(lost(&board), [(0, 10)]);
}

#[test]
fn rfc_3522_the_echo_tells_which_transmission_arrived() {
    for (echo, in_vain) in [(19, true), (20, false), (21, false)] {
        let mut board = board(10);
        let arrivals = sack(&mut board, 1, 10, 20);
        board.detect(0, &rule(&arrivals, 20));
        resend(&mut board, 0, 1, 20);
        board.note_repeat(0, MSS);
        let mut arrivals = Arrivals::default();
        let clues = Clues { echo: Some(echo), fack: 1_000, ..clues(25) };
        board.acknowledge(0, 1_000, &clues, &mut arrivals);
        assert_eq!((board.repeated_in_vain(), arrivals.reordered), (in_vain, in_vain), "echo {echo}");
        assert!(arrivals.resent);
    }
}

#[test]
fn rfc_8985_6_2_2_an_answer_faster_than_the_path_is_ambiguous() {
    for (now, newest) in [(24, None), (25, Some(11))] {
        let mut board = board(10);
        let arrivals = sack(&mut board, 1, 10, 20);
        board.detect(0, &rule(&arrivals, 20));
        resend(&mut board, 0, 1, 20);
        let mut arrivals = Arrivals::default();
        let clues = Clues { least_rtt: Duration::from_millis(5), ..clues(now) };
        board.acknowledge(0, 1_000, &clues, &mut arrivals);
        assert_eq!(arrivals.newest.map(|newest| newest.serial), newest, "at {now}");
    }
}

#[test]
fn what_is_restored_is_in_the_network_again() {
    let mut board = board(10);
    board.mark_timed_out(0, MSS, at(50), None);
    resend(&mut board, 0, 1, 50);
    board.mark_lost(0, 1_000);
    board.restore();
    assert_eq!((board.pipe(0, 1_000), board.next_lost()), (1_000, None));
    let arrivals = sack(&mut board, 9, 10, 60);
    assert!(board.detect(0, &rule(&arrivals, 60)).lost, "and is judged anew");
    assert_eq!(lost(&board), [(1, 9)]);
}

#[test]
fn reneging_shows_when_the_reported_edge_is_not_acknowledged() {
    let mut board = board(5);
    sack(&mut board, 1, 3, 9);
    assert!(!board.is_reneged(0));
    board.acknowledge(0, 100, &clues(9), &mut Arrivals::default());
    assert!(board.is_reneged(100));
    board.forget_reports();
    board.mark_lost(100, 500);
    assert_eq!((board.next_lost(), board.pipe(100, 500)), (Some((100, 500)), 0));
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Fate {
    Sacked,
    Lost,
    Resent,
}

proptest! {
    /// The sets agree with a map of single bytes.
    #[test]
    fn agrees_with_a_map_of_bytes(
        steps in proptest::collection::vec((0u8..6, 0u64..80, 1u64..30), 1..80)
    ) {
        let mut board = Scoreboard::default();
        let mut model: Model<u64, Fate> = Model::new();
        let (mut una, nxt) = (0, 100);
        for (kind, at, len) in steps {
            let (start, end) = (at.max(una), (at + len).min(nxt).max(una));
            let mut arrivals = Arrivals::default();
            let known = |model: &Model<u64, Fate>, to: u64| {
                (una..to).filter(|n| model.get(n) == Some(&Fate::Sacked)).count() as u64
            };
            match kind {
                0 if start < end => {
                    let before = known(&model, nxt);
                    board.sack(start, end, &clues(0), &mut arrivals);
                    (start..end).for_each(|n| { model.insert(n, Fate::Sacked); });
                    prop_assert_eq!(arrivals.delivered, known(&model, nxt) - before);
                }
                1 => {
                    board.mark_lost(start, end);
                    for n in start..end {
                        if model.get(&n) != Some(&Fate::Sacked) { model.insert(n, Fate::Lost); }
                    }
                }
                2 => if let Some((start, end)) = board.next_lost() {
                    let end = end.min(start + len);
                    prop_assert!((start..end).all(|n| model.get(&n) == Some(&Fate::Lost)));
                    resend_bytes(&mut board, start, end);
                    (start..end).for_each(|n| { model.insert(n, Fate::Resent); });
                },
                3 if at > una => {
                    let known = known(&model, at);
                    board.acknowledge(una, at, &clues(0), &mut arrivals);
                    prop_assert_eq!(arrivals.delivered, at - una - known);
                    model.retain(|&n, _| n >= at);
                    una = at;
                }
                5 => {
                    board.restore();
                    model.retain(|_, fate| *fate != Fate::Lost);
                    let again: Vec<_> = board.resent.iter().map(|(at, resent)| at..resent.end).collect();
                    again.into_iter().flatten().for_each(|n| { model.insert(n, Fate::Resent); });
                }
                _ => {}
            }
            let count = |fate| model.values().filter(|&&f| f == fate).count() as u64;
            let resent = board.resent.iter().filter(|(_, r)| !r.lost);
            let resent_bytes: u64 = resent.clone().map(|(start, r)| r.end - start).sum();
            prop_assert_eq!(board.sacked.bytes(), count(Fate::Sacked));
            prop_assert_eq!(board.pipe(una, nxt), nxt - una - count(Fate::Lost) - count(Fate::Sacked));
            prop_assert_eq!(resent_bytes, count(Fate::Resent));
            prop_assert_eq!(board.order.len(), resent.count());
            for (start, again) in board.resent.iter().filter(|(_, r)| r.lost) {
                prop_assert!((start..again.end).all(|n| model.get(&n) == Some(&Fate::Lost)));
            }
        }
    }
}

fn resend_bytes(board: &mut Scoreboard, start: u64, end: u64) {
    let (serial, _) = board.mark_resent(at(1), start, end, 0);
    board.left_again(start, end, serial, at(1));
}

#[test]
fn ten_thousand_holes_cost_what_they_must() {
    // Every second of 20,000 segments is lost: each report and each loss is looked at a bounded number of times.
    const SEGMENTS: u64 = 20_000;
    let mut board = board(SEGMENTS);
    let mut now = SEGMENTS;
    for n in (1..SEGMENTS).step_by(2) {
        now += 1;
        let arrivals = sack(&mut board, n, n + 1, now);
        board.detect(0, &rule(&arrivals, now));
    }
    assert_eq!(board.lost_bytes(), SEGMENTS / 2 * MSS);
    assert!(board.steps <= 3 * SEGMENTS / 2, "{} steps", board.steps);
    board.steps = 0;
    // All of them are sent again, and every tenth of these is lost again.
    while let Some((start, end)) = board.next_lost() {
        now += 1;
        resend(&mut board, start / MSS, end / MSS, now);
    }
    now += 1_000;
    for n in (0..SEGMENTS).step_by(2).filter(|n| n % 20 != 0) {
        let arrivals = sack(&mut board, n, n + 1, now);
        board.detect(0, &rule(&arrivals, now));
    }
    assert_eq!(board.lost_bytes(), SEGMENTS / 20 * MSS);
    assert!(board.steps <= 3 * SEGMENTS / 2, "{} steps", board.steps);
}
