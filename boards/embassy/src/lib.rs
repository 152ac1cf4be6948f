//! What boards under Embassy have in common: the executor, which polls network, console and application one after the other, and who is
//! woken by which interrupt. A board brings its clock, its serial line, its timer and its interface ([`Hardware`]), as under FreeRTOS.
//!
//! There is one stack, and no task interrupts another: the network gives way after each of its turns.
#![no_std]
#![deny(unsafe_code)]

extern crate alloc;

mod application;
#[allow(unsafe_code, reason = "reads a stack")]
pub mod backtrace;
mod board;
mod console;
#[allow(unsafe_code, reason = "hands over memory, polls the executor")]
mod executor;
#[allow(unsafe_code, reason = "an allocator")]
mod heap;
#[allow(unsafe_code, reason = "paints and reads the stack")]
mod stack;
mod tasks;
mod trace;
pub mod wake;
#[allow(unsafe_code, reason = "a function as FreeRTOS has it")]
pub mod watch;

use core::ops::Range;
pub use executor::start;
pub use linerate_firmware::{Hardware, Opened};

/// Memory that a board hands over at the start.
#[derive(Clone, Debug)]
pub struct Memory {
    /// The heap.
    pub heap: Range<usize>,
    /// The stack that the image runs on.
    pub stack: Range<usize>,
}
