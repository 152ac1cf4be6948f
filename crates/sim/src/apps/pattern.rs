//! Bytes that tell where they belong.

use crate::random::mix;

/// An odd number without a pattern of its own: multiples of it run through all 64-bit words before one comes again.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// An endless stream of bytes in which no aligned word of 8 bytes occurs twice, different for each number. A byte that is
/// changed, lost, doubled or misplaced is found by comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pattern {
    key: u64,
}

impl Pattern {
    /// The stream of this number.
    pub fn new(number: u64) -> Pattern {
        Pattern { key: mix(number) }
    }

    fn word(self, index: u64) -> u64 {
        self.key.wrapping_add(index.wrapping_mul(STEP))
    }

    fn byte(self, at: u64) -> u8 {
        self.word(at / 8).to_le_bytes()[(at % 8) as usize]
    }

    /// Writes the bytes from `offset` on.
    pub fn fill(self, offset: u64, out: &mut [u8]) {
        let (head, words) = parts(offset, out.len());
        let (front, rest) = out.split_at_mut(head);
        let (middle, back) = rest.split_at_mut(words * 8);
        let mut word = self.word((offset + head as u64) / 8);
        for place in middle.chunks_exact_mut(8) {
            place.copy_from_slice(&word.to_le_bytes());
            word = word.wrapping_add(STEP);
        }
        let tail = offset + (head + words * 8) as u64;
        front.iter_mut().zip(offset..).for_each(|(byte, at)| *byte = self.byte(at));
        back.iter_mut().zip(tail..).for_each(|(byte, at)| *byte = self.byte(at));
    }

    /// Compares `bytes` with those from `offset` on; returns the position in the stream of the first that is wrong.
    pub fn check(self, offset: u64, bytes: &[u8]) -> Result<(), u64> {
        let (head, words) = parts(offset, bytes.len());
        let (front, rest) = bytes.split_at(head);
        let (middle, back) = rest.split_at(words * 8);
        let mut word = self.word((offset + head as u64) / 8);
        let mut differences = 0;
        for place in middle.chunks_exact(8) {
            let found = place.try_into().map_or(0, u64::from_le_bytes);
            differences |= found ^ word;
            word = word.wrapping_add(STEP);
        }
        let tail = offset + (head + words * 8) as u64;
        let is_right = |part: &[u8], at: u64| part.iter().zip(at..).all(|(byte, at)| *byte == self.byte(at));
        if differences == 0 && is_right(front, offset) && is_right(back, tail) {
            return Ok(());
        }
        let wrong = bytes.iter().zip(offset..).find(|(byte, at)| **byte != self.byte(*at));
        Err(wrong.map_or(offset, |(_, at)| at))
    }
}

/// Bytes before the first whole word, and whole words.
fn parts(offset: u64, len: usize) -> (usize, usize) {
    let head = ((offset.wrapping_neg() % 8) as usize).min(len);
    (head, (len - head) / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_part_is_filled_and_checked_alike() {
        let pattern = Pattern::new(5);
        let mut all = [0; 100];
        pattern.fill(0, &mut all);
        for start in 0..20 {
            for len in 0..60 {
                let mut part = vec![0; len];
                pattern.fill(start as u64, &mut part);
                assert_eq!(part, all[start..start + len]);
                assert_eq!(pattern.check(start as u64, &part), Ok(()));
            }
        }
    }

    #[test]
    fn every_wrong_byte_is_found() {
        let pattern = Pattern::new(6);
        let mut bytes = [0; 61];
        pattern.fill(1_003, &mut bytes);
        for at in 0..bytes.len() {
            let mut wrong = bytes;
            wrong[at] ^= 0x10;
            assert_eq!(pattern.check(1_003, &wrong), Err(1_003 + at as u64));
        }
    }

    #[test]
    fn misplaced_bytes_are_found() {
        let pattern = Pattern::new(7);
        let mut bytes = [0; 64];
        pattern.fill(1 << 20, &mut bytes);
        for off in (0..1_000_000).step_by(8).chain([1, 1_448, 1_460, 65_536]) {
            if off > 0 {
                assert!(pattern.check((1 << 20) + off, &bytes).is_err(), "{off}");
                assert!(pattern.check((1 << 20) - off, &bytes).is_err(), "{off}");
            }
        }
        assert!(Pattern::new(8).check(1 << 20, &bytes).is_err(), "another flow");
    }
}
