//! Prints how well the 66AK2H's description meets the KeyStone II guide: `cargo xtask fabric-accuracy`.
//!
//! Ends with an error where intervals do not hold what they promise, a goal of the fit is missed, or a sentence of the guide
//! is contradicted. With the argument `calibrate`, prints the parameters of memories and EDMA fitted anew instead.

use linerate_fabric::predict::Calibrate;
use linerate_fabric::{guide, model::accuracy, soc};
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fabric_accuracy: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let soc = soc::load(include_str!("../../../boards/socs/k2h.toml")).map_err(|error| error.to_string())?;
    let guide = guide::load(include_str!("../../../boards/guides/keystone2.toml"))
        .map_err(|error| error.to_string())?;
    if std::env::args().nth(1).as_deref() == Some("calibrate") {
        let (fitted, before, after) = accuracy::calibrate(&soc, &guide);
        println!("mean error {:.2} % before, {:.2} % after", before.mean * 100.0, after.mean * 100.0);
        for (old, new) in soc.free().iter().zip(fitted.free()) {
            println!("{:<40} {:>10.4} -> {:>10.4} {}", old.name, old.value, new.value, new.unit);
        }
    } else {
        let report = accuracy::report(&soc, &guide).map_err(|error| error.to_string())?;
        print!("{report}");
        let faults = report.faults();
        if !faults.is_empty() {
            return Err(faults.join("; "));
        }
    }
    Ok(())
}
