//! Our servers beside others and beside a floor: builds what takes part and hands over to the harness in `benches/bench`.

use crate::{packages, shell, suites};
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

const MANIFEST: &str = "benches/bench/Cargo.toml";
const OUT: &str = "target/bench";

/// What the harness runs beside what it builds and fetches itself.
const PROGRAMS: [&str; 9] =
    ["iproute2", "util-linux", "procps", "iperf3", "wrk", "curl", "libc-bin", "gcc", "xz-utils"];

/// Builds all and runs the harness with its own arguments.
pub fn run(args: &[&str]) -> Result<()> {
    let began = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock is before 1970")?;
    shell::run(
        shell::cargo()
            .args(["build", "--release", "--locked", "--manifest-path", MANIFEST])
            .args(["--target-dir", OUT]),
    )?;
    let harness = format!("{OUT}/release/bench");
    let is_smoke = args.contains(&"--smoke");
    // Where nothing is measured, what the tests have built will do.
    let folder = if is_smoke { "checked" } else { "release" };
    if !args.iter().any(|arg| ["--help", "-h", "--list", "--from"].contains(arg)) {
        packages::require(&PROGRAMS)?;
        if args.contains(&"--profile") {
            packages::require(&["linux-perf"])?;
        }
        if is_smoke {
            suites::build(true)?;
        } else {
            shell::run(shell::cargo().args(["build", "--release", "--locked", "--package=linerate-cli"]))?;
        }
    }
    let linerate = shell::target().join(folder).join("linerate");
    let mut command = Command::new(&harness);
    command.args(args).args(["--began", &began.as_secs().to_string()]);
    if !args.contains(&"--linerate") {
        command.arg("--linerate").arg(linerate);
    }
    shell::run(&mut command)?;
    if is_smoke { check() } else { Ok(()) }
}

/// What a run leaves behind, and what it must not.
fn check() -> Result<()> {
    for name in ["report.json", "report.html"] {
        let path = Path::new(OUT).join(name);
        let text = std::fs::read_to_string(&path).with_context(|| format!("no {}", path.display()))?;
        if !text.contains("http-354-keep-64") {
            bail!("{} lacks a row", path.display());
        }
    }
    let text = std::fs::read_to_string(Path::new(OUT).join("report.json"))?;
    let report: serde_json::Value = serde_json::from_str(&text)?;
    for row in report["rows"].as_array().into_iter().flatten() {
        for contestant in row["contestants"].as_array().into_iter().flatten() {
            // A machine may lack Go, and for a while the way to Debian's servers.
            let excuses = ["it needs Go", "lwIP cannot be fetched"];
            let failure = contestant["failure"].as_str().unwrap_or_default();
            let excused = excuses.iter().any(|excuse| failure.contains(excuse));
            if !excused && contestant["samples"].as_array().is_none_or(Vec::is_empty) {
                bail!("{} of {}: {}", contestant["name"], row["name"], contestant["failure"]);
            }
        }
    }
    let left = shell::output(Command::new("ip").args(["netns", "list"]))?;
    if let Some(name) = left.lines().find(|line| line.starts_with("lrbench-")) {
        bail!("the network namespace {name} is left");
    }
    println!("bench: table, JSON and page are there, no namespace is left");
    Ok(())
}
