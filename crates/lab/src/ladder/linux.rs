//! The ladder on a Linux device: `linerate serve` on a TAP device in a namespace of its own, with settings that have the same
//! effect as a rung, and an FTP client of the kernel's side.
//!
//! Nothing is predicted here: the model's costs are those of a Cortex-A15. Rungs that no setting stands for are left out and
//! named.

use super::climb::{Climb, Found, Row, printed};
use super::state::Direction;
use crate::measure::place::{self, Place, SERVER, Wire, run};
use crate::measure::rounds::alternate;
use crate::measure::scratch::Scratch;
use crate::measure::statistics::spread;
use crate::progress::Progress;
use crate::schema::Record;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Until then the server is ready.
const READY: Duration = Duration::from_secs(20);
/// Most time of a transfer in seconds.
const TRANSFER_S: u32 = 120;
/// Port of the server's status.
const STATUS: u16 = 9_180;
/// Name and password of the client.
const USER: &str = "ladder:ladder";

/// How it is measured.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The program whose `serve` is run.
    pub program: PathBuf,
    /// How often each rung is run; rungs alternate.
    pub rounds: usize,
    /// Bytes of a transfer.
    pub bytes: u64,
}

/// A rung as settings of the server.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// The rung's name.
    pub name: &'static str,
    /// What stands for it.
    pub title: &'static str,
    /// The form that it is changed from.
    pub from: Option<&'static str>,
    /// Which way the data goes.
    pub direction: Direction,
    /// Lines of `[tcp]`.
    tcp: &'static str,
    /// `--offload`.
    offload: &'static str,
    /// `--mtu`.
    mtu: u16,
    /// Whether the client scales its window.
    scales: bool,
    /// The tuning under which the document prints it.
    published: Option<&'static str>,
}

const SUMS: &str = "tx-checksum,rx-checksum";

