//! Traces in Perfetto's own trace processor: the tracks are there, and packets are those of the capture, at its times.
//!
//! The environment that `cargo xtask lab` makes has to be there: it has the trace processor. Node runs it.

mod processor;

use processor::{query, root};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Groups and their tracks with how many spans and marks each has.
fn tracks(trace: &Path) -> BTreeMap<(String, String), u64> {
    let sql = "select process.name, thread.name, count(*) from slice join thread_track on slice.track_id = thread_track.id \
               join thread using (utid) join process using (upid) group by 1, 2";
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    query(trace, sql).iter().map(|row| ((text(&row[0]), text(&row[1])), row[2].as_u64().unwrap())).collect()
}

/// Host, direction (1 in, 2 out) and time in ns.
type Passed = (String, u64, u64);

/// The frames of a capture, as tshark reads them.
fn captured(capture: &Path) -> Vec<Passed> {
    let fields = ["frame.interface_name", "frame.packet_flags_direction", "frame.time_epoch"];
    let output = Command::new("tshark")
        .args(["-r", capture.to_str().unwrap(), "-T", "fields", "-E", "separator=,"])
        .args(fields.iter().flat_map(|field| ["-e", field]))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let passed = |line: &str| {
        let parts: Vec<&str> = line.split(',').collect();
        let (seconds, ns) = parts[2].split_once('.').unwrap();
        let direction = parts[1].trim_start_matches("0x").trim_start_matches('0').parse().unwrap();
        assert_eq!(ns.len(), 9, "{line}");
        let ns = seconds.parse::<u64>().unwrap() * 1_000_000_000 + ns.parse::<u64>().unwrap();
        (parts[0].to_owned(), direction, ns)
    };
    let mut all: Vec<Passed> = String::from_utf8(output.stdout).unwrap().lines().map(passed).collect();
    all.sort();
    all
}

