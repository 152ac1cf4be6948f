//! Ephemeral ports: random, as RFC 6056 section 3.3.1 (algorithm 1) has it.

use crate::random::Random;
use core::ops::RangeInclusive;

/// The range that ephemeral ports come from (RFC 6335 section 6).
pub(crate) const EPHEMERAL: RangeInclusive<u16> = 49_152..=65_535;

/// A random port of [`EPHEMERAL`] for which `is_free` holds: a random start, then the ports after it in a circle.
/// `None` when none is free.
pub(crate) fn ephemeral(random: &mut Random, mut is_free: impl FnMut(u16) -> bool) -> Option<u16> {
    let count = u32::from(EPHEMERAL.end() - EPHEMERAL.start()) + 1;
    let start = random.below(u64::from(count)) as u32;
    (0..count).map(|step| EPHEMERAL.start() + ((start + step) % count) as u16).find(|&port| is_free(port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn ports_are_random_and_every_free_one_is_found() {
        let mut random = Random::new(&[9; 32]);
        let first: BTreeSet<u16> = (0..100).filter_map(|_| ephemeral(&mut random, |_| true)).collect();
        assert!(first.len() > 90, "100 draws out of 16,384 rarely repeat");
        assert!(first.iter().all(|port| EPHEMERAL.contains(port)));
        assert_eq!(ephemeral(&mut random, |port| port == 65_535), Some(65_535));
        assert_eq!(ephemeral(&mut random, |port| port == 49_152), Some(49_152));
        assert_eq!(ephemeral(&mut random, |_| false), None);
    }
}
