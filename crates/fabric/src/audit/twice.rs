//! A value that is printed for two conditions: two cells of one row or column, or most of the cells of two rows.

use std::collections::BTreeSet;

use super::noise::Noise;
use super::{Confidence, Finding, Place, Severity, measured};
use crate::guide::{Cell, Guide, Number, Role, Table};

/// Digits from which on two measurements are not the same by chance.
const MIN_DIGITS: u32 = 5;
/// How many values have to stand in two rows, however many columns print each of them.
const MIN_VALUES: usize = 3;
/// What share of two rows has to be the same; from [`super::copies`]'s share on it is a copy.
const MIN_SHARE: f64 = 0.75;

/// Looks for values that stand twice.
pub fn check(guide: &Guide, noises: &[Noise], findings: &mut Vec<Finding>) {
    for (table, noise) in guide.tables.iter().zip(noises) {
        let sized = table.rows.iter().filter(|row| Number::read(&row.name).is_some()).count();
        if sized == 0 {
            cells(table, findings);
        } else {
            rows(noise, table, findings);
        }
    }
}

/// Two measurements of different things that print the same digits, in a table whose others differ.
fn cells(table: &Table, findings: &mut Vec<Finding>) {
    let all: Vec<(usize, usize, &Number)> = table
        .cells()
        .filter_map(|(row, column, _)| Some((row, column, measured(table, row, column)?)))
        .collect();
    let ceiling = |row: usize, column: usize, value: f64| {
        table.cells().any(|(other, across, cell)| {
            (other == row || across == column)
                && table.role(other, across) == Some(Role::Theoretical)
                && cell.value() == Some(value)
        })
    };
    for (index, (row, column, number)) in all.iter().enumerate() {
        if number.significant_digits() < MIN_DIGITS {
            continue;
        }
        let Some((other, across, _)) = all.iter().take(index).find(|(other, across, before)| {
            (other == row) != (across == column) && before.printed == number.printed
        }) else {
            continue;
        };
        let others = all.iter().filter(|(r, c, n)| {
            let beside = if other == row { r == row } else { c == column };
            beside && n.printed != number.printed
        });
        let others: Vec<&str> = others.map(|(.., number)| number.printed.as_str()).collect();
        if others.is_empty() || ceiling(*row, *column, number.value) {
            continue;
        }
        let (first, second) = if other == row {
            (column_name(table, *across), column_name(table, *column))
        } else {
            (row_name(table, *other), row_name(table, *row))
        };
        let place = super::cell_place(table, *row, *column);
        findings.push(Finding::new("value-twice", Severity::Note, Confidence::Possible, place).says(
            format!("{} is printed for two different measurements", number.printed),
            format!(
                "{first} and {second} both say {}, to the last of {} digits; beside them {}",
                number.printed,
                number.significant_digits(),
                others.join(", ")
            ),
            "look up whether one was measured, or typed from the other",
        ));
    }
}

fn row_name(table: &Table, row: usize) -> String {
    table.rows.get(row).map_or_else(String::new, |row| row.name.clone())
}

fn column_name(table: &Table, column: usize) -> String {
    table.columns.get(column).map_or_else(String::new, crate::guide::Column::name)
}

/// Two sizes that print the same values in most columns.
fn rows(noise: &Noise, table: &Table, findings: &mut Vec<Finding>) {
    for second in 0..table.rows.len() {
        for first in 0..second {
            let (mut of, mut same) = (0usize, Vec::new());
            for column in 0..table.columns.len() {
                if table.role(first, column) != Some(Role::Measured) {
                    continue;
                }
                let cell = |row: usize| table.rows.get(row).and_then(|row| row.cells.get(column));
                if matches!(cell(first), Some(Cell::Number(_) | Cell::Withheld)) {
                    of += 1;
                }
                let pair = measured(table, first, column).zip(measured(table, second, column));
                same.extend(pair.filter(|(one, two)| one.printed == two.printed).map(|(one, _)| one));
            }
            let values: BTreeSet<&str> = same
                .iter()
                .filter(|number| number.significant_digits() >= MIN_DIGITS)
                .map(|number| number.printed.as_str())
                .collect();
            let share = same.len() as f64 / of.max(1) as f64;
            if values.len() < MIN_VALUES || !(MIN_SHARE..super::copies::MIN_SHARE).contains(&share) {
                continue;
            }
            let place = Place {
                section: table.section.clone(),
                table: Some(table.id.clone()),
                row: Some(row_name(table, second)),
                ..Place::default()
            };
            let source = noise.source();
            findings.push(Finding::new("value-twice", Severity::Note, Confidence::Possible, place).says(
                format!(
                    "rows {} and {} print the same values in {} of {of} columns",
                    row_name(table, first),
                    row_name(table, second),
                    same.len()
                ),
                format!(
                    "{} in both{}{source}",
                    values.into_iter().collect::<Vec<_>>().join(", "),
                    if source.is_empty() { "" } else { "; " }
                ),
                "look up whether both rows were measured: a line that is always busy does this to a tick, and so does a row typed twice",
            ));
        }
    }
}
