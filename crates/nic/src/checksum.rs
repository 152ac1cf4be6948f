//! The Internet checksum over headers and gather lists (RFC 1071).

use crate::chunk::Chunk;
use crate::meta::ChecksumRequest;

/// The one's complement sum of `bytes` as big-endian 16-bit words, folded, not complemented. A last odd byte counts as
/// the high byte of a word.
pub fn sum(bytes: &[u8]) -> u16 {
    let mut total = 0u64;
    let mut words = bytes.chunks_exact(4);
    for word in &mut words {
        total += u64::from(u32::from_be_bytes([word[0], word[1], word[2], word[3]]));
    }
    let mut last = [0; 4];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    fold(total + u64::from(u32::from_be_bytes(last)))
}

/// Folds carries until 16 bits are left.
pub(crate) fn fold(total: u64) -> u16 {
    let total = (total & 0xffff_ffff) + (total >> 32);
    let total = (total & 0xffff_ffff) + (total >> 32);
    let total = (total & 0xffff) + (total >> 16);
    let total = (total & 0xffff) + (total >> 16);
    total as u16
}

/// A running sum over pieces of any length, also odd ones.
#[derive(Clone, Copy, Default, Debug)]
pub struct Sum {
    total: u64,
    odd: bool,
}

impl Sum {
    /// A sum that starts from `seed` (folded, not complemented), as from a pseudo-header.
    pub fn new(seed: u16) -> Self {
        Sum { total: u64::from(seed), odd: false }
    }

    /// Goes on over `bytes`.
    pub fn add(&mut self, bytes: &[u8]) {
        let part = sum(bytes);
        self.total += u64::from(if self.odd { part.swap_bytes() } else { part });
        self.odd ^= bytes.len() % 2 == 1;
    }

    /// The sum so far, folded, not complemented.
    pub fn value(self) -> u16 {
        fold(self.total)
    }
}

/// Does what a device would do for `request`: sums from its start to the end of the packet (headers in `header`, payload
/// in `chunks`), complements, and writes the field. A result of 0 is written as 0xffff, which is the same number in
/// one's complement and, unlike 0, never means "no checksum" (RFC 768). `None` when the field lies outside of `header`.
pub fn fill(header: &mut [u8], chunks: &[Chunk], request: ChecksumRequest) -> Option<()> {
    let start = usize::from(request.start);
    let field = start.checked_add(usize::from(request.offset))?;
    if field + 2 > header.len() {
        return None;
    }
    let mut sum = Sum::new(0);
    sum.add(header.get(start..)?);
    for chunk in chunks {
        sum.add(chunk.bytes());
    }
    let value = match !sum.value() {
        0 => 0xffff,
        value => value,
    };
    header.get_mut(field..field + 2)?.copy_from_slice(&value.to_be_bytes());
    Some(())
}
