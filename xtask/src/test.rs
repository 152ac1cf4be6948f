//! Every test: units, properties and virtual worlds of all crates, then real clients against the `linerate` command.
//!
//! Everything is built once, in the profile `checked`: optimised, with all assertions. The suites then run several at
//! a time, those that took longest in the run before first; the end-to-end tests run after them, two at a time, because
//! they share the cores with their clients and several of them move gigabytes.

use crate::suites::{self, Suite};
use crate::{lab, packages, rtl, shell};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

/// What the end-to-end tests run.
const CLIENTS: [&str; 16] = [
    "iproute2",
    "iputils-ping",
    "procps",
    "ethtool",
    "curl",
    "wget",
    "lftp",
    "iperf3",
    "python3",
    "tcpdump",
    "tshark",
    "wrk",
    "apache2-utils",
    "binutils",
    "openssl",
    "dnsmasq-base",
];

/// What they run where the distribution has it: Ubuntu's `chromium-browser` is no browser but an instruction to install one
/// by other means.
const BROWSER: [&str; 1] = ["chromium"];

/// How long each suite took in the run before, in seconds.
const TIMES: &str = "target/xtask-test-times.json";

/// The longest suites, for a first run.
const LONGEST: [&str; 6] =
    ["sim/attacks", "sim/worlds", "cli/fabric", "stack (lib)", "cli/verdicts", "cli/lockout"];

/// What random inputs of properties are drawn from, unless the caller says: a run that fails fails again. New inputs
/// are tried by fuzzing and by plain `cargo test`.
const SEED: (&str, &str) = ("PROPTEST_RNG_SEED", "1");

/// What became of the tests of one suite, or of all.
#[derive(Clone, Copy, Default)]
struct Tally {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    /// Adds what a line of a test program says, if it is the one with the result.
    fn read(&mut self, line: &str) {
        let Some(counts) = line.strip_prefix("test result:") else { return };
        let count = |name: &str| {
            let (before, _) = counts.split_once(name)?;
            before.trim_end().rsplit([' ', ';']).next()?.parse().ok()
        };
        self.passed += count(" passed").unwrap_or(0);
        self.failed += count(" failed").unwrap_or(0);
        self.skipped += count(" ignored").unwrap_or(0);
    }
}

/// Runs all tests, or the end-to-end tests whose name contains `filter`.
pub fn run(filter: Option<&str>) -> Result<()> {
    let start = Instant::now();
    packages::require(&CLIENTS)?;
    packages::offer(&BROWSER)?;
    if filter.is_none() {
        // Before anything is compiled: the blocks are part of it.
        rtl::prepare()?;
        lab::prepare()?;
    }
    say(start, "1/4 compiling: all crates, their tests and the command, once");
    let (e2e, mut all) = suites::build(filter.is_some())?
        .into_iter()
        .partition::<Vec<_>, _>(|suite| suite.name.ends_with("/e2e"));
    let e2e = e2e.first().context("the end-to-end tests were not built")?;
    let mut tally = Tally::default();
    let mut failed = Vec::new();
    if filter.is_none() {
        say(start, &format!("2/4 {} suites of unit, property and simulation tests", all.len()));
        order(&mut all);
        run_all(start, &all, &mut tally, &mut failed)?;
        say(start, "3/4 examples in the documentation, test benches of the RTL");
        examples(&mut tally, &mut failed)?;
        rtl::quick()?;
    }
    say(start, "4/4 end-to-end: real clients in network namespaces, two tests at a time");
    end_to_end(start, e2e, filter, &mut tally, &mut failed)?;
    println!("\nall tests took {:.0} s", start.elapsed().as_secs_f64());
    println!("{} passed, {} failed, {} skipped", tally.passed, tally.failed, tally.skipped);
    if !failed.is_empty() {
        bail!("tests failed in: {}", failed.join(", "));
    }
    Ok(())
}

/// A line of progress with the time since the start.
fn say(start: Instant, what: &str) {
    println!("[{:4.0} s] {what}", start.elapsed().as_secs_f64());
}

/// The suites that took longest last time go first, so that no long one is left to run alone at the end.
fn order(suites: &mut [Suite]) {
    let times: BTreeMap<String, f64> = std::fs::read_to_string(TIMES)
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let time = |suite: &Suite| {
        let place = LONGEST.iter().rev().position(|name| *name == suite.name);
        // In seconds, far above what any suite takes.
        let guess = place.map_or(0.0, |place| 1e6 + place as f64);
        times.get(&suite.name).copied().unwrap_or(guess)
    };
    suites.sort_by(|a, b| time(b).total_cmp(&time(a)));
}

