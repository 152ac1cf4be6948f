//! What packets cost besides their payload: solved from the cells, against what the text states.

use super::claims::{place, unreadable};
use super::expression::{evaluate, unit};
use super::{Confidence, Finding, Severity, show};
use crate::guide::{Claim, Guide, Number, Packets, Role, Table};

/// How far solved overheads of measured cells may lie apart and still be one number, in bytes.
const MAX_SPREAD: f64 = 0.5;
/// How many measured cells have to give it: only a line that is always busy gives one overhead at several sizes.
const MIN_CELLS: usize = 3;

/// An overhead solved from one cell, between what rounding leaves open, in bytes.
struct Solved {
    low: f64,
    high: f64,
    measured: bool,
    name: String,
}

impl Solved {
    fn middle(&self) -> f64 {
        f64::midpoint(self.low, self.high)
    }
}

/// Solves `rate = line * payload / (payload + overhead)` for every cell that the text speaks of.
///
/// A computed cell contradicts the text when no overhead within its rounding is the stated one. A measured cell may be slow
/// for other reasons, so it takes several that give one and the same overhead.
pub fn check(
    guide: &Guide,
    claim: &Claim,
    (stated, line): (&str, &str),
    packets: &[Packets],
    findings: &mut Vec<Finding>,
) {
    let Some(expected) = bytes(stated) else { return unreadable(claim, stated, findings) };
    let mut solved = Vec::new();
    for of in packets {
        let Some(payload) = bytes(&of.payload) else { return unreadable(claim, &of.payload, findings) };
        let Some(table) = guide.table(&of.cells.table) else { continue };
        for (row, column, cell) in table.cells() {
            let Some(name) = table.rows.get(row).map(|row| row.name.as_str()) else { continue };
            let outside = of.cells.row.as_ref().is_some_and(|wanted| wanted != name)
                || of.cells.column.is_some_and(|wanted| wanted != column + 1);
            let Some(number) = cell.number().filter(|number| !outside && number.value > number.half_unit())
            else {
                continue;
            };
            let Some((line, rate)) = rates(table, line, (row, column)) else {
                return unreadable(claim, line, findings);
            };
            let overhead = |value: f64| payload * (line / (value * rate) - 1.0);
            solved.push(Solved {
                low: overhead(number.value + number.half_unit()),
                high: overhead(number.value - number.half_unit()),
                measured: table.role(row, column) == Some(Role::Measured),
                name: cell_name(number, table, name, column),
            });
        }
    }
    let agrees = |one: &&Solved| one.low <= expected && expected <= one.high;
    let computed: Vec<&Solved> = solved.iter().filter(|one| !one.measured && !agrees(one)).collect();
    let busy: Vec<&Solved> = solved.iter().filter(|one| one.measured).collect();
    let least = busy.iter().map(|one| one.low).fold(f64::INFINITY, f64::min);
    let most = busy.iter().map(|one| one.high).fold(f64::NEG_INFINITY, f64::max);
    let one_number = busy.len() >= MIN_CELLS && most - least <= MAX_SPREAD;
    let apart = expected < least - MAX_SPREAD || expected > most + MAX_SPREAD;
    let wrong = if one_number && apart { busy } else { computed };
    let Some(first) = packets.first().filter(|_| !wrong.is_empty()) else { return };
    let cells: Vec<String> = wrong
        .iter()
        .map(|one| format!("{} B from {}", show((one.middle() * 100.0).round() / 100.0), one.name))
        .collect();
    let at = place(claim, Some(&first.cells.table), None);
    findings.push(Finding::new("overhead", Severity::Warning, Confidence::Possible, at).says(
        format!("the text says {stated} for each packet, and the cells follow from another overhead"),
        format!("payload * ({line} / rate - 1) is {}; stated {stated}", cells.join(", ")),
        "state everything that a packet costs besides its payload",
    ));
}

/// A size in bytes.
fn bytes(text: &str) -> Option<f64> {
    let quantity =
        evaluate(text, &|_| None).ok().filter(|quantity| (quantity.bits, quantity.seconds) == (1, 0))?;
    Some(quantity.value / 8.0)
}

/// What the line carries, and one of the cell's unit, both in bits per second.
fn rates(table: &Table, line: &str, (row, column): (usize, usize)) -> Option<(f64, f64)> {
    let lanes = table.columns.get(column).and_then(|column| column.tags.get("lanes"));
    let lanes = lanes.or_else(|| table.conditions.get("lanes")).and_then(|lanes| Number::read(lanes));
    let name = |name: &str| lanes.as_ref().filter(|_| name == "lanes").map(|lanes| lanes.value);
    let line = evaluate(line, &name).ok().filter(|line| (line.bits, line.seconds) == (1, -1))?;
    let rate = table.unit(row, column).and_then(unit).filter(|unit| unit.same_kind(&line))?;
    Some((line.value, rate.value))
}

fn cell_name(number: &Number, table: &Table, row: &str, column: usize) -> String {
    format!("{} (table {}, {row}, column {})", number.printed, table.id, column + 1)
}
