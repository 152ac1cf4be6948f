//! Two tables that state the same quantity have to state the same number.

use super::captions::OPPOSITES;
use super::noise::Noise;
use super::{Confidence, Finding, Place, Severity, cell_place, show, words};
use crate::guide::{Cell, Column, Guide, Number, Role, Table};

/// How many pairs of tables are compared; a guide with more is not searched.
const MAX_TABLES: usize = 256;

/// Holds cells of different tables against each other that mean the same thing: the same unit, conditions, row and column
/// under captions that speak of the same thing.
pub fn check(guide: &Guide, noises: &[Noise], findings: &mut Vec<Finding>) {
    let tables: Vec<(&Table, &Noise)> = guide.tables.iter().zip(noises).take(MAX_TABLES).collect();
    for (index, left) in tables.iter().enumerate() {
        for right in tables.iter().skip(index + 1) {
            if left.0.conditions == right.0.conditions && same_subject(&left.0.caption, &right.0.caption) {
                compare(*left, *right, findings);
            }
        }
    }
}

/// Whether two captions can speak of one thing: what they do not share holds no opposites, no numbers and no names.
fn same_subject(left: &str, right: &str) -> bool {
    let (one, two) = (words(left), words(right));
    if one.is_empty() || two.is_empty() {
        return false;
    }
    let only = |of: &[String], other: &[String]| -> Vec<String> {
        of.iter().filter(|word| !other.contains(word)).cloned().collect()
    };
    let (only_left, only_right) = (only(&one, &two), only(&two, &one));
    let opposite = |a: &str, b: &str| {
        let has = |all: &[String], word: &str| all.iter().any(|one| one.trim_end_matches('s') == word);
        has(&only_left, a) && has(&only_right, b) || has(&only_left, b) && has(&only_right, a)
    };
    // Digits and a run of capitals name a part: `DDR3A`, `MSMC`, `3.125`.
    let part = |text: &str, word: &String| {
        word.bytes().any(|byte| byte.is_ascii_digit())
            || word.len() > 1 && text.contains(&word.to_ascii_uppercase())
    };
    !OPPOSITES.iter().any(|(a, b)| opposite(a, b))
        && !only_left.iter().any(|word| part(left, word))
        && !only_right.iter().any(|word| part(right, word))
        && only_left.len() < one.len()
}

/// What a column is about: its tags, or the words of its heading.
fn about(column: &Column) -> (Vec<(String, String)>, Vec<String>) {
    let tags = column.tags.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    (tags, words(&column.name()))
}

fn compare(
    (left, noise): (&Table, &Noise),
    (right, other_noise): (&Table, &Noise),
    findings: &mut Vec<Finding>,
) {
    let mut apart = Vec::new();
    let mut first = None;
    for (row, column, cell) in left.cells() {
        let (Some(of), Some(across), Some(one)) =
            (left.rows.get(row), left.columns.get(column), cell.number())
        else {
            continue;
        };
        let there = right.rows.iter().position(|other| words(&other.name) == words(&of.name));
        let over = right.columns.iter().position(|other| about(other) == about(across));
        let Some((their_row, their_column)) = there.zip(over) else { continue };
        let Some(Cell::Number(two)) = right.rows.get(their_row).and_then(|row| row.cells.get(their_column))
        else {
            continue;
        };
        let roles = (left.role(row, column), right.role(their_row, their_column));
        if roles.0 != roles.1
            || !matches!(roles.0, Some(Role::Measured | Role::Theoretical | Role::Parameter))
            || left.unit(row, column) != right.unit(their_row, their_column)
        {
            continue;
        }
        let scatter = if roles.0 == Some(Role::Measured) {
            // Measured twice, they may differ; without a word on the scatter nothing is known of how far.
            let shares =
                noise.share(left, row, column).zip(other_noise.share(right, their_row, their_column));
            let Some((here, there)) = shares else { continue };
            here * one.value + there * two.value
        } else {
            0.0
        };
        if (one.value - two.value).abs() > one.half_unit() + two.half_unit() + scatter {
            first.get_or_insert((row, column));
            apart.push(difference(of.name.as_str(), across, one, two));
        }
    }
    let Some((row, column)) = first else { return };
    let place = Place { what: Some(format!("table {}", right.id)), ..cell_place(left, row, column) };
    findings.push(Finding::new("same-quantity", Severity::Warning, Confidence::Likely, place).says(
        format!("{} and {} state the same quantity with different numbers", left.label(), right.label()),
        apart.join("; "),
        "state it once, or say what sets the two apart",
    ));
}

fn difference(row: &str, column: &Column, one: &Number, two: &Number) -> String {
    let percent = 100.0 * (two.value / one.value - 1.0);
    format!("{row}, {}: {} and {} ({} %)", column.name(), one.printed, two.printed, show(percent))
}
