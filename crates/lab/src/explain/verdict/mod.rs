//! What is said of a connection: its cause with the arithmetic.

mod advice;
mod because;
pub mod failed;
mod judge;

use super::cause::Cause;
use super::evidence::Evidence;
use super::wait::Wait;
use serde::Serialize;

/// A share of the time of a transfer.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Share {
    /// What the sender waited for.
    pub wait: Wait,
    /// The same in words.
    pub what: String,
    /// 0 to 1.
    pub of_time: f64,
}

/// What limited a connection.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Verdict {
    /// What limited it most of the time.
    pub cause: Cause,
    /// What would have been said, had the closest comparison gone the other way.
    pub runner_up: Option<Cause>,
    /// How far the closest comparison was from going the other way: 0 not at all, 1 by as much as it compares with.
    pub confidence: f64,
    /// The arithmetic, a sentence each.
    pub because: Vec<String>,
    /// What to do about it.
    pub advice: String,
    /// Where the time of the sender went, the largest share first.
    pub shares: Vec<Share>,
    /// What would tell more, where the capture does not.
    pub would_tell: Option<String>,
}

impl Verdict {
    /// The judgement of one direction by its evidence.
    pub fn of(evidence: &Evidence) -> Verdict {
        let judgement = judge::judge(evidence);
        Verdict {
            cause: judgement.cause,
            runner_up: judgement.rival.filter(|rival| *rival != judgement.cause),
            confidence: judgement.margin,
            because: because::sentences(evidence, &judgement),
            advice: advice::advice(judgement.cause, evidence),
            shares: shares(evidence),
            would_tell: judgement.would_tell,
        }
    }
}

/// Shares that are worth a line.
const WORTH: f64 = 0.005;

fn shares(evidence: &Evidence) -> Vec<Share> {
    let all = Wait::ALL.iter().zip(evidence.waits).filter(|(_, of_time)| *of_time >= WORTH);
    let mut shares: Vec<Share> =
        all.map(|(wait, of_time)| Share { wait: *wait, what: wait.name().to_owned(), of_time }).collect();
    shares.sort_by(|a, b| b.of_time.total_cmp(&a.of_time));
    shares
}
