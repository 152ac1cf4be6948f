//! Main effects: what each axis alone does to a figure, over everything else.

use super::axis::Axis;
use super::cell::Cell;
use super::plan::Plan;
use super::table::Table;
use serde::Serialize;
use std::collections::BTreeMap;

/// Groups of an axis that has more values, or any value of a range by chance.
pub const GROUPS: usize = 6;

/// Rows with the same value of a key, or with values near each other.
#[derive(Clone, Debug, Serialize)]
pub struct Level {
    /// The value, or the least and the largest.
    pub value: String,
    /// Rows.
    pub items: usize,
    /// First quartile, median and third quartile of the figure.
    pub quartiles: Option<[f64; 3]>,
    /// The bottleneck that is named most often, and how often.
    pub bottleneck: Option<(String, usize)>,
}

/// What an axis does.
#[derive(Clone, Debug, Serialize)]
pub struct Effect {
    /// The key.
    pub key: String,
    /// Its levels, in the order of values.
    pub levels: Vec<Level>,
    /// The largest median over the least; `None` where one is zero or missing.
    pub ratio: Option<f64>,
}

impl Effect {
    /// The ratio, without bound where the least median is zero and another is not.
    fn size(&self) -> f64 {
        let is_above = |level: &Level| level.quartiles.is_some_and(|all| all[1] > 0.0);
        let is_boundless = self.levels.iter().any(is_above) && self.ratio.is_none();
        self.ratio.unwrap_or(if is_boundless { f64::INFINITY } else { 0.0 })
    }
}

/// The effects of all axes on the plan's figure, the largest first.
pub fn of(plan: &Plan, table: &Table) -> Vec<Effect> {
    let mut effects: Vec<Effect> = plan.axes.iter().map(|axis| effect(plan, table, axis)).collect();
    effects.sort_by(|a, b| b.size().total_cmp(&a.size()));
    effects
}

fn effect(plan: &Plan, table: &Table, axis: &Axis) -> Effect {
    let groups = groups(table.column(&axis.column.name), GROUPS, |cell| axis.shown(cell));
    let figures = table.cells.get(plan.figure).map_or(&[][..], Vec::as_slice);
    let limits = table.column("bottleneck");
    let level = |(value, rows): (String, Vec<usize>)| {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for row in &rows {
            if let Some(Cell::Text(name)) = limits.get(*row) {
                *counts.entry(name).or_default() += 1;
            }
        }
        let most = counts.iter().max_by_key(|(_, count)| **count);
        let values = rows.iter().filter_map(|row| figures.get(*row)?.number()).collect();
        Level {
            value,
            items: rows.len(),
            quartiles: quartiles(values),
            bottleneck: most.map(|(name, count)| ((*name).to_owned(), *count)),
        }
    };
    let levels: Vec<Level> = groups.into_iter().map(level).collect();
    let medians = || levels.iter().filter_map(|level| Some(level.quartiles?[1]));
    let (least, most) = (medians().fold(f64::INFINITY, f64::min), medians().fold(0.0, f64::max));
    let ratio = (least > 0.0 && least.is_finite()).then(|| most / least);
    Effect { key: axis.key.clone(), levels, ratio }
}

/// Rows by the value of a column, in the order of values: each value for itself, or `most` groups of as many rows.
pub fn groups(cells: &[Cell], most: usize, shown: impl Fn(&Cell) -> String) -> Vec<(String, Vec<usize>)> {
    let mut rows: Vec<usize> = (0..cells.len()).collect();
    let key = |row: &usize| cells[*row].number();
    if cells.iter().all(|cell| cell.number().is_some()) {
        rows.sort_by(|a, b| key(a).unwrap_or(0.0).total_cmp(&key(b).unwrap_or(0.0)));
    } else {
        rows.sort_by_cached_key(|row| cells[*row].written());
    }
    let same: Vec<&[usize]> = rows.chunk_by(|a, b| cells[*a] == cells[*b]).collect();
    if same.len() <= most.max(1) {
        return same.into_iter().map(|rows| (shown(&cells[rows[0]]), rows.to_vec())).collect();
    }
    // Values are not torn apart: a group ends with the value that fills it.
    let (mut groups, mut open): (Vec<Vec<usize>>, Vec<usize>) = (Vec::new(), Vec::new());
    for rows in same {
        open.extend(rows);
        if open.len() * most >= cells.len() {
            groups.push(std::mem::take(&mut open));
        }
    }
    if !open.is_empty() {
        groups.push(open);
    }
    let name = |rows: &[usize]| match (rows.first(), rows.last()) {
        (Some(first), Some(last)) if cells[*first] != cells[*last] => {
            format!("{} to {}", shown(&cells[*first]), shown(&cells[*last]))
        }
        (Some(first), _) => shown(&cells[*first]),
        _ => String::new(),
    };
    groups.into_iter().map(|rows| (name(&rows), rows)).collect()
}

/// First quartile, median and third quartile; a median of two is between them.
pub fn quartiles(mut values: Vec<f64>) -> Option<[f64; 3]> {
    if values.is_empty() {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let place = share * (values.len() - 1) as f64;
        let (low, high) = (values[place.floor() as usize], values[place.ceil() as usize]);
        low + (high - low) * place.fract()
    };
    Some([at(0.25), at(0.5), at(0.75)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_from_nothing_to_something_is_the_largest() {
        let level = |median: Option<f64>| Level {
            value: String::new(),
            items: 1,
            quartiles: median.map(|median| [median; 3]),
            bottleneck: None,
        };
        let check = |medians: &[Option<f64>], ratio: Option<f64>, expected: f64| {
            let levels = medians.iter().map(|median| level(*median)).collect();
            let effect = Effect { key: "x".to_owned(), levels, ratio };
            assert_eq!(effect.size(), expected, "{medians:?}");
        };
        check(&[Some(2.0), Some(6.0)], Some(3.0), 3.0);
        check(&[Some(0.0), Some(6.0)], None, f64::INFINITY);
        check(&[Some(0.0), Some(0.0)], None, 0.0);
        check(&[None, None], None, 0.0);
    }

    #[test]
    fn rows_are_grouped_by_value() {
        let check = |numbers: &[f64], most: usize, expected: &[(&str, &[usize])]| {
            let cells: Vec<Cell> = numbers.iter().map(|number| Cell::Number(*number)).collect();
            let found = groups(&cells, most, Cell::written);
            let found: Vec<(&str, &[usize])> =
                found.iter().map(|(name, rows)| (name.as_str(), rows.as_slice())).collect();
            assert_eq!(found, expected);
        };
        check(&[2.0, 1.0, 2.0], 6, &[("1", &[1]), ("2", &[0, 2])]);
        check(&[4.0, 3.0, 2.0, 1.0], 2, &[("1 to 2", &[3, 2]), ("3 to 4", &[1, 0])]);
        assert_eq!(quartiles(vec![3.0, 1.0, 2.0, 4.0]), Some([1.75, 2.5, 3.25]));
    }
}
