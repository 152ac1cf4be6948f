//! `linerate lab guide` from outside, in its shortest form. What a machine reaches is no matter here: only that every table is
//! there, half of it predicted, and that `linerate fabric` takes the files that are written.

use linerate_fabric::{ask, fit, guide, soc};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

fn program(args: &[&str]) -> (Option<i32>, String, String) {
    let run = Command::new(env!("CARGO_BIN_EXE_linerate")).args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (run.status.code(), text(run.stdout), text(run.stderr))
}

/// A folder that is gone after the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        let path = std::env::temp_dir().join(format!("linerate-guide-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_quick_guide_is_whole_and_its_files_are_read() {
    let scratch = Scratch::new();
    let (chip, tables, data, page) = (
        scratch.file("chip.toml"),
        scratch.file("guide.toml"),
        scratch.file("data.csv"),
        scratch.file("page.html"),
    );
    let args = [
        "lab", "guide", "--quick", "--json", "--chip", &chip, "--guide", &tables, "--data", &data, "--html",
        &page,
    ];
    let (code, out, err) = program(&args);
    assert_eq!(code, Some(0), "{err}");
    let found: Value = serde_json::from_str(&out).unwrap();
    let names: Vec<&str> =
        found["tables"].as_array().unwrap().iter().map(|table| table["part"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["latency", "pages", "copy", "elements", "alignment", "pattern", "banks", "threads", "packets"],
        "{found}"
    );
    assert!(found["cycle_ns"].as_f64().unwrap() > 0.0);
    assert!(found["levels"].as_array().unwrap().len() >= 2, "{}", found["levels"]);
    let whole = found["accuracy"]["cells"].as_u64().unwrap();
    assert!(whole > 50, "{}", found["accuracy"]);
    let records = found["records"].as_array().unwrap();
    let of = |origin: &str| records.iter().filter(|record| record["origin"] == origin).count();
    assert_eq!(of("predicted") as u64, whole);
    assert!(of("measured") > of("predicted"), "{}", of("measured"));
    assert!(records.iter().all(|record| record["value"].as_f64().is_some_and(|value| value > 0.0)));

    // The chip answers for a point that calibrated it, by the library and by the command.
    let described = soc::load(&fs::read_to_string(&chip).unwrap()).unwrap();
    let point = found["tables"][0]["rows"][0][1][0].clone();
    let transfer = point["asked"]["transfer"].as_str().unwrap();
    let said = ask::answer(&described, transfer).unwrap();
    let kept = point["predicted"].as_f64().unwrap();
    assert!((said.predicted / kept - 1.0).abs() < 1e-9, "{transfer}: {said:?} {kept}");
    let (code, out, err) = program(&["fabric", "predict", &chip, "--transfer", transfer]);
    assert!(code == Some(0) && out.contains("predicted"), "{out}{err}");

    // The tables are a guide, and the chip predicts them.
    let read = guide::load(&fs::read_to_string(&tables).unwrap()).unwrap();
    assert_eq!(read.tables.len(), names.len());
    let (code, out, err) =
        program(&["fabric", "table", &chip, "copy", "--guide", &tables, "--format", "csv"]);
    assert_eq!(code, Some(0), "{err}");
    let line = out.lines().nth(1).unwrap_or_default();
    assert!(
        line.split(',').filter(|cell| cell.parse::<f64>().is_ok_and(|value| value > 0.0)).count() >= 4,
        "{out}"
    );
    let measured = fit::read(&fs::read_to_string(&data).unwrap());
    assert!(measured.as_ref().is_ok_and(|cells| cells.len() > 45), "{measured:?}");

    let html = fs::read_to_string(&page).unwrap();
    for part in ["id=\"latency-figure\"", "id=\"copy-figure\"", "id=\"accuracy\"", "KeyStone II", "2388"] {
        assert!(html.contains(part), "{part} is not in the page");
    }
    assert!(!html.contains("src=") && html.len() < 250 << 10, "{} B", html.len());
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let check = |args: &[&str], said: &str| {
        let (code, out, err) = program(&[&["lab", "guide"], args].concat());
        assert!(code == Some(2) && err.contains(said) && out.is_empty(), "{args:?}: {code:?} {err}");
    };
    check(&["--only", "latency,speed"], "no table 'speed'; expected one of latency, pages, copy");
    check(
        &["--quick", "--only", "copy", "--chip", "/tmp/x.toml"],
        "takes the tables latency, pages, elements",
    );
}

#[test]
fn one_table_on_one_core_is_measured_without_a_prediction() {
    // `taskset` leaves one core: nothing to contend with.
    let program = env!("CARGO_BIN_EXE_linerate");
    let args = ["-c", "0", program, "lab", "guide", "--quick", "--only", "threads"];
    let run = Command::new("taskset").args(args).output().unwrap();
    let out = String::from_utf8(run.stdout).unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    for part in ["copy, 1 core, MB/s", "One core: no contention to be measured.", "Nothing is predicted"] {
        assert!(out.contains(part), "{part} in {out}");
    }
    assert!(!out.contains("2 cores"), "{out}");
    let (code, _, err) =
        self::program(&["lab", "guide", "--quick", "--only", "pages", "--html", "/nowhere/page.html"]);
    assert!(code == Some(1) && err.contains("cannot write /nowhere/page.html"), "{err}");
}
