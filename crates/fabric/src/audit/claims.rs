//! Sentences of the guide against its tables.

use std::collections::BTreeMap;

use super::captions::{opposite_in, rates};
use super::expression::{evaluate, literals, unit};
use super::{Confidence, Finding, Place, Severity, overheads, show, words};
use crate::guide::{CellAt, Cells, Claim, Guide, Number, Operand, Order, Relation};

/// Holds every claim against what it speaks of. A claim about withheld cells only is left alone.
pub fn check(guide: &Guide, findings: &mut Vec<Finding>) {
    for claim in &guide.claims {
        match &claim.relation {
            Relation::Compare { left, order, right, margin_percent } => {
                compare(guide, claim, (left, *order, right), *margin_percent, findings);
            }
            Relation::Steps { table, from, to, step } => {
                steps(guide, claim, table, (*from, *to, *step), findings)
            }
            Relation::Describes { table, attributes, also } => {
                describes(guide, claim, table, attributes, findings);
                endpoints(guide, claim, (table, also), attributes, findings);
            }
            Relation::Factor { cell, value } => factor(guide, claim, cell, value, findings),
            Relation::Overhead { stated, line, packets } => {
                overheads::check(guide, claim, (stated, line), packets, findings);
            }
        }
    }
}

pub fn place(claim: &Claim, table: Option<&str>, row: Option<&str>) -> Place {
    Place {
        section: claim.section.clone(),
        table: table.map(str::to_owned),
        row: row.map(str::to_owned),
        column: None,
        what: Some(format!("\"{}\"", claim.text)),
    }
}

/// A value on one side of a comparison: what it is, and how far rounding may have moved it.
struct Side {
    value: f64,
    half_unit: f64,
    name: String,
}

/// The printed cells of an operand by their place in the directions that it leaves open.
fn side_cells<'g>(guide: &'g Guide, cells: &Cells) -> BTreeMap<(String, usize), (Side, Option<&'g str>)> {
    let mut sides = BTreeMap::new();
    let Some(table) = guide.table(&cells.table) else { return sides };
    for (row, column, cell) in table.cells() {
        let (Some(of), Some(number)) = (table.rows.get(row), cell.number()) else { continue };
        let outside = cells.row.as_ref().is_some_and(|name| *name != of.name)
            || cells.column.is_some_and(|wanted| wanted != column + 1);
        if outside {
            continue;
        }
        let row_key = if cells.row.is_some() { String::new() } else { of.name.clone() };
        let column_key = if cells.column.is_some() { 0 } else { column + 1 };
        let name = format!("{} (table {}, {}, column {})", number.printed, table.id, of.name, column + 1);
        let side = Side { value: number.value, half_unit: number.half_unit(), name };
        sides.insert((row_key, column_key), (side, table.unit(row, column)));
    }
    sides
}

/// An expression in the unit of the cell that it is held against.
fn side_expression(text: &str, in_unit: Option<&str>) -> Option<Side> {
    let quantity = evaluate(text, &|_| None).ok()?;
    let value = if quantity.is_plain() {
        quantity.value
    } else {
        quantity.value / in_unit.and_then(unit).filter(|unit| unit.same_kind(&quantity))?.value
    };
    Some(Side { value, half_unit: 1e-9 * value.abs(), name: format!("{} ({text})", show(value)) })
}