/// The packets of a trace of the simulator: when they reached an interface, and when they had left it.
fn traced(trace: &Path) -> Vec<Passed> {
    let sql = "select process.name, thread.name, slice.ts, slice.dur from slice join thread_track on slice.track_id = \
               thread_track.id join thread using (utid) join process using (upid) where thread.name in ('sent', 'received') \
               and extract_arg(slice.arg_set_id, 'args.bytes') is not null";
    let passed = |row: &Vec<Value>| {
        let number = |value: &Value| value.as_u64().unwrap();
        let direction = if row[1] == "sent" { 2 } else { 1 };
        (row[0].as_str().unwrap().to_owned(), direction, number(&row[2]) + number(&row[3]))
    };
    let mut all: Vec<Passed> = query(trace, sql).iter().map(passed).collect();
    all.sort();
    all
}

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let dir = std::env::temp_dir().join(format!("linerate-traces-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        Scratch(dir)
    }

    /// `linerate sim` on an example, for so long; returns what it says.
    fn simulate(&self, example: &str, duration: &str, more: &[&str]) -> Value {
        let file = root().join("examples/sim").join(example);
        let output = Command::new(env!("CARGO_BIN_EXE_linerate"))
            .current_dir(&self.0)
            .args(["sim", file.to_str().unwrap(), "--json", "--set", &format!("world.duration={duration}")])
            .args(more)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn packets_of_a_trace_are_those_of_the_capture_at_its_times() {
    let check = |example: &str, duration: &str, more: &[&str]| {
        let scratch = Scratch::new(example);
        let (trace, capture) = (scratch.0.join("t.json"), scratch.0.join("c.pcapng"));
        let both = ["--trace", "t.json", "--pcap", "c.pcapng"];
        let told = scratch.simulate(example, duration, &[&both, more].concat());
        assert_eq!(told, scratch.simulate(example, duration, more), "{example}: a trace changes the run");
        let (traced, captured) = (traced(&trace), captured(&capture));
        assert!(captured.len() > 100, "{example}: {} frames", captured.len());
        assert_eq!(traced.len(), captured.len(), "{example}");
        let other = traced.iter().zip(&captured).find(|(a, b)| a != b);
        assert_eq!(other, None, "{example}");
        // A trace alone has the same times.
        scratch.simulate(example, duration, &[&["--trace", "alone.json"], more].concat());
        assert_eq!(fs::read(scratch.0.join("alone.json")).unwrap(), fs::read(&trace).unwrap(), "{example}");
    };
    check("sending-with-loss.toml", "200ms", &[]);
    check("slow-processor.toml", "50ms", &["--set", "world.ip=6"]);
    check("several-queues.toml", "20ms", &[]);
    check("codel.toml", "500ms", &["--set", "server.offload=none"]);
}

#[test]
fn a_trace_shows_turns_interrupts_queues_and_losses() {
    let scratch = Scratch::new("tracks");
    let trace = scratch.0.join("t.json");
    let told = scratch.simulate(
        "slow-processor.toml",
        "100ms",
        &["--trace", "t.json", "--set", "from-server.loss=1 %", "--set", "server.offload=none"],
    );
    let tracks = tracks(&trace);
    let count = |group: &str, track: &str| tracks.get(&(group.to_owned(), track.to_owned())).copied();
    let number = |path: &str| told.pointer(path).and_then(Value::as_u64);
    assert!(count("server", "core 0") > Some(20), "{tracks:?}");
    assert_eq!(count("server", "interrupts of queue 0"), number("/hosts/0/interrupts"));
    assert_eq!(count("client", "interrupts of queue 0"), number("/hosts/1/interrupts"));
    assert_eq!(count("path from server", "dropped"), number("/paths/0/lost"));
    assert_eq!(count("server", "sent"), number("/hosts/0/tx_segments"));
    assert_eq!(count("client", "received"), number("/hosts/1/rx_segments"));
    assert!(number("/paths/0/lost") > Some(0), "{told}");
    // Time that the processor was busy, in all and for what.
    let sql = "select slice.name, sum(dur) from slice join thread_track on slice.track_id = thread_track.id join thread using (utid) \
               join process using (upid) where thread.name = 'core 0' and process.name = 'server' group by 1";
    let busy: BTreeMap<String, u64> = query(&trace, sql)
        .iter()
        .map(|row| (row[0].as_str().unwrap().to_owned(), row[1].as_u64().unwrap()))
        .collect();
    let parts: u64 = ["packets", "bytes", "checksums"].iter().filter_map(|part| busy.get(*part)).sum();
    assert_eq!(busy["turn"], parts, "{busy:?}");
    // The share that is told is of the time in which there was a connection, and of what was done in it.
    let sql = "select slice.ts, dur from slice join thread_track on slice.track_id = thread_track.id join thread using (utid) \
               join process using (upid) where thread.name = 'core 0' and process.name = 'server' and slice.name = 'turn'";
    let turns: Vec<[u64; 2]> =
        query(&trace, sql).iter().map(|row| [0, 1].map(|at| row[at].as_u64().unwrap())).collect();
    // The first turn is that in which the run begins.
    let start = turns.iter().map(|[begin, _]| *begin).min().unwrap();
    let moment = |name: &str| start + (told["flows"][0][name].as_f64().unwrap() * 1e9).round() as u64;
    let (opened, until) = (moment("opened_at"), moment("until"));
    let within = |[begin, dur]: &[u64; 2]| (begin + dur).min(until).saturating_sub(*begin.max(&opened));
    let done: u64 = turns.iter().map(within).sum();
    let told_busy = told["hosts"][0]["processor"].as_f64().unwrap();
    let share = done as f64 / (until - opened) as f64;
    assert!((share - told_busy).abs() < 1e-6, "{share} {told_busy}");
    // Counters, each with its largest value.
    let sql = "select process.name || ': ' || process_counter_track.name, max(value) from counter join process_counter_track on \
               counter.track_id = process_counter_track.id join process using (upid) group by 1";
    let most: BTreeMap<String, f64> = query(&trace, sql)
        .iter()
        .map(|row| (row[0].as_str().unwrap().to_owned(), row[1].as_f64().unwrap()))
        .collect();
    assert_eq!(most.get("path from server: queue segments").copied(), told["paths"][0]["queue_max"].as_f64());
    for counter in [
        "server: transmit ring 0 packets",
        "client: receive ring 0 frames",
        "flow 1, server to client: congestion window bytes",
        "flow 1, server to client: in flight bytes",
        "flow 1, server to client: round trip ns",
    ] {
        assert!(most.get(counter) > Some(&0.0), "{counter} in {most:?}");
    }
    // Arrows lead from where a segment is sent to the wire, and on to where it is received.
    let arrows = query(&trace, "select count(*) from flow")[0][0].as_u64();
    assert!(arrows > count("client", "received"), "{arrows:?}");
}
