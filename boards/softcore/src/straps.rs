//! What is wired beside the processor: what an image is to do otherwise, so that one image serves for every measurement.

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
