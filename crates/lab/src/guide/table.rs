//! Tables of figures: measured, and of half of the cells predicted.

use super::measure::sample::Sampled;
use super::plan::{Asked, Column, Part, Planned, Unit, calibrates};
use serde::Serialize;

/// One cell.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Point {
    /// What was asked.
    pub asked: Asked,
    /// What was measured, in the unit of its column.
    pub value: f64,
    /// How far apart the undisturbed samples lie, as a share.
    pub spread: f64,
    /// How it was measured.
    pub sampled: Sampled,
    /// Whether it calibrates the chip; else it is predicted.
    pub calibrates: bool,
    /// What the chip says.
    pub predicted: Option<f64>,
}

impl Point {
    /// Predicted over measured, less one.
    pub fn error(&self) -> Option<f64> {
        Some(self.predicted? / self.value - 1.0)
    }
}

/// A table.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Table {
    /// What it is of.
    pub part: Part,
    /// The heading of the first column.
    pub corner: &'static str,
    /// The columns.
    pub columns: Vec<Column>,
    /// The first cell and the others of each row.
    pub rows: Vec<(String, Vec<Option<Point>>)>,
}

impl Table {
    /// Fills a plan. `ask` measures a cell: nanoseconds an access, a byte or a packet.
    ///
    /// # Errors
    /// What `ask` fails with.
    pub fn fill<E>(
        plan: Planned,
        cycle_ns: f64,
        mut ask: impl FnMut(&Asked) -> Result<Sampled, E>,
        mut done: impl FnMut(&str),
    ) -> Result<Table, E> {
        let mut rows = Vec::new();
        for (row, (name, cells)) in plan.rows.into_iter().enumerate() {
            done(&name);
            let mut points = Vec::new();
            for (column, asked) in cells.into_iter().enumerate() {
                let Some(asked) = asked else {
                    points.push(None);
                    continue;
                };
                let sampled = ask(&asked)?;
                let unit = plan.columns.get(column).map_or(Unit::Cycles, |column| column.unit);
                let value = match unit {
                    Unit::Cycles => sampled.ns / cycle_ns,
                    Unit::Megabytes => 1e3 / sampled.ns,
                    Unit::Megabits => asked.packet.map_or(1.0, |(_, bytes)| bytes as f64) * 8e3 / sampled.ns,
                };
                let spread = (sampled.spread.most - sampled.spread.least) / sampled.spread.median;
                let calibrates = calibrates(row, column);
                points.push(Some(Point { asked, value, spread, sampled, calibrates, predicted: None }));
            }
            rows.push((name, points));
        }
        Ok(Table { part: plan.part, corner: plan.corner, columns: plan.columns, rows })
    }

    /// Its cells.
    pub fn points(&self) -> impl Iterator<Item = &Point> {
        self.rows.iter().flat_map(|(_, points)| points.iter().flatten())
    }

    /// Its cells with their columns.
    pub fn points_by_column(&self) -> impl Iterator<Item = (&Column, &Point)> {
        self.rows.iter().flat_map(|(_, points)| {
            self.columns.iter().zip(points).filter_map(|(column, point)| Some((column, point.as_ref()?)))
        })
    }

    /// The relative errors of the cells that were predicted before they were compared.
    pub fn errors(&self) -> Vec<f64> {
        self.points()
            .filter(|point| !point.calibrates)
            .filter_map(|point| Some(point.error()?.abs()))
            .collect()
    }
}

/// How well cells were predicted.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Accuracy {
    /// How many.
    pub cells: usize,
    /// The median of the absolute relative errors, 0.01 for one per cent.
    pub median: f64,
    /// What nine of ten stay within.
    pub ninth: f64,
    /// The largest.
    pub worst: f64,
}

/// Of these errors; none where there are none.
pub fn accuracy(errors: &[f64]) -> Option<Accuracy> {
    let mut sorted: Vec<f64> = errors.iter().copied().filter(|error| error.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| sorted.get(((sorted.len() as f64 - 1.0) * share).round() as usize).copied();
    let median = crate::measure::statistics::spread(sorted.iter().copied())?.median;
    Some(Accuracy { cells: sorted.len(), median, ninth: at(0.9)?, worst: *sorted.last()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_a_median() {
        assert_eq!(accuracy(&[]), None);
        let found = accuracy(&[0.3, 0.1, 0.2]).unwrap();
        assert_eq!((found.cells, found.median, found.worst), (3, 0.2, 0.3));
    }
}
