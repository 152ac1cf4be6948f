//! What the status page costs the server: its processor time with and without a browser that shows it.
//!
//! `cargo bench -p linerate-cli --bench page [-- --quick]` as root; needs iproute2, iperf3, python3, Chromium and control
//! groups of version 2. The server has a TAP device and a group of its own; the browser is in none. Rounds with a browser
//! and without alternate. It ends with 1 where a browser costs a hundredth of a core or more at ten connections.

#[path = "../tests/e2e/browser.rs"]
#[allow(dead_code, reason = "the end-to-end tests use all of it")]
mod browser;
#[path = "../tests/e2e/data.rs"]
#[allow(dead_code, reason = "the end-to-end tests use all of it")]
mod data;
#[path = "../tests/e2e/lab.rs"]
#[allow(dead_code, reason = "the end-to-end tests use all of it")]
mod lab;

use browser::Browser;
use data::Folder;
use lab::{Lab, Wire};
use linerate_lab::measure::group::Group;
use linerate_lab::measure::provenance::Provenance;
use linerate_lab::measure::rounds::alternate;
use linerate_lab::measure::statistics::{Spread, spread};
use std::convert::Infallible;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const PAGE: &str = "http://127.0.0.1:9180/";
/// The most that a browser may cost at ten connections, as a share of a core.
const GOAL: f64 = 0.01;

/// Opens connections from many addresses, says so and keeps them until it is ended.
const HOLD: &str = "
import socket, sys, time
held = []
for number in range(int(sys.argv[2])):
    connection = socket.socket()
    connection.setsockopt(socket.IPPROTO_IP, 24, 1)
    connection.bind((f'198.19.{1 + number % 1000 // 250}.{1 + number % 250}', 0))
    connection.connect((sys.argv[1], 80))
    held.append(connection)
print('held', flush=True)
time.sleep(100000)
";

/// Clients while the page is looked at.
struct Clients {
    name: &'static str,
    count: u32,
    is_busy: bool,
}

const CLIENTS: [Clients; 4] = [
    Clients { name: "none", count: 0, is_busy: false },
    Clients { name: "10 idle", count: 10, is_busy: false },
    Clients { name: "10, 45 Mbit/s together", count: 10, is_busy: true },
    Clients { name: "10,000 idle", count: 10_000, is_busy: false },
];

impl Clients {
    fn start(&self, lab: &Lab) -> Option<Child> {
        if self.count == 0 {
            return None;
        }
        let mut command = if self.is_busy {
            // One connection of iperf3 is for control.
            let mut command = lab.client.command("iperf3");
            let streams = (self.count - 1).to_string();
            command.args(["-c", lab.host4(), "-R", "-t", "3600", "-b", "5M", "--forceflush", "-P", &streams]);
            command
        } else {
            let mut command = lab.client.command("sh");
            let line = "ulimit -n 16000; exec python3 -c \"$0\" \"$@\"";
            command.args(["-c", line, HOLD, lab.host4(), &self.count.to_string()]);
            command
        };
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        output.read_line(&mut line).expect("a line");
        // Whatever else it says is taken off its hands.
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        Some(child)
    }
}

/// The share of a core that the server took, once with nobody and once with a browser in each round.
fn shares(group: &Group, browser: &mut Browser, rounds: usize, time: Duration) -> [Spread; 2] {
    let found = alternate(&["about:blank", PAGE], rounds, |_, address| {
        browser.open(address);
        // The page itself is made once and does not count.
        std::thread::sleep(Duration::from_secs(1));
        let (begun, before) = (Instant::now(), group.seconds().expect("a figure"));
        std::thread::sleep(time);
        let share = (group.seconds().expect("a figure") - before) / begun.elapsed().as_secs_f64();
        Ok::<f64, Infallible>(share)
    });
    let found = found.unwrap_or_default();
    [0, 1].map(|at| spread(found[at].iter().copied()).expect("a round"))
}

fn percent(spread: Spread) -> String {
    let Spread { median, least, most } = spread;
    format!("{:.2} ({:.2} to {:.2})", median * 100.0, least * 100.0, most * 100.0)
}

fn main() {
    let is_quick = std::env::args().any(|arg| arg == "--quick");
    let (rounds, time) = if is_quick { (2, Duration::from_secs(3)) } else { (7, Duration::from_secs(10)) };
    let mut is_missed = false;
    println!(
        "| connections | nobody looks, % of a core | a browser looks | for it | answer | report takes |"
    );
    println!("|---|---:|---:|---:|---:|---:|");
    for clients in CLIENTS {
        let folder = Folder::new();
        let settings = folder.file("page.toml");
        std::fs::write(&settings, "[http]\nidle-timeout = \"1h\"\n").expect("a file");
        let group = Group::new().expect("control groups of version 2, and root");
        let lab =
            Lab::start(Wire::Tap, 1500, &["--status", "9180", "--config", &settings.display().to_string()]);
        lab.client.must("ip route add local 198.18.0.0/15 dev lo");
        group.admit(lab.pid()).expect("the server is alive");
        let Some(mut browser) = Browser::start(Some(&lab.client)) else { std::process::exit(2) };
        let held = clients.start(&lab);
        let [nobody, somebody] = shares(&group, &mut browser, rounds, time);
        // An answer is sure to be there.
        browser.open(PAGE);
        browser.wait("document.getElementById('state').textContent.startsWith('Live')");
        browser.rest();
        let json = browser.last_answer("/status.json");
        let report: linerate_cli::status::report::Report = serde_json::from_str(&json).expect("a report");
        assert!(
            report.connections.total >= u64::from(clients.count),
            "{} connections",
            report.connections.total
        );
        let cost = somebody.median - nobody.median;
        let misses = clients.count == 10 && cost >= GOAL;
        is_missed |= misses;
        println!(
            "| {} | {} | {} | {:.2}{} | {:.0} kB | {:.0} us |",
            clients.name,
            percent(nobody),
            percent(somebody),
            cost * 100.0,
            if misses { " **misses**" } else { "" },
            json.len() as f64 / 1e3,
            report.process.report * 1e6
        );
        if let Some(mut held) = held {
            held.kill().and_then(|()| held.wait()).expect("it ends");
        }
        drop(browser);
        lab.stop();
    }
    println!("\n{}; {} s each", Provenance::now(rounds).sentence(), time.as_secs());
    std::process::exit(i32::from(is_missed));
}
