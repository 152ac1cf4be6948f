//! A driver for a network interface with descriptor rings, written to be copied: `docs/driver.md` goes through it.
//!
//! The interface is an AXI MCDMA (a DMA engine with a channel for each queue, 64-byte descriptors in memory, a doorbell,
//! a status that is written back, an interrupt) with a checksum unit and a small MAC. Two things are our own: the MAC's
//! registers, and that each channel can be reset alone.
//!
//! | file | concept |
//! |---|---|
//! | [`registers`], [`descriptor`] | what the hardware's documentation says, and nothing else |
//! | [`bus`] | what the driver asks of the board |
//! | `channel`, `ring` | one channel's registers; positions in a ring |
//! | `receive`, `transmit` | who owns which buffer when |
//! | [`queue`], [`control`], [`interrupt`], [`self_test`](mod@self_test) | the contracts of `linerate_nic`, and what the host calls |
//! | [`open`](mod@open) | from a board and some memory to control and queues |
//! | `model`, `tests` | the hardware as a model with faults, and what the driver must not do under them |
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod bus;
mod channel;
pub mod control;
pub mod counters;
pub mod descriptor;
pub mod interrupt;
#[cfg(test)]
mod model;
pub mod open;
pub mod queue;
mod receive;
pub mod registers;
mod ring;
pub mod self_test;
#[cfg(test)]
mod tests;
mod transmit;

pub use bus::{Bus, Platform};
pub use control::Control;
pub use counters::QueueStats;
pub use interrupt::Interrupt;
pub use open::{OpenError, Settings, open};
pub use queue::{Queue, StartError, StoppedQueue};
pub use self_test::self_test;
