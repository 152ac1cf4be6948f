//! How well predictions meet the measurements that a guide prints, and how well they meet what was left out of the fit.
//!
//! The headline is the error on tables that the fit has not seen; the error of the fit itself stands beside it. Intervals
//! come from the same test: their half width is what nine of ten errors of a kind of transfer stay within on cells that were
//! left out. Whether that holds is tested again without circle: the width for a cell comes from other folds than its own.

mod binomial;
mod calibration;
mod kept;
mod print;
mod unseen;

pub use binomial::two_sided;
pub use calibration::{Calibrated, LEAST_PLAUSIBLE};
pub use kept::{Kept, restored};

use super::ensemble::Ensemble;
use super::tables::{TRANSFER, is_memory_table};
use crate::fit::{Measurement, calibrated};
use crate::guide::{Guide, Role};
use crate::predict::{Calibrate, FreeParameter, TableModel, Unit};
use crate::soc::{EditError, Soc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use unseen::Judged;

/// Tables that are judged together, with the mean error that is aimed for.
const GROUPS: [(&str, &[&str], Option<f64>); 5] = [
    ("core reads", &["3", "4"], None),
    ("EDMA", &["6", "7", "8", "9", "11", "14"], Some(0.04)),
    ("SRIO", &["16", "17", "20"], Some(0.01)),
    ("HyperLink", &["24", "26"], Some(0.04)),
    ("10GbE", &["10gbe"], Some(0.01)),
];

/// Errors of some cells, relative to the printed numbers.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Errors {
    /// How many cells.
    pub cells: usize,
    /// The mean of the absolute errors.
    pub mean: f64,
    /// The largest of them.
    pub max: f64,
}

/// One table, or a group of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<f64>,
}

/// The accuracy of a chip description against a guide.
#[derive(Debug, Clone)]
pub struct Report {
    /// All measured cells together.
    pub all: Line,
    /// Whether intervals hold what they promise, by kind of transfer.
    pub calibration: Vec<Calibrated>,
    /// The chip in all structures that are left, fitted.
    pub ensemble: Ensemble,
    /// Table by table.
    pub tables: Vec<Line>,
    /// Group by group.
    pub groups: Vec<Line>,
    /// The parameters that the measurements decided.
    pub parameters: Vec<FreeParameter>,
    /// Cells and sentences that no structure meets: the section, the sentence, and what the best structure does.
    pub contradicted: Vec<(String, String, String)>,
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

/// The kinds of transfers whose intervals have a width of their own.
pub fn kind(table: &str, row: &str) -> Option<&'static str> {
    let kind = if table == TRANSFER { row.split(':').next().unwrap_or("") } else { table };
    Some(match kind {
        "3" | "4" | "core" => "core reads",
        "6" | "7" | "8" => "copies in static memory",
        "9" | "10" | "11" | "12" | "13" | "14" | "15" => "copies with dynamic memory",
        "16" | "18" => "SRIO writes",
        "17" | "19" => "SRIO reads",
        "20" | "21" => "SRIO messages",
        "24" | "26" | "hyperlink" => "HyperLink",
        "10gbe" | "ethernet" => "Ethernet",
        _ => return None,
    })
}

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

/// What nine of ten of these stay within, the next one too: the value at rank `0.9 (n + 1)`.
fn share_of_nine_in_ten(mut errors: Vec<f64>) -> Option<f64> {
    errors.sort_by(f64::total_cmp);
    let rank = ((errors.len() + 1) as f64 * 0.9).ceil() as usize;
    errors.get(rank.min(errors.len()).checked_sub(1)?).copied()
}

/// A chip in all structures that a guide leaves possible, with intervals from cells that were left out.
///
/// # Errors
/// A change that the chip refuses; a loaded chip has none.
pub fn ensemble(soc: &Soc, guide: &Guide) -> Result<Ensemble, EditError> {
    let cells = measurements(soc, guide);
    let (judged, parts) = unseen::judge(soc, &cells, &guide.sentences)?;
    Ensemble::new(soc, parts, &guide.sentences, calibration::spreads(&judged))
}

