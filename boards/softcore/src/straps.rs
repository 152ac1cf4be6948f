//! What is wired beside the processor: what an image is to do otherwise, so that one image serves for every measurement.

use crate::cache_check::LeftOut;
use crate::registers::read;

const STRAPS: usize = 0xf003_0000;

/// None of the interface's offloads is used.
pub fn offloads_are_off() -> bool {
    read(STRAPS) & 1 != 0
}

/// Rates of memory and interface are measured, in place of serving.
pub fn measures() -> bool {
    read(STRAPS) & 2 != 0
}

/// The driver's cache operations are checked, in place of serving: what of them is left out.
pub fn checks_caches() -> Option<LeftOut> {
    let straps = read(STRAPS);
    let left_out = match straps >> 3 & 3 {
        0 => LeftOut::Nothing,
        1 => LeftOut::Emptying,
        2 => LeftOut::Noting,
        _ => LeftOut::GoingPast,
    };
    (straps & 4 != 0).then_some(left_out)
}
