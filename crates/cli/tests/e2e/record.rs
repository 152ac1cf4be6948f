//! `serve --trace` and `--pcap`: what the server did and what passed its device, on one clock, while real clients use it.

#[path = "../traces/processor.rs"]
mod processor;

use crate::lab::{Lab, Namespace, Wire};
use processor::query;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Frames by thread and direction, and the times of the calls that moved them, in ns.
type Passed = BTreeMap<(String, bool), (u64, BTreeSet<u64>)>;

/// What tshark reads in a capture.
fn captured(capture: &Path) -> Passed {
    let fields = ["frame.interface_name", "frame.packet_flags_direction", "frame.time_epoch"];
    let output = Command::new("tshark")
        .args(["-r", capture.to_str().expect("a path"), "-T", "fields", "-E", "separator=,"])
        .args(fields.iter().flat_map(|field| ["-e", field]))
        .output()
        .expect("tshark starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut passed = Passed::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let parts: Vec<&str> = line.split(',').collect();
        let (seconds, ns) = parts[2].split_once('.').expect("a fraction");
        let ns = seconds.parse::<u64>().expect("seconds") * 1_000_000_000 + ns.parse::<u64>().expect("ns");
        let entry = passed.entry((parts[0].to_owned(), parts[1].ends_with('2'))).or_default();
        entry.0 += 1;
        entry.1.insert(ns);
    }
    passed
}

/// What the trace says of the device.
fn traced(trace: &Path) -> Passed {
    let sql = "select process.name, slice.name, ts, extract_arg(slice.arg_set_id, 'args.frames') from slice join thread_track \
               on slice.track_id = thread_track.id join thread using (utid) join process using (upid) where thread.name = \
               'device'";
    let mut passed = Passed::new();
    for row in query(trace, sql) {
        let key = (row[0].as_str().expect("a name").to_owned(), row[1] == "send");
        let entry = passed.entry(key).or_default();
        entry.0 += row[3].as_u64().expect("frames");
        entry.1.insert(row[2].as_u64().expect("a time"));
    }
    passed
}

fn a_run_is_recorded(wire: Wire) {
    let name = format!("linerate-record-{}-{wire:?}", std::process::id());
    let (trace, capture) =
        (std::env::temp_dir().join(name.clone() + ".json"), std::env::temp_dir().join(name + ".pcapng"));
    let text = |path: &Path| path.to_str().expect("a path").to_owned();
    let lab = Lab::start(wire, 1500, &["--trace", &text(&trace), "--pcap", &text(&capture)]);
    // Slow enough that connections are looked at on the way.
    lab.client.must(&format!("curl -sSf --limit-rate 5M -o /dev/null {}/memory/2M", lab.http()));
    lab.client.must(&format!("ping -c 3 -i 0.2 -q {}", lab.host4()));
    lab.stop();
    let (traced, captured) = (traced(&trace), captured(&capture));
    assert!(captured.values().map(|(frames, _)| frames).sum::<u64>() > 30, "{captured:?}");
    assert_eq!(traced, captured, "{wire:?}");
    let names: BTreeSet<String> =
        query(&trace, "select distinct name from slice union select distinct name from counter_track")
            .iter()
            .filter_map(|row| row[0].as_str().map(str::to_owned))
            .collect();
    for expected in [
        "input",
        "servers and output",
        "settle",
        "sleep",
        "connections open",
        "memory bytes",
        "waiting for the device packets",
    ] {
        assert!(names.contains(expected), "{expected} in {names:?}");
    }
    for end in [" congestion window bytes", " in flight bytes", " round trip ns"] {
        assert!(names.iter().any(|name| name.ends_with(end)), "{end} in {names:?}");
    }
    // Steps of the loop follow each other.
    let sql = "select count(*) from (select ts, dur, lead(ts) over (partition by track_id order by ts) as next from slice join \
               thread_track on slice.track_id = thread_track.id join thread using (utid) where thread.name = 'loop') \
               where ts + dur > next";
    assert_eq!(query(&trace, sql), [[Value::from(0)]]);
    for path in [trace, capture] {
        std::fs::remove_file(path).expect("it was written");
    }
}

