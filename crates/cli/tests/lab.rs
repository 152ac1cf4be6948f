//! The commands of the lab that need no network, from outside: `lab ladder` on the simulator and from a board's figures, and
//! `lab published`.

use serde_json::Value;
use std::fs;
use std::process::Command;

/// What the program prints; it must succeed.
fn printed(args: &[&str]) -> String {
    let run = Command::new(env!("CARGO_BIN_EXE_linerate")).args(args).output().unwrap();
    assert!(run.status.success(), "{args:?}: {}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).unwrap()
}

#[test]
fn a_ladder_predicts_what_it_measures() {
    let folder = std::env::temp_dir();
    let [figures, page] =
        ["json", "html"].map(|kind| folder.join(format!("linerate-ladder-{}.{kind}", std::process::id())));
    let counted = |count: f64| serde_json::json!({ "per_segment": count });
    let board = serde_json::json!({ "sending": counted(350.0), "receiving": counted(40_000.0) });
    fs::write(
        &figures,
        serde_json::json!({ "boards": { "virt-a15": { "instructions": board } } }).to_string(),
    )
    .unwrap();
    let of_board = format!("offloads={}", figures.display());
    let page_name = page.display().to_string();
    let args = ["lab", "ladder", "--on", "simulator", "--on", "board", "--board-figures", &of_board];
    let json = printed(&[&args[..], &["--json", "--html", &page_name]].concat());

    let report: Value = serde_json::from_str(&json).unwrap();
    assert!(
        report["provenance"]["command"].as_str().unwrap().starts_with("linerate lab ladder --on"),
        "{json}"
    );
    let climbs = report["climbs"].as_array().unwrap();
    let [document, counted, board] = &climbs[..] else { panic!("{} climbs", climbs.len()) };
    for climb in [document, counted] {
        let rows = climb["rows"].as_array().unwrap();
        assert!(rows.len() >= 33, "{climb:#}");
        // The goal of the ladder: nine of ten rungs within 10 %.
        let near = rows.iter().filter(|row| {
            let predicted = row["predicted"]["megabytes"].as_f64().unwrap();
            (predicted / row["measured"]["megabytes"]["median"].as_f64().unwrap() - 1.0).abs() <= 0.1
        });
        assert!(near.count() * 10 >= rows.len() * 9, "{climb:#}");
    }
    let limits: Vec<&str> = board["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["measured"]["limit"].as_str().unwrap())
        .collect();
    assert_eq!(limits, ["the interface", "the processor"], "{board:#}");

    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("</svg>") && html.contains("ack-every-10"), "{html}");
    fs::remove_file(&figures).and_then(|()| fs::remove_file(&page)).unwrap();
}

#[test]
fn a_ladder_without_a_rung_is_an_error() {
    let nowhere = std::env::temp_dir().join("linerate-no-such-figures.json");
    let of_board = format!("software={}", nowhere.display());
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    let run =
        command.args(["lab", "ladder", "--on", "board", "--board-figures", &of_board]).output().unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(1), "{said}");
    assert!(said.contains("no rung with a figure") && said.contains("no-such-figures.json"), "{said}");
}

#[test]
fn published_figures_come_with_their_places() {
    let all = printed(&["lab", "published"]);
    let mut lines = all.lines();
    assert_eq!(lines.next(), Some("board,workload,tuning,figure,unit,value,origin,source"));
    assert_eq!(lines.clone().count(), all.matches(",published,\"seed ").count());
    let mut records = 0;
    for seed in ["000", "002", "003", "004"] {
        let json = printed(&["lab", "published", "--seed", seed, "--json"]);
        let one: Value = serde_json::from_str(&json).unwrap();
        let list = one.as_array().unwrap();
        assert!(list.iter().all(|record| record["source"].as_str().unwrap().contains(seed)), "{json}");
        records += list.len();
    }
    assert_eq!(records, lines.count());
    assert!(all.contains("http-404,,knee,requests/s,300.0,published,\"seed 003, "), "{all}");
}
