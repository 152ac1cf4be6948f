//! `linerate iperf3 -c` against the real iperf3 server and against ours, over our stack and the host's sockets.

use crate::lab::{Lab, Namespace, Wire, text};
use serde_json::Value;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const LINERATE: &str = env!("CARGO_BIN_EXE_linerate");

/// A real server in a namespace, and where our client runs.
struct Bench {
    server_side: Namespace,
    client_side: Option<Namespace>,
    host: &'static str,
    device: &'static str,
    server: Option<Child>,
}

impl Bench {
    fn new(wire: Wire, options: &str) -> Bench {
        let server_side = Namespace::new();
        let (mut client_side, mut host, mut device) = (None, "192.168.1.1", "tap:lrtap0");
        match wire {
            Wire::Kernel => (host, device) = ("127.0.0.1", "kernel"),
            Wire::Packet => {
                let other = Namespace::new();
                let peer = other.name();
                server_side.must(&format!("ip link add veth0 type veth peer name veth1 netns {peer}"));
                server_side.must("ip addr add 192.168.1.1/24 dev veth0; ip link set veth0 up");
                other.must("ip link set veth1 up");
                device = "packet:veth1";
                client_side = Some(other);
            }
            _ => {}
        }
        let mut bench = Bench { server_side, client_side, host, device, server: None };
        bench.serve(options);
        bench
    }

