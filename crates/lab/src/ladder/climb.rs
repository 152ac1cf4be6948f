//! What came of the rungs in one place: predicted, measured and published beside each other.

use super::constants::{Constants, Whose};
use super::model::{self, Predicted};
use super::rungs::{self, Rung};
use super::simulator;
use super::state::Direction;
use crate::measure::statistics::Spread;
use crate::progress::Progress;
use crate::schema::{Origin, Record};
use serde::Serialize;

/// The rungs in one place.
#[derive(Clone, Debug, Serialize)]
pub struct Climb {
    /// Where: `simulator`, `linux-tap`, `virt-a15`, ... as figures name their board.
    pub board: String,
    /// The same in words.
    pub title: String,
    /// The rungs.
    pub rows: Vec<Row>,
    /// Rungs that have no counterpart here, with the reason.
    pub left_out: Vec<(String, String)>,
    /// What else there is to say: how it was predicted, and why a prediction missed.
    pub notes: Vec<String>,
}

/// A rung in one place.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its name.
    pub rung: String,
    /// What it changes.
    pub title: String,
    /// The rung that it is changed from.
    pub from: Option<String>,
    /// Which way the data goes.
    pub direction: Direction,
    /// What was predicted; nothing where no model covers the place.
    pub predicted: Option<Expected>,
    /// What was measured.
    pub measured: Option<Found>,
    /// What the document prints.
    pub published: Vec<Printed>,
    /// What `fabric` predicts for the document's own system, in MB/s.
    pub described: Option<f64>,
}

/// A prediction.
#[derive(Clone, Debug, Serialize)]
pub struct Expected {
    /// Payload in MB/s.
    pub megabytes: f64,
    /// Part of the time that the processor is busy.
    pub load: f64,
    /// What limits it.
    pub limit: String,
    /// All limits: name, MB/s, arithmetic; the smallest first.
    pub limits: Vec<(String, f64, String)>,
}

impl From<Predicted> for Expected {
    fn from(predicted: Predicted) -> Expected {
        Expected {
            megabytes: predicted.megabytes,
            load: predicted.load,
            limit: predicted.limit().name().to_owned(),
            limits: predicted
                .limits
                .into_iter()
                .map(|(limit, rate, why)| (limit.name().to_owned(), rate, why))
                .collect(),
        }
    }
}

impl Expected {
    /// The next limit behind the first, as in `the processor at 114 MB/s`.
    pub fn next(&self) -> Option<String> {
        self.limits.get(1).map(|(name, rate, _)| format!("{name}, {rate:.0}"))
    }
}

/// A measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Found {
    /// Payload in MB/s: the median and the range of the rounds.
    pub megabytes: Spread,
    /// Part of the time that the server's processor was busy.
    pub load: Option<f64>,
    /// Part of the time that the server was ready to run and others had the cores, where that can be.
    pub kept: Option<f64>,
    /// What limited it.
    pub limit: String,
    /// Why.
    pub because: String,
    /// How it was measured.
    pub how: String,
}

/// A figure of the document.
#[derive(Clone, Debug, Serialize)]
pub struct Printed {
    /// Its name there.
    pub figure: String,
    /// In MB/s.
    pub megabytes: f64,
    /// Where.
    pub place: String,
}

impl Row {
    /// A row of a rung without figures of ours.
    pub fn of(rung: &Rung, figures: &[Record]) -> Row {
        Row {
            rung: rung.name.to_owned(),
            title: rung.title.to_owned(),
            from: rung.from.map(str::to_owned),
            direction: rung.state.direction,
            predicted: None,
            measured: None,
            published: printed(figures, rung.state.direction, rung.published),
            described: None,
        }
    }

    /// How far the prediction lies from the measurement: 0.1 is a tenth above it.
    pub fn error(&self) -> Option<f64> {
        let (predicted, measured) = (self.predicted.as_ref()?, self.measured.as_ref()?);
        (measured.megabytes.median > 0.0).then(|| predicted.megabytes / measured.megabytes.median - 1.0)
    }

    /// The least and the most that the document prints, in MB/s.
    pub fn printed_range(&self) -> Option<(f64, f64)> {
        let values = || self.published.iter().map(|printed| printed.megabytes);
        let least = values().reduce(f64::min)?;
        values().reduce(f64::max).map(|most| (least, most))
    }
}

/// Figures of throughput that the document prints for a tuning.
pub fn printed(figures: &[Record], direction: Direction, tuning: Option<&str>) -> Vec<Printed> {
    let Some(tuning) = tuning else { return Vec::new() };
    let wanted = figures.iter().filter(|record| {
        record.workload == direction.workload()
            && record.tuning == tuning
            && record.unit == "MB/s"
            && record.figure.starts_with("throughput")
    });
    wanted
        .map(|record| Printed {
            figure: record.figure.clone(),
            megabytes: record.value,
            place: record.source.clone(),
        })
        .collect()
}

