//! How well predictions meet the measurements that a guide prints, and how well they would meet what was left out.

pub use super::refit::{Measurement, fit};

use super::refit::error;
use super::tables::is_memory_table;
use crate::guide::{Guide, Role};
use crate::predict::{Calibrate, FreeParameter, TableModel};
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
    /// With parameters that are fitted to all the other tables.
    pub without_table: Errors,
    /// With parameters that are fitted to every other row (or column, in tables of one measured row).
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
            // No interval: not predicted but repeated.
            let given = prediction.low == prediction.high;
            let (table, row) = (table.id.clone(), row.name.clone());
            found.push((
                Measurement { table, row, row_index, column: column + 1, value: number.value },
                given,
            ));
        }
    }
    found
}

fn errors(model: &impl TableModel, cells: &[&Measurement]) -> Errors {
    let all: Vec<f64> = cells.iter().filter_map(|cell| error(model, cell)).map(f64::abs).collect();
    join(&all)
}

fn join(all: &[f64]) -> Errors {
    let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
    Errors { cells: all.len(), mean, max: all.iter().copied().fold(0.0, f64::max) }
}

/// Which half of the cells of its table a cell belongs to.
fn half(cell: &Measurement, cells: &[&Measurement]) -> bool {
    let rows = cells.iter().any(|other| other.table == cell.table && other.row_index != cell.row_index);
    (if rows { cell.row_index } else { cell.column }) % 2 == 0
}

/// Cell by cell: the errors fitted, without its table, and with the other half.
struct Judged<'a> {
    cell: &'a Measurement,
    errors: [f64; 3],
}

fn judge<'a, M: Calibrate>(model: &M, cells: &[&'a Measurement]) -> Vec<Judged<'a>> {
    let mut tables: Vec<&str> = cells.iter().map(|cell| cell.table.as_str()).collect();
    tables.dedup();
    let without: Vec<(&str, M)> = tables
        .into_iter()
        .map(|table| {
            let others: Vec<&Measurement> =
                cells.iter().copied().filter(|cell| cell.table != table).collect();
            (table, fit(model, &others))
        })
        .collect();
    let halves = [false, true].map(|wanted| {
        let part: Vec<&Measurement> =
            cells.iter().copied().filter(|cell| half(cell, cells) == wanted).collect();
        fit(model, &part)
    });
    let judged = cells.iter().map(|cell| {
        let other = &halves[usize::from(!half(cell, cells))];
        let left_out = without.iter().find(|(table, _)| *table == cell.table).map_or(model, |(_, m)| m);
        let of = |model: &M| error(model, cell).map_or(0.0, f64::abs);
        Judged { cell, errors: [of(model), of(left_out), of(other)] }
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
    let (memory, links): (Vec<&Measurement>, Vec<&Measurement>) =
        cells.iter().partition(|cell| is_memory_table(&cell.table));
    let mut judged = judge(soc, &memory);
    judged.extend(judge(&soc.links, &links));
    let line = |name: &str, tables: &[&str], goal| {
        let rows: Vec<&Judged> =
            judged.iter().filter(|judged| tables.contains(&judged.cell.table.as_str())).collect();
        let of = |k: usize| join(&rows.iter().map(|judged| judged.errors[k]).collect::<Vec<_>>());
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
    let cells = measurements(soc, guide);
    let cells: Vec<&Measurement> = cells.iter().filter(|cell| is_memory_table(&cell.table)).collect();
    let fitted = fit(soc, &cells);
    let (before, after) = (errors(soc, &cells), errors(&fitted, &cells));
    (fitted, before, after)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["fitted mean", "max", "table out", "max", "alternate", "max"];
        write!(f, "{:<12}{:>6}", "table", "cells")?;
        for name in head {
            write!(f, "{name:>12}")?;
        }
        writeln!(f)?;
        for (lines, rule) in [(&self.tables, true), (&self.groups, false)] {
            for line in lines {
                write!(f, "{:<12}{:>6}", line.name, line.fitted.cells)?;
                for errors in [line.fitted, line.without_table, line.alternate] {
                    write!(f, "{:>11.2}%{:>11.2}%", errors.mean * 100.0, errors.max * 100.0)?;
                }
                if let Some(goal) = line.goal {
                    let met = if line.fitted.mean <= goal { "met" } else { "missed" };
                    write!(f, "   goal {:.0} %: {met}", goal * 100.0)?;
                }
                writeln!(f)?;
            }
            if rule {
                writeln!(f)?;
            }
        }
        writeln!(
            f,
            "\n{} fitted parameters, {} printed latencies taken over as given:",
            self.parameters.len(),
            self.given
        )?;
        for parameter in &self.parameters {
            writeln!(f, "  {:<52}{:>10.4} {}", parameter.name, parameter.value, parameter.unit)?;
        }
        Ok(())
    }
}
