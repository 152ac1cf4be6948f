//! Who is admitted, who gives way, and that the lists agree with a plain model.

use super::*;
use alloc::format;
use alloc::string::ToString;
use core::net::{IpAddr, Ipv4Addr};
use proptest::prelude::*;

fn source(n: u32) -> Source {
    Source::of(IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + n)))
}

fn id(n: u32) -> ConnId {
    ConnId::new(n, 0)
}

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

/// Admits `count` connections of one source, numbered from `first` on.
fn fill(admission: &mut Admission, from: u32, first: u32, count: u32) {
    for n in first..first + count {
        assert_eq!(admission.judge(source(from), |_| true), Verdict::Admit);
        admission.add(id(n), source(from), at(u64::from(n)));
    }
}

#[test]
fn a_newcomer_takes_the_place_of_who_waited_longest_of_the_largest_source() {
    let mut admission = Admission::new(20, 15);
    fill(&mut admission, 1, 0, 3);
    fill(&mut admission, 2, 3, 15);
    assert_eq!(admission.judge(source(3), |_| true), Verdict::Replace(id(3)));
    admission.remove(id(3));
    // Whoever did something meanwhile goes later.
    admission.place(id(4), Standing::Waiting, at(500));
    admission.add(id(3), source(3), at(501));
    assert_eq!(admission.judge(source(3), |_| true), Verdict::Replace(id(5)));
    let report = admission.report(at(600)).unwrap();
    assert_eq!((report.source, report.held, report.gave_way, report.refused), (source(2), 14, 2, 0));
    assert!(
        report.to_string().contains("18 of 20 connections were in use, 14 of 15 by 10.0.0.2"),
        "{report}"
    );
    assert_eq!(admission.report(at(700)), None, "nothing since then");
    assert!(matches!(admission.judge(source(3), |_| true), Verdict::Replace(_)));
    assert_eq!(admission.report(at(10_599)), None, "once in ten seconds");
    assert!(admission.report(at(10_600)).is_some());
}

#[test]
fn a_source_at_its_limit_pays_for_its_newcomers_itself() {
    let mut admission = Admission::new(100, 5);
    fill(&mut admission, 1, 0, 3);
    fill(&mut admission, 2, 3, 5);
    assert_eq!(admission.judge(source(2), |_| true), Verdict::Replace(id(3)));
    assert_eq!(admission.judge(source(2), |_| false), Verdict::SourceFull);
    assert_eq!(admission.judge(source(1), |_| false), Verdict::Admit);
}

#[test]
fn a_report_tells_how_full_it_was_when_somebody_gave_way() {
    let mut admission = Admission::new(20, 20);
    fill(&mut admission, 1, 0, 17);
    fill(&mut admission, 2, 17, 1);
    assert_eq!(admission.judge(source(3), |_| true), Verdict::Replace(id(0)));
    // The load has gone by the time of the report, but for one.
    (0..17).for_each(|n| admission.remove(id(n)));
    let report = admission.report(at(100)).unwrap();
    assert_eq!((report.used, report.source, report.held, report.gave_way), (18, source(1), 17, 1));
    assert_eq!(
        report.to_string(),
        "since the last report 1 gave way to newcomers and 0 newcomers were refused; at the last of them 18 of 20 connections were \
         in use, 17 of 20 by 10.0.0.1, which held the most"
    );
    // Whoever pays for his own newcomers holds the most himself.
    let mut admission = Admission::new(100, 5);
    fill(&mut admission, 1, 0, 5);
    assert_eq!(admission.judge(source(1), |_| false), Verdict::SourceFull);
    (0..5).for_each(|n| admission.remove(id(n)));
    let report = admission.report(at(100)).unwrap();
    assert_eq!((report.used, report.source, report.held, report.refused), (5, source(1), 5, 1));
}

/// Counts for crowds in one thread.
#[derive(Clone, Default)]
struct Book(alloc::rc::Rc<core::cell::RefCell<BTreeMap<Source, usize>>>);

impl Census for Book {
    fn total(&self) -> usize {
        self.0.borrow().values().sum()
    }

