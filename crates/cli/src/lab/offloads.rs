//! `linerate lab offloads`: arguments and output.

#[cfg(feature = "rtl")]
mod rtl;

use super::args::Output;
use super::error::{self, LabError};
use crate::iperf3::args::BitRate;
use clap::{Args, ValueEnum};
use linerate_lab::offloads::hardware::{self, Cycles};
use linerate_lab::offloads::plan::{Device, Plan, Rates, Setting};
use linerate_lab::offloads::{Outcome, Switched, boards, page, ready, run, tables};
use linerate_lab::published;
use linerate_lab::report::grid::GridFormat;
use linerate_lab::schema::Record;
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Most queues by default: what `serve` has.
const MOST_QUEUES: usize = 4;

/// Arguments of `lab offloads`.
#[derive(Args, Debug)]
pub struct Offloads {
    /// Devices to measure on; repeatable [default: all that there are; tap with --quick]
    #[arg(long, value_enum, value_name = "DEVICE")]
    pub device: Vec<DeviceName>,

    /// Streams at once; repeatable [default: 1 and 4; with --preset those of the document]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub streams: Vec<u16>,

    /// Rounds; figures are medians [default: 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=99))]
    pub rounds: Option<u16>,

    /// Seconds of each transfer [default: 5; 60 with --preset seed-004]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u16).range(1..=600))]
    pub time: Option<u16>,

    /// Datagrams of all streams together, in bits per second [default: 1G]
    #[arg(long, value_name = "RATE", conflicts_with = "preset")]
    pub udp_rate: Option<BitRate>,

    /// Streams, rates and time of the document's commands; with --streams as many as that, each at the document's rate
    #[arg(long, value_enum, value_name = "PRESET", conflicts_with = "quick")]
    pub preset: Option<Preset>,

    /// Queues and threads for "CSO with RSS" [default: one for each processor, at most 4, at least 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=64))]
    pub queues: Option<u16>,

    /// Who is at the other end: the original, or ours on the host's sockets [default: the original where it is installed]
    #[arg(long, value_enum, value_name = "WHO")]
    pub other_end: Option<OtherEnd>,

    /// Seconds of switching under load on each device, 0 for none [default: 10]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u16).range(0..=600))]
    pub switching: Option<u16>,

    /// What a board measured of itself: a file that `cargo xtask board NAME offloads`, `bench` or `count` wrote; repeatable
    #[arg(long, value_name = "FILE.json")]
    pub board_figures: Vec<PathBuf>,

    /// Write the picture of the processor time for a byte there, of the first device
    #[arg(long, value_name = "FILE.svg")]
    pub svg: Option<PathBuf>,

    /// Seconds instead of minutes: one round on a TAP device, 4 streams, nothing refused
    #[arg(long)]
    pub quick: bool,

    /// Forms of the result.
    #[command(flatten)]
    pub output: Output,
}

/// A device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum DeviceName {
    /// A TAP device
    Tap,
    /// A packet socket on a veth pair
    Packet,
    /// The interface in simulation, in its own clock
    Rtl,
}

/// A set of rates and times.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Preset {
    /// Those of seed 004
    #[value(name = "seed-004")]
    Seed004,
}

/// Who is at the other end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum OtherEnd {
    /// iperf3
    Iperf3,
    /// linerate on kernel sockets
    Linerate,
}

/// What is printed with `--json`.
#[derive(Serialize)]
struct Printed<'a> {
    #[serde(flatten)]
    outcome: &'a Outcome,
    tables: Vec<Value>,
    records: Vec<Record>,
}

