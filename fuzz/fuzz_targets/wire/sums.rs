//! Checksum and hash against their definitions.

use linerate_wire::checksum::{self, Sum};
use linerate_wire::toeplitz;

/// Sums in pieces whose lengths the input itself gives, and compares with the sum byte by byte.
pub fn checksum(bytes: &[u8]) {
    let mut expected: u32 = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        expected += u32::from(byte) << (8 * (1 - at % 2));
        expected = (expected & 0xffff) + (expected >> 16);
    }
    let mut sum = Sum::ZERO;
    let mut rest = bytes;
    while let [len, ..] = rest {
        let (piece, after) = rest.split_at(rest.len().min(1 + usize::from(len % 48)));
        sum.add(piece);
        rest = after;
    }
    assert_eq!(u32::from(sum.folded()), expected);
    assert_eq!(u32::from(checksum::checksum(bytes)), !expected & 0xffff);
    if let Some((front, back)) = bytes.split_at_checked(bytes.len() / 3) {
        let (mut first, mut second) = (Sum::ZERO, Sum::ZERO);
        first.add(front);
        second.add(back);
        assert_eq!(sum.without_front(first).folded() % 0xffff, second.folded() % 0xffff);
        first.append(second);
        assert_eq!(first, sum);
    }
    if let [a, b, c, d, e, f, ..] = *bytes {
        let (old, new) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let before = u16::from_be_bytes([e, f]);
        let there = checksum::update(before, old, new);
        assert_eq!(checksum::update(there, new, old) % 0xffff, before % 0xffff);
    }
}

/// Hashes with a key from the input: the hash of two inputs added without carry is that of their hashes.
pub fn toeplitz(bytes: &[u8]) {
    let Some((key, input)) = bytes.split_first_chunk::<{ toeplitz::KEY_LEN }>() else { return };
    let (first, second) = input.split_at(input.len() / 2);
    let both: Vec<u8> = first.iter().zip(second).map(|(a, b)| a ^ b).collect();
    let second = &second[..both.len()];
    assert_eq!(toeplitz::hash(key, &both), toeplitz::hash(key, first) ^ toeplitz::hash(key, second));
    let _ = toeplitz::hash(key, input);
}
