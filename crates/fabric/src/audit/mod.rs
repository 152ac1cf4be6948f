//! Checks a transcribed datasheet against itself, by general rules that print their arithmetic.
//!
//! No rule knows this or that guide. Each compares two things that have to agree: a formula and the value beside it, a
//! percentage and its quotient, a caption and its entry in the list, a measurement and what physics allows.
//!
//! | rule | what has to agree | evidence it needs |
//! |---|---|---|
//! | `formula`, `formula-cell`, `rounding` | a formula, the value beside it, the cell it explains | more than half a last digit; `rounding` when one digit was cut off |
//! | `formula-unreadable` | a formula and its units | no value in the unit that is printed |
//! | `quotient` | an efficiency, a product or a share, and the cells that it names | more than the rounding of every input adds up to |
//! | `theoretical` | a theoretical cell and the chip description | more than half a last digit |
//! | `above-maximum` | a measurement and the theoretical row, the whole, or lanes times line rate | more than rounding |
//! | `falls-with-size`, `time-falls`, `fewer-lanes-faster`, `burst-slower` | measurements in an order that physics demands | more than noise and rounding |
//! | `statistic`, `under-a-cycle` | a mean and its extremes; a time and the clock that took it | more than rounding |
//! | `copy` | rows or columns measured independently | nine in ten the same, coincidence below [`MAX_COINCIDENCE`] |
//! | `copied-row` | a derived row that does not follow, and the rows of other tables | as near as one in fifty rows is by chance |
//! | `value-twice` | two measurements beside others that differ; two sizes in most columns | five digits the same; three values in three columns of four |
//! | `same-quantity` | two tables with one subject, condition, row and column | more than noise and rounding |
//! | `constant-time` | sizes and the times that they take | four sizes with one time, the same bound |
//! | `prefix` | times and the clock that counted them | whole cycles at a factor of 1024 and none without, the same bound |
//! | `claim`, `caption-text`, `column-text` | a sentence and the cells, the caption or the columns that it speaks of | more than rounding and the stated margin |
//! | `factor` | a property in the text and the one that a cell's formula counts with | another value of the same unit, and the stated one nowhere |
//! | `overhead` | the cost of a packet as stated and as the cells give it | more than rounding; of measured cells three that give one number |
//! | `name-kind` | a name and its kind | static, dynamic and non-volatile exclude each other |
//! | `caption-list`, `caption-twice`, `caption-rows`, `caption-corner`, `caption-parts`, `figure-rate` | captions, lists, rows, headings | different words; blanks and marks do not count |
//! | `unit-missing`, `unit-heading`, `unit-case`, `unit-spelling` | numbers and headings | a unit that is not there, or two that mean one |
//! | `mark`, `footnote-row`, `legend` | marks, footnotes, symbols | a mark without note, two symbols with one meaning |
//! | `reference-missing`, `reference-dangling`, `document-number`, `document-title`, `citation-unlisted` | references | a target that is not there, titles with fewer than four words in five in common |
//! | `contents`, `announced`, `item-twice`, `paragraph-twice`, `page-order` | titles, lists, paragraphs, pages | the same or other words; paragraphs of 25 words and more |
//!
//! **False positives** are held down in four ways. Tolerances come from what was printed: a number lies within half its
//! last digit, and results within what those bounds make of the expression. Measurements may scatter, by no assumed share:
//! where a table's conditions name the clock (`core`) and how many transfers were timed together (`transactions`), the times
//! behind its rates are held against whole ticks of that clock, and the tick that they stand on is the least that two
//! measurements may differ by; what the times of the three largest sizes miss a straight line by counts where it is more; a
//! guide that states its accuracy (`noise-percent`) is believed. A table of whose scatter nothing is known is no evidence for
//! an order or a copy. A coincidence is only reported when its probability under that scatter, times the number of places
//! where it could have happened, stays below [`MAX_COINCIDENCE`]. And withheld cells are no evidence for anything. A synthetic
//! guide without mistakes gives no finding, and one planted mistake gives that one; the tests hold both, for three published
//! guides they hold every finding, and for the KeyStone II guide a list of its errata.

mod captions;
mod claims;
mod copies;
mod donors;
mod expression;
mod finding;
mod formulas;
mod limits;
mod monotone;
mod names;
mod noise;
mod overheads;
mod quotients;
mod references;
mod same;
mod statistics;
mod structure;
mod ticks;
mod twice;
mod units;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use copies::MAX_COINCIDENCE;
pub use expression::{ExpressionError, Quantity, evaluate, unit};
pub use finding::{Confidence, Finding, Place, Severity};
pub use limits::{Expectations, Expected, OfModel};

use noise::Noise;

use crate::guide::{Cell, Guide, Number, Role, Table};

/// Every finding in a guide, the gravest first; the same guide gives the same findings in the same order.
///
/// `expectations` says what the description of the chip makes of the theoretical cells; without it they are only held
/// against their own formulas.
pub fn run(guide: &Guide, expectations: Option<&dyn Expectations>) -> Vec<Finding> {
    let mut findings = Vec::new();
    formulas::check(guide, &mut findings);
    quotients::check(guide, &mut findings);
    donors::check(guide, &mut findings);
    limits::check(guide, expectations, &mut findings);
    let noises = Noise::of_all(guide);
    monotone::check(guide, &noises, &mut findings);
    statistics::check(guide, &mut findings);
    copies::check(guide, &noises, &mut findings);
    twice::check(guide, &noises, &mut findings);
    same::check(guide, &noises, &mut findings);
    ticks::check(guide, &noises, &mut findings);
    claims::check(guide, &mut findings);
    captions::check(guide, &mut findings);
    names::check(guide, &mut findings);
    units::check(guide, &mut findings);
    references::check(guide, &mut findings);
    structure::check(guide, &mut findings);
    findings.sort_by_key(|finding| (finding.severity, finding.confidence));
    number_repeats(&mut findings);
    findings
}

/// Gives findings of one rule at one place identifiers of their own.
fn number_repeats(findings: &mut [Finding]) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for finding in findings {
        let count = seen.entry(finding.id.clone()).or_insert(0);
        *count += 1;
        if *count > 1 {
            finding.id = format!("{}#{count}", finding.id);
        }
    }
}

/// A number for a reader: six significant digits, no trailing zeros.
fn show(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let magnitude = value.abs().log10().floor();
    if !(-6.0..12.0).contains(&magnitude) {
        return format!("{value:.3e}");
    }
    let decimals = (5.0 - magnitude).clamp(0.0, 12.0) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// The place of a cell, its row and column from 0.
fn cell_place(table: &Table, row: usize, column: usize) -> Place {
    Place {
        section: table.section.clone(),
        table: Some(table.id.clone()),
        row: table.rows.get(row).map(|row| row.name.clone()),
        column: Some(column + 1),
        what: None,
    }
}

/// The number in a cell, if the cell was measured.
fn measured(table: &Table, row: usize, column: usize) -> Option<&Number> {
    let cell = table.rows.get(row)?.cells.get(column).and_then(Cell::number)?;
    (table.role(row, column) == Some(Role::Measured)).then_some(cell)
}

/// Words in lower case without marks and punctuation, for comparing captions and titles.
fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '.' || c == '%' || c == '+'))
        .map(|word| word.trim_matches('.').to_lowercase())
        .filter(|word| !word.is_empty())
        .collect()
}
