//! The way from reset to `main`, in assembly.

use core::arch::global_asm;

global_asm!(include_str!("start.s"), options(raw));
