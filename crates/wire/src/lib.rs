//! Packet formats as checked views over bytes, checksums, and the units everything else speaks.
#![no_std]
#![forbid(unsafe_code)]

pub mod units;
