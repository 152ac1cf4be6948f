//! Where a row comes from that does not follow from its own table: the row of another that it is a copy of.

use super::{Confidence, Finding, Place, Severity, words};
use crate::guide::{Cell, Derived, Guide, Number, Role, Table};

/// What share of a derived row has to contradict its own inputs before the whole row is another's.
const MIN_WRONG: f64 = 2.0 / 3.0;
/// How improbable it has to be that some row of the guide is as near as the nearest.
const MAX_CHANCE: f64 = 0.02;

/// Looks for the donors of derived rows of which most cells do not follow; `wrong` are the findings on their cells.
pub fn check(guide: &Guide, findings: &mut Vec<Finding>) {
    let mut found = Vec::new();
    for table in &guide.tables {
        for derived in table.derived.iter().filter(|derived| table.row(&derived.target).is_some()) {
            found.extend(donor(guide, table, derived, findings));
        }
    }
    findings.append(&mut found);
}

/// The printed numbers of a row; `None` for one that has other cells too.
fn numbers<'t>(table: &'t Table, name: &str) -> Option<Vec<&'t Number>> {
    table.row(name)?.cells.iter().map(Cell::number).collect()
}

/// A row of another table with the same name and as many cells.
struct Candidate<'g> {
    table: &'g Table,
    apart: f64,
}

fn donor(guide: &Guide, table: &Table, derived: &Derived, findings: &[Finding]) -> Option<Finding> {
    let row = numbers(table, &derived.target)?;
    let wrong = findings.iter().filter(|finding| {
        finding.rule == "quotient"
            && finding.place.table.as_ref() == Some(&table.id)
            && finding.place.row.as_ref() == Some(&derived.target)
    });
    let wrong = wrong.count();
    if wrong < 2 || (wrong as f64) < MIN_WRONG * row.len() as f64 {
        return None;
    }
    let mut candidates = Vec::new();
    let mut kept_back = Vec::new();
    for other in guide.tables.iter().filter(|other| other.id != table.id) {
        for target in other.rows.iter().enumerate().filter(|(row, of)| {
            of.cells.len() == row_len(table)
                && other.role(*row, 0) == Some(Role::Derived)
                && words(&of.name) == words(&derived.target)
        }) {
            if target.1.cells.contains(&Cell::Withheld) {
                kept_back.push(other.id.as_str());
            }
            let Some(theirs) = numbers(other, &target.1.name) else { continue };
            let apart =
                row.iter().zip(theirs).map(|(one, two)| (one.value - two.value).abs()).fold(0.0, f64::max);
            candidates.push(Candidate { table: other, apart });
        }
    }
    let nearest = candidates.iter().min_by(|one, two| one.apart.total_cmp(&two.apart))?;
    // A row of percentages that has nothing to do with this one lies anywhere up to the largest of it.
    let range = row.iter().map(|number| number.value).fold(1.0, f64::max);
    let step = row.iter().map(|number| 2.0 * number.half_unit()).fold(0.0, f64::max);
    let one = ((2.0 * nearest.apart + step) / range).min(1.0);
    let chance = candidates.len() as f64 * one.powi(i32::try_from(row.len()).unwrap_or(i32::MAX));
    if chance > MAX_CHANCE {
        return None;
    }
    Some(finding(table, derived, &row, nearest, (chance, &kept_back)))
}

fn row_len(table: &Table) -> usize {
    table.columns.len()
}

fn finding(
    table: &Table,
    derived: &Derived,
    row: &[&Number],
    nearest: &Candidate<'_>,
    (chance, kept_back): (f64, &[&str]),
) -> Finding {
    let place = Place {
        section: table.section.clone(),
        table: Some(table.id.clone()),
        row: Some(derived.target.clone()),
        ..Place::default()
    };
    let exact = nearest.apart == 0.0;
    let printed =
        |row: Vec<&Number>| row.iter().map(|number| number.printed.as_str()).collect::<Vec<_>>().join(" ");
    let theirs = nearest.table.rows.iter().find(|of| words(&of.name) == words(&derived.target));
    let theirs: Vec<&Number> =
        theirs.map_or_else(Vec::new, |of| of.cells.iter().filter_map(Cell::number).collect());
    let others = if exact || kept_back.is_empty() {
        String::new()
    } else {
        format!("; of tables {} the row is kept back here, and can be the one", kept_back.join(", "))
    };
    let confidence = if exact { Confidence::Likely } else { Confidence::Possible };
    Finding::new("copied-row", Severity::Warning, confidence, place).says(
        if exact {
            format!("the row is that of {} and not of {}", nearest.table.label(), table.label())
        } else {
            format!(
                "the row is not of {}: it is as near to that of {} as two measurements of one thing",
                table.label(),
                nearest.table.label()
            )
        },
        format!(
            "{} here, {} in {}, at most {} apart; a probability of {chance:.1e} for any row of the guide{others}",
            printed(row.to_vec()),
            printed(theirs),
            nearest.table.label(),
            super::show(nearest.apart)
        ),
        "compute the row from its own table",
    )
}
