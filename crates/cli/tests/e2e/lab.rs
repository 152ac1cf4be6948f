//! A laboratory: namespaces, a server in one of them, clients in the other.

use serde_json::Value;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, mpsc};
use std::time::{Duration, Instant};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A network namespace, removed with the value.
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// A new namespace with its loopback up.
    pub fn new() -> Self {
        let name = format!("linerate-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        must(Command::new("ip").args(["netns", "add", &name]));
        let namespace = Namespace { name };
        namespace.must("ip link set lo up");
        // The defaults of the build machine would decide figures otherwise, and bbr paces by its own clock.
        namespace.must("sysctl -qw net.ipv4.tcp_congestion_control=reno");
        namespace.must("sysctl -qw net.ipv4.ip_local_port_range='1024 65000'");
        namespace
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A command inside the namespace.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]);
        command
    }

    /// Runs a shell line inside the namespace.
    pub fn sh(&self, line: &str) -> Output {
        let mut command = self.command("sh");
        command.args(["-c", line]).stdin(Stdio::null());
        command.output().expect("sh starts")
    }

    /// Runs a shell line that must succeed; returns what it printed.
    pub fn must(&self, line: &str) -> String {
        let output = self.sh(line);
        let text = text(&output);
        assert!(output.status.success(), "{line}\nended with {}:\n{text}", output.status);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.name]).output();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Makes one end of a veth pair keep the order of a flow, as a cable does: without receive packet steering, what two CPUs
/// send of one connection (a paced sender does: timer on one, acknowledgement on the other) waits in two queues. A kernel
/// without steering has no such file.
fn keep_order(namespace: &Namespace, device: &str) {
    namespace.sh(&format!("echo 3 > /sys/class/net/{device}/queues/rx-0/rps_cpus"));
}

fn must(command: &mut Command) {
    let output = command.output().expect("the command starts");
    assert!(output.status.success(), "{command:?}: {}", text(&output));
}

