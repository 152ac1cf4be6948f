//! A throughput guide of the machine at hand.

pub mod caches;
pub mod curve;
pub mod measure;
pub mod plan;
