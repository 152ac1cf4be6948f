//! `linerate fabric`: predictions, tables, reports, calibration and audits of a chip's throughput.

pub mod args;
pub mod audit;
pub mod builtin;
pub mod change;
pub mod compare;
pub mod error;
pub mod explain;
pub mod figures;
pub mod fit;
pub mod inside;
pub mod known;
pub mod mix;
pub mod open;
pub mod predict;
pub mod report;
pub mod show;
pub mod sweeps;
pub mod table;
mod way;
pub mod what_if;

use args::{Fabric, FabricCommand};
use error::FabricError;
use std::io::{self, Write};

/// Runs a subcommand and prints its result on standard output.
pub fn run(args: &Fabric) -> Result<(), FabricError> {
    let text = output(&args.command)?;
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // Who reads only the beginning has what it wants.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|why| FabricError::Write { to: "standard output".to_owned(), why }),
    }
}

/// What a subcommand prints.
pub fn output(command: &FabricCommand) -> Result<String, FabricError> {
    match command {
        FabricCommand::Predict(args) => predict::run(args),
        FabricCommand::Explain(args) => explain::run(args),
        FabricCommand::Mix(args) => mix::run(args),
        FabricCommand::Table(args) => table::run(args),
        FabricCommand::Report(args) => report::run(args),
        FabricCommand::Fit(args) => fit::run(args),
        FabricCommand::Audit(args) => audit::run(args),
        FabricCommand::Schema => Ok(format!("{:#}\n", linerate_fabric::soc::json_schema().as_value())),
    }
}
