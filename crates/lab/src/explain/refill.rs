//! Whether a sender fills up to a ceiling: how much is under way where it stops, and where it goes on.
//!
//! Who writes what it has stops wherever that leads: what is under way after a burst varies as much as what was before it. A buffer
//! is filled up, from wherever it was, to the same amount.

use super::histogram::Histogram;

/// The stops vary by less than this part of how the starts do.
const STILL: f64 = 0.5;
/// Starts that vary by less than this part of the ceiling tell nothing.
const MOVED: f64 = 0.1;
/// Fewer bursts tell nothing.
const LEAST: u64 = 8;
/// Stops within this factor of their median are alike: a congestion window that grows from round trip to round trip is not.
const ALIKE: f64 = 1.1;
/// Stops within this factor of the ceiling count as at it.
const AT: f64 = 1.05;

/// Bytes under way when the sender stopped, and when it went on, each weighed by how long it waited.
#[derive(Clone, Default, Debug)]
pub struct Refill {
    stops: Histogram,
    starts: Histogram,
}

impl Refill {
    /// The sender stopped with so much under way, and went on with so much after a time.
    pub fn went_on(&mut self, stop: u64, start: u64, time_ns: u64) {
        self.stops.weigh(stop, time_ns as f64);
        self.starts.weigh(start, time_ns as f64);
    }

    /// Whether it stopped at one ceiling, from wherever it had gone on.
    pub fn has_ceiling(&self) -> bool {
        let (Some(stops), Some(starts)) = (spread(&self.stops), spread(&self.starts)) else { return false };
        let ceiling = self.stops.median().unwrap_or(0) as f64;
        self.stops.count() >= LEAST && starts >= MOVED * ceiling && stops < STILL * starts
    }

    /// The share of the time that it had stopped at about the same amount.
    pub fn alike(&self) -> f64 {
        self.stops.median().map_or(0.0, |usual| self.stops.near(usual, ALIKE))
    }

    /// The share of the time that it had stopped where it stops at most, as far as a fiftieth of the time is left out.
    pub fn at_ceiling(&self) -> f64 {
        self.stops.quantile(0.98).map_or(0.0, |most| self.stops.near(most, AT))
    }
}

/// The middle eight tenths: a first burst that is like no other does not count.
fn spread(values: &Histogram) -> Option<f64> {
    Some(values.quantile(0.9)?.saturating_sub(values.quantile(0.1)?) as f64)
}
