//! A portable zero-copy TCP/IP engine: time passed in, no clock, no I/O.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod config;
pub mod counters;
mod demux;
mod iss;
mod neighbor;
mod pmtu;
mod ports;
mod random;
mod rate;
mod ready;
mod reassembly;
mod route;
mod slab;
pub mod tcp;
mod timers;
mod waiters;
