//! Events by Wireshark's rules are those that tshark finds, in captures of the simulator. Where tshark is not installed, nothing is
//! compared, and that is said.

use linerate_lab::explain::analyse;
use linerate_lab::explain::cause::Cause;
use linerate_lab::explain::truth::{cases, run};
use linerate_lab::explain::wireshark::Counts;
use std::collections::BTreeMap;
use std::process::Command;

/// Largest capture that is compared, in bytes, and how many of each cause: tshark takes a second for each.
const LARGEST: usize = 4_000_000;
const EACH: usize = 2;

/// What tshark counts in a file, by flag.
fn tshark(file: &std::path::Path) -> BTreeMap<String, u64> {
    let names = Counts::default().named().map(|(name, _)| name);
    let mut command = Command::new("tshark");
    command
        .args(["-n", "-o", "tcp.check_checksum:false", "-T", "fields", "-E", "occurrence=f", "-r"])
        .arg(file);
    for name in names {
        command.args(["-e", &format!("tcp.analysis.{name}")]);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut counts: BTreeMap<String, u64> = names.map(|name| (name.to_owned(), 0)).into();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        for (name, field) in names.iter().zip(line.split('\t')) {
            *counts.get_mut(*name).unwrap() += u64::from(!field.is_empty());
        }
    }
    counts
}

/// Counts of a capture: ours, and those of tshark beside.
fn both(capture: &[u8], name: &str) -> Vec<(&'static str, u64, u64)> {
    let name = format!("linerate-explain-{name}-{}.pcapng", std::process::id());
    let file = std::env::temp_dir().join(name);
    std::fs::write(&file, capture).unwrap();
    let theirs = tshark(&file);
    std::fs::remove_file(&file).unwrap();
    let ours = analyse(capture).unwrap().wireshark;
    ours.named().into_iter().map(|(name, count)| (name, count, theirs[name])).collect()
}

/// Captures of the simulator, so many of each cause, of which frames are missing.
fn captures(each: usize, missing: Option<f64>) -> Vec<(String, Vec<u8>)> {
    let mut taken: BTreeMap<Cause, usize> = BTreeMap::new();
    let mut captures = Vec::new();
    for mut case in cases::cases().unwrap() {
        let count = taken.entry(case.cause).or_default();
        // A header that was cut is not analysed by Wireshark.
        if *count == each || case.view.snap.is_some() {
            continue;
        }
        case.view.missing = missing.unwrap_or(case.view.missing);
        let capture = run::run(&case).capture;
        if capture.len() <= LARGEST {
            *count += 1;
            captures.push((format!("{}, {}", case.cause, case.name), capture));
        }
    }
    captures
}

fn has_tshark() -> bool {
    let is_there = Command::new("tshark").arg("--version").output().is_ok();
    if !is_there {
        println!("tshark is not installed: nothing was compared");
    }
    is_there
}

#[test]
fn events_are_those_that_tshark_finds() {
    if !has_tshark() {
        return;
    }
    let mut wrong = Vec::new();
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    for (case, capture) in captures(EACH, None) {
        for (name, ours, theirs) in both(&capture, "whole") {
            *seen.entry(name).or_default() += ours;
            if ours != theirs {
                wrong.push(format!("{case}: {name} {ours}, tshark {theirs}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for name in ["retransmission", "out_of_order", "duplicate_ack", "lost_segment"] {
        assert!(seen[name] > 0, "no capture has a {name}: nothing was compared");
    }
}

/// Frames that a capture lacks, as a share of all, and by how much the acknowledgements of such may differ from tshark's.
const MISSING: f64 = 0.03;
const APART: f64 = 0.05;

#[test]
fn events_are_those_that_tshark_finds_where_frames_are_missing() {
    if !has_tshark() {
        return;
    }
    let mut wrong = Vec::new();
    let (mut apart, mut all) = (0, 0);
    for (case, capture) in captures(1, Some(MISSING)) {
        for (name, ours, theirs) in both(&capture, "missing") {
            if name == "ack_lost_segment" {
                println!("{case}: {name} {ours}, tshark {theirs}");
                apart += ours.abs_diff(theirs);
                all += theirs;
            } else if ours != theirs {
                wrong.push(format!("{case}: {name} {ours}, tshark {theirs}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(all > 50, "{all}: nothing was compared");
    assert!(apart as f64 <= APART * all as f64, "{apart} of {all}");
}
