//! Measuring memory and packets of the machine at hand, in safe Rust.

pub mod bench;
pub mod chase;
pub mod cores;
pub mod kernels;
pub mod memory;
pub mod packets;
pub mod pages;
pub mod sample;
pub mod timer;
