//! The processor of the board `softcore`: VexRiscv, from its package, with caches of 16 KiB.
//!
//! The package has it generated with 4 KiB each, direct-mapped, in lines of 32 bytes. Two bits more of the index are all that
//! 16 KiB take: what follows rewrites the two modules of the caches, and fails if they are not those that it knows. And its
//! instruction cache fills no line that is not wanted any more.

use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;

const SOURCE: &str = "site-packages/pythondata_cpu_vexriscv/verilog/VexRiscv_IMAC.v";
/// Where block.toml of `softcore` expects it.
const PREPARED: &str = "target/rtl/core/VexRiscv.v";

/// What is in the caches' modules, and what takes its place: indices of lines (7 bits) and words (10), tags (20, 22 with their flags),
/// counters of lines (8).
const RULES: [(&str, &str); 19] = [
    ("[11 : 5]", "[13 : 5]"),
    ("[11 : 2]", "[13 : 2]"),
    ("[31 : 12]", "[31 : 14]"),
    ("[6:0]", "[8:0]"),
    ("[6 : 0]", "[8 : 0]"),
    ("[9:0]", "[11:0]"),
    ("[19:0]", "[17:0]"),
    ("[21:0]", "[19:0]"),
    ("[21 : 2]", "[19 : 2]"),
    ("7'bxxxxxxx", "9'bxxxxxxxxx"),
    ("10'bxxxxxxxxxx", "12'bxxxxxxxxxxxx"),
    ("20'bxxxxxxxxxxxxxxxxxxxx", "18'bxxxxxxxxxxxxxxxxxx"),
    ("[0:127]", "[0:511]"),
    ("[0:1023]", "[0:4095]"),
    ("ounter[7]", "ounter[9]"),
    ("reg        [7:0]    lineLoader_flushCounter", "reg        [9:0]    lineLoader_flushCounter"),
    ("reg        [7:0]    stageB_flusher_counter", "reg        [9:0]    stageB_flusher_counter"),
    ("ounter + 8'h01", "ounter + 10'h001"),
    ("ounter <= 8'h0", "ounter <= 10'h000"),
];

/// The modules, and how many such places each has.
const CACHES: [(&str, usize); 2] = [("module InstructionCache ", 28), ("module DataCache ", 42)];

/// What has the instruction cache fill a line, and with the condition that what missed was not flushed in the same clock.
///
/// A conditional branch is decided when the two instructions behind it are under way. Where the first of them is a jump, as where a compiler
/// has to branch around one because what is rarely executed lies beyond a branch's 4 KiB, that jump is followed meanwhile, misses in
/// just the clock in which the branch is taken, and a line is filled that nobody executes.
const FILL: (&str, &str) = (
    "(IBusCachedPlugin_cache_io_cpu_fill_valid              ), //i",
    "(IBusCachedPlugin_cache_io_cpu_fill_valid && !IBusCachedPlugin_externalFlush), //i",
);

/// What Verilator says of a program's output is nobody's to mend.
const QUIET: [&str; 5] = ["WIDTH", "UNUSEDSIGNAL", "DECLFILENAME", "UNDRIVEN", "PROCASSINIT"];

/// Writes it, if it is not there as it would be written.
pub fn prepare(libraries: &Path) -> Result<()> {
    let source = libraries.join(SOURCE);
    let text = fs::read_to_string(&source).with_context(|| source.display().to_string())?;
    let mut prepared = String::new();
    for rule in QUIET {
        prepared.push_str(&format!("/* verilator lint_off {rule} */\n"));
    }
    prepared.push_str(&without_vain_fills(&widened(&text)?)?);
    for rule in QUIET {
        prepared.push_str(&format!("/* verilator lint_on {rule} */\n"));
    }
    let path = crate::shell::root().join(PREPARED);
    if fs::read_to_string(&path).ok().as_deref() != Some(prepared.as_str()) {
        fs::create_dir_all(path.parent().context("a folder")?)?;
        fs::write(&path, prepared)?;
    }
    Ok(())
}

/// The processor that fills no line for what is flushed.
fn without_vain_fills(text: &str) -> Result<String> {
    let (fills, with_condition) = FILL;
    let found = text.matches(fills).count();
    ensure!(
        found == 1,
        "the processor has {found} places where a line of instructions is filled, expected 1"
    );
    Ok(text.replace(fills, with_condition))
}

/// The processor with larger caches.
fn widened(text: &str) -> Result<String> {
    let mut text = text.replace("/* verilator public */", "");
    for (module, places) in CACHES {
        let start = text.find(module).with_context(|| format!("the processor has no {module}"))?;
        let len = text[start..].find("\nendmodule").context("a module without an end")?;
        let mut cache = text[start..start + len].to_owned();
        let mut found = 0;
        for (from, to) in RULES {
            found += cache.matches(from).count();
            cache = cache.replace(from, to);
        }
        ensure!(found == places, "{module}has {found} places that tell its size, expected {places}");
        text.replace_range(start..start + len, &cache);
    }
    Ok(text)
}
