//! What structures and parameters that have not seen a cell say of it.

use super::{kind, share_of_nine_in_ten};
use crate::fit::Measurement;
use crate::guide::Sentence;
use crate::model::ensemble::{Open, open};
use crate::model::mixture::mix;
use crate::model::part::{Part, part_of};
use crate::predict::{Calibrate, Prediction, TableModel};
use crate::soc::{EditError, Soc, Structure};

/// A cell with what is said of it without it.
pub(super) struct Judged {
    pub(super) cell: Measurement,
    /// By the structures that are fitted to all cells.
    pub(super) seen: Option<f64>,
    /// By those that are fitted without its table; none where that tests nothing.
    pub(super) without_table: Option<LeftOut>,
    /// By those that are fitted to the other half of its part's cells.
    pub(super) alternate: Option<LeftOut>,
}

/// What is said of a cell that was left out.
pub(super) struct LeftOut {
    /// What was left out with it: the table, or which half.
    pub(super) fold: String,
    pub(super) members: Vec<(f64, Prediction)>,
    /// Predicted over measured, less one.
    pub(super) error: f64,
}

/// How cells of a kind are left out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    /// With their table.
    Table,
    /// With every other row of their part.
    Rows,
}

/// The harder test, where it says something on half of the cells of a kind at least.
pub(super) fn scheme(judged: &[Judged], kinds: &[&str]) -> Scheme {
    let own: Vec<&Judged> = judged.iter().filter(|one| kinds.contains(&one.kind())).collect();
    let by_table = own.iter().filter(|one| one.without_table.is_some()).count();
    if 2 * by_table >= own.len() { Scheme::Table } else { Scheme::Rows }
}

impl Judged {
    /// What is said of the cell when it is left out.
    pub(super) fn left_out(&self, scheme: Scheme) -> Option<&LeftOut> {
        match scheme {
            Scheme::Table => self.without_table.as_ref(),
            Scheme::Rows => self.alternate.as_ref(),
        }
    }

    pub(super) fn kind(&self) -> &'static str {
        kind(&self.cell.table, &self.cell.row).unwrap_or("other")
    }
}

/// The structures of a part fitted to some cells, and models with each parameter moved that those cells do not see.
struct Refitted {
    open: Open,
    unseen: Vec<(Part, Part)>,
}

impl Refitted {
    fn new(structures: &[Structure], part: &str, kept: &[Measurement]) -> Self {
        let open = open(structures, part, kept, &[]);
        let mut unseen = Vec::new();
        if let Some(best) = open.best() {
            let model = Part::new(&best.soc, part);
            let free = model.free();
            for (at, parameter) in free.iter().enumerate() {
                let moved = |share: f64| {
                    let mut values: Vec<f64> = free.iter().map(|one| one.value).collect();
                    if let Some(value) = values.get_mut(at) {
                        let step = share * (parameter.max - parameter.min);
                        *value = (*value + step).clamp(parameter.min, parameter.max);
                    }
                    model.with_free(&values)
                };
                let pair = (moved(1e-4), moved(-1e-4));
                if !kept.iter().any(|cell| differs(&pair, cell)) {
                    unseen.push(pair);
                }
            }
        }
        Self { open, unseen }
    }

    /// A cell that hangs on a parameter which the fit could not see either tests nothing: the parameter still has the value
    /// of the file, which may come from this very cell.
    fn left_out(&self, cell: &Measurement, fold: &str) -> Option<LeftOut> {
        if self.unseen.iter().any(|pair| differs(pair, cell)) {
            return None;
        }
        let members = self.open.predictions(&cell.table, &cell.row, cell.column);
        let error = mix(&members, None)?.predicted / cell.value - 1.0;
        Some(LeftOut { fold: fold.to_owned(), members, error })
    }
}

fn differs(pair: &(Part, Part), cell: &Measurement) -> bool {
    let of = |model: &Part| model.figure(&cell.table, &cell.row, cell.column);
    of(&pair.0) != of(&pair.1)
}

/// Which half of the cells of its table a cell belongs to: by rows, or by columns where one row is measured.
fn half(cell: &Measurement, cells: &[Measurement]) -> bool {
    let table = || cells.iter().filter(|other| other.table == cell.table);
    if table().all(|other| other.line == cell.line) {
        return cell.column.is_multiple_of(2);
    }
    let mut above: Vec<usize> = table().map(|other| other.line).filter(|line| *line < cell.line).collect();
    above.dedup();
    above.len().is_multiple_of(2)
}

/// Judges the cells of every part by fits that have not seen them.
pub(super) fn judge(
    soc: &Soc,
    cells: &[Measurement],
    said: &[Sentence],
) -> Result<(Vec<Judged>, Vec<Open>), EditError> {
    let mut parts: Vec<String> = cells.iter().map(|cell| part_of(&cell.table, &cell.row)).collect();
    parts.sort();
    parts.dedup();
    let (mut judged, mut parts_open) = (Vec::new(), Vec::new());
    for part in parts {
        let own: Vec<Measurement> =
            cells.iter().filter(|cell| part_of(&cell.table, &cell.row) == part).cloned().collect();
        let keep = |wanted: &dyn Fn(&Measurement) -> bool| -> Vec<Measurement> {
            own.iter().filter(|cell| wanted(cell)).cloned().collect()
        };
        let whole = open(&soc.structures(&part)?, &part, &own, said);
        // Words are no cells: what they rule out is ruled out whichever cells are left out. What the cells rule out is not.
        let allowed = whole.allowed();
        let refit = |kept: &[Measurement]| Refitted::new(&allowed, &part, kept);
        let mut tables: Vec<&str> = own.iter().map(|cell| cell.table.as_str()).collect();
        tables.dedup();
        let mut without = Vec::new();
        for table in tables {
            without.push((table, refit(&keep(&|cell| cell.table != table))));
        }
        let halves = [refit(&keep(&|cell| !half(cell, &own))), refit(&keep(&|cell| half(cell, &own)))];
        for cell in &own {
            let seen = whole.predictions(&cell.table, &cell.row, cell.column);
            let table = without.iter().find(|(table, _)| *table == cell.table);
            let [odd, even] = &halves;
            let (other, name) = if half(cell, &own) { (odd, "even rows") } else { (even, "odd rows") };
            judged.push(Judged {
                seen: mix(&seen, None).map(|found| found.predicted / cell.value - 1.0),
                without_table: table.and_then(|(table, fit)| fit.left_out(cell, table)),
                alternate: other.left_out(cell, &format!("{part} {name}")),
                cell: cell.clone(),
            });
        }
        parts_open.push(whole);
    }
    Ok((judged, parts_open))
}

/// The relative half width that nine of ten of the errors of a kind stay within, those of `but` left out.
pub(super) fn half_width(
    judged: &[Judged],
    kinds: &[&str],
    scheme: Scheme,
    but: Option<&str>,
) -> Option<f64> {
    let errors: Vec<f64> = judged
        .iter()
        .filter(|one| kinds.contains(&one.kind()))
        .filter_map(|one| one.left_out(scheme))
        .filter(|left| but.is_none_or(|fold| left.fold != fold))
        .map(|left| left.error.abs())
        .collect();
    share_of_nine_in_ten(errors)
}