/// Runs the suites, as many at a time as there are cores, and prints a line for each.
fn run_all(start: Instant, suites: &[Suite], tally: &mut Tally, failed: &mut Vec<String>) -> Result<()> {
    let next = Mutex::new(suites.iter());
    let done = Mutex::new((tally, failed, BTreeMap::<String, f64>::new()));
    let work = || -> Result<()> {
        while let Some(suite) = next.lock().ok().and_then(|mut suites| suites.next()) {
            let began = Instant::now();
            let mut command = suite.command();
            if std::env::var_os(SEED.0).is_none() {
                command.env(SEED.0, SEED.1);
            }
            let output = command.arg("--test-threads=1").output();
            let output = output.with_context(|| format!("cannot start {}", suite.name))?;
            let text = String::from_utf8_lossy(&output.stdout);
            let mut own = Tally::default();
            text.lines().for_each(|line| own.read(line));
            let Ok(mut done) = done.lock() else { bail!("a thread that ran tests panicked") };
            let (tally, failed, times) = &mut *done;
            times.insert(suite.name.clone(), began.elapsed().as_secs_f64());
            tally.add(own);
            let (number, all) = (times.len(), suites.len());
            let verdict = if output.status.success() { "ok" } else { "FAILED" };
            let took = began.elapsed().as_secs_f64();
            say(
                start,
                &format!("{number:3}/{all} {verdict} {:<44}{:5} tests {took:6.1} s", suite.name, own.passed),
            );
            if !output.status.success() {
                failed.push(suite.name.clone());
                println!(
                    "{text}\n{}\n{} ended with {}",
                    String::from_utf8_lossy(&output.stderr),
                    suite.name,
                    output.status
                );
            }
        }
        Ok(())
    };
    let workers = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(result) => result,
            Err(_) => bail!("a thread that ran tests panicked"),
        })
    })?;
    let Ok((.., times)) = done.into_inner() else { bail!("a thread that ran tests panicked") };
    // Only the order of the next run depends on it.
    let _ = std::fs::write(TIMES, serde_json::to_string_pretty(&times)?);
    Ok(())
}

/// The examples in doc comments.
fn examples(tally: &mut Tally, failed: &mut Vec<String>) -> Result<()> {
    let mut command = shell::cargo();
    command.args(["test", "--doc", "--quiet"]).args(suites::PROFILE).args(suites::EVERYTHING);
    let output = command.output().context("cannot start cargo")?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().for_each(|line| tally.read(line));
    if !output.status.success() {
        failed.push("examples in the documentation".to_owned());
        println!("{text}\n{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// The end-to-end tests, each printed as it ends. Two run side by side: they wait more than they compute, and each has its
/// own namespaces.
fn end_to_end(
    start: Instant,
    suite: &Suite,
    filter: Option<&str>,
    tally: &mut Tally,
    failed: &mut Vec<String>,
) -> Result<()> {
    let count = listed(suite, filter)?;
    let mut command = suite.command();
    command.arg("--test-threads=2").args(filter).stdout(Stdio::piped());
    let mut child = command.spawn().context("cannot start the end-to-end tests")?;
    let output = child.stdout.take().context("the end-to-end tests have no output")?;
    let mut number = 0;
    for line in BufReader::new(output).lines() {
        let line = line?;
        tally.read(&line);
        let Some((name, verdict)) = line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... "))
        else {
            // What a failed test printed, and the list of failures.
            if !line.is_empty() && !line.starts_with("running ") {
                println!("{line}");
            }
            continue;
        };
        number += 1;
        say(start, &format!("{number:3}/{count} {verdict} {name}"));
    }
    if !child.wait()?.success() {
        failed.push(suite.name.clone());
    }
    Ok(())
}

/// How many tests of a suite have `filter` in their name.
fn listed(suite: &Suite, filter: Option<&str>) -> Result<usize> {
    let list = shell::output(suite.command().args(["--list", "--format=terse"]).args(filter))?;
    Ok(list.lines().filter(|line| line.ends_with(": test")).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_test_programs_are_read() {
        let mut tally = Tally::default();
        tally.read("running 3 tests");
        tally.read("test result: FAILED. 17 passed; 1 failed; 2 ignored; 0 measured; 5 filtered out; finished in 0.01s");
        tally.read(
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
        );
        assert_eq!((tally.passed, tally.failed, tally.skipped), (20, 1, 2));
    }
}