/// Measures and prints.
pub fn run_offloads(args: &Offloads) -> Result<(), LabError> {
    let read: Vec<&Path> = args.board_figures.iter().map(PathBuf::as_path).collect();
    error::check_outputs(&read, &[("--svg", args.svg.as_deref()), ("--html", args.output.html.as_deref())])?;
    let plan = plan(args)?;
    let figures: Result<Vec<_>, LabError> = args
        .board_figures
        .iter()
        .map(|path| boards::read(path).map_err(|why| LabError::Asked(format!("{why:#}"))))
        .collect();
    let figures = figures?.into_iter().flatten().collect();
    let published = published::of("004").map_err(|why| LabError::Failed(why.to_string()))?;
    ready(&plan).map_err(|why| LabError::Failed(format!("{why:#}")))?;
    let simulated = on_hardware(args)?;
    let mut outcome = run(&plan).map_err(|why| LabError::Failed(format!("{why:#}")))?;
    outcome.boards = figures;
    outcome.missing = missing(&outcome);
    match simulated {
        Ok(cycles) => outcome.hardware = cycles,
        Err(why) => outcome.missing.push(why),
    }
    if let Some(file) = &args.output.html {
        let html = page::html(&outcome, &published).map_err(|why| LabError::Failed(why.to_string()))?;
        error::write(file, html)?;
    }
    if let Some(file) = &args.svg {
        let device = page::devices(&outcome).into_iter().next();
        let picture = device.and_then(|device| page::pictures(&outcome, device).pop());
        let svg =
            picture.ok_or_else(|| LabError::Failed("nothing was measured that could be drawn".to_owned()))?;
        let svg = svg.standalone().map_err(|why| LabError::Failed(why.to_string()))?;
        error::write(file, svg)?;
    }
    if args.output.json {
        let grids = page::devices(&outcome).into_iter();
        let tables = grids.flat_map(|device| tables::of_device(&outcome, device, &published));
        let tables = tables.map(|grid| grid.json()).collect();
        let printed = Printed { outcome: &outcome, tables, records: outcome.records() };
        error::print(&error::json(&printed)?)?;
        return check_files(&outcome.switching);
    }
    let devices = page::devices(&outcome).into_iter();
    let mut grids: Vec<_> = devices.map(|device| tables::in_short(&outcome, device, &published)).collect();
    grids.extend(tables::switching(&outcome.switching));
    grids.extend(hardware::grid(&outcome.hardware));
    grids.extend(boards::in_short(&outcome.boards));
    grids.extend(boards::grid(&outcome.boards));
    let mut text: String =
        grids.iter().map(|grid| grid.render(GridFormat::Terminal, crate::output::width()) + "\n").collect();
    text.push_str(&outcome.provenance.sentence());
    text.push('\n');
    error::print(&text)?;
    check_files(&outcome.switching)
}

/// Files that differ from what was sent fail the command, once everything is printed.
fn check_files(switching: &[Switched]) -> Result<(), LabError> {
    match switching.iter().map(|one| one.differing).sum::<usize>() {
        0 => Ok(()),
        1 => Err(LabError::Failed(
            "while offloads were switched, a file arrived that differs from what was sent".to_owned(),
        )),
        count => Err(LabError::Failed(format!(
            "while offloads were switched, {count} files arrived that differ from what was sent"
        ))),
    }
}

fn plan(args: &Offloads) -> Result<Plan, LabError> {
    let program = std::env::current_exe()
        .map_err(|why| LabError::Failed(format!("this program's own file cannot be found: {why}")))?;
    let is_seed = args.preset.is_some();
    let devices = match (args.device.is_empty(), args.quick) {
        (true, true) => vec![Device::Tap],
        (true, false) => Device::ALL.to_vec(),
        (false, _) => args.device.iter().copied().filter_map(device).collect(),
    };
    let streams = match (args.streams.is_empty(), args.quick) {
        (true, true) => vec![4],
        (true, false) => vec![1, 4],
        (false, _) => args.streams.clone(),
    };
    let has_original = has_original();
    let original = match args.other_end {
        Some(OtherEnd::Iperf3) if !has_original => {
            return Err(LabError::Asked("--other-end iperf3: iperf3 is not installed".to_owned()));
        }
        Some(other) => other == OtherEnd::Iperf3,
        None => has_original,
    };
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let queues = u16::try_from(processors.clamp(2, MOST_QUEUES)).unwrap_or(2);
    let usual_time = if is_seed { 60 } else { 5 };
    let seconds = |given: Option<u16>, quick: u16, usual: u16| {
        Duration::from_secs(given.unwrap_or(if args.quick { quick } else { usual }).into())
    };
    Ok(Plan {
        program,
        devices,
        workloads: match is_seed && args.streams.is_empty() {
            true => Plan::seed_workloads(),
            false => Plan::workloads(&streams),
        },
        settings: Setting::ALL.to_vec(),
        rounds: args.rounds.unwrap_or(if args.quick { 1 } else { 5 }).into(),
        time: seconds(args.time, 1, usual_time),
        rates: match is_seed {
            true => Rates::Seed,
            false => Rates::Udp(args.udp_rate.map_or(1_000_000_000, |rate| rate.0)),
        },
        queues: args.queues.unwrap_or(queues),
        original,
        switching: seconds(args.switching, 2, 10),
        refuses: !args.quick,
    })
}

