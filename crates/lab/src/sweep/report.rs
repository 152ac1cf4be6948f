//! What a sweep found: a summary, the effects of its axes, a heat map; as a table, JSON and a page.

use super::coordinator::Course;
use super::effects::{self, Effect};
use super::heat::Heat;
use super::plan::Plan;
use super::table::Table;
use crate::measure::provenance::Provenance;
use crate::quantity::short;
use crate::report::grid::{Cell, Grid};
use crate::report::page::{Block, Section};
use crate::report::{page, plot::PlotError};
use crate::schema::{Origin, Record};
use serde::Serialize;
use std::collections::BTreeSet;

/// See the module.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What the sweep asks.
    pub title: String,
    /// Rows of the table.
    pub items: usize,
    /// Points of the axes that these are of.
    pub points: usize,
    /// Points of the whole sweep.
    pub all_points: u64,
    /// Rows that say why there is no answer.
    pub failed: usize,
    /// Workers that were started again.
    pub restarts: u64,
    /// Items that ended two workers.
    pub poison: Vec<u64>,
    /// The column that effects are told of.
    pub figure: String,
    /// What each axis does, the largest effect first.
    pub effects: Vec<Effect>,
    /// The medians of the effects in the form of all figures.
    pub records: Vec<Record>,
    /// Where the figures come from.
    pub provenance: Provenance,
    #[serde(skip)]
    heat: Option<Heat>,
}

impl Report {
    /// What a table says.
    pub fn new(plan: &Plan, table: &Table, course: &Course) -> Report {
        let effects = effects::of(plan, table);
        let figure = plan.columns.get(plan.figure).map(|column| column.name.clone()).unwrap_or_default();
        let failed = table.column("error").iter().filter(|cell| **cell != super::cell::Cell::Empty).count();
        Report {
            title: plan.title.clone(),
            items: table.len(),
            points: points(plan, table),
            all_points: plan.items() / plan.seeds,
            failed,
            restarts: course.restarts,
            poison: course.poison.clone(),
            records: records(plan, &effects, &figure),
            figure,
            effects,
            // Each item is worked out once; what medians are over is in the summary and in the table.
            provenance: Provenance::now(1),
            heat: Heat::new(plan, table),
        }
    }

    /// The table of effects.
    pub fn grid(&self) -> Grid {
        let figure = &self.figure;
        let headers = ["key", "value", "items", "median", "quartiles", "most often limited by"];
        let mut grid = Grid::new("effects", format!("{}: {figure} by each key alone", self.title), &headers);
        for effect in &self.effects {
            for level in &effect.levels {
                let limit = level.bottleneck.as_ref().map(|(name, count)| {
                    format!("{name} ({:.0} %)", *count as f64 / level.items.max(1) as f64 * 100.0)
                });
                grid.rows.push(vec![
                    Cell::text(&effect.key),
                    Cell::text(&level.value),
                    Cell::number(level.items as f64, 0),
                    level.quartiles.map_or(Cell::Empty, |all| Cell::text(short(all[1]))),
                    level.quartiles.map_or(Cell::Empty, |all| {
                        Cell::text(format!("{} to {}", short(all[0]), short(all[2])))
                    }),
                    limit.map_or(Cell::Empty, Cell::text),
                ]);
            }
        }
        grid.notes.extend([self.summary(), self.provenance.sentence()]);
        grid
    }

    /// How many items there are and what became of them.
    pub fn summary(&self) -> String {
        let points = match (self.points as u64, self.all_points) {
            (points, all) if points == all => format!("all of {all} points"),
            (points, all) => format!("{points} of {all} points"),
        };
        let mut text = format!("{} items at {points}, {} without an answer", self.items, self.failed);
        if self.restarts > 0 {
            text.push_str(&format!("; workers were started again {} times", self.restarts));
        }
        if !self.poison.is_empty() {
            let items: Vec<String> = self.poison.iter().map(u64::to_string).collect();
            text.push_str(&format!("; items that ended two workers: {}", items.join(", ")));
        }
        text
    }

    /// The heat map as a file, for a sweep of two keys or more.
    pub fn picture(&self) -> Option<String> {
        self.heat.as_ref().map(Heat::standalone)
    }

    /// A page that needs nothing but itself.
    ///
    /// # Errors
    /// A page that cannot be made.
    pub fn page(&self) -> Result<String, PlotError> {
        let mut blocks = vec![Block::Tiles(vec![
            (self.items.to_string(), "items".to_owned()),
            (self.effects.len().to_string(), "keys".to_owned()),
            (self.failed.to_string(), "without an answer".to_owned()),
        ])];
        if let Some(svg) = self.heat.as_ref().map(Heat::svg) {
            let note =
                format!("The median of {} over all items of a cell; the table has all of them.", self.figure);
            blocks.push(Block::Picture {
                id: "heat".to_owned(),
                title: format!("{} by two keys", self.figure),
                svg,
                key: Vec::new(),
                notes: vec![note],
            });
        }
        blocks.push(Block::Grid(self.grid()));
        let section = Section { id: "sweep".to_owned(), title: "What matters".to_owned(), blocks };
        let lead =
            "The same question to many worlds: what each key does to the answer, alone and two by two.";
        page::page(&self.title, lead, &[section])
    }
}

/// How many points of the axes have an item in the table.
fn points(plan: &Plan, table: &Table) -> usize {
    let point = |cell: &super::cell::Cell| match cell {
        super::cell::Cell::Integer(item) => Some(item / plan.seeds),
        _ => None,
    };
    table.column("item").iter().filter_map(point).collect::<BTreeSet<u64>>().len()
}

fn records(plan: &Plan, effects: &[Effect], figure: &str) -> Vec<Record> {
    let (name, unit) = match figure.rsplit_once('_') {
        Some((name, unit @ ("bps" | "s" | "bytes"))) => (name, if unit == "bps" { "bit/s" } else { unit }),
        _ => (figure, ""),
    };
    let (board, origin) = plan.board();
    let record = |key: &str, level: &effects::Level| {
        Some(Record {
            board: board.clone(),
            workload: plan.title.clone(),
            tuning: format!("{key}={}", level.value),
            figure: format!("median {name}"),
            unit: unit.to_owned(),
            value: level.quartiles?[1],
            origin,
            source: format!("lab sweep, {} items", level.items),
        })
    };
    let of = |effect: &Effect| -> Vec<Record> {
        effect.levels.iter().filter_map(|level| record(&effect.key, level)).collect()
    };
    effects.iter().flat_map(of).collect()
}

impl Plan {
    /// What answers, and whether that counts as measured.
    fn board(&self) -> (String, Origin) {
        match self.chip() {
            Some(chip) => (chip, Origin::Predicted),
            None => ("simulator".to_owned(), Origin::Measured),
        }
    }
}