    fn held_by(&self, source: Source) -> usize {
        self.0.borrow().get(&source).copied().unwrap_or_default()
    }

    fn change(&self, source: Source, comes: bool) {
        let mut book = self.0.borrow_mut();
        let count = book.entry(source).or_default();
        *count = if comes { *count + 1 } else { *count - 1 };
    }
}

#[test]
fn crowds_that_share_their_limits_count_together_and_choose_among_their_own() {
    let book = Book::default();
    let mut crowds = [(); 2].map(|()| {
        let mut crowd = Admission::new(20, 6);
        crowd.share(Box::new(book.clone()));
        crowd
    });
    // A source may hold six, three here and three there.
    for n in 0..6 {
        fill(&mut crowds[n as usize % 2], 1, n, 1);
    }
    assert_eq!(crowds[0].judge(source(1), |_| false), Verdict::SourceFull);
    assert_eq!(crowds[1].judge(source(1), |_| true), Verdict::Replace(id(1)), "one of its own");
    for n in 6..20 {
        crowds[0].add(id(n), source(n), at(u64::from(n)));
    }
    // All places are taken. The second crowd has somebody who can go, and only if he may.
    assert_eq!((book.total(), crowds[0].len(), crowds[1].len()), (20, 17, 3));
    assert_eq!(crowds[1].judge(source(30), |_| true), Verdict::Replace(id(1)));
    assert_eq!(crowds[1].judge(source(30), |_| false), Verdict::Full);
    let report = crowds[1].report(at(0)).unwrap().to_string();
    assert!(report.contains("20 of 20 connections were in use"), "{report}");
    // What goes in one makes room in the other.
    for n in 6..10 {
        crowds[0].remove(id(n));
    }
    assert_eq!(crowds[1].judge(source(30), |_| false), Verdict::Admit);
    assert_eq!(book.total(), 16);
}

#[test]
fn many_sources_with_one_each_lose_the_oldest() {
    let mut admission = Admission::new(100, 50);
    for n in 0..90 {
        fill(&mut admission, n, n, 1);
    }
    assert_eq!(admission.judge(source(1_000), |_| true), Verdict::Replace(id(0)));
    assert_eq!(admission.judge(source(1_000), |conn| conn.index() > 5), Verdict::Replace(id(6)));
    // Nobody can go: the last tenth is used up, and then it is full.
    for n in 90..100 {
        assert_eq!(admission.judge(source(n), |_| false), Verdict::Admit);
        admission.add(id(n), source(n), at(0));
    }
    assert_eq!(admission.judge(source(1_000), |_| false), Verdict::Full);
}

#[test]
fn who_is_busy_stays_and_who_moves_goes_after_who_waits() {
    let mut admission = Admission::new(10, 10);
    fill(&mut admission, 1, 0, 9);
    for n in 0..8 {
        admission.place(id(n), if n < 6 { Standing::Busy } else { Standing::Moving }, at(100));
    }
    assert_eq!(admission.judge(source(2), |_| true), Verdict::Replace(id(8)));
    admission.remove(id(8));
    admission.add(id(8), source(2), at(200));
    assert_eq!(admission.judge(source(3), |_| true), Verdict::Replace(id(8)), "whoever waits");
    admission.place(id(8), Standing::Busy, at(250));
    assert_eq!(admission.judge(source(3), |_| true), Verdict::Replace(id(6)));
    assert_eq!(admission.judge(source(3), |conn| conn != id(6)), Verdict::Replace(id(7)));
    for n in 6..9 {
        admission.place(id(n), Standing::Busy, at(300));
    }
    assert_eq!(admission.judge(source(3), |_| true), Verdict::Admit);
    admission.add(id(9), source(3), at(400));
    admission.place(id(9), Standing::Busy, at(400));
    assert_eq!(admission.judge(source(3), |_| true), Verdict::Full);
}

