//! A heat map: the median of a figure over all rows with about the same values of two keys.

use super::cell::Cell;
use super::effects::{groups, quartiles};
use super::plan::Plan;
use super::table::Table;
use crate::quantity::short;
use crate::report::page::escape;
use std::fmt::Write as _;

/// Groups of an axis that has more values than these.
const MOST: usize = 24;
/// From dark to light with rising lightness, in blue and yellow: told apart by all who see light, printed in grey too.
const RAMP: [[u8; 3]; 6] =
    [[0, 34, 78], [53, 69, 108], [102, 105, 112], [148, 142, 119], [200, 184, 102], [254, 232, 56]];
/// The picture in its own units.
const WIDTH: f64 = 900.0;
const LEFT: f64 = 92.0;
const TOP: f64 = 64.0;
const BELOW: f64 = 120.0;
const RIGHT: f64 = 16.0;
/// Narrower cells have no number.
const LEAST_TEXT: f64 = 30.0;

/// A heat map that can be drawn.
#[derive(Clone, Debug)]
pub struct Heat {
    /// Names of the axes and of the figure.
    names: [String; 3],
    columns: Vec<String>,
    rows: Vec<String>,
    /// By row from below, then by column: the median, and of how many rows of the table.
    cells: Vec<Vec<Option<(f64, usize)>>>,
}

impl Heat {
    /// The heat map of a sweep; none for a single axis.
    pub fn new(plan: &Plan, table: &Table) -> Option<Heat> {
        let axes = plan.picture?.map(|axis| plan.axes.get(axis));
        let [Some(x), Some(y)] = axes else { return None };
        let columns = groups(table.column(&x.column.name), MOST, |cell| x.shown(cell));
        let rows = groups(table.column(&y.column.name), MOST, |cell| y.shown(cell));
        let mut column_of = vec![0; table.len()];
        for (column, (_, members)) in columns.iter().enumerate() {
            members.iter().for_each(|row| column_of[*row] = column);
        }
        let figures = table.cells.get(plan.figure)?;
        let line = |members: &Vec<usize>| {
            let mut values = vec![Vec::new(); columns.len()];
            for row in members {
                if let Some(number) = figures.get(*row).and_then(Cell::number) {
                    values[column_of[*row]].push(number);
                }
            }
            values
                .into_iter()
                .map(|values| (values.len(), quartiles(values)))
                .map(|(count, quartiles)| Some((quartiles?[1], count)))
                .collect()
        };
        let figure = &plan.columns.get(plan.figure)?.name;
        // A chip says in another column what its answer is counted in.
        let figure = match table.column("unit").first() {
            Some(Cell::Text(unit)) => format!("{figure}, {unit}"),
            _ => figure.clone(),
        };
        Some(Heat {
            names: [x.key.clone(), y.key.clone(), figure],
            cells: rows.iter().map(|(_, members)| line(members)).collect(),
            columns: columns.into_iter().map(|(name, _)| name).collect(),
            rows: rows.into_iter().map(|(name, _)| name).collect(),
        })
    }

