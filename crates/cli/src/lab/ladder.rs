//! `linerate lab ladder`: arguments and output.

use super::args::Output;
use super::error::{self, LabError};
use clap::{Args, ValueEnum};
use linerate_lab::ladder::board::FILES;
use linerate_lab::ladder::climb::{self, Climb};
use linerate_lab::ladder::constants::{Constants, Whose};
use linerate_lab::ladder::linux::Form;
use linerate_lab::ladder::report::Report;
use linerate_lab::ladder::rungs::Rung;
use linerate_lab::ladder::state::Direction;
use linerate_lab::ladder::{board, linux, waterfall};
use linerate_lab::measure::device::Device;
use linerate_lab::measure::provenance::Provenance;
use linerate_lab::progress::Progress;
use linerate_lab::schema::Record;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Bytes of a transfer on a Linux device, in the full form and in the short one.
const BYTES: [u64; 2] = [1 << 30, 16 << 20];

/// Arguments of `lab ladder`.
#[derive(Args, Debug)]
pub struct Ladder {
    /// Where to climb; repeatable
    #[arg(long, value_enum, value_name = "PLACE", default_values_t = [Place::Simulator])]
    on: Vec<Place>,

    /// Devices to measure on, with --on linux; repeatable [default: tap]
    #[arg(long, value_enum, value_name = "DEVICE")]
    device: Vec<Device>,

    /// Whose work the simulator's processor does; both if not given
    #[arg(long, value_enum, value_name = "WHOSE")]
    processor: Option<Whose>,

    /// Only this rung, and the one that it is changed from; repeatable
    #[arg(long, value_name = "NAME")]
    rung: Vec<String>,

    /// Name the rungs and do nothing
    #[arg(long)]
    list: bool,

    /// The short form: on a Linux device one round of little data
    #[arg(long)]
    quick: bool,

    /// Rounds on a Linux device [default: 5, of which one is looked at and not counted]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=100))]
    rounds: Option<u16>,

    /// Figures of the board as `cargo xtask board virt-a15 bench` writes them; IMAGE is `offloads` or `software`; repeatable [default:
    /// offloads=target/boards/bench.json and software=target/boards/bench-software.json]
    #[arg(long, value_name = "IMAGE=FILE", value_parser = image)]
    board_figures: Vec<(String, PathBuf)>,

    /// Write the picture of the server's sending side there, in the first place
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,

    #[command(flatten)]
    output: Output,
}

/// Where the ladder stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum)]
enum Place {
    /// In virtual time.
    Simulator,
    /// On devices of this machine in namespaces, as root.
    Linux,
    /// On the emulated Cortex-A15, from figures that were counted before.
    Board,
}

fn image(text: &str) -> Result<(String, PathBuf), String> {
    let expected = "expected IMAGE=FILE, with IMAGE offloads or software";
    let (image, file) = text.split_once('=').ok_or(expected)?;
    if !FILES.iter().any(|(name, _)| *name == image) {
        return Err(expected.to_owned());
    }
    Ok((image.to_owned(), file.into()))
}

/// Climbs and prints.
pub fn run(args: &Ladder) -> Result<(), LabError> {
    let constants = Constants::load().map_err(LabError::Failed)?;
    if args.list {
        return list(args);
    }
    let read: Vec<&Path> = args.board_figures.iter().map(|(_, file)| file.as_path()).collect();
    error::check_outputs(&read, &[("--svg", args.svg.as_deref()), ("--html", args.output.html.as_deref())])?;
    let places: BTreeSet<Place> = args.on.iter().copied().collect();
    if !args.device.is_empty() && !places.contains(&Place::Linux) {
        return Err(LabError::Asked("--device needs --on linux: no other place has devices".to_owned()));
    }
    let figures = linerate_lab::published::of("000").map_err(|why| LabError::Failed(why.to_string()))?;
    let mut climbs = Vec::new();
    for place in places {
        match place {
            Place::Simulator => climbs.extend(simulator(args, &constants, &figures)?),
            Place::Linux => climbs.extend(on_linux(args, &figures)?),
            Place::Board => climbs.push(on_board(args, &constants, &figures)?),
        }
    }
    if climbs.iter().all(|climb| climb.rows.is_empty()) {
        let left_out = climbs.iter().flat_map(|climb| &climb.left_out);
        let why: Vec<String> = left_out.map(|(what, why)| format!("{what}: {why}")).collect();
        return Err(LabError::Failed(format!("there is no rung with a figure: {}", why.join("; "))));
    }
    // What is not measured on this machine is the same in every round.
    let rounds = if args.on.contains(&Place::Linux) { rounds(args) } else { 1 };
    let report = Report::new(climbs, Provenance::now(rounds));
    if let Some(file) = &args.svg {
        let first = report.climbs.first();
        let svg = first.and_then(|climb| waterfall::svg(climb, Direction::Sending));
        let svg = svg.ok_or_else(|| LabError::Asked("there is no rung to draw".to_owned()))?;
        error::write(file, waterfall::standalone(&svg))?;
    }
    if let Some(file) = &args.output.html {
        error::write(file, report.html(&constants).map_err(LabError::Failed)?)?;
    }
    error::print(&if args.output.json { error::json(&report)? } else { report.text(crate::output::width()) })
}