/// All that a program printed.
pub fn text(output: &Output) -> String {
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    let _ = write!(text, "{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// What lies between client and server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wire {
    /// A TAP device that the server makes; the client is the kernel on its other side.
    Tap,
    /// A veth pair between two namespaces; the server uses a packet socket.
    Packet,
    /// A veth pair with so many queues; the server uses AF_XDP.
    Xdp(u16),
    /// The kernel's own sockets over the loopback interface.
    Kernel,
    /// The network interface in simulation, with a TAP device as its cable.
    Rtl,
}

/// A running server and the namespace where its clients run.
pub struct Lab {
    /// Where clients run.
    pub client: Namespace,
    server_side: Option<Namespace>,
    wire: Wire,
    server: Option<Server>,
}

struct Server {
    child: Child,
    log: PathBuf,
    // Tests share a laboratory between threads.
    lines: Mutex<mpsc::Receiver<String>>,
}

impl Lab {
    /// Starts a server on `wire` with further arguments and waits until it is ready.
    pub fn start(wire: Wire, mtu: u32, args: &[&str]) -> Lab {
        Lab::start_beside(Namespace::new(), wire, mtu, args)
    }

    /// The same, with clients in this namespace.
    pub fn start_beside(client: Namespace, wire: Wire, mtu: u32, args: &[&str]) -> Lab {
        let mut server_side = None;
        let mut all = vec!["serve".to_owned()];
        match wire {
            Wire::Tap => {
                all.extend(["--device", "tap:lrtap0", "--mtu", &mtu.to_string()].map(str::to_owned));
            }
            Wire::Rtl => {
                all.extend(["--device", "rtl:lrtap0", "--mtu", &mtu.to_string()].map(str::to_owned));
            }
            Wire::Packet | Wire::Xdp(_) => {
                let queues = if let Wire::Xdp(count) = wire { count } else { 1 };
                let queues = format!("numrxqueues {queues} numtxqueues {queues}");
                let other = Namespace::new();
                let peer = other.name();
                client.must(&format!(
                    "ip link add veth0 mtu {mtu} {queues} type veth peer name veth1 mtu {mtu} {queues} netns {peer}"
                ));
                client.must(
                    "ip addr add 192.168.1.1/24 dev veth0; ip -6 addr add fd00:6c72::1/64 dev veth0 nodad",
                );
                client.must("ip link set veth0 up");
                other.must("ip link set veth1 up");
                keep_order(&client, "veth0");
                keep_order(&other, "veth1");
                all.extend(
                    ["--device", if wire == Wire::Packet { "packet:veth1" } else { "xdp:veth1" }]
                        .map(str::to_owned),
                );
                server_side = Some(other);
            }
            Wire::Kernel => {
                all.extend(
                    ["--device", "kernel", "--address", "127.0.0.1", "--address", "::1"].map(str::to_owned),
                );
            }
        }
        all.extend(args.iter().map(|arg| (*arg).to_owned()));
        let server = Server::start(server_side.as_ref().unwrap_or(&client), &all);
        let mut lab = Lab { client, server_side, wire, server: Some(server) };
        lab.wait_ready(&all);
        lab
    }

    fn wait_ready(&mut self, args: &[String]) {
        let deadline = Instant::now() + Duration::from_secs(15);
        while let Some(line) = self.next_line(deadline) {
            if line.starts_with("Ready") || line.starts_with("{\"event\":\"ready\"") {
                return;
            }
        }
        panic!("linerate {args:?} did not become ready; its log:\n{}", self.log());
    }

    /// The next line that the server prints on standard output before `deadline`.
    pub fn next_line(&self, deadline: Instant) -> Option<String> {
        let server = self.server.as_ref().expect("the server runs");
        lock(&server.lines).recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()
    }

    /// What the server logged so far.
    pub fn log(&self) -> String {
        let server = self.server.as_ref().expect("the server runs");
        std::fs::read_to_string(&server.log).unwrap_or_default()
    }

    /// Process id of the server.
    pub fn pid(&self) -> u32 {
        self.server.as_ref().map(|server| server.child.id()).expect("the server runs")
    }

    /// Sends the server a signal, by its process id.
    pub fn signal(&self, name: &str) {
        must(Command::new("kill").args([&format!("-{name}"), &self.pid().to_string()]));
    }

    /// Resident memory of the server in KiB.
    pub fn resident_kib(&self) -> u64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("the server runs");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("VmRSS");
        line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number")
    }

    /// The report of a server with `--status 9180`.
    pub fn status(&self) -> Value {
        let report = self.on_server("curl -sSf http://127.0.0.1:9180/status.json?limit=1000");
        serde_json::from_str(&report).unwrap_or_else(|error| panic!("{error}: {report}"))
    }

    /// Packet and socket memory in use once all is quiet, as a server with `--status 9180` tells it.
    pub fn idle_memory_mib(&self) -> f64 {
        let mut least = f64::INFINITY;
        for _ in 0..10 {
            let used = self.status()["memory"]["used"].as_f64().expect("a number");
            least = least.min(used / f64::from(1 << 20));
            if least < 0.01 {
                break;
            }
            std::thread::sleep(Duration::from_millis(500));
        }
        least
    }

    /// Host part of URLs, IPv4.
    pub fn host4(&self) -> &'static str {
        if self.wire == Wire::Kernel { "127.0.0.1" } else { "192.168.1.4" }
    }

    /// The server's IPv6 address, without brackets.
    pub fn host6(&self) -> &'static str {
        if self.wire == Wire::Kernel { "::1" } else { "fd00:6c72::4" }
    }

    /// `http://address:port` for IPv4.
    pub fn http(&self) -> String {
        format!("http://{}:{}", self.host4(), if self.wire == Wire::Kernel { 8080 } else { 80 })
    }

    /// `http://[address]:port` for IPv6.
    pub fn http6(&self) -> String {
        format!("http://[{}]:{}", self.host6(), if self.wire == Wire::Kernel { 8080 } else { 80 })
    }

    /// The FTP port.
    pub fn ftp_port(&self) -> u16 {
        if self.wire == Wire::Kernel { 2121 } else { 21 }
    }

    /// `ftp://address:port` for IPv4.
    pub fn ftp(&self) -> String {
        format!("ftp://{}:{}", self.host4(), self.ftp_port())
    }

    /// `ftp://[address]:port` for IPv6.
    pub fn ftp6(&self) -> String {
        format!("ftp://[{}]:{}", self.host6(), self.ftp_port())
    }

    /// Runs a shell line where the server runs; it must succeed; returns what it printed.
    pub fn on_server(&self, line: &str) -> String {
        self.server_side.as_ref().unwrap_or(&self.client).must(line)
    }

    /// Ends the server with SIGTERM; it must exit with 0 in time.
    pub fn stop(self) {
        self.signal("TERM");
        self.stop_after_signal();
    }

    /// Waits for a server that was told to end; it must exit with 0 in time and leave nothing behind.
    pub fn stop_after_signal(mut self) {
        let mut server = self.server.take().expect("the server runs");
        let deadline = Instant::now() + Duration::from_secs(15);
        loop {
            if let Some(status) = server.child.try_wait().expect("wait") {
                let log = std::fs::read_to_string(&server.log).unwrap_or_default();
                assert!(status.success(), "the server ended with {status}:\n{log}");
                assert!(!log.contains("panicked"), "{log}");
                break;
            }
            assert!(Instant::now() < deadline, "the server does not drain");
            std::thread::sleep(Duration::from_millis(20));
        }
        let side = self.server_side.as_ref().unwrap_or(&self.client);
        let links = side.must("ip -o link");
        assert!(!links.contains("lrtap0"), "the TAP device is still there:\n{links}");
        assert!(!links.contains(" xdp"), "the XDP program is still there:\n{links}");
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(server) = &self.server
        {
            eprintln!("server log:\n{}", std::fs::read_to_string(&server.log).unwrap_or_default());
        }
    }
}

impl Server {
    fn start(side: &Namespace, args: &[String]) -> Server {
        let log = std::env::temp_dir().join(format!(
            "linerate-e2e-{}-{}.log",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        ));
        let mut child = side
            .command(env!("CARGO_BIN_EXE_linerate"))
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&log).expect("a log file"))
            .spawn()
            .expect("the server starts");
        let stdout = child.stdout.take().expect("a pipe");
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Server { child, log, lines: Mutex::new(lines) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.log);
    }
}
