//! The clock of the lines to the PHY, which goes by the speed of the link. After Xilinx' firmware it is that of 1 Gb/s.

use crate::registers::{read, write};
use crate::{processor, watchdog};
use linerate_firmware::rgmii::dividers;
use linerate_wire::units::Rate;

/// Of the fourth Ethernet controller (UG1087, module CRL_APB, `GEM3_REF_CTRL`): the PLL that it is made of, and two dividers.
const CONTROL: usize = 0xff5e_005c;
const SOURCE: u32 = 0b111;
const FIRST_SHIFT: u32 = 8;
const SECOND_SHIFT: u32 = 16;
/// The most that each of them divides by.
const MOST: u32 = 0x3f;

/// The board's oscillator, which PLLs multiply.
const OSCILLATOR_HZ: u64 = 33_330_000;
/// `IOPLL_CTRL` and `RPLL_CTRL`: the multiplier, and whether the half is taken.
const IO_PLL: usize = 0xff5e_0020;
const R_PLL: usize = 0xff5e_0030;

/// Sets the clock for this speed. Where it comes from somewhere else, or the firmware does not let us, it stays as it is.
pub fn set_speed(speed: Rate) {
    let Some((before, wanted)) = look(speed) else { return };
    // The emulator has none of these registers: what is not there is not written.
    if before == wanted {
        return;
    }
    if watchdog::has_monitor() {
        // What it refuses cannot be helped here.
        let _answer = processor::ask_to_write(CONTROL, wanted);
    } else {
        write(CONTROL, wanted);
    }
}

/// What the register has, and what it is to have.
fn look(speed: Rate) -> Option<(u32, u32)> {
    let before = load(CONTROL)?;
    let pll = match before & SOURCE {
        0b000 => load(IO_PLL)?,
        0b010 => load(R_PLL)?,
        _ => return None,
    };
    let multiplied_hz = OSCILLATOR_HZ * u64::from(pll >> 8 & 0x7f);
    let hz = multiplied_hz >> (pll >> 16 & 1);
    let (first, second) = dividers(hz, speed, MOST.into())?;
    let kept = before & !(MOST << FIRST_SHIFT | MOST << SECOND_SHIFT);
    Some((before, kept | first << FIRST_SHIFT | second << SECOND_SHIFT))
}

/// A register that only the secure world reaches: below a monitor it is asked.
fn load(register: usize) -> Option<u32> {
    if watchdog::has_monitor() { processor::ask_to_read(register) } else { Some(read(register)) }
}
