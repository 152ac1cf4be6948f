//! The ladder as a table and as a page.

use super::climb::{Climb, Found, Row};
use super::constants::{Constants, Whose};
use super::state::Direction;
use super::waterfall;
use crate::measure::provenance::Provenance;
use crate::quantity::share;
use crate::report::grid::{Cell, Grid, GridFormat};
use crate::report::page::{Block, Section, page};
use crate::schema::Record;
use serde::Serialize;

/// A run with everything that its readers need.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Machine, command, date, rounds.
    pub provenance: Provenance,
    /// The rungs by place.
    pub climbs: Vec<Climb>,
    /// All figures in the laboratory's form.
    pub records: Vec<Record>,
}

impl Report {
    /// The report of some climbs.
    pub fn new(climbs: Vec<Climb>, provenance: Provenance) -> Report {
        let records = climbs.iter().flat_map(Climb::records).collect();
        Report { provenance, climbs, records }
    }

    /// Tables for a terminal.
    pub fn text(&self, width: Option<u16>) -> String {
        let tables = self.climbs.iter().map(|climb| brief(climb).render(GridFormat::Terminal, width));
        tables.collect::<Vec<_>>().join("\n") + &self.provenance.sentence() + "\n"
    }

    /// The page.
    ///
    /// # Errors
    /// A picture that cannot be drawn.
    pub fn html(&self, constants: &Constants) -> Result<String, String> {
        let lead = format!(
            "The tuning ladder of seed 000, an FTP server that went from 11 to 73 MB/s: its rungs as configurations of ours. {}",
            self.provenance.sentence()
        );
        let mut sections: Vec<Section> = self.climbs.iter().map(section).collect();
        if self.climbs.iter().any(|climb| climb.board.starts_with("simulator")) {
            sections.push(what_it_rests_on(constants));
        }
        page("The ladder", &lead, &sections).map_err(|why| why.to_string())
    }
}

/// A place's rungs as a table.
pub fn grid(climb: &Climb) -> Grid {
    let mut grid = Grid::new(
        format!("table-{}", climb.board),
        climb.title.clone(),
        &[
            "rung",
            "change",
            "from",
            "predicted, MB/s",
            "measured, MB/s",
            "off",
            "published, MB/s",
            "its system by fabric, MB/s",
            "load, predicted",
            "load, measured",
            "limited before by",
            "limited after by",
            "next limit, MB/s",
        ],
    );
    grid.rows = climb.rows.iter().map(|row| cells(climb, row)).collect();
    let off = climb.rows.iter().filter_map(Row::error);
    let (all, within) = (off.clone().count(), off.filter(|error| error.abs() <= 0.1).count());
    if all > 0 {
        grid.notes.push(format!("{within} of {all} predictions lie within 10 % of the measurement."));
    }
    grid.notes.extend(climb.notes.iter().cloned());
    grid.notes.extend(climb.left_out.iter().map(|(name, why)| format!("Left out: {name}: {why}.")));
    grid
}

/// Columns of the table that a terminal shows: what changes is in `--list` and on the page.
const BRIEF: [usize; 9] = [0, 3, 4, 5, 6, 9, 10, 11, 12];

/// The same with fewer columns, for a terminal.
fn brief(climb: &Climb) -> Grid {
    let whole = grid(climb);
    let headers = BRIEF.iter().filter_map(|column| whole.headers.get(*column).cloned()).collect();
    let pick = |row: &Vec<Cell>| BRIEF.iter().filter_map(|column| row.get(*column).cloned()).collect();
    Grid { headers, rows: whole.rows.iter().map(pick).collect(), ..whole }
}

