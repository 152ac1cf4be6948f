//! The offloads as hardware does them, as functions and machines over bytes: what the blocks in `rtl/` are compared with, bit for
//! bit. They are made of the functions that the software fallback uses.

pub mod checksum_rx;
pub mod checksum_tx;
pub mod coalesce;
pub mod rx_fifo;
pub mod segment;
pub mod steer;
