//! The offloads as hardware does them, as pure functions over bytes: what the blocks in `rtl/` are compared with, bit for bit. They
//! are made of the functions that the software fallback uses.

pub mod checksum_tx;
pub mod segment;