/// Measures the accuracy of a chip file, and cross-validates it.
///
/// # Errors
/// A change that the chip refuses; a loaded chip has none.
pub fn report(soc: &Soc, guide: &Guide) -> Result<Report, EditError> {
    let measured = all_measured(soc, guide);
    let given = measured.iter().filter(|(_, given)| *given).count();
    let cells: Vec<Measurement> =
        measured.into_iter().filter(|(_, given)| !given).map(|(cell, _)| cell).collect();
    let (judged, parts) = unseen::judge(soc, &cells, &guide.sentences)?;
    let ensemble = Ensemble::new(soc, parts, &guide.sentences, calibration::spreads(&judged))?;
    let line = |name: &str, rows: &[&Judged], goal| {
        let of = |pick: &dyn Fn(&Judged) -> Option<f64>| {
            join(rows.iter().filter_map(|one| Some(pick(one)?.abs())))
        };
        Line {
            name: name.into(),
            fitted: of(&|one| one.seen),
            without_table: of(&|one| Some(one.without_table.as_ref()?.error)),
            alternate: of(&|one| Some(one.alternate.as_ref()?.error)),
            goal,
        }
    };
    let among = |tables: &[&str]| -> Vec<&Judged> {
        judged.iter().filter(|one| tables.contains(&one.cell.table.as_str())).collect()
    };
    let mut names: Vec<&str> = judged.iter().map(|judged| judged.cell.table.as_str()).collect();
    names.sort_by_key(|name| (name.parse::<u32>().unwrap_or(u32::MAX), *name));
    names.dedup();
    Ok(Report {
        all: line("all", &judged.iter().collect::<Vec<_>>(), None),
        tables: names.iter().map(|table| line(table, &among(&[table]), None)).collect(),
        groups: GROUPS.iter().map(|(name, tables, goal)| line(name, &among(tables), *goal)).collect(),
        calibration: calibration::calibration(&judged),
        parameters: decided(soc, &cells),
        contradicted: contradicted(&ensemble, guide),
        ensemble,
        given,
    })
}

impl Report {
    /// What fails of it: intervals that do not hold what they promise, goals that are missed, sentences that are contradicted.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for line in self.calibration.iter().filter(|line| !line.holds()) {
            let Calibrated { kind, inside, cells, plausible, .. } = line;
            faults.push(format!("{inside} of {cells} cells of {kind} inside, p = {plausible:.4}"));
        }
        for line in &self.groups {
            if line.goal.is_some_and(|goal| line.fitted.mean > goal) {
                faults.push(format!("{}: mean error {:.2} %", line.name, line.fitted.mean * 100.0));
            }
        }
        for (section, text, _) in &self.contradicted {
            faults.push(format!("section {section} is contradicted: {text}"));
        }
        faults
    }
}

/// Sentences of the guide that every structure contradicts.
fn contradicted(ensemble: &Ensemble, guide: &Guide) -> Vec<(String, String, String)> {
    let broken = guide.sentences.iter().enumerate().filter_map(|(number, sentence)| {
        let part = super::sentences::part(sentence);
        let open = ensemble.parts.iter().find(|open| open.part == part)?;
        let instead = |member: &super::ensemble::Member| {
            member.broken.iter().find(|(at, _)| *at == number).map(|(_, instead)| instead.clone())
        };
        let first = instead(open.best()?)?;
        let all = open.members.iter().filter(|member| member.weight > 0.0).all(|one| instead(one).is_some());
        all.then(|| (sentence.section.clone(), sentence.text.clone(), first))
    });
    broken.collect()
}

/// The parameters that some measured cell depends on.
fn decided(soc: &Soc, cells: &[Measurement]) -> Vec<FreeParameter> {
    let mut seen = Vec::new();
    let mut parts: Vec<String> =
        cells.iter().map(|cell| super::part::part_of(&cell.table, &cell.row)).collect();
    parts.sort();
    parts.dedup();
    for part in parts {
        let own: Vec<&Measurement> =
            cells.iter().filter(|cell| super::part::part_of(&cell.table, &cell.row) == part).collect();
        let model = super::part::Part { soc: soc.clone(), name: part };
        let free = model.free();
        let values: Vec<f64> = free.iter().map(|one| one.value).collect();
        for (at, parameter) in free.iter().enumerate() {
            let mut moved = values.clone();
            let middle = f64::midpoint(parameter.min, parameter.max);
            let step =
                1e-3 * (parameter.max - parameter.min) * if parameter.value < middle { 1.0 } else { -1.0 };
            if let Some(value) = moved.get_mut(at) {
                *value += step;
            }
            let other = model.with_free(&moved);
            if own.iter().any(|cell| error(&model, cell) != error(&other, cell)) {
                seen.push(parameter.clone());
            }
        }
    }
    seen
}

/// The chip with its memory and EDMA parameters fitted to the guide, and the errors before and after.
pub fn calibrate(soc: &Soc, guide: &Guide) -> (Soc, Errors, Errors) {
    let mut cells = measurements(soc, guide);
    cells.retain(|cell| is_memory_table(&cell.table));
    let fitted = soc.with_free(&calibrated(soc, &cells, &soc.free()));
    let (before, after) = (errors(soc, &cells), errors(&fitted, &cells));
    (fitted, before, after)
}
