//! The guide as tables.

use super::beside;
use crate::guide::plan::Part;
use crate::guide::run::Guide;
use crate::guide::table::{Accuracy, Point, Table};
use crate::quantity;
use crate::report::grid::{Cell, Grid};

/// All tables: what was found first, then what was measured, then the figures of the document of the same kind.
pub fn grids(guide: &Guide) -> Vec<Grid> {
    let mut grids = Vec::new();
    grids.extend(levels(guide));
    grids.extend(guide.tables.iter().map(measured));
    grids.extend(beside::grids(guide));
    grids.extend(accuracy(guide));
    if let Some(last) = grids.last_mut() {
        last.notes.extend(guide.notes.iter().cloned());
        last.notes.push(guide.pages.sentence());
        last.notes.push(build_note().to_owned());
        last.notes.push(guide.provenance.sentence());
    }
    grids
}

/// How the program that measures was built, which decides what its loops reach.
pub fn build_note() -> &'static str {
    if cfg!(debug_assertions) {
        "Built without optimization: loops are slower than the memory, and the figures are none of the machine. Build with \
         --release."
    } else {
        "Built with optimization, for the least processor of its kind: loops use no instruction that some lack."
    }
}

/// The levels: as the curve shows them and as the system tells of them.
pub fn levels(guide: &Guide) -> Option<Grid> {
    if guide.levels.is_empty() {
        return None;
    }
    let headers = ["level", "seen to hold", "system says", "shared by", "load, cycles", "load, ns"];
    let mut grid =
        Grid::new("levels", "Levels of memory, from the curve of latency and from the system", &headers);
    let count = guide.levels.len().max(guide.caches.len() + 1);
    for at in 0..count {
        let (seen, told) = (guide.levels.get(at), guide.caches.get(at));
        let is_memory = at + 1 >= guide.levels.len() && told.is_none();
        let name = if is_memory { "memory".to_owned() } else { format!("L{}", at + 1) };
        let ends = seen.and_then(|seen| seen.ends);
        grid.rows.push(vec![
            Cell::text(name),
            ends.map_or(Cell::Empty, |bytes| Cell::text(quantity::bytes(bytes as u64))),
            told.map_or(Cell::Empty, |cache| Cell::text(quantity::bytes(cache.bytes))),
            told.map_or(Cell::Empty, |cache| Cell::number(f64::from(cache.shared_by), 0)),
            seen.map_or(Cell::Empty, |seen| Cell::figure(seen.latency)),
            seen.map_or(Cell::Empty, |seen| Cell::figure(seen.latency * guide.cycle.ns)),
        ]);
    }
    grid.notes.push(format!(
        "One cycle takes {:.4} ns: {:.2} GHz while it was measured. \"Seen to hold\" is where half of the way to the next level is \
         gone; less than the system says means that others use the level too, or that the host gives a part of it.",
        guide.cycle.ns,
        1.0 / guide.cycle.ns
    ));
    if guide.levels.len() != guide.caches.len() + 1 && !guide.caches.is_empty() {
        grid.notes.push(format!(
            "The curve shows {} levels and the system tells of {} caches: sizes end before the memory is reached, so that the last \
             level seen is a cache and the chip calls it memory, or a cache is not told of.",
            guide.levels.len(),
            guide.caches.len()
        ));
    }
    Some(grid)
}

/// A table as the document lays its own out: the figure, behind it in brackets what was predicted before.
pub fn measured(table: &Table) -> Grid {
    let headings: Vec<String> = std::iter::once(table.corner.to_owned())
        .chain(table.columns.iter().map(|column| format!("{}, {}", column.heading, column.unit.symbol())))
        .collect();
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let title = format!("{}: {}", table.part, table.part.title());
    let mut grid = Grid::new(table.part.name(), title, &headings);
    for (name, points) in &table.rows {
        let cells = points.iter().map(|point| point.as_ref().map_or(Cell::Empty, shown));
        grid.rows.push(std::iter::once(Cell::text(name)).chain(cells).collect());
    }
    if table.points().any(|point| point.predicted.is_some()) {
        grid.notes.push("In brackets what the chip, calibrated from the other cells, predicted.".to_owned());
    }
    let unstable = table.points().filter(|point| !point.sampled.stable).count();
    if unstable > 0 {
        grid.notes.push(format!("{unstable} cells did not settle: their samples do not agree within 3 %."));
    }
    if table.part == Part::Packets {
        grid.notes.push(frames(table));
    }
    grid
}

