//! Figures of the KeyStone II guide (seed 001) beside those of this machine that are of the same kind.

use crate::guide::plan::Part;
use crate::guide::run::Guide;
use crate::report::grid::{Cell, Grid};
use linerate_fabric::ask;
use linerate_fabric::guide::{self as printed, Guide as Printed};
use linerate_fabric::soc;

/// The document, transcribed.
const KEYSTONE: &str = include_str!("../../../../../boards/guides/keystone2.toml");

/// The document as data. It is a constant of ours, which a test loads.
fn keystone() -> Option<Printed> {
    printed::load(KEYSTONE).ok()
}

/// Figure of a cell of the document.
fn figure(document: &Printed, table: &str, row: &str, column: usize) -> Option<f64> {
    document.table(table)?.cell(row, column)?.value()
}

/// Tables of both.
pub fn grids(guide: &Guide) -> Vec<Grid> {
    let Some(document) = keystone() else { return Vec::new() };
    let all = [reads(guide, &document), copies(guide, &document), packets(guide, &document)];
    all.into_iter().flatten().collect()
}

/// Rows of tables 3 and 4 that stand for a level.
const LEVELS: [(&str, &str, &str); 4] = [
    ("first level", "L1D Hit", "L1 Cache Hit"),
    ("second level", "L2 Cache Hit", "L2 Cache Hit"),
    ("shared memory or third level", "MSMC RAM (SL3)", "MSMC RAM (SL3)"),
    ("dynamic memory", "DDR 3A RAM (SL3)", "DDR 3A RAM (SL3)"),
];

/// Reads, as tables 3 and 4: one that waits, and several under way.
fn reads(guide: &Guide, document: &Printed) -> Option<Grid> {
    let chip = soc::load(guide.chip.as_deref()?).ok()?;
    let core = chip.cores.get(crate::guide::plan::CORE)?;
    let names: Vec<&str> = core.hierarchy().into_iter().map(|(name, _)| name).collect();
    let headers =
        ["source", "this machine, single", "burst", "C66x, single", "burst", "A15, single", "burst"];
    let mut grid = Grid::new(
        "beside-reads",
        "Cycles of a read, beside tables 3 and 4 of the KeyStone II guide",
        &headers,
    );
    for (at, (name, dsp, arm)) in LEVELS.iter().enumerate() {
        // The last level is memory, however many are before it.
        let own = match at {
            3 => names.last(),
            _ => names.get(at).filter(|_| at + 1 < names.len()),
        };
        let ask = |access: &str| {
            let found =
                ask::answer(&chip, &format!("core:{}:{}:{access}", crate::guide::plan::CORE, own?)).ok()?;
            Some(found.predicted)
        };
        let cell = |value: Option<f64>| value.map_or(Cell::Empty, Cell::figure);
        grid.rows.push(vec![
            Cell::text(*name),
            cell(ask("single")),
            cell(ask("burst")),
            cell(figure(document, "3", dsp, 3)),
            cell(figure(document, "3", dsp, 4)),
            cell(figure(document, "4", arm, 1)),
            cell(figure(document, "4", arm, 2)),
        ]);
    }
    grid.notes.push(
        "The document counts stalls of a DSP at 1.2 GHz (a hit of L1D is none) and load to use of an A15 at 1.4 GHz, with open \
         pages and no misses of translation; burst there is a stride of 128 bits with prefetch, here words at random."
            .to_owned(),
    );
    Some(grid)
}

/// Copies, as tables 8 and 11: within the shared memory, within the dynamic memory.
fn copies(guide: &Guide, document: &Printed) -> Option<Grid> {
    let chip = soc::load(guide.chip.as_deref()?).ok()?;
    let core = chip.cores.get(crate::guide::plan::CORE)?;
    let levels = core.hierarchy();
    let row = "Aggregate throughput of TCs fired (MBPS)";
    let headers = [
        "copied within",
        "this machine, one core, MB/s",
        "all cores, MB/s",
        "KeyStone II, TC0 and TC1, MB/s",
    ];
    let mut grid =
        Grid::new("beside-copies", "Copies, beside tables 8 and 11 of the KeyStone II guide", &headers);
    let cell = |value: Option<f64>| value.map_or(Cell::Empty, |value| Cell::number(value, 0));
    let last_cache = levels.len().checked_sub(2).and_then(|at| levels.get(at));
    let rates = [("last cache, shared memory", last_cache, "8"), ("dynamic memory", levels.last(), "11")];
    let measured_together =
        guide.tables.iter().any(|table| table.part == Part::Threads) && guide.cores.len() > 1;
    for (name, level, table) in rates {
        let one = level.map(|(_, level)| level.copy.megabytes());
        let all = level.and_then(|(_, level)| level.copy_all.as_ref()).map(|rate| rate.megabytes());
        grid.rows.push(vec![
            Cell::text(name),
            cell(one),
            cell(all.filter(|_| measured_together)),
            cell(figure(document, table, row, 1)),
        ]);
    }
    grid.notes.push(
        "The document's DMA reads and writes both ways at once and counts all bytes that arrive; a copy by a core counts each byte \
         once too."
            .to_owned(),
    );
    Some(grid)
}

/// Packets, as the table of section 9.
fn packets(guide: &Guide, document: &Printed) -> Option<Grid> {
    let table = guide.tables.iter().find(|table| table.part == Part::Packets)?;
    let mut headers = vec!["Packet size (bytes)".to_owned()];
    headers.extend(table.columns.iter().map(|column| format!("{}, Mb/s", column.heading)));
    headers.push("KeyStone II, 10 Gigabit Ethernet, Mb/s".to_owned());
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    let mut grid =
        Grid::new("beside-packets", "Packets, beside section 9 of the KeyStone II guide", &headers);
    for (size, points) in &table.rows {
        let Some(other) = figure(document, "10gbe", size, 3) else { continue };
        let own =
            points.iter().map(|point| point.as_ref().map_or(Cell::Empty, |point| Cell::figure(point.value)));
        grid.rows.push([Cell::text(size)].into_iter().chain(own).chain([Cell::number(other, 0)]).collect());
    }
    grid.notes.push(
        "The document counts preamble and gap and moves packets by DMA; here one thread sends and receives each by system calls."
            .to_owned(),
    );
    (!grid.rows.is_empty()).then_some(grid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_that_is_laid_beside_is_in_the_document() {
        let document = keystone().expect("the transcription loads");
        for (_, dsp, arm) in LEVELS {
            assert!(
                figure(&document, "3", dsp, 3).is_some() && figure(&document, "4", arm, 2).is_some(),
                "{dsp} {arm}"
            );
        }
        for table in ["8", "11"] {
            assert!(
                figure(&document, table, "Aggregate throughput of TCs fired (MBPS)", 1).is_some(),
                "{table}"
            );
        }
        assert_eq!(figure(&document, "10gbe", "64", 3), Some(2388.0));
    }
}
