//! Whether this processor's ways to add a checksum and to copy words agree with the slow ones: what tests on the host cannot say of code
//! for it.

use alloc::string::String;
use alloc::vec::Vec;
use linerate_nic::checksum;

/// Bytes of the longest piece, and the places where pieces begin.
const LONGEST: usize = 600;
const PLACES: usize = 8;

/// Bytes where words of eight lie, so that the compiler knows of copies between them that they are of words.
#[repr(align(8))]
struct Aligned([u8; LONGEST_COPY + PLACES]);

/// Bytes of the longest copy: some blocks, and all that may be left of one.
const LONGEST_COPY: usize = 136;

/// Copies every length between words, and says how many went wrong.
pub(crate) fn compare_copies() -> String {
    let (mut compared, mut different) = (0, 0);
    for from in [0, 4] {
        for to in [0, 4] {
            for len in 0..=LONGEST_COPY {
                let source = Aligned(core::array::from_fn(|at| (at * 37 + 1) as u8));
                let mut target = Aligned([0; LONGEST_COPY + PLACES]);
                copy(&source, from, &mut target, to, len);
                let expected = |at: usize| {
                    if (to..to + len).contains(&at) { source.0[at - to + from] } else { 0 }
                };
                compared += 1;
                different += u32::from((0..target.0.len()).any(|at| target.0[at] != expected(at)));
            }
        }
    }
    alloc::format!("{compared} copies compared, {different} differ\n")
}

/// The places are known to the compiler where they are 0 or 4 by name.
#[inline(never)]
fn copy(source: &Aligned, from: usize, target: &mut Aligned, to: usize, len: usize) {
    match (from, to) {
        (0, 0) => target.0[..len].copy_from_slice(&source.0[..len]),
        (0, _) => target.0[4..4 + len].copy_from_slice(&source.0[..len]),
        (_, 0) => target.0[..len].copy_from_slice(&source.0[4..4 + len]),
        (_, _) => target.0[4..4 + len].copy_from_slice(&source.0[4..4 + len]),
    }
}

/// Compares sums of every length at every place of a word, of noise and of the largest numbers, and says how many differ.
pub(crate) fn compare() -> String {
    let noise: Vec<u8> = (0..LONGEST + PLACES).map(|at| (at * at * 167 + at * 29) as u8).collect();
    let most = alloc::vec![0xff; LONGEST + PLACES];
    let (mut compared, mut different) = (0, 0);
    for bytes in [&noise, &most] {
        for place in 0..PLACES {
            for len in 0..=LONGEST {
                let piece = &bytes[place..place + len];
                compared += 1;
                different += u32::from(checksum::sum(piece).folded() != slowly(piece));
            }
        }
    }
    alloc::format!("{compared} sums compared, {different} differ\n")
}

/// RFC 1071 byte by byte.
fn slowly(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for (at, byte) in bytes.iter().enumerate() {
        sum += u32::from(*byte) << if at % 2 == 0 { 8 } else { 0 };
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    #[test]
    fn none_differ_here() {
        assert_eq!(super::compare(), "9616 sums compared, 0 differ\n");
        assert_eq!(super::compare_copies(), "548 copies compared, 0 differ\n");
    }
}
