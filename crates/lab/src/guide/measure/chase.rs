//! Loads that wait for each other: a random circle through memory, each place of which says where the next is.

use super::memory::Chance;
use std::hint::black_box;

/// Writes one circle through all places of `words` that lie `stride` words apart, in random order. Returns how many there are.
pub fn circle(words: &mut [u64], stride: usize, chance: &mut Chance) -> usize {
    let places = words.len().checked_div(stride).unwrap_or(0);
    let order = chance.order(places);
    let next = order.iter().cycle().skip(1);
    for (place, next) in order.iter().zip(next) {
        words[*place as usize * stride] = u64::from(*next) * stride as u64;
    }
    places
}

/// Follows the circle for that many steps; returns where it is.
#[inline(never)]
pub fn follow(words: &[u64], mut at: usize, steps: u64) -> usize {
    for _ in 0..steps / 4 {
        at = words[at] as usize;
        at = words[at] as usize;
        at = words[at] as usize;
        at = words[at] as usize;
    }
    for _ in 0..steps % 4 {
        at = words[at] as usize;
    }
    black_box(at)
}

/// Cycles of the core, told by a chain of additions and exclusive ors, two cycles a link on every processor that this runs on.
#[inline(never)]
pub fn chain(links: u64) -> u64 {
    let (add, flip) = (black_box(0x1234_5678_9ABC_DEF1u64), black_box(0x0FED_CBA9_8765_4321u64));
    let mut value = black_box(1u64);
    for _ in 0..links / 8 {
        value = value.wrapping_add(add) ^ flip;
        value = value.wrapping_add(add) ^ flip;
        value = value.wrapping_add(add) ^ flip;
        value = value.wrapping_add(add) ^ flip;
        value = value.wrapping_add(add) ^ flip;
        value = value.wrapping_add(add) ^ flip;
        value = value.wrapping_add(add) ^ flip;
        value = value.wrapping_add(add) ^ flip;
    }
    black_box(value)
}

/// Cycles of a link of [`chain`].
pub const LINK_CYCLES: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_circle_passes_each_place_once(places in 1usize..200, stride in 1usize..16, seed: u64) {
            let mut words = vec![0; places * stride + stride / 2];
            let count = circle(&mut words, stride, &mut Chance(seed));
            prop_assert_eq!(count, words.len() / stride);
            let mut seen = vec![false; count];
            let mut at = 0;
            for _ in 0..count {
                prop_assert!(!std::mem::replace(&mut seen[at / stride], true));
                at = follow(&words, at, 1);
            }
            prop_assert_eq!(at, 0);
        }
    }
}
