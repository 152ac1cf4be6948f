//! Who called whom when it ended, without frame pointers: words of the stack that point behind a call in the code.
//!
//! The compiled libraries have no frame pointers, and to keep them would cost registers on every path. So the stack is
//! searched. What a function has left behind there that returned before may be among what is found; missing are
//! functions that called the next one by a jump, and the caller of one that never returns, which does not store where it came
//! from: so of a panic the last place is in its message, not among the calls.

/// What the code consists of. Addresses are below 4 GiB, so that the halves of a 64-bit word may be looked at one by one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Instructions {
    /// Arm, four bytes each.
    Arm,
    /// Those of a 64-bit Arm, four bytes each.
    A64,
    /// RISC-V of 32 bits, two or four.
    RiscV,
    /// Thumb, two or four.
    Thumb,
}

/// The code of an image, and where it lies.
#[derive(Clone, Copy, Debug)]
pub struct Code<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// The address of the first.
    pub start: u32,
    /// What it consists of.
    pub instructions: Instructions,
}

impl Code<'_> {
    /// The half word at an address.
    fn half(&self, address: u32) -> Option<u16> {
        let at = address.checked_sub(self.start)? as usize;
        self.bytes.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
    }

    /// The instruction of four bytes in front of an address, and where it lies.
    fn word_before(&self, address: u32) -> Option<(u32, u32)> {
        let at = address.checked_sub(4).filter(|at| at.is_multiple_of(4))?;
        Some((at, u32::from(self.half(at)?) | u32::from(self.half(at + 2)?) << 16))
    }

    /// The call after which a word of the stack would go on, if it is an address behind one.
    pub fn call_before(&self, word: u32) -> Option<u32> {
        match self.instructions {
            Instructions::Arm => {
                let (call, code) = self.word_before(word)?;
                // BL under a condition or none, BLX to an address, BLX to a register.
                let is_call = (code >> 24 & 0xf == 0xb && code >> 28 != 0xf)
                    || code >> 25 == 0x7d
                    || code & 0x0fff_fff0 == 0x012f_ff30;
                is_call.then_some(call)
            }
            Instructions::A64 => {
                let (call, code) = self.word_before(word)?;
                // BL, BLR.
                (code >> 26 == 0b10_0101 || code & 0xffff_fc1f == 0xd63f_0000).then_some(call)
            }
            Instructions::RiscV => {
                let (long, short) = (word.checked_sub(4)?, word.checked_sub(2)?);
                let last = self.half(short).filter(|_| word.is_multiple_of(2))?;
                let code = self.half(long).map(|first| u32::from(first) | u32::from(last) << 16);
                // JAL and JALR that leave the way back in ra; C.JALR, C.JAL.
                if code.is_some_and(|code| code & 0xfff == 0x0ef || code & 0x7fff == 0x00e7) {
                    return Some(long);
                }
                ((last & 0xf07f == 0x9002 && last & 0x0f80 != 0) || last & 0xe003 == 0x2001).then_some(short)
            }
            Instructions::Thumb => {
                // The lowest bit says that it is Thumb code.
                let behind = word.checked_sub(1).filter(|_| word % 2 == 1)?;
                let (long, short) = (behind.checked_sub(4)?, behind.checked_sub(2)?);
                // BL and BLX to an address, BLX to a register.
                if self.half(long)? & 0xf800 == 0xf000 && self.half(short)? & 0xc000 == 0xc000 {
                    return Some(long);
                }
                (self.half(short)? & 0xff87 == 0x4780).then_some(short)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn calls(code: &Code<'_>, stack: &[u32]) -> Vec<u32> {
        stack.iter().filter_map(|word| code.call_before(*word)).collect()
    }

    #[test]
    fn calls_of_all_kinds_are_told_from_other_words() {
        let arm: Vec<u8> = [0xe59f_0000_u32, 0xebff_fffe, 0xe12f_ff33, 0xfaff_fffe, 0xe1a0_0000, 0xeaff_fffe]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        let code = Code { bytes: &arm, start: 0x8000, instructions: Instructions::Arm };
        let stack = [7, 0x8004, 0x8008, 0x800c, 0x8010, 0x8014, 0x8018, 0x8009, 0x7ffc, u32::MAX, 0];
        assert_eq!(calls(&code, &stack), [0x8004, 0x8008, 0x800c]);

        let a64: Vec<u8> = [0xd503_201f_u32, 0x9400_0004, 0xd63f_0060, 0x1400_0004, 0xd65f_03c0]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        let code = Code { bytes: &a64, start: 0x8000, instructions: Instructions::A64 };
        assert_eq!(calls(&code, &[0x8004, 0x8008, 0, 0x800c, 0, 0x8010, 0x8014]), [0x8004, 0x8008]);

        // nop; jal ra; c.jalr a5; c.nop; jalr ra; c.j; c.jal; c.ebreak
        let riscv: Vec<u8> =
            [0x0013_u16, 0x0000, 0x00ef, 0x0040, 0x9782, 0x0001, 0x80e7, 0x0007, 0xa001, 0x2011, 0x9002]
                .iter()
                .flat_map(|half| half.to_le_bytes())
                .collect();
        let code = Code { bytes: &riscv, start: 0x100, instructions: Instructions::RiscV };
        let stack = [0x104, 0x108, 0x109, 0x10a, 0x10c, 0x110, 0x112, 0x114, 0x116, 0xfe, 2, 0];
        assert_eq!(calls(&code, &stack), [0x104, 0x108, 0x10c, 0x112]);

        // nop; bl; blx r3; nop; b
        let thumb: Vec<u8> = [0xbf00_u16, 0xf7ff, 0xfffe, 0x4798, 0xbf00, 0xe7fe]
            .iter()
            .flat_map(|half| half.to_le_bytes())
            .collect();
        let code = Code { bytes: &thumb, start: 0x100, instructions: Instructions::Thumb };
        let stack = [0x101, 0x103, 0x105, 0x107, 0x106, 0x109, 0x10b, 0x10d, 0x10f, 1, 3, 0xffff_fff9];
        assert_eq!(calls(&code, &stack), [0x102, 0x106]);
    }
}
