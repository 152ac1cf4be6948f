//! The two ends of a transfer: the device under test, and what it talks to.

use super::plan::{DATAGRAM, Device, Direction, PORT, Plan, Protocol, Setting, Workload};
use crate::measure::place::{Place, SERVER, Wire};
use crate::measure::running::Running;
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// The host's address on the cable.
pub const HOST: &str = "192.168.1.1";

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

/// The namespaces for a transfer. Where the device under test cannot tell the other end's kernel what it may leave undone, that end is
/// set to it: what a device does not do for us comes to no device undone.
pub fn place(device: Device, direction: Direction, setting: Setting) -> Result<Place> {
    let place = Place::new(match (device, direction) {
        // Servers that listen on the host's address need it before the client makes a device.
        (Device::Tap, Direction::Tx) => Wire::ReadyTap,
        _ => device.wire(),
    })?;
    if device == Device::Packet {
        place.leave_undone(setting != Setting::Off, setting == Setting::Coalescing)?;
    }
    Ok(place)
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
    command.args(["serve", "--device", &on.words(), "--offload", setting.offload()]);
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
    command.args(["iperf3", "--device", &on.words(), "--offload", setting.offload()]);
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
