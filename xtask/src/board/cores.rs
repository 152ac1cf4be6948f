//! Checks of a board with several cores: who has served whom, by the counters of each.

use super::checks::{stats, url};
use super::flood::Flood;
use super::machine::Machine;
use super::network::Network;
use super::{Board, count};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;

/// The port that iperf3 has on the first core, as in `board.toml`; the others follow.
pub const PORT: u16 = 5_301;
/// How many there are.
pub const CORES: usize = 4;
/// What each stream moves.
const LEN: u64 = 20 << 20;

/// A counter of every core.
fn of_each(stats: &Value, name: &str) -> Result<Vec<u64>> {
    let cores = stats["cores"].as_array().context("cores")?;
    ensure!(cores.len() == CORES, "{} cores serve, {CORES} expected", cores.len());
    let count = |core: &Value| core[name].as_u64().with_context(|| format!("no {name} of a core"));
    cores.iter().map(count).collect()
}

/// How far it went.
fn moved(before: &Value, after: &Value, name: &str) -> Result<Vec<u64>> {
    let (before, after) = (of_each(before, name)?, of_each(after, name)?);
    Ok(after.iter().zip(before).map(|(after, before)| after.saturating_sub(before)).collect())
}

/// A client for each core, all at once; the rate of all together in Mb/s.
fn clients(machine: &Machine<'_>, args: &[&str]) -> Result<f64> {
    let mut clients = Vec::new();
    for port in (PORT..).take(CORES) {
        let mut client = machine.network.command("iperf3");
        client.args(["-c", machine.board.address, "-p", &port.to_string(), "-J"]).args(args);
        client.args(["--connect-timeout", "5000"]).stdout(Stdio::piped());
        clients.push(client.spawn().context("cannot start iperf3")?);
    }
    let mut rate = 0.0;
    for client in clients {
        let output = client.wait_with_output()?;
        let report: Value = serde_json::from_slice(&output.stdout).context("iperf3's report")?;
        ensure!(report.get("error").is_none(), "iperf3: {}", report["error"]);
        let sum = report.pointer("/end/sum_received/bits_per_second").and_then(Value::as_f64);
        rate += sum.context("iperf3's rate")?;
    }
    Ok(rate / 1e6)
}

/// Four streams each way, each on a core of its own.
pub fn streams(machine: &mut Machine<'_>) -> Result<String> {
    let len = LEN.to_string();
    let mut said = Vec::new();
    for (name, args) in [("tcp_bytes_in", &["-n", &len][..]), ("tcp_bytes_out", &["-n", &len, "-R"])] {
        let before = stats(machine)?;
        let rate = clients(machine, args)?;
        let after = stats(machine)?;
        let bytes = moved(&before, &after, name)?;
        // What was sent twice counts twice, and a busy host makes clients impatient; two streams would be twice as much.
        let is_one_each = bytes.iter().all(|bytes| (LEN..LEN / 2 * 3).contains(bytes));
        ensure!(is_one_each, "{name} of each core: {bytes:?}, {LEN} expected of each");
        let busy: Vec<u64> = moved(&before, &after, "busy_us")?.iter().map(|us| us / 1_000).collect();
        let drops: u64 = moved(&before, &after, "drop_mailbox_full")?.iter().sum();
        said.push(format!(
            "{name} {bytes:?} at {rate:.0} Mb/s, busy {busy:?} ms, {drops} frames dropped between cores"
        ));
    }
    Ok(said.join("; "))
}

/// Connections of HTTP are spread over all cores.
pub fn spread(machine: &mut Machine<'_>) -> Result<String> {
    const CONNECTIONS: usize = 400;
    let before = stats(machine)?;
    let urls = vec![url(machine, "/"); CONNECTIONS];
    let mut args = vec!["-sSf", "-m", "60", "-H", "Connection: close", "-w", "%{http_code}\n"];
    for url in &urls {
        args.extend([url.as_str(), "-o", "/dev/null"]);
    }
    let out = machine.client("curl", &args)?;
    let good = String::from_utf8_lossy(&out).lines().filter(|line| *line == "200").count();
    ensure!(good == CONNECTIONS, "{good} of {CONNECTIONS} were answered");
    let served = moved(&before, &stats(machine)?, "tcp_established")?;
    // A quarter each, by a hash; a tenth of it is many standard deviations away.
    let fewest = CONNECTIONS as u64 / 10;
    ensure!(served.iter().all(|count| *count >= fewest), "connections of each core: {served:?}");
    Ok(format!("{served:?} connections of {CONNECTIONS}"))
}

/// Every core serves during a flood of forged SYNs and hostile frames.
pub fn flooded(machine: &mut Machine<'_>) -> Result<String> {
    const ROUNDS: u64 = 5;
    let before = stats(machine)?;
    let flood = Flood::start(machine)?;
    for _ in 0..ROUNDS {
        clients(machine, &["-n", "1M"]).context("during the flood")?;
    }
    flood.end()?;
    let after = stats(machine)?;
    let served = moved(&before, &after, "tcp_established")?;
    let frames = moved(&before, &after, "frames_in")?;
    ensure!(served.iter().all(|count| *count >= 2 * ROUNDS), "connections of each core: {served:?}");
    Ok(format!(
        "{ROUNDS} rounds of four tests meanwhile, {served:?} connections, {frames:?} frames of each core"
    ))
}

/// Datagrams to the second core's port come in by the second queue, and what that core sends leaves by it.
pub fn second_queue(machine: &mut Machine<'_>) -> Result<String> {
    let before = stats(machine)?;
    let port = (PORT + 1).to_string();
    let args = ["-c", machine.board.address, "-p", &port, "-J", "-u", "-b", "20M", "-t", "2"];
    machine.client("iperf3", &args)?;
    let after = stats(machine)?;
    let of_second = |stats: &Value, name: &str| stats["cores"][1][name].as_u64().unwrap_or_default();
    let moved = |name: &str| of_second(&after, name) - of_second(&before, name);
    let (came, left) = (moved("queue_rx_frames"), moved("queue_tx_packets"));
    // 40 Mb in datagrams of 1,448 bytes are 3,450.
    ensure!(came > 3_000 && left > 0, "{came} frames came by the second queue, {left} left");
    Ok(format!("{came} frames came by it, {left} left"))
}

/// Counts the instructions of every core while each serves a stream, and prints them.
pub fn print_counts(board: &Board, image: &Path) -> Result<()> {
    let functions = count::functions(image)?;
    let out = count::path()?;
    let option = format!("{},cores={CORES}", count::plugin(&functions, &out)?);
    let network = Network::in_namespace(board.name)?;
    let mut machine = Machine::start(board, image, &network, &["-plugin".to_owned(), option])?;
    let len = LEN.to_string();
    for (direction, args) in [("receiving", &["-n", &len][..]), ("sending", &["-n", &len, "-R"])] {
        machine.console.ask("count on")?;
        clients(&machine, args)?;
        machine.console.ask("count off")?;
        let of_core = count::by_core(&out, &functions)?;
        let each = of_core.map(|count| (count as f64 / (LEN as f64 / count::SEGMENT)).round());
        println!(
            "\n{direction}, a stream on each of {CORES} cores: instructions of each core for each 1,460 bytes of its stream: \
             {each:?}, of all {:.0} for each 1,460 bytes",
            each.iter().sum::<f64>() / CORES as f64
        );
    }
    Ok(())
}
