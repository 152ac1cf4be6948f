//! Whether explanations name causes that were injected in the simulator, from the capture alone.
//!
//! | variable | meaning |
//! |---|---|
//! | `LINERATE_EXPLAIN` | a folder into which all captures are written |

use linerate_lab::explain::cause::Cause;
use linerate_lab::explain::truth::judge::Tried;
use linerate_lab::explain::truth::matrix::{Judged, Score, markdown, summary};
use linerate_lab::explain::truth::{accounts, cases, judge};
use std::path::Path;

/// The share of verdicts that must be right.
const RIGHT: f64 = 0.95;
/// The same of those written afterwards: 22 of 24 when they first ran, and one case is 4 %.
const RIGHT_AFTERWARDS: f64 = 0.9;
/// Cases of each cause, and how many of them must be right at least.
const EACH: Score = Score { right: 8, all: 10 };

#[test]
fn verdicts_name_what_was_injected() {
    let tried = judge::try_all(&cases::cases().unwrap());
    if let Some(folder) = std::env::var_os("LINERATE_EXPLAIN") {
        for one in &tried {
            let name = format!("{}-{}.pcapng", one.judged.cause.name(), one.judged.name);
            let name = name.replace(|c: char| !(c.is_alphanumeric() || ".-".contains(c)), "_");
            std::fs::write(Path::new(&folder).join(name), &one.capture).unwrap();
        }
    }
    what_was_injected_is_what_limited(&tried);
    let judged: Vec<Judged> = tried.iter().map(|one| one.judged.clone()).collect();
    println!("{}\n{}", markdown(&judged), summary(&judged));
    for one in tried.iter().filter(|one| !one.judged.is_right()) {
        println!("{}, {}: {}: {}", one.judged.cause, one.judged.name, one.judged.found, one.verdict);
    }
    for cause in Cause::INJECTED {
        let score = Score::of(&judged, |one| one.cause == cause);
        assert_eq!(score.all, EACH.all, "{cause}");
        assert!(score.right >= EACH.right, "{cause}: {score}");
    }
    for held_out in [false, true] {
        let score = Score::of(&judged, |one| one.held_out == held_out);
        assert_eq!(score.all, 60);
        assert!(score.share() >= RIGHT, "held out: {held_out}: {score}");
    }
}

/// The accounts bear out the cause that was injected, and no other.
fn what_was_injected_is_what_limited(tried: &[Tried]) {
    let mut wrong = Vec::new();
    for one in tried {
        let accounts = one.accounts.expect("something was transferred");
        for cause in Cause::INJECTED {
            let borne_out = accounts::bear_out(cause, &accounts);
            if borne_out.is_ok() != (cause == one.judged.cause) {
                wrong.push(format!("{}, {}: {cause}: {borne_out:?}", one.judged.cause, one.judged.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn verdicts_name_what_was_injected_afterwards() {
    let tried = judge::try_all(&cases::afterwards().unwrap());
    what_was_injected_is_what_limited(&tried);
    let judged: Vec<Judged> = tried.iter().map(|one| one.judged.clone()).collect();
    println!("{}\n{}", markdown(&judged), summary(&judged));
    let score = Score::of(&judged, |_| true);
    assert!(score.share() >= RIGHT_AFTERWARDS, "{score}");
}
