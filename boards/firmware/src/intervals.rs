//! How long after each other an interface interrupts.

use linerate_wire::units::Instant;

/// Powers of two of microseconds that are told apart.
pub const INTERVALS: usize = 20;

/// Where so many microseconds are counted: at place n from 2^n to 2^(n+1), below 2 at place 0, all above at the last.
pub(crate) const fn place(us: u64) -> usize {
    let place = (us | 1).ilog2() as usize;
    if place < INTERVALS { place } else { INTERVALS - 1 }
}

/// How often it interrupted so long after the time before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Intervals {
    last_us: u64,
    counts: [u32; INTERVALS],
}

impl Intervals {
    /// No interrupt yet.
    pub const fn new() -> Intervals {
        Intervals { last_us: 0, counts: [0; INTERVALS] }
    }

    /// An interrupt came.
    pub fn add(&mut self, now: Instant) {
        let now_us = now.as_micros();
        let count = &mut self.counts[place(now_us - core::mem::replace(&mut self.last_us, now_us))];
        // At 10,000 a second it is full after five days.
        *count = count.saturating_add(1);
    }

    /// How many came so long after the one before; 2^32 - 1 stands for all beyond, too.
    pub const fn counts(&self) -> [u32; INTERVALS] {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_is_full_stays_so() {
        let mut intervals = Intervals { last_us: 0, counts: [u32::MAX; INTERVALS] };
        intervals.add(Instant::ZERO);
        assert_eq!(intervals.counts(), [u32::MAX; INTERVALS]);
    }

    #[test]
    fn intervals_are_counted_by_powers_of_two() {
        let mut intervals = Intervals::new();
        let mut now_us = 0;
        for (since, place) in
            [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (1_023, 9), (1 << 19, 19), (1 << 30, 19)]
        {
            now_us += since;
            let before = intervals.counts();
            intervals.add(Instant::from_nanos(now_us * 1_000));
            let mut expected = before;
            expected[place] += 1;
            assert_eq!(intervals.counts(), expected, "{since} µs");
        }
    }
}
