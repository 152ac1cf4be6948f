//! Distributions in little memory: a value is kept with an error of a few per cent.

use serde::{Serialize, Serializer};

/// Steps within a power of two: 1/16 is an error of 6 % at most, 3 % on average.
const PER_OCTAVE: u32 = 16;

/// Counts of values by their size. Without any it takes no more than a pointer.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Histogram(Option<Box<Seen>>);

#[derive(Clone, PartialEq, Default, Debug)]
struct Seen {
    /// Steps that were seen with their weights, in order: most connections are short, and their values few.
    weights: Vec<(u16, f64)>,
    count: u64,
    total: f64,
    sum: f64,
    squares: f64,
    least: u64,
    most: u64,
}

impl Seen {
    fn weigh(&mut self, value: u64, weight: f64) {
        let step = step(value) as u16;
        match self.weights.binary_search_by_key(&step, |(known, _)| *known) {
            Ok(place) => self.weights[place].1 += weight,
            Err(place) => self.weights.insert(place, (step, weight)),
        }
        self.least = if self.count == 0 { value } else { self.least.min(value) };
        self.most = self.most.max(value);
        self.count += 1;
        self.total += weight;
        self.sum += value as f64 * weight;
        self.squares += (value as f64).powi(2) * weight;
    }
}

impl Histogram {
    /// Takes in a value.
    pub fn record(&mut self, value: u64) {
        self.weigh(value, 1.0);
    }

    /// Takes in a value that counts this much.
    pub fn weigh(&mut self, value: u64, weight: f64) {
        self.0.get_or_insert_default().weigh(value, weight);
    }

    /// The same of values that are all doubled so often.
    pub fn doubled(&self, times: u8) -> Histogram {
        let Some(seen) = self.0.as_ref().filter(|_| times > 0) else { return self.clone() };
        let factor = 2f64.powi(i32::from(times));
        let place = |value: usize| step(middle(value) << times) as u16;
        Histogram(Some(Box::new(Seen {
            weights: seen
                .weights
                .iter()
                .map(|(known, weight)| (place(usize::from(*known)), *weight))
                .collect(),
            count: seen.count,
            total: seen.total,
            sum: seen.sum * factor,
            squares: seen.squares * factor * factor,
            least: seen.least << times,
            most: seen.most << times,
        })))
    }

    /// Values that were taken in.
    pub fn count(&self) -> u64 {
        self.0.as_ref().map_or(0, |seen| seen.count)
    }

    /// The least value, exactly; `None` without values.
    pub fn least(&self) -> Option<u64> {
        self.0.as_ref().map(|seen| seen.least)
    }

    /// The largest value, exactly; `None` without values.
    pub fn most(&self) -> Option<u64> {
        self.0.as_ref().map(|seen| seen.most)
    }

    /// The mean; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        self.0.as_ref().filter(|seen| seen.total > 0.0).map(|seen| seen.sum / seen.total)
    }

    /// Standard deviation over mean; `None` without values.
    pub fn variation(&self) -> Option<f64> {
        let mean = self.mean().filter(|mean| *mean > 0.0)?;
        let seen = self.0.as_ref()?;
        Some((seen.squares / seen.total - mean * mean).max(0.0).sqrt() / mean)
    }

    /// The value below which `part` of the weight lies, 0 to 1; `None` without values.
    pub fn quantile(&self, part: f64) -> Option<u64> {
        let seen = self.0.as_ref()?;
        let mut rest = seen.total * part;
        let found = seen.weights.iter().find(|(_, weight)| {
            rest -= weight;
            rest <= 0.0 && *weight > 0.0
        });
        found.map(|(step, _)| middle(usize::from(*step)).clamp(seen.least, seen.most)).or(Some(seen.most))
    }

    /// The median; `None` without values.
    pub fn median(&self) -> Option<u64> {
        self.quantile(0.5)
    }

    /// The share of the weight within a factor of `factor` of `value`.
    pub fn near(&self, value: u64, factor: f64) -> f64 {
        let Some(seen) = self.0.as_ref().filter(|seen| seen.total > 0.0) else { return 0.0 };
        let (low, high) = (step((value as f64 / factor) as u64), step((value as f64 * factor) as u64));
        let within = seen.weights.iter().filter(|(step, _)| (low..=high).contains(&usize::from(*step)));
        let within: f64 = within.map(|(_, weight)| weight).sum();
        within / seen.total
    }
}

/// The number of a value's step: values below the steps of an octave are exact.
fn step(value: u64) -> usize {
    let octave = value.max(1).ilog2();
    let exact = PER_OCTAVE.ilog2();
    if octave <= exact {
        return value as usize;
    }
    let shift = octave - exact;
    ((shift * PER_OCTAVE) as u64 + (value >> shift)) as usize
}

/// The middle of a step.
fn middle(step: usize) -> u64 {
    let per = PER_OCTAVE as usize;
    if step < 2 * per {
        return step as u64;
    }
    let shift = step / per - 1;
    let mantissa = (step - shift * per) as u64;
    (mantissa << shift) + (1_u64 << shift) / 2
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Summary {
            count: u64,
            min: Option<u64>,
            median: Option<u64>,
            mean: Option<f64>,
            p95: Option<u64>,
            max: Option<u64>,
        }
        let summary = Summary {
            count: self.count(),
            min: self.least(),
            median: self.median(),
            mean: self.mean(),
            p95: self.quantile(0.95),
            max: self.most(),
        };
        summary.serialize(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_nearly() {
        for value in (0..100).chain([1_000, 65_535, 123_456_789, u64::MAX / 3, u64::MAX]) {
            let back = middle(step(value));
            let error = back.abs_diff(value) as f64 / value.max(1) as f64;
            assert!(error <= 1.0 / f64::from(PER_OCTAVE), "{value}: {back}");
        }
        assert!((1..10_000).all(|value| step(value) >= step(value - 1)));
    }

    #[test]
    fn few_values_take_little_room_in_any_order() {
        let (mut down, mut up) = (Histogram::default(), Histogram::default());
        for value in [1_000_000_000, 900_000_000, 5, 70] {
            down.record(value);
        }
        let seen = |histogram: &Histogram| histogram.0.clone().unwrap_or_default();
        assert_eq!(seen(&down).weights.len(), 4);
        [5, 70, 900_000_000, 1_000_000_000].into_iter().for_each(|value| up.record(value));
        assert_eq!(seen(&down).weights, seen(&up).weights);
        assert_eq!((down.quantile(0.25), down.quantile(0.5)), (Some(5), Some(70)));
        assert!(down.near(70, 1.1) == 0.25 && down.near(5, 1.1) == 0.25 && down.near(1_000, 2.0) == 0.0);
    }

    #[test]
    fn quantiles() {
        let mut seen = Histogram::default();
        assert_eq!((seen.median(), seen.mean(), seen.near(3, 2.0)), (None, None, 0.0));
        (1..=1_000).for_each(|value| seen.record(value * 100));
        let close = |found: Option<u64>, value: f64| {
            let found = found.unwrap() as f64;
            assert!((found / value - 1.0).abs() < 0.07, "{found} for {value}");
        };
        close(seen.median(), 50_000.0);
        close(seen.quantile(0.95), 95_000.0);
        assert_eq!(
            (seen.least(), seen.most(), seen.quantile(1.0)),
            (Some(100), Some(100_000), Some(100_000))
        );
        assert!((seen.near(50_000, 2.0) - 0.75).abs() < 0.05);
        assert!((seen.variation().unwrap() - 0.577).abs() < 0.01);
    }
}
