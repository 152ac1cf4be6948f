//! The Internet checksum with multiple loads and the carry flag, for 32-bit Arm processors with Thumb-2 or Arm instructions.
#![allow(unsafe_code)]

use core::arch::asm;
use linerate_wire::checksum::{WordBlock, raw_sum_in_words};

/// The raw sum as `linerate_wire::checksum` defines it.
pub(crate) fn raw_sum(bytes: &[u8]) -> u64 {
    raw_sum_in_words(bytes, |blocks| if blocks.is_empty() { 0 } else { sum_blocks(blocks).into() })
}

/// Adds the words of at least one block: eight are loaded by one instruction, and each addition takes the carry of the one before,
/// from one block to the next too, as comparing addresses leaves it alone.
fn sum_blocks(blocks: &[WordBlock]) -> u32 {
    let words = blocks.as_flattened().as_ptr_range();
    let mut sum = 0u32;
    // SAFETY: reads whole blocks from the first word to before the end, of which there is one at least, aligned as words are; the
    // registers that change are named.
    unsafe {
        asm!(
            "adds r2, r2, #0",
            "2: ldmia r0!, {{r3, r4, r5, r8, r9, r10, r12, lr}}",
            "adcs r2, r2, r3",
            "adcs r2, r2, r4",
            "adcs r2, r2, r5",
            "adcs r2, r2, r8",
            "adcs r2, r2, r9",
            "adcs r2, r2, r10",
            "adcs r2, r2, r12",
            "adcs r2, r2, lr",
            "teq r0, r1",
            "bne 2b",
            // The last carry, and the one that adding it may make.
            "adcs r2, r2, #0",
            "adc r2, r2, #0",
            inout("r0") words.start => _,
            in("r1") words.end,
            inout("r2") sum,
            out("r3") _, out("r4") _, out("r5") _, out("r8") _, out("r9") _, out("r10") _, out("r12") _, out("lr") _,
            options(pure, readonly, nostack)
        );
    }
    sum
}
