//! How well predictions meet the measurements that a guide prints, and how well they would meet what was left out.

use super::tables::is_memory_table;
use crate::fit::{Measurement, calibrated};
use crate::guide::{Guide, Role};
use crate::predict::{Calibrate, FreeParameter, TableModel, Unit};
use crate::soc::Soc;
use std::fmt;

/// Tables that are judged together, with the mean error that is aimed for.
const GROUPS: [(&str, &[&str], Option<f64>); 5] = [
    ("core reads", &["3", "4"], None),
    ("EDMA", &["6", "7", "8", "9", "11", "14"], Some(0.04)),
    ("SRIO", &["16", "17", "20"], Some(0.01)),
    ("HyperLink", &["24", "26"], Some(0.04)),
    ("10GbE", &["10gbe"], Some(0.01)),
];

/// Errors of some cells, relative to the printed numbers.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Errors {
    /// How many cells.
    pub cells: usize,
    /// The mean of the absolute errors.
    pub mean: f64,
    /// The largest of them.
    pub max: f64,
}

/// One table, or a group of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// With the parameters of the chip file.
    pub fitted: Errors,
    /// With parameters that are fitted to all the other tables; only the cells that this tests.
    pub without_table: Errors,
    /// With parameters that are fitted to every other row (or column, in tables of one measured row);
    /// only the cells that this tests.
    pub alternate: Errors,
    /// The mean error that is aimed for.
    pub goal: Option<f64>,
}

/// The accuracy of a chip description against a guide.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Table by table.
    pub tables: Vec<Line>,
    /// Group by group.
    pub groups: Vec<Line>,
    /// The parameters that the measurements decided.
    pub parameters: Vec<FreeParameter>,
    /// Latencies that the chip file takes over from the guide as they are printed; their cells count nowhere.
    pub given: usize,
}

/// All measured cells of the guide that have a number and a prediction, but for those that the chip file repeats.
pub fn measurements(soc: &Soc, guide: &Guide) -> Vec<Measurement> {
    all_measured(soc, guide).into_iter().filter(|(_, given)| !given).map(|(cell, _)| cell).collect()
}

fn all_measured(soc: &Soc, guide: &Guide) -> Vec<(Measurement, bool)> {
    let mut found = Vec::new();
    for table in &guide.tables {
        for (row_index, column, cell) in table.cells() {
            let Some(number) = cell.number().filter(|number| number.value != 0.0 && !number.percent) else {
                continue;
            };
            if table.role(row_index, column) != Some(Role::Measured) {
                continue;
            }
            let Some(row) = table.rows.get(row_index) else { continue };
            let Some(prediction) = soc.cell(&table.id, &row.name, column + 1) else { continue };
            // A latency without interval is not predicted but repeated.
            let given = prediction.unit == Unit::Cycles && prediction.low == prediction.high;
            let cell = Measurement {
                table: table.id.clone(),
                row: row.name.clone(),
                column: column + 1,
                value: number.value,
                error: None,
                line: row.line,
            };
            found.push((cell, given));
        }
    }
    found
}

/// Predicted over measured, less one, without its sign.
fn error(model: &impl TableModel, cell: &Measurement) -> Option<f64> {
    Some((model.cell(&cell.table, &cell.row, cell.column)?.predicted / cell.value - 1.0).abs())
}

fn errors(model: &impl TableModel, cells: &[Measurement]) -> Errors {
    join(cells.iter().filter_map(|cell| error(model, cell)))
}

fn join(all: impl Iterator<Item = f64>) -> Errors {
    let (mut cells, mut sum, mut max) = (0usize, 0.0, 0.0f64);
    for one in all {
        (cells, sum, max) = (cells + 1, sum + one, max.max(one));
    }
    Errors { cells, mean: sum / cells.max(1) as f64, max }
}

/// Which half of the cells of its table a cell belongs to: by rows, or by columns where one row is measured.
fn half(cell: &Measurement, cells: &[Measurement]) -> bool {
    let table = || cells.iter().filter(|other| other.table == cell.table);
    if table().all(|other| other.line == cell.line) {
        return cell.column.is_multiple_of(2);
    }
    let mut above: Vec<usize> = table().map(|other| other.line).filter(|line| *line < cell.line).collect();
    above.dedup();
    above.len().is_multiple_of(2)
}

/// Cell by cell: the errors fitted, without its table, and with the other half; none where that tests nothing.
struct Judged<'a> {
    cell: &'a Measurement,
    errors: [Option<f64>; 3],
}

/// A model that is fitted to some cells, and copies with each parameter moved up and down that those cells do not see.
struct Refitted<M> {
    model: M,
    unseen: Vec<(M, M)>,
}

impl<M: Calibrate> Refitted<M> {
    fn new(model: &M, kept: &[Measurement]) -> Self {
        let free = model.free();
        let values = calibrated(model, kept, &free);
        let mut unseen = Vec::new();
        for (at, parameter) in free.iter().enumerate() {
            let moved = |share: f64| {
                let step = share * (parameter.max - parameter.min);
                let mut values = values.clone();
                if let Some(value) = values.get_mut(at) {
                    *value = (*value + step).clamp(parameter.min, parameter.max);
                }
                model.with_free(&values)
            };
            let pair = (moved(1e-4), moved(-1e-4));
            if !kept.iter().any(|cell| differs(&pair, cell)) {
                unseen.push(pair);
            }
        }
        Self { model: model.with_free(&values), unseen }
    }

