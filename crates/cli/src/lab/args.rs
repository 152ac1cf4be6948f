//! Arguments of `linerate lab`.

use super::ladder::Ladder;
use super::offloads::Offloads;
use clap::{Args, Subcommand};
use linerate_lab::schema::Record;
use std::path::PathBuf;

/// Arguments of `lab`.
#[derive(Args, Debug)]
pub struct Lab {
    /// What to find out.
    #[command(subcommand)]
    pub experiment: Experiment,
}

/// The experiments.
#[derive(Subcommand, Debug)]
pub enum Experiment {
    /// What offloads save: throughput and processor load with each, and switching under load (needs root)
    Offloads(Box<Offloads>),
    /// The figures that the source documents print, with their places, as CSV
    Published(Published),
    /// The tuning ladder of seed 000: each rung predicted, measured, and beside what the document prints
    Ladder(Ladder),
    /// Load at rising rates until a server is saturated: where its curve bends, and who was the limit
    Ramp(Box<super::ramp::Ramp>),
    /// The same question to many worlds of the simulator, or to many variants of a chip
    Sweep(Box<super::sweep::Sweep>),
    /// Memory and packets of this machine: latency, bandwidth, contention; as tables, as a chip, and predicted from half
    Guide(super::guide::Guide),
}

/// Forms of a result that every experiment has beside its table on the terminal.
#[derive(Args, Clone, Debug, Default)]
pub struct Output {
    /// Print the result as JSON instead of a table
    #[arg(long)]
    pub json: bool,

    /// Write a report with pictures there: one HTML page that needs nothing but itself
    #[arg(long, value_name = "FILE.html")]
    pub html: Option<PathBuf>,
}

/// Arguments of `lab published`.
#[derive(Args, Debug)]
pub struct Published {
    /// Only of this document: 000, 002, 003 or 004
    #[arg(long, value_name = "NUMBER", value_parser = ["000", "002", "003", "004"])]
    pub seed: Option<String>,

    /// Print JSON instead of CSV
    #[arg(long)]
    pub json: bool,
}

impl Published {
    /// Whether a figure was asked for.
    pub fn wants(&self, record: &Record) -> bool {
        self.seed.as_ref().is_none_or(|seed| record.source.starts_with(&format!("seed {seed}, ")))
    }
}
