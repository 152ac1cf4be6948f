//! The instructions of a TCP segment on a board, by function: the emulator counts every block that is executed.

use super::cores::{self, CORES};
use super::machine::Machine;
use super::network::TAP;
use super::{Board, Network, OUT};
use crate::{packages, shell};
use anyhow::{Context, Result, bail, ensure};
use object::{Object, ObjectSymbol, SymbolKind};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bytes of a segment that figures are given for: a full one without options.
pub const SEGMENT: f64 = 1_460.0;
/// Functions that are shown.
const SHOWN: usize = 30;
/// Bytes sent each way.
const LEN: &str = "30M";
/// What runs when nobody has work: not counted. Starts of names, as some compilers add the board that a function was made for.
const IDLE: [&str; 5] = [
    "linerate_firmware_freertos::application::run",
    "linerate_firmware_embassy::executor::sleep",
    "prvIdleTask",
    "mark_start",
    "xlnx_zcu102::board::idle",
];

/// Functions of an image, by address.
pub type Functions = BTreeMap<u64, (u64, String)>;

/// What was counted in one direction.
pub struct Count {
    /// `receiving` or `sending`.
    pub direction: &'static str,
    /// Segments of 1,460 bytes.
    pub segments: f64,
    /// Instructions of each, by function, the most first.
    pub by_function: Vec<(String, f64)>,
    /// Frames of each segment, in and out.
    pub frames: (f64, f64),
    /// The rate at which they went, of the host's time, in Mb/s.
    pub megabits: f64,
}

impl Count {
    /// Instructions of a segment.
    pub fn total(&self) -> f64 {
        self.by_function.iter().map(|(_, count)| count).sum()
    }
}

/// Under which conditions it is counted; by default as fast as the emulator goes, with the image's interrupts.
#[derive(Default)]
pub struct Conditions<'a> {
    /// The rate of the cable to the board, as `tc` takes it.
    wire: Option<&'a str>,
    /// What is set with the console's `pacing`.
    pacing: Option<String>,
}

