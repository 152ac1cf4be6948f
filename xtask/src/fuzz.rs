//! Fuzzing, bounded in time.

use crate::shell;
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

/// Runs each fuzz target for `seconds` seconds on top of its kept corpus.
pub fn run(seconds: u32) -> Result<()> {
    if !shell::succeeds(Command::new("cargo").args(["fuzz", "--version"])) {
        shell::run(Command::new("cargo").args(["install", "cargo-fuzz", "--locked", "--quiet"]))?;
    }
    let targets = shell::output(Command::new("cargo").args(["+nightly", "fuzz", "list"]))?;
    for target in targets.lines() {
        let grown = Path::new("target/fuzz-corpus").join(target);
        let kept = Path::new("fuzz/corpus").join(target);
        std::fs::create_dir_all(&grown).with_context(|| format!("cannot make {}", grown.display()))?;
        std::fs::create_dir_all(&kept).with_context(|| format!("cannot make {}", kept.display()))?;
        // New inputs go to the first folder, so that a run does not change the kept corpus.
        let mut fuzz = Command::new("cargo");
        fuzz.args(["+nightly", "fuzz", "run", target]).arg(&grown).arg(&kept);
        fuzz.args(["--", &format!("-max_total_time={seconds}"), "-timeout=10", "-rss_limit_mb=2048"]);
        fuzz.arg("-print_final_stats=1").arg("-verbosity=0");
        shell::run(&mut fuzz)?;
    }
    Ok(())
}
