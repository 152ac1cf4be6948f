//! Measures all tables that are asked for, calibrates the chip from half of the cells, and predicts the others.

use super::caches::{self, Cache};
use super::calibrate::{self, Known, NEEDED};
use super::curve::Plateau;
use super::measure::bench::{Bench, Crowd};
use super::measure::cores;
use super::measure::packets::{self, Veth, Way};
use super::measure::pages::{Pages, large_bytes};
use super::measure::sample::{Effort, Sampled};
use super::plan::{Asked, Part, Scope};
use super::table::{Accuracy, Table, accuracy};
use crate::measure::provenance::Provenance;
use crate::progress::Progress;
use linerate_fabric::ask::{self, Transfer};
use linerate_fabric::hierarchy::Question;
use linerate_fabric::soc;
use serde::Serialize;
use std::fmt;
use std::path::Path;

/// What is asked for.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Options {
    /// Whether a look of seconds is enough.
    pub quick: bool,
    /// The tables; all when empty.
    pub only: Vec<Part>,
    /// Whether there has to be a chip in the end.
    pub chip: bool,
}

/// Why there is no guide.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GuideError {
    /// What was asked for cannot be.
    Asked(String),
    /// The machine does not let it be measured.
    Failed(String),
}

impl fmt::Display for GuideError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GuideError::Asked(why) | GuideError::Failed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for GuideError {}

/// The accuracy of one table.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct OfTable {
    /// Which.
    pub part: Part,
    /// How well its cells were predicted.
    pub accuracy: Accuracy,
}

/// A guide of the machine.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Guide {
    /// Machine, command, date.
    pub provenance: Provenance,
    /// The cores that were used.
    pub cores: Vec<usize>,
    /// Nanoseconds of a cycle of the core.
    pub cycle: Sampled,
    /// The caches that the system tells of.
    pub caches: Vec<Cache>,
    /// The levels that the curve of latency shows: bytes and cycles.
    pub levels: Vec<Plateau>,
    /// The pages of the measured memory.
    pub pages: Pages,
    /// The tables.
    pub tables: Vec<Table>,
    /// The chip as a file, from half of the cells.
    pub chip: Option<String>,
    /// How well the other half was predicted.
    pub accuracy: Option<Accuracy>,
    /// The same by table.
    pub by_table: Vec<OfTable>,
    /// What a reader has to know of this run.
    pub notes: Vec<String>,
}

/// The largest working sets, in bytes.
const MOST: u64 = 256 << 20;
/// The least beyond all caches: so many times the largest.
const BEYOND: u64 = 4;
/// A quick look goes no further.
const MOST_QUICK: u64 = 8 << 20;

/// Measures.
///
/// # Errors
/// See [`GuideError`].
pub fn run(options: &Options) -> Result<Guide, GuideError> {
    let parts: Vec<Part> =
        Part::ALL.into_iter().filter(|part| options.only.is_empty() || options.only.contains(part)).collect();
    let lacking: Vec<Part> = NEEDED.into_iter().filter(|part| !parts.contains(part)).collect();
    if options.chip && !lacking.is_empty() {
        let lacking = calibrate::names(&lacking);
        return Err(GuideError::Asked(format!(
            "a chip or a guide as a file takes the tables {lacking} too; expected them in --only, or no --only"
        )));
    }
    let caches = caches::read(Path::new(caches::FOLDER));
    let allowed = cores::allowed();
    let mut notes = Vec::new();
    let largest = caches.iter().map(|cache| cache.bytes).max().unwrap_or(32 << 20);
    let available = available_bytes();
    let most = match options.quick {
        true => MOST_QUICK,
        false => MOST.max((largest * BEYOND).next_power_of_two()),
    };
    // Two blocks each, and as much again for everybody else.
    let fitting = |most: u64, blocks: u64| {
        let room = (available / 2 / blocks).max(1 << 20);
        if most > room { (room / 2 + 1).next_power_of_two() } else { most }
    };
    let veth = if parts.contains(&Part::Packets) { veth(&mut notes) } else { None };
    let scope = Scope {
        most: fitting(most, 2),
        most_together: fitting(most.min(128 << 20), 2 * allowed.len() as u64),
        quick: options.quick,
        cores: allowed.len(),
        veth: veth.is_some(),
    };
    if scope.most < most {
        notes.push(format!("Working sets end at {} MiB: no more memory is free.", scope.most >> 20));
    }
    let effort = if options.quick { Effort::QUICK } else { Effort::FULL };
    let measured = std::thread::scope(|threads| {
        // A thread of its own, so that it alone keeps to a core.
        threads.spawn(|| measure(&parts, &scope, effort, &allowed, veth.as_ref())).join()
    });
    let measured = measured.map_err(|_| GuideError::Failed("the thread that measures failed".into()))??;
    notes.extend(measured.notes);
    let mut guide = Guide {
        provenance: Provenance::now(effort.samples),
        cores: allowed,
        cycle: measured.cycle,
        levels: calibrate::levels(&measured.tables, false),
        caches,
        pages: measured.pages,
        tables: measured.tables,
        chip: None,
        accuracy: None,
        by_table: Vec::new(),
        notes,
    };
    if lacking.is_empty() {
        guide.predict(options.chip)?;
    } else {
        guide.notes.push(format!(
            "Nothing is predicted: a chip takes the tables {} too.",
            calibrate::names(&lacking)
        ));
    }
    Ok(guide)
}

/// A pair of devices where the user may make one.
fn veth(notes: &mut Vec<String>) -> Option<Veth> {
    match Veth::new() {
        Ok(veth) => Some(veth),
        Err(error) => {
            notes.push(format!("No packets over virtual Ethernet: {error} (it takes root and iproute2)."));
            None
        }
    }
}

