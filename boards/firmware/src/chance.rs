//! Numbers that nobody else knows, as far as a board without a source of them has any.

use linerate_wire::units::Instant;

/// The step of SplitMix64.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64, stirred with the time of each call.
#[derive(Clone, Copy, Debug)]
pub struct Chance {
    state: u64,
}

impl Chance {
    /// From whatever there is of chance: the time that the start took, to a tick of the clock, a date, a source of noise.
    pub const fn new(seed: u64) -> Chance {
        Chance { state: seed ^ STEP }
    }

    /// The next number.
    pub fn next(&mut self, now: Instant) -> u64 {
        self.state = self.state.wrapping_add(STEP ^ now.as_nanos());
        let mut mixed = self.state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_and_time_both_count() {
        let at = Instant::from_nanos;
        let first = |seed, time| Chance::new(seed).next(at(time));
        assert_eq!(first(1, 5), first(1, 5));
        assert_ne!(first(1, 5), first(2, 5));
        assert_ne!(first(1, 5), first(1, 6));
        let mut chance = Chance::new(1);
        assert_ne!(chance.next(at(5)), chance.next(at(5)));
    }
}
