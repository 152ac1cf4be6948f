//! `linerate lab`: one command for each kind of table in the source documents. What they do is in the crate `lab`; here are
//! arguments and output.

pub mod args;
pub mod error;
pub mod guide;
pub mod ladder;
pub mod offloads;
pub mod ramp;
pub mod stop;
pub mod sweep;

use args::{Experiment, Lab};
use error::LabError;

/// Runs the command and prints its result on standard output.
pub fn run(args: &Lab) -> Result<(), LabError> {
    // Those that change the machine for a while.
    if let Experiment::Offloads(_) | Experiment::Ladder(_) | Experiment::Guide(_) = &args.experiment {
        stop::watch();
    }
    let result = match &args.experiment {
        Experiment::Offloads(args) => offloads::run_offloads(args),
        Experiment::Published(args) => published(args),
        Experiment::Ladder(args) => ladder::run(args),
        Experiment::Ramp(args) => ramp::run(args),
        Experiment::Sweep(args) => sweep::run(args),
        Experiment::Guide(args) => guide::run(args),
    };
    stop::settle();
    result
}

/// The figures of the documents as CSV or JSON.
fn published(args: &args::Published) -> Result<(), LabError> {
    let records = linerate_lab::published::all().map_err(|why| LabError::Failed(why.to_string()))?;
    let wanted: Vec<_> = records.into_iter().filter(|record| args.wants(record)).collect();
    let text = match args.json {
        true => error::json(&wanted)?,
        false => linerate_lab::schema::write(&wanted),
    };
    error::print(&text)
}
