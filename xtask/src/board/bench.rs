//! The figures of boards, as a table and as JSON: what their images take, and what they do in the emulator.
//!
//! Instructions are the firmware's own; rates are those of an emulator that shares its host with the client.

use super::count::{self, Conditions, Count};
use super::machine::Machine;
use super::{Board, Network, OUT};
use crate::{firmware, packages, shell};
use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::process::Command;

/// Bytes that iperf3 sends each way.
const LEN: &str = "100M";
/// Bytes of a file, where the RAM disk has room for it.
const FILE: usize = 10_000_000;
/// Connections one after the other, four at a time.
const CONNECTIONS: &str = "2000";
/// What a function that computes or checks a sum has in its name.
const CHECKSUM: &str = "checksum";
/// Functions of a direction that are named.
const NAMED: usize = 12;

/// Measures boards and writes `target/boards/bench.json`, in which other boards stay as they were measured.
pub fn run(boards: &[(&Board, std::path::PathBuf)]) -> Result<()> {
    packages::require(&["curl", "iperf3", "apache2-utils", "iproute2"])?;
    let path = Path::new(OUT).join("bench.json");
    let (host, mut all) = (host()?, before(&path));
    for (board, image) in boards {
        println!("measuring {}", board.name);
        let mut measured = measure(board, image)?;
        measured["date"] = host["date"].clone();
        // What offloads save is measured apart.
        if let Some(offloads) = all.get_mut(board.name).map(|before| before["offloads"].take()) {
            measured["offloads"] = offloads;
        }
        all.insert(board.name.into(), measured);
    }
    let report = json!({ "host": host, "boards": all });
    std::fs::write(&path, serde_json::to_vec_pretty(&report)?)
        .with_context(|| format!("cannot write {}", path.display()))?;
    print(&report["boards"]);
    println!("\nwritten to {}", path.display());
    Ok(())
}