/// One form from another.
const fn form(
    name: &'static str,
    title: &'static str,
    from: Option<&'static str>,
    direction: Direction,
    [tcp, offload]: [&'static str; 2],
) -> Form {
    Form { name, title, from, direction, tcp, offload, mtu: 1_500, scales: true, published: None }
}

/// All forms, in their order.
pub fn forms() -> Vec<Form> {
    use Direction::{Receiving, Sending};
    let small = "mss = 512\nsend-buffer = \"8KiB\"";
    let (narrow, wide) = ("send-buffer = \"8KiB\"", "send-buffer = \"64KiB\"");
    let (rx_narrow, rx_wide) = ("receive-buffer = \"8KiB\"", "receive-buffer = \"64KiB\"");
    let rx_rare = "receive-buffer = \"64KiB\"\ndelayed-ack-segments = 10";
    let mut forms = vec![
        form("as-ported", "segments of 512 bytes, 8 KiB buffers", None, Sending, [small, "none"]),
        form("mss-writes", "full segments", Some("as-ported"), Sending, [narrow, "none"]),
        form("buffers-64k", "64 KiB buffers", Some("mss-writes"), Sending, [wide, "none"]),
        form("checksum-offload", "checksums by the device", Some("buffers-64k"), Sending, [wide, SUMS]),
        form("segmentation", "super-segments of 64 KiB", Some("checksum-offload"), Sending, [wide, "all"]),
        form("jumbo", "MTU 9000", Some("checksum-offload"), Sending, [wide, SUMS]),
        form("narrow-window", "buffers grow, the client's window does not scale", None, Sending, ["", "all"]),
        form("window-scaling", "the client's window scales", Some("narrow-window"), Sending, ["", "all"]),
        form("rx-as-ported", "8 KiB buffers", None, Receiving, [rx_narrow, "none"]),
        form("rx-buffers-64k", "64 KiB buffers", Some("rx-as-ported"), Receiving, [rx_wide, "none"]),
        form("rx-ack-every-10", "an ACK every 10", Some("rx-buffers-64k"), Receiving, [rx_rare, "none"]),
        form(
            "rx-checksum-offload",
            "checksums by the device",
            Some("rx-buffers-64k"),
            Receiving,
            [rx_wide, SUMS],
        ),
        form("rx-coalescing", "frames of 64 KiB", Some("rx-checksum-offload"), Receiving, [rx_wide, "all"]),
        form("rx-jumbo", "MTU 9000", Some("rx-checksum-offload"), Receiving, [rx_wide, SUMS]),
    ];
    for form in &mut forms {
        match form.name {
            "jumbo" | "rx-jumbo" => form.mtu = 9_000,
            "narrow-window" => form.scales = false,
            "as-ported" | "rx-as-ported" => form.published = Some("as ported"),
            "buffers-64k" | "rx-buffers-64k" => form.published = Some("64 KiB buffers"),
            _ => {}
        }
    }
    forms
}

/// Rungs without a form, and why.
const LEFT_OUT: [(&str, &str); 6] = [
    (
        "no-yield, driver, owned-payload",
        "the server never gives way after a write, copies nothing, and the driver is the kernel's",
    ),
    ("optimized, busy", "one program is one build"),
    ("rx-small-heap", "the least memory of serve, 4 MiB, holds the buffers of any one connection"),
    ("ack-every-10", "the client is the kernel; receiving, the server's own acknowledgements stand for it"),
    ("pacing-0 to pacing-3", "a TAP device has no interrupts to pace"),
    (
        "far",
        "nothing here delays packets: the window without scaling is tried at the device's own round trip",
    ),
];

/// Runs the forms of these names, all if there are none.
///
/// # Errors
/// No root, a server that does not start, or a transfer that is not whole.
pub fn climb(
    settings: &Settings,
    names: &[String],
    figures: &[Record],
    progress: &mut Progress,
) -> Result<Climb> {
    place::ready(&["curl"])?;
    let wanted = |form: &Form| names.is_empty() || names.iter().any(|name| name == form.name);
    let chosen: Vec<Form> = forms().into_iter().filter(wanted).collect();
    let results = alternate(&chosen, settings.rounds, |round, form| {
        progress.begin(&format!("linux {}, round {}", form.name, round + 1));
        // What limits it is looked at while the first round runs: the looking costs some time.
        let found = transfer(settings, form, round == 0).with_context(|| format!("rung {}", form.name));
        progress.done(1);
        found
    })?;
    let rows = chosen.iter().zip(results).map(|(form, rounds)| row(settings, form, &rounds, figures));
    Ok(Climb {
        board: "linux-tap".to_owned(),
        title: "On a TAP device of Linux".to_owned(),
        rows: rows.collect(),
        left_out: LEFT_OUT.map(|(name, why)| (name.to_owned(), why.to_owned())).to_vec(),
    })
}

/// What one transfer gave.
#[derive(Clone, Debug)]
struct Round {
    megabytes: f64,
    /// Processor seconds of the server over those of the transfer.
    load: f64,
    /// What limited it, and why, where that was looked at.
    verdict: Option<(String, String)>,
}

fn row(settings: &Settings, form: &Form, rounds: &[Round], figures: &[Record]) -> Row {
    // The round that was looked at counts only where it is the only one.
    let counted = if rounds.len() > 1 { &rounds[1..] } else { rounds };
    let megabytes = spread(counted.iter().map(|round| round.megabytes));
    let load = spread(counted.iter().map(|round| round.load)).map(|load| load.median);
    let unknown = || ("not seen".to_owned(), "the transfer was over before it could be looked at".to_owned());
    let (limit, because) = rounds.iter().find_map(|round| round.verdict.clone()).unwrap_or_else(unknown);
    let rounds_said = match counted.len() {
        1 => "1 round".to_owned(),
        rounds => format!("{rounds} rounds"),
    };
    let how = format!("FTP of {} by curl, {rounds_said}", crate::quantity::bytes(settings.bytes));
    Row {
        rung: form.name.to_owned(),
        title: form.title.to_owned(),
        from: form.from.map(str::to_owned),
        direction: form.direction,
        predicted: None,
        measured: megabytes.map(|megabytes| Found { megabytes, load, limit, because, how }),
        published: printed(figures, form.direction, form.published),
        described: None,
    }
}

/// A server that runs in a namespace; both end with the value.
struct Server {
    child: Child,
    place: Place,
    _scratch: Scratch,
}

impl Drop for Server {
    fn drop(&mut self) {
        // The namespace, which goes after this, ends what is left in it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(settings: &Settings, form: &Form) -> Result<Server> {
        let place = Place::new(Wire::Tap)?;
        let scaling = format!("net.ipv4.tcp_window_scaling={}", u8::from(form.scales));
        run(place.client(None, "sysctl").args(["-qw", &scaling]))?;
        let scratch = Scratch::new()?;
        let config = scratch.path().join("ladder.toml");
        std::fs::write(&config, format!("[tcp]\n{}\n", form.tcp))
            .with_context(|| format!("cannot write {}", config.display()))?;
        let mut command = place.server(None, &settings.program.to_string_lossy());
        command.args(["serve", "--device", "tap", "--address", &format!("{SERVER}/24"), "--queues", "1"]);
        command.args(["--http-port", "0", "--iperf3-port", "0", "--ftp-user", USER, "--writable"]);
        command.args(["--offload", form.offload, "--mtu", &form.mtu.to_string()]);
        command.args(["--status", &STATUS.to_string(), "--config"]).arg(&config);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let child = child.with_context(|| format!("cannot start {}", settings.program.display()))?;
        let mut server = Server { child, place, _scratch: scratch };
        server.wait_until_ready()?;
        Ok(server)
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let stdout = self.child.stdout.take().context("the server has no output")?;
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let end = Instant::now() + READY;
        let mut said = Vec::new();
        while let Ok(line) = lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            if line.starts_with("Ready") {
                // Who reads on keeps the server from a full pipe.
                std::thread::spawn(move || lines.iter().for_each(drop));
                return Ok(());
            }
            said.push(line);
        }
        bail!("the server is not ready; it said: {}", said.join(" / "))
    }

    /// Processor seconds that the server has used.
    fn seconds(&self) -> f64 {
        crate::measure::cpu::of_tree(self.child.id())
    }

    /// What limits the connection with the highest rate, and why.
    fn verdict(&self) -> Option<(String, String)> {
        let url = format!("http://127.0.0.1:{STATUS}/status.json?limit=1&sort=rate");
        let text = run(self.place.client(None, "curl").args(["-sSf", "-m", "5", &url])).ok()?;
        let report: Value = serde_json::from_str(&text).ok()?;
        let conn = report.pointer("/connections/list/0")?;
        if conn.get("state")?.as_str()? != "established" {
            return None;
        }
        let is_busy = ["send_rate", "receive_rate"].iter().any(|key| conn[*key].as_f64() > Some(1e6));
        let word = |key: &str| conn.get(key)?.as_str().map(str::to_owned);
        is_busy.then(|| Some((word("bottleneck")?, word("because")?)))?
    }
}