fn rounds(args: &Ladder) -> usize {
    args.rounds.map_or(if args.quick { 1 } else { 5 }, usize::from)
}

/// The rungs that were asked for on the simulator, each with the one that it is changed from.
fn chosen(args: &Ladder) -> Result<Vec<Rung>, LabError> {
    let mut names = args.rung.clone();
    for rung in climb::choose(&args.rung).map_err(LabError::Asked)? {
        names.extend(rung.from.filter(|_| !args.rung.is_empty()).map(str::to_owned));
    }
    climb::choose(&names).map_err(LabError::Asked)
}

fn simulator(args: &Ladder, constants: &Constants, figures: &[Record]) -> Result<Vec<Climb>, LabError> {
    let rungs = chosen(args)?;
    let whose = args.processor.map_or_else(|| vec![Whose::Document, Whose::Counted], |whose| vec![whose]);
    let mut progress = Progress::new("ladder", (rungs.len() * whose.len()) as u64);
    whose
        .into_iter()
        .map(|whose| climb::simulate(&rungs, whose, constants, figures, &mut progress))
        .collect::<Result<_, _>>()
        .map_err(LabError::Failed)
}

fn on_linux(args: &Ladder, figures: &[Record]) -> Result<Vec<Climb>, LabError> {
    let forms = linux::forms();
    let known: Vec<&str> = forms.iter().map(|form| form.name).collect();
    if let Some(unknown) = args.rung.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(LabError::Asked(format!(
            "no rung {unknown:?} on a Linux device; expected one of {}",
            known.join(", ")
        )));
    }
    let program = std::env::current_exe()
        .map_err(|why| LabError::Failed(format!("cannot find this program's file: {why}")))?;
    let devices = devices(&args.device);
    linux::ready(&devices).map_err(|why| LabError::Failed(format!("{why:#}")))?;
    let names = with_origins(&forms, &args.rung);
    let count = if names.is_empty() { known.len() } else { names.len() };
    let each = count * rounds(args) + linux::trials(&names);
    let mut progress = Progress::new("ladder", (each * devices.len()) as u64);
    let bytes = BYTES[usize::from(args.quick)];
    let climb = |device| {
        let settings = linux::Settings { program: program.clone(), device, rounds: rounds(args), bytes };
        linux::climb(&settings, &names, figures, &mut progress)
            .map_err(|why| LabError::Failed(format!("{why:#}")))
    };
    devices.into_iter().map(climb).collect()
}

/// These rungs and those that they are changed from, each once; none for all.
fn with_origins(forms: &[Form], named: &[String]) -> Vec<String> {
    let is_named = |name: &str| named.iter().any(|other| other == name);
    let is_origin = |name: &str| forms.iter().any(|form| is_named(form.name) && form.from == Some(name));
    let chosen = forms.iter().filter(|form| is_named(form.name) || is_origin(form.name));
    chosen.map(|form| form.name.to_owned()).collect()
}

/// Each device once, in the order in which they were named.
fn devices(named: &[Device]) -> Vec<Device> {
    let mut devices = Vec::new();
    for device in named {
        if !devices.contains(device) {
            devices.push(*device);
        }
    }
    if devices.is_empty() { vec![Device::Tap] } else { devices }
}

fn on_board(args: &Ladder, constants: &Constants, figures: &[Record]) -> Result<Climb, LabError> {
    let default = || FILES.map(|(image, file)| (image.to_owned(), PathBuf::from(file))).to_vec();
    let files = if args.board_figures.is_empty() { default() } else { args.board_figures.clone() };
    board::read(&files, constants, figures).map_err(LabError::Asked)
}

/// The rungs by place, one a line.
fn list(args: &Ladder) -> Result<(), LabError> {
    use std::fmt::Write as _;
    let mut text = String::new();
    for rung in chosen(args)? {
        let from = rung.from.map_or(String::new(), |from| format!(", from {from}"));
        // Writing into a string never fails.
        let _ = writeln!(text, "{:<22} {}{from}", rung.name, rung.title);
    }
    text.push_str("\non a Linux device:\n");
    for form in linux::forms() {
        let from = form.from.map_or(String::new(), |from| format!(", from {from}"));
        let _ = writeln!(text, "{:<22} {}{from}", form.name, form.title);
    }
    error::print(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rungs_come_with_what_they_are_changed_from() {
        let check = |named: &[&str], expected: &[&str]| {
            let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(with_origins(&linux::forms(), &named), expected);
        };
        check(&[], &[]);
        check(&["as-ported", "as-ported"], &["as-ported"]);
        check(&["rx-jumbo", "jumbo"], &["checksum-offload", "jumbo", "rx-checksum-offload", "rx-jumbo"]);
        check(&["mss-writes", "as-ported"], &["as-ported", "mss-writes"]);
    }

    #[test]
    fn each_device_is_measured_once() {
        assert_eq!(devices(&[]), [Device::Tap]);
        assert_eq!(devices(&[Device::Packet]), [Device::Packet]);
        let twice = [Device::Packet, Device::Tap, Device::Packet];
        assert_eq!(devices(&twice), [Device::Packet, Device::Tap]);
    }
}
