//! Rates of connections: what has moved since a look at them that is neither too recent nor too old.

use linerate_transport::{ConnId, LimitTimes};
use linerate_wire::units::Instant;
use std::collections::HashMap;
use std::time::Duration;

/// A look younger than this gives rates that jump about.
const LEAST_SPAN: Duration = Duration::from_millis(400);
/// A look older than this says little of now.
const LONGEST_SPAN: Duration = Duration::from_secs(10);

/// What was seen of all connections at one time.
#[derive(Debug, Default)]
pub struct Look {
    /// When.
    pub at: Instant,
    /// Payload bytes sent and received.
    pub moved: HashMap<ConnId, (u64, u64)>,
    /// Time by cause, of those that were looked at closely.
    pub limits: HashMap<ConnId, LimitTimes>,
}

/// The last two looks.
#[derive(Debug, Default)]
pub struct History {
    older: Option<Look>,
    newer: Option<Look>,
}

impl History {
    /// The look that rates at `now` are to be taken from, if there is one.
    pub fn base(&self, now: Instant) -> Option<&Look> {
        let fits = |look: &&Look| (LEAST_SPAN..=LONGEST_SPAN).contains(&now.saturating_since(look.at));
        self.newer.as_ref().filter(fits).or_else(|| self.older.as_ref().filter(fits))
    }

    /// Whether a look at `now` is to be kept.
    pub fn wants(&self, now: Instant) -> bool {
        self.newer.as_ref().is_none_or(|look| now.saturating_since(look.at) >= LEAST_SPAN)
    }

    /// Keeps a look.
    pub fn keep(&mut self, look: Look) {
        self.older = self.newer.replace(look);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_is_neither_too_young_nor_too_old() {
        let at = Instant::from_millis;
        let base = |history: &History, now| history.base(at(now)).map(|look| look.at);
        let mut history = History::default();
        assert!(history.wants(at(0)) && base(&history, 0).is_none());
        history.keep(Look { at: at(0), ..Look::default() });
        assert!(!history.wants(at(399)) && base(&history, 399).is_none());
        assert!(history.wants(at(400)));
        assert_eq!(base(&history, 400), Some(at(0)));
        history.keep(Look { at: at(1000), ..Look::default() });
        assert_eq!(base(&history, 1100), Some(at(0)), "the newer one is too young");
        assert_eq!(base(&history, 1500), Some(at(1000)));
        assert_eq!(base(&history, 11_001), None, "both are too old");
    }
}
