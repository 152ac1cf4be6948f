//! Formulas against the values printed beside them, and those against the cells that they explain.

use super::expression::{evaluate, unit};
use super::{Confidence, Finding, Place, Severity, show};
use crate::guide::{Cell, Formula, Guide, Number};

/// Holds every formula against its printed value, and the printed value against its cell.
///
/// A value is right when the formula's result rounds to it. Cut off instead of rounded is a note, as nothing but a digit is
/// lost; anything further away cannot come from the formula.
pub fn check(guide: &Guide, findings: &mut Vec<Finding>) {
    for formula in &guide.formulas {
        value(guide, formula, findings);
        cell(guide, formula, findings);
    }
}

fn place(formula: &Formula) -> Place {
    let (table, row, column) = match &formula.cell {
        Some(at) => (Some(at.table.clone()), Some(at.row.clone()), Some(at.column)),
        None => (None, None, None),
    };
    // In a table the cell names the formula; in the text its words do.
    let what = formula.cell.is_none().then(|| formula.text.clone());
    Place { section: formula.section.clone(), table, row, column, what }
}

fn value(guide: &Guide, formula: &Formula, findings: &mut Vec<Finding>) {
    let broken = |why: String, findings: &mut Vec<Finding>| {
        let finding =
            Finding::new("formula-unreadable", Severity::Warning, Confidence::Certain, place(formula));
        findings.push(finding.says(
            format!("the formula `{}` has no value", formula.text),
            why,
            "write the formula so that its units work out",
        ));
    };
    let Some(printed) = Number::read(&formula.printed) else {
        return broken(format!("`{}` is no number", formula.printed), findings);
    };
    let result = match evaluate(&formula.expression, &|_| None) {
        Ok(result) => result,
        Err(error) => return broken(error.to_string(), findings),
    };
    let computed = if result.is_plain() {
        result.value
    } else {
        match unit(&formula.unit).filter(|unit| unit.same_kind(&result)) {
            Some(unit) => result.value / unit.value,
            None => {
                let why = format!(
                    "{} gives bits^{} seconds^{}, not {}",
                    formula.expression, result.bits, result.seconds, formula.unit
                );
                return broken(why, findings);
            }
        }
    };
    let off = (computed - printed.value).abs();
    let slack = 1e-9 * computed.abs();
    if off <= printed.half_unit() + slack {
        return;
    }
    let arithmetic = format!(
        "{} = {} {}; printed {} {}; off by {} ({} %)",
        formula.expression,
        show(computed),
        formula.unit,
        formula.printed,
        formula.unit,
        show(computed - printed.value),
        show(100.0 * (computed - printed.value) / printed.value)
    );
    let cut_off = computed > printed.value && off < 2.0 * printed.half_unit();
    let finding = if cut_off {
        Finding::new("rounding", Severity::Note, Confidence::Certain, place(formula)).says(
            format!("{} {} is cut off and not rounded", formula.printed, formula.unit),
            arithmetic,
            "round as elsewhere in the guide, or say that values are cut off",
        )
    } else {
        Finding::new("formula", Severity::Error, Confidence::Certain, place(formula)).says(
            format!("the formula does not give the {} {} printed beside it", formula.printed, formula.unit),
            arithmetic + &elsewhere(guide, formula, computed),
            "correct the factor or the value, whichever the hardware description contradicts",
        )
    };
    findings.push(finding);
}

/// Which other formulas print the number that this one should have, or share its wrong one: a trace of what went wrong.
fn elsewhere(guide: &Guide, formula: &Formula, computed: f64) -> String {
    let same = |other: &&Formula| {
        !std::ptr::eq(*other, formula)
            && Number::read(&other.printed)
                .is_some_and(|number| (number.value - computed).abs() <= number.half_unit())
    };
    let count = guide.formulas.iter().filter(same).count();
    if count == 0 {
        String::new()
    } else {
        format!("; {count} other formulas of the guide print {}", show(computed))
    }
}

fn cell(guide: &Guide, formula: &Formula, findings: &mut Vec<Finding>) {
    let Some(at) = &formula.cell else { return };
    let (Some(Cell::Number(cell)), Some(printed)) = (guide.cell(at), Number::read(&formula.printed)) else {
        return;
    };
    if (cell.value - printed.value).abs() <= cell.half_unit().max(printed.half_unit()) {
        return;
    }
    findings.push(Finding::new("formula-cell", Severity::Error, Confidence::Certain, place(formula)).says(
        format!("the cell says {} and the formula beside it {}", cell.printed, formula.printed),
        format!("{} - {} = {}", cell.printed, formula.printed, show(cell.value - printed.value)),
        "make the cell and its formula agree",
    ));
}
