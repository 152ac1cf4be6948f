//! TCP Fast Open with the Linux kernel as the client.

use crate::data::Folder;
use crate::lab::{Lab, Wire};

/// How each of three requests was served.
fn fetch(lab: &Lab, folder: &Folder, host: &str) -> Vec<String> {
    let script = folder.file("fast_open.py");
    std::fs::write(&script, include_str!("fast_open.py")).expect("a file");
    let report = lab.client.must(&format!("timeout 60 python3 {} {host} 80 3", script.display()));
    report.lines().map(str::to_owned).collect()
}

#[test]
fn a_linux_client_with_a_cookie_sends_its_request_with_the_syn() {
    let folder = Folder::new();
    let config = folder.file("fast-open.toml");
    std::fs::write(&config, "[tcp]\nfast-open = 8\n").expect("a file");
    let lab = Lab::start(Wire::Tap, 1500, &["--config", &config.display().to_string()]);
    lab.client.must("sysctl -qw net.ipv4.tcp_fastopen=1");
    for host in [lab.host4(), lab.host6()] {
        assert_eq!(fetch(&lab, &folder, host), ["ordinary", "early", "early"], "{host}");
    }
    lab.stop();
}

#[test]
fn a_linux_client_is_served_the_ordinary_way_where_fast_open_is_off() {
    let folder = Folder::new();
    let lab = Lab::start(Wire::Tap, 1500, &[]);
    lab.client.must("sysctl -qw net.ipv4.tcp_fastopen=1");
    assert_eq!(fetch(&lab, &folder, lab.host4()), ["ordinary"; 3]);
    lab.stop();
}
