//! Levels seen in a curve of latency over size: flat stretches with steps between them.

use serde::Serialize;

/// A flat stretch.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Plateau {
    /// The first size on it, in the unit of the curve.
    pub first: f64,
    /// The last.
    pub last: f64,
    /// The latency, the median of its points.
    pub latency: f64,
    /// Where half of the way to the next one is gone; none for the last one.
    pub ends: Option<f64>,
}

/// Stretches of less than this ratio are one level: translation and neighbours change a latency by so much.
const STEP: f64 = 1.6;
/// A point that rises by more than this from the one before is on its way.
const RISES: f64 = 1.09;

/// The levels of a curve, by rising size. Points need not be evenly spaced; they may scatter by a few per cent.
///
/// A level is where the curve stops rising: at least two neighbours between which it rises by less than 9 %. Levels that differ by
/// less than a factor of 1.6 are one. What rises at the end without a stop is a level too: the last point stands for the
/// memory that the curve has not quite reached.
pub fn plateaus(points: &[(f64, f64)]) -> Vec<Plateau> {
    let mut sorted: Vec<(f64, f64)> =
        points.iter().copied().filter(|(size, latency)| size.is_finite() && *latency > 0.0).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let smooth = settled(&sorted);
    let mut found: Vec<(usize, usize)> = Vec::new();
    let mut first = 0;
    for at in 1..=smooth.len() {
        let rises = match (smooth.get(at - 1), smooth.get(at)) {
            (Some(before), Some(now)) => *now > before * RISES,
            _ => true,
        };
        if rises {
            if at - first >= 2 {
                found.push((first, at - 1));
            }
            first = at;
        }
    }
    let top = smooth.last().copied().unwrap_or(0.0);
    if found.last().is_none_or(|(_, last)| smooth[*last] * STEP < top) && !smooth.is_empty() {
        found.push((smooth.len() - 1, smooth.len() - 1));
    }
    let level = |(first, last): (usize, usize)| median(&smooth[first..=last]);
    let mut joined: Vec<(usize, usize)> = Vec::new();
    for one in found {
        match joined.last_mut() {
            Some(before) if level(one) < level(*before) * STEP => {
                // The longer of two that are one says how high it is; a creep towards the next level does not.
                before.1 = one.1;
            }
            _ => joined.push(one),
        }
    }
    let levels: Vec<f64> = joined.iter().map(|one| level(*one)).collect();
    let plateau = |(at, (first, last)): (usize, &(usize, usize))| {
        let next = levels.get(at + 1);
        let ends = next.map(|next| crossing(&sorted, &smooth, *first, (levels[at] * next).sqrt()));
        Plateau { first: sorted[*first].0, last: sorted[*last].0, latency: levels[at], ends }
    };
    joined.iter().enumerate().map(plateau).collect()
}

