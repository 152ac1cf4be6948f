//! What is left to other tasks, and to clients, while small frames come faster than they can be taken (receive livelock).
//!
//! Times are the board's own, by its clock, which is the host's: how much work fits a second says nothing of the chip, how it is shared
//! out does.

use super::bench::{self, round};
use super::checks;
use super::machine::Machine;
use super::network::TAP;
use super::{Board, Network};
use crate::packages;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::path::Path;

/// Frames offered a second.
const LOADS: [u32; 7] = [0, 1_000, 5_000, 20_000, 40_000, 80_000, 160_000];
const SECONDS: u64 = 3;
/// What is left to others, in percent: nothing, and what images have.
const RESERVES: [u32; 2] = [0, 30];
/// The task that computes.
const TASK: &str = "compute";

/// Measures a board and adds its table to `target/boards/bench.json`.
pub fn run(board: &Board, image: &Path) -> Result<()> {
    packages::require(&["curl", "iproute2"])?;
    let network = Network::in_namespace(board.name)?;
    let mut machine = Machine::start(board, image, &network, &[])?;
    machine.console.ask("compute on")?;
    println!("{}: small frames offered, and what came of them in a second\n", board.name);
    println!(
        "{:>9}{:>10}{:>10}{:>11}{:>12}{:>11}  lateness of a task each millisecond",
        "reserve %", "offered", "taken", "requests", "compute %", "network %"
    );
    let mut rows = Vec::new();
    for reserve in RESERVES {
        machine.console.ask(&format!("reserve {reserve}"))?;
        for load in LOADS {
            rows.push(row(&mut machine, reserve, load)?);
        }
    }
    let table = json!({ "rows": rows, "date": bench::host()?["date"] });
    bench::add(board.name, "livelock", table)
}

fn row(machine: &mut Machine<'_>, reserve: u32, load: u32) -> Result<Value> {
    let mac = machine.mac()?;
    let before = Look::at(machine)?;
    machine.console.ask("latency on")?;
    let (load, seconds) = (load.to_string(), SECONDS.to_string());
    let script = include_str!("livelock.py");
    let out = machine
        .client("python3", &["-c", script, TAP, machine.board.address, &mac, &load, &seconds])
        .context("the frames")?;
    let late = machine.console.ask("latency")?;
    machine.console.ask("latency off")?;
    let after = Look::at(machine)?;
    let out = String::from_utf8_lossy(&out);
    let numbers: Vec<f64> = out.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [offered, requests] = numbers[..] else { anyhow::bail!("two numbers expected, {out:?} given") };
    let elapsed_us = after.uptime_us - before.uptime_us;
    ensure!(elapsed_us > 0.0, "the board's clock stands still");
    let share = |of: fn(&Look) -> f64| (of(&after) - of(&before)) / elapsed_us * 100.0;
    let taken = (after.frames - before.frames) / elapsed_us * 1e6;
    let (compute, network) = (share(|look| look.compute_us), share(|look| look.network_us));
    let late = late.lines().find(|line| line.contains("runs")).unwrap_or_default().trim().to_owned();
    println!(
        "{reserve:>9}{offered:>10.0}{taken:>10.0}{requests:>11.0}{compute:>12.1}{network:>11.1}  {late}"
    );
    Ok(json!({
        "reserve_percent": reserve,
        "offered": round(offered),
        "taken": round(taken),
        "requests": round(requests),
        "compute_percent": round(compute),
        "network_percent": round(network),
        "late": late,
    }))
}

/// What the board has counted until now.
struct Look {
    uptime_us: f64,
    compute_us: f64,
    network_us: f64,
    frames: f64,
}

impl Look {
    fn at(machine: &Machine<'_>) -> Result<Look> {
        Look::of(&checks::stats(machine)?)
    }

    fn of(stats: &Value) -> Result<Look> {
        let number =
            |value: &Value, what: &str| value.as_f64().with_context(|| format!("/stats has no {what}"));
        let tasks = stats["tasks"].as_array().context("/stats has no tasks")?;
        let task = |name: &str| {
            let task = tasks.iter().find(|task| task["name"] == name);
            number(&task.with_context(|| format!("/stats has no task {name}"))?["run_us"], "run_us")
        };
        Ok(Look {
            uptime_us: number(&stats["uptime_us"], "uptime_us")?,
            compute_us: task(TASK)?,
            network_us: task("network")?,
            frames: number(&stats["counters"]["frames_in"], "counters.frames_in")?,
        })
    }
}
