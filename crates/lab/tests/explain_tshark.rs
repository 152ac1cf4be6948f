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

#[test]
fn events_are_those_that_tshark_finds() {
    if Command::new("tshark").arg("--version").output().is_err() {
        println!("tshark is not installed: nothing was compared");
        return;
    }
    let file = std::env::temp_dir().join(format!("linerate-explain-{}.pcapng", std::process::id()));
    let mut wrong = Vec::new();
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    let mut compared: BTreeMap<Cause, usize> = BTreeMap::new();
    for case in cases::cases().unwrap() {
        let count = compared.entry(case.cause).or_default();
        // A header that was cut is not analysed by Wireshark.
        if *count == EACH || case.view.snap.is_some() {
            continue;
        }
        let capture = run::run(&case).capture;
        if capture.len() > LARGEST {
            continue;
        }
        *count += 1;
        std::fs::write(&file, &capture).unwrap();
        let theirs = tshark(&file);
        let ours = analyse(capture.as_slice()).unwrap().wireshark;
        for (name, count) in ours.named() {
            *seen.entry(name.to_owned()).or_default() += count;
            if count != theirs[name] {
                wrong.push(format!("{}, {}: {name} {count}, tshark {}", case.cause, case.name, theirs[name]));
            }
        }
    }
    std::fs::remove_file(&file).unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for name in ["retransmission", "out_of_order", "duplicate_ack", "lost_segment"] {
        assert!(seen[name] > 0, "no capture has a {name}: nothing was compared");
    }
}
