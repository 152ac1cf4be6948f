//! The tuning ladder of seed 000: each rung a state of tuning, predicted before it is run, measured, and laid beside what the
//! document prints.

pub mod board;
pub mod calibrate;
pub mod climb;
pub mod constants;
pub mod knobs;
pub mod linux;
pub mod model;
pub mod report;
pub mod rungs;
pub mod simulator;
pub mod state;
mod transfer;
pub mod waterfall;

#[cfg(test)]
mod tests;