/// The latencies without what falls back: of each point and those behind it the least, as a larger set is never faster; then
/// single spikes are gone.
fn settled(points: &[(f64, f64)]) -> Vec<f64> {
    let mut least = f64::INFINITY;
    let mut settled: Vec<f64> = points
        .iter()
        .rev()
        .map(|(_, latency)| {
            least = least.min(*latency);
            least
        })
        .collect();
    settled.reverse();
    settled
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

/// The size at which the curve passes a latency, between points by the logarithm of the size.
fn crossing(points: &[(f64, f64)], smooth: &[f64], from: usize, latency: f64) -> f64 {
    let after =
        (from..smooth.len()).find(|at| smooth[*at] >= latency).unwrap_or(smooth.len().saturating_sub(1));
    let before = after.saturating_sub(1).max(from);
    let (low, high) = (smooth[before], smooth[after]);
    let (small, large) = (points[before].0, points[after].0);
    if high <= low {
        return large;
    }
    let part = ((latency - low) / (high - low)).clamp(0.0, 1.0);
    small * (large / small).powf(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_fabric::hierarchy::miss;
    use proptest::prelude::*;

    /// Sizes in half steps of powers of two.
    fn sizes() -> Vec<f64> {
        (12..28).flat_map(|power| [1.0, 1.5].map(|part| part * f64::from(1u32 << power))).collect()
    }

    /// What a machine with these levels would show.
    fn staircase(levels: &[(f64, f64)], memory: f64, uneven: f64, noise: &[f64]) -> Vec<(f64, f64)> {
        let latency = |size: f64| {
            let mut sum = levels.first().map_or(memory, |first| first.1);
            for (at, (holds, own)) in levels.iter().enumerate() {
                let next = levels.get(at + 1).map_or(memory, |next| next.1);
                sum += miss(size / holds, 1.0, uneven) * (next - own);
            }
            sum
        };
        let noise = noise.iter().copied().cycle();
        sizes().into_iter().zip(noise).map(|(size, noise)| (size, latency(size) * (1.0 + noise))).collect()
    }

    #[test]
    fn a_measured_machine_is_recognised() {
        // A Zen 5 in a virtual machine, stride 128, ns.
        let kib = [
            4, 8, 16, 32, 48, 64, 96, 128, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192,
            16384, 24576, 32768, 49152, 65536, 131_072,
        ];
        let ns = [
            1.12, 1.12, 1.12, 1.12, 1.12, 3.33, 3.34, 3.34, 3.37, 3.37, 3.8, 4.48, 6.47, 11.43, 12.58, 13.08,
            13.01, 13.17, 13.06, 15.69, 82.88, 103.2, 175.8, 187.2, 195.7,
        ];
        let points: Vec<(f64, f64)> = kib.iter().zip(ns).map(|(kib, ns)| (f64::from(*kib), ns)).collect();
        let found = plateaus(&points);
        let shown: Vec<(f64, f64)> =
            found.iter().map(|one| (one.latency, one.ends.unwrap_or(f64::INFINITY))).collect();
        assert_eq!(found.len(), 4, "{shown:?}");
        for (one, (ns, kib)) in found.iter().zip([(1.12, 56.0), (3.4, 1100.0), (13.1, 19_000.0)]) {
            let ends = one.ends.unwrap();
            assert!((one.latency / ns - 1.0).abs() < 0.1 && (ends / kib - 1.0).abs() < 0.2, "{shown:?}");
        }
    }

    #[test]
    fn what_is_no_staircase_has_one_level_or_none() {
        assert_eq!(plateaus(&[]), []);
        assert_eq!(plateaus(&[(1.0, f64::NAN)]), []);
        assert_eq!(plateaus(&[(4096.0, 5.0)]).len(), 1);
        let flat: Vec<(f64, f64)> = sizes().into_iter().map(|size| (size, 3.0)).collect();
        assert_eq!(plateaus(&flat).len(), 1);
    }

    proptest! {
        #[test]
        fn levels_are_found_in_any_staircase(
            first in 14.0f64..16.5,
            steps in proptest::collection::vec(3.0f64..4.5, 0..2),
            ratios in proptest::collection::vec(2.2f64..8.0, 3),
            uneven in 0.02f64..0.2,
            noise in proptest::collection::vec(-0.02f64..0.02, 32),
        ) {
            let mut power = first;
            let mut latency = 1.0;
            let mut levels = vec![(2f64.powf(power), latency)];
            for (step, ratio) in steps.iter().zip(&ratios) {
                power += step;
                latency *= ratio;
                levels.push((2f64.powf(power), latency));
            }
            let memory = latency * ratios[2];
            let found = plateaus(&staircase(&levels, memory, uneven, &noise));
            prop_assert_eq!(found.len(), levels.len() + 1, "{:?}", found);
            for (one, (size, latency)) in found.iter().zip(&levels) {
                prop_assert!((one.latency / latency - 1.0).abs() < 0.06, "{:?} {:?}", one, levels);
                let ratio = one.ends.unwrap() / size;
                prop_assert!((0.62..1.6).contains(&ratio), "{} {:?} {:?}", ratio, found, levels);
            }
        }
    }
}
