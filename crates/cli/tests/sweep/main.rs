//! `linerate lab sweep` from outside: whoever is killed, the table is the same to the last byte.
//!
//! The environment that `cargo xtask lab` makes has to be there: it has Dask, and DuckDB, which reads Parquet.

mod dask;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// 400 small worlds.
const SWEEP: &str = r#"
title = "A test"
seeds = 40

[scenario.world]
duration = "10 s"

[scenario.link]
rate = "10 Mbit/s"

[scenario.client]
memory = "1 MiB"
rx-buffers = 128

[scenario.server]
memory = "1 MiB"
rx-buffers = 128

[[scenario.flow]]
bytes = "64 KiB"

[[axis]]
key = "link.loss"
values = ["0 %", "1 %", "3 %", "{ every = 20 }", "5 %"]

[[axis]]
key = "link.delay"
from = "1 ms"
to = "20 ms"
steps = 2
"#;
const ITEMS: usize = 400;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A program of the lab's environment.
fn python() -> PathBuf {
    let python = root().join("target/lab/venv/bin/python");
    assert!(python.exists(), "{} is not there: cargo xtask lab", python.display());
    python
}

/// A folder with a sweep, gone after the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, sweep: &str) -> Scratch {
        let dir = std::env::temp_dir().join(format!("linerate-sweep-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("sweep.toml"), sweep.replace("\"{ every = 20 }\"", "{ every = 20 }")).unwrap();
        Scratch(dir)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap()
    }

    /// The sweep with more arguments, ready to be run.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
        command.current_dir(&self.0).args(["lab", "sweep", "sweep.toml"]).args(args);
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// The same, which has to end well; its JSON.
    fn report(&self, args: &[&str]) -> serde_json::Value {
        let output = self.run(&[args, &["--json"]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Kills a process of ours.
fn kill(pid: u32) {
    let status = Command::new("kill").args(["-9", &pid.to_string()]).stderr(Stdio::null()).status();
    status.unwrap();
}

/// The children of a process of ours.
fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>())
        .collect()
}

/// Waits until the journal of a sweep that runs has so many bytes; false if it ended before.
fn wait_for_journal(running: &mut Child, journal: &Path, bytes: u64) -> bool {
    // A minute at most.
    for _ in 0..60_000 {
        if fs::metadata(journal).is_ok_and(|file| file.len() >= bytes) {
            return true;
        }
        if running.try_wait().unwrap().is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("the journal does not grow");
}

/// Bytes of the journal at which something is to happen: by chance, the same in every run of the test.
fn moments(count: u64) -> impl Iterator<Item = u64> {
    (1..=count).map(|number| {
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        // The journal of the whole sweep has about 50,000 bytes.
        500 + mixed % 30_000
    })
}

#[test]
fn however_many_work_the_table_is_the_same() {
    let scratch = Scratch::new("jobs", SWEEP);
    scratch.report(&["--out", "one.csv", "--jobs", "1"]);
    let one = scratch.read("one.csv");
    assert_eq!(one.lines().count(), ITEMS + 1);
    for jobs in ["2", "5"] {
        scratch.report(&["--out", "other.csv", "--jobs", jobs]);
        assert_eq!(scratch.read("other.csv"), one, "{jobs}");
    }
    // What is done is not done again, until it is another sweep or another table.
    let again = |expected: bool, what: &str| {
        let output = scratch.run(&["--out", "one.csv"]);
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said.contains("one.csv has all 400 items already"), expected, "{what}: {said}");
        assert_eq!(said.contains("items are done"), !expected, "{what}: {said}");
        assert_eq!(scratch.read("one.csv"), one, "{what}");
    };
    again(true, "as it was");
    fs::write(scratch.0.join("one.csv"), format!("{one}400,0\n")).unwrap();
    again(false, "a table that was changed");
    fs::remove_file(scratch.0.join("one.csv")).unwrap();
    again(false, "a table that is gone");
    again(true, "whole again");
    // In parts, as another engine would ask for it.
    let part = |items: &str| {
        let output = scratch.run(&["--items", items, "--out", "-"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let (first, second) = (part("0-150"), part("151-399"));
    let (header, rest) = second.split_once('\n').unwrap();
    assert!(first.starts_with(header));
    assert_eq!(first + rest, one);
    assert!(!scratch.0.join("one.csv.journal").exists());
}

#[test]
fn a_killed_worker_changes_nothing() {
    let scratch = Scratch::new("worker", SWEEP);
    scratch.report(&["--out", "whole.csv"]);
    let whole = scratch.read("whole.csv");
    let mut restarts = 0;
    for moment in moments(4) {
        let mut running = scratch.command(&["--out", "killed.csv", "--jobs", "2", "--json"]);
        let mut running = running.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        if wait_for_journal(&mut running, &scratch.0.join("killed.csv.journal"), moment)
            && let Some(worker) = children(running.id()).first()
        {
            kill(*worker);
        }
        let output = running.wait_with_output().unwrap();
        assert!(output.status.success());
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        restarts += report["restarts"].as_u64().unwrap();
        assert_eq!(scratch.read("killed.csv"), whole, "{moment}");
    }
    assert!(restarts > 0, "no kill met a worker");
}

#[test]
fn a_killed_coordinator_goes_on_where_it_was() {
    let scratch = Scratch::new("coordinator", SWEEP);
    scratch.report(&["--out", "whole.csv"]);
    let whole = scratch.read("whole.csv");
    let journal = scratch.0.join("killed.csv.journal");
    let mut kills = 0;
    for moment in moments(4) {
        let mut running = scratch.command(&["--out", "killed.csv", "--jobs", "2"]);
        let mut running = running.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        if wait_for_journal(&mut running, &journal, moment) {
            kill(running.id());
            kills += u32::from(!running.wait().unwrap().success());
        }
        running.wait().unwrap();
        // The machine lost its power while a line was written, too.
        if journal.exists() {
            let mut bytes = fs::read(&journal).unwrap();
            bytes.extend_from_slice(b"{\"rows\":[[399,\"39");
            fs::write(&journal, bytes).unwrap();
        }
        let before = fs::metadata(&journal).map_or(0, |file| file.len());
        scratch.report(&["--out", "killed.csv", "--jobs", "1"]);
        assert_eq!(scratch.read("killed.csv"), whole, "{moment}: went on at {before} bytes");
        assert!(!journal.exists());
    }
    assert!(kills > 0, "no kill met the coordinator");
}

#[test]
fn a_short_run_keeps_what_a_longer_one_has_done() {
    let scratch = Scratch::new("short", SWEEP);
    scratch.report(&["--out", "whole.csv"]);
    let journal = scratch.0.join("out.csv.journal");
    let mut running = scratch.command(&["--out", "out.csv", "--jobs", "1"]);
    let mut running = running.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let met = wait_for_journal(&mut running, &journal, 10_000);
    kill(running.id());
    let _ = running.wait();
    assert!(met, "the sweep ended before it was killed");
    let short = scratch.run(&["--out", "out.csv", "--limit", "5"]);
    assert!(short.status.success(), "{short:?}");
    assert!(String::from_utf8_lossy(&short.stderr).contains("out.csv.journal keeps"), "{short:?}");
    assert_eq!(scratch.read("out.csv").lines().filter(|line| !line.starts_with('#')).count(), 6);
    assert!(fs::metadata(&journal).unwrap().len() >= 10_000);
    scratch.report(&["--out", "out.csv"]);
    assert_eq!(scratch.read("out.csv"), scratch.read("whole.csv"));
    assert!(!journal.exists());
    // Nor does it replace a longer one's table.
    for how in [&["--limit", "5"][..], &["--quick"], &["--items", "0-4"]] {
        let short = scratch.run(&[&["--out", "out.csv"], how].concat());
        let said = String::from_utf8_lossy(&short.stderr).into_owned();
        assert!(short.status.code() == Some(2) && said.contains("out.csv has"), "{how:?}: {short:?}");
    }
    assert_eq!(scratch.read("out.csv"), scratch.read("whole.csv"));
}

#[test]
fn an_item_that_kills_its_workers_is_named_and_the_others_go_on() {
    // A pool of 400 MB is more than a process may have here.
    let sweep =
        SWEEP.replace("seeds = 40", "seeds = 2").replace("\"1 %\", \"3 %\", \"{ every = 20 }\", ", "")
            + "[[axis]]\nkey = \"client.rx-buffers\"\nvalues = [128, 200000]\n";
    let scratch = Scratch::new("poison", &sweep);
    let program = env!("CARGO_BIN_EXE_linerate");
    let script =
        format!("ulimit -v 250000; exec {program} lab sweep sweep.toml --out out.csv --jobs 1 --json");
    let run = || {
        let output = Command::new("sh").args(["-c", &script]).current_dir(&scratch.0).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        (report, scratch.read("out.csv"))
    };
    let (report, table) = run();
    let poison: Vec<u64> =
        report["poison"].as_array().unwrap().iter().map(|item| item.as_u64().unwrap()).collect();
    // Two seeds of each of four points with 128 buffers, then two with too many.
    let expected: Vec<u64> = (0..16).filter(|item| item % 4 >= 2).collect();
    assert_eq!(poison, expected);
    assert_eq!(report["restarts"], 16);
    for (item, line) in table.lines().skip(1).enumerate() {
        let is_poison = line.ends_with("the worker ended twice while it worked on this item");
        assert_eq!(is_poison, expected.contains(&(item as u64)), "{line}");
    }
    assert_eq!(run().1, table);
}

#[test]
fn mistakes_are_told_with_file_line_key_and_remedy() {
    let check = |sweep: &str, args: &[&str], expected: &[&str]| {
        let scratch = Scratch::new("mistakes", sweep);
        let output = scratch.run(args);
        assert_eq!(output.status.code(), Some(2), "{sweep}");
        let error = String::from_utf8(output.stderr).unwrap();
        expected.iter().for_each(|part| assert!(error.contains(part), "{error:?} lacks {part:?}"));
    };
    let bad = SWEEP.replace("link.delay", "link.dealy");
    check(
        &bad,
        &[],
        &[
            "sweep.toml: line 27, column 7: key: link.dealy = \"1 ms\"",
            "unknown field `dealy`, expected one of",
        ],
    );
    check(SWEEP, &["--items", "5-400", "--out", "-"], &["--items", "FIRST-LAST of the items 0 to 399"]);
    check(SWEEP, &["--out", "-"], &["expected --out FILE.csv"]);
    check("chip = \"z80\"\ntransfer = \"x\"\n", &[], &["line 1, column 8: chip", "expected one of k2h"]);
}

#[test]
fn a_journal_of_another_sweep_is_left_alone() {
    let scratch = Scratch::new("other", SWEEP);
    fs::write(scratch.0.join("out.csv.journal"), "{\"sweep\":1,\"header\":\"item\\n\"}\n").unwrap();
    let output = scratch.run(&["--out", "out.csv"]);
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("out.csv.journal is of another sweep"), "{error}");
    assert!(scratch.read("out.csv.journal").starts_with("{\"sweep\":1"));
}

#[test]
fn every_example_is_answered() {
    let examples = fs::read_dir(root().join("examples/sweep")).unwrap();
    let mut count = 0;
    for example in examples.map(|entry| entry.unwrap().path()) {
        let scratch = Scratch::new("example", &fs::read_to_string(&example).unwrap());
        let report = scratch.report(&["--limit", "30", "--heat", "heat.svg"]);
        assert_eq!((report["items"].as_u64(), report["failed"].as_u64()), (Some(30), Some(0)), "{example:?}");
        assert!(report["effects"].as_array().unwrap().len() > 1, "{example:?}");
        assert!(!report["records"].as_array().unwrap().is_empty(), "{example:?}");
        assert!(scratch.read("heat.svg").contains("Median of"), "{example:?}");
        assert!(scratch.read("sweep.csv").lines().count() == 31, "{example:?}");
        count += 1;
    }
    assert!(count >= 3, "{count} examples");
}

#[test]
fn parquet_holds_what_csv_holds() {
    let scratch = Scratch::new("parquet", SWEEP);
    scratch.report(&["--out", "out.csv", "--parquet", "out.parquet", "--limit", "50", "--html", "out.html"]);
    let script = "
import duckdb
rows = lambda table: duckdb.sql(f'select * from {table} order by item').fetchall()
table = duckdb.sql(\"describe select * from 'out.parquet'\").fetchall()
print([(name, kind) for name, kind, *_ in table])
types = {name: kind for name, kind, *_ in table}
csv = f\"read_csv('out.csv', header=true, columns={types})\"
assert rows(\"'out.parquet'\") == rows(csv), (rows(\"'out.parquet'\")[:2], rows(csv)[:2])
assert len(rows(csv)) == 50
";
    let output = Command::new(python()).args(["-c", script]).current_dir(&scratch.0).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let types = String::from_utf8(output.stdout).unwrap();
    for expected in [
        "('item', 'BIGINT')",
        "('link.loss', 'VARCHAR')",
        "('link.delay_s', 'DOUBLE')",
        "('goodput_bps', 'DOUBLE')",
        "('complete', 'BOOLEAN')",
        "('bottleneck', 'VARCHAR')",
    ] {
        assert!(types.contains(expected), "{types} lacks {expected}");
    }
    let page = scratch.read("out.html");
    assert!(page.contains("<svg") && page.contains("link.delay") && !page.contains("src=\"http"));
}
