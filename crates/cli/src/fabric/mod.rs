//! `linerate fabric`: predictions, tables, reports, calibration and audits of a chip's throughput.

pub mod args;
pub mod builtin;
pub mod compare;
pub mod error;
pub mod figures;
pub mod grid;
pub mod links;
pub mod page;
pub mod plot;
pub mod show;
pub mod transfer;
