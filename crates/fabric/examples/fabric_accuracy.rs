//! Prints how well the 66AK2H's description meets the KeyStone II guide: `cargo xtask fabric-accuracy`.
//!
//! Ends with an error where intervals do not hold what they promise, a goal of the fit is missed, or a sentence of the guide
//! is contradicted, or what is kept of all this in `boards/accuracy` is no longer true. With the argument `calibrate`, prints
//! the parameters of memories and EDMA fitted anew instead; with `keep` what is to be kept:
//! `cargo run --release -p linerate-fabric --example fabric_accuracy keep > boards/accuracy/k2h.toml`.

use linerate_fabric::model::accuracy::{self, Kept};
use linerate_fabric::predict::Calibrate;
use linerate_fabric::{guide, soc};
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

/// What is kept.
const KEPT: &str = include_str!("../../../boards/accuracy/k2h.toml");

fn run() -> Result<(), String> {
    let guide = guide::load(include_str!("../../../boards/guides/keystone2.toml"))
        .map_err(|error| error.to_string())?;
    let argument = std::env::args().nth(1);
    let soc = soc::load(include_str!("../../../boards/socs/k2h.toml")).map_err(|error| error.to_string())?;
    if argument.as_deref() == Some("calibrate") {
        let (fitted, before, after) = accuracy::calibrate(&soc, &guide);
        println!("mean error {:.2} % before, {:.2} % after", before.mean * 100.0, after.mean * 100.0);
        for (old, new) in soc.free().iter().zip(fitted.free()) {
            println!("{:<40} {:>10.4} -> {:>10.4} {}", old.name, old.value, new.value, new.unit);
        }
        return Ok(());
    }
    let report = accuracy::report(&soc, &guide).map_err(|error| error.to_string())?;
    let found = Kept::of(&report, &soc, &guide);
    if argument.as_deref() == Some("keep") {
        println!(
            "# What cross-validation found, kept because it takes long. Do not edit it but make it anew:\n\
             # cargo run --release -p linerate-fabric --example fabric_accuracy keep > boards/accuracy/k2h.toml"
        );
        print!("{}", found.text()?);
        return Ok(());
    }
    print!("{report}");
    let mut faults = report.faults();
    let kept = Kept::read(KEPT).ok_or("boards/accuracy/k2h.toml is none of this program")?;
    if let Some(why) = kept.stale(&found) {
        faults.push(format!("boards/accuracy/k2h.toml is no longer true ({why}): keep it again"));
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.join("; ")) }
}