/// Runs rungs on the simulator.
///
/// # Errors
/// A scenario or a state that is refused: a mistake of ours, in words.
pub fn simulate(
    chosen: &[Rung],
    whose: Whose,
    constants: &Constants,
    figures: &[Record],
    progress: &mut Progress,
) -> Result<Climb, String> {
    let (board, title) = match whose {
        Whose::Document => ("simulator", "On the simulator, with the work of the document's system"),
        Whose::Counted => ("simulator-counted", "On the simulator, with the counted work of our stack"),
    };
    let described = document_servers()?;
    let mut rows = Vec::new();
    for rung in chosen {
        progress.begin(&format!("{board} {}", rung.name));
        // Predicted before it is run.
        let predicted = model::predict(&rung.state, constants, whose)?;
        let measured = simulator::run(&rung.state, constants, whose)?;
        rows.push(Row {
            predicted: Some(predicted.into()),
            measured: Some(found(measured)),
            described: rung.described.and_then(&described),
            ..Row::of(rung, figures)
        });
        progress.done(1);
    }
    Ok(Climb {
        board: board.to_owned(),
        title: title.to_owned(),
        rows,
        left_out: Vec::new(),
        notes: Vec::new(),
    })
}

fn found(measured: simulator::Measured) -> Found {
    let median = measured.megabytes;
    Found {
        megabytes: Spread { median, least: median, most: median },
        load: Some(measured.load),
        kept: None,
        limit: measured.bottleneck,
        because: measured.because,
        how: "200 ms of virtual time".to_owned(),
    }
}

/// What `fabric` says of the document's servers, by their names in the description of the chip.
fn document_servers() -> Result<impl Fn(&str) -> Option<f64>, String> {
    const CHIP: &str = include_str!("../../../../boards/socs/k2h.toml");
    let links = linerate_fabric::soc::load(CHIP).map_err(|why| why.to_string())?.links;
    Ok(move |server: &str| links.tcp.get(server)?.predict(&links).ok().map(|answer| answer.predicted))
}

impl Climb {
    /// All figures in the laboratory's form.
    pub fn records(&self) -> Vec<Record> {
        self.rows.iter().flat_map(|row| self.records_of(row)).collect()
    }

    fn records_of(&self, row: &Row) -> Vec<Record> {
        let record = |board: &str, figure: &str, unit: &str, value: f64, origin, source: String| Record {
            board: board.to_owned(),
            workload: row.direction.workload().to_owned(),
            tuning: row.rung.clone(),
            figure: figure.to_owned(),
            unit: unit.to_owned(),
            value,
            origin,
            source,
        };
        let mut records = Vec::new();
        if let Some(predicted) = &row.predicted {
            let why =
                predicted.limits.first().map(|(name, _, why)| format!("{name}: {why}")).unwrap_or_default();
            let board = &self.board;
            records.push(record(
                board,
                "throughput",
                "MB/s",
                predicted.megabytes,
                Origin::Predicted,
                why.clone(),
            ));
            records.push(record(board, "cpu-load", "%", predicted.load * 100.0, Origin::Predicted, why));
        }
        if let Some(found) = &row.measured {
            let (board, how) = (&self.board, &found.how);
            let rate = found.megabytes.median;
            records.push(record(board, "throughput", "MB/s", rate, Origin::Measured, how.clone()));
            if let Some(load) = found.load {
                records.push(record(board, "cpu-load", "%", load * 100.0, Origin::Measured, how.clone()));
            }
        }
        for printed in &row.published {
            let place = printed.place.clone();
            records.push(record("k2h", &printed.figure, "MB/s", printed.megabytes, Origin::Published, place));
        }
        if let Some(described) = row.described {
            let source = "fabric, boards/socs/k2h.toml".to_owned();
            records.push(record("k2h", "throughput", "MB/s", described, Origin::Predicted, source));
        }
        records
    }

    /// The rung that a row is changed from, where it was run too.
    pub fn before(&self, row: &Row) -> Option<&Row> {
        self.rows.iter().find(|other| Some(&other.rung) == row.from.as_ref())
    }
}

/// The rungs of these names, with all if there are none.
///
/// # Errors
/// A name that no rung has.
pub fn choose(names: &[String]) -> Result<Vec<Rung>, String> {
    let all = rungs::all();
    if let Some(unknown) = names.iter().find(|name| !all.iter().any(|rung| rung.name == **name)) {
        let known: Vec<&str> = all.iter().map(|rung| rung.name).collect();
        return Err(format!("there is no rung {unknown:?}; expected one of {}", known.join(", ")));
    }
    Ok(all
        .into_iter()
        .filter(|rung| names.is_empty() || names.iter().any(|name| name == rung.name))
        .collect())
}
