//! Copies between words, as compilers for Arm call them (Run-time ABI for the Arm Architecture, "Memory copying"). The compiler's own go word
//! by word, and byte by byte at the end by another call: 130 instructions for the headers of a segment, where these take 25.

use core::arch::global_asm;

// Only for source and destination at multiples of four; other copies stay the compiler's. `memcpy4` may change what a function may change,
// r0 to r3 and r12, and needs no result.
#[cfg(target_arch = "arm")]
global_asm!(
    ".syntax unified",
    ".section .text.__aeabi_memcpy4, \"ax\"",
    ".type __aeabi_memcpy4, %function",
    ".type __aeabi_memcpy8, %function",
    ".global __aeabi_memcpy4",
    ".global __aeabi_memcpy8",
    // r0: to, r1: from, r2: bytes
    "__aeabi_memcpy4:",
    "__aeabi_memcpy8:",
    "push {{r4-r8, lr}}",
    "subs r2, r2, #32",
    "blo 2f",
    "1: ldmia r1!, {{r3-r8, r12, lr}}",
    "stmia r0!, {{r3-r8, r12, lr}}",
    "subs r2, r2, #32",
    "bhs 1b",
    // What is left has the same lower five bits.
    "2: tst r2, #16",
    "beq 3f",
    "ldmia r1!, {{r3-r6}}",
    "stmia r0!, {{r3-r6}}",
    "3: lsls r3, r2, #29",
    "bcc 4f",
    "ldmia r1!, {{r4, r5}}",
    "stmia r0!, {{r4, r5}}",
    "4: cmp r3, #0",
    "beq 7f",
    "bpl 5f",
    "ldr r4, [r1], #4",
    "str r4, [r0], #4",
    "5: lsls r3, r2, #31",
    "bcc 6f",
    "ldrh r4, [r1], #2",
    "strh r4, [r0], #2",
    "6: tst r2, #1",
    "beq 7f",
    "ldrb r4, [r1]",
    "strb r4, [r0]",
    "7: pop {{r4-r8, pc}}",
    ".size __aeabi_memcpy4, . - __aeabi_memcpy4",
);
