//! What is said of a connection: its cause with the arithmetic.

use super::cause::Cause;
use serde::Serialize;

/// A share of the time of a transfer.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Share {
    /// What the sender waited for, or did.
    pub what: String,
    /// 0 to 1.
    pub of_time: f64,
}

/// What limited a connection.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Verdict {
    /// What limited it most of the time.
    pub cause: Cause,
    /// What would have been said without that.
    pub runner_up: Option<Cause>,
    /// How sure that is, 0 to 1: how far the evidence of the cause is ahead of the runner-up's.
    pub confidence: f64,
    /// The arithmetic, a sentence each.
    pub because: Vec<String>,
    /// What to do about it.
    pub advice: String,
    /// Where the time of the sender went.
    pub shares: Vec<Share>,
    /// What would tell more, where the capture does not.
    pub would_tell: Option<String>,
}

impl Verdict {
    /// The capture does not tell.
    pub fn unknown(why: String, would_tell: String) -> Verdict {
        Verdict {
            cause: Cause::Unknown,
            runner_up: None,
            confidence: 0.0,
            because: vec![why],
            advice: String::new(),
            shares: Vec::new(),
            would_tell: Some(would_tell),
        }
    }
}

/// Judges.
pub fn judge(_evidence: &super::evidence::Evidence) -> Verdict {
    Verdict::unknown(String::new(), String::new())
}
