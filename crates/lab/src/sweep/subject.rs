//! What a sweep asks: a scenario of the simulator, or a chip.

use super::cell::{Cell, Column, Kind};
use crate::scenario::file::Side;
use crate::scenario::load::{self, Refused};
use crate::scenario::outcome::Outcome;
use crate::scenario::{build, verdict, watch};
use linerate_fabric::ask;
use linerate_fabric::soc::Soc;
use toml::Table;

/// See the module.
#[derive(Clone, Debug)]
pub enum Subject {
    /// Worlds that begin with this scenario.
    Worlds(Table),
    /// A chip, and what it is asked.
    Chip {
        /// The chip.
        soc: Box<Soc>,
        /// The transfer.
        transfer: String,
    },
}

/// A key with the value that it is to have, as text of TOML.
pub type Setting = (String, String);

impl Subject {
    /// What it answers, behind item, seed and axes.
    pub fn columns(&self) -> Vec<Column> {
        let columns: &[(&str, Kind)] = match self {
            Subject::Worlds(_) => &[
                ("goodput_bps", Kind::Number),
                ("received_bytes", Kind::Integer),
                ("complete", Kind::Bool),
                ("time_s", Kind::Number),
                ("rtt_least_s", Kind::Number),
                ("rtt_mean_s", Kind::Number),
                ("rtt_most_s", Kind::Number),
                ("segments", Kind::Integer),
                ("retransmits", Kind::Integer),
                ("bottleneck", Kind::Text),
            ],
            Subject::Chip { .. } => &[
                ("predicted", Kind::Number),
                ("low", Kind::Number),
                ("high", Kind::Number),
                ("unit", Kind::Text),
                ("bottleneck", Kind::Text),
            ],
        };
        columns.iter().map(|(name, kind)| Column::new(*name, *kind)).collect()
    }

    /// The column that a picture shows unless another is asked for.
    pub fn figure(&self) -> &'static str {
        match self {
            Subject::Worlds(_) => "goodput_bps",
            Subject::Chip { .. } => "predicted",
        }
    }

    /// Whether chance decides anything.
    pub fn is_random(&self) -> bool {
        matches!(self, Subject::Worlds(_))
    }

    /// The seed that the scenario names.
    pub fn seed(&self) -> Option<u64> {
        match self {
            Subject::Worlds(table) => scenario(table, &[]).ok()?.world.seed,
            Subject::Chip { .. } => None,
        }
    }

    /// Whether the settings fit, without asking.
    ///
    /// # Errors
    /// What does not.
    pub fn check(&self, settings: &[Setting]) -> Result<(), String> {
        match self {
            Subject::Worlds(table) => scenario(table, settings).map(|_| ()).map_err(|refused| refused.why),
            Subject::Chip { soc, .. } => changed(soc, settings).map(|_| ()),
        }
    }

    /// The answer for these settings, one cell for each column.
    ///
    /// # Errors
    /// Why there is none.
    pub fn answer(&self, settings: &[Setting], seed: u64) -> Result<Vec<Cell>, String> {
        match self {
            Subject::Worlds(table) => {
                let scenario = scenario(table, settings)
                    .map_err(|Refused { change, why }| format!("{change}: {why}"))?;
                Ok(world(&watch(&mut build::build(&scenario, Some(seed)), &scenario)))
            }
            Subject::Chip { soc, transfer } => {
                let soc = changed(soc, settings)?;
                let found = ask::answer(&soc, transfer).map_err(|error| error.to_string())?;
                let bottleneck = found.bottlenecks.first().map(|limit| limit.name.to_string());
                Ok(vec![
                    Cell::Number(found.predicted),
                    Cell::Number(found.low),
                    Cell::Number(found.high),
                    Cell::Text(found.unit.symbol().to_owned()),
                    bottleneck.map_or(Cell::Empty, Cell::Text),
                ])
            }
        }
    }
}

fn scenario(table: &Table, settings: &[Setting]) -> Result<crate::scenario::file::Scenario, Refused> {
    let sets: Vec<String> = settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
    load::with(table, &sets)
}

fn changed(soc: &Soc, settings: &[Setting]) -> Result<Soc, String> {
    // Values of chips are plain text, whatever they are in the file.
    let plain = |text: &str| text.trim_matches('"').to_owned();
    let changes: Vec<Setting> = settings.iter().map(|(key, value)| (key.clone(), plain(value))).collect();
    soc.with(&changes).map_err(|error| error.what)
}

/// The cells of a world: bytes and segments of all flows together, their bytes in both directions over the time that they took, round
/// trips and bottleneck of the first.
fn world(outcome: &Outcome) -> Vec<Cell> {
    let flows = &outcome.flows;
    let sum = |of: &dyn Fn(&linerate_transport::ConnInfo) -> u64| {
        Cell::Integer(flows.iter().filter_map(|flow| flow.info.as_ref()).map(of).sum())
    };
    let first = flows.first();
    let rtt = first.and_then(|flow| flow.rtt);
    let seconds = |index: usize| rtt.map_or(Cell::Empty, |rtt| Cell::Number(rtt[index].as_secs_f64()));
    let bottleneck = first.map(|flow| verdict::of(outcome, flow).bottleneck.to_string());
    vec![
        Cell::Number([Side::Client, Side::Server].map(|side| outcome.goodput_bps(side)).iter().sum()),
        Cell::Integer(flows.iter().map(|flow| flow.received).sum()),
        Cell::Bool(flows.iter().all(|flow| flow.is_complete)),
        Cell::Number(outcome.active().as_secs_f64()),
        seconds(0),
        seconds(1),
        seconds(2),
        sum(&|info| info.segments_sent),
        sum(&|info| info.retransmits),
        bottleneck.map_or(Cell::Empty, Cell::Text),
    ]
}