impl<'a> Conditions<'a> {
    /// From `wire=RATE` and `pacing=MODE,TIMER_US,FRAMES`.
    pub fn parse(words: &[&'a str]) -> Result<Conditions<'a>> {
        let mut conditions = Conditions::default();
        for word in words {
            match word.split_once('=') {
                Some(("wire", rate)) => conditions.wire = Some(rate),
                Some(("pacing", pacing)) => conditions.pacing = Some(pacing.replace(',', " ")),
                _ => bail!("count: {word:?} is neither wire=RATE nor pacing=MODE,TIMER_US,FRAMES"),
            }
        }
        Ok(conditions)
    }

    /// Lets them hold. A bucket of one full frame lets each wait for the one before, as a wire does.
    fn set(&self, machine: &mut Machine<'_>) -> Result<()> {
        if let Some(rate) = self.wire {
            let bucket = ["root", "tbf", "rate", rate, "burst", "1600", "latency", "20ms"];
            machine.client("tc", &[&["qdisc", "add", "dev", TAP], &bucket[..]].concat())?;
        }
        if let Some(pacing) = &self.pacing {
            let said = machine.console.ask(&format!("pacing {pacing}"))?;
            // What is set is told in the words that set it.
            let mode = pacing.split(' ').next().unwrap_or_default();
            ensure!(said.starts_with(&format!("{mode}, ")), "pacing {pacing}: {}", said.trim_end());
            println!("pacing: {}", said.trim_end());
        }
        Ok(())
    }
}

/// Counts both directions and prints them.
pub fn run(board: &Board, image: &Path, conditions: &Conditions<'_>) -> Result<()> {
    for count in measure(board, image, conditions)? {
        println!(
            "\n{}: {:.0} instructions for each 1,460 bytes ({:.0} of them, {:.1} Mb/s), by function:",
            count.direction,
            count.total(),
            count.segments,
            count.megabits
        );
        for (name, count) in count.by_function.iter().take(SHOWN) {
            println!("{count:>8.1}  {name}");
        }
        println!("frames a segment: {:.2} in, {:.2} out", count.frames.0, count.frames.1);
    }
    if board.emulator.contains(&"-smp") { cores::print_counts(board, image) } else { Ok(()) }
}

/// Counts both directions.
pub fn measure(board: &Board, image: &Path, conditions: &Conditions<'_>) -> Result<Vec<Count>> {
    packages::require(&["iperf3", "curl", "iproute2"])?;
    let functions = functions(image)?;
    let out = path()?;
    let option = plugin(&functions, &out)?;
    let network = Network::in_namespace(board.name)?;
    // Without -icount: with it, a block that reaches for a register of a device is begun twice, and counted so.
    // On one core, so that all is counted as on other boards.
    let more = ["-plugin", &option, "-smp", "1"].map(str::to_owned);
    let mut machine = Machine::start(board, image, &network, &more)?;
    conditions.set(&mut machine)?;
    let mut counts = Vec::new();
    for (direction, args) in [("receiving", &["-n", LEN][..]), ("sending", &["-n", LEN, "-R"][..])] {
        let before = stats(&machine)?;
        machine.console.ask("count on")?;
        let args = [&["-J", "-c", board.address], args].concat();
        let report: Value = serde_json::from_slice(&machine.client("iperf3", &args)?).context("iperf3")?;
        let megabits = report["end"]["sum_received"]["bits_per_second"].as_f64().context("no rate")? / 1e6;
        machine.console.ask("count off")?;
        let after = stats(&machine)?;
        let moved = |name: &str| {
            let value = |stats: &Value| stats["counters"][name].as_u64().unwrap_or_default();
            (value(&after) - value(&before)) as f64
        };
        let segments = moved("tcp_bytes_in").max(moved("tcp_bytes_out")) / SEGMENT;
        ensure!(segments > 1_000.0, "{direction}: {segments} segments");
        let counted = by_function(&out, &functions)?.into_iter().filter(|(name, _)| works(name));
        let mut by_function: Vec<_> = counted.map(|(name, count)| (name, count as f64 / segments)).collect();
        by_function.sort_by(|a, b| b.1.total_cmp(&a.1));
        let frames = (moved("frames_in") / segments, moved("tcp_out") / segments);
        counts.push(Count { direction, segments, by_function, frames, megabits });
    }
    Ok(counts)
}

/// Where the counts are written to.
pub fn path() -> Result<PathBuf> {
    Ok(std::env::current_dir()?.join(OUT).join("counts"))
}

/// Builds the emulator's plugin that counts; the option that loads it.
pub fn plugin(functions: &Functions, out: &Path) -> Result<String> {
    let plugin = Path::new(OUT).join("count.so");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-Wall", "-Wextra", "-fPIC", "-shared", "boards/count/count.c", "-o"]).arg(&plugin);
    shell::run(&mut gcc)?;
    let mark = |name: &str| {
        let found = functions.iter().find(|(_, (_, function))| function == name);
        found.map(|(address, _)| *address).with_context(|| format!("no function {name} in the image"))
    };
    Ok(format!(
        "{},start={:#x},stop={:#x},out={}",
        plugin.canonicalize()?.display(),
        mark("mark_start")?,
        mark("mark_stop")?,
        out.display()
    ))
}

fn stats(machine: &Machine<'_>) -> Result<Value> {
    let url = format!("http://{}/stats", machine.board.address);
    serde_json::from_slice(&machine.client("curl", &["-sSf", "-m", "20", &url])?).context("/stats")
}

/// The functions of an image with their ends and names.
pub fn functions(image: &Path) -> Result<Functions> {
    symbols(image, |symbol| format!("{:#}", rustc_demangle::demangle(symbol)))
}

/// The functions of an image with their ends and what `name` makes of their symbols.
pub fn symbols(image: &Path, name: impl Fn(&str) -> String) -> Result<Functions> {
    let bytes = std::fs::read(image).with_context(|| format!("cannot read {}", image.display()))?;
    let file = object::File::parse(&*bytes)?;
    let text = file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0);
    let entry = |symbol: object::Symbol<'_, '_>| {
        // The lowest bit says that it is Thumb code.
        let start = symbol.address() & !1;
        (start, (start + symbol.size(), name(symbol.name().unwrap_or_default())))
    };
    Ok(text.map(entry).collect())
}

/// The function that an address lies in.
pub fn function_at(functions: &Functions, address: u64) -> Option<&str> {
    let function = functions.range(..=address).next_back().filter(|(_, (end, _))| address < *end);
    function.map(|(_, (_, name))| name.as_str())
}

/// What was counted, by the functions that the blocks lie in.
fn by_function(counts: &Path, functions: &Functions) -> Result<BTreeMap<String, u64>> {
    let mut sums = BTreeMap::new();
    for_each(counts, functions, |name, _, count| *sums.entry(name.to_owned()).or_insert(0) += count)?;
    Ok(sums)
}

/// What was counted, by core, without what runs when nobody has work.
pub fn by_core(counts: &Path, functions: &Functions) -> Result<[u64; CORES]> {
    let mut sums = [0; CORES];
    for_each(counts, functions, |name, core, count| {
        if let Some(sum) = sums.get_mut(core).filter(|_| works(name)) {
            *sum += count;
        }
    })?;
    Ok(sums)
}

/// Whether a function is counted.
fn works(name: &str) -> bool {
    !IDLE.iter().any(|idle| name.starts_with(idle))
}

/// Shows what was counted of each block: its function, the core, and the instructions.
fn for_each(counts: &Path, functions: &Functions, mut visit: impl FnMut(&str, usize, u64)) -> Result<()> {
    let text =
        std::fs::read_to_string(counts).with_context(|| format!("cannot read {}", counts.display()))?;
    for line in text.lines() {
        let mut fields = line.split(' ');
        let mut field = |radix| u64::from_str_radix(fields.next().unwrap_or_default(), radix);
        let (address, instructions, executed, core) = (field(16)?, field(10)?, field(10)?, field(10)?);
        let name = function_at(functions, address).unwrap_or("without a name");
        visit(name, core as usize, instructions * executed);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_a_rate_and_interrupts() {
        let conditions = Conditions::parse(&["wire=100mbit", "pacing=last-interrupt,400,4"]).unwrap();
        assert_eq!(conditions.wire, Some("100mbit"));
        assert_eq!(conditions.pacing.as_deref(), Some("last-interrupt 400 4"));
        for wrong in ["wire", "100mbit", "speed=3"] {
            assert!(Conditions::parse(&[wrong]).is_err_and(|error| error.to_string().contains(wrong)));
        }
    }
}
