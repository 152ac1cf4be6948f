//! Units: every number has one, it is printed where the number's heading is, and no two are told apart by case alone.

use std::collections::BTreeMap;

use super::expression::unit;
use super::{Confidence, Finding, Place, Severity};
use crate::guide::{Guide, Role, Table};

/// Checks units.
pub fn check(guide: &Guide, findings: &mut Vec<Finding>) {
    let mut uses: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for table in &guide.tables {
        missing(table, findings);
        unprinted(table, findings);
        for (row, column, cell) in table.cells() {
            if let (Some(unit), Some(_)) = (table.unit(row, column), cell.number()) {
                let tables = uses.entry(unit.to_owned()).or_default();
                if tables.last() != Some(&table.id) {
                    tables.push(table.id.clone());
                }
            }
        }
    }
    spellings(&uses, findings);
}

fn place(table: &Table) -> Place {
    Place { section: table.section.clone(), table: Some(table.id.clone()), ..Place::default() }
}

/// Numbers without any unit, one finding for each table.
fn missing(table: &Table, findings: &mut Vec<Finding>) {
    let without = |(row, column, cell): &(usize, usize, &crate::guide::Cell)| {
        let matters = matches!(table.role(*row, *column), Some(Role::Measured | Role::Theoretical));
        matters && cell.number().is_some_and(|number| !number.percent) && table.unit(*row, *column).is_none()
    };
    let count = table.cells().filter(without).count();
    if count == 0 {
        return;
    }
    let headings: Vec<String> = table.columns.iter().map(crate::guide::Column::name).collect();
    findings.push(Finding::new("unit-missing", Severity::Warning, Confidence::Certain, place(table)).says(
        format!("{} prints numbers without a unit", table.label()),
        format!("{count} numbers; caption \"{}\"; headings {}", table.caption, headings.join(", ")),
        "print the unit in the heading",
    ));
}

/// Units of columns and rows that neither heading, row, corner nor caption shows.
fn unprinted(table: &Table, findings: &mut Vec<Finding>) {
    // A word such as `cycles` may begin a heading; of `Mbps` and `MBPS` the case is the meaning.
    let is_word = |unit: &str| unit.len() > 3 && unit.bytes().all(|byte| byte.is_ascii_lowercase());
    let shown = |unit: &str, name: &str| {
        [name, &table.caption, &table.corner].iter().any(|text| {
            text.contains(unit)
                || (is_word(unit) && !unit.ends_with("ps") && text.to_lowercase().contains(unit))
        }) || (unit == "%" && name.to_lowercase().contains("efficiency"))
    };
    let columns = table.columns.iter().map(|column| (column.unit.as_deref(), column.name()));
    let rows = table.rows.iter().map(|row| (row.unit.as_deref(), row.name.clone()));
    for (unit, name) in columns.chain(rows) {
        let Some(unit) = unit.filter(|unit| !shown(unit, &name)) else { continue };
        let mut at = place(table);
        at.what = Some(name.clone());
        findings.push(Finding::new("unit-heading", Severity::Warning, Confidence::Certain, at).says(
            format!("the numbers are {unit}, and the heading does not say so"),
            format!("heading \"{name}\"; caption \"{}\"", table.caption),
            "print the unit in the heading",
        ));
    }
}

/// Units that differ in case only and mean different things, and several spellings of one unit.
fn spellings(uses: &BTreeMap<String, Vec<String>>, findings: &mut Vec<Finding>) {
    let known: Vec<_> = uses.iter().filter_map(|(name, tables)| Some((name, tables, unit(name)?))).collect();
    for (index, (name, tables, size)) in known.iter().enumerate() {
        for (other, other_tables, other_size) in known.iter().skip(index + 1) {
            let same_size = size == other_size;
            let at = Place { what: Some(format!("{name} and {other}")), ..Place::default() };
            let where_used = format!(
                "{name} in tables {}; {other} in tables {}",
                tables.join(", "),
                other_tables.join(", ")
            );
            // `MB/s` and `Mb/s` are what the standards write; a spelling of one's own must not hang on case.
            let standard = name.contains('/') && other.contains('/');
            if !same_size && !standard && name.eq_ignore_ascii_case(other) {
                findings.push(Finding::new("unit-case", Severity::Warning, Confidence::Certain, at).says(
                    format!(
                        "{name} and {other} differ in case only and by a factor of {}",
                        size.value / other_size.value
                    ),
                    where_used,
                    "write MB/s for bytes and Mb/s for bits",
                ));
            } else if same_size && !(size.is_plain()) {
                findings.push(Finding::new("unit-spelling", Severity::Note, Confidence::Certain, at).says(
                    format!("{name} and {other} are one unit"),
                    where_used,
                    "use one spelling throughout",
                ));
            }
        }
    }
}
