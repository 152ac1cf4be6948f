//! Packet formats as checked views over bytes, checksums, and the units everything else speaks.
//!
//! A `Header` or `Packet` is a view: `parse` checks what makes the rest readable, accessors read fields where they lie. A
//! `Builder` holds the values of a header and writes it to a buffer. Nothing allocates, and no bytes make anything
//! panic.
#![no_std]
#![forbid(unsafe_code)]

pub mod arp;
mod bytes;
pub mod checksum;
pub mod cooked;
pub mod dhcpv4;
pub mod division;
pub mod error;
pub mod ethernet;
pub mod figures;
pub mod icmpv4;
pub mod icmpv6;
pub mod ip;
pub mod ipv4;
pub mod ipv6;
pub mod loopback;
pub mod mld;
pub mod ndp;
pub mod pcapng;
pub mod tcp;
pub mod toeplitz;
pub mod trace;
pub mod udp;
pub mod units;
pub mod vlan;

pub use error::{EmitError, Field, Layer, ParseError};
