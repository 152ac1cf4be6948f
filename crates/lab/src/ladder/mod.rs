//! The tuning ladder of seed 000: each rung a state of tuning, predicted before it is run, measured, and laid beside what the
//! document prints.

pub mod constants;
pub mod model;
pub mod rungs;
pub mod simulator;
pub mod state;

#[cfg(test)]
mod tests;
