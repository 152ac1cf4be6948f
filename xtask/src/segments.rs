//! What one segment costs in instructions, counted by valgrind, beside smoltcp in the same run.

use crate::{packages, shell};
use anyhow::{Context, Result, bail};
use std::process::Command;

const MANIFEST: &str = "benches/segments/Cargo.toml";
const OUT: &str = "target/segments";

/// Segments of the two runs whose difference is counted, so that what comes before the first does not count.
const COUNTS: [u64; 2] = [2_000, 12_000];

/// Most instructions of ours where the device does the checksums: what was measured (2026-11-22, rustc 1.95) and a
/// twentieth. Checksums in software depend on the processor.
const MOST: u64 = 4_490;

/// Builds the bench, prints the table and compares with the bound.
pub fn run() -> Result<()> {
    packages::require(&["valgrind"])?;
    shell::run(shell::cargo().args(["build", "--quiet", "--release", "--locked"]).args([
        "--manifest-path",
        MANIFEST,
        "--target-dir",
        OUT,
    ]))?;
    println!("instructions for each 1,460 bytes of a stream, both ends and acknowledgements together:");
    println!("{:<22} {:>10} {:>10} {:>8}", "checksums", "linerate", "smoltcp", "ratio");
    let mut ours_without = 0;
    for (name, sums) in [("computed by software", "sums"), ("left to the device", "none")] {
        let ours = per_segment("linerate", sums)?;
        let theirs = per_segment("smoltcp", sums)?;
        println!("{name:<22} {ours:>10} {theirs:>10} {:>8.2}", ours as f64 / theirs as f64);
        if sums == "none" {
            ours_without = ours;
        }
    }
    if ours_without > MOST {
        bail!("{ours_without} instructions a segment, more than {MOST} (xtask/src/segments.rs)");
    }
    Ok(())
}

fn per_segment(stack: &str, sums: &str) -> Result<u64> {
    let [few, many] = COUNTS;
    let difference = collected(stack, sums, many)?.saturating_sub(collected(stack, sums, few)?);
    Ok(difference / (many - few))
}

/// Instructions of one run.
fn collected(stack: &str, sums: &str, count: u64) -> Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(format!("{OUT}/release/segments"))
        .args([stack, sums, &count.to_string()])
        .output()
        .context("cannot start valgrind")?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("{stack} {sums} {count} ended with {}:\n{text}", output.status);
    }
    let collected = text.lines().find_map(|line| line.split_once("Collected : "));
    let (_, number) = collected.with_context(|| format!("valgrind says no count:\n{text}"))?;
    number.trim().parse().with_context(|| format!("valgrind's count is '{number}'"))
}
