//! Points of a sweep: where each stands on each axis.

use super::axis::Axis;
use super::file::Method;
use toml::Value;

/// How the points of a sweep are found.
#[derive(Clone, Debug)]
pub struct Sample {
    method: Method,
    points: u64,
    seed: u64,
    /// Latin hypercube: for each axis, the part in which each point lies.
    parts: Vec<Vec<u32>>,
}

impl Sample {
    /// A sample of so many points, which a grid does not need to know.
    pub fn new(method: Method, points: u32, seed: u64, axes: &[Axis]) -> Sample {
        let grid = axes.iter().fold(1u64, |product, axis| product.saturating_mul(axis.len() as u64));
        let parts = match method {
            Method::LatinHypercube => {
                (0..axes.len() as u64).map(|axis| permutation(points, hash(seed, axis, 0))).collect()
            }
            Method::Grid | Method::Random => Vec::new(),
        };
        let points = if method == Method::Grid { grid } else { u64::from(points) };
        Sample { method, points, seed, parts }
    }

    /// How many there are.
    pub fn points(&self) -> u64 {
        self.points
    }

    /// The values of a point, one of each axis. The last axis of a grid changes fastest.
    pub fn values(&self, axes: &[Axis], point: u64) -> Vec<Value> {
        let mut below = point;
        let mut values: Vec<Value> = Vec::with_capacity(axes.len());
        for (number, axis) in axes.iter().enumerate().rev() {
            let chance = unit(hash(self.seed, number as u64, point + 1));
            values.push(match self.method {
                Method::Grid => {
                    let len = axis.len() as u64;
                    let index = below % len;
                    below /= len;
                    axis.at(index as usize)
                }
                Method::Random => axis.between(chance),
                Method::LatinHypercube => {
                    let part = self.parts.get(number).and_then(|parts| parts.get(point as usize));
                    let part = part.copied().unwrap_or(0);
                    axis.between((f64::from(part) + chance) / self.points.max(1) as f64)
                }
            });
        }
        values.reverse();
        values
    }
}

/// A number without pattern for a stream and a place in it: the finalizer of SplitMix64 (Steele, Lea and Flood 2014).
fn hash(seed: u64, stream: u64, place: u64) -> u64 {
    let step = 0x9e37_79b9_7f4a_7c15u64;
    let mix = |number: u64| {
        let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ number >> 31
    };
    let stream = mix(seed.wrapping_add(step)).wrapping_add(stream.wrapping_mul(step));
    mix(mix(stream).wrapping_add(place.wrapping_mul(step)))
}

/// From 0 to 1, 1 excluded.
fn unit(number: u64) -> f64 {
    (number >> 11) as f64 / (1u64 << 53) as f64
}

/// The numbers below `count` in an order by chance (Fisher and Yates 1938).
fn permutation(count: u32, seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count).collect();
    for last in (1..order.len()).rev() {
        let other = (unit(hash(seed, 1, last as u64)) * (last + 1) as f64) as usize;
        order.swap(last, other.min(last));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::file::SweepFile;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn axes(text: &str, is_grid: bool) -> Vec<Axis> {
        let file: SweepFile = linerate_fabric::document::read(text).unwrap();
        file.axis.iter().map(|table| Axis::new(text, table, is_grid).unwrap()).collect()
    }

    const TEXT: &str = r#"
        [[axis]]
        key = "link.loss"
        values = ["0 %", "1 %"]
        [[axis]]
        key = "link.delay"
        from = "1 ms"
        to = "100 ms"
        steps = 3
        scale = "log"
        [[axis]]
        key = "client.rx-ring"
        from = 16
        to = 48
        steps = 3
    "#;

    #[test]
    fn a_grid_has_every_combination_and_the_last_axis_changes_fastest() {
        let axes = axes(TEXT, true);
        let sample = Sample::new(Method::Grid, 0, 1, &axes);
        assert_eq!(sample.points(), 18);
        let check = |point: u64, expected: [&str; 3]| {
            let values: Vec<String> = sample.values(&axes, point).iter().map(Value::to_string).collect();
            assert_eq!(values, expected, "{point}");
        };
        check(0, ["\"0 %\"", "\"1 ms\"", "16"]);
        check(1, ["\"0 %\"", "\"1 ms\"", "32"]);
        check(3, ["\"0 %\"", "\"10 ms\"", "16"]);
        check(17, ["\"1 %\"", "\"100 ms\"", "48"]);
        let names: Vec<&str> = axes.iter().map(|axis| axis.column.name.as_str()).collect();
        assert_eq!(names, ["link.loss_share", "link.delay_s", "client.rx-ring"]);
        let all: BTreeSet<String> =
            (0..18).map(|point| format!("{:?}", sample.values(&axes, point))).collect();
        assert_eq!(all.len(), 18);
    }

    proptest! {
        #[test]
        fn a_hypercube_has_a_point_in_each_part_of_each_axis(points in 1u32..200, seed in any::<u64>()) {
            let text = "[[axis]]\nkey = \"a\"\nfrom = 0\nto = 1000000\n[[axis]]\nkey = \"b\"\nfrom = 0\nto = 1000000\n";
            let axes = axes(text, false);
            let sample = Sample::new(Method::LatinHypercube, points, seed, &axes);
            for axis in 0..2 {
                let mut at: Vec<i64> = (0..u64::from(points))
                    .map(|point| sample.values(&axes, point)[axis].as_integer().unwrap())
                    .collect();
                at.sort_unstable();
                for (part, at) in at.into_iter().enumerate() {
                    let width = 1e6 / f64::from(points);
                    // Values are whole numbers.
                    let (low, high) = (part as f64 * width - 1.0, (part + 1) as f64 * width + 1.0);
                    prop_assert!((low..=high).contains(&(at as f64)), "{} in {}..{}", at, low, high);
                }
            }
        }
    }
}
