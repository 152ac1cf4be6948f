//! What every board's firmware has: drivers for its interface, files, the loop around the servers, console and instruments.
//!
//! Nothing here belongs to one board, and nothing is `unsafe`: registers, interrupts, clocks and tasks come in as traits
//! ([`lan9118::Registers`]). So all of it runs on the host too, where it is tested.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod backtrace;
mod board;
mod caller;
mod capture;
mod chance;
mod company;
pub mod console;
mod counting;
pub mod disk;
pub mod exchange;
mod hardware;
mod held;
mod instruments;
mod intervals;
pub mod lan9118;
mod latency;
pub mod log;
mod machine;
mod primes;
mod probe;
mod report;
mod reserve;
pub mod rgmii;
mod settings;
mod sums;
pub mod trace;
pub mod watchdog;

pub use board::{Board, Heap, Task};
pub use chance::Chance;
pub use counting::Counting;
pub use hardware::{Hardware, Opened, open};
pub use intervals::{INTERVALS, Intervals};
pub use latency::Latency;
pub use linerate_nic::{PacingConfig, PacingMode};
pub use machine::{Error, Parts, run, serve};
pub use primes::Primes;
pub use settings::{Interrupts, Settings};
pub use watchdog::{LastStart, Starts, Watchdog};
