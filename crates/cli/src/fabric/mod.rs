//! `linerate fabric`: predictions, tables, reports, calibration and audits of a chip's throughput.

pub mod grid;
pub mod page;
pub mod plot;
pub mod transfer;
