//! Linux below and beside the stack: TAP, AF_PACKET and AF_XDP devices, kernel sockets, files, the clock and signals.
//!
//! All system calls of the workspace are here. `unsafe` is confined to the folder `sys` and to tests, where each use
//! states its proof.
#![deny(unsafe_code)]

mod aligned;
pub mod clock;
pub mod cpu;
pub mod descriptors;
pub mod files;
pub mod kernel;
pub mod mac;
pub mod mailbox;
pub mod netconfig;
pub mod packet;
mod pipe;
pub mod poller;
pub mod privileges;
pub mod random;
mod rx;
pub mod signals;
mod slab;
mod stats;
mod sys;
pub mod tap;
pub mod terminal;
#[cfg(test)]
mod testing;
mod tx;
pub mod uio;
pub mod unread;
pub mod xdp;

pub use rx::{MIN_LARGE_BUFFER, MIN_SMALL_BUFFER, RxPools};
pub use stats::DeviceStats;
