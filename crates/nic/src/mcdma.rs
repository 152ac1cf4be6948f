//! The driver for network interfaces with the rings of AXI MCDMA: scatter-gather descriptors of 64 bytes, a channel in each
//! direction for each queue, and app words that ask for offloads and report on them.
//!
//! It knows nothing of where it runs: a [`Bus`] reads and writes registers and descriptor memory, a [`Dma`](crate::Dma) tells bus
//! addresses and keeps caches. The RTL of this project is one such interface; the layout of the app words is a setting
//! ([`AppWords`]), as subsystems with the same engine differ in it.
//!
//! | file | concept |
//! |---|---|
//! | [`regs`], [`nic_regs`] | where registers, descriptor fields and app words lie, made from `rtl/regs` |
//! | [`bus`](crate::bus) | what the driver asks of the board |
//! | [`descriptor`], [`words`] | a descriptor and its app words, encoded and decoded |
//! | `channel`, `ring` | one channel's registers; positions in a ring |
//! | `filter` | entries of the tables that choose frames and queues |
//! | `receive`, `transmit`, `layout` | who owns which buffer when |
//! | [`queue`], [`control`], [`interrupt`], [`self_test`](mod@self_test) | the contracts of this crate, and what the host calls |
//! | [`settings`], [`open`](mod@open) | from a board and some memory to control and queues |
//!
//! `docs/rtl/driver.md` follows one segment through all of it.

mod channel;
pub mod control;
pub mod counters;
pub mod descriptor;
mod filter;
pub mod interrupt;
mod layout;
pub mod nic_regs;
pub mod open;
pub mod queue;
mod receive;
pub mod regs;
mod ring;
pub mod self_test;
pub mod settings;
mod transmit;
pub mod words;

pub use crate::bus::{Bus, Platform};
pub use channel::Direction;
pub use control::Control;
pub use counters::QueueStats;
pub use interrupt::Interrupt;
pub use open::{BuiltIn, OpenError, built_in, open};
pub use queue::{Queue, StartError, StoppedQueue};
pub use self_test::self_test;
pub use settings::Settings;
pub use words::{AppWords, Seeding};
