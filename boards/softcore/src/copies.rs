//! Copies and comparisons as `memory.s` makes them, compared with what should come of them.

use core::cmp::Ordering;
use core::hint::black_box;

/// Longest copy: some lines of the cache, and all that may be left of one.
const LONGEST: usize = 100;
/// Places of source and destination: all that a word can have, and one more.
const PLACES: usize = 5;

/// Longest comparison.
const LONGEST_COMPARED: usize = 40;

/// Comparisons of every length, at every place in a word, of what is equal and of what differs in one byte, either way: how many there
/// were, and how many went wrong.
pub fn order() -> (u32, u32) {
    let (mut count, mut wrong) = (0, 0);
    for len in 0..=LONGEST_COMPARED {
        for (first, second) in (0..PLACES * PLACES).map(|both| (both % PLACES, both / PLACES)) {
            let mut left: [u8; LONGEST_COMPARED + PLACES] = core::array::from_fn(|at| (at * 7) as u8);
            let mut right = [0xff; LONGEST_COMPARED + PLACES];
            right[second..second + len].copy_from_slice(&left[first..first + len]);
            let mut check = |left: &[u8], expected: Ordering| {
                let found = black_box(left).cmp(black_box(&right[second..second + len]));
                count += 1;
                wrong += u32::from(found != expected);
            };
            check(&left[first..first + len], Ordering::Equal);
            for at in first..first + len {
                let byte = left[at];
                for (other, expected) in [
                    (byte.wrapping_add(0x80), byte.wrapping_add(0x80).cmp(&byte)),
                    (byte ^ 1, (byte ^ 1).cmp(&byte)),
                ] {
                    left[at] = other;
                    check(&left[first..first + len], expected);
                }
                left[at] = byte;
            }
        }
    }
    (count, wrong)
}

/// Copies of every length from and to every place in a word: how many there were, and how many went wrong.
pub fn compare() -> (u32, u32) {
    let (mut count, mut wrong) = (0, 0);
    let source: [u8; LONGEST + PLACES] = core::array::from_fn(|at| 1 + at as u8);
    for len in 0..=LONGEST {
        for (from, to) in (0..PLACES * PLACES).map(|both| (both % PLACES, both / PLACES)) {
            let mut copy = [0; LONGEST + PLACES];
            let piece = black_box(&source[from..from + len]);
            black_box(&mut copy[to..to + len]).copy_from_slice(piece);
            let is_right = copy.iter().enumerate().all(|(at, byte)| {
                let expected = if (to..to + len).contains(&at) { source[at - to + from] } else { 0 };
                *byte == expected
            });
            count += 1;
            wrong += u32::from(!is_right);
        }
    }
    (count, wrong)
}
