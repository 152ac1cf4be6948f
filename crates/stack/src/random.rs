//! Keyed pseudo-random numbers from the seed that the owner of the stack gives.
//!
//! SipHash-2-4 in counter mode: without the key, past output does not tell future output, which is what ports,
//! identifiers and sequence numbers need (RFC 6056, RFC 6528). The stack never asks an operating system.

use core::hash::{BuildHasher, Hasher};
use siphasher::sip::{SipHasher13, SipHasher24};

/// A 128-bit key, derived from the seed for one purpose.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    k0: u64,
    k1: u64,
}

impl Key {
    /// The key for `purpose`: equal seeds give unrelated keys for different purposes.
    pub(crate) fn derive(seed: &[u8; 32], purpose: u64) -> Key {
        let word = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&seed[at..at + 8]);
            u64::from_le_bytes(bytes)
        };
        let half = |k0: u64, k1: u64| {
            let mut hasher = SipHasher24::new_with_keys(k0, k1);
            hasher.write_u64(purpose);
            hasher.write(seed);
            hasher.finish()
        };
        Key { k0: half(word(0), word(8)), k1: half(word(16), word(24)) }
    }

    /// The key after this one. The step cannot be undone.
    pub(crate) fn next(&self, step: u64) -> Key {
        let half = |which: u64| {
            let mut hasher = self.hasher();
            hasher.write_u64(step);
            hasher.write_u64(which);
            hasher.finish()
        };
        Key { k0: half(0), k1: half(1) }
    }

    /// A SipHash-2-4 hasher under this key, for values that an outsider may see.
    pub(crate) fn hasher(&self) -> SipHasher24 {
        SipHasher24::new_with_keys(self.k0, self.k1)
    }
}

/// Purposes of derived keys.
pub(crate) mod purpose {
    pub(crate) const RANDOM: u64 = 1;
    pub(crate) const ISS: u64 = 2;
    pub(crate) const TIMESTAMP: u64 = 3;
    pub(crate) const TABLE: u64 = 4;
    pub(crate) const SYN_COOKIE: u64 = 5;
    pub(crate) const FAST_OPEN: u64 = 6;
    pub(crate) const PORTS: u64 = 7;
}

/// A stream of pseudo-random numbers.
pub(crate) struct Random {
    key: Key,
    counter: u64,
}

impl Random {
    /// The stream that belongs to `seed` and to one of the stacks that share it: each has a stream of its own.
    pub(crate) fn for_seat(seed: &[u8; 32], seat: u16) -> Random {
        Random::for_purpose(seed, purpose::RANDOM | u64::from(seat) << 32)
    }

    /// The stream that belongs to `seed` and to a purpose of its own.
    pub(crate) fn for_purpose(seed: &[u8; 32], purpose: u64) -> Random {
        Random { key: Key::derive(seed, purpose), counter: 0 }
    }

    /// The stream that belongs to `seed`.
    #[cfg(test)]
    pub(crate) fn new(seed: &[u8; 32]) -> Random {
        Random::for_seat(seed, 0)
    }

    /// 64 random bits.
    pub(crate) fn next_u64(&mut self) -> u64 {
        self.counter = self.counter.wrapping_add(1);
        let mut hasher = self.key.hasher();
        hasher.write_u64(self.counter);
        hasher.finish()
    }

    /// 32 random bits.
    pub(crate) fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    /// A number below `bound`; 0 for a bound of 0. The bias is below 2^-32 for the bounds in use.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next_u64() % bound }
    }
}

/// Hashes the keys of tables with SipHash-1-3 under a secret key, so that nobody outside can aim at one bucket.
#[derive(Clone, Copy)]
pub(crate) struct KeyedState(Key);

impl KeyedState {
    /// The hasher of this stack's tables.
    pub(crate) fn new(seed: &[u8; 32]) -> KeyedState {
        KeyedState(Key::derive(seed, purpose::TABLE))
    }
}

impl BuildHasher for KeyedState {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.0.k0, self.0.k1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_by_seed_and_differ_between_seeds() {
        let take = |seed: [u8; 32]| {
            let mut random = Random::new(&seed);
            [random.next_u64(), random.next_u64(), random.next_u64()]
        };
        assert_eq!(take([1; 32]), take([1; 32]));
        assert_ne!(Random::for_seat(&[1; 32], 1).next_u64(), take([1; 32])[0], "another seat");
        assert_ne!(take([1; 32]), take([2; 32]));
        let [a, b, c] = take([0; 32]);
        assert!(a != b && b != c);
    }

    #[test]
    fn below_stays_below() {
        let mut random = Random::new(&[7; 32]);
        for bound in 0..200 {
            assert!(random.below(bound) < bound.max(1));
        }
    }
}
