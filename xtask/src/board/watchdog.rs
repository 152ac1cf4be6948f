//! The watchdog: tasks are kept from going on, a panic is asked for, and each time the board is to report it and to serve again.

use super::checks::{stats, url};
use super::machine::Machine;
use super::names::Names;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::time::{Duration, Instant};

/// Seconds that the board is told to wait, and how long it may take, beside other work of this machine.
const SECONDS: u64 = 2;
const PATIENCE: Duration = Duration::from_secs(20);

/// A way to end a board.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// What is typed.
    pub command: &'static str,
    /// What the report says, names of functions included.
    pub report: &'static [&'static str],
    /// What `/stats` says of it after the start.
    pub cause: &'static str,
}

/// A panic; after it the watchdog starts the board, too.
pub const PANIC: End = End {
    command: "panic",
    report: &["*** panic", "panic_on_purpose", "boards/firmware/src/machine.rs"],
    cause: "panic",
};

/// The loop does not come round.
pub const NETWORK: End = End {
    command: "hang network",
    report: &[
        "*** watchdog: ",
        "network has made no progress for 2 s",
        "hang_on_purpose",
        "boards/firmware/src/machine.rs",
    ],
    cause: "watchdog",
};

/// The loop of the first core does not come round, nor does that of the second.
pub const FIRST_CORE: End = End { command: "hang 0", ..NETWORK };
pub const SECOND_CORE: End = End {
    command: "hang 1",
    report: &["network 1 has made no progress for 2 s", "on core 1", "hang_on_purpose"],
    cause: "watchdog",
};

/// A task waits for what never comes, and another one runs.
pub const CONTROL: End = End {
    command: "hang control",
    report: &[
        "*** watchdog: task control has made no progress for 2 s",
        "the processor is",
        "task control waits, by its own stack:",
        "wait_on_purpose",
    ],
    cause: "watchdog",
};

/// Ends the board and waits until it has told of that, and serves again; `count` is how often the watchdog will have started it.
pub fn check(machine: &mut Machine<'_>, names: &Names, end: &End, count: u64) -> Result<String> {
    let answer = machine.console.ask(&format!("watchdog {SECONDS}"))?;
    ensure!(answer.contains(&format!("{SECONDS} s; last start: ")), "watchdog was answered by {answer:?}");
    let started = Instant::now();
    machine.console.say(end.command)?;
    let report = machine.console.wait_for("linerate on", PATIENCE)?;
    let took = started.elapsed();
    let explained = names.explain(&report);
    for part in end.report {
        ensure!(explained.contains(part), "no {part:?} in {explained}");
    }
    ensure!(took >= Duration::from_secs(SECONDS - 1), "the report came after {took:?}");
    machine.console.wait_for("help tells the commands", PATIENCE)?;
    machine.console.wait_for("> ", PATIENCE)?;
    let page = std::fs::read(Path::new("boards").join(machine.board.folder).join("files/index.html"))?;
    let got = machine
        .client("curl", &["-sSf", "-m", "10", "--retry", "5", "--retry-connrefused", &url(machine, "/")])
        .context("after its start")?;
    ensure!(got == page, "after its start index.html came with {} bytes, not as it is", got.len());
    let stats = stats(machine)?;
    ensure!(stats["last_start"] == end.cause, "last_start: {}", stats["last_start"]);
    ensure!(stats["starts_by_watchdog"] == count, "starts_by_watchdog: {}", stats["starts_by_watchdog"]);
    Ok(format!(
        "{} calls, serves again after {:.1} s",
        report.matches("  at 0x").count(),
        started.elapsed().as_secs_f32()
    ))
}
