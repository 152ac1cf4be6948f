//! The Internet checksum with 256-bit vectors, for x86-64 processors that have AVX2.
#![allow(unsafe_code)]

use core::arch::x86_64::{
    __m256i, _mm256_add_epi64, _mm256_and_si256, _mm256_extract_epi64, _mm256_loadu_si256,
    _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_srli_epi64,
};
use linerate_wire::checksum::raw_sum as portable;

cpufeatures::new!(has_avx2, "avx2");

/// Below this many bytes the portable version is as fast.
const WORTH_IT: usize = 96;

/// The raw sum as `linerate_wire::checksum` defines it; `None` where the processor has no AVX2 or `bytes` are too few.
#[inline]
pub(crate) fn raw_sum(bytes: &[u8]) -> Option<u64> {
    if bytes.len() < WORTH_IT || !has_avx2::get() {
        return None;
    }
    // SAFETY: the line above has asked the processor (and, for the registers, the operating system) for AVX2.
    Some(unsafe { raw_sum_avx2(bytes) })
}

/// Adds 32-bit words in 64-bit lanes, which cannot overflow below 2^31 vectors, and folds once at the end.
#[target_feature(enable = "avx2")]
fn raw_sum_avx2(bytes: &[u8]) -> u64 {
    let low_half = _mm256_set1_epi64x(0xffff_ffff);
    let mut lanes = [_mm256_setzero_si256(); 4];
    let (blocks, rest) = bytes.as_chunks::<128>();
    for block in blocks {
        let (vectors, _) = block.as_chunks::<32>();
        for (lane, vector) in lanes.iter_mut().zip(vectors) {
            let words = load(vector);
            let halves = _mm256_add_epi64(_mm256_and_si256(words, low_half), _mm256_srli_epi64::<32>(words));
            *lane = _mm256_add_epi64(*lane, halves);
        }
    }
    let (vectors, rest) = rest.as_chunks::<32>();
    for (lane, vector) in lanes.iter_mut().zip(vectors) {
        let words = load(vector);
        let halves = _mm256_add_epi64(_mm256_and_si256(words, low_half), _mm256_srli_epi64::<32>(words));
        *lane = _mm256_add_epi64(*lane, halves);
    }
    let all = _mm256_add_epi64(_mm256_add_epi64(lanes[0], lanes[1]), _mm256_add_epi64(lanes[2], lanes[3]));
    let parts = [
        _mm256_extract_epi64::<0>(all),
        _mm256_extract_epi64::<1>(all),
        _mm256_extract_epi64::<2>(all),
        _mm256_extract_epi64::<3>(all),
    ];
    // 2^32 is 1 modulo 0xffff: the halves add up to less than 2^35, and keep what they are congruent to.
    let vectors: u64 = parts.iter().map(|&part| (part as u64 & 0xffff_ffff) + (part as u64 >> 32)).sum();
    let rest = portable(rest);
    vectors + (rest & 0xffff_ffff) + (rest >> 32)
}

#[target_feature(enable = "avx2")]
#[inline]
fn load(vector: &[u8; 32]) -> __m256i {
    // SAFETY: `vector` is 32 readable bytes, and `loadu` asks for no alignment.
    unsafe { _mm256_loadu_si256(vector.as_ptr().cast()) }
}
