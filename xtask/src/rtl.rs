//! Everything about the RTL: its environment, lint, test benches, comparison with the reference, proofs, synthesis, mutants.

pub mod bitstream;
mod blocks;
mod cocotb;
mod core;
mod formal;
mod lint;
mod mutants;
mod pack;
mod random;
mod record;
mod regs;
mod results;
mod setup;
mod synth;
mod waves;

use anyhow::{Result, bail};
use blocks::Block;

const USAGE: &str = "usage: cargo xtask rtl [STEP] [BLOCK ...]

without a step: lint, cocotb, random, waves, formal and synth, for all blocks or those that are named
  regs      write what is generated from rtl/regs (`regs check`: only compare)
  setup     install the tools into target/rtl/venv, as rtl/requirements.txt pins them (once)
  lint      verilator -Wall for every width, and that wrong parameters are refused
  cocotb    the test benches in rtl/*/tb
  random    the compiled blocks against the reference in Rust; `--frames N` (default 200000), `--seed N`, `--width N`;
            `--long`: 10 million, one block after the other, and write the record
  waves     draw the timing diagrams in docs/rtl, from the compiled blocks; `--check`, and without a step: only compare
  formal    prove what rtl/*/formal states; what has not changed is taken from rtl/results.toml, one of the short ones is done again;
            `--long`: all, and write the record
  synth     size and clock for ECP5 and xc7, the same way; `--long`: all, and write the record
  mutants   how many of 200 seeded faults the random comparison finds; `--frames N` (default 20000), `--seed N`;
            `--again`: judge again what the last run found";

/// Runs what the arguments say.
pub fn run(args: &[&str]) -> Result<()> {
    let steps = ["setup", "lint", "cocotb", "random", "waves", "formal", "synth", "mutants"];
    let (step, rest) = match args.split_first() {
        Some((step, rest)) if steps.contains(step) => (Some(*step), rest),
        Some((flag, _)) if flag.starts_with('-') => bail!("{USAGE}"),
        _ => (None, args),
    };
    if let ["regs", rest @ ..] = args {
        return regs::run(rest == ["check"]);
    }
    let options = Options::parse(rest)?;
    let tools = setup::run()?;
    let all = blocks::read()?;
    for name in &options.names {
        if !all.iter().any(|block| block.name == *name) {
            let known: Vec<&str> = all.iter().map(|block| block.name.as_str()).collect();
            bail!("there is no block {name:?}; there are {}\n\n{USAGE}", known.join(", "));
        }
    }
    let chosen: Vec<&Block> =
        all.iter().filter(|block| options.names.is_empty() || options.names.contains(&block.name)).collect();
    let wants = |name: &str| step == Some(name) || (step.is_none() && name != "mutants");
    if wants("lint") {
        regs::run(true)?;
        lint::run(&tools, &chosen)?;
    }
    if wants("cocotb") {
        cocotb::run(&tools, &chosen, false)?;
    }
    if wants("random") {
        random::run(&tools, &chosen, &options)?;
    }
    if wants("waves") {
        waves::run(&chosen, options.check || step.is_none())?;
    }
    if wants("formal") {
        formal::run(&tools, &chosen, options.long)?;
    }
    if wants("synth") {
        synth::run(&tools, &chosen, options.long)?;
    }
    if wants("mutants") {
        mutants::run(&tools, &chosen, &options)?;
    }
    Ok(())
}

/// Installs the tools, so that what is compiled next has the blocks in it.
pub fn prepare() -> Result<()> {
    setup::run().map(drop)
}

/// The part that `cargo xtask test` includes.
pub fn quick() -> Result<()> {
    let tools = setup::run()?;
    let all = blocks::read()?;
    let all: Vec<&Block> = all.iter().collect();
    regs::run(true)?;
    lint::run(&tools, &all)?;
    cocotb::run(&tools, &all, true)
}

/// What stands behind the step.
#[derive(Default)]
struct Options {
    names: Vec<String>,
    frames: Option<u64>,
    seed: u64,
    /// Of the stream, where it is not the default.
    width: Option<u64>,
    long: bool,
    /// Compare only.
    check: bool,
    /// Judge again what is there.
    again: bool,
}

impl Options {
    fn parse(args: &[&str]) -> Result<Options> {
        let mut options = Options { seed: 1, ..Options::default() };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut number = || -> Result<u64> {
                match args.next().and_then(|value| value.parse().ok()) {
                    Some(number) => Ok(number),
                    None => bail!("{arg} needs a number\n\n{USAGE}"),
                }
            };
            match *arg {
                "--frames" => options.frames = Some(number()?),
                "--seed" => options.seed = number()?,
                "--width" => options.width = Some(number()?),
                "--long" => options.long = true,
                "--check" => options.check = true,
                "--again" => options.again = true,
                flag if flag.starts_with('-') => bail!("unknown option {flag}\n\n{USAGE}"),
                name => options.names.push(name.to_owned()),
            }
        }
        Ok(options)
    }
}
