//! The chip from half of the cells: levels that are seen first, then each group of parameters from the tables that show it.

use super::caches::Cache;
use super::chip::{Port, Start, StartLevel, rounded};
use super::curve::{Plateau, plateaus};
use super::measure::packets::Way;
use super::plan::{CORE, Part};
use super::table::{Point, Table};
use linerate_fabric::fit::{self, Measurement};
use linerate_fabric::model::tables::TRANSFER;
use linerate_fabric::predict::{Calibrate, FreeParameter, Prediction, TableModel};
use linerate_fabric::soc::{self, Soc};

/// What is known of the machine besides its figures.
#[derive(Clone, PartialEq, Debug)]
pub struct Known {
    /// Its name.
    pub title: String,
    /// Nanoseconds of a cycle.
    pub cycle_ns: f64,
    /// How many cores.
    pub cores: usize,
    /// Bytes of a page.
    pub page: u64,
    /// The caches that the system tells of.
    pub caches: Vec<Cache>,
}

/// The tables without which there is no chip.
pub const NEEDED: [Part; 7] =
    [Part::Latency, Part::Pages, Part::Copy, Part::Elements, Part::Alignment, Part::Pattern, Part::Banks];

/// Whether a parameter of this name moves.
type Moves<'a> = &'a dyn Fn(&str) -> bool;

/// The text of the chip file, from the cells that calibrate.
///
/// # Errors
/// Tables that are missing, or in which no level is to be seen.
pub fn chip(tables: &[Table], known: &Known) -> Result<String, String> {
    for part in NEEDED {
        if tables.iter().all(|table| table.part != part) {
            return Err(format!("a chip takes table '{part}'; expected all of {}", names(&NEEDED)));
        }
    }
    let mut soc = hierarchy(tables, known)?;
    let of = |part: &str, ends: &[&str], name: &str| {
        name.starts_with(&format!("cores.{CORE}.{part}")) && ends.iter().any(|end| name.ends_with(end))
    };
    let stages: [(&[Part], Moves<'_>); 6] = [
        (&[Part::Copy], &|name| {
            of("levels", &[".read", ".fill", ".copy"], name)
                || of("loops", &[".read", ".fill", ".copy"], name)
        }),
        (&[Part::Elements], &|name| of("loops", &["element"], name)),
        (&[Part::Alignment], &|name| of("loops", &["_split"], name)),
        (&[Part::Banks, Part::Pattern], &|name| of("levels", &["per_line", "per_conflict"], name)),
        (&[Part::Pattern], &|name| {
            of("outstanding", &[""], name) || of("loops", &["gather", "scatter"], name)
        }),
        (&[Part::Threads], &|name| of("levels", &["_all"], name)),
    ];
    for (parts, moves) in stages {
        soc = stage(soc, tables, parts, moves)?;
    }
    let values: Vec<f64> = soc.free().iter().map(|one| rounded(one.value)).collect();
    let soc = soc.with_free(&values);
    let mut text = soc.text()?;
    for way in Way::ALL {
        let seen = packets(tables, way);
        if let Some(port) = Port::of(way.port(), &seen) {
            text.push_str(&port.text(1e9 / known.cycle_ns, 65_536));
        }
    }
    soc::load(&text).map_err(|error| format!("the chip that was found does not load: {error}"))?;
    Ok(text)
}

/// Names with commas.
pub fn names(parts: &[Part]) -> String {
    parts.iter().map(|part| part.name()).collect::<Vec<_>>().join(", ")
}

/// Packets of a way that calibrate: bytes and nanoseconds.
fn packets(tables: &[Table], way: Way) -> Vec<(f64, f64)> {
    let points = tables.iter().filter(|table| table.part == Part::Packets).flat_map(Table::points);
    points
        .filter(|point| point.calibrates)
        .filter_map(|point| {
            let (own, bytes) = point.asked.packet?;
            (own == way).then_some((bytes as f64, point.sampled.ns))
        })
        .collect()
}

/// The cells of some tables that calibrate, as measurements.
fn data(tables: &[Table], parts: &[Part]) -> Vec<Measurement> {
    let points = tables.iter().filter(|table| parts.contains(&table.part)).flat_map(Table::points);
    let own =
        points.filter(|point| point.calibrates && !point.asked.backwards && point.asked.packet.is_none());
    own.enumerate().map(|(at, point)| measurement(point, at + 1)).collect()
}

/// What scatters more counts less.
fn measurement(point: &Point, line: usize) -> Measurement {
    Measurement {
        table: TRANSFER.to_owned(),
        row: point.asked.transfer.clone(),
        column: 1,
        value: point.value,
        error: Some((point.spread / 2.0).clamp(0.03, 0.5)),
        line,
    }
}

/// A chip of which some parameters move.
#[derive(Clone)]
struct Moving<'a> {
    soc: Soc,
    moves: Moves<'a>,
}

