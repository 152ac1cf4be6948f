//! The two ends of a transfer: the device under test, and what it talks to.

use super::plan::{DATAGRAM, Device, Direction, PORT, Plan, Protocol, Setting, Workload};
use crate::measure::group::Group;
use crate::measure::place::{Place, SERVER, TAP, Wire};
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The host's address on the cable.
pub const HOST: &str = "192.168.1.1";
/// Longest that a server may take until it is ready.
const START_PATIENCE: Duration = Duration::from_secs(15);

/// Most that is kept of what a program logs, in bytes.
const LOG_MAX: usize = 1 << 20;

/// A program that runs until it is told to stop, with its processor time counted.
pub struct Running {
    child: Child,
    group: Option<Group>,
    log: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Running {
    /// Starts it, in a group of its own where the system has such.
    pub fn start(command: &Command) -> Result<Running> {
        let group = Group::new();
        let mut command = match &group {
            Some(group) => group.around(command),
            None => copy(command),
        };
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        let log = Arc::new(Mutex::new(String::new()));
        let (stderr, keep) = (child.stderr.take(), Arc::clone(&log));
        // Read to the end, so that the program never waits for a reader.
        let reader = stderr.map(|pipe| {
            std::thread::spawn(move || {
                for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                    let mut log = keep.lock().unwrap_or_else(PoisonError::into_inner);
                    if log.len() < LOG_MAX {
                        log.push_str(&line);
                        log.push('\n');
                    }
                }
            })
        });
        Ok(Running { child, group, log, reader })
    }

    /// What it wrote on standard error so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Starts it and waits for a line that begins like this.
    pub fn start_ready(command: &Command, sign: &str) -> Result<Running> {
        let mut running = Running::start(command)?;
        let Some(stdout) = running.child.stdout.take() else { bail!("no standard output of {command:?}") };
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // Read to the end, so that the program never waits for a reader.
                let _ = tell.send(line);
            }
        });
        let until = Instant::now() + START_PATIENCE;
        loop {
            match told.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) if line.starts_with(sign) => return Ok(running),
                Ok(_) => {}
                Err(_) => {
                    let said = running.stop();
                    bail!("{command:?} did not become ready: {said}");
                }
            }
        }
    }

    /// Processor seconds that it has used; `None` where nobody counts.
    pub fn seconds(&self) -> Option<f64> {
        self.group.as_ref().and_then(Group::seconds)
    }

    /// Waits for its end; what it printed.
    pub fn output(mut self) -> Result<(bool, String, String)> {
        let mut out = String::new();
        if let Some(mut pipe) = self.child.stdout.take() {
            pipe.read_to_string(&mut out)?;
        }
        let status = self.child.wait()?;
        if let Some(reader) = self.reader.take() {
            // It ends with the pipe.
            let _ = reader.join();
        }
        let err = self.log();
        Ok((status.success(), out, err))
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to stop, and waits a little; what it wrote on standard error.
    pub fn stop(&mut self) -> String {
        let pid = self.child.id().to_string();
        // It may have ended by itself.
        let _ = Command::new("kill").args(["-TERM", &pid]).output();
        let until = Instant::now() + Duration::from_secs(3);
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() >= until {
                let _ = self.child.kill();
                let _ = self.child.wait();
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.log()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.stop();
        }
    }
}

fn copy(command: &Command) -> Command {
    let mut copy = Command::new(command.get_program());
    copy.args(command.get_args());
    copy
}

