//! The arithmetic of a verdict, in sentences.

use super::judge::Judgement;
use crate::explain::evidence::Evidence;

/// What speaks for the judgement.
pub fn sentences(_evidence: &Evidence, _judgement: &Judgement) -> Vec<String> {
    Vec::new()
}
