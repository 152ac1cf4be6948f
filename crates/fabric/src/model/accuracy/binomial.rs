//! The exact binomial test: whether so many of so many are what a share makes plausible.

/// The chance of an outcome that is no more likely than `hits` of `trials`, when each hits with the chance `share`.
pub fn two_sided(hits: usize, trials: usize, share: f64) -> f64 {
    if hits > trials || !(0.0..1.0).contains(&share) || share <= 0.0 {
        return 0.0;
    }
    // Logarithms: the chances of many trials are below what a float holds.
    let mut chance = trials as f64 * (1.0 - share).ln();
    let mut logs = vec![chance];
    for hit in 1..=trials {
        let left = (trials - hit + 1) as f64;
        chance += (left / hit as f64 * share / (1.0 - share)).ln();
        logs.push(chance);
    }
    let own = logs.get(hits).copied().unwrap_or(f64::NEG_INFINITY);
    logs.iter().filter(|log| **log <= own + 1e-9).map(|log| log.exp()).sum::<f64>().min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from exact arithmetic on whole numbers.
    #[test]
    fn values_that_are_known() {
        for (hits, trials, expected) in
            [(9, 10, 1.000000000), (5, 10, 0.001634937), (15, 15, 0.389952201), (19, 25, 0.033399945)]
        {
            let found = two_sided(hits, trials, 0.9);
            assert!((found - expected).abs() < 1e-8, "{hits} of {trials}: {found}");
        }
        assert!((two_sided(5, 10, 0.5) - 1.0).abs() < 1e-12);
        assert!((two_sided(0, 10, 0.5) - 2.0 / 1024.0).abs() < 1e-9);
        assert!(two_sided(1000, 1000, 0.9) < 1e-40);
        assert!((two_sided(900, 1000, 0.9) - 1.0).abs() < 1e-9);
        assert_eq!(two_sided(3, 2, 0.9), 0.0);
    }
}
