//! Predicts the throughput of a system on chip from its description, and names the bottleneck.
//!
//! A chip is a TOML file ([`soc::load`]): clocks, masters, fabrics, bridges, memories and links. Every number in it has a
//! unit ([`units`]). The models are closed forms first: a transfer moves at the minimum of the rates that it passes, and
//! takes the sum of the times that nothing hides. Each answer is a [`predict::Prediction`]: what the arithmetic of widths
//! and clocks allows, what can be expected, between which bounds, and which resource is in the way.
//!
//! The crate is pure: it reads no file and no clock, keeps no state, and gives the same answer for the same question.

#![forbid(unsafe_code)]

pub mod ask;
pub mod audit;
pub mod document;
pub mod edma;
pub mod engine;
pub mod fit;
pub mod guide;
pub mod hierarchy;
pub mod links;
pub mod memory;
pub mod mix;
pub mod model;
pub mod predict;
pub mod soc;
pub mod units;
