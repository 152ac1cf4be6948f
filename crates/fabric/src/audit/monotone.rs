//! Orders that physics demands: more payload, more lanes and bursts are never slower.

use super::noise::Noise;
use super::{Confidence, Finding, Place, Severity, cell_place, measured, show, unit};
use crate::guide::{Column, Guide, Number, Table};

/// How many cells a finding names.
const MAX_NAMED: usize = 4;

/// Holds measured cells against the orders that physics demands.
///
/// A cell only counts as out of order when it is so by more than its table's scatter ([`Noise`]) and what rounding
/// explains; where nothing is known of the scatter, rates are in no order.
pub fn check(guide: &Guide, noises: &[Noise], findings: &mut Vec<Finding>) {
    for (table, noise) in guide.tables.iter().zip(noises) {
        sizes(noise, table, findings);
        times(noise, table, findings);
        lanes(noise, table, findings);
        bursts(table, findings);
    }
}

/// A measurement, where it stands, and how far noise and rounding may have moved it.
#[derive(Clone, Copy)]
struct Measured<'t> {
    number: &'t Number,
    allowed: f64,
}

/// A measured rate whose scatter is known.
fn rate<'t>(noise: &Noise, table: &'t Table, row: usize, column: usize) -> Option<Measured<'t>> {
    let number = measured(table, row, column).filter(|_| is_rate(table, row, column))?;
    let allowed = number.value * noise.share(table, row, column)? + number.half_unit();
    Some(Measured { number, allowed })
}

/// By how much `less` is under `more` beyond noise and rounding, in percent of `more`; `None` within them.
fn short_percent(less: Measured<'_>, more: Measured<'_>) -> Option<f64> {
    let gap = more.number.value - less.number.value;
    (gap > less.allowed + more.allowed).then(|| 100.0 * gap / more.number.value)
}

/// Whether the unit of a cell is data over time.
fn is_rate(table: &Table, row: usize, column: usize) -> bool {
    table.unit(row, column).and_then(unit).is_some_and(|unit| unit.bits == 1 && unit.seconds == -1)
}

/// The sizes of a table whose first column holds them: each with its row.
fn sized(table: &Table) -> Vec<(usize, f64)> {
    if !table.corner.to_lowercase().contains("size") {
        return Vec::new();
    }
    let rows = table.rows.iter().enumerate();
    rows.filter_map(|(row, of)| Some((row, Number::read(&of.name)?.value))).collect()
}

/// Cells of one table that are out of one order: one finding at the first.
fn report(
    table: &Table,
    cells: &[(usize, usize, String)],
    finding: &dyn Fn(Place, String) -> Finding,
) -> Option<Finding> {
    let (row, column, _) = cells.first()?;
    let named: Vec<&str> = cells.iter().take(MAX_NAMED).map(|(.., text)| text.as_str()).collect();
    let more = match cells.len() - named.len() {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    Some(finding(cell_place(table, *row, *column), named.join("; ") + &more))
}

/// Throughput by size: a larger transfer shares the same fixed cost among more bytes.
fn sizes(noise: &Noise, table: &Table, findings: &mut Vec<Finding>) {
    let sizes = sized(table);
    let mut fallen = Vec::new();
    for column in 0..table.columns.len() {
        let mut best: Option<(f64, Measured<'_>)> = None;
        for (row, size) in &sizes {
            let Some(one) = rate(noise, table, *row, column) else { continue };
            let below = best.filter(|(smaller, _)| smaller < size);
            if let Some((smaller, higher)) = below
                && let Some(percent) = short_percent(one, higher)
            {
                let text = format!(
                    "{} at {size} is {} % under {} at {smaller} (column {})",
                    one.number.printed,
                    show(percent),
                    higher.number.printed,
                    column + 1
                );
                fallen.push((*row, column, text));
            }
            if best.is_none_or(|(_, highest)| one.number.value >= highest.number.value) {
                best = Some((*size, one));
            }
        }
    }
    findings.extend(report(table, &fallen, &|place, cells| {
        Finding::new("falls-with-size", Severity::Warning, Confidence::Likely, place).says(
            "throughput falls as the size grows".to_owned(),
            format!("{cells}; {}", noise.source()),
            "measure both sizes again, or state what costs more at the larger size",
        )
    }));
}

/// Time by size: whatever moves more bytes over the same path does not take less time for it.
fn times(noise: &Noise, table: &Table, findings: &mut Vec<Finding>) {
    let sizes = sized(table);
    let mut fallen = Vec::new();
    for column in 0..table.columns.len() {
        let mut longest: Option<(f64, f64, f64)> = None;
        for (row, size) in &sizes {
            let Some(one) = rate(noise, table, *row, column) else { continue };
            let Some(time) = noise.time(table, *row, column) else { continue };
            let allowed = time * one.allowed / one.number.value;
            let before = longest.filter(|(smaller, ..)| smaller < size);
            if let Some((smaller, longer, its)) = before
                && longer - time > its + allowed
            {
                let text = format!(
                    "{size} take {} ns and {smaller} take {} ns, {} ns more (column {})",
                    show(time * 1e9),
                    show(longer * 1e9),
                    show((longer - time) * 1e9),
                    column + 1
                );
                fallen.push((*row, column, text));
            }
            if longest.is_none_or(|(_, most, _)| time >= most) {
                longest = Some((*size, time, allowed));
            }
        }
    }
    findings.extend(report(table, &fallen, &|place, cells| {
        Finding::new("time-falls", Severity::Error, Confidence::Likely, place).says(
            "a larger transfer takes less time than a smaller one".to_owned(),
            format!("{cells}; {}", noise.source()),
            "measure both sizes again: one of the two cells is another measurement's",
        )
    }));
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
fn lanes(noise: &Noise, table: &Table, findings: &mut Vec<Finding>) {
    for row in 0..table.rows.len() {
        for (narrow, few) in table.columns.iter().enumerate() {
            let wider = table.columns.iter().enumerate().filter(|(_, many)| {
                differ_only_in("lanes", few, many)
                    && lane_count(few).zip(lane_count(many)).is_some_and(|(few, many)| few < many)
            });
            let mut beaten = wider.filter_map(|(wide, many)| {
                let (fast, slow) = (rate(noise, table, row, narrow)?, rate(noise, table, row, wide)?);
                Some((lane_count(many)?, wide, short_percent(slow, fast)?, fast, slow))
            });
            let Some(first) = beaten.next() else { continue };
            let (lanes, wide, percent, fast, slow) =
                beaten.fold(first, |best, next| if next.0 > best.0 { next } else { best });
            let place = cell_place(table, row, narrow);
            findings.push(
                Finding::new("fewer-lanes-faster", Severity::Warning, Confidence::Likely, place).says(
                    format!(
                        "{} over fewer lanes is more than {} over {lanes}",
                        fast.number.printed, slow.number.printed
                    ),
                    format!(
                        "column {} is {} % under column {}; {}",
                        wide + 1,
                        show(percent),
                        narrow + 1,
                        noise.source()
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