fn cells(climb: &Climb, row: &Row) -> Vec<Cell> {
    let figure = |value: Option<f64>| value.map_or(Cell::Empty, |value| Cell::number(value, 1));
    let words = |text: Option<String>| text.map_or(Cell::Empty, Cell::Text);
    let limit = |found: &Found| found.limit.clone();
    let measured = row.measured.as_ref();
    let published = row.printed_range().map(|(least, most)| {
        if least < most { format!("{least:.0} to {most:.0}") } else { format!("{least:.0}") }
    });
    let before = climb.before(row).and_then(|row| row.measured.as_ref());
    let load = |load: Option<f64>| load.map_or(Cell::Empty, |load| Cell::Text(share(load)));
    vec![
        Cell::text(row.rung.clone()),
        Cell::text(row.title.clone()),
        words(row.from.clone()),
        figure(row.predicted.as_ref().map(|expected| expected.megabytes)),
        measured.map_or(Cell::Empty, rate),
        row.error().map_or(Cell::Empty, Cell::Percent),
        words(published),
        figure(row.described),
        load(row.predicted.as_ref().map(|expected| expected.load)),
        load(measured.and_then(|found| found.load)),
        words(before.map(limit)),
        words(measured.map(limit)),
        words(row.predicted.as_ref().and_then(|expected| expected.next())),
    ]
}

/// A rate, with its range where there were several rounds.
fn rate(found: &Found) -> Cell {
    let spread = found.megabytes;
    Cell::Spread { spread, decimals: usize::from(spread.least == spread.most) }
}

fn section(climb: &Climb) -> Section {
    let mut blocks = Vec::new();
    for (direction, title) in
        [(Direction::Sending, "The server sends"), (Direction::Receiving, "The server receives")]
    {
        let Some(svg) = waterfall::svg(climb, direction) else { continue };
        blocks.push(Block::Picture {
            id: format!("{}-{}", climb.board, direction.workload()),
            title: title.to_owned(),
            svg,
            key: Vec::new(),
            notes: vec!["Beside each name: measured, and predicted in brackets.".to_owned()],
        });
    }
    blocks.push(Block::Grid(grid(climb)));
    let mut why = Grid::new(
        format!("why-{}", climb.board),
        "Why",
        &["rung", "measured: limited by", "because", "predicted: smallest limit"],
    );
    why.rows = climb
        .rows
        .iter()
        .filter_map(|row| {
            let found = row.measured.as_ref()?;
            let first = row.predicted.as_ref().and_then(|expected| expected.limits.first());
            let arithmetic = first.map(|(name, rate, why)| format!("{name}, {rate:.1} MB/s: {why}"));
            Some(vec![
                Cell::text(row.rung.clone()),
                Cell::text(found.limit.clone()),
                Cell::text(found.because.clone()),
                arithmetic.map_or(Cell::Empty, Cell::Text),
            ])
        })
        .collect();
    blocks.push(Block::Grid(why));
    Section { id: climb.board.clone(), title: climb.title.clone(), blocks }
}

fn what_it_rests_on(constants: &Constants) -> Section {
    let table = |whose: Whose, title: &str, id: &str| {
        let mut grid = Grid::new(id, title, &["constant", "value", "unit", "origin", "source"]);
        grid.rows = constants
            .all(whose)
            .into_iter()
            .map(|(name, constant)| {
                let decimals = if constant.value.fract() == 0.0 { 0 } else { 2 };
                vec![
                    Cell::text(name),
                    Cell::number(constant.value, decimals),
                    Cell::text(constant.unit.clone()),
                    Cell::text(constant.origin.to_string()),
                    Cell::text(constant.source.clone()),
                ]
            })
            .collect();
        Block::Grid(grid)
    };
    let text = "Prediction and simulator read these constants and nothing else in common. The simulator's processor takes a fixed \
                time for each packet, call, byte and interrupt: it has no caches, no memory bus and no other tasks, so a copy that \
                evicts what is needed next, or a descriptor that is read from memory, costs nothing more here.";
    Section {
        id: "constants".to_owned(),
        title: "What it rests on".to_owned(),
        blocks: vec![
            Block::Text(text.to_owned()),
            table(Whose::Document, "Work of the document's system", "constants-document"),
            table(Whose::Counted, "Work of our stack, counted", "constants-counted"),
        ],
    }
}
