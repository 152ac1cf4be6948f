//! Many connections, and clients that misbehave.

use crate::data::Folder;
use crate::lab::{Lab, Wire};

#[test]
fn a_thousand_connections_at_once_each_move_a_mebibyte() {
    for wire in [Wire::Tap, Wire::Kernel] {
        let lab = Lab::start(wire, 1500, &[]);
        let folder = Folder::new();
        let script = folder.file("thousand.py");
        std::fs::write(&script, include_str!("thousand.py")).expect("a file");
        let (port, host) = (lab.http().rsplit(':').next().unwrap_or("80").to_owned(), lab.host4());
        let report = lab
            .client
            .must(&format!("ulimit -n 4096; timeout 120 python3 {} {host} {port}", script.display()));
        assert!(report.contains("1000 complete"), "{wire:?}: {report}");
        lab.stop();
    }
}

#[test]
fn a_hundred_thousand_short_connections_leave_memory_flat() {
    for wire in [Wire::Tap, Wire::Kernel] {
        let (served, folder) = (Folder::with_files(1), Folder::new());
        // A table that the first connections fill: one with room for more would go on filling.
        let config = folder.file("serve.toml");
        std::fs::write(&config, "[limits]\nconnections = 4096\n").expect("a file");
        let config = config.to_str().expect("UTF-8");
        let lab = Lab::start(wire, 1500, &[served.path(), "--config", config, "--status", "9180"]);
        let ab = |count: u32| {
            let report =
                lab.client.must(&format!("timeout 240 ab -q -r -n {count} -c 50 {}/one 2>&1", lab.http()));
            assert!(report.contains(&format!("Complete requests:      {count}")), "{report}");
            assert!(report.contains("Failed requests:        0"), "{report}");
        };
        ab(20_000);
        let before = lab.resident_kib();
        ab(100_000);
        let after = lab.resident_kib();
        let memory = lab.idle_memory_mib();
        assert!(memory < 0.5, "{wire:?}: {memory} MiB of packet and socket memory are held by nobody");
        assert!(after <= before + 2048, "{wire:?}: resident memory grew from {before} to {after} KiB");
        lab.stop();
    }
}

#[test]
fn little_memory_slows_down_and_loses_nothing() {
    for offload in ["all", "none"] {
        let lab =
            Lab::start(Wire::Tap, 1500, &["--memory", "4MiB", "--offload", offload, "--status", "9180"]);
        let http = lab.http();
        let get = format!("curl -sSf --max-time 100 {http}/memory/8M | sha256sum");
        let put = format!("head -c 8388608 /dev/zero | curl -sSf --max-time 100 -T - {http}/memory/null");
        let sums =
            lab.client.must(&format!("for i in $(seq 30); do ({get}) & ({put} > /dev/null) & done; wait"));
        let first = sums.lines().next().expect("thirty sums");
        assert!(sums.lines().count() == 30 && sums.lines().all(|sum| sum == first), "{sums}");
        let memory = lab.idle_memory_mib();
        assert!(memory < 0.1, "{memory} MiB are held by nobody");
        lab.stop();
    }
}

#[test]
fn much_memory_is_taken_when_it_is_used() {
    for wire in [Wire::Tap, Wire::Packet] {
        let lab = Lab::start(wire, 1500, &["--memory", "1GiB"]);
        lab.client.must(&format!("curl -sSf {}/ > /dev/null", lab.http()));
        let resident = lab.resident_kib() / 1024;
        println!("{wire:?}: {resident} MiB resident");
        assert!(resident < 40, "{wire:?}: {resident} MiB resident at the start");
        lab.stop();
    }
}

#[test]
fn stalled_clients_disturb_nobody() {
    for wire in [Wire::Tap, Wire::Kernel] {
        let lab = Lab::start(wire, 1500, &[]);
        let folder = Folder::new();
        let script = folder.file("stalled.py");
        std::fs::write(&script, include_str!("stalled.py")).expect("a file");
        let (port, host) = (lab.http().rsplit(':').next().unwrap_or("80").to_owned(), lab.host4());
        let report = lab.client.must(&format!(
            "timeout 100 python3 {} {host} {port} {}",
            script.display(),
            lab.ftp_port()
        ));
        assert!(report.contains("served"), "{wire:?}: {report}");
        lab.stop();
    }
}
