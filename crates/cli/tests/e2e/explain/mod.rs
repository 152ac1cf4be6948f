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
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Cases at a time: they wait most of the time.
const WORKERS: usize = 4;
/// How often a case is tried whose accounts do not bear out the cause, as the machine was busy with something else.
const TRIES: usize = 3;

/// A case and what came of it.
struct Judged {
    case: Case,
    borne_out: Result<(), String>,
    capture: Vec<u8>,
}

fn judge(case: Case) -> Judged {
    let mut judged = None;
    for _ in 0..TRIES {
        let folder = Folder::new();
        std::fs::write(folder.file("ends.py"), include_str!("ends.py")).expect("a file");
        let ran = bench::run(&case, std::path::Path::new(folder.path()));
        let found = Accounts::of(&case, &ran);
        let borne_out = found.bear_out(&case);
        if std::env::var_os("LINERATE_EXPLAIN").is_some() {
            println!("{}, {}: {found:.3?}", case.cause, case.name);
        }
        let is_done = borne_out.is_ok();
        judged = Some(Judged { case: case.clone(), borne_out, capture: ran.capture });
        if is_done {
            break;
        }
    }
    judged.expect("at least one try")
}

fn judge_all(cases: Vec<Case>) -> Vec<Judged> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let judged = judge(case.clone());
                    done.lock().expect("no worker panics").push(judged);
                }
            });
        }
    });
    done.into_inner().expect("no worker panicked")
}

fn chosen(keep: impl Fn(&Case) -> bool) -> Vec<Case> {
    let word = std::env::var("LINERATE_EXPLAIN_CASES").unwrap_or_default();
    let named = |case: &Case| case.cause.name().contains(&word) || case.name.contains(&word);
    cases::cases().into_iter().filter(|case| keep(case) && named(case)).collect()
}

fn file_name(case: &Case) -> String {
    let text = format!("{}-{}.pcap", case.cause.name(), case.name);
    text.chars().map(|c| if c.is_alphanumeric() || ".-".contains(c) { c } else { '_' }).collect()
}

fn run(cases: Vec<Case>) {
    let judged = judge_all(cases);
    let mut wrong = Vec::new();
    for one in &judged {
        if let Some(folder) = std::env::var_os("LINERATE_EXPLAIN") {
            let file = PathBuf::from(folder).join(file_name(&one.case));
            std::fs::write(file, &one.capture).expect("the capture is written");
        }
        if let Err(why) = &one.borne_out {
            wrong.push(format!("{}, {}: {why}", one.case.cause, one.case.name));
        }
    }
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), judged.len(), wrong.join("\n"));
}

#[test]
fn explain_names_causes_between_kernels() {
    run(chosen(|case| case.quick));
}

/// All: `cargo test -p linerate-cli --test e2e -- --ignored --nocapture explain_names_every`.
#[test]
#[ignore = "minutes, for the figures in the documentation"]
fn explain_names_every_cause_between_kernels() {
    run(chosen(|_| true));
}