#[test]
fn two_connections_are_no_greed_in_a_crowd_of_single_ones() {
    let mut admission = Admission::new(100, 50);
    fill(&mut admission, 1_000, 0, 2);
    admission.place(id(0), Standing::Moving, at(0));
    for n in 2..90 {
        fill(&mut admission, n, n, 1);
    }
    assert_eq!(admission.judge(source(2_000), |_| true), Verdict::Replace(id(1)), "the oldest that waits");
    admission.place(id(1), Standing::Busy, at(1_000));
    assert_eq!(admission.judge(source(1_000), |_| true), Verdict::Replace(id(2)));
    // With more than a few, a source pays for itself as long as it has somebody who waits.
    for n in 90..97 {
        admission.add(id(n), source(1_000), at(2_000));
    }
    assert_eq!(admission.judge(source(1_000), |_| true), Verdict::Replace(id(90)));
    for n in 90..97 {
        admission.place(id(n), Standing::Busy, at(2_000));
    }
    assert_eq!(admission.judge(source(1_000), |_| true), Verdict::Replace(id(2)));
}

#[test]
fn an_id_that_outlived_its_connection_changes_nothing() {
    let mut admission = Admission::new(10, 10);
    fill(&mut admission, 1, 0, 1);
    admission.remove(id(0));
    admission.add(ConnId::new(0, 1), source(2), at(0));
    admission.remove(id(0));
    admission.place(id(0), Standing::Busy, at(5));
    assert_eq!((admission.len(), admission.held_by(source(1)), admission.held_by(source(2))), (1, 0, 1));
}

proptest! {
    /// Against a plain list of (slot, source, standing), the oldest first.
    #[test]
    fn it_agrees_with_a_plain_list(steps in proptest::collection::vec((0u32..12, 0u32..4, 0u8..6), 0..300)) {
        let mut admission = Admission::new(8, 5);
        let mut model: Vec<(u32, u32, Standing)> = Vec::new();
        for (step, (slot, from, op)) in steps.into_iter().enumerate() {
            let known = model.iter().position(|entry| entry.0 == slot);
            match op {
                0 | 1 if known.is_none() => {
                    admission.add(id(slot), source(from), at(step as u64));
                    model.push((slot, from, Standing::Waiting));
                }
                2 => {
                    admission.remove(id(slot));
                    model.retain(|entry| entry.0 != slot);
                }
                3 | 4 => {
                    let standing =
                        [Standing::Waiting, Standing::Moving, Standing::Busy][from.min(2) as usize];
                    admission.place(id(slot), standing, at(1_000 + step as u64));
                    if let Some(known) = known {
                        let (slot, from, _) = model.remove(known);
                        model.push((slot, from, standing));
                    }
                }
                _ => {
                    let of = |wanted: Option<u32>| {
                        let oldest = |standing| {
                            let fits = |entry: &&(u32, u32, Standing)| {
                                wanted.is_none_or(|from| entry.1 == from) && entry.2 == standing
                            };
                            model.iter().find(fits).map(|entry| entry.0)
                        };
                        oldest(Standing::Waiting).or(oldest(Standing::Moving))
                    };
                    let held = |from| model.iter().filter(|entry| entry.1 == from).count();
                    let verdict = admission.judge(source(from), |_| true);
                    if held(from) >= 5 {
                        let own = of(Some(from));
                        prop_assert_eq!(verdict, own.map_or(Verdict::SourceFull, |n| Verdict::Replace(id(n))));
                    } else if model.len() < 8 {
                        prop_assert_eq!(verdict, Verdict::Admit);
                    } else if let Verdict::Replace(victim) = verdict {
                        let owner = model.iter().find(|entry| entry.0 == victim.index()).unwrap().1;
                        let is_oldest = of(Some(owner)) == Some(victim.index()) || of(None) == Some(victim.index());
                        prop_assert!(is_oldest, "{:?} of {:?}", victim, model);
                    }
                }
            }
            prop_assert_eq!(admission.len(), model.len());
            for from in 0..4 {
                let held = model.iter().filter(|entry| entry.1 == from).count();
                prop_assert_eq!(admission.held_by(source(from)), held);
            }
        }
        let _ = format!("{admission:?}");
    }
}
