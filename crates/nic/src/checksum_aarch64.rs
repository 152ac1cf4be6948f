//! The Internet checksum with loads of register pairs and the carry flag, for 64-bit Arm processors.
#![allow(unsafe_code)]

use core::arch::asm;
use linerate_wire::checksum::raw_sum_in_words;

/// A cache line of words. They are read where words lie: elsewhere a processor without address translation faults.
type Block = [u64; 8];

/// The raw sum as `linerate_wire::checksum` defines it.
pub(crate) fn raw_sum(bytes: &[u8]) -> u64 {
    raw_sum_in_words(bytes, |blocks| if blocks.is_empty() { 0 } else { sum_blocks(blocks) })
}

/// Adds the words of at least one block: two are loaded by one instruction, and each addition takes the carry of the one before, from
/// one block to the next too, as comparing addresses leaves it alone.
fn sum_blocks(blocks: &[Block]) -> u64 {
    let words = blocks.as_flattened().as_ptr_range();
    let mut sum = 0u64;
    // SAFETY: reads whole blocks from the first word to before the end, of which there is one at least, aligned as words are; the
    // registers that change are named.
    unsafe {
        asm!(
            "cmn xzr, xzr",
            "2: ldp {a}, {b}, [{at}], #64",
            "ldp {c}, {d}, [{at}, #-48]",
            "adcs {sum}, {sum}, {a}",
            "adcs {sum}, {sum}, {b}",
            "ldp {a}, {b}, [{at}, #-32]",
            "adcs {sum}, {sum}, {c}",
            "adcs {sum}, {sum}, {d}",
            "ldp {c}, {d}, [{at}, #-16]",
            "adcs {sum}, {sum}, {a}",
            "adcs {sum}, {sum}, {b}",
            "adcs {sum}, {sum}, {c}",
            "adcs {sum}, {sum}, {d}",
            "sub {left}, {end}, {at}",
            "cbnz {left}, 2b",
            // The last carry, and the one that adding it may make.
            "adcs {sum}, {sum}, xzr",
            "adc {sum}, {sum}, xzr",
            at = inout(reg) words.start => _,
            end = in(reg) words.end,
            sum = inout(reg) sum,
            a = out(reg) _, b = out(reg) _, c = out(reg) _, d = out(reg) _, left = out(reg) _,
            options(pure, readonly, nostack)
        );
    }
    sum
}
