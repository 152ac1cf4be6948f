//! What a board's offloads save: an image without them, one with them, and all cores, for TCP and UDP both ways, with one stream
//! and four, in the form that `linerate lab offloads` shows as seed 004's tables.
//!
//! A rate is the emulator's, measured without the plugin that counts; loads are instructions for a byte of payload, by core. The
//! emulator's idle time is its host's, and tells nothing.

use super::bench::{self, round};
use super::cores::{CORES, PORT};
use super::machine::Machine;
use super::{Board, Network, OUT, build_with, count};
use crate::packages;
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Bytes of all streams of TCP together, and seconds of UDP.
const LEN: u64 = 32 << 20;
const SECONDS: &str = "2";
/// Payload of a datagram, as in seed 004.
const DATAGRAM: u64 = 1_472;
/// Mbit/s of all streams of UDP together: well below what the emulator's fastest way of counting passes.
const RATE: u16 = 100;
/// The port of the server that all cores share.
const SHARED: u16 = 5_201;

/// What is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Setting {
    /// As `linerate lab offloads` names it.
    name: &'static str,
    /// Whether the image uses the interface's offloads.
    offloads: bool,
    /// Whether all cores serve.
    all_cores: bool,
}

/// The settings of a board, and those that its interface has not.
fn settings(board: &Board) -> Result<(Vec<Setting>, Vec<&'static str>)> {
    let off = Setting { name: "off", offloads: false, all_cores: false };
    Ok(match board.name {
        // The Cadence GEM does checksums.
        "xlnx-zcu102" => {
            let one = Setting { name: "checksum", offloads: true, all_cores: false };
            let all = Setting { name: "queues", offloads: true, all_cores: true };
            (vec![off, one, all], vec!["segmentation", "coalescing"])
        }
        // All of virtio's together: its image has one switch for them.
        "virt-a15" => {
            let all = Setting { name: "coalescing", offloads: true, all_cores: false };
            (vec![off, all], vec!["queues"])
        }
        name => bail!("{name}: no image of it has offloads to compare"),
    })
}

/// One use case.
#[derive(Clone, Copy, Debug)]
struct Case {
    protocol: &'static str,
    direction: &'static str,
    streams: u16,
}

fn cases(setting: &Setting) -> Vec<Case> {
    let ways =
        ["udp", "tcp"].into_iter().flat_map(|protocol| ["rx", "tx"].map(|direction| (protocol, direction)));
    let with = |(protocol, direction)| [1, 4].map(|streams| Case { protocol, direction, streams });
    // One stream is one core's.
    ways.flat_map(with).filter(|case| !setting.all_cores || case.streams > 1).collect()
}

/// Measures a board and adds its table to `target/boards/bench.json`.
pub fn run(board: &Board) -> Result<()> {
    packages::require(&["iperf3", "iproute2"])?;
    let (settings, missing) = settings(board)?;
    let mut rows = Vec::new();
    for setting in &settings {
        let image = image(board, setting)?;
        let rates = rates(board, &image, setting)?;
        let loads = loads(board, &image, setting)?;
        for ((case, rate), each) in cases(setting).into_iter().zip(rates).zip(loads) {
            let all: f64 = each.iter().sum();
            println!(
                "{} {} {} {}: {:.0} Mb/s, {all:.2} instructions a byte {each:.2?}",
                case.protocol, case.direction, case.streams, setting.name, rate.mbps
            );
            rows.push(json!({
                "protocol": case.protocol,
                "direction": case.direction,
                "streams": case.streams,
                "setting": setting.name,
                "mbps": round(rate.mbps),
                "lost_percent": rate.lost_percent,
                "instructions_per_byte": all,
                "instructions_per_byte_by_core": each,
            }));
        }
    }
    let table = json!({ "rows": rows, "missing": missing, "date": bench::host()?["date"] });
    bench::add(board.name, "offloads", table)
}

/// The image of a setting, kept beside the board's own.
fn image(board: &Board, setting: &Setting) -> Result<PathBuf> {
    let built = build_with(board, Some(setting.offloads))?;
    let kept = Path::new(OUT).join(format!("{}-{}", board.name, setting.name));
    std::fs::copy(&built, &kept).with_context(|| format!("cannot write {}", kept.display()))?;
    Ok(kept)
}

/// Options of the emulator: cores that are not there do not serve.
fn cores(board: &Board, setting: &Setting) -> Vec<String> {
    let has_more = board.emulator.contains(&"-smp");
    if has_more && !setting.all_cores { ["-smp", "1"].map(str::to_owned).to_vec() } else { Vec::new() }
}

/// What clients say of a use case.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Rate {
    mbps: f64,
    bytes: f64,
    lost_percent: Option<f64>,
}

