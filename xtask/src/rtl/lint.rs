//! Verilator's lint, for every width that a block promises, and the parameters that it must refuse.

use super::blocks::Block;
use super::setup::Tools;
use anyhow::{Result, bail};
use std::collections::BTreeMap;
use std::process::Output;

/// Checks every block.
pub fn run(tools: &Tools, blocks: &[&Block]) -> Result<()> {
    for block in blocks {
        let mut cases = 0;
        let widths: Vec<Option<u32>> = if block.widths.is_empty() {
            vec![None]
        } else {
            block.widths.iter().copied().map(Some).collect()
        };
        for width in widths {
            let mut parameters = block.parameters.clone();
            parameters.extend(width.map(|width| ("DATA_W".to_owned(), toml::Value::from(width))));
            let output = lint(tools, block, &parameters)?;
            if !output.status.success() {
                bail!("{} {parameters:?}: {}", block.name, String::from_utf8_lossy(&output.stderr));
            }
            cases += 1;
        }
        for case in &block.refused {
            let mut parameters = block.parameters.clone();
            parameters.extend(case.clone());
            let output = lint(tools, block, &parameters)?;
            let said = String::from_utf8_lossy(&output.stderr);
            // By a check of ours, not by an accident of elaboration.
            if output.status.success() || !said.contains("USERERROR") {
                bail!("{}: {case:?} must be refused by $error, and Verilator says: {said}", block.name);
            }
            cases += 1;
        }
        if let Some(simulation) = &block.simulation {
            let mut verilator = tools.verilator();
            // A bench and models may wait, and do what only they may: with the warnings that their build has.
            verilator.args(["--lint-only", "--timing", "-Wno-ZERODLY", "--quiet"]);
            verilator.args(["--timescale", "1ns/1ps", "--top", &simulation.top]);
            let output = verilator.args(block.simulated_paths(simulation)).output()?;
            if !output.status.success() {
                bail!("{} in simulation: {}", block.name, String::from_utf8_lossy(&output.stderr));
            }
        }
        println!("lint {}: {cases} sets of parameters", block.name);
    }
    Ok(())
}

fn lint(tools: &Tools, block: &Block, parameters: &BTreeMap<String, toml::Value>) -> Result<Output> {
    let mut verilator = tools.verilator();
    verilator.args(["--lint-only", "-Wall", "--quiet", "--top", &block.top]);
    verilator.args(parameters.iter().map(|(name, value)| format!("-G{name}={value}")));
    Ok(verilator.args(block.paths()).output()?)
}
