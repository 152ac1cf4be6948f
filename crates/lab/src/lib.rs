//! The lab: experiments, what explains their outcome, and their reports.

#![forbid(unsafe_code)]

pub mod quantity;
pub mod report;
pub mod scenario;
pub mod values;
pub mod verdict;