fn rates(board: &Board, image: &Path, setting: &Setting) -> Result<Vec<Rate>> {
    let network = Network::in_namespace(board.name)?;
    let machine = Machine::start(board, image, &network, &cores(board, setting))?;
    cases(setting).into_iter().map(|case| transfer(&machine, case, setting)).collect()
}

/// Instructions for a byte of payload, of each core.
fn loads(board: &Board, image: &Path, setting: &Setting) -> Result<Vec<Vec<f64>>> {
    let functions = count::functions(image)?;
    let out = count::path()?;
    let used = if setting.all_cores { CORES } else { 1 };
    let option = format!("{},cores={CORES}", count::plugin(&functions, &out)?);
    let network = Network::in_namespace(board.name)?;
    let mut more = cores(board, setting);
    more.extend(["-plugin".to_owned(), option]);
    let mut machine = Machine::start(board, image, &network, &more)?;
    let of_case = |case: Case| {
        machine.console.ask("count on")?;
        let rate = transfer(&machine, case, setting)?;
        machine.console.ask("count off")?;
        ensure!(rate.bytes > 1e6, "{case:?}: {} bytes arrived", rate.bytes);
        let counted = count::by_core(&out, &functions)?;
        Ok(counted[..used].iter().map(|count| *count as f64 / rate.bytes).collect())
    };
    cases(setting).into_iter().map(of_case).collect()
}

/// Runs the clients of a use case to their end: of all cores one for each, else one with all streams.
fn transfer(machine: &Machine<'_>, case: Case, setting: &Setting) -> Result<Rate> {
    let clients = if setting.all_cores { CORES as u16 } else { 1 };
    let each = case.streams / clients;
    let first = if setting.all_cores { PORT } else { SHARED };
    let mut running = Vec::new();
    for port in (first..).take(clients.into()) {
        let mut client = machine.network.command("iperf3");
        client.args(["-c", machine.board.address, "-J", "--connect-timeout", "5000"]);
        client.args(["-p", &port.to_string(), "-P", &each.to_string()]);
        match case.protocol {
            "udp" => {
                let rate = format!("{}M", RATE / case.streams);
                client.args(["-u", "-b", &rate, "-l", &DATAGRAM.to_string(), "-t", SECONDS]);
            }
            _ => {
                client.args(["-n", &(LEN / u64::from(clients)).to_string()]);
            }
        }
        if case.direction == "tx" {
            client.arg("-R");
        }
        running.push(client.stdout(Stdio::piped()).spawn().context("cannot start iperf3")?);
    }
    let (mut all, mut lost, mut sent) = (Rate::default(), 0.0, 0.0);
    for client in running {
        let output = client.wait_with_output()?;
        let report: Value = serde_json::from_slice(&output.stdout).context("iperf3's report")?;
        ensure!(report.get("error").is_none(), "{case:?} {}: iperf3: {}", setting.name, report["error"]);
        let one = outcome(&report, case.protocol)?;
        all.bytes += one.0;
        all.mbps += one.0 * 8e-6 / one.1;
        (lost, sent) = (lost + one.2, sent + one.3);
    }
    all.lost_percent = (sent > 0.0).then(|| lost / sent * 100.0);
    Ok(all)
}

/// Bytes that arrived, seconds, datagrams that were lost and sent.
fn outcome(report: &Value, protocol: &str) -> Result<(f64, f64, f64, f64)> {
    let number = |pointer: &str| {
        report.pointer(pointer).and_then(Value::as_f64).with_context(|| format!("iperf3's {pointer}"))
    };
    if protocol == "tcp" {
        return Ok((number("/end/sum_received/bytes")?, number("/end/sum_received/seconds")?, 0.0, 0.0));
    }
    let (sent, lost) = (number("/end/sum/packets")?, number("/end/sum/lost_packets")?);
    Ok(((sent - lost) * DATAGRAM as f64, number("/end/sum/seconds")?, lost, sent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_iperf3() {
        let tcp = json!({"end": {"sum_received": {"bytes": 1000, "seconds": 2.0}}});
        assert_eq!(outcome(&tcp, "tcp").unwrap(), (1_000.0, 2.0, 0.0, 0.0));
        let udp = json!({"end": {"sum": {"packets": 100, "lost_packets": 25, "seconds": 2.0}}});
        assert_eq!(outcome(&udp, "udp").unwrap(), (75.0 * 1_472.0, 2.0, 25.0, 100.0));
        let error = outcome(&tcp, "udp").unwrap_err().to_string();
        assert!(error.contains("/end/sum/packets"), "{error}");
    }

    #[test]
    fn one_stream_is_not_spread() {
        let of = |all_cores| cases(&Setting { name: "x", offloads: true, all_cores }).len();
        assert_eq!((of(false), of(true)), (8, 4));
    }
}
