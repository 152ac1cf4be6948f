//! One case: two namespaces, a cable, a transfer between kernels, and tcpdump at one end.

use super::cases::{Case, Wire};
use super::relay::{Counts, Relay};
use crate::lab::Namespace;
use linerate_lab::explain::truth::view::{Direction, End};
use linerate_lab::scenario::file::Side;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Map, Value, json};
use std::io::BufReader;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

const PORT: u16 = 5_001;
/// Until frames that passed stand in the capture.
const SETTLE: Duration = Duration::from_millis(50);

/// What a case gave.
pub struct Ran {
    /// The capture, as a file.
    pub capture: Vec<u8>,
    /// What the sender's socket counted.
    pub sender: Value,
    /// What the receiver saw.
    pub receiver: Value,
    /// What the relay did with data; `None` on a veth pair.
    pub path: Option<Counts>,
}

/// A program that is ended with the value.
struct Program(Child);

impl Program {
    fn start(mut command: Command) -> Program {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Program(command.spawn().expect("the program starts"))
    }

    fn output_line(&mut self) -> String {
        let stdout = self.0.stdout.as_mut().expect("a pipe");
        read_line(&mut BufReader::new(stdout))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A line of a program that prints one at a time.
fn read_line(reader: &mut impl std::io::BufRead) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).expect("text");
    line
}

fn address(side: Side, ip: u8) -> String {
    let host = if side == Side::Client { 1 } else { 2 };
    if ip == 6 { format!("fd00:78::{host}") } else { format!("10.78.0.{host}") }
}

/// Says that it is over, also where a transfer failed.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `case`; its files are in `folder`.
pub fn run(case: &Case, folder: &Path) -> Ran {
    let sides = [Namespace::new(), Namespace::new()];
    let flag = AtomicBool::new(false);
    thread::scope(|scope| {
        let (sides, flag) = (&sides, &flag);
        let over = Over(flag);
        let relay = (case.wire == Wire::Relay).then(|| {
            let (ready, wait) = mpsc::channel();
            let relay = scope.spawn(move || {
                let tables = match case.from {
                    Side::Client => [&case.forward, &case.back],
                    Side::Server => [&case.back, &case.forward],
                };
                let relay = Relay::new(sides, case.mtu, tables);
                ready.send(()).expect("somebody waits");
                relay.run(flag)
            });
            wait.recv().expect("the relay starts");
            relay
        });
        configure(case, sides);
        let (capture, sender, receiver) = transfer(case, sides, folder);
        drop(over);
        let from = if case.from == Side::Client { 0 } else { 1 };
        let path = relay.map(|relay| relay.join().expect("the relay")[from]);
        Ran { capture, sender, receiver, path }
    })
}

fn configure(case: &Case, sides: &[Namespace; 2]) {
    if case.wire == Wire::Veth {
        let (mtu, other) = (case.mtu, sides[1].name());
        sides[0]
            .must(&format!("ip link add net0 mtu {mtu} type veth peer name net0 mtu {mtu} netns {other}"));
    }
    for (side, namespace) in [Side::Client, Side::Server].into_iter().zip(sides) {
        let own = address(side, case.ip);
        let (length, more) = if case.ip == 6 { (64, "nodad") } else { (24, "") };
        for setting in &case.sysctl {
            namespace.must(&format!("sysctl -qw {setting}"));
        }
        namespace.must(&format!(
            "sysctl -qw net.ipv4.tcp_no_metrics_save=1; ip addr add {own}/{length} dev net0 {more}; ip link set net0 up"
        ));
    }
    // Neighbours are known, so that no packet of theirs is lost.
    let mac = |namespace: &Namespace| namespace.must("cat /sys/class/net/net0/address").trim().to_owned();
    for (own, other, side) in [(0, 1, Side::Server), (1, 0, Side::Client)] {
        let mac = mac(&sides[other]);
        let address = address(side, case.ip);
        sides[own].must(&format!("ip neigh replace {address} lladdr {mac} dev net0 nud permanent"));
    }
}

/// What an end is told: its part of the case, and what follows from the rest.
fn plan(case: &Case, side: Side) -> String {
    let sends = side == case.from;
    let table = if sends { &case.sender } else { &case.receiver };
    let own = serde_json::to_value(table).expect("a table is JSON");
    let mut plan: Map<String, Value> = own.as_object().cloned().unwrap_or_default();
    let more = json!({
        "opens": side == Side::Client,
        "sends": sends,
        "server": address(Side::Server, case.ip),
        "port": PORT,
        "seconds": case.seconds,
    });
    plan.extend(more.as_object().cloned().unwrap_or_default());
    Value::Object(plan).to_string()
}

fn transfer(case: &Case, sides: &[Namespace; 2], folder: &Path) -> (Vec<u8>, Value, Value) {
    let script = folder.join("ends.py");
    let end = |side: Side| {
        let mut command = sides[side as usize].command("python3");
        command.arg(&script).arg(plan(case, side));
        Program::start(command)
    };
    let mut server = end(Side::Server);
    let ready = server.output_line();
    assert!(ready.starts_with("ready"), "{}: the server said {ready:?}", case.name);
    let file = folder.join("capture.pcap");
    let dump = dump(case, sides, &file);
    let client = end(Side::Client);
    let report = |program: &mut Program| -> Value {
        let line = program.output_line();
        serde_json::from_str(&line).unwrap_or_else(|error| {
            let mut said = String::new();
            drop(program.0.stdin.take());
            if let Some(stderr) = program.0.stderr.as_mut() {
                let _ = std::io::Read::read_to_string(stderr, &mut said);
            }
            panic!("{}: {error}: {line:?} {said}", case.name)
        })
    };
    let (mut sends, mut receives) = match case.from {
        Side::Client => (client, server),
        Side::Server => (server, client),
    };
    let sender = report(&mut sends);
    thread::sleep(SETTLE);
    end_capture(dump);
    // The sender resets the connection, and its receiver is through.
    drop(sends.0.stdin.take());
    let receiver = report(&mut receives);
    (std::fs::read(&file).expect("the capture"), sender, receiver)
}

/// Starts tcpdump; it captures when this returns.
fn dump(case: &Case, sides: &[Namespace; 2], file: &Path) -> Program {
    let at = if case.view.end == End::Sender { case.from } else { case.from.other() };
    let data_from = address(case.from, case.ip);
    let filter = match case.view.direction {
        Direction::Both => format!("tcp port {PORT}"),
        Direction::Data => format!("tcp port {PORT} and src host {data_from}"),
        Direction::Acks => format!("tcp port {PORT} and dst host {data_from}"),
    };
    let mut command = sides[at as usize].command("tcpdump");
    command.args([
        "-i",
        "net0",
        "-n",
        "-B",
        "16384",
        "--immediate-mode",
        "--time-stamp-precision=nano",
        "-Z",
        "root",
    ]);
    command.args(["-s", &case.view.snap.unwrap_or(0).to_string(), "-w"]).arg(file).arg(filter);
    let mut program = Program::start(command);
    let mut said = BufReader::new(program.0.stderr.take().expect("a pipe"));
    let mut line = read_line(&mut said);
    while !line.is_empty() && !line.contains("listening on") {
        line = read_line(&mut said);
    }
    assert!(!line.is_empty(), "tcpdump did not start");
    // What it says at its end must not block it.
    thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
    program
}

fn end_capture(mut dump: Program) {
    // `ip netns exec` has become tcpdump: the process is the same.
    let pid = Pid::from_child(&dump.0);
    kill_process(pid, Signal::INT).expect("tcpdump runs");
    let _ = dump.0.wait();
}
