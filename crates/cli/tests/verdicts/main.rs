//! Scenarios with one limit each, and whether the verdict names it. What it misses stands in the table with the reason.
//!
//! The injected limit is something that was changed in a network which otherwise gets near its rate. Times are virtual.
//! `LINERATE_VERDICTS=1 cargo test --release -p linerate-cli --test verdicts -- --nocapture` prints every verdict.

mod held_out;
mod table;

use linerate_lab::scenario::{self, load, verdict};
use std::thread;

/// One injected limit.
pub struct Case {
    /// What was injected, and where.
    pub name: &'static str,
    /// The scenario.
    pub scenario: &'static str,
    /// The bottlenecks that name it.
    pub expected: &'static [&'static str],
    /// Why the verdict is another, where it is known to be.
    pub missed: Option<&'static str>,
}

/// A case whose verdict names the limit.
const fn case(name: &'static str, expected: &'static [&'static str], scenario: &'static str) -> Case {
    Case { name, scenario, expected, missed: None }
}

/// What the verdict of a case says.
fn judge(case: &Case) -> (bool, String) {
    let scenario = match load::parse(case.scenario) {
        Ok(scenario) => scenario,
        Err(mistake) => panic!("{}: {mistake}", case.name),
    };
    let outcome = scenario::simulate(&scenario, None);
    let found = verdict::of(&outcome, &outcome.flows[0]);
    let text = format!(
        "{}: {}\n    {:.2} Mbit/s, {}\n    {}",
        case.name,
        found.bottleneck,
        outcome.flows[0].goodput_bps() / 1e6,
        found.because,
        found.advice
    );
    (case.expected.contains(&found.bottleneck), text)
}

/// Judges all cases on all processors; returns how many verdicts are right.
fn judge_all(cases: &[Case]) -> usize {
    let threads = thread::available_parallelism().map_or(1, |count| count.get()).min(8);
    let results: Vec<(usize, bool, String)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|worker| {
                scope.spawn(move || {
                    let own = cases.iter().enumerate().skip(worker).step_by(threads);
                    own.map(|(index, case)| {
                        let (is_right, text) = judge(case);
                        (index, is_right, text)
                    })
                    .collect::<Vec<_>>()
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let talks = std::env::var_os("LINERATE_VERDICTS").is_some();
    let mut right = 0;
    let mut wrong = Vec::new();
    for (index, is_right, text) in results {
        let case = &cases[index];
        right += usize::from(is_right);
        if talks {
            println!("{} {text}", if is_right { "right" } else { "WRONG" });
        }
        if is_right && case.missed.is_some() {
            wrong.push(format!("listed as missed, but named: {text}"));
        } else if !is_right && case.missed.is_none() {
            wrong.push(format!("expected {:?}: {text}", case.expected));
        }
    }
    assert!(wrong.is_empty(), "{} of {} right\n{}", right, cases.len(), wrong.join("\n"));
    right
}

#[test]
fn the_verdict_names_what_was_injected() {
    let right = judge_all(table::CASES);
    assert!(table::CASES.len() >= 40);
    assert!(right * 100 >= table::CASES.len() * 95, "{right} of {}", table::CASES.len());
}

#[test]
fn the_verdict_names_what_was_injected_elsewhere() {
    judge_all(held_out::CASES);
}
