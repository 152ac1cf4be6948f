//! The same by Dask with two workers, of which one is killed.

use super::{ITEMS, SWEEP, Scratch, kill, python, root};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

#[test]
fn a_killed_worker_of_dask_changes_nothing() {
    let scratch = Scratch::new("dask", SWEEP);
    scratch.report(&["--out", "whole.csv"]);
    let driver = root().join("crates/lab/dask/sweep_dask.py");
    let program = env!("CARGO_BIN_EXE_linerate");
    let mut running = Command::new(python())
        .arg(driver)
        .args(["sweep.toml", "--out", "dask.csv", "--linerate", program, "--local", "2", "--chunk", "10"])
        .current_dir(&scratch.0)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut workers, mut killed, mut said) = (Vec::new(), false, String::new());
    for line in BufReader::new(running.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        if let Some((_, pid)) = line.split_once(" has process ") {
            workers.push(pid.parse::<u32>().unwrap());
        }
        // Some chunks are done, and most are not.
        if line.starts_with("3 of 40 chunks") {
            kill(workers[0]);
            killed = true;
        }
        said += &line;
        said.push('\n');
    }
    assert!(running.wait().unwrap().success(), "{said}");
    assert!(killed && workers.len() == 2, "{said}");
    let table = scratch.read("dask.csv");
    assert_eq!(table.lines().count(), ITEMS + 1);
    assert_eq!(table, scratch.read("whole.csv"));
    assert!(!scratch.0.join("dask.csv.parts").exists());
}
