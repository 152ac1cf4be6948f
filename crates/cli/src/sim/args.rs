//! Arguments of `linerate sim`.

use clap::{Args, ValueEnum};
use linerate_lab::scenario::file::MAX_QUEUES;
use std::path::PathBuf;

/// Arguments of `sim`.
#[derive(Args, Debug)]
pub struct Sim {
    /// The scenario (docs/sim.md describes its keys); - for standard input
    #[arg(value_name = "FILE.toml")]
    pub file: PathBuf,

    /// Change a key of the scenario, as in link.loss="1 %" or flow.0.bytes="1 MiB"; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// Decides everything random; wins over the scenario's
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = seed)]
    pub seed: Option<u64>,

    /// Queues of both interfaces, each with a processor and a stack of its own (client.queues, server.queues)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_QUEUES)))]
    pub queues: Option<u16>,

    /// Draw goodput, congestion window, round-trip time and queue over time
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,

    /// Keep the frames of both hosts, for Wireshark; up to 1 GiB of them
    #[arg(long, value_name = "FILE.pcapng")]
    pub pcap: Option<PathBuf>,

    /// Keep what happened when, for ui.perfetto.dev, with the times of --pcap; the last million events
    #[arg(long, value_name = "FILE.json")]
    pub trace: Option<PathBuf>,

    /// Form of the answer
    #[arg(long, value_enum, value_name = "text|json", default_value = "text")]
    pub format: Format,

    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
}

/// Form of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Format {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object.
    Json,
}

impl Sim {
    /// The form that was asked for.
    pub fn chosen(&self) -> Format {
        if self.json { Format::Json } else { self.format }
    }
}

/// The seed of a run.
fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("expected a whole number from 0 to {}", u64::MAX))
}
