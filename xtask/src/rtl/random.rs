//! The compiled blocks against the reference in Rust.

use super::Options;
use super::blocks::Block;
use super::record::{self, Random, Record};
use super::setup::Tools;
use crate::{shell, suites};
use anyhow::{Context, Result};
use std::process::Command;
use std::time::Instant;

/// Compares all blocks at the same time; with `--long` one after the other, and keeps the record.
pub fn run(tools: &Tools, blocks: &[&Block], options: &Options) -> Result<()> {
    let name = |block: &Block| match options.width {
        Some(width) => format!("{}@{width}", block.name),
        None => block.name.clone(),
    };
    if !options.long {
        let frames = options.frames.unwrap_or(200_000);
        let names = blocks.iter().map(|block| name(block));
        if options.width.is_some() {
            return shell::run(program(tools, options, frames).args(names));
        }
        // Few frames are compared sooner by what is there, as the tests have built it, than by what is optimized.
        let args: Vec<String> =
            [frames.to_string(), options.seed.to_string()].into_iter().chain(names).collect();
        return suites::example("random", &args.iter().map(String::as_str).collect::<Vec<_>>());
    }
    for block in blocks {
        let (began, hash) = (Instant::now(), record::hash(&block.paths(), "")?);
        let frames = options.frames.unwrap_or(10_000_000);
        let output = shell::output(program(tools, options, frames).arg(name(block)))?;
        print!("{output}");
        // A whole that is compared by its parts has none.
        let Some((count, _)) = output.split_once(" frames") else { continue };
        let count = count.rsplit(' ').next().unwrap_or_default();
        let entry = Random {
            hash,
            date: record::today()?,
            seed: options.seed,
            frames: count.parse().with_context(|| format!("the number of frames in {output}"))?,
            seconds: began.elapsed().as_secs(),
        };
        Record::update(|record| _ = record.random.insert(name(block), entry))?;
    }
    Ok(())
}

/// Also builds it.
fn program(tools: &Tools, options: &Options, frames: u64) -> Command {
    let mut cargo = tools.cargo();
    cargo.args(["run", "--quiet", "--release", "--package=linerate-rtl-sim", "--example=random", "--"]);
    cargo.args([frames.to_string(), options.seed.to_string()]);
    if let Some(width) = options.width {
        cargo.env("LINERATE_RTL_WIDTHS", width.to_string());
    }
    cargo
}
