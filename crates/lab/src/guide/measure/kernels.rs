//! What is done with memory: sums, fills and copies, written as a user of safe Rust would and kept from being left out.

use super::memory::Chance;
use std::hint::black_box;

/// The sum of all words, in lanes that a compiler turns into vectors.
#[inline(never)]
pub fn sum(words: &[u64]) -> u64 {
    let mut lanes = [0u64; 16];
    let (groups, rest) = words.as_chunks::<16>();
    for group in groups {
        for (lane, word) in lanes.iter_mut().zip(group) {
            *lane = lane.wrapping_add(*word);
        }
    }
    let rest = rest.iter().fold(0u64, |sum, word| sum.wrapping_add(*word));
    lanes.iter().fold(rest, |sum, lane| sum.wrapping_add(*lane))
}

/// The same from the last word to the first.
#[inline(never)]
pub fn sum_backwards(words: &[u64]) -> u64 {
    let mut lanes = [0u64; 16];
    let (rest, groups) = words.as_rchunks::<16>();
    for group in groups.iter().rev() {
        for (lane, word) in lanes.iter_mut().zip(group) {
            *lane = lane.wrapping_add(*word);
        }
    }
    let rest = rest.iter().fold(0u64, |sum, word| sum.wrapping_add(*word));
    lanes.iter().fold(rest, |sum, lane| sum.wrapping_add(*lane))
}

/// One word of every `stride`, from the first to the last.
#[inline(never)]
pub fn sum_strided(words: &[u64], stride: usize) -> u64 {
    let mut lanes = [0u64; 4];
    let mut at = 0;
    let step = stride.max(1);
    while at + 3 * step < words.len() {
        for (number, lane) in lanes.iter_mut().enumerate() {
            *lane = lane.wrapping_add(words[at + number * step]);
        }
        at += 4 * step;
    }
    lanes.iter().fold(0u64, |sum, lane| sum.wrapping_add(*lane))
}

/// Four walks through places at random that do not wait for each other (Knuth's multiplier, the high half of the state).
struct Walks([u64; 4]);

impl Walks {
    fn new(chance: &mut Chance) -> Walks {
        Walks([chance.next(), chance.next(), chance.next(), chance.next()])
    }

    /// The next places below `count`, one of each walk.
    fn next(&mut self, count: u64) -> [usize; 4] {
        self.0.each_mut().map(|state| {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (((*state >> 32) * count) >> 32) as usize
        })
    }
}

/// Words at so many places at random; four at a time, none of which waits for another.
#[inline(never)]
pub fn gather(words: &[u64], reads: u64, chance: &mut Chance) -> u64 {
    let mut walks = Walks::new(chance);
    let mut lanes = [0u64; 4];
    for _ in 0..reads / 4 {
        for (lane, place) in lanes.iter_mut().zip(walks.next(words.len() as u64)) {
            *lane = lane.wrapping_add(words[place]);
        }
    }
    lanes.iter().fold(0u64, |sum, lane| sum.wrapping_add(*lane))
}

/// Writes words at so many places at random, four at a time.
#[inline(never)]
pub fn scatter(words: &mut [u64], writes: u64, chance: &mut Chance) {
    let mut walks = Walks::new(chance);
    for at in 0..writes / 4 {
        for place in walks.next(words.len() as u64) {
            words[place] = at;
        }
    }
}

/// Fills bytes, as `memset` does.
#[inline(never)]
pub fn fill(bytes: &mut [u8], value: u8) {
    bytes.fill(black_box(value));
    black_box(bytes);
}

/// Copies bytes, as `memcpy` does.
#[inline(never)]
pub fn copy(to: &mut [u8], from: &[u8]) {
    to.copy_from_slice(from);
    black_box(to);
}

/// Reads bytes in elements of `N`, each of which the next waits for: no two become one load.
#[inline(never)]
fn elements<const N: usize>(bytes: &[u8]) -> u64 {
    let mut mixed = 0u64;
    for element in bytes.as_chunks::<N>().0 {
        let mut word = [0u8; 8];
        let shared = N.min(8);
        word[..shared].copy_from_slice(&element[..shared]);
        // The other words of a wide element come with it.
        let more = element.as_chunks::<8>().0.iter().skip(1);
        let more = more.fold(0u64, |all, word| all ^ u64::from_le_bytes(*word));
        mixed = mixed.rotate_left(1) ^ u64::from_le_bytes(word) ^ more;
    }
    mixed
}

/// Reads bytes in elements of so many bytes; nothing for a width that is not one of [`WIDTHS`].
pub fn read_elements(bytes: &[u8], width: usize) -> u64 {
    match width {
        1 => elements::<1>(bytes),
        2 => elements::<2>(bytes),
        4 => elements::<4>(bytes),
        8 => elements::<8>(bytes),
        16 => elements::<16>(bytes),
        32 => elements::<32>(bytes),
        _ => 0,
    }
}

/// Widths of elements in bytes.
pub const WIDTHS: [usize; 6] = [1, 2, 4, 8, 16, 32];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_touches_what_it_says() {
        let words: Vec<u64> = (0..1003).collect();
        let all: u64 = words.iter().sum();
        assert_eq!(sum(&words), all);
        assert_eq!(sum_backwards(&words), all);
        assert_eq!(sum_strided(&words, 1), words.iter().take(1000).sum::<u64>());
        assert_eq!(sum_strided(&words, 8), words.iter().step_by(8).take(124).sum::<u64>());
        assert_eq!(gather(&[5; 100], 40, &mut Chance(1)), 200);
        let mut written = vec![u64::MAX; 50];
        scatter(&mut written, 4000, &mut Chance(1));
        assert!(written.iter().all(|word| *word < 1000), "a place in fifty is not met in 4000");
        let mut bytes = [0u8; 64];
        fill(&mut bytes, 3);
        assert_eq!(bytes, [3; 64]);
        let from: Vec<u8> = (0..64).collect();
        copy(&mut bytes, &from);
        assert_eq!(bytes.as_slice(), from);
    }

    #[test]
    fn every_width_reads_all_bytes() {
        let mut bytes = vec![0u8; 256];
        for width in WIDTHS {
            let before = read_elements(&bytes, width);
            for at in [0, 31, 255] {
                bytes[at] = 1;
                assert_ne!(read_elements(&bytes, width), before, "{width} {at}");
                bytes[at] = 0;
            }
        }
    }
}
