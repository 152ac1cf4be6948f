//! Little memory: what a window let in finds a buffer, and idle connections take no more than they are reckoned at.

use crate::data::Folder;
use crate::lab::{Lab, Wire};
use crate::uploads::{Congestion, Upload, measure};

/// Segments with payload that the server has thrown away for want of room. What its sender sends again is no measure of them: a server
/// that gets no processor time for a while is taken for a lost segment, and a full TAP device loses some.
fn refused(lab: &Lab) -> u64 {
    let report = lab.status();
    let counters = &report["counters"]["stack"];
    ["drop_tcp_no_memory", "drop_tcp_out_of_order_full", "drop_tcp_out_of_window", "tcp_out_of_order_shed"]
        .iter()
        .map(|name| counters[name].as_u64().unwrap_or_else(|| panic!("{name}: {report:#}")))
        .sum()
}

/// Each upload delivers what was sent, and (nearly) all that a window let in found a buffer.
fn check(lab: &Lab, upload: Upload, name: &str) {
    let before = refused(lab);
    let result = measure(lab, upload);
    assert_eq!(result.received, result.sent, "{name} {upload:?}");
    let refused = refused(lab) - before;
    let resent = result.retransmits;
    assert!(
        refused as f64 <= 0.001 * result.segments(),
        "{name} {upload:?}: {refused} segments were refused, {resent} sent again"
    );
}

#[test]
fn much_memory_is_served_on_a_tap_too() {
    // The host's queue of a TAP is as long as there are buffers, as far as the kernel makes it.
    for memory in ["8GiB", "1TiB"] {
        let lab = Lab::start(Wire::Tap, 1500, &["--memory", memory]);
        lab.client.must(&format!("curl -sSf {}/hello.txt", lab.http()));
        lab.stop();
    }
}

#[test]
fn little_memory_refuses_nothing_that_it_let_in() {
    for wire in [Wire::Tap, Wire::Packet] {
        for memory in ["4MiB", "16MiB"] {
            for offload in ["all", "none"] {
                let lab =
                    Lab::start(wire, 1500, &["--memory", memory, "--offload", offload, "--status", "9180"]);
                let name = format!("{wire:?} {memory} offload {offload}");
                for congestion in [Congestion::Cubic, Congestion::Bbr] {
                    for parallel in [1, 8] {
                        check(&lab, Upload::bytes(parallel, congestion, 50_000_000), &name);
                    }
                }
                lab.stop();
            }
        }
    }
}

#[test]
fn a_hundred_uploads_share_little_memory() {
    let lab = Lab::start(Wire::Tap, 1500, &["--memory", "4MiB", "--status", "9180"]);
    check(&lab, Upload::bytes(100, Congestion::Bbr, 1_000_000_000), "4 MiB");
    lab.stop();
}

/// By hand, as the kernel needs as many sockets again: `cargo test --release -p linerate-cli --test e2e -- --ignored
/// --nocapture a_hundred_thousand_idle`.
#[test]
#[ignore = "100,000 sockets of the kernel"]
fn a_hundred_thousand_idle_connections_fit_in_256_mib() {
    let folder = Folder::new();
    let (settings, script) = (folder.file("idle.toml"), folder.file("idle.py"));
    std::fs::write(&settings, "[http]\nidle-timeout = \"1h\"\n").expect("a file");
    std::fs::write(&script, include_str!("idle.py")).expect("a file");
    let settings = settings.display().to_string();
    let lab = Lab::start(Wire::Tap, 1500, &["--memory", "256MiB", "--config", &settings]);
    lab.client.must("ip route add local 198.18.0.0/15 dev lo");
    let port = lab.http().rsplit(':').next().and_then(|port| port.parse::<u16>().ok()).unwrap_or(80);
    let report = lab.client.must(&format!(
        "ulimit -n 16000; timeout 300 python3 {} {} {port} 100000 {}",
        script.display(),
        lab.host4(),
        lab.pid()
    ));
    println!("{report}");
    assert!(report.starts_with("100000 opened, 1000 of 1000 answered, "), "{report}");
    let held: u64 = report
        .trim()
        .rsplit(", ")
        .next()
        .and_then(|held| held.split(' ').next()?.parse().ok())
        .expect("a number");
    assert!(held < 256 << 10, "{held} KiB resident");
    assert!(!lab.log().contains("gave way"), "{}", lab.log());
    lab.stop();
}
