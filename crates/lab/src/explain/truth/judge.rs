//! Puts the capture of a case before the explanation, and nothing else.

use super::accounts::Accounts;
use super::cases::Case;
use super::matrix::Judged;
use super::run::run;
use crate::explain::cause::Cause;
use crate::explain::{analyse, verdict::Verdict};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// A case of the simulator that was run and judged.
#[derive(Clone, Debug)]
pub struct Tried {
    /// What was injected, and what the verdict on the capture names.
    pub judged: Judged,
    /// The verdict in words.
    pub verdict: String,
    /// What ends and path counted; `None` where nothing was transferred.
    pub accounts: Option<Accounts>,
    /// The capture.
    pub capture: Vec<u8>,
}

/// What the explanation names, its runner-up, and why, of the connection with the most bytes of a capture.
///
/// # Errors
/// The capture cannot be read, or holds no connection.
pub fn verdict(capture: &[u8]) -> Result<Verdict, String> {
    let analysis = analyse(capture).map_err(|error| error.to_string())?;
    let first = analysis.connections.into_iter().next();
    first.map(|connection| connection.verdict).ok_or_else(|| "no connection in the capture".to_owned())
}

/// Runs and judges a case of the simulator.
pub fn try_case(case: &Case) -> Tried {
    let ran = run(case);
    let accounts = Accounts::of(&ran.outcome);
    let (judged, verdict) = judge(case.cause, &case.name, case.held_out, &ran.capture);
    Tried { judged, verdict, accounts, capture: ran.capture }
}

/// Judges a capture; one that cannot be read is judged as unknown, with the reason in place of the verdict's.
pub fn judge(cause: Cause, name: &str, held_out: bool, capture: &[u8]) -> (Judged, String) {
    let (found, runner_up, text) = match verdict(capture) {
        Ok(verdict) => {
            let text = format!("{:.2} {}", verdict.confidence, verdict.because.join(" "));
            (verdict.cause, verdict.runner_up, text)
        }
        Err(why) => (Cause::Unknown, None, why),
    };
    (Judged { cause, name: name.to_owned(), held_out, found, runner_up }, text)
}

/// Tries all `cases`, on all processors; results in their order.
pub fn try_all(cases: &[Case]) -> Vec<Tried> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let workers = thread::available_parallelism().map_or(1, usize::from).min(8);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(index) else { break };
                    let tried = try_case(case);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((index, tried));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, tried)| tried).collect()
}
