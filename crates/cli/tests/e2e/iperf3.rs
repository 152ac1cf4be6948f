//! The real iperf3 client, in its modes.

use crate::lab::{Lab, Wire, text};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Runs a client with `-J` and returns its report, which must not hold an error.
fn run(lab: &Lab, args: &str) -> Value {
    let output = lab.client.sh(&format!("timeout 60 iperf3 -c {} -J {args}", lab.host4()));
    let text = text(&output);
    let report: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{args}: {error}\n{text}"));
    assert!(output.status.success() && report["error"].is_null(), "{args}: {text}");
    report
}

fn number(report: &Value, path: &str) -> f64 {
    report.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {path} in {report:#}"))
}

fn modes(wire: Wire) {
    let lab = Lab::start(wire, 1500, &[]);
    for args in [
        "-t 2",
        "-t 2 -R",
        "-t 2 -P 8",
        "-t 2 -R -P 8",
        "-t 2 -O 1",
        "-t 2 -M 536",
        "-t 2 -w 64K",
        "-t 2 -R -w 64K",
    ] {
        let report = run(&lab, args);
        let received = number(&report, "/end/sum_received/bytes");
        let sent = number(&report, "/end/sum_sent/bytes");
        assert!(received > 1e6, "{args}: {received} bytes only");
        // What is in flight when the clock stops was sent and not received.
        assert!(received <= sent * 1.001 + 1.0 || args.contains("-O"), "{args}: {received} of {sent}");
    }
    let report = run(&lab, "-t 2 --bidir");
    assert!(number(&report, "/end/sum_received/bytes") > 1e6, "{report:#}");
    assert!(number(&report, "/end/sum_received_bidir_reverse/bytes") > 1e6, "{report:#}");

    // The client may send a block more than it was asked for; whatever it sent must have been received.
    let report = run(&lab, "-n 100M");
    let sent = number(&report, "/end/sum_sent/bytes");
    assert!((104_857_600.0..=105_906_176.0).contains(&sent), "{sent}");
    assert_eq!(number(&report, "/end/sum_received/bytes"), sent);
    let report = run(&lab, "-n 100M -R");
    assert_eq!(number(&report, "/end/sum_sent/bytes"), 104_857_600.0);
    assert_eq!(number(&report, "/end/sum_received/bytes"), 104_857_600.0);
    let ours = if wire == Wire::Kernel { "reno" } else { "cubic" };
    assert_eq!(report["end"]["sender_tcp_congestion"], ours, "{report:#}");
    let report = run(&lab, "-n 100M -R -P 4");
    assert_eq!(number(&report, "/end/sum_sent/bytes"), 104_857_600.0);
    run(&lab, "-k 500");
    // A client counts what it reads at a time, which may be less than a block.
    let report = run(&lab, "-k 500 -R");
    assert!(number(&report, "/end/sum_sent/bytes") <= 500.0 * 131_072.0, "{report:#}");

    let report = run(&lab, "-t 2 --get-server-output");
    let server = &report["server_output_json"];
    assert!(server.is_object() || report["server_output_text"].is_string(), "{report:#}");
    lab.stop();
}

#[test]
fn tcp_modes_over_tap() {
    modes(Wire::Tap);
}

#[test]
fn tcp_modes_over_packet_sockets() {
    modes(Wire::Packet);
}

#[test]
fn tcp_modes_over_af_xdp() {
    modes(Wire::Xdp(1));
}

#[test]
fn tcp_modes_over_kernel_sockets() {
    modes(Wire::Kernel);
}

#[test]
fn udp_both_ways() {
    for wire in [Wire::Tap, Wire::Packet, Wire::Xdp(1), Wire::Kernel] {
        let lab = Lab::start(wire, 1500, &[]);
        for args in
            ["-u -b 200M -l 1448 -t 2", "-u -b 200M -l 1448 -t 2 -R", "-u -b 50M -l 1448 -t 2 --bidir"]
        {
            // The best of three: a client that gets no processor time for a while loses datagrams, whoever serves. Those that
            // its own socket had no room for were not lost by the server.
            let share = |_| {
                let before = datagrams_without_room(&lab);
                let report = run(&lab, args);
                let packets = number(&report, "/end/sum/packets");
                assert!(packets > 1000.0, "{wire:?} {args}: {packets} packets");
                let its_own = datagrams_without_room(&lab) - before;
                (number(&report, "/end/sum/lost_packets") - its_own).max(0.0) / packets
            };
            let lost = (0..3).map(share).find(|lost| *lost <= 0.01);
            assert!(lost.is_some(), "{wire:?} {args}: more than 1 % lost three times");
        }
        lab.stop();
    }
}

/// Datagrams that came to the client's namespace and found the buffer of their socket full (RcvbufErrors).
fn datagrams_without_room(lab: &Lab) -> f64 {
    let text = lab.client.must("grep ^Udp: /proc/net/snmp");
    let mut lines = text.lines().map(str::split_whitespace);
    let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
    let found = names.zip(values).find(|(name, _)| *name == "RcvbufErrors");
    found.and_then(|(_, value)| value.parse().ok()).expect("a number")
}

#[test]
fn reverse_mode_hardly_retransmits() {
    for args in [&["--offload", "all"][..], &["--offload", "none"][..]] {
        let lab = Lab::start(Wire::Tap, 1500, args);
        let report = run(&lab, "-t 3 -R");
        let bytes = number(&report, "/end/sum_sent/bytes");
        let retransmits = number(&report, "/end/sum_sent/retransmits");
        let segments = bytes / 1448.0;
        assert!(retransmits <= segments * 0.001, "{args:?}: {retransmits} of {segments} segments");
        lab.stop();
    }
}

#[test]
fn both_directions_are_within_a_factor_of_two() {
    let lab = Lab::start(Wire::Tap, 1500, &["--offload", "all"]);
    // Alternating, and the best of three: both directions meet the same machine.
    let (mut forward, mut reverse) = (0.0_f64, 0.0_f64);
    for _ in 0..3 {
        forward = forward.max(number(&run(&lab, "-t 2"), "/end/sum_received/bits_per_second"));
        reverse = reverse.max(number(&run(&lab, "-t 2 -R"), "/end/sum_received/bits_per_second"));
    }
    println!("forward {:.1} Gb/s, reverse {:.1} Gb/s", forward / 1e9, reverse / 1e9);
    assert!(forward < 2.0 * reverse && reverse < 2.0 * forward, "{forward} and {reverse} bits per second");
    lab.stop();
}

#[test]
fn two_clients_at_once() {
    let lab = Lab::start(Wire::Tap, 1500, &[]);
    let line = format!("timeout 30 iperf3 -c {} -t 3 -J", lab.host4());
    let text = lab.client.must(&format!("{line} > /dev/null & {line}; wait $!"));
    assert!(text.contains("sum_received"), "{text}");
    lab.stop();
}

#[test]
fn a_killed_client_does_not_keep_the_next_one_waiting() {
    for (wire, args) in [(Wire::Tap, "-t 30"), (Wire::Tap, "-t 30 -R"), (Wire::Kernel, "-t 30 -R")] {
        let lab = Lab::start(wire, 1500, &[]);
        // SIGKILL by its own process id, in the middle of the test.
        let host = lab.host4();
        lab.client.must(&format!("iperf3 -c {host} {args} > /dev/null 2>&1 & sleep 1; kill -9 $!"));
        let begun = Instant::now();
        run(&lab, "-n 1M");
        assert!(begun.elapsed() < Duration::from_secs(1), "served after {:?}", begun.elapsed());
        lab.stop();
    }
}
