//! What is done with memory: sums, fills and copies, written as a user of safe Rust would and kept from being left out.

use super::memory::Chance;
use std::hint::black_box;

/// Lanes of a sum: enough for the latency of an addition, and a whole number of vectors.
const LANES: usize = 8;

// Places are counted rather than zipped: the loops are then the same whether or not crates are optimized together.

/// The sum of all words, in lanes that a compiler turns into vectors.
#[inline(never)]
pub fn sum(words: &[u64]) -> u64 {
    let mut lanes = [0u64; LANES];
    let (groups, rest) = words.as_chunks::<LANES>();
    for group in groups {
        for at in 0..LANES {
            lanes[at] = lanes[at].wrapping_add(group[at]);
        }
    }
    together(&lanes).wrapping_add(together(rest))
}

/// The same from the last word to the first.
#[inline(never)]
pub fn sum_backwards(words: &[u64]) -> u64 {
    let mut lanes = [0u64; LANES];
    let (rest, groups) = words.as_rchunks::<LANES>();
    let mut left = groups.len();
    while left > 0 {
        left -= 1;
        let group = &groups[left];
        for at in 0..LANES {
            lanes[at] = lanes[at].wrapping_add(group[at]);
        }
    }
    together(&lanes).wrapping_add(together(rest))
}

/// The sum of a few.
fn together(words: &[u64]) -> u64 {
    let mut sum = 0u64;
    for word in words {
        sum = sum.wrapping_add(*word);
    }
    sum
}

/// One word of every `stride`, from the first to the last.
#[inline(never)]
pub fn sum_strided(words: &[u64], stride: usize) -> u64 {
    let mut lanes = [0u64; 4];
    let mut at = 0;
    let step = stride.max(1);
    while at + 3 * step < words.len() {
        lanes[0] = lanes[0].wrapping_add(words[at]);
        lanes[1] = lanes[1].wrapping_add(words[at + step]);
        lanes[2] = lanes[2].wrapping_add(words[at + 2 * step]);
        lanes[3] = lanes[3].wrapping_add(words[at + 3 * step]);
        at += 4 * step;
    }
    while at < words.len() {
        lanes[0] = lanes[0].wrapping_add(words[at]);
        at += step;
    }
    together(&lanes)
}

/// Loads of [`sum_strided`] from so many words.
pub fn strided_loads(words: usize, stride: usize) -> u64 {
    words.div_ceil(stride.max(1)) as u64
}

/// The next state of a walk through places at random (Knuth's multiplier).
fn step(state: u64) -> u64 {
    state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
}

/// The place below `count` that a state stands for: its high half as a share.
fn place(state: u64, count: u64) -> usize {
    (((state >> 32) * count) >> 32) as usize
}

/// Words at so many places at random; four walks side by side, none of which waits for another.
#[inline(never)]
pub fn gather(words: &[u64], reads: u64, chance: &mut Chance) -> u64 {
    let (mut a, mut b, mut c, mut d) = (chance.number(), chance.number(), chance.number(), chance.number());
    let count = words.len() as u64;
    let (mut one, mut other) = (0u64, 0u64);
    for _ in 0..reads / 4 {
        (a, b, c, d) = (step(a), step(b), step(c), step(d));
        one = one.wrapping_add(words[place(a, count)]).wrapping_add(words[place(b, count)]);
        other = other.wrapping_add(words[place(c, count)]).wrapping_add(words[place(d, count)]);
    }
    one.wrapping_add(other)
}

/// Writes words at so many places at random, four walks side by side.
#[inline(never)]
pub fn scatter(words: &mut [u64], writes: u64, chance: &mut Chance) {
    let (mut a, mut b, mut c, mut d) = (chance.number(), chance.number(), chance.number(), chance.number());
    let count = words.len() as u64;
    for at in 0..writes / 4 {
        (a, b, c, d) = (step(a), step(b), step(c), step(d));
        words[place(a, count)] = at;
        words[place(b, count)] = at;
        words[place(c, count)] = at;
        words[place(d, count)] = at;
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

/// Mixes an element into what the next one waits for: no two become one load.
fn mix(mixed: u64, element: u64) -> u64 {
    mixed.rotate_left(1) ^ element
}

/// Reads in elements of the width of an integer.
macro_rules! narrow {
    ($name:ident, $integer:ty, $bytes:literal) => {
        #[inline(never)]
        fn $name(bytes: &[u8]) -> u64 {
            let mut mixed = 0u64;
            for element in bytes.as_chunks::<$bytes>().0 {
                mixed = mix(mixed, u64::from(<$integer>::from_le_bytes(*element)));
            }
            mixed
        }
    };
}

narrow!(by_1, u8, 1);
narrow!(by_2, u16, 2);
narrow!(by_4, u32, 4);
narrow!(by_8, u64, 8);

/// Reads in elements of two words.
#[inline(never)]
fn by_16(bytes: &[u8]) -> u64 {
    let mut mixed = 0u64;
    for element in bytes.as_chunks::<8>().0.as_chunks::<2>().0 {
        let (a, b) = (u64::from_le_bytes(element[0]), u64::from_le_bytes(element[1]));
        mixed = mix(mixed, a ^ b.rotate_left(7));
    }
    mixed
}

/// Reads in elements of four words.
#[inline(never)]
fn by_32(bytes: &[u8]) -> u64 {
    let mut mixed = 0u64;
    for element in bytes.as_chunks::<8>().0.as_chunks::<4>().0 {
        let (a, b) = (u64::from_le_bytes(element[0]), u64::from_le_bytes(element[1]));
        let (c, d) = (u64::from_le_bytes(element[2]), u64::from_le_bytes(element[3]));
        mixed = mix(mixed, (a ^ b.rotate_left(7)) ^ (c.rotate_left(13) ^ d.rotate_left(19)));
    }
    mixed
}

/// Reads bytes in elements of so many bytes; nothing for a width that is not one of [`WIDTHS`].
pub fn read_elements(bytes: &[u8], width: usize) -> u64 {
    match width {
        1 => by_1(bytes),
        2 => by_2(bytes),
        4 => by_4(bytes),
        8 => by_8(bytes),
        16 => by_16(bytes),
        32 => by_32(bytes),
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
        assert_eq!(sum_strided(&words, 1), all);
        assert_eq!(sum_strided(&words, 8), words.iter().step_by(8).sum::<u64>());
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

    /// As in the table of banks: few strides in a small working set.
    #[test]
    fn every_load_of_a_stride_is_one_that_is_counted() {
        assert_eq!(sum_strided(&[1; 2048], 1024), 2);
        for words in [2_048, 4_096, 3_000, 65_536] {
            let ones = vec![1; words];
            for power in [8, 64, 128, 512, 1_024] {
                for stride in [power, power + 8] {
                    let loads = strided_loads(words, stride);
                    assert_eq!(sum_strided(&ones, stride), loads, "{words} {stride}");
                }
            }
        }
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