/// How many packets a second the smallest and the largest make.
fn frames(table: &Table) -> String {
    let rates: Vec<String> = table
        .columns
        .iter()
        .enumerate()
        .filter_map(|(at, column)| {
            let of = |row: Option<&(String, Vec<Option<Point>>)>| {
                row?.1.get(at)?.as_ref().map(|point| 1e9 / point.sampled.ns)
            };
            let (first, last) = (of(table.rows.first())?, of(table.rows.last())?);
            let count = |rate: f64| quantity::count(rate as u64);
            Some(format!(
                "{}: {} a second of the smallest, {} of the largest",
                column.heading,
                count(first),
                count(last)
            ))
        })
        .collect();
    format!("Packets: {}.", rates.join("; "))
}

fn figure(value: f64) -> String {
    Cell::figure(value).shown()
}

fn shown(point: &Point) -> Cell {
    match point.predicted.filter(|_| !point.calibrates) {
        None => Cell::figure(point.value),
        Some(predicted) => Cell::text(format!("{} ({})", figure(point.value), figure(predicted))),
    }
}

/// How well the half was predicted that calibrated nothing.
pub fn accuracy(guide: &Guide) -> Option<Grid> {
    let whole = guide.accuracy?;
    let headers =
        ["table", "predicted cells", "median error, %", "nine of ten within, %", "largest, %", "worst cell"];
    let mut grid =
        Grid::new("accuracy", "Predicted from the other half of the cells, before comparison", &headers);
    let row = |name: &str, of: Accuracy, worst: String| {
        vec![
            Cell::text(name),
            Cell::number(of.cells as f64, 0),
            Cell::number(of.median * 100.0, 1),
            Cell::number(of.ninth * 100.0, 1),
            Cell::number(of.worst * 100.0, 1),
            Cell::text(worst),
        ]
    };
    grid.rows.push(row("all", whole, String::new()));
    for one in &guide.by_table {
        let table = guide.tables.iter().find(|table| table.part == one.part);
        grid.rows.push(row(one.part.name(), one.accuracy, table.map_or_else(String::new, worst)));
    }
    let goal = |of: Accuracy| of.median * 100.0 <= GOAL;
    let missed: Vec<&str> =
        guide.by_table.iter().filter(|one| !goal(one.accuracy)).map(|one| one.part.name()).collect();
    grid.notes.push(format!(
        "The goal is a median of {GOAL} % on this machine: {}. {}",
        if goal(whole) { "met" } else { "missed" },
        if missed.is_empty() {
            "Every table meets it.".to_owned()
        } else {
            format!("Tables that miss it: {}.", missed.join(", "))
        }
    ));
    Some(grid)
}

/// The median error that is wanted, in per cent.
pub const GOAL: f64 = 10.0;

/// The cell of a table that was predicted worst, in words.
fn worst(table: &Table) -> String {
    let errors = table.rows.iter().flat_map(|(name, points)| {
        table.columns.iter().zip(points).filter_map(move |(column, point)| {
            let point = point.as_ref().filter(|point| !point.calibrates)?;
            Some((point.error()?, format!("{name}, {}", column.heading)))
        })
    });
    let found = errors.max_by(|a, b| a.0.abs().total_cmp(&b.0.abs()));
    found.map_or_else(String::new, |(error, place)| format!("{place}: {}", Cell::Percent(error).shown()))
}
