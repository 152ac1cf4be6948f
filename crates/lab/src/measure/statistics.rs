//! Figures of several rounds as one, and how far they lie apart.

use serde::{Deserialize, Serialize};

/// A median with the range of what it is the median of.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Spread {
    /// The middle one; the mean of two where they are even in number.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

/// The spread of the values; `None` without any that is a number.
pub fn spread(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
    let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    let (least, most) = (*values.first()?, *values.last()?);
    let middle = values.len() / 2;
    let median = if values.len() % 2 == 1 {
        values[middle]
    } else {
        f64::midpoint(values[middle - 1], values[middle])
    };
    Some(Spread { median, least, most })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        let check = |values: &[f64], expected: Option<(f64, f64, f64)>| {
            let found = spread(values.iter().copied()).map(|s| (s.median, s.least, s.most));
            assert_eq!(found, expected, "{values:?}");
        };
        check(&[], None);
        check(&[f64::NAN], None);
        check(&[3.0], Some((3.0, 3.0, 3.0)));
        check(&[3.0, 1.0, f64::INFINITY, 2.0], Some((2.0, 1.0, 3.0)));
        check(&[4.0, 1.0], Some((2.5, 1.0, 4.0)));
    }
}
