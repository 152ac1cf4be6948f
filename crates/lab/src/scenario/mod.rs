//! A scenario of the simulator as a file: what its keys are, how it is run, and what limited it.

pub mod build;
pub mod error;
pub mod file;
pub mod load;
mod meter;
pub mod models;
pub mod outcome;
pub mod plot;
pub mod progress;
pub mod run;
pub mod verdict;

use file::Scenario;
use outcome::Outcome;

/// Runs a scenario.
pub fn simulate(scenario: &Scenario, seed: Option<u64>) -> Outcome {
    watch(&mut build::build(scenario, seed), scenario)
}

/// Runs a world that was built of a scenario.
pub fn watch(setup: &mut build::Setup, scenario: &Scenario) -> Outcome {
    run::run(setup, scenario.title.clone(), build::changes(scenario))
}