    /// The error on a cell that the fit has not seen. A cell that hangs on a parameter which the fit could not see either
    /// tests nothing: the parameter still has the value of the file, which may come from this very cell.
    fn error(&self, cell: &Measurement) -> Option<f64> {
        if self.unseen.iter().any(|pair| differs(pair, cell)) { None } else { error(&self.model, cell) }
    }
}

fn differs<M: TableModel>(pair: &(M, M), cell: &Measurement) -> bool {
    let of = |model: &M| model.cell(&cell.table, &cell.row, cell.column).map(|p| p.predicted);
    of(&pair.0) != of(&pair.1)
}

fn judge<'a, M: Calibrate>(model: &M, cells: &'a [Measurement]) -> Vec<Judged<'a>> {
    let keep = |wanted: &dyn Fn(&Measurement) -> bool| -> Vec<Measurement> {
        cells.iter().filter(|cell| wanted(cell)).cloned().collect()
    };
    let mut tables: Vec<&str> = cells.iter().map(|cell| cell.table.as_str()).collect();
    tables.dedup();
    let without: Vec<(&str, Refitted<M>)> = tables
        .into_iter()
        .map(|table| (table, Refitted::new(model, &keep(&|cell| cell.table != table))))
        .collect();
    let halves = [false, true].map(|one| Refitted::new(model, &keep(&|cell| half(cell, cells) == one)));
    let judged = cells.iter().map(|cell| {
        let [first, second] = &halves;
        let other = if half(cell, cells) { first } else { second };
        let left_out = without.iter().find(|(table, _)| *table == cell.table);
        let left_out = left_out.and_then(|(_, refitted)| refitted.error(cell));
        Judged { cell, errors: [error(model, cell), left_out, other.error(cell)] }
    });
    judged.collect()
}

/// Measures the accuracy of a chip file, and cross-validates it.
pub fn report(soc: &Soc, guide: &Guide) -> Report {
    let measured = all_measured(soc, guide);
    let given = measured.iter().filter(|(_, given)| *given).count();
    let cells: Vec<Measurement> =
        measured.into_iter().filter(|(_, given)| !given).map(|(cell, _)| cell).collect();
    // Memories and links share no parameter, so each is fitted to its own tables.
    let (memory, links): (Vec<Measurement>, Vec<Measurement>) =
        cells.into_iter().partition(|cell| is_memory_table(&cell.table));
    let mut judged = judge(soc, &memory);
    judged.extend(judge(&soc.links, &links));
    let line = |name: &str, tables: &[&str], goal| {
        let rows: Vec<&Judged> =
            judged.iter().filter(|judged| tables.contains(&judged.cell.table.as_str())).collect();
        let of = |k: usize| join(rows.iter().filter_map(|judged| judged.errors.get(k).copied().flatten()));
        Line { name: name.into(), fitted: of(0), without_table: of(1), alternate: of(2), goal }
    };
    let mut names: Vec<&str> = judged.iter().map(|judged| judged.cell.table.as_str()).collect();
    names.dedup();
    let mut parameters = soc.free();
    parameters.extend(soc.links.free());
    Report {
        tables: names.iter().map(|table| line(table, &[table], None)).collect(),
        groups: GROUPS.iter().map(|(name, tables, goal)| line(name, tables, *goal)).collect(),
        parameters,
        given,
    }
}

/// The chip with its memory and EDMA parameters fitted to the guide, and the errors before and after.
pub fn calibrate(soc: &Soc, guide: &Guide) -> (Soc, Errors, Errors) {
    let mut cells = measurements(soc, guide);
    cells.retain(|cell| is_memory_table(&cell.table));
    let fitted = soc.with_free(&calibrated(soc, &cells, &soc.free()));
    let (before, after) = (errors(soc, &cells), errors(&fitted, &cells));
    (fitted, before, after)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<12}{:^23}{:^23}{:^23}", "", "fitted", "its table left out", "alternate rows")?;
        write!(f, "{:<12}", "table")?;
        for _ in 0..3 {
            write!(f, "{:>7}{:>8}{:>8}", "cells", "mean", "max")?;
        }
        writeln!(f)?;
        for (at, line) in self.tables.iter().chain(&self.groups).enumerate() {
            if at == self.tables.len() {
                writeln!(f)?;
            }
            write!(f, "{:<12}", line.name)?;
            for Errors { cells, mean, max } in [line.fitted, line.without_table, line.alternate] {
                if cells == 0 {
                    write!(f, "{:>7}{:>8}{:>8}", 0, "-", "-")?;
                } else {
                    write!(f, "{cells:>7}{:>7.2}%{:>7.2}%", mean * 100.0, max * 100.0)?;
                }
            }
            if let Some(goal) = line.goal {
                let met = if line.fitted.mean <= goal { "met" } else { "missed" };
                write!(f, "   goal {:.0} %: {met}", goal * 100.0)?;
            }
            writeln!(f)?;
        }
        writeln!(
            f,
            "\nA cell that hangs on a parameter which only cells left out can decide is not counted."
        )?;
        writeln!(
            f,
            "{} fitted parameters, {} printed latencies taken over as given:",
            self.parameters.len(),
            self.given
        )?;
        for parameter in &self.parameters {
            writeln!(f, "  {:<52}{:>10.4} {}", parameter.name, parameter.value, parameter.unit)?;
        }
        Ok(())
    }
}
