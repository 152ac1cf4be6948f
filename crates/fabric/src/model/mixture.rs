//! One prediction out of several: what all structures that are left say, each with its weight.

use crate::predict::Prediction;

/// Standard deviations to the end of an interval that holds nine of ten.
const NINE_OF_TEN: f64 = 1.644_854;
/// Halvings of the search for a quantile; the answer is exact to a part in 10^12.
const HALVINGS: usize = 48;

/// Joins the predictions of several structures.
///
/// The figure is their weighted mean; the interval holds the middle nine tenths of the mixture, in which each structure
/// scatters around its own figure by the relative half width `half`, or by its own interval where none is given.
pub fn mix(members: &[(f64, Prediction)], half: Option<f64>) -> Option<Prediction> {
    let total: f64 = members.iter().map(|(weight, _)| weight).sum();
    let (_, best) = members.iter().max_by(|a, b| a.0.total_cmp(&b.0)).filter(|_| total > 0.0)?;
    let mut mixed = best.clone();
    let exact = |p: &Prediction| p.low == p.high;
    if members.iter().all(|(_, p)| exact(p) && p.predicted == best.predicted) {
        return Some(mixed);
    }
    let normals: Vec<(f64, f64, f64)> = members
        .iter()
        .map(|(weight, p)| {
            let own = (p.high - p.low) / 2.0;
            let half = half.map_or(own, |half| half * p.predicted);
            (weight / total, p.predicted, half / NINE_OF_TEN)
        })
        .collect();
    mixed.predicted = normals.iter().map(|(weight, center, _)| weight * center).sum();
    mixed.theoretical = members.iter().map(|(_, p)| p.theoretical).fold(0.0, f64::max);
    mixed.low = quantile(&normals, 0.05).max(0.0).min(mixed.predicted);
    mixed.high = quantile(&normals, 0.95).max(mixed.predicted);
    // No rate is above what width and clock allow; of a latency there is no such bound.
    if mixed.theoretical > 0.0 {
        mixed.high = mixed.high.min(mixed.theoretical.max(mixed.predicted));
    }
    Some(mixed)
}

/// Where the mixture has `share` of itself below.
fn quantile(normals: &[(f64, f64, f64)], share: f64) -> f64 {
    let reach = |sign: f64| normals.iter().map(move |(_, center, deviation)| center + sign * 6.0 * deviation);
    let (mut low, mut high) = (reach(-1.0).fold(f64::INFINITY, f64::min), reach(1.0).fold(0.0, f64::max));
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        let below: f64 = normals
            .iter()
            .map(|(weight, center, deviation)| {
                let distance = middle - center;
                let under = if *deviation > 0.0 { normal(distance / deviation) } else { step(distance) };
                weight * under
            })
            .sum();
        if below < share { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

fn step(distance: f64) -> f64 {
    if distance >= 0.0 { 1.0 } else { 0.0 }
}

/// The share of a standard normal below `x` (Abramowitz and Stegun, 7.1.26: to 1.5e-7).
fn normal(x: f64) -> f64 {
    let z = x.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let series = t
        * (0.254_829_592
            + t * (-0.284_496_736 + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429))));
    let erf = 1.0 - series * (-z * z).exp();
    if x >= 0.0 { f64::midpoint(1.0, erf) } else { (1.0 - erf) / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::Unit;

    fn at(predicted: f64) -> Prediction {
        Prediction::rate(1000.0, predicted, 0.1, Unit::MegabytesPerSecond, Vec::new())
    }

    #[test]
    fn one_structure_keeps_its_interval() {
        let mixed = mix(&[(1.0, at(100.0))], None).expect("a member");
        assert!((mixed.low - 90.0).abs() < 0.01 && (mixed.high - 110.0).abs() < 0.01, "{mixed:?}");
        let wider = mix(&[(1.0, at(100.0))], Some(0.2)).expect("a member");
        assert!((wider.low - 80.0).abs() < 0.01 && (wider.high - 120.0).abs() < 0.01, "{wider:?}");
    }

    #[test]
    fn an_interval_spans_structures_that_tie_and_leaves_out_unlikely_ones() {
        let tie = mix(&[(1.0, at(100.0)), (1.0, at(200.0))], Some(0.01)).expect("members");
        assert!((tie.predicted - 150.0).abs() < 1e-9 && tie.low < 101.0 && tie.high > 199.0, "{tie:?}");
        let sure = mix(&[(99.0, at(100.0)), (1.0, at(200.0))], Some(0.01)).expect("members");
        assert!(sure.high < 105.0, "{sure:?}");
        assert!(mix(&[], None).is_none());
        assert!(mix(&[(0.0, at(1.0))], None).is_none());
    }

    #[test]
    fn what_is_exact_stays_exact() {
        let exact = Prediction::exact(64.0, Unit::Bytes);
        assert_eq!(mix(&[(1.0, exact.clone()), (3.0, exact.clone())], Some(0.1)), Some(exact));
    }
}
