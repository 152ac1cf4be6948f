//! A throughput guide of the machine at hand.

pub mod caches;
pub mod calibrate;
pub mod chip;
pub mod curve;
pub mod measure;
pub mod plan;
pub mod run;
pub mod show;
pub mod table;
