//! Atomic operations on memory: the core has LR and SC, not the others of the A extension. They come here as illegal instructions.
//! There is one core and no interrupt is taken: a load and a store are one operation.

use crate::registers::{read, write};

/// Bytes of such an instruction.
const LEN: u32 = 4;

/// Carries out the instruction at the address in `registers[0]`, behind which it goes on, if it is one of them.
pub fn emulate(registers: &mut [u32; 32]) -> bool {
    let at = registers[0] as usize;
    // It may lie at a half word.
    let half = |at: usize| read(at & !3) >> (8 * (at & 2)) & 0xffff;
    let code = half(at) | half(at + 2) << 16;
    if code & 0x707f != 0x202f {
        return false;
    }
    let register = |lowest: u32| (code >> lowest & 31) as usize;
    let address = registers[register(15)] as usize;
    let with = match register(20) {
        0 => 0,
        number => registers[number],
    };
    if address & 3 != 0 {
        return false;
    }
    let was = read(address);
    let (signed, signed_with) = (was.cast_signed(), with.cast_signed());
    // RV32A, table 24.
    let new = match code >> 27 {
        0b00000 => was.wrapping_add(with),
        0b00001 => with,
        0b00100 => was ^ with,
        0b01100 => was & with,
        0b01000 => was | with,
        0b10000 => signed.min(signed_with).cast_unsigned(),
        0b10100 => signed.max(signed_with).cast_unsigned(),
        0b11000 => was.min(with),
        0b11100 => was.max(with),
        _ => return false,
    };
    write(address, new);
    if register(7) != 0 {
        registers[register(7)] = was;
    }
    registers[0] += LEN;
    true
}
