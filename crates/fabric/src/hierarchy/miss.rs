//! How much of what a loop touches is no longer where it was the time before.
//!
//! # Formula
//! A loop goes round through a footprint of `r` times what a level holds. The level drops what was used longest ago. Where each
//! unit of it (a line, a page) is touched once a round, nothing is left when `r > 1`, and all when not. Where it is touched
//! `k` times a round at random moments, a touch finds it again when no more than `1/r` of the footprint was touched since: the
//! gap between two touches of `k` on a circle leaves a share `1 - (1 - y)^k` of the footprint touched after a part `y` of the
//! round, and is longer than `y` with chance `(1 - y)^(k - 1)`. So
//!
//! ```text
//! miss = (1 - 1/r)^((k - 1) / k)    for r > 1
//! ```
//!
//! which is 1 for `k = 1`, and `1 - 1/r` for places at random.
//!
//! Sets do not fill evenly where physical pages lie as they come. Their fill is taken as spread around `r` with a deviation of
//! `unevenness x sqrt(r)` (a count of pages that fall at random), by the logistic curve that is near the normal one.

/// The least unevenness: below it the curve is a step, on which no fit finds its way.
const SHARPEST: f64 = 0.02;
/// The logistic curve of this steepness is within 1 % of the normal one.
const STEEPNESS: f64 = 1.702;
/// Steps of the integral over the sets.
const STEPS: u32 = 24;

/// The share of touches that miss: `pressure` is the footprint over the size, `touches` how often a round each unit is touched
/// (infinite for places at random).
pub fn miss(pressure: f64, touches: f64, unevenness: f64) -> f64 {
    if pressure <= 0.0 {
        return 0.0;
    }
    let exponent = 1.0 - 1.0 / touches.max(1.0);
    let deviation = unevenness.max(SHARPEST) * pressure.sqrt();
    // The share of sets that are filled beyond `limit` times what they hold.
    let beyond = |limit: f64| 1.0 / (1.0 + (STEEPNESS * (limit - pressure) / deviation).exp());
    if exponent <= 0.0 {
        return beyond(1.0);
    }
    // The integral of the miss over the sets, by parts: over the miss, of the share of sets that miss more.
    let steps = f64::from(STEPS);
    let at = |step: u32| {
        let miss = (f64::from(step) + 0.5) / steps;
        beyond(1.0 / (1.0 - miss.powf(1.0 / exponent)))
    };
    (0..STEPS).map(at).sum::<f64>() / steps
}

/// The same where the footprint lies in one piece, so that each set of so many ways has as many lines of it as any other, or one more.
/// A set that holds all of its lines misses none.
///
/// ```text
/// lines in a set = pressure x ways, rounded down or up
/// miss           = sum over both kinds of share of lines x (1 - ways / lines)^((k - 1) / k)    for lines > ways
/// ```
pub fn miss_of_sets(pressure: f64, touches: f64, ways: u32) -> f64 {
    let (ways, exponent) = (f64::from(ways), 1.0 - 1.0 / touches.max(1.0));
    let lines = (pressure * ways).max(0.0);
    let (few, more) = (lines.floor(), lines.fract());
    let of = |lines_of_set: f64, sets: f64| {
        if lines_of_set <= ways {
            return 0.0;
        }
        sets * lines_of_set / lines * (1.0 - ways / lines_of_set).powf(exponent)
    };
    of(few, 1.0 - more) + of(few + 1.0, more)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_round_through_too_much_finds_nothing_again() {
        let check = |pressure: f64, touches: f64, expected: f64, within: f64| {
            let found = miss(pressure, touches, 0.0);
            assert!((found - expected).abs() <= within, "{pressure} {touches}: {found} for {expected}");
        };
        check(0.5, 1.0, 0.0, 1e-6);
        check(1.5, 1.0, 1.0, 1e-6);
        check(2.0, f64::INFINITY, 0.5, 0.03);
        check(4.0, f64::INFINITY, 0.75, 0.03);
        check(1.333, 8.0, 0.297, 0.03);
        check(2.0, 8.0, 0.545, 0.03);
        check(0.0, 1.0, 0.0, 0.0);
    }

    /// Plays rounds through a footprint in one piece on a cache of sets.
    #[test]
    fn sets_miss_what_they_cannot_hold() {
        let (sets, rounds) = (64usize, 3);
        for ways in [1usize, 2, 4] {
            for lines in [10, 64, 80, 96, 128, 130, 200, 300, 1_000] {
                let mut held: Vec<Vec<usize>> = vec![Vec::new(); sets];
                let mut missed = 0;
                for round in 0..rounds {
                    for line in 0..lines {
                        let set = &mut held[line % sets];
                        match set.iter().position(|known| *known == line) {
                            Some(at) => drop(set.remove(at)),
                            None => missed += usize::from(round > 0),
                        }
                        set.push(line);
                        if set.len() > ways {
                            set.remove(0);
                        }
                    }
                }
                let played = missed as f64 / ((rounds - 1) * lines) as f64;
                let told = miss_of_sets(lines as f64 / (sets * ways) as f64, 1.0, ways as u32);
                assert!((told - played).abs() < 1e-9, "{ways} ways, {lines} lines: {told} for {played}");
            }
        }
        // Places at random: of two lines that share a place, the one that was there before is asked for every second time.
        assert_eq!(miss_of_sets(2.0, f64::INFINITY, 1), 0.5);
    }

    /// Plays least recently used on a small cache and compares.
    #[test]
    fn it_is_what_least_recently_used_does() {
        for (units, size, touches) in [(300usize, 200usize, 4usize), (400, 200, 2), (250, 200, 8)] {
            let mut order: Vec<usize> = (0..units * touches).map(|at| at % units).collect();
            let mut seed = 1u64;
            for at in (1..order.len()).rev() {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                order.swap(at, (seed >> 33) as usize % (at + 1));
            }
            let mut held: Vec<usize> = Vec::new();
            let mut missed = 0;
            for round in 0..3 {
                for unit in &order {
                    let at = held.iter().position(|known| known == unit);
                    at.map(|at| held.remove(at));
                    missed += usize::from(at.is_none() && round > 0);
                    held.push(*unit);
                    if held.len() > size {
                        held.remove(0);
                    }
                }
            }
            let played = missed as f64 / (2 * order.len()) as f64;
            let told = miss(units as f64 / size as f64, touches as f64, 0.0);
            assert!((told - played).abs() < 0.05, "{units} {size} {touches}: {told} for {played}");
        }
    }

    proptest! {
        #[test]
        fn more_pressure_misses_more(r in 0.01f64..20.0, k in 1.0f64..100.0, uneven in 0.0f64..0.6) {
            let (less, more) = (miss(r, k, uneven), miss(r * 1.05, k, uneven));
            prop_assert!((0.0..=1.0).contains(&less) && more >= less - 1e-9, "{} {}", less, more);
            prop_assert!(miss(r, k * 2.0, uneven) <= less + 1e-9);
        }
    }
}