    /// The least and the largest median.
    fn bounds(&self) -> [f64; 2] {
        let all = || self.cells.iter().flatten().flatten().map(|(median, _)| *median);
        [all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max)]
    }

    /// The picture for a file of its own, on white.
    pub fn standalone(&self) -> String {
        self.svg().replacen("</defs>", "</defs><rect width=\"100%\" height=\"100%\" fill=\"#FFFFFF\"/>", 1)
    }

    /// The picture for a page, whose colours its text takes.
    pub fn svg(&self) -> String {
        let wide = (WIDTH - LEFT - RIGHT) / self.columns.len().max(1) as f64;
        let tall = (wide * 0.62).clamp(18.0, 44.0);
        let bottom = TOP + tall * self.rows.len() as f64;
        let height = bottom + BELOW;
        let [x, y, figure] = self.names.each_ref().map(|name| escape(name));
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"broad\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" \
             font-family=\"sans-serif\" font-size=\"12\"><title>Median of {figure} by {x} and {y}</title>{PATTERN}\
             <text fill=\"#1B1F23\" x=\"12\" y=\"24\" font-size=\"15\">Median of {figure}</text>\
             <text fill=\"#1B1F23\" x=\"12\" y=\"48\">{y} upwards, {x} to the right</text>"
        );
        let bounds = self.bounds();
        for (row, line) in self.cells.iter().enumerate() {
            let top = bottom - tall * (row + 1) as f64;
            let _ = write!(
                svg,
                "<text fill=\"#1B1F23\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 8.0,
                top + tall / 2.0 + 4.0,
                escape(&self.rows[row])
            );
            for (column, cell) in line.iter().enumerate() {
                let left = LEFT + wide * column as f64;
                let name = format!("{x} {}, {y} {}", escape(&self.columns[column]), escape(&self.rows[row]));
                self.cell(&mut svg, [left, top, wide, tall], *cell, bounds, &name);
            }
        }
        for (column, name) in self.columns.iter().enumerate() {
            let (x, y) = (LEFT + wide * (column as f64 + 0.5) + 4.0, bottom + 12.0);
            let _ = write!(
                svg,
                "<text fill=\"#1B1F23\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"end\" \
                 transform=\"rotate(-40 {x:.1} {y:.1})\">{}</text>",
                escape(name)
            );
        }
        legend(&mut svg, bounds, height - 30.0);
        svg.push_str("</svg>\n");
        svg
    }

    fn cell(
        &self,
        svg: &mut String,
        [left, top, wide, tall]: [f64; 4],
        cell: Option<(f64, usize)>,
        bounds: [f64; 2],
        name: &str,
    ) {
        let place = format!("x=\"{left:.1}\" y=\"{top:.1}\" width=\"{wide:.1}\" height=\"{tall:.1}\"");
        let Some((median, count)) = cell else {
            let _ = write!(svg, "<rect {place} fill=\"url(#missing)\"><title>{name}: nothing</title></rect>");
            return;
        };
        let part = part(median, bounds);
        let text = short(median);
        let _ = write!(
            svg,
            "<g><title>{name}: {text}, median of {count}</title><rect {place} fill=\"{}\"/>",
            colour(part)
        );
        if wide >= LEAST_TEXT {
            // These two stay as they are, light or dark the page.
            let ink = if part > 0.48 { "#101214" } else { "#F8F9FA" };
            let (x, y) = (left + wide / 2.0, top + tall / 2.0 + 4.0);
            let size = (wide / 3.4).clamp(8.0, 12.0);
            let _ = write!(
                svg,
                "<text style=\"fill:{ink}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" font-size=\"{size:.1}\">{text}</text>"
            );
        }
        svg.push_str("</g>");
    }
}

/// What fills a cell of which nothing is known.
const PATTERN: &str = "<defs><pattern id=\"missing\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\">\
    <path d=\"M0 8L8 0\" stroke=\"#8A949E\" stroke-width=\"1.5\"/></pattern></defs>";

/// Where a value lies between the bounds.
fn part(value: f64, [least, most]: [f64; 2]) -> f64 {
    if most > least { ((value - least) / (most - least)).clamp(0.0, 1.0) } else { 0.5 }
}

/// The colour of a part of the ramp.
fn colour(part: f64) -> String {
    let place = part * (RAMP.len() - 1) as f64;
    let low = RAMP[place.floor() as usize];
    let high = RAMP[place.ceil() as usize];
    let mixed = low.iter().zip(high).map(|(low, high)| {
        let (low, high) = (f64::from(*low), f64::from(high));
        format!("{:02X}", (low + (high - low) * place.fract()).round() as u8)
    });
    format!("#{}", mixed.collect::<String>())
}

/// The ramp with its ends, and what a missing cell looks like.
fn legend(svg: &mut String, [least, most]: [f64; 2], top: f64) {
    if !least.is_finite() {
        return;
    }
    const STEPS: usize = 40;
    let wide = 240.0 / STEPS as f64;
    for step in 0..STEPS {
        let left = LEFT + wide * step as f64;
        let fill = colour(step as f64 / (STEPS - 1) as f64);
        let _ = write!(
            svg,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"12\" fill=\"{fill}\"/>",
            wide + 0.5
        );
    }
    let baseline = top + 10.0;
    let mut text = |x: f64, anchor: &str, text: &str| {
        let _ = write!(
            svg,
            "<text fill=\"#1B1F23\" x=\"{x:.1}\" y=\"{baseline:.1}\" text-anchor=\"{anchor}\">{text}</text>"
        );
    };
    text(LEFT - 8.0, "end", &short(least));
    text(LEFT + 248.0, "start", &short(most));
    text(LEFT + 344.0, "start", "nothing known");
    let _ = write!(
        svg,
        "<rect x=\"{}\" y=\"{top:.1}\" width=\"24\" height=\"12\" fill=\"url(#missing)\"/>",
        LEFT + 312.0
    );
}
