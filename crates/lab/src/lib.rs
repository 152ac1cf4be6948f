//! The lab: experiments, what explains their outcome, and their reports.

#![forbid(unsafe_code)]

#[cfg(feature = "experiments")]
pub mod explain;
#[cfg(feature = "experiments")]
pub mod guide;
#[cfg(feature = "experiments")]
pub mod ladder;
pub mod load;
pub mod measure;
#[cfg(feature = "experiments")]
pub mod offloads;
pub mod progress;
pub mod published;
pub mod quantity;
#[cfg(feature = "experiments")]
pub mod ramp;
pub mod report;
#[cfg(feature = "experiments")]
pub mod scenario;
pub mod schema;
#[cfg(feature = "experiments")]
pub mod sweep;
#[cfg(feature = "experiments")]
pub mod trace;
#[cfg(feature = "experiments")]
pub mod values;
#[cfg(feature = "experiments")]
pub mod verdict;