fn compare(
    guide: &Guide,
    claim: &Claim,
    (left, order, right): (&Operand, Order, &Operand),
    margin_percent: f64,
    findings: &mut Vec<Finding>,
) {
    let Operand::Cells(of) = left else {
        return unreadable(claim, "a claim compares cells with something", findings);
    };
    let lefts = side_cells(guide, of);
    let mut held = 0usize;
    let mut broken = Vec::new();
    let rights = match right {
        Operand::Cells(cells) => Some(side_cells(guide, cells)),
        Operand::Expression(_) => None,
    };
    for (key, (one, in_unit)) in &lefts {
        let computed;
        let other = match (right, &rights) {
            (Operand::Expression(text), _) => match side_expression(text, *in_unit) {
                Some(side) => {
                    computed = side;
                    &computed
                }
                None => return unreadable(claim, text, findings),
            },
            (_, Some(rights)) => match rights.get(key) {
                Some((side, _)) => side,
                None => continue,
            },
            _ => continue,
        };
        if holds(one, order, other, margin_percent) {
            held += 1;
        } else {
            broken.push(format!("{} against {}", one.name, other.name));
        }
    }
    if broken.is_empty() {
        return;
    }
    let place = place(claim, Some(&of.table), of.row.as_deref());
    findings.push(Finding::new("claim", Severity::Warning, Confidence::Likely, place).says(
        format!("the text says \"{}\", and the table does not", claim.text),
        format!("expected {}: {}; {held} other cells agree", sign(order, margin_percent), broken.join("; ")),
        "correct the sentence, state the condition under which it holds, or correct the cells",
    ));
}

/// Whether two values relate so, given what rounding leaves open.
fn holds(left: &Side, order: Order, right: &Side, margin_percent: f64) -> bool {
    let slack = left.half_unit + right.half_unit;
    let margin = margin_percent / 100.0 * right.value.abs();
    let gap = left.value - right.value;
    match order {
        Order::Less | Order::AtMost => gap <= slack - margin,
        Order::Same => gap.abs() <= slack + margin,
        Order::AtLeast | Order::Greater => gap >= margin - slack,
    }
}

fn sign(order: Order, margin_percent: f64) -> String {
    let sign = match order {
        Order::Less => "<",
        Order::AtMost => "<=",
        Order::Same => "=",
        Order::AtLeast => ">=",
        Order::Greater => ">",
    };
    if margin_percent > 0.0 { format!("{sign} (margin {margin_percent} %)") } else { sign.to_owned() }
}

pub fn unreadable(claim: &Claim, why: &str, findings: &mut Vec<Finding>) {
    let place = place(claim, None, None);
    findings.push(Finding::new("formula-unreadable", Severity::Warning, Confidence::Certain, place).says(
        "a claim cannot be held against anything".to_owned(),
        why.to_owned(),
        "write it with cells on the left and a value of their kind on the right",
    ));
}

/// The first cells of the rows grow by one step over a stretch.
fn steps(
    guide: &Guide,
    claim: &Claim,
    table: &str,
    (from, to, step): (f64, f64, f64),
    findings: &mut Vec<Finding>,
) {
    let Some(of) = guide.table(table) else { return };
    let sizes: Vec<f64> = of
        .rows
        .iter()
        .filter_map(|row| Some(Number::read(&row.name)?.value))
        .filter(|v| (from..=to).contains(v))
        .collect();
    let odd: Vec<String> = sizes
        .iter()
        .zip(sizes.iter().skip(1))
        .filter(|(before, after)| (*after - *before - step).abs() > 1e-9 * step.abs())
        .map(|(before, after)| format!("{after} - {before} = {}", show(after - before)))
        .collect();
    if odd.is_empty() {
        return;
    }
    findings.push(
        Finding::new("claim", Severity::Note, Confidence::Certain, place(claim, Some(table), None)).says(
            format!("the text says \"{}\", and the rows step otherwise", claim.text),
            format!("expected {step}: {}", odd.join("; ")),
            "state the step that was used, or print the sizes that were measured",
        ),
    );
}

