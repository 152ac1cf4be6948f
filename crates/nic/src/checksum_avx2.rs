//! The Internet checksum with 256-bit vectors, for x86-64 processors that have AVX2.
#![allow(unsafe_code)]

use core::arch::x86_64::{
    __m256i, _mm_add_epi64, _mm_cvtsi128_si64, _mm_extract_epi64, _mm256_add_epi64, _mm256_castsi256_si128,
    _mm256_extracti128_si256, _mm256_loadu_si256, _mm256_setzero_si256,
};
use linerate_wire::checksum::raw_sum_short;

cpufeatures::new!(has_avx2, "avx2");

/// Below this many bytes the portable version is as fast.
const WORTH_IT: usize = 96;
/// Bytes of a vector, of half a word, and of what is added in one round.
const VECTOR: usize = 32;
const HALF: usize = 4;
const BLOCK: usize = 4 * VECTOR;

/// The raw sum as `linerate_wire::checksum` defines it; `None` where the processor has no AVX2 or `bytes` are too few.
#[inline]
pub(crate) fn raw_sum(bytes: &[u8]) -> Option<u64> {
    if bytes.len() < WORTH_IT || !has_avx2::get() {
        return None;
    }
    // SAFETY: the line above has asked the processor (and, for the registers, the operating system) for AVX2.
    Some(unsafe { raw_sum_avx2(bytes) })
}

/// Adds 64-bit words modulo 2^64, and beside them those that begin four bytes later, which costs two additions a vector. Of a
/// word with the halves `low` and `high`, the one sum has `low + 2^32 high`, the other `high + 2^32 low'`, `low'` being that of
/// the word after it: so the first less 2^32 times the second is exactly the sum of all `low`, and from that follows that of all
/// `high`. Neither overflows below 2^32 words.
#[target_feature(enable = "avx2")]
fn raw_sum_avx2(bytes: &[u8]) -> u64 {
    let (mut words, mut shifted) = ([_mm256_setzero_si256(); 4], [_mm256_setzero_si256(); 4]);
    let mut rest = bytes;
    // Each block is seen with the four bytes behind it.
    while let Some((block, _)) = rest.split_first_chunk::<{ BLOCK + HALF }>() {
        for (at, (word, shift)) in words.iter_mut().zip(&mut shifted).enumerate() {
            *word = _mm256_add_epi64(*word, load(block, at * VECTOR));
            *shift = _mm256_add_epi64(*shift, load(block, at * VECTOR + HALF));
        }
        rest = rest.get(BLOCK..).unwrap_or_default();
    }
    while let Some((vector, _)) = rest.split_first_chunk::<{ VECTOR + HALF }>() {
        words[0] = _mm256_add_epi64(words[0], load(vector, 0));
        shifted[0] = _mm256_add_epi64(shifted[0], load(vector, HALF));
        rest = rest.get(VECTOR..).unwrap_or_default();
    }
    let half = |bytes: &[u8]| bytes.first_chunk().map_or(0, |half| u64::from(u32::from_ne_bytes(*half)));
    // Of the second sum, the first word has lost its `low`, and the last has one of the word that follows.
    let (first, next) = (half(bytes), half(rest));
    let (words, shifted) = (lanes(words), lanes(shifted));
    let low = words.wrapping_sub(shifted << 32);
    let high = shifted.wrapping_sub(low.wrapping_sub(first).wrapping_add(next) << 32);
    // 2^32 is 1 modulo 0xffff: the halves keep what they are congruent to.
    let folded = |sum: u64| (sum & 0xffff_ffff) + (sum >> 32);
    folded(low) + folded(high) + folded(raw_sum_short(rest))
}

/// The sum of all lanes modulo 2^64.
#[target_feature(enable = "avx2")]
#[inline]
fn lanes(sums: [__m256i; 4]) -> u64 {
    let all = _mm256_add_epi64(_mm256_add_epi64(sums[0], sums[1]), _mm256_add_epi64(sums[2], sums[3]));
    let pairs = _mm_add_epi64(_mm256_castsi256_si128(all), _mm256_extracti128_si256::<1>(all));
    (_mm_cvtsi128_si64(pairs) as u64).wrapping_add(_mm_extract_epi64::<1>(pairs) as u64)
}

/// The 32 bytes at `at`.
#[target_feature(enable = "avx2")]
#[inline]
fn load<const N: usize>(block: &[u8; N], at: usize) -> __m256i {
    let vector: &[u8; VECTOR] = block.get(at..).and_then(<[u8]>::first_chunk).unwrap_or(&[0; VECTOR]);
    // SAFETY: `vector` is 32 readable bytes, and `loadu` asks for no alignment.
    unsafe { _mm256_loadu_si256(vector.as_ptr().cast()) }
}