/// Whether the original is installed.
pub fn has_original() -> bool {
    Command::new("iperf3").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// The cores that the two ends are bound to: one each where there are two, none where a queue for each core is measured.
pub fn cores(setting: Setting) -> (Option<usize>, Option<usize>) {
    match (setting, crate::measure::machine::cores()) {
        (Setting::Queues, _) | (_, 0 | 1) => (None, None),
        _ => (Some(0), Some(1)),
    }
}

/// The namespaces for a transfer.
pub fn place(device: Device, direction: Direction) -> Result<Place> {
    Place::new(match (device, direction) {
        (Device::Packet, _) => Wire::Veth,
        (Device::Tap, Direction::Rx) => Wire::Tap,
        // Servers that listen on the host's address need it before the client makes a device.
        (Device::Tap, Direction::Tx) => Wire::ReadyTap,
    })
}

/// What `--device` is given.
pub fn device_words(device: Device) -> String {
    match device {
        Device::Tap => format!("tap:{TAP}"),
        Device::Packet => "packet:veth1".to_owned(),
    }
}

/// Our server on the device under test.
pub fn our_server(
    plan: &Plan,
    place: &Place,
    on: Device,
    setting: Setting,
    config: &Path,
) -> Result<Running> {
    let queues = if setting == Setting::Queues { plan.queues } else { 1 };
    let text = format!("[iperf3]\nports = {queues}\n");
    std::fs::write(config, text).with_context(|| format!("cannot write {}", config.display()))?;
    let mut command = place.server(cores(setting).0, &plan.program.to_string_lossy());
    command.args(["serve", "--device", &device_words(on), "--offload", setting.offload()]);
    command.args(["--queues", &queues.to_string(), "--iperf3-port", &PORT.to_string()]);
    command.args(["--http-port", "0", "--ftp-port", "0", "--user", "root", "--config"]).arg(config);
    Running::start_ready(&command, "Ready")
}

/// A server at the other end.
pub fn their_server(plan: &Plan, place: &Place) -> Result<Running> {
    let core = cores(Setting::Off).1;
    if plan.original {
        let mut command = place.client(core, "iperf3");
        command.args(["-s", "--forceflush", "-p", &PORT.to_string()]);
        return Running::start_ready(&command, "Server listening");
    }
    let mut command = place.client(core, &plan.program.to_string_lossy());
    command.args(["serve", "--device", "kernel", "--address", &format!("{HOST}/24"), "--queues", "1"]);
    command.args(["--http-port", "0", "--ftp-port", "0", "--iperf3-port", &PORT.to_string()]);
    Running::start_ready(&command, "Ready")
}

/// The words that both clients understand.
fn words(plan: &Plan, workload: Workload, host: &str, port: u16, streams: u16) -> Vec<String> {
    let seconds = plan.time.as_secs().max(1);
    let mut words = vec!["-c".to_owned(), host.to_owned(), "-J".to_owned()];
    let mut put = |flag: &str, value: String| words.extend([flag.to_owned(), value]);
    put("-p", port.to_string());
    put("-t", seconds.to_string());
    put("-i", seconds.to_string());
    put("-P", streams.to_string());
    let rate = plan.rates.of_stream(workload);
    if workload.protocol == Protocol::Udp {
        put("-l", DATAGRAM.to_string());
        put("-b", rate.to_string());
    } else if rate > 0 {
        put("-b", rate.to_string());
    }
    if workload.protocol == Protocol::Udp {
        words.push("-u".to_owned());
    }
    words
}

/// Clients at the other end: one, or one for each queue.
pub fn their_clients(
    plan: &Plan,
    place: &Place,
    workload: Workload,
    setting: Setting,
) -> Result<Vec<Running>> {
    let count = if setting == Setting::Queues { plan.queues.min(workload.streams) } else { 1 };
    let client = |number: u16| {
        // As even as the streams can be divided.
        let streams = workload.streams / count + u16::from(number < workload.streams % count);
        let program = match plan.original {
            true => "iperf3".to_owned(),
            false => plan.program.to_string_lossy().into_owned(),
        };
        let mut command = place.client(cores(setting).1, &program);
        if !plan.original {
            command.args(["iperf3", "--device", "kernel"]);
        }
        command.args(words(plan, workload, SERVER, PORT + number, streams));
        Running::start(&command)
    };
    (0..count).map(client).collect()
}

/// Our client on the device under test.
pub fn our_client(
    plan: &Plan,
    place: &Place,
    on: Device,
    workload: Workload,
    setting: Setting,
) -> Result<Running> {
    let mut command = place.server(cores(setting).0, &plan.program.to_string_lossy());
    command.args(["iperf3", "--device", &device_words(on), "--offload", setting.offload()]);
    command.args(["--address", &format!("{SERVER}/24")]);
    command.args(words(plan, workload, HOST, PORT, workload.streams));
    Running::start(&command)
}

/// What a client reports.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Reported {
    /// Payload that arrived, in bits per second.
    pub throughput_bps: f64,
    /// Datagrams that should have arrived, and those that did not.
    pub packets: f64,
    /// See `packets`.
    pub lost: f64,
    /// Segments that a sender of TCP sent again.
    pub retransmits: Option<f64>,
}

/// Reads the JSON that iperf3 prints, whoever printed it.
pub fn reported(text: &str, protocol: Protocol) -> Result<Reported> {
    let json: Value = serde_json::from_str(text).context("a client printed no JSON")?;
    if let Some(error) = json["error"].as_str() {
        bail!("a client reports: {error}");
    }
    let number = |path: &str| json.pointer(path).and_then(Value::as_f64);
    let need = |path: &str| number(path).with_context(|| format!("a client's report lacks {path}"));
    if protocol == Protocol::Tcp {
        let throughput_bps = need("/end/sum_received/bits_per_second")?;
        let retransmits = number("/end/sum_sent/retransmits");
        return Ok(Reported { throughput_bps, retransmits, ..Reported::default() });
    }
    let (packets, lost) = (need("/end/sum/packets")?, need("/end/sum/lost_packets")?);
    let seconds = need("/end/sum/seconds")?;
    ensure!(seconds > 0.0, "a client's test took no time");
    let throughput_bps = (packets - lost).max(0.0) * DATAGRAM as f64 * 8.0 / seconds;
    Ok(Reported { throughput_bps, packets, lost, retransmits: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_read_with_care() {
        let tcp = r#"{"end":{"sum_received":{"bits_per_second":1e9},"sum_sent":{"retransmits":3}}}"#;
        let read = reported(tcp, Protocol::Tcp).unwrap();
        assert_eq!((read.throughput_bps, read.retransmits), (1e9, Some(3.0)));
        let udp = r#"{"end":{"sum":{"packets":1000,"lost_packets":10,"seconds":2.0}}}"#;
        let read = reported(udp, Protocol::Udp).unwrap();
        assert_eq!(read.throughput_bps, 990.0 * 1472.0 * 8.0 / 2.0);
        for (text, wanted) in [
            ("", "no JSON"),
            (r#"{"error":"the server is busy"}"#, "busy"),
            (r#"{"end":{}}"#, "/end/sum"),
            (r#"{"end":{"sum":{"packets":1,"lost_packets":0,"seconds":0}}}"#, "no time"),
        ] {
            let error = format!("{:#}", reported(text, Protocol::Udp).unwrap_err());
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }
}