impl TableModel for Moving<'_> {
    fn cell(&self, table: &str, row: &str, column: usize) -> Option<Prediction> {
        self.soc.cell(table, row, column)
    }
}

impl Calibrate for Moving<'_> {
    fn free(&self) -> Vec<FreeParameter> {
        self.soc.free().into_iter().filter(|one| (self.moves)(&one.name)).collect()
    }

    fn with_free(&self, values: &[f64]) -> Self {
        let mut given = values.iter();
        let own = |one: FreeParameter| match (self.moves)(&one.name) {
            true => given.next().copied().unwrap_or(one.value),
            false => one.value,
        };
        let all: Vec<f64> = self.soc.free().into_iter().map(own).collect();
        Moving { soc: self.soc.with_free(&all), moves: self.moves }
    }
}

/// Calibrates some parameters from some tables.
fn stage(soc: Soc, tables: &[Table], parts: &[Part], moves: Moves<'_>) -> Result<Soc, String> {
    let data = data(tables, parts);
    if data.is_empty() {
        return Ok(soc);
    }
    let fitted = fit::calibrate(&Moving { soc, moves }, &data).map_err(|error| error.to_string())?;
    Ok(fitted.soc)
}

/// The sum of squares that a calibration leaves.
fn misfit(soc: &Soc, data: &[Measurement]) -> f64 {
    let error = |one: &Measurement| {
        let found = soc.figure(&one.table, &one.row, one.column).unwrap_or(f64::INFINITY);
        ((found / one.value - 1.0) / one.error.unwrap_or(0.03)).powi(2).min(400.0)
    };
    data.iter().map(error).sum()
}

/// Entries and cycles of translation buffers to start from; what is found depends little on it.
const TLBS: [&[(f64, f64)]; 5] = [
    &[(64.0, 7.0), (1536.0, 40.0)],
    &[(96.0, 7.0), (4096.0, 60.0)],
    &[(48.0, 7.0), (1024.0, 40.0)],
    &[(2000.0, 40.0)],
    &[],
];

/// Levels, sizes, latencies and translation.
fn hierarchy(tables: &[Table], known: &Known) -> Result<Soc, String> {
    let seen = levels(tables, true);
    if seen.len() < 2 {
        return Err(format!("{} level of memory to be seen; expected two at least: more sizes", seen.len()));
    }
    let mut start = first(tables, known, &seen);
    let moves = |name: &str| {
        let own = |part: &str| name.starts_with(&format!("cores.{CORE}.{part}."));
        own("reads")
            || own("tlbs")
            || (own("levels") && [".size", ".unevenness", ".conflict"].iter().any(|end| name.ends_with(end)))
    };
    let whole = data(tables, &[Part::Latency, Part::Pages]);
    let mut best: Option<(f64, Start, Soc)> = None;
    for tlbs in TLBS {
        start.tlbs = tlbs.to_vec();
        let soc = stage(start.chip()?, tables, &[Part::Latency, Part::Pages], &moves)?;
        let own = misfit(&soc, &whole);
        if best.as_ref().is_none_or(|(least, ..)| own < *least) {
            best = Some((own, start.clone(), soc));
        }
    }
    let (mut least, mut start, mut soc) = best.ok_or("no way to calibrate")?;
    // Whether a miss of a level brings one line or two.
    for at in 1..start.levels.len().saturating_sub(1) {
        let mut other = start.clone();
        other.levels[at].fetch = known_line(known) * 2;
        let found = stage(other.chip()?, tables, &[Part::Latency, Part::Pages], &moves)?;
        let own = misfit(&found, &whole);
        if own < least {
            (least, start, soc) = (own, other, found);
        }
    }
    Ok(soc)
}

