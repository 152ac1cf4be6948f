//! Rates: what has moved since a look that is neither too recent nor too old.

use super::catalogue::{self, Tally};
use super::report::{Dropped, Rates, Traffic};
use linerate_transport::{ConnId, LimitTimes};
use linerate_wire::units::Instant;
use std::collections::HashMap;
use std::time::Duration;

/// A look younger than this gives rates that jump about.
const LEAST_SPAN: Duration = Duration::from_millis(400);
/// A look older than this says little of now. Who looks every ten seconds, as `top` does at the least, may have to wait for each answer.
const LONGEST_SPAN: Duration = Duration::from_secs(15);

/// What was seen of the whole at one time.
#[derive(Debug, Default)]
pub struct Totals {
    /// What has passed.
    pub traffic: Traffic,
    /// Processor time of the process in seconds.
    pub process: f64,
    /// The same of the loop's thread.
    pub thread: f64,
    /// What drop counters count that are not 0, by part and name.
    pub drops: HashMap<(&'static str, &'static str), u64>,
}

impl Totals {
    /// What passed since `before`, `span` seconds ago; the processor's share is of the process.
    pub fn since(&self, before: &Totals, span: f64) -> Rates {
        let (now, then) = (&self.traffic, &before.traffic);
        let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / span;
        Rates {
            span,
            receive_rate: rate(now.received_bytes, then.received_bytes) * 8.0,
            send_rate: rate(now.sent_bytes, then.sent_bytes) * 8.0,
            received_packets: rate(now.received_packets, then.received_packets),
            sent_packets: rate(now.sent_packets, then.sent_packets),
            retransmits: rate(now.retransmits, then.retransmits),
            drops: rate(now.drops, then.drops),
            cpu: (self.process - before.process).max(0.0) / span,
        }
    }

    /// What was dropped, and how fast it grows since `before`, `span` seconds ago.
    pub fn dropped_since(&self, before: &Totals, span: f64) -> Vec<Dropped> {
        let dropped = |(&(group, name), &count): (&(&'static str, &'static str), &u64)| Dropped {
            group: group.to_owned(),
            name: name.to_owned(),
            reason: catalogue::reason(group, name),
            meaning: catalogue::find(group, name).map_or("", |figure| figure.description()).to_owned(),
            count,
            rate: count.saturating_sub(before.drops.get(&(group, name)).copied().unwrap_or(0)) as f64 / span,
        };
        let mut all: Vec<Dropped> = self.drops.iter().map(dropped).collect();
        sort(&mut all);
        all
    }
}

/// The drop counters among `tallies` that are not 0.
pub fn drops(tallies: &[Tally]) -> HashMap<(&'static str, &'static str), u64> {
    catalogue::drops(tallies).filter(|(_, count)| *count > 0).collect()
}

/// Puts those that grow fastest first, then the largest.
pub fn sort(dropped: &mut [Dropped]) {
    dropped.sort_by(|a, b| {
        let by_figures = b.rate.total_cmp(&a.rate).then(b.count.cmp(&a.count));
        by_figures.then_with(|| (&a.group, &a.name).cmp(&(&b.group, &b.name)))
    });
}

/// What was seen at one time.
#[derive(Debug, Default)]
pub struct Look {
    /// When.
    pub at: Instant,
    /// Of the whole.
    pub totals: Totals,
    /// Payload bytes sent and received, of all connections.
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
        self.fitting(now).next()
    }

    /// Time by cause of a connection at the last look that fits in which it was looked at closely: another client may have asked
    /// for fewer since, or for none.
    pub fn limits(&self, now: Instant, id: ConnId) -> Option<&LimitTimes> {
        self.fitting(now).find_map(|look| look.limits.get(&id))
    }

    /// Looks that are neither too young nor too old, the newer one first.
    fn fitting(&self, now: Instant) -> impl Iterator<Item = &Look> {
        let fits = move |look: &&Look| (LEAST_SPAN..=LONGEST_SPAN).contains(&now.saturating_since(look.at));
        [&self.newer, &self.older].into_iter().flatten().filter(fits)
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
        assert_eq!(base(&history, 11_100), Some(at(1000)), "a look every ten seconds, and the way to us");
        assert_eq!(base(&history, 16_001), None, "both are too old");
    }
}
