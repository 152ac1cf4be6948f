//! Orders that physics demands: more payload, more lanes and bursts are never slower.

use super::{Confidence, Finding, Severity, cell_place, measured, show, unit};
use crate::guide::{Column, Guide, Number, Table};

/// Holds measured cells against the orders that physics demands.
///
/// A cell only counts as out of order when it is so by more than the stated noise and what rounding explains.
pub fn check(guide: &Guide, findings: &mut Vec<Finding>) {
    for table in &guide.tables {
        sizes(guide, table, findings);
        lanes(guide, table, findings);
        bursts(table, findings);
    }
}

/// By how much `less` is under `more` beyond noise and rounding, in percent of `more`; `None` within them.
fn short_percent(guide: &Guide, less: &Number, more: &Number) -> Option<f64> {
    let gap = more.value - less.value;
    let allowed = more.value * guide.noise_percent / 100.0 + less.half_unit() + more.half_unit();
    (gap > allowed).then(|| 100.0 * gap / more.value)
}

/// Whether the unit of a cell is data over time.
fn is_rate(table: &Table, row: usize, column: usize) -> bool {
    table.unit(row, column).and_then(unit).is_some_and(|unit| unit.bits == 1 && unit.seconds == -1)
}

/// Throughput by size: a larger transfer shares the same fixed cost among more bytes.
fn sizes(guide: &Guide, table: &Table, findings: &mut Vec<Finding>) {
    if !table.corner.to_lowercase().contains("size") {
        return;
    }
    for column in 0..table.columns.len() {
        let mut best: Option<(f64, &Number)> = None;
        for (row, of) in table.rows.iter().enumerate() {
            let Some(size) = Number::read(&of.name).map(|number| number.value) else { continue };
            let Some(number) = measured(table, row, column).filter(|_| is_rate(table, row, column)) else {
                continue;
            };
            let below = best.filter(|(smaller, _)| *smaller < size);
            if let Some((smaller, higher)) = below
                && let Some(percent) = short_percent(guide, number, higher)
            {
                let place = cell_place(table, row, column);
                findings.push(
                    Finding::new("falls-with-size", Severity::Warning, Confidence::Likely, place).says(
                        format!(
                            "throughput falls from {} to {} as the size grows",
                            higher.printed, number.printed
                        ),
                        format!(
                            "{} at {size} is {} % under {} at {smaller}; noise is {} %",
                            number.printed,
                            show(percent),
                            higher.printed,
                            guide.noise_percent
                        ),
                        "measure both sizes again, or state what costs more at the larger size",
                    ),
                );
            }
            if best.is_none_or(|(_, highest)| number.value >= highest.value) {
                best = Some((size, number));
            }
        }
    }
}

/// The lanes of a column, if it has that tag.
fn lane_count(column: &Column) -> Option<f64> {
    Some(Number::read(column.tags.get("lanes")?)?.value)
}

/// Whether two columns differ in one tag only.
fn differ_only_in(key: &str, left: &Column, right: &Column) -> bool {
    let others = |column: &Column| {
        column
            .tags
            .iter()
            .filter(|(name, _)| *name != key)
            .map(|(a, b)| (a.clone(), b.clone()))
            .collect::<Vec<_>>()
    };
    left.tags.get(key) != right.tags.get(key) && others(left) == others(right)
}

/// Throughput by lanes: a wider link never carries less. A cell is reported once, against the widest that it beats.
fn lanes(guide: &Guide, table: &Table, findings: &mut Vec<Finding>) {
    for row in 0..table.rows.len() {
        for (narrow, few) in table.columns.iter().enumerate() {
            let wider = table.columns.iter().enumerate().filter(|(_, many)| {
                differ_only_in("lanes", few, many)
                    && lane_count(few).zip(lane_count(many)).is_some_and(|(few, many)| few < many)
            });
            let mut beaten = wider.filter_map(|(wide, many)| {
                let fast = measured(table, row, narrow).filter(|_| is_rate(table, row, narrow))?;
                let slow = measured(table, row, wide)?;
                Some((lane_count(many)?, wide, short_percent(guide, slow, fast)?, fast, slow))
            });
            let Some(first) = beaten.next() else { continue };
            let (lanes, wide, percent, fast, slow) =
                beaten.fold(first, |best, next| if next.0 > best.0 { next } else { best });
            let place = cell_place(table, row, narrow);
            findings.push(
                Finding::new("fewer-lanes-faster", Severity::Warning, Confidence::Likely, place).says(
                    format!("{} over fewer lanes is more than {} over {lanes}", fast.printed, slow.printed),
                    format!(
                        "column {} is {} % under column {}; noise is {} %",
                        wide + 1,
                        show(percent),
                        narrow + 1,
                        guide.noise_percent
                    ),
                    "measure both again",
                ),
            );
        }
    }
}

/// Stalls by access: the mean of a burst holds the first access and cheaper ones, so it is never above a single one.
fn bursts(table: &Table, findings: &mut Vec<Finding>) {
    let access =
        |column: &Column, which: &str| column.tags.get("access").is_some_and(|access| access == which);
    for (one, single) in table.columns.iter().enumerate().filter(|(_, column)| access(column, "single")) {
        for (many, burst) in table.columns.iter().enumerate().filter(|(_, column)| access(column, "burst")) {
            if !differ_only_in("access", single, burst) {
                continue;
            }
            for row in 0..table.rows.len() {
                let Some((first, mean)) = measured(table, row, one).zip(measured(table, row, many)) else {
                    continue;
                };
                if mean.value <= first.value + first.half_unit() + mean.half_unit()
                    || is_rate(table, row, one)
                {
                    continue;
                }
                let place = cell_place(table, row, many);
                findings.push(Finding::new("burst-slower", Severity::Error, Confidence::Likely, place).says(
                    "an access in a burst takes longer than a single one".to_owned(),
                    format!("{} > {}", mean.printed, first.printed),
                    "check whether the two cells were swapped",
                ));
            }
        }
    }
}
