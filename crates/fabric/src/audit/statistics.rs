//! What a column of a statistic cannot be: a mean above its maximum or under its minimum, a time shorter than a tick.

use super::expression::{evaluate, unit};
use super::{Confidence, Finding, Severity, cell_place, measured, show};
use crate::guide::{Column, Guide, Table};

/// The tag that names the statistic of a column.
const TAG: &str = "statistic";
/// Statistics in the order that they have whatever was measured.
const ORDER: [&str; 3] = ["min", "mean", "max"];

/// What reading a clock twice takes at least, in cycles: a zero that is printed finer than this was not measured.
const CLOCK_READ: f64 = 8.0;

/// Holds statistics against each other, and times against the clock that took them.
pub fn check(guide: &Guide, findings: &mut Vec<Finding>) {
    for table in &guide.tables {
        order(table, findings);
        ticks(table, findings);
    }
}

fn rank(column: &Column) -> Option<usize> {
    let name = column.tags.get(TAG)?;
    ORDER.iter().position(|known| known == name)
}

/// Two columns of the same thing by different statistics.
fn alike(one: &Column, two: &Column) -> bool {
    let others = |column: &Column| {
        let mut tags = column.tags.clone();
        tags.remove(TAG);
        tags
    };
    others(one) == others(two)
}

fn order(table: &Table, findings: &mut Vec<Finding>) {
    for (low, less) in table.columns.iter().enumerate() {
        for (high, more) in table.columns.iter().enumerate() {
            let ordered = rank(less).zip(rank(more)).is_some_and(|(less, more)| less < more);
            if !ordered || !alike(less, more) {
                continue;
            }
            let mut wrong = Vec::new();
            for (row, of) in table.rows.iter().enumerate() {
                let Some((one, two)) = measured(table, row, low).zip(measured(table, row, high)) else {
                    continue;
                };
                if one.value > two.value + one.half_unit() + two.half_unit() {
                    wrong.push((row, format!("{}: {} > {}", of.name, one.printed, two.printed)));
                }
            }
            let Some((row, _)) = wrong.first() else { continue };
            let place = cell_place(table, *row, low);
            let names = (
                less.tags.get(TAG).map_or("", String::as_str),
                more.tags.get(TAG).map_or("", String::as_str),
            );
            let cells: Vec<String> = wrong.iter().map(|(_, text)| text.clone()).collect();
            findings.push(Finding::new("statistic", Severity::Error, Confidence::Certain, place).says(
                format!("a {} is above its {}", names.0, names.1),
                format!("{} of {} rows: {}", cells.len(), table.rows.len(), cells.join("; ")),
                "check how each was counted, and whether the columns were swapped",
            ));
        }
    }
}

/// Times under a cycle of the clock that the conditions name: the unit is wrong, or nothing was measured.
fn ticks(table: &Table, findings: &mut Vec<Finding>) {
    let clock = table.conditions.get("core").and_then(|clock| evaluate(clock, &|_| None).ok());
    let Some(clock) = clock.filter(|clock| (clock.bits, clock.seconds) == (0, -1) && clock.value > 0.0)
    else {
        return;
    };
    let mut short = Vec::new();
    let mut seen = 0usize;
    for (row, column, _) in table.cells() {
        let Some(number) = measured(table, row, column) else { continue };
        let Some(time) = table.unit(row, column).and_then(unit) else { continue };
        if (time.bits, time.seconds) != (0, 1) {
            continue;
        }
        seen += 1;
        let cycles = (number.value + number.half_unit()) * time.value * clock.value;
        if cycles < if number.value == 0.0 { CLOCK_READ } else { 1.0 } {
            short.push((row, column, number.printed.clone(), number.value * time.value * clock.value));
        }
    }
    let Some((row, column, ..)) = short.first() else { return };
    let unit = table.unit(*row, *column).unwrap_or("");
    let cells: Vec<String> = short
        .iter()
        .map(|(.., printed, cycles)| format!("{printed} {unit} is {} cycles", show(*cycles)))
        .collect();
    let place = cell_place(table, *row, *column);
    findings.push(Finding::new("under-a-cycle", Severity::Error, Confidence::Certain, place).says(
        format!("times are shorter than a cycle of the {} MHz clock that took them", show(clock.value / 1e6)),
        format!("{} of {seen} times: {}", cells.len(), cells.join("; ")),
        "correct the unit, or leave out what was not measured",
    ));
}
