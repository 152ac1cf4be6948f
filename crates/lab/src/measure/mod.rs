//! Measuring on this machine: rounds that alternate, processor time, namespaces, and where a figure comes from.

pub mod counters;
pub mod cpu;
#[cfg(feature = "experiments")]
pub mod device;
pub mod group;
pub mod listener;
pub mod machine;
pub mod place;
pub mod provenance;
pub mod rounds;
pub mod running;
pub mod scratch;
pub mod statistics;
