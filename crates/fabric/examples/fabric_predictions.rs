//! Prints the predictions for every cell that the KeyStone II guide's transcription keeps back.
//!
//! `cargo run -p linerate-fabric --example fabric_predictions > docs/predictions/keystone2.csv`

use linerate_fabric::model::{accuracy, predictions};
use linerate_fabric::{guide, soc};
use std::process::ExitCode;

fn main() -> ExitCode {
    match csv() {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("fabric_predictions: {error}");
            ExitCode::FAILURE
        }
    }
}

fn csv() -> Result<String, String> {
    let soc = soc::load(include_str!("../../../boards/socs/k2h.toml")).map_err(|error| error.to_string())?;
    let guide = guide::load(include_str!("../../../boards/guides/keystone2.toml"))
        .map_err(|error| error.to_string())?;
    let ensemble = accuracy::ensemble(&soc, &guide).map_err(|error| error.to_string())?;
    let (text, missing) = predictions::csv(&ensemble, &guide);
    if missing.is_empty() { Ok(text) } else { Err(format!("no prediction for {missing:?}")) }
}
