//! The `linerate` command.

use clap::Parser as _;
use linerate_cli::args::{Cli, Command};
use linerate_cli::{logging, serve};
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match &cli.command {
        Command::Serve(args) => serve::run(args),
    };
    logging::flush();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("linerate: {error}");
            error.exit_code()
        }
    }
}
