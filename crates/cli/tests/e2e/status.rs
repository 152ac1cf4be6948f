//! The status of a server while real clients use it.

use crate::lab::{Lab, Wire, text};
use serde_json::Value;
use std::process::Command;
use std::time::{Duration, Instant};

const PORT: &str = "9180";

/// Runs `look` again and again while an iperf3 client runs, until it has found something.
fn during<T>(lab: &Lab, iperf3: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let line = format!("iperf3 -c {} {iperf3}", lab.host4());
    let mut client =
        lab.client.command("sh").args(["-c", &format!("exec {line} > /dev/null")]).spawn().expect("sh");
    let deadline = Instant::now() + Duration::from_secs(20);
    let found = loop {
        if let Some(found) = look() {
            break found;
        }
        assert!(Instant::now() < deadline, "nothing was found while {line} ran");
        std::thread::sleep(Duration::from_millis(200));
    };
    client.kill().and_then(|()| client.wait()).expect("iperf3 ends");
    found
}

/// The connection that carries the transfer. Not the first that has a rate: that of the control connection is high, too,
/// while it is a millisecond old.
fn fastest(report: &Value) -> Option<Value> {
    let conn = report.pointer("/connections/list/0")?;
    let moved = conn["bytes_acked"].as_u64()? + conn["bytes_received"].as_u64()?;
    (conn["server"] == "iperf3" && moved > 1 << 20).then(|| conn.clone())
}

fn a_transfer_is_named_with_its_cause(wire: Wire) {
    let lab = Lab::start(wire, 1500, &["--status", PORT]);
    let conn = during(&lab, "-t 20 -R", || fastest(&lab.status()));
    assert!(conn["send_rate"].as_f64() > conn["receive_rate"].as_f64(), "{conn:#}");
    assert_eq!(conn["state"], "established");
    let remote = conn["remote"].as_str().expect("an address");
    assert!(remote.starts_with(if wire == Wire::Kernel { "127.0.0.1:" } else { "192.168.1.1:" }), "{conn:#}");
    let shares: f64 = conn["shares"].as_object().expect("shares").values().filter_map(Value::as_f64).sum();
    assert!((0.99..1.01).contains(&shares), "{conn:#}");
    // What it is depends on the machine; a bulk transfer that runs as fast as it can is not idle.
    for key in ["limited_by", "bottleneck", "because", "advice"] {
        assert!(conn[key].as_str().is_some_and(|text| !text.is_empty()), "{key}: {conn:#}");
    }
    assert_ne!(conn["bottleneck"], "nothing", "{conn:#}");

    let conn = during(&lab, "-t 20", || fastest(&lab.status()));
    assert!(conn["receive_rate"].as_f64() > conn["send_rate"].as_f64(), "{conn:#}");
    let part = conn["bottleneck"].as_str().unwrap_or_default();
    assert!(["the client or the path", "our receive window", "the server"].contains(&part), "{conn:#}");

    let report = lab.status();
    let part = if wire == Wire::Kernel { "kernel" } else { "stack" };
    let sum: u64 =
        report["counters"][part].as_object().expect("counters").values().filter_map(Value::as_u64).sum();
    assert!(sum > 1_000, "{report:#}");
    assert_eq!(report["counters"]["iperf3"]["tests"], 2);
    lab.stop();
}

#[test]
fn status_over_tap() {
    a_transfer_is_named_with_its_cause(Wire::Tap);
}

#[test]
fn status_over_packet_sockets() {
    // The port is the server's side's own: the client cannot reach it, and looks from there.
    let lab = Lab::start(Wire::Packet, 1500, &["--status", PORT]);
    lab.client.must(&format!("curl -sSf -o /dev/null {}/memory/1M", lab.http()));
    let report = lab.status();
    assert!(report["counters"]["http"]["content_sent"].as_u64() >= Some(1 << 20), "{report:#}");
    assert!(report["counters"]["device"]["rx_frames"].as_u64() > Some(3), "{report:#}");
    lab.stop();
}

#[test]
fn status_over_kernel_sockets() {
    a_transfer_is_named_with_its_cause(Wire::Kernel);
}

#[test]
fn status_to_top_and_to_monitoring_systems() {
    let lab = Lab::start(Wire::Tap, 1500, &["--status", PORT]);
    let top = format!("{} top {PORT} --once --interval 500ms", env!("CARGO_BIN_EXE_linerate"));
    let table =
        during(&lab, "-t 20 -R", || Some(lab.client.must(&top)).filter(|table| table.contains("iperf3 ")));
    for part in ["TAP device", "192.168.1.1:", "limited by", "bit/s"] {
        assert!(table.contains(part), "{table}");
    }
    let json =
        lab.client.must(&format!("{} top {PORT} --json --interval 200ms", env!("CARGO_BIN_EXE_linerate")));
    assert_eq!(serde_json::from_str::<Value>(&json).expect("JSON")["schema"], 1);

    let explain = format!("{} explain {PORT}", env!("CARGO_BIN_EXE_linerate"));
    let told =
        during(&lab, "-t 20 -R", || Some(lab.client.must(&explain)).filter(|told| told.contains("iperf3 ")));
    for part in ["192.168.1.1:", "advice: ", "linerate 0."] {
        assert!(told.contains(part), "{told}");
    }
    let json = lab.client.must(&format!("{explain} --json"));
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert!(json["connections"].is_array() && json["provenance"]["date"].is_string(), "{json:#}");

    let head = lab.client.must(&format!("curl -sSfI http://127.0.0.1:{PORT}/metrics"));
    assert!(head.contains("application/openmetrics-text; version=1.0.0; charset=utf-8"), "{head}");
    let metrics = lab.client.must(&format!("curl -sSf http://127.0.0.1:{PORT}/metrics"));
    assert!(
        metrics.contains("\nlinerate_drops_total{group=\"stack\",reason=\"tcp_checksum\"} 0\n"),
        "{metrics}"
    );
    assert!(metrics.ends_with("# EOF\n"), "{metrics}");
    let rebound =
        lab.client.sh(&format!("curl -sSf -H 'Host: evil.example' http://127.0.0.1:{PORT}/status.json"));
    assert!(!rebound.status.success() && text(&rebound).contains("421"), "{}", text(&rebound));
    lab.stop();
}

#[test]
fn status_where_it_must_not_or_cannot_be() {
    for (args, code, parts) in [
        (&["serve", "--status", "8.8.8.8:9180"][..], 2, &["--status", "private"][..]),
        (&["top", "1"], 1, &["127.0.0.1:1", "serve --status 1"]),
        (&["top", "here"], 2, &["here", "9180"]),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_linerate")).args(args).output().expect("it starts");
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", text(&output));
        for part in parts {
            assert!(text(&output).contains(part), "{args:?}: {}", text(&output));
        }
    }
}
