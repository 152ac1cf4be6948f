//! Tells the log, now and then, that newcomers found no place at all.

use std::time::Duration;

use linerate_wire::units::Instant;

/// Between two lines.
const INTERVAL: Duration = Duration::from_secs(10);

/// Watches a counter of newcomers that were reset.
#[derive(Debug, Default)]
pub struct CrowdWatch {
    told: u64,
    quiet_until: Option<Instant>,
}

impl CrowdWatch {
    /// How many were reset since the last line, if it is time for another one; the clock is read only where there were any.
    pub fn look(&mut self, refused: u64, now: impl FnOnce() -> Instant) -> Option<u64> {
        if refused == self.told {
            return None;
        }
        let now = now();
        if self.quiet_until.is_some_and(|at| now < at) {
            return None;
        }
        self.quiet_until = Some(now + INTERVAL);
        Some(refused - std::mem::replace(&mut self.told, refused))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_in_ten_seconds_tells_of_all() {
        let mut watch = CrowdWatch::default();
        let at = |millis| move || Instant::from_millis(millis);
        assert_eq!(watch.look(0, at(0)), None);
        assert_eq!(watch.look(3, at(1)), Some(3));
        assert_eq!(watch.look(3, at(2)), None);
        assert_eq!(watch.look(9, at(10_000)), None);
        assert_eq!(watch.look(10, at(10_001)), Some(7));
        assert_eq!(watch.look(10, at(99_999)), None);
    }
}
