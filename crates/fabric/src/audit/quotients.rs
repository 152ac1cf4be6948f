//! Rows and columns that follow from others: efficiencies, products, and the percentages in parentheses.

use std::collections::BTreeMap;

use super::expression::evaluate;
use super::{Confidence, Finding, Place, Severity, show};
use crate::guide::{Cell, Derived, Guide, Number, Role, Table};

/// How far rounding to tens or hundreds moves a value at most before it is another value, as a share of it.
const MAX_ROUNDING: f64 = 1e-3;

/// Holds every derived cell against the cells that it follows from.
///
/// Every input lies within half its last digit, unless it was chosen and not measured (a size, an overhead); the result
/// lies between the extremes of the expression over those bounds, and the printed value within half its own last digit.
pub fn check(guide: &Guide, findings: &mut Vec<Finding>) {
    for table in &guide.tables {
        for derived in &table.derived {
            let by_row = table.row(&derived.target).is_some();
            let places = if by_row { table.columns.len() } else { table.rows.len() };
            for index in 0..places {
                one(table, derived, by_row, index, findings);
            }
        }
        if let Some(whole) = table.share_of.as_ref().and_then(|id| guide.table(id)) {
            shares(table, whole, findings);
        }
    }
}

/// A number that an expression uses, and how far rounding may have moved it.
struct Input {
    number: Number,
    half_unit: f64,
}

/// The cell of a named row or column at this index along the other direction; the first column is a number by its text.
fn lookup(table: &Table, name: &str, by_row: bool, index: usize) -> Option<Input> {
    if !by_row && name == table.corner {
        return Some(Input { number: Number::read(&table.rows.get(index)?.name)?, half_unit: 0.0 });
    }
    let (row, column) = if by_row {
        (table.rows.iter().position(|row| row.name == name)?, index)
    } else {
        (index, table.column_index(name)?)
    };
    let number = table.rows.get(row)?.cells.get(column)?.number()?.clone();
    let exact = table.role(row, column) == Some(Role::Parameter);
    let half_unit = if exact { 0.0 } else { number.half_unit() };
    Some(Input { number, half_unit })
}

fn one(table: &Table, derived: &Derived, by_row: bool, index: usize, findings: &mut Vec<Finding>) {
    let Some(Input { number: printed, .. }) = lookup(table, &derived.target, by_row, index) else { return };
    let mut given = BTreeMap::new();
    for (short, name) in &derived.given {
        // A withheld input is no evidence: nothing to say about this cell.
        let Some(input) = lookup(table, name, by_row, index) else { return };
        given.insert(short.as_str(), input);
    }
    let at =
        |name: &str, offset: f64| given.get(name).map(|input| input.number.value + offset * input.half_unit);
    let Ok(result) = evaluate(&derived.expression, &|name| at(name, 0.0)) else {
        return unreadable(table, derived, findings);
    };
    // The effect of each input's rounding, one by one; they add up in the worst case.
    let mut slack = printed.half_unit() + 1e-9 * result.value.abs();
    for moved in given.keys() {
        let offset = |name: &str| if name == *moved { 1.0 } else { 0.0 };
        if let Ok(other) = evaluate(&derived.expression, &|name| at(name, offset(name))) {
            slack += (other.value - result.value).abs();
        }
    }
    if (result.value - printed.value).abs() <= slack {
        return;
    }
    let (row, column) = if by_row {
        (derived.target.clone(), index + 1)
    } else {
        let row = table.rows.get(index).map_or_else(String::new, |row| row.name.clone());
        (row, table.column_index(&derived.target).map_or(0, |column| column + 1))
    };
    let inputs: Vec<String> =
        given.iter().map(|(name, input)| format!("{name} = {}", input.number.printed)).collect();
    let place = Place {
        section: table.section.clone(),
        table: Some(table.id.clone()),
        row: Some(row),
        column: Some(column),
        what: None,
    };
    if to_coarser_digits(&printed, result.value) {
        findings.push(Finding::new("rounding", Severity::Note, Confidence::Certain, place).says(
            format!("{} is rounded more than its digits show", printed.printed),
            format!("{} with {} = {}", derived.expression, inputs.join(", "), show(result.value)),
            "print every digit that is known, or say how many are",
        ));
        return;
    }
    findings.push(Finding::new("quotient", Severity::Error, Confidence::Certain, place).says(
        format!("{} does not follow from the cells that it names", printed.printed),
        format!(
            "{} with {} = {}; printed {}; more than the {} that rounding explains",
            derived.expression,
            inputs.join(", "),
            show(result.value),
            printed.printed,
            show(slack)
        ),
        "measure again, or correct the one cell of these that was mistyped",
    ));
}

/// Whether a whole number ends with zeros that are no digits of the result: 7430 for 7429.42.
fn to_coarser_digits(printed: &Number, result: f64) -> bool {
    let zeros = printed.printed.len() - printed.printed.trim_end_matches('0').len();
    let step = 10f64.powi(i32::try_from(zeros).unwrap_or(0));
    let off = (result - printed.value).abs();
    printed.decimals == 0 && zeros > 0 && off <= 0.5 * step && off <= MAX_ROUNDING * result.abs()
}

fn unreadable(table: &Table, derived: &Derived, findings: &mut Vec<Finding>) {
    let place = Place {
        section: table.section.clone(),
        table: Some(table.id.clone()),
        row: Some(derived.target.clone()),
        ..Place::default()
    };
    let finding = Finding::new("formula-unreadable", Severity::Warning, Confidence::Certain, place);
    if findings.iter().all(|known| known.id != finding.id) {
        findings.push(finding.says(
            format!("`{}` has no value", derived.expression),
            "the expression names what is not given, or divides by zero".to_owned(),
            "correct the expression",
        ));
    }
}

/// The percentage in parentheses against the quotient with the same cell of the whole's table.
fn shares(table: &Table, whole: &Table, findings: &mut Vec<Finding>) {
    for (row, column, cell) in table.cells() {
        let Cell::Number(Number { value, share_percent: Some(share), printed, .. }) = cell else { continue };
        let Some(name) = table.rows.get(row).map(|row| row.name.clone()) else { continue };
        let Some(of) = whole.cell(&name, column + 1).and_then(Cell::number) else { continue };
        let half = cell.number().map_or(0.0, Number::half_unit);
        let computed = 100.0 * value / of.value;
        let slack = 0.5 + computed * (half / value + of.half_unit() / of.value) + 1e-9;
        if (computed - share).abs() <= slack || !computed.is_finite() {
            continue;
        }
        let place = Place {
            section: table.section.clone(),
            table: Some(table.id.clone()),
            row: Some(name),
            column: Some(column + 1),
            what: None,
        };
        findings.push(Finding::new("quotient", Severity::Error, Confidence::Certain, place).says(
            format!("{share} % is not the share of {} that the cell is", whole.label()),
            format!("100 * {printed} / {} = {}; printed {share}", of.printed, show(computed)),
            "correct the share, the measurement or the maximum",
        ));
    }
}
