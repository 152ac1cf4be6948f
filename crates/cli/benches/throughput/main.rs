//! Throughput and processor cost of the iperf3 server, against iperf3's own server, in one run.
//!
//! `cargo bench -p linerate-cli --bench throughput` as root; needs iproute2 and iperf3. Every setting has its turn in
//! each round, so that a change of the machine's speed meets all of them; medians of the rounds are printed.
//! With `-- --svg FILE TITLE` they are drawn, too.

mod chart;

#[path = "../../tests/e2e/lab.rs"]
#[allow(dead_code, reason = "the end-to-end tests use all of it")]
mod lab;

use chart::Bars;
use lab::{Lab, Namespace, Wire};
use serde_json::Value;
use std::process::{Child, Stdio};
use std::time::Duration;

const ROUNDS: usize = 5;
const SECONDS: u32 = 3;

/// Who serves.
enum Server {
    Ours(Box<Lab>),
    Original { client: Namespace, _server: Namespace, process: Child },
}

struct Setting {
    name: &'static str,
    server: Server,
    /// Gb/s and CPU seconds of the server process per GB, forward and reverse.
    results: [Vec<(f64, f64)>; 2],
}

fn main() {
    let plain = "ethtool -K IF tx off tso off gso off gro off 2>/dev/null || true";
    let settings = [
        ("linerate, TAP, offload all", ours(Wire::Tap, "all", "")),
        ("linerate, TAP, offload none", ours(Wire::Tap, "none", "")),
        ("linerate, packet socket on veth, offload all", ours(Wire::Packet, "all", "")),
        ("iperf3 3.12, kernel on veth, offloads on", original("")),
        ("iperf3 3.12, kernel on veth, offloads off", original(plain)),
    ];
    let mut settings: Vec<Setting> = settings
        .into_iter()
        .map(|(name, server)| Setting { name, server, results: [Vec::new(), Vec::new()] })
        .collect();
    for _ in 0..ROUNDS {
        for setting in &mut settings {
            for (direction, flag) in ["", "-R"].iter().enumerate() {
                let result = measure(&setting.server, flag);
                setting.results[direction].push(result);
            }
        }
    }
    println!("MTU 1500, {ROUNDS} rounds of {SECONDS} s, medians; CPU of the server process");
    println!("{:46} {:>9} {:>9} {:>11} {:>11}", "", "in Gb/s", "out Gb/s", "in CPUs/GB", "out CPUs/GB");
    let mut bars = Vec::new();
    for setting in settings {
        let [forward, reverse] = setting.results.map(median);
        bars.push(Bars { name: setting.name, rates: [forward.0, reverse.0] });
        println!(
            "{:46} {:9.2} {:9.2} {:11.3} {:11.3}",
            setting.name, forward.0, reverse.0, forward.1, reverse.1
        );
        match setting.server {
            Server::Ours(lab) => lab.stop(),
            Server::Original { mut process, .. } => {
                process.kill().and_then(|()| process.wait()).expect("iperf3 ends");
            }
        }
    }
    let args: Vec<String> = std::env::args().skip_while(|arg| arg != "--svg").skip(1).collect();
    if let [path, title, ..] = args.as_slice() {
        chart::draw(path, title, &bars).expect("the chart can be written");
    }
}

fn ours(wire: Wire, offload: &str, _: &str) -> Server {
    Server::Ours(Box::new(Lab::start(wire, 1500, &["--offload", offload])))
}

fn original(prepare: &str) -> Server {
    let (client, server) = (Namespace::new(), Namespace::new());
    client.must(&format!("ip link add veth0 type veth peer name veth1 netns {}", server.name()));
    client.must("ip addr add 192.168.1.1/24 dev veth0; ip link set veth0 up");
    server.must("ip addr add 192.168.1.4/24 dev veth1; ip link set veth1 up");
    client.must(&prepare.replace("IF", "veth0"));
    server.must(&prepare.replace("IF", "veth1"));
    let process = server.command("iperf3").arg("-s").stdout(Stdio::null()).spawn().expect("iperf3 starts");
    std::thread::sleep(Duration::from_millis(500));
    Server::Original { client, _server: server, process }
}

fn measure(server: &Server, flag: &str) -> (f64, f64) {
    let (client, pid) = match server {
        Server::Ours(lab) => (&lab.client, lab.pid()),
        Server::Original { client, process, .. } => (client, process.id()),
    };
    let before = cpu_seconds(pid);
    let text = client.must(&format!("iperf3 -c 192.168.1.4 -t {SECONDS} -J {flag}"));
    let used = cpu_seconds(pid) - before;
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let received = &report["end"]["sum_received"];
    let bytes = received["bytes"].as_f64().expect("a number");
    (received["bits_per_second"].as_f64().expect("a number") / 1e9, used / (bytes / 1e9))
}

/// User and system time of a process, in seconds, at 100 ticks a second (as Linux reports to programs).
fn cpu_seconds(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("the server runs");
    let fields = stat.rsplit(')').next().unwrap_or("");
    let ticks: u64 = fields.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<u64>().ok()).sum();
    ticks as f64 / 100.0
}

fn median(mut values: Vec<(f64, f64)>) -> (f64, f64) {
    let mut pick = |key: fn(&(f64, f64)) -> f64| {
        values.sort_by(|a, b| key(a).total_cmp(&key(b)));
        key(&values[values.len() / 2])
    };
    (pick(|v| v.0), pick(|v| v.1))
}
