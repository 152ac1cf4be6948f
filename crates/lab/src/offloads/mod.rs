//! What offloads save: throughput and processor load with checksums, segmentation and coalescing by the device or in software,
//! with one queue and several, and whether they can be switched while data flows. In the form of seed 004's tables.

pub mod board_tables;
pub mod boards;
mod ends;
pub mod hardware;
mod measure;
pub mod outcome;
pub mod page;
pub mod plan;
mod run;
mod switching;
pub mod tables;

pub use ends::has_original;
pub use outcome::{Outcome, Row};
pub use plan::{Device, Direction, Plan, Protocol, Setting, Workload};
pub use run::{ready, run};
pub use switching::Switched;
