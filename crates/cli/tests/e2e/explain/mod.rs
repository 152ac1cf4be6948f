//! Whether explanations name causes that were injected between two kernels, from the capture alone.
//!
//! | variable | meaning |
//! |---|---|
//! | `LINERATE_EXPLAIN` | a folder into which captures and verdicts are written |
//! | `LINERATE_EXPLAIN_CASES` | only cases whose cause or name contains this |

mod accounts;
mod bench;
mod cases;
mod relay;

use crate::data::Folder;
use accounts::Accounts;
use cases::Case;
use linerate_lab::explain::truth::judge::judge;
use linerate_lab::explain::truth::matrix::{Judged, Score, markdown, summary};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Cases at a time: they wait most of the time.
const WORKERS: usize = 4;
/// How often a case is tried whose accounts do not bear out the cause, as the machine was busy with something else.
const TRIES: usize = 3;

/// Share of the cases that must be borne out by the accounts; what was not limited by what was injected is no case.
const BORNE_OUT: f64 = 0.8;
/// Share of the verdicts on the short form's cases that must be right: three of them may be wrong on a machine that is busy.
const RIGHT_QUICK: f64 = 0.85;
/// The same of all cases.
const RIGHT: f64 = 0.95;

/// A case and what came of it.
struct Tried {
    judged: Judged,
    verdict: String,
    borne_out: Result<(), String>,
    capture: Vec<u8>,
}

fn try_case(case: &Case) -> Tried {
    let mut tried = None;
    for _ in 0..TRIES {
        let folder = Folder::new();
        std::fs::write(folder.file("ends.py"), include_str!("ends.py")).expect("a file");
        let ran = bench::run(case, Path::new(folder.path()));
        let found = Accounts::of(case, &ran);
        let borne_out = found.bear_out(case);
        let is_done = borne_out.is_ok();
        let (judged, verdict) = judge(case.cause, &case.name, case.held_out, &ran.capture);
        if !judged.is_right() {
            println!("{}, {}: {}: {verdict}\n    {found:.3?}", case.cause, case.name, judged.found);
        }
        tried = Some(Tried { judged, verdict, borne_out, capture: ran.capture });
        if is_done {
            break;
        }
    }
    tried.expect("at least one try")
}

fn try_all(cases: &[Case]) -> Vec<Tried> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(index) else { break };
                    let tried = try_case(case);
                    done.lock().expect("no worker panics").push((index, tried));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no worker panicked");
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, tried)| tried).collect()
}

fn chosen(keep: impl Fn(&Case) -> bool) -> Vec<Case> {
    let word = std::env::var("LINERATE_EXPLAIN_CASES").unwrap_or_default();
    let named = |case: &Case| case.cause.name().contains(&word) || case.name.contains(&word);
    cases::cases().into_iter().filter(|case| keep(case) && named(case)).collect()
}

/// Writes captures, what the verdicts said, and `kernel.json` for the documentation.
fn keep(folder: &Path, tried: &[Tried], judged: &[Judged]) {
    let mut said = String::new();
    for Tried { judged: one, verdict, capture, .. } in tried {
        let name = format!("{}-{}.pcap", one.cause.name(), one.name);
        let name = name.replace(|c: char| !(c.is_alphanumeric() || ".-".contains(c)), "_");
        std::fs::write(folder.join(&name), capture).expect("the capture is written");
        let _ = writeln!(said, "{name}: {}: {verdict}", one.found);
    }
    std::fs::write(folder.join("verdicts.txt"), said).expect("the verdicts are written");
    let json = serde_json::to_vec_pretty(judged).expect("plain data");
    std::fs::write(folder.join("kernel.json"), json).expect("the verdicts are written");
}

fn run(cases: &[Case], right: f64) {
    let tried = try_all(cases);
    let is_case = |one: &&Tried| match &one.borne_out {
        Ok(()) => true,
        Err(why) => {
            println!("no case: {}, {}: {why}", one.judged.cause, one.judged.name);
            false
        }
    };
    let judged: Vec<Judged> = tried.iter().filter(is_case).map(|one| one.judged.clone()).collect();
    println!("{}\n{}", markdown(&judged), summary(&judged));
    if let Some(folder) = std::env::var_os("LINERATE_EXPLAIN") {
        keep(Path::new(&folder), &tried, &judged);
    }
    assert!(judged.len() as f64 >= BORNE_OUT * cases.len() as f64, "{} of {}", judged.len(), cases.len());
    let score = Score::of(&judged, |_| true);
    assert!(score.share() >= right, "{score}");
}

#[test]
fn explain_names_causes_between_kernels() {
    run(&chosen(|case| case.quick), RIGHT_QUICK);
}

/// All: `cargo test -p linerate-cli --test e2e -- --ignored --nocapture explain_names_every`.
#[test]
#[ignore = "minutes, for the figures in the documentation"]
fn explain_names_every_cause_between_kernels() {
    run(&chosen(|_| true), RIGHT);
}
