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
    let before = if is_smoke { namespaces()? } else { Vec::new() };
    let linerate = shell::target().join(folder).join("linerate");
    let mut command = Command::new(&harness);
    command.args(args).args(["--began", &began.as_secs().to_string()]);
    if !args.contains(&"--linerate") {
        command.arg("--linerate").arg(linerate);
    }
    shell::run(&mut command)?;
    if is_smoke { check(&before) } else { Ok(()) }
}

/// The network namespaces of runs that there are, of other runs as well.
fn namespaces() -> Result<Vec<String>> {
    let list = shell::output(Command::new("ip").args(["netns", "list"]))?;
    Ok(of_runs(&list).map(str::to_owned).collect())
}

/// Those of what `ip netns list` prints that were made for a run (`PREFIX` in `crates/lab/src/measure/place.rs`).
fn of_runs(list: &str) -> impl Iterator<Item = &str> {
    list.lines().filter_map(|line| line.split_whitespace().next()).filter(|name| name.starts_with("lrlab-"))
}

/// Whether the process is there whose number is in the name.
fn is_alive(name: &str) -> bool {
    name.split('-').nth(1).is_some_and(|pid| Path::new("/proc").join(pid).exists())
}

/// What a run leaves behind, and what it must not; with the namespaces that were there before it.
fn check(before: &[String]) -> Result<()> {
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
    // One whose process is alive is another run's, which has begun since.
    let is_left = |name: &String| !before.contains(name) && !is_alive(name);
    if let Some(name) = namespaces()?.into_iter().find(is_left) {
        bail!("the network namespace {name} is left");
    }
    println!("bench: table, JSON and page are there, no namespace is left");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_of_runs_are_told_from_others() {
        let list = "lrlab-77-1 (id: 3)\nlinerate-virt-a15-9\nlrlab-77-0\n";
        assert_eq!(of_runs(list).collect::<Vec<_>>(), ["lrlab-77-1", "lrlab-77-0"]);
        let own = format!("lrlab-{}-0", std::process::id());
        assert!(is_alive(&own) && !is_alive("lrlab-99999999-0"));
        let place = include_str!("../../crates/lab/src/measure/place.rs");
        assert!(place.contains("const PREFIX: &str = \"lrlab-\";"), "the name that runs give has changed");
    }
}
