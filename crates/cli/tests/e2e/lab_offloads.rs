//! `linerate lab offloads` in its shortest form: what it says has the form of seed 004's tables, and nothing is lost.

use crate::lab::text;
use serde_json::Value;
use std::process::Command;

const LINERATE: &str = env!("CARGO_BIN_EXE_linerate");

fn lab(args: &str) -> Value {
    let folder = crate::data::Folder::new();
    let page = folder.file("page.html");
    let mut command = Command::new("timeout");
    command.args(["300", LINERATE, "lab", "offloads", "--quick", "--json"]).args(args.split_whitespace());
    let output = command.arg("--html").arg(&page).output().expect("it starts");
    assert!(output.status.success(), "{args}: {}", text(&output));
    let html = std::fs::read_to_string(&page).expect("a page");
    assert!(html.contains("<svg") && html.contains("Table 7: Performance Comparison"), "{args}");
    assert!(html.len() < 250 << 10, "{} bytes", html.len());
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn list<'a>(json: &'a Value, name: &str) -> &'a Vec<Value> {
    json[name].as_array().unwrap_or_else(|| panic!("no {name} in {json:#}"))
}

#[test]
fn offloads_in_short_on_a_tap_device() {
    let said = lab("--queues 2");
    // UDP and TCP, both directions: five settings, but queues only where something is received.
    let rows = list(&said, "rows");
    assert_eq!(rows.len(), 4 * 5 - 2);
    for row in rows {
        let sample = &row["samples"][0];
        assert!(sample["throughput_bps"].as_f64().is_some_and(|bps| bps > 1e6), "{row:#}");
        let loads = list(sample, "core_load_percent");
        assert!(!loads.is_empty(), "{row:#}");
        assert!(loads.iter().all(|load| load.as_f64().is_some_and(|load| (0.0..=100.0).contains(&load))));
        assert!(row["refused"].is_null(), "nothing is refused in the short form: {row:#}");
    }
    let tables = list(&said, "tables");
    assert_eq!(tables.len(), 8);
    for (number, table) in (1..).zip(&tables[..7]) {
        let title = table["title"].as_str().expect("a title");
        assert!(title.starts_with(&format!("Table {number}: Performance")), "{title}");
        for row in list(table, "rows") {
            assert!(row["published"].is_null(), "the document's text prints no cell: {row:#}");
        }
    }
    let records = list(&said, "records");
    let throughput = records.iter().filter(|record| record["figure"] == "throughput").count();
    assert_eq!(throughput, rows.len());
    assert!(records.iter().all(|record| record["origin"] == "measured"));
    check_switching(&said, 1);
}

/// Every file that was on its way while offloads were switched is whole.
fn check_switching(said: &Value, devices: usize) {
    let switching = list(said, "switching");
    assert_eq!(switching.len(), devices);
    for one in switching {
        let count = |name: &str| one[name].as_u64().unwrap_or_else(|| panic!("no {name}: {one:#}"));
        assert!(count("switches") >= 3 && count("most_within") >= 1, "{one:#}");
        assert!(count("downloads") >= 2 && count("uploads") >= 2, "{one:#}");
        assert_eq!(count("differing"), 0, "{one:#}");
    }
}

#[test]
fn offloads_between_our_own_ends_on_packet_sockets() {
    let said = lab("--device packet --other-end linerate --streams 2 --switching 3");
    assert_eq!(list(&said, "rows").len(), 4 * 5 - 2);
    check_switching(&said, 1);
}
