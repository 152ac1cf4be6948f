//! Random numbers: xoshiro256++ streams, each derived from the world's seed and the place that draws from it.

/// A stream of pseudo-random numbers (xoshiro256++). Not for secrets.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

/// One step of SplitMix64: spreads a number over all bits.
pub(crate) fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Random {
    /// The stream of this number of this seed. Streams do not influence each other.
    pub fn stream(seed: u64, stream: u64) -> Random {
        let mut number = mix(seed) ^ mix(stream ^ 0x6c69_6e65_7261_7465).rotate_left(17);
        let mut next = || {
            number = mix(number);
            number
        };
        Random { state: [next(), next(), next(), next() | 1] }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number from 0 to `bound` - 1; 0 when `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `range`.
    pub fn range(&mut self, range: core::ops::RangeInclusive<u64>) -> u64 {
        let (start, end) = (*range.start(), *range.end());
        start + self.below((end.saturating_sub(start)).saturating_add(1))
    }

    /// A number from 0 up to, but without, 1.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with this probability. Nothing is drawn for 0 and below, or 1 and above.
    pub fn chance(&mut self, probability: f64) -> bool {
        if probability <= 0.0 {
            return false;
        }
        probability >= 1.0 || self.unit() < probability
    }

    /// One of `choices`; `None` if there is none.
    pub fn choose<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        choices.get(self.below(choices.len() as u64) as usize)
    }

    /// About normally distributed with mean 0 and standard deviation 1, between -6 and 6 (the sum of twelve uniform
    /// numbers).
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    /// 32 random bytes.
    pub fn bytes32(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for word in bytes.chunks_exact_mut(8) {
            word.copy_from_slice(&self.next_u64().to_le_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ() {
        let draw = |seed, stream| Random::stream(seed, stream).next_u64();
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(2, 1));
        assert_ne!(draw(1, 2), draw(1, 3));
    }

    #[test]
    fn numbers_are_spread_evenly() {
        let mut random = Random::stream(7, 0);
        let mut counts = [0u32; 10];
        (0..100_000).for_each(|_| counts[random.below(10) as usize] += 1);
        // Standard deviation 95: seven of them.
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 665), "{counts:?}");
        let hits = (0..100_000).filter(|_| random.chance(0.01)).count();
        assert!(hits.abs_diff(1_000) < 220, "{hits}");
        assert_eq!(random.below(0), 0);
        assert!((0..100).all(|_| (5..=6).contains(&random.range(5..=6))));
    }

    #[test]
    fn normal_numbers_have_their_moments() {
        let mut random = Random::stream(7, 1);
        let draws: Vec<f64> = (0..100_000).map(|_| random.normal()).collect();
        let mean = draws.iter().sum::<f64>() / 1e5;
        let variance = draws.iter().map(|x| x * x).sum::<f64>() / 1e5;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.03, "{mean} {variance}");
    }
}
