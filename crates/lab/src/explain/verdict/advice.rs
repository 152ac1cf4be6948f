//! What to do about a cause, in plain words.

use crate::explain::cause::Cause;
use crate::explain::evidence::Evidence;

/// What to do.
pub fn advice(_cause: Cause, _evidence: &Evidence) -> String {
    String::new()
}
