//! Ceilings: what the chip description makes of theoretical cells, and measurements above what can be.

use std::collections::BTreeMap;

use super::expression::{Quantity, evaluate, unit};
use super::{Confidence, Finding, Severity, cell_place, measured, show};
use crate::guide::{Cell, CellAt, Guide, Number, Role, Table};
use crate::predict::TableModel;

/// What a theoretical cell should say, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    /// The value in the cell's own unit.
    pub value: f64,
    /// How it follows from the description: `256 bit * 1200 MHz / 2`.
    pub derivation: String,
}

/// What the description of a chip says about the theoretical cells of a guide.
pub trait Expectations {
    /// The value for this cell; `None` where the description does not reach.
    fn theoretical(&self, at: &CellAt) -> Option<Expected>;
}

impl Expectations for BTreeMap<CellAt, Expected> {
    fn theoretical(&self, at: &CellAt) -> Option<Expected> {
        self.get(at).cloned()
    }
}

/// What a model of a chip says, where it is sure: figures with an interval are predictions and expect nothing.
pub struct OfModel<'a>(pub &'a dyn TableModel);

impl Expectations for OfModel<'_> {
    fn theoretical(&self, at: &CellAt) -> Option<Expected> {
        let prediction = self.0.cell(&at.table, &at.row, at.column)?;
        if prediction.low < prediction.high {
            return None;
        }
        let explained = prediction.bottlenecks.iter().find(|limit| !limit.explanation.is_empty());
        let derivation = explained.map_or_else(
            || "widths and clocks of the chip description".to_owned(),
            |limit| format!("{}: {}", limit.name, limit.explanation),
        );
        Some(Expected { value: prediction.predicted, derivation })
    }
}

/// Holds theoretical cells against the chip, and measured cells against every ceiling that the guide names.
pub fn check(guide: &Guide, expectations: Option<&dyn Expectations>, findings: &mut Vec<Finding>) {
    for table in &guide.tables {
        if let Some(expectations) = expectations {
            theory(table, expectations, findings);
        }
        own_maximum(table, findings);
        whole(guide, table, findings);
        line_rate(table, findings);
        percentages(table, findings);
    }
}

fn theory(table: &Table, expectations: &dyn Expectations, findings: &mut Vec<Finding>) {
    for (row, column, cell) in table.cells() {
        let Some(name) = table.rows.get(row).map(|row| row.name.clone()) else { continue };
        let Cell::Number(number) = cell else { continue };
        if table.role(row, column) != Some(Role::Theoretical) {
            continue;
        }
        let at = CellAt { table: table.id.clone(), row: name, column: column + 1 };
        let Some(expected) = expectations.theoretical(&at) else { continue };
        let off = expected.value - number.value;
        if off.abs() <= number.half_unit() + 1e-9 * expected.value.abs() {
            continue;
        }
        let place = cell_place(table, row, column);
        let arithmetic =
            format!("{} = {}; printed {}", expected.derivation, show(expected.value), number.printed);
        let finding = if off > 0.0 && off < 2.0 * number.half_unit() {
            Finding::new("rounding", Severity::Note, Confidence::Likely, place).says(
                format!("{} is cut off and not rounded", number.printed),
                arithmetic,
                "round as elsewhere in the guide, or say that values are cut off",
            )
        } else {
            Finding::new("theoretical", Severity::Error, Confidence::Likely, place).says(
                format!("{} is not what the chip description gives", number.printed),
                arithmetic,
                "check widths, clock domain and overhead per packet in the data manual",
            )
        };
        findings.push(finding);
    }
}

/// Reports a measured cell above a ceiling; rounding of both is allowed for.
fn above(
    table: &Table,
    at: (usize, usize),
    number: &Number,
    ceiling: f64,
    slack: f64,
    why: &str,
    findings: &mut Vec<Finding>,
) {
    if number.value <= ceiling + slack + number.half_unit() + 1e-9 * ceiling.abs() {
        return;
    }
    let place = cell_place(table, at.0, at.1);
    findings.push(Finding::new("above-maximum", Severity::Error, Confidence::Certain, place).says(
        format!("{} is above the maximum of {}", number.printed, show(ceiling)),
        format!("{} > {} ({why})", number.printed, show(ceiling)),
        "correct the measurement, its unit, or the maximum",
    ));
}

/// Measured rows under a theoretical row of the same table and unit.
fn own_maximum(table: &Table, findings: &mut Vec<Finding>) {
    for column in 0..table.columns.len() {
        let rows = 0..table.rows.len();
        let theoretical = |row: &usize| table.role(*row, column) == Some(Role::Theoretical);
        for maximum in rows.clone().filter(theoretical) {
            let Some(ceiling) = table.rows.get(maximum).and_then(|row| row.cells.get(column)?.number())
            else {
                continue;
            };
            for row in rows.clone() {
                let Some(number) = measured(table, row, column) else { continue };
                if table.unit(row, column) == table.unit(maximum, column) {
                    let why = "the theoretical row of its column";
                    above(table, (row, column), number, ceiling.value, ceiling.half_unit(), why, findings);
                }
            }
        }
    }
}

/// Cells above the same cell of the table that their percentages are shares of.
fn whole(guide: &Guide, table: &Table, findings: &mut Vec<Finding>) {
    let Some(of) = table.share_of.as_ref().and_then(|id| guide.table(id)) else { return };
    for (row, column, _) in table.cells() {
        let Some(number) = measured(table, row, column) else { continue };
        let name = table.rows.get(row).map_or("", |row| row.name.as_str());
        let Some(ceiling) = of.cell(name, column + 1).and_then(Cell::number) else { continue };
        let why = format!("the same cell of {}", of.label());
        above(table, (row, column), number, ceiling.value, ceiling.half_unit(), &why, findings);
    }
}

/// Cells above lanes times line rate: no encoding carries more bits than the line has symbols.
fn line_rate(table: &Table, findings: &mut Vec<Finding>) {
    let lanes_of = |text: Option<&String>| Some(Number::read(text?)?.value);
    let Some(rate) = table.conditions.get("line-rate").and_then(|rate| evaluate(rate, &|_| None).ok()) else {
        return;
    };
    for (row, column, _) in table.cells() {
        let Some(number) = measured(table, row, column) else { continue };
        let of_column = table.columns.get(column).and_then(|column| column.tags.get("lanes"));
        let Some(lanes) = lanes_of(of_column.or_else(|| table.conditions.get("lanes"))) else { continue };
        let Some(unit) = table.unit(row, column).and_then(unit).filter(|unit| unit.same_kind(&rate)) else {
            continue;
        };
        let Quantity { value, .. } = rate;
        let why =
            format!("{lanes} lanes at {}", table.conditions.get("line-rate").map_or("", String::as_str));
        above(table, (row, column), number, lanes * value / unit.value, 0.0, &why, findings);
    }
}

/// Efficiencies and shares above one hundred percent.
fn percentages(table: &Table, findings: &mut Vec<Finding>) {
    for (row, column, cell) in table.cells() {
        let Some(number) = cell.number() else { continue };
        let percent = if number.percent { Some(number.value) } else { number.share_percent };
        let Some(percent) = percent.filter(|percent| *percent > 100.0) else { continue };
        let place = cell_place(table, row, column);
        findings.push(Finding::new("above-maximum", Severity::Error, Confidence::Certain, place).says(
            format!("an efficiency of {percent} %"),
            format!("{percent} > 100"),
            "correct the percentage",
        ));
    }
}