fn known_line(known: &Known) -> u64 {
    known.caches.first().map_or(64, |cache| cache.line_bytes)
}

/// The levels that a curve of latency shows: of the cells that calibrate, or of all.
///
/// The curve is that of strides of a few lines: nearer ones find their line brought by a neighbour, further ones share sets.
pub fn levels(tables: &[Table], calibrating: bool) -> Vec<Plateau> {
    let Some(table) = tables.iter().find(|table| table.part == Part::Latency) else { return Vec::new() };
    // The nearest alone where a look measures no other.
    let wanted: [&[&str]; 2] = [&["128 B apart", "256 B apart"], &["64 B apart"]];
    let mut points = Vec::new();
    for (_, row) in &table.rows {
        let best = |names: &[&str]| {
            let own =
                table.columns.iter().zip(row).filter(|(column, _)| names.contains(&column.heading.as_str()));
            let own =
                own.filter_map(|(_, point)| point.as_ref()).filter(|point| point.calibrates || !calibrating);
            own.min_by(|a, b| a.value.total_cmp(&b.value)).map(|point| (size_of(point), point.value))
        };
        points.extend(wanted.into_iter().find_map(best));
    }
    plateaus(&points)
}

/// The working set of a point, from its text: the third part.
pub fn size_of(point: &Point) -> f64 {
    let mut parts = point.asked.transfer.split([':', ',']);
    let number = |part: Option<&str>| part.and_then(|text| text.parse::<f64>().ok());
    number(parts.clone().nth(2)).or_else(|| number(parts.nth(3))).unwrap_or(0.0)
}

/// A first description from what is seen.
fn first(tables: &[Table], known: &Known, seen: &[Plateau]) -> Start {
    let line = known_line(known);
    let level = |at: usize| {
        let one = &seen[at];
        let size = if at + 1 < seen.len() { one.ends } else { None };
        let below = if at == 0 { 0.0 } else { seen[at - 1].ends.unwrap_or(0.0) };
        let rates =
            ["read", "fill", "copy"].map(|what| rate(tables, what, below, size.unwrap_or(f64::INFINITY)));
        StartLevel { size, fetch: line, latency: one.latency, shared_by: sharers(known, size), rates }
    };
    Start {
        title: known.title.clone(),
        clock_hz: 1e9 / known.cycle_ns,
        cores: known.cores,
        line,
        page: known.page,
        levels: (0..seen.len()).map(level).collect(),
        tlbs: Vec::new(),
    }
}

/// How many of the cores share the level of this size, by what the system tells of the cache that is nearest to it in size.
fn sharers(known: &Known, size: Option<f64>) -> u32 {
    let Some(size) = size else { return u32::try_from(known.cores).unwrap_or(1) };
    let far = |cache: &&Cache| ((cache.bytes as f64 / size).ln().abs() * 1e6) as u64;
    let nearest = known.caches.iter().min_by_key(far);
    nearest.map_or(1, |cache| cache.shared_by.min(known.cores as u32)).max(1)
}

/// The median rate of the calibrating cells whose size lies well in a level, or nearest to it.
fn rate(tables: &[Table], what: &str, below: f64, size: f64) -> f64 {
    let table = tables.iter().find(|table| table.part == Part::Copy);
    let points = table.into_iter().flat_map(Table::points_by_column);
    let own: Vec<(f64, f64)> = points
        .filter(|(column, point)| column.heading == what && point.calibrates)
        .map(|(_, point)| (size_of(point), point.value))
        .collect();
    let within =
        own.iter().filter(|(bytes, _)| *bytes > below * 1.5 && *bytes < size * 0.7).map(|(_, rate)| *rate);
    let median = crate::measure::statistics::spread(within).map(|spread| spread.median);
    // A small level may have no cell of its own: then the nearest one.
    let middle = if size.is_finite() { size / 2.0 } else { below * 4.0 };
    let far = |one: &&(f64, f64)| ((one.0 / middle.max(1.0)).ln().abs() * 1e6) as u64;
    median.or_else(|| own.iter().min_by_key(far).map(|(_, rate)| *rate)).unwrap_or(1000.0)
}