/// What the text says a table holds, against its caption.
fn describes(
    guide: &Guide,
    claim: &Claim,
    table: &str,
    attributes: &BTreeMap<String, String>,
    findings: &mut Vec<Finding>,
) {
    let Some(of) = guide.table(table) else { return };
    let caption = words(&of.caption);
    let in_caption = rates(&of.caption);
    let mut wrong = Vec::new();
    for (key, value) in attributes {
        if let Some(rate) = evaluate(value, &|_| None).ok().filter(|quantity| !quantity.is_plain()) {
            if !in_caption.is_empty() && in_caption.iter().all(|(found, _)| *found != rate.value) {
                let found: Vec<&str> = in_caption.iter().map(|(_, text)| text.as_str()).collect();
                wrong.push(format!("{key}: text {value}, caption {}", found.join(", ")));
            }
        } else if let Some(opposite) = opposite_in(value, &caption) {
            wrong.push(format!("{key}: text {value}, caption {opposite}"));
        }
    }
    if wrong.is_empty() {
        return;
    }
    let place = place(claim, Some(table), None);
    findings.push(Finding::new("caption-text", Severity::Warning, Confidence::Certain, place).says(
        format!("{} is not what the text before it announces", of.label()),
        format!("{}; caption \"{}\"", wrong.join("; "), of.caption),
        "correct the caption or the sentence",
    ));
}

/// What the text says was measured, against the tags of the columns: every one of them, and nothing else.
fn endpoints(
    guide: &Guide,
    claim: &Claim,
    (table, also): (&str, &[String]),
    attributes: &BTreeMap<String, String>,
    findings: &mut Vec<Finding>,
) {
    for (key, value) in attributes {
        let said: Vec<&str> = value
            .split(", ")
            .flat_map(|part| part.split(" and "))
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .collect();
        let mut wrong = Vec::new();
        for id in [table].into_iter().chain(also.iter().map(String::as_str)) {
            let Some(of) = guide.table(id) else { continue };
            let mut printed: Vec<&str> =
                of.columns.iter().filter_map(|column| column.tags.get(key)).map(String::as_str).collect();
            printed.sort_unstable();
            printed.dedup();
            if printed.is_empty() {
                continue;
            }
            let more: Vec<&str> = printed.iter().filter(|one| !said.contains(one)).copied().collect();
            let fewer: Vec<&str> = said.iter().filter(|one| !printed.contains(one)).copied().collect();
            for (what, which) in [("has also", more), ("lacks", fewer)] {
                if !which.is_empty() {
                    wrong.push(format!("{} {what} {}", of.label(), which.join(", ")));
                }
            }
        }
        if wrong.is_empty() {
            continue;
        }
        findings.push(
            Finding::new(
                "column-text",
                Severity::Warning,
                Confidence::Likely,
                place(claim, Some(table), None),
            )
            .says(
                format!("the text says that {key} was {value}, and the columns say otherwise"),
                wrong.join("; "),
                "say what was measured, or say of which columns the sentence speaks",
            ),
        );
    }
}

/// A property that the text states, against what the formula of a cell counts with.
fn factor(guide: &Guide, claim: &Claim, cell: &CellAt, value: &str, findings: &mut Vec<Finding>) {
    let Ok(stated) = evaluate(value, &|_| None) else { return unreadable(claim, value, findings) };
    for formula in guide.formulas.iter().filter(|formula| formula.cell.as_ref() == Some(cell)) {
        let all = literals(&formula.expression);
        let alike: Vec<_> = all.iter().filter(|literal| literal.same_kind(&stated)).collect();
        let same =
            |literal: &&&super::Quantity| (literal.value - stated.value).abs() <= 1e-9 * stated.value.abs();
        if stated.is_plain() || alike.is_empty() || alike.iter().any(|literal| same(&literal)) {
            continue;
        }
        let unit = unit_of(value);
        let one = evaluate(&format!("1 {unit}"), &|_| None).map_or(1.0, |one| one.value);
        let used: Vec<String> =
            alike.iter().map(|literal| format!("{} {unit}", show(literal.value / one))).collect();
        let mut at = place(claim, Some(&cell.table), Some(&cell.row));
        at.column = Some(cell.column);
        findings.push(Finding::new("factor", Severity::Warning, Confidence::Likely, at).says(
            format!("the text says {value}, and the formula counts with {}", used.join(", ")),
            format!("section {}: \"{}\"; formula `{}`", claim.section, claim.text, formula.text),
            "look the value up in the data manual, and say where both hold if both do",
        ));
    }
}

/// The unit at the end of a value: `bits` of `128 bits`.
fn unit_of(value: &str) -> &str {
    value.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == ' ')
}