fn has_original() -> bool {
    linerate_lab::offloads::has_original()
}

fn device(name: DeviceName) -> Option<Device> {
    match name {
        DeviceName::Tap => Some(Device::Tap),
        DeviceName::Packet => Some(Device::Packet),
        DeviceName::Rtl => None,
    }
}

/// The interface in simulation, where it was asked for or is there; else a word on why it is not.
fn on_hardware(args: &Offloads) -> Result<Result<Vec<Cycles>, String>, LabError> {
    let is_asked = args.device.contains(&DeviceName::Rtl);
    if !is_asked && (args.quick || !args.device.is_empty()) {
        return Ok(Err("The interface in simulation: not asked for (--device rtl).".to_owned()));
    }
    if let Some(why) = no_simulation() {
        return match is_asked {
            true => Err(LabError::Failed(why)),
            false => Ok(Err(format!("The interface in simulation: {why}."))),
        };
    }
    simulate(args.quick).map(Ok).map_err(LabError::Failed)
}

#[cfg(not(feature = "rtl"))]
fn no_simulation() -> Option<String> {
    Some("built without it: `cargo xtask rtl setup`, then build with `--features rtl`".to_owned())
}

#[cfg(not(feature = "rtl"))]
fn simulate(_quick: bool) -> Result<Vec<Cycles>, String> {
    Ok(Vec::new())
}

#[cfg(feature = "rtl")]
fn no_simulation() -> Option<String> {
    (!linerate_rtl_sim::is_available()).then(|| linerate_rtl_sim::Unavailable::NoVerilator.to_string())
}

/// Every use case with each setting that one queue has.
#[cfg(feature = "rtl")]
fn simulate(quick: bool) -> Result<Vec<Cycles>, String> {
    use linerate_lab::offloads::plan::{Direction, Protocol};
    let len = if quick { 200_000 } else { 2_000_000 };
    let settings = [Setting::Off, Setting::Checksum, Setting::Segmentation, Setting::Coalescing];
    let mut progress = linerate_lab::progress::Progress::new("offloads", 4 * settings.len() as u64);
    let mut all = Vec::new();
    for protocol in [Protocol::Udp, Protocol::Tcp] {
        for direction in [Direction::Rx, Direction::Tx] {
            for setting in settings {
                progress.begin(&format!("simulation: {protocol:?} {direction:?}, {}", setting.title()));
                all.push(rtl::transfer(protocol, direction, setting, len)?);
                progress.done(1);
            }
        }
    }
    Ok(all)
}

/// What a reader might look for in vain.
fn missing(outcome: &Outcome) -> Vec<String> {
    let mut missing = vec![
        "Sending with RSS: the client sends from one queue; the document's design has one queue for sending, too."
            .to_owned(),
    ];
    if outcome.boards.is_empty() {
        missing.push(
            "Boards: no file of their measurements was named (--board-figures target/boards/bench.json)."
                .to_owned(),
        );
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_differ_fail_the_command() {
        let one = |differing| Switched {
            device: Device::Tap,
            switches: 20,
            downloads: 9,
            uploads: 8,
            bytes: 17 << 25,
            differing,
            most_within: 6,
        };
        assert!(check_files(&[]).is_ok() && check_files(&[one(0)]).is_ok());
        let error = check_files(&[one(0), one(2)]).unwrap_err().to_string();
        assert!(error.contains("2 files"), "{error}");
    }
}