/// The boards that a file has already; none if it is not there or is another.
fn before(path: &Path) -> Map<String, Value> {
    let report: Option<Value> =
        std::fs::read(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    report.and_then(|mut report| report["boards"].as_object_mut().map(std::mem::take)).unwrap_or_default()
}

/// Adds something else that was measured of a board to the file.
pub fn add(board: &str, name: &str, measured: Value) -> Result<()> {
    let path = Path::new(OUT).join("bench.json");
    let (host, mut all) = (host()?, before(&path));
    let of_board = all.entry(board).or_insert_with(|| json!({}));
    of_board[name] = measured;
    let report = json!({ "host": host, "boards": all });
    std::fs::write(&path, serde_json::to_vec_pretty(&report)?)
        .with_context(|| format!("cannot write {}", path.display()))?;
    println!("\nwritten to {}", path.display());
    Ok(())
}

/// Where and when this is measured.
pub fn host() -> Result<Value> {
    let line = |program: &str, args: &[&str]| -> Result<String> {
        let out = shell::output(Command::new(program).args(args))?;
        Ok(out.lines().next().unwrap_or_default().to_owned())
    };
    let cpu = std::fs::read_to_string("/proc/cpuinfo").context("/proc/cpuinfo")?;
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    Ok(json!({
        "date": line("date", &["+%Y-%m-%d"])?,
        "processor": model.trim_start_matches([' ', '\t', ':']),
        "cores": std::thread::available_parallelism()?.get(),
        "emulator": line("qemu-system-arm", &["--version"])?,
        "rustc": line("rustc", &["--version"])?,
    }))
}

fn measure(board: &Board, image: &Path) -> Result<Value> {
    let (flash, memory) = firmware::size(image)?;
    let rates = rates(board, image)?;
    let counts = count::measure(board, image, &Conditions::default())?;
    let instructions: Map<String, Value> =
        counts.iter().map(|count| (count.direction.to_owned(), instructions(count))).collect();
    Ok(json!({ "flash": flash, "memory": memory, "rates": rates, "instructions": instructions }))
}

fn instructions(count: &Count) -> Value {
    let named = count.by_function.iter().take(NAMED);
    let functions: Map<String, Value> = named.map(|(name, count)| (name.clone(), round(*count))).collect();
    let sums = count.by_function.iter().filter(|(name, _)| name.contains(CHECKSUM));
    let sums: f64 = sums.map(|(_, count)| count).sum();
    json!({
        "per_segment": round(count.total()),
        "segments": count.segments.round(),
        "checksums": round(sums),
        "functions": functions,
    })
}

pub fn round(value: f64) -> Value {
    json!((value * 10.0).round() / 10.0)
}

fn rates(board: &Board, image: &Path) -> Result<Value> {
    let network = Network::in_namespace(board.name)?;
    let machine = Machine::start(board, image, &network, &[])?;
    let address = board.address;
    let (mbps_in, again_in) = iperf3(&machine, &["-n", LEN])?;
    let (mbps_out, again_out) = iperf3(&machine, &["-n", LEN, "-R"])?;
    let down =
        curl(&machine, "%{speed_download}", &["-o", "/dev/null", &format!("ftp://{address}/memory/{FILE}")])?;
    let (user, password) = board.user;
    let file = std::env::temp_dir().join(format!("linerate-board-{}-bench", std::process::id()));
    std::fs::write(&file, vec![0x5a; FILE.min(board.ram_disk / 2)])?;
    let there = format!("ftp://{user}:{password}@{address}/ram/bench");
    let up = curl(&machine, "%{speed_upload}", &["-T", &file.display().to_string(), &there]);
    std::fs::remove_file(&file)?;
    let stats = machine.client("curl", &["-sSf", "-m", "20", &format!("http://{address}/stats")])?;
    let ab = machine.client("ab", &["-q", "-n", CONNECTIONS, "-c", "4", &format!("http://{address}/")])?;
    let stats: Value = serde_json::from_slice(&stats).context("/stats")?;
    Ok(json!({
        "iperf3_in_mbps": mbps_in,
        "iperf3_in_retransmits": again_in,
        "iperf3_out_mbps": mbps_out,
        "iperf3_out_retransmits": again_out,
        "ftp_down_mb_s": megabytes(down),
        "ftp_up_mb_s": megabytes(up?),
        "http_closing_per_s": requests(&String::from_utf8_lossy(&ab))?,
        "heap_lowest": stats["heap"]["lowest"],
    }))
}

fn megabytes(bytes: f64) -> Value {
    round(bytes / 1e6)
}

/// The rate of a test in Mb/s, and segments that were sent again.
fn iperf3(machine: &Machine<'_>, args: &[&str]) -> Result<(Value, Value)> {
    let args = [&["-c", machine.board.address, "-J"], args].concat();
    let report: Value =
        serde_json::from_slice(&machine.client("iperf3", &args)?).context("iperf3's report")?;
    let rate = report["end"]["sum_received"]["bits_per_second"].as_f64().context("iperf3's rate")?;
    Ok((round(rate / 1e6), report["end"]["sum_sent"]["retransmits"].clone()))
}

fn curl(machine: &Machine<'_>, what: &str, args: &[&str]) -> Result<f64> {
    let out = machine.client("curl", &[&["-sSf", "-m", "60", "-w", what], args].concat())?;
    let text = String::from_utf8_lossy(&out);
    text.trim().parse().with_context(|| format!("curl's rate: {text:?}"))
}

fn requests(report: &str) -> Result<Value> {
    let number = |start: &str| {
        let line = report.lines().find(|line| line.starts_with(start))?;
        line.split_whitespace().find_map(|word| word.parse::<f64>().ok())
    };
    let failed = number("Failed requests:").context("ab's failures")?;
    anyhow::ensure!(failed == 0.0, "{failed} requests failed");
    Ok(round(number("Requests per second:").context("ab's rate")?))
}

/// The rows that are printed: a title and where the figure is.
const ROWS: [(&str, &str); 11] = [
    ("instructions of 1,460 bytes, receiving", "/instructions/receiving/per_segment"),
    ("sending", "/instructions/sending/per_segment"),
    ("iperf3 in, Mb/s", "/rates/iperf3_in_mbps"),
    ("segments sent again by the client", "/rates/iperf3_in_retransmits"),
    ("iperf3 out, Mb/s", "/rates/iperf3_out_mbps"),
    ("segments sent again by the board", "/rates/iperf3_out_retransmits"),
    ("FTP from memory, MB/s", "/rates/ftp_down_mb_s"),
    ("FTP to the RAM disk, MB/s", "/rates/ftp_up_mb_s"),
    ("HTTP, a connection each, requests/s", "/rates/http_closing_per_s"),
    ("flash, bytes", "/flash"),
    ("heap free at least, bytes", "/rates/heap_lowest"),
];

fn print(boards: &Value) {
    let Some(boards) = boards.as_object() else { return };
    print!("\n{:<42}", "");
    boards.keys().for_each(|name| print!("{name:>14}"));
    println!();
    for (title, pointer) in ROWS {
        print!("{title:<42}");
        for board in boards.values() {
            let figure = board.pointer(pointer).map_or_else(String::new, Value::to_string);
            print!("{figure:>14}");
        }
        println!();
    }
}
