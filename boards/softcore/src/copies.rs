//! Copies as `memory.s` makes them, compared with what should come of them.

use core::hint::black_box;

/// Longest copy: some lines of the cache, and all that may be left of one.
const LONGEST: usize = 100;
/// Places of source and destination: all that a word can have, and one more.
const PLACES: usize = 5;

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
