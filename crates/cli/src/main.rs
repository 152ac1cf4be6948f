//! The `linerate` command.

use clap::Parser as _;
use linerate_cli::args::{Cli, Command};
use linerate_cli::settings::secrets;
use linerate_cli::{explain, fabric, hash_password, iperf3, lab, logging, output, serve, sim, top};
use linerate_lab::scenario::error::SimError;
use std::fmt::Display;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| secrets::hide_password(error).exit());
    match &cli.command {
        Command::Serve(args) => end(serve::run(args), serve::ServeError::exit_code),
        Command::Fabric(args) => end(fabric::run(args), fabric::error::FabricError::exit_code),
        Command::Iperf3(args) => end(iperf3::run(args), iperf3::Iperf3Error::exit_code),
        Command::HashPassword => end(hash_password::run(), hash_password::HashPasswordError::exit_code),
        Command::Explain(args) => end(explain::run(args), lab::error::LabError::exit_code),
        Command::Lab(args) => end(lab::run(args), lab::error::LabError::exit_code),
        Command::Top(args) => end(top::run(args), top::TopError::exit_code),
        Command::Sim(args) => end(sim::run(args), SimError::exit_code),
    }
}

/// Success, or the error on standard error and its exit code.
fn end<E: Display>(result: Result<(), E>, code: impl Fn(&E) -> ExitCode) -> ExitCode {
    logging::flush();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::failure(&error);
            code(&error)
        }
    }
}
