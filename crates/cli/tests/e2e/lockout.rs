//! Crowds that take all connections there are, with real clients: newcomers are served on their first try. The figures that
//! are printed are times of the machine and not asserted; `tests/lockout` asserts them in virtual time.

use crate::data::Folder;
use crate::lab::{Lab, Wire};

/// A hundred that stay idle, and twenty that ask.
const FEW: &str = r"
import socket, time
crowd = []
for _ in range(100):
    crowd.append(socket.create_connection(('127.0.0.1', 9090), timeout=5))
    time.sleep(0.01)
for _ in range(20):
    peer = socket.create_connection(('127.0.0.1', 9090), timeout=5)
    peer.sendall(b'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
    print(peer.recv(64).split(b' ')[1].decode(), end=' ')
";

/// Attacks of so many connections to HTTP, and a few of them to the others.
fn check(wire: Wire, memory: &str, count: usize) {
    let folder = Folder::new();
    let settings = folder.file("few.toml");
    std::fs::write(&settings, "[limits]\nconnections = 4096\n").expect("a file");
    let lab = Lab::start(wire, 1500, &["--memory", memory, "--config", &settings.display().to_string()]);
    // Any of these addresses may be a client's: those of the loopback network are there anyway.
    lab.client.must("ip route add local 198.18.0.0/15 dev lo");
    let (one, many) = match wire {
        Wire::Kernel => ("127.0.0.9", "127.1.0.0/16"),
        _ => ("198.18.0.9", "198.19.0.0/16"),
    };
    let script = folder.file("crowd.py");
    std::fs::write(&script, include_str!("crowd.py")).expect("a file");
    let http = lab.http().rsplit(':').next().and_then(|port| port.parse::<u16>().ok()).unwrap_or(80);
    let ftp = lab.ftp_port();
    let few = count / 4;
    let report = lab.client.must(&format!(
        "ulimit -n 16000; timeout 600 python3 {} {} {http} {ftp} 5201 idle:{one}:{count}:{http} \
         idle:{many}:{count}:{http} idle:{many}:{few}:{ftp} idle:{many}:{few}:5201 head:{one}:{few}:{http} \
         head:{many}:{few}:{http} body:{one}:{few}:{http} body:{many}:{few}:{http}",
        script.display(),
        lab.host4(),
    ));
    println!("{wire:?}, {memory}:\n{report}");
    assert!(report.ends_with("all served\n"), "{report}");
    let log = lab.log();
    let warnings = log.lines().filter(|line| line.contains("gave way to newcomers")).count();
    assert!((1..=200).contains(&warnings), "a warning now and then: {log}");
    assert!(log.contains(&format!("by {one}")), "it names who holds most: {log}");
    lab.stop();
}

#[test]
fn newcomers_are_served_while_a_crowd_holds_what_it_can_on_a_tap() {
    check(Wire::Tap, "64MiB", 10_000);
}

#[test]
fn newcomers_are_served_while_a_crowd_holds_what_it_can_on_kernel_sockets() {
    check(Wire::Kernel, "16MiB", 10_000);
}

#[test]
fn newcomers_are_served_with_few_descriptors_while_those_that_gave_way_linger() {
    // For its namespace; the server of this test is one of its own.
    let lab = Lab::start(Wire::Kernel, 1500, &[]);
    let folder = Folder::new();
    std::fs::write(folder.file("index.html"), "here").expect("a file");
    let script = folder.file("few.py");
    std::fs::write(&script, FEW).expect("a file");
    let report = lab.client.must(&format!(
        "(ulimit -n 64; exec timeout -s TERM 30 {} serve --device kernel --queues 2 --http-port 9090 --ftp-port 9091 \
         --iperf3-port 9092 {}) >{log} 2>&1 & \
         for wait in $(seq 100); do grep -q Ready {log} && break; sleep 0.1; done; timeout 20 python3 {}; kill $!; wait $!",
        env!("CARGO_BIN_EXE_linerate"),
        folder.path(),
        script.display(),
        log = folder.file("log").display(),
    ));
    assert_eq!(report, "200 ".repeat(20));
    lab.stop();
}

/// The long form: `cargo test --release -p linerate-cli --test e2e -- --ignored --nocapture fifty_thousand`.
#[test]
#[ignore = "ten minutes, and 100,000 sockets of the kernel"]
fn newcomers_are_served_while_fifty_thousand_hold_what_they_can() {
    check(Wire::Tap, "64MiB", 50_000);
    check(Wire::Kernel, "64MiB", 50_000);
}