/// Bytes that the system can give without pushing others out.
fn available_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.map_or(1 << 30, |kib| kib * 1024)
}

/// What was measured.
struct Measured {
    cycle: Sampled,
    pages: Pages,
    tables: Vec<Table>,
    notes: Vec<String>,
}

fn measure(
    parts: &[Part],
    scope: &Scope,
    effort: Effort,
    allowed: &[usize],
    veth: Option<&Veth>,
) -> Result<Measured, GuideError> {
    let mut notes = Vec::new();
    // The first core has the interrupts of most machines.
    let mut core = allowed.last().copied();
    if let Some(Err(error)) = core.map(cores::keep_to) {
        notes.push(format!("{error}: the figures of one core may be of several."));
        core = None;
    }
    let before = large_bytes();
    let memory = parts.iter().any(|part| *part != Part::Packets);
    let most = if memory { scope.most } else { 1 << 20 };
    let mut bench = Bench::new(usize::try_from(most).unwrap_or(usize::MAX), core, effort);
    let pages = Pages::of(2 * most, before, large_bytes());
    if !bench.tells() {
        notes.push("The system does not tell when a thread waits: disturbed samples are not seen.".into());
    }
    if allowed.len() == 1 && parts.contains(&Part::Threads) {
        notes.push("One core: no contention to be measured.".into());
    }
    let cycle = bench.cycle();
    let plans: Vec<_> = parts.iter().map(|part| scope.table(*part)).collect();
    let steps = plans.iter().map(|plan| plan.rows.len() as u64).sum();
    let mut progress = Progress::new("guide", steps);
    let mut crowd: Option<Crowd> = None;
    let mut tables = Vec::new();
    for plan in plans {
        let part = plan.part;
        if part == Part::Threads {
            let most = usize::try_from(scope.most_together).unwrap_or(usize::MAX);
            crowd = Some(Crowd::new(most, allowed, effort));
        }
        let ask = |asked: &Asked| match (asked.packet, &mut crowd) {
            (Some((way, bytes)), _) => packet(way, bytes, effort, veth),
            (None, Some(crowd)) => crowd.ask(question(asked)?).map_err(GuideError::Failed),
            (None, None) => Ok(bench.ask(question(asked)?, asked.backwards)),
        };
        let mut first = true;
        let step = |row: &str| {
            if !std::mem::replace(&mut first, false) {
                progress.done(1);
            }
            progress.begin(&format!("{part}, {row}"));
        };
        tables.push(Table::fill(plan, cycle.ns, ask, step)?);
        progress.done(1);
        crowd = None;
    }
    Ok(Measured { cycle, pages, tables, notes })
}

fn packet(way: Way, bytes: usize, effort: Effort, veth: Option<&Veth>) -> Result<Sampled, GuideError> {
    let found = match (way, veth) {
        (Way::UdpVeth, Some(veth)) => veth.ask(bytes, effort),
        _ => packets::ask(way, bytes, effort),
    };
    found.map_err(|error| GuideError::Failed(format!("{}, packets of {bytes} B: {error}", way.title())))
}

/// What a cell asks of a core.
fn question(asked: &Asked) -> Result<Question, GuideError> {
    match asked.transfer.parse() {
        Ok(Transfer::Set { question, .. }) => Ok(question),
        Ok(_) | Err(_) => {
            Err(GuideError::Failed(format!("{}: expected loads or stores of a core", asked.transfer)))
        }
    }
}

impl Guide {
    /// The chip from the cells that calibrate, and what it says of all.
    fn predict(&mut self, needed: bool) -> Result<(), GuideError> {
        let title = self.provenance.machine.get("processor").cloned().unwrap_or_default();
        let known = Known {
            title: format!("{title}, as linerate lab guide measured it on {}", self.provenance.date),
            cycle_ns: self.cycle.ns,
            cores: self.cores.len(),
            page: self.pages.page_bytes,
            caches: self.caches.clone(),
        };
        let text = match calibrate::chip(&self.tables, &known) {
            Ok(text) => text,
            Err(why) if needed => return Err(GuideError::Failed(why)),
            Err(why) => {
                self.notes.push(format!("No chip: {why}."));
                return Ok(());
            }
        };
        let chip = soc::load(&text).map_err(|error| GuideError::Failed(error.to_string()))?;
        for table in &mut self.tables {
            for point in table.rows.iter_mut().flat_map(|(_, points)| points.iter_mut().flatten()) {
                point.predicted = ask::answer(&chip, &point.asked.transfer).ok().map(|found| found.predicted);
            }
        }
        self.by_table = self
            .tables
            .iter()
            .filter_map(|table| Some(OfTable { part: table.part, accuracy: accuracy(&table.errors())? }))
            .collect();
        self.accuracy = accuracy(&self.tables.iter().flat_map(Table::errors).collect::<Vec<_>>());
        self.chip = Some(format!("{}\n{text}", self.head()));
        Ok(())
    }

    /// What stands at the head of a file that is written.
    pub fn head(&self) -> String {
        let unstable =
            self.tables.iter().flat_map(Table::points).filter(|point| !point.sampled.stable).count();
        let all = self.tables.iter().flat_map(Table::points).count();
        format!(
            "# Measured by: {}\n# Of {all} figures {unstable} did not settle. Every other cell calibrated this file; the rest were predicted.\n\
             # Cycles are of the clock as it ran; times of a memory do not follow that clock.\n",
            self.provenance.sentence()
        )
    }
}
