//! The scoreboard against a plain model.

use super::*;
use alloc::collections::BTreeMap as Model;
use alloc::vec;
use alloc::vec::Vec;
use proptest::prelude::*;

const MSS: u64 = 100;

/// Reports `blocks` one after the other with `una` 0 and 20 segments in flight; gives the lost ranges in order.
fn check(blocks: &[(u64, u64)], lost: &[(u64, u64)]) {
    let mut board = Scoreboard::default();
    for &(start, end) in blocks {
        board.sack(start * MSS, end * MSS);
        board.judge(0, MSS);
    }
    let mut found = Vec::new();
    while let Some((start, end)) = board.next_lost() {
        found.push((start / MSS, end / MSS));
        board.mark_resent(start, end, 20 * MSS, 1);
    }
    assert_eq!(found, lost, "{blocks:?}");
}

#[test]
fn three_segments_above_make_a_loss() {
    check(&[(1, 2)], &[]);
    check(&[(1, 2), (2, 3)], &[]);
    check(&[(1, 2), (2, 3), (3, 4)], &[(0, 1)]);
    check(&[(1, 4)], &[(0, 1)]);
    // The same report again is no news.
    check(&[(1, 2), (1, 2), (1, 2), (1, 2)], &[]);
    // Three ranges (RFC 6675 IsLost), the second hole has only two above it.
    check(&[(1, 2), (3, 4), (5, 6)], &[(0, 1)]);
    check(&[(1, 2), (3, 4), (5, 8)], &[(0, 1), (2, 3), (4, 5)]);
}

#[test]
fn reported_bytes_are_not_in_the_pipe() {
    let mut board = Scoreboard::default();
    board.sack(500, 1_000);
    assert_eq!(board.pipe(0, 2_000), 1_500);
    board.judge(0, MSS);
    assert_eq!(board.pipe(0, 2_000), 1_000, "what is lost is not in the network");
    board.mark_resent(0, 200, 2_000, 2);
    assert_eq!(board.pipe(0, 2_000), 1_200, "until it is sent again");
    assert_eq!(board.acknowledge(0, 600), 500);
    assert_eq!(board.pipe(600, 2_000), 1_000);
}

#[test]
fn a_lost_retransmission_is_found_by_newer_data() {
    let mut board = Scoreboard::default();
    board.sack(100, 1_000);
    assert_eq!(board.judge(0, MSS), (true, 0));
    board.mark_resent(0, 100, 1_000, 1);
    board.sack(1_000, 1_200);
    assert_eq!(board.judge(0, MSS), (false, 0), "two segments beyond the fence do not tell yet");
    board.sack(1_200, 1_300);
    assert_eq!(board.judge(0, MSS), (false, 1));
    assert_eq!(board.next_lost(), Some((0, 100)));
}

#[test]
fn a_lost_retransmission_is_found_by_later_ones() {
    let mut board = Scoreboard::default();
    for hole in 0..5 {
        board.sack(hole * 200 + 100, hole * 200 + 200);
    }
    board.sack(1_000, 2_000);
    board.judge(0, MSS);
    for hole in 0..5 {
        assert_eq!(board.next_lost(), Some((hole * 200, hole * 200 + 100)));
        board.mark_resent(hole * 200, hole * 200 + 100, 2_000, 1);
    }
    board.sack(200, 300);
    board.sack(400, 500);
    assert_eq!(board.judge(0, MSS), (false, 0));
    board.sack(600, 700);
    assert_eq!(board.judge(0, MSS), (false, 1));
    assert_eq!(board.next_lost(), Some((0, 100)));
}

#[test]
fn parts_of_a_retransmission_are_tracked() {
    let mut board = Scoreboard::default();
    board.sack(300, 600);
    board.judge(0, MSS);
    board.mark_resent(0, 300, 600, 3);
    board.sack(100, 200);
    assert_eq!(board.pipe(0, 600), 200);
    board.sack(600, 900);
    assert_eq!(board.judge(0, MSS), (false, 2), "both remaining parts");
    assert_eq!(board.next_lost(), Some((0, 100)));
    board.mark_resent(0, 100, 900, 1);
    assert_eq!(board.next_lost(), Some((200, 300)));
}

#[test]
fn reneging_shows_when_the_reported_edge_is_not_acknowledged() {
    let mut board = Scoreboard::default();
    board.sack(100, 300);
    assert!(!board.is_reneged(0));
    board.acknowledge(0, 100);
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
    /// The sets stay disjoint and agree with a map of single bytes.
    #[test]
    fn agrees_with_a_map_of_bytes(
        steps in proptest::collection::vec((0u8..5, 0u64..80, 1u64..30), 1..80)
    ) {
        let mut board = Scoreboard::default();
        let mut model: Model<u64, Fate> = Model::new();
        let (mut una, nxt) = (0, 100);
        for (kind, at, len) in steps {
            let (start, end) = (at.max(una), (at + len).min(nxt).max(una));
            match kind {
                0 if start < end => {
                    board.sack(start, end);
                    (start..end).for_each(|n| { model.insert(n, Fate::Sacked); });
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
                    board.mark_resent(start, end, nxt, 1);
                    (start..end).for_each(|n| { model.insert(n, Fate::Resent); });
                },
                3 if at > una => {
                    let known = (una..at).filter(|n| model.get(n) == Some(&Fate::Sacked)).count() as u64;
                    prop_assert_eq!(board.acknowledge(una, at), at - una - known);
                    model.retain(|&n, _| n >= at);
                    una = at;
                }
                _ => {}
            }
            let lost = model.values().filter(|&&f| f == Fate::Lost).count() as u64;
            let sacked = model.values().filter(|&&f| f == Fate::Sacked).count() as u64;
            let resent: u64 = board.resent.iter().map(|(start, r)| r.end - start).sum();
            prop_assert_eq!(board.sacked_bytes(), sacked);
            prop_assert_eq!(board.pipe(una, nxt), nxt - una - lost - sacked);
            prop_assert_eq!(resent, model.values().filter(|&&f| f == Fate::Resent).count() as u64);
            prop_assert_eq!(board.order.len(), board.resent.len());
        }
    }
}

#[test]
fn ten_thousand_holes_cost_what_they_must() {
    // 4 MiB in flight in segments of 536 bytes, every second one lost: the judging cursor passes each hole once.
    let mut board = Scoreboard::default();
    let segments = (4 << 20) / 536;
    for n in (1..segments).step_by(2) {
        board.sack(n * 536, (n + 1) * 536);
        board.judge(0, 536);
    }
    let mut order = vec![];
    while let Some((start, end)) = board.next_lost() {
        order.push(start);
        board.mark_resent(start, end, segments * 536, 1);
    }
    assert_eq!(
        order.len() as u64,
        segments / 2 - 2,
        "all but the last holes, which have too little above them"
    );
    assert!(order.is_sorted());
}