/// Starts a server, moves the bytes once, and ends it.
fn transfer(settings: &Settings, form: &Form, looks: bool) -> Result<Round> {
    let server = Server::start(settings, form)?;
    let before = server.seconds();
    let bytes = settings.bytes;
    let client = match form.direction {
        Direction::Sending => format!(
            "curl -sS -m {TRANSFER_S} -o /dev/null -w '%{{size_download}} %{{time_total}} %{{time_starttransfer}}' \
             ftp://{USER}@{SERVER}/memory/{bytes}"
        ),
        Direction::Receiving => format!(
            "head -c {bytes} /dev/zero | curl -sS -m {TRANSFER_S} -T - \
             -w '%{{size_upload}} %{{time_total}} %{{time_pretransfer}}' ftp://{USER}@{SERVER}/memory/null"
        ),
    };
    let mut shell = server.place.client(None, "sh");
    shell.args(["-c", &client]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let said = watch(&mut shell, looks.then_some(&server))?;
    let after = server.seconds();
    let (text, verdict) = said;
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [moved, total, start] = numbers[..] else { bail!("curl said {text:?}; expected three numbers") };
    if moved != bytes as f64 {
        bail!("{moved} of {bytes} bytes arrived");
    }
    // The login is no part of it.
    let time = (total - start).max(1e-6);
    Ok(Round { megabytes: moved / time / 1e6, load: (after - before) / time, verdict })
}

/// Runs a client to its end and looks at the server meanwhile; what it said, and what was seen last.
fn watch(shell: &mut Command, server: Option<&Server>) -> Result<(String, Option<(String, String)>)> {
    let mut child = shell.spawn().context("cannot start the client")?;
    let mut verdict = None;
    while server.is_some() && child.try_wait()?.is_none() {
        std::thread::sleep(Duration::from_millis(100));
        verdict = server.and_then(Server::verdict).or(verdict);
    }
    let output = child.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        bail!("the client ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok((text, verdict))
}