    fn serve(&mut self, options: &str) {
        let mut command = self.server_side.command("iperf3");
        command.arg("-s").args(options.split_whitespace());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.server = Some(command.spawn().expect("iperf3 starts"));
        let deadline = Instant::now() + Duration::from_secs(10);
        while !self.server_side.must("ss -ltn").contains(":5201") {
            assert!(Instant::now() < deadline, "iperf3 does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn command(&self, args: &str) -> Command {
        let side = self.client_side.as_ref().unwrap_or(&self.server_side);
        let mut command = side.command("timeout");
        command.args(["60", LINERATE, "iperf3", "-c", self.host, "--device", self.device]);
        command.args(args.split_whitespace()).stdin(Stdio::null());
        command
    }

    fn output(&self, args: &str) -> Output {
        self.command(args).output().expect("the client starts")
    }

    /// The report of a test that comes to its end.
    fn run(&self, args: &str) -> Value {
        report(&self.output(&format!("-J {args}")), args)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

fn report(output: &Output, args: &str) -> Value {
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{args}: {error}\n{}", text(output)));
    assert!(output.status.success() && report["error"].is_null(), "{args}: {}", text(output));
    report
}

fn number(report: &Value, path: &str) -> f64 {
    report.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {path} in {report:#}"))
}

/// `to_the_end`: the server reads what was sent before it counts. iperf3 does not: of what waits in its sockets when the client
/// says that the test is over it knows nothing.
fn modes(to_the_end: bool, run: impl Fn(&str) -> Value) {
    for args in ["-t 1", "-t 1 -R", "-t 1 -P 4", "-t 1 -R -P 4", "-t 1 -O 1", "-t 1 -M 536 -w 64K -N"] {
        let report = run(args);
        let (sent, received) =
            (number(&report, "/end/sum_sent/bytes"), number(&report, "/end/sum_received/bytes"));
        assert!(received > 1e6, "{args}: {received} bytes only");
        assert!(received <= sent * 1.001 || args.contains("-O"), "{args}: {received} of {sent}");
        let streams = if args.contains("-P 4") { 4 } else { 1 };
        assert_eq!(report["end"]["streams"].as_array().map(Vec::len), Some(streams), "{report:#}");
        let intervals = report["intervals"].as_array().expect("intervals");
        assert_eq!(intervals.len(), if args.contains("-O") { 2 } else { 1 }, "{report:#}");
    }
    let report = run("-t 1 --bidir");
    assert!(number(&report, "/end/sum_received/bytes") > 1e6, "{report:#}");
    assert!(number(&report, "/end/sum_received_bidir_reverse/bytes") > 1e6, "{report:#}");
    // What is announced arrives, to the byte.
    for args in ["-n 20M", "-n 20M -P 3", "-k 160"] {
        let report = run(args);
        assert_eq!(number(&report, "/end/sum_sent/bytes"), 20_971_520.0, "{args}");
        let received = number(&report, "/end/sum_received/bytes");
        let all =
            if to_the_end { received == 20_971_520.0 } else { (8e6..=20_971_520.0).contains(&received) };
        assert!(all, "{args}: {received}");
    }
    let report = run("-n 20M -R");
    assert!(number(&report, "/end/sum_received/bytes") >= 20_971_520.0, "{report:#}");
}

#[test]
fn the_client_in_all_modes_of_tcp_against_iperf3() {
    for wire in [Wire::Tap, Wire::Packet, Wire::Kernel] {
        let bench = Bench::new(wire, "");
        modes(false, |args| bench.run(args));
    }
}

#[test]
fn the_client_in_all_modes_of_tcp_against_our_server() {
    for wire in [Wire::Tap, Wire::Kernel] {
        let lab = Lab::start(wire, 1500, &[]);
        modes(true, |args| {
            let line = format!("timeout 60 {LINERATE} iperf3 -c {} -J {args}", lab.host4());
            report(&lab.client.sh(&line), args)
        });
        lab.stop();
    }
}

#[test]
fn datagrams_of_the_client() {
    for wire in [Wire::Tap, Wire::Packet, Wire::Kernel] {
        let bench = Bench::new(wire, "");
        for args in ["-u -b 50M -l 1448 -t 1", "-u -b 50M -l 1448 -t 1 -R", "-u -b 20M -t 1 -P 2"] {
            // The best of three: who gets no processor time for a while loses datagrams.
            let share = |_| {
                let report = bench.run(args);
                let packets = number(&report, "/end/sum/packets");
                assert!(packets > 30.0, "{wire:?} {args}: {packets} packets");
                number(&report, "/end/sum/lost_packets") / packets
            };
            assert!((0..3).map(share).any(|lost| lost <= 0.01), "{wire:?} {args}: lost three times");
        }
    }
}

#[test]
fn what_goes_wrong_with_a_server_is_named() {
    let mut bench = Bench::new(Wire::Kernel, "");
    let fails = |bench: &Bench, args: &str, wanted: &str| {
        let output = bench.output(args);
        let said = text(&output);
        assert!(output.status.code() == Some(1) && said.contains(wanted), "{args}: {said}");
    };
    // Busy: another client is at it.
    let first = bench.command("-t 30").stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let first = first.expect("the client starts");
    std::thread::sleep(Duration::from_millis(700));
    fails(&bench, "-t 1", "busy");
    // Killed in the middle: the first one hears of it.
    drop(bench.server.take().map(|mut server| (server.kill(), server.wait())));
    let output = first.wait_with_output().expect("it ends");
    let said = text(&output);
    let wanted = ["control connection to the server was", "a stream to the server was"];
    assert!(output.status.code() == Some(1) && wanted.iter().any(|text| said.contains(text)), "{said}");
    // Nobody listens any more.
    fails(&bench, "-t 1", "refused");
    let json = bench.output("-t 1 -J");
    let json: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert!(json["error"].as_str().is_some_and(|error| error.contains("refused")), "{json:#}");
    // It wants a password.
    let folder = crate::data::Folder::new();
    let (key, users) = (folder.file("key.pem"), folder.file("users.csv"));
    bench.server_side.must(&format!(
        "openssl genrsa -traditional -out {} 2048 2>/dev/null && printf 'anna,0000\\n' > {}",
        key.display(),
        users.display()
    ));
    bench.serve(&format!(
        "--rsa-private-key-path {} --authorized-users-path {}",
        key.display(),
        users.display()
    ));
    fails(&bench, "-t 1", "wants a user and a password");
    // Names and families.
    for (args, wanted) in [("-6", "no IPv6 address"), ("-l 2M", "--length"), ("-t 0", "--time")] {
        let said = text(&bench.output(args));
        assert!(said.contains(wanted), "{args}: {said}");
    }
}

#[test]
fn a_signal_ends_a_test_with_what_was_measured() {
    let bench = Bench::new(Wire::Tap, "");
    let child = bench.command("-t 30").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.expect("the client starts");
    std::thread::sleep(Duration::from_millis(1_500));
    // `timeout` hands the signal on.
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill").success());
    let output = child.wait_with_output().expect("it ends");
    let said = text(&output);
    assert!(said.contains("sender") && said.contains("interrupted"), "{said}");
    // The server serves the next one.
    bench.run("-n 1M");
}
