//! The network interface's RTL as objects in this process: Verilator's models of the blocks under `rtl/`, streams to drive and to
//! watch them, and the comparison of each with its reference in `linerate_nic::offload`.
//!
//! Verilator is looked for when this crate is built (`cargo xtask rtl setup` installs it). Without it [`Dut::open`] says so, and
//! tests skip with a message.
//!
//! [`Dut`] is a block with its ports; [`Source`] and [`Sink`] are the two ends of its streams, with [`Pause`]s; [`blocks`] has a
//! comparison for each block.

mod axi;
mod axil;
pub mod blocks;
mod dut;
pub mod frames;
pub mod nic;
mod rng;
#[cfg(feature = "softcore")]
pub mod softcore;
mod stream;
mod user;

pub use axi::{AxiSlave, Memory, Response, Timing};
pub use axil::AxiLite;
pub use blocks::Coverage;
pub use dut::{Dut, Port, Unavailable, is_available};
pub use rng::Rng;
pub use stream::{Pause, Received, Sink, Source, StreamFault, UserAt};
pub use user::{RxUser, SegmentMode, TxUser};
