//! What a run found, as it is written to JSON.

use crate::profile::Profile;
use crate::rows::Metric;
use linerate_lab::measure::statistics::Spread;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One measurement.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Sample {
    /// Bytes, requests or packets.
    pub units: f64,
    /// In so many seconds.
    pub seconds: f64,
    /// From the client's start to its end, in seconds: what shares of a core are of.
    pub wall: f64,
    /// Processor seconds of the server's processes.
    pub server_cpu: f64,
    /// Processor seconds of the client's.
    pub client_cpu: f64,
    /// Processor seconds of the kernel's own threads, which may deliver packets.
    pub kernel_cpu: f64,
    /// Processor seconds of both cores, whoever used them.
    pub cores_cpu: f64,
    /// Seconds that the machine's host took.
    pub stolen: f64,
    /// Share of packets that were lost.
    pub lost: f64,
    /// Requests that failed.
    pub errors: u64,
    /// Latencies, in seconds, where they were measured: p50, p99, p99.9.
    #[serde(default)]
    pub latency: [f64; 3],
    /// What memory cost before it, where the server fills it: the cheapest that was seen in the row is 1.
    #[serde(default)]
    pub memory: f64,
}

impl Sample {
    /// The figure that is compared.
    pub fn value(&self, metric: Metric) -> f64 {
        match metric {
            Metric::Rate => self.units / self.seconds,
            Metric::PerCpu => self.units / self.server_cpu.max(1e-9),
            Metric::CpuPerGb => self.server_cpu / (self.units / 1e9).max(1e-9),
            Metric::Loss => self.lost,
            Metric::P50 => self.latency[0],
            Metric::P99 => self.latency[1],
            Metric::P999 => self.latency[2],
        }
    }
}

/// What is in a sample's way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Limit {
    /// The client had no processor time left, the server had.
    Client,
    /// Other processes, or the machine's host, took processor time.
    Machine,
    /// Memory cost more than it did before other contenders' turns: the machine's host had taken it.
    Memory,
}

/// A contender's samples, one for each round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Contestant {
    /// Its name.
    pub name: String,
    /// Its samples.
    pub samples: Vec<Sample>,
    /// Why it has none, or fewer than others.
    pub failure: Option<String>,
    /// Where its processor time went, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
}

/// How a comparison ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Verdict {
    /// The goal is met.
    Met,
    /// It is not.
    Missed,
    /// It cannot be told.
    Refused(String),
}

/// Ours beside the best of others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// Ours.
    pub ours: String,
    /// The best of the others.
    pub other: String,
    /// What is compared.
    pub metric: Metric,
    /// Our figure.
    pub our_value: f64,
    /// Theirs.
    pub other_value: f64,
    /// Ours to theirs, round by round.
    pub ratio: Spread,
    /// What is asked of the ratio.
    pub goal: f64,
    /// Rounds that both took part in.
    pub runs: usize,
    /// How it ended.
    pub verdict: Verdict,
    /// What else is to be known.
    pub remarks: Vec<String>,
}

/// A row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowReport {
    /// Its name.
    pub name: String,
    /// Unit of its rates.
    pub unit: String,
    /// How much of what is counted makes the unit.
    pub scale: f64,
    /// Who took part.
    pub contestants: Vec<Contestant>,
    /// What was asked.
    pub judgements: Vec<Judgement>,
}

impl RowReport {
    /// Whether latencies were measured.
    pub fn has_latency(&self) -> bool {
        self.contestants.iter().flat_map(|found| &found.samples).any(|sample| sample.latency[0] > 0.0)
    }
}

/// A run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// When it began, UTC.
    pub date: String,
    /// How it was called.
    pub command: String,
    /// What the machine is.
    pub machine: BTreeMap<String, String>,
    /// Versions of all that took part.
    pub versions: BTreeMap<String, String>,
    /// Rounds of each row.
    pub rounds: u32,
    /// Seconds of a measurement over bytes, and over requests.
    pub seconds: (u32, u32),
    /// How long all of it took, in seconds.
    pub took: u64,
    /// The rows.
    pub rows: Vec<RowReport>,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::profile::Place;

    pub(crate) fn sample(units: f64, server_cpu: f64, client_cpu: f64) -> Sample {
        Sample {
            units,
            seconds: 1.0,
            wall: 1.0,
            server_cpu,
            client_cpu,
            cores_cpu: server_cpu + client_cpu,
            ..Sample::default()
        }
    }

    #[test]
    fn figures() {
        let sample = Sample { lost: 0.25, ..sample(2e9, 0.5, 1.0) };
        let values = [Metric::Rate, Metric::PerCpu, Metric::CpuPerGb, Metric::Loss].map(|m| sample.value(m));
        assert_eq!(values, [2e9, 4e9, 0.25, 0.25]);
    }

    #[test]
    fn json_round_trip() {
        let contestant = Contestant {
            name: "nginx".into(),
            samples: vec![sample(3.0, 1.0, 1.0)],
            failure: Some("gone".into()),
            profile: Some(Profile { samples: 1, shares: [(Place::Send, 1.0)].into(), largest: None }),
        };
        let row = RowReport {
            name: "http".into(),
            unit: "requests/s".into(),
            scale: 1.0,
            contestants: vec![contestant],
            judgements: vec![Judgement {
                ours: "linerate".into(),
                other: "nginx".into(),
                metric: Metric::PerCpu,
                our_value: 2.0,
                other_value: 1.0,
                ratio: Spread { median: 2.0, least: 1.9, most: 2.1 },
                goal: 1.3,
                runs: 3,
                verdict: Verdict::Refused("no".into()),
                remarks: vec!["x".into()],
            }],
        };
        let report = Report { date: "today".into(), rounds: 3, rows: vec![row], ..Report::default() };
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
    }
}
