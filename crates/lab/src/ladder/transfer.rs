//! One transfer of the ladder on a Linux device: `linerate serve` in a namespace of its own, with settings that have the same
//! effect as a rung, and an FTP client of the kernel's side.

use super::knobs::Knobs;
use super::state::Direction;
use crate::measure::cpu;
use crate::measure::device::Device;
use crate::measure::place::{Place, SERVER, run};
use crate::measure::running::Running;
use crate::measure::scratch::Scratch;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Most time of a transfer in seconds.
const TRANSFER_S: u32 = 120;
/// Port of the server's status.
const STATUS: u16 = 9_180;
/// Name and password of the client.
const USER: &str = "ladder:ladder";

/// What one transfer gave.
#[derive(Clone, Debug)]
pub struct Round {
    /// Payload in MB/s.
    pub megabytes: f64,
    /// Processor seconds of the server over those of the transfer.
    pub load: f64,
    /// Seconds in which the server was ready and others had the cores, over those of the transfer.
    pub kept: f64,
    /// Processor seconds of the client over those of the transfer.
    pub client_load: f64,
    /// What limited it, and why, where that was looked at.
    pub verdict: Option<(String, String)>,
}

/// A server that runs in a namespace; both end with the value, the server first.
struct Server {
    running: Running,
    place: Place,
    _scratch: Scratch,
}

impl Server {
    fn start(program: &Path, device: Device, form: &Knobs) -> Result<Server> {
        let place = Place::new(device.wire())?;
        place.set_mtu(form.mtu)?;
        place.leave_undone(form.has_sums(), form.offload == "all")?;
        let scaling = format!("net.ipv4.tcp_window_scaling={}", u8::from(form.scales));
        run(place.client(None, "sysctl").args(["-qw", &scaling]))?;
        let scratch = Scratch::new()?;
        let config = scratch.path().join("ladder.toml");
        std::fs::write(&config, format!("[tcp]\n{}", form.tcp()))
            .with_context(|| format!("cannot write {}", config.display()))?;
        let mut command = place.server(None, &program.to_string_lossy());
        command.args(["serve", "--device", &device.words(), "--address", &format!("{SERVER}/24")]);
        command.args(["--queues", "1", "--http-port", "0", "--iperf3-port", "0"]);
        command.args(["--ftp-user", USER, "--writable"]);
        command.args(["--offload", form.offload, "--mtu", &form.mtu.to_string()]);
        command.args(["--status", &STATUS.to_string(), "--config"]).arg(&config);
        let running = Running::start_ready(&command, "Ready")?;
        Ok(Server { running, place, _scratch: scratch })
    }

    /// Processor seconds that the server has used, and those in which it was ready and others had the cores.
    fn seconds(&self) -> [f64; 2] {
        [cpu::of_tree(self.running.pid()), cpu::kept_of_tree(self.running.pid())]
    }

    /// What limits the connection with the highest rate, and why.
    fn verdict(&self) -> Option<(String, String)> {
        let url = format!("http://127.0.0.1:{STATUS}/status.json?limit=1&sort=rate");
        let text = run(self.place.server(None, "curl").args(["-sSf", "-m", "5", &url])).ok()?;
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
pub fn transfer(program: &Path, device: Device, form: &Knobs, bytes: u64, looks: bool) -> Result<Round> {
    let server = Server::start(program, device, form)?;
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
    let (before, client_before) = (server.seconds(), cpu::of_clients());
    let (text, verdict) = watch(&mut shell, looks.then_some(&server))?;
    let (after, client_after) = (server.seconds(), cpu::of_clients());
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [moved, total, start] = numbers[..] else { bail!("curl said {text:?}; expected three numbers") };
    if moved != bytes as f64 {
        bail!("{moved} of {bytes} bytes arrived");
    }
    // The login is no part of it.
    let time = (total - start).max(1e-6);
    Ok(Round {
        megabytes: moved / time / 1e6,
        load: (after[0] - before[0]) / time,
        kept: (after[1] - before[1]) / time,
        client_load: (client_after - client_before) / time,
        verdict,
    })
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