#[test]
fn a_run_on_tap_is_recorded() {
    a_run_is_recorded(Wire::Tap);
}

#[test]
fn a_run_on_a_packet_socket_is_recorded() {
    a_run_is_recorded(Wire::Packet);
}

#[test]
fn a_server_that_ends_by_an_error_tells_what_was_before() {
    let namespace = Namespace::new();
    let trace = std::env::temp_dir().join(format!("linerate-record-gone-{}.json", std::process::id()));
    let capture = trace.with_extension("pcapng");
    let mut server = namespace.command(env!("CARGO_BIN_EXE_linerate"));
    let args = ["serve", "--device", "tap:lrgone0", "--iperf3-port", "0", "--ftp-port", "0", "--trace"];
    server.args(args).arg(&trace).arg("--pcap").arg(&capture);
    let mut server = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let patience = Instant::now() + Duration::from_secs(30);
    while !namespace.sh("curl -sf -m 1 -o /dev/null http://192.168.1.4/memory/10").status.success() {
        assert!(Instant::now() < patience, "nobody answers");
        std::thread::sleep(Duration::from_millis(50));
    }
    namespace.must("ip link del lrgone0");
    assert_eq!(server.wait().expect("it ends").code(), Some(1));
    let events: Value = serde_json::from_slice(&std::fs::read(&trace).expect("a trace")).expect("JSON");
    let all = events["traceEvents"].as_array().or(events.as_array()).expect("events");
    assert!(all.iter().any(|event| event["name"] == "receive"), "{} events", all.len());
    assert!(captured(&capture).values().map(|(frames, _)| frames).sum::<u64>() > 5);
    for path in [trace, capture] {
        std::fs::remove_file(path).expect("it was written");
    }
}

/// What was noted until a server was killed is on the disk, whole.
#[test]
fn a_killed_server_leaves_its_trace() {
    let namespace = Namespace::new();
    let trace = std::env::temp_dir().join(format!("linerate-record-killed-{}.json", std::process::id()));
    let mut server = namespace.command(env!("CARGO_BIN_EXE_linerate"));
    let args = ["serve", "--device", "tap:lrkill0", "--iperf3-port", "0", "--ftp-port", "0", "--trace"];
    let server = server.args(args).arg(&trace).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut server = server.expect("it starts");
    let noted = || {
        let sql = "select count(*) from slice where name = 'receive'";
        query(&trace, sql)[0][0].as_u64().expect("a count")
    };
    let patience = Instant::now() + Duration::from_secs(30);
    while !namespace.sh("curl -sf -m 1 -o /dev/null http://192.168.1.4/memory/1M").status.success() {
        assert!(Instant::now() < patience, "nobody answers");
        std::thread::sleep(Duration::from_millis(50));
    }
    // Also while it is written.
    while noted() == 0 {
        assert!(Instant::now() < patience, "nothing is written");
        std::thread::sleep(Duration::from_millis(200));
    }
    let args = ["-sf", "-m", "20", "--limit-rate", "50M", "-o", "/dev/null", "http://192.168.1.4/memory/1G"];
    let mut client = namespace.command("curl").args(args).spawn().expect("curl starts");
    // How many calls a second there are is the machine's affair; that they come to the disk while
    // the transfer runs is not.
    let first = noted();
    let mut last = first;
    while last < first + 20 {
        assert!(Instant::now() < patience, "{last} calls that received, {first} before the transfer");
        std::thread::sleep(Duration::from_millis(200));
        last = noted();
    }
    server.kill().and_then(|()| server.wait()).expect("it is killed");
    client.kill().and_then(|()| client.wait()).expect("it ends");
    assert!(noted() >= last, "{} calls that received, {last} before it was killed", noted());
    let events: Value = serde_json::from_slice(&std::fs::read(&trace).expect("a trace")).expect("JSON");
    let names: BTreeSet<&str> = events["traceEvents"]
        .as_array()
        .expect("events")
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    for expected in ["process_name", "thread_name", "send", "sleep", "connections"] {
        assert!(names.contains(expected), "{expected} in {names:?}");
    }
    std::fs::remove_file(trace).expect("it was written");
}
