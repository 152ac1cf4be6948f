//! What came of it: rows of medians, what was refused and why, and the figures as records.

use super::boards::Board;
use super::hardware::Cycles;
use super::plan::{Device, Setting, Workload};
use super::switching::Switched;
use crate::measure::provenance::Provenance;
use crate::measure::statistics::{Spread, spread};
use crate::schema::{Origin, Record};
use serde::Serialize;

/// An end that uses so much of what it may have is the limit.
const FULL: f64 = 0.95;
/// And the device under test is not, when it uses less than this of its own.
const NOT_FULL: f64 = 0.90;
/// Processor time of neither end, in cores, from which a run counts as disturbed. The kernel's own work for the transfer, which
/// is nobody's, is part of it.
const DISTURBED_CORES: f64 = 0.30;
/// The same for what the machine's host took.
const STOLEN_CORES: f64 = 0.05;

/// One transfer.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Sample {
    /// Payload that arrived, in bits per second.
    pub throughput_bps: f64,
    /// Datagrams lost, in per cent.
    pub lost_percent: Option<f64>,
    /// Segments that a sender of TCP sent again.
    pub retransmits: Option<f64>,
    /// Load of each core by the seed's definition: 100 less what was idle over the period.
    pub core_load_percent: Vec<f64>,
    /// Processor time of the device under test, in cores: by its control group.
    pub device_cores: Option<f64>,
    /// That of the other end.
    pub other_end_cores: Option<f64>,
    /// That of neither.
    pub rest_cores: Option<f64>,
    /// What the machine's host took.
    pub stolen_cores: f64,
    /// Whether either end was bound to a core of its own.
    pub is_bound: bool,
}

impl Sample {
    /// Why it says nothing of the device under test, if so.
    pub fn flaw(&self) -> Option<Flaw> {
        if self.stolen_cores > STOLEN_CORES || self.rest_cores.is_some_and(|cores| cores > DISTURBED_CORES) {
            return Some(Flaw::Disturbed);
        }
        let is_full = self.is_bound && self.other_end_cores.is_some_and(|cores| cores >= FULL);
        let has_room = self.device_cores.is_some_and(|cores| cores < NOT_FULL);
        (is_full && has_room).then_some(Flaw::OtherEnd)
    }

    /// Mean load of the cores in per cent: the seed's "all".
    pub fn load_percent(&self) -> f64 {
        self.core_load_percent.iter().sum::<f64>() / self.core_load_percent.len().max(1) as f64
    }

    /// Processor time of the device under test for each byte that arrived, in nanoseconds.
    pub fn device_ns_per_byte(&self) -> Option<f64> {
        (self.throughput_bps > 0.0).then_some(self.device_cores? * 1e9 / (self.throughput_bps / 8.0))
    }
}

/// Why a figure is none of the device under test.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Flaw {
    /// Something else used the processors.
    Disturbed,
    /// The other end had no processor time left.
    OtherEnd,
}

impl Flaw {
    /// In words.
    pub const fn text(self) -> &'static str {
        match self {
            Flaw::Disturbed => "something else used the processors",
            Flaw::OtherEnd => "the other end was the limit",
        }
    }
}

/// One workload with one setting on one device.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// What it ran on.
    pub device: Device,
    /// What it did.
    pub workload: Workload,
    /// What the device was let do.
    pub setting: Setting,
    /// All transfers, in the order of the rounds.
    pub samples: Vec<Sample>,
    /// Why its figures are not shown, if so.
    pub refused: Option<Flaw>,
}

impl Row {
    /// A row of these samples. Where `refuses`, one whose samples are flawed for the greater part is refused.
    pub fn new(
        device: Device,
        workload: Workload,
        setting: Setting,
        samples: Vec<Sample>,
        refuses: bool,
    ) -> Row {
        let flaws: Vec<Flaw> = samples.iter().filter_map(Sample::flaw).collect();
        let refused = flaws.first().copied().filter(|_| refuses && flaws.len() * 2 > samples.len());
        Row { device, workload, setting, samples, refused }
    }

    /// A figure of the samples that have no flaw; of all, where none is without.
    pub fn figure(&self, of: impl Fn(&Sample) -> Option<f64>) -> Option<Spread> {
        if self.refused.is_some() {
            return None;
        }
        let good: Vec<&Sample> = self.samples.iter().filter(|sample| sample.flaw().is_none()).collect();
        let from = if good.is_empty() { self.samples.iter().collect() } else { good };
        spread(from.into_iter().filter_map(of))
    }

    /// Throughput in Mbit/s.
    pub fn throughput_mbps(&self) -> Option<Spread> {
        self.figure(|sample| Some(sample.throughput_bps / 1e6))
    }

    /// Mean load of all cores in per cent.
    pub fn load_percent(&self) -> Option<Spread> {
        self.figure(|sample| Some(sample.load_percent()))
    }

    /// Load of each core in per cent.
    pub fn core_load_percent(&self) -> Vec<f64> {
        let cores = self.samples.first().map_or(0, |sample| sample.core_load_percent.len());
        let of = |core: usize| self.figure(|sample| sample.core_load_percent.get(core).copied());
        (0..cores).filter_map(|core| of(core).map(|spread| spread.median)).collect()
    }

    fn records(&self) -> Vec<Record> {
        let record = |figure: String, unit: &str, value: Option<Spread>| {
            value.map(|spread| Record {
                board: self.device.name().to_owned(),
                workload: self.workload.name(),
                tuning: self.setting.name().to_owned(),
                figure,
                unit: unit.to_owned(),
                value: spread.median,
                origin: Origin::Measured,
                source: format!("{} rounds, {:.4} to {:.4}", self.samples.len(), spread.least, spread.most),
            })
        };
        let mut all = vec![
            record("throughput".to_owned(), "Mbit/s", self.throughput_mbps()),
            record("cpu-load".to_owned(), "%", self.load_percent()),
            record("cpu".to_owned(), "cores", self.figure(|sample| sample.device_cores)),
            record("cpu-per-byte".to_owned(), "ns", self.figure(Sample::device_ns_per_byte)),
            record("lost".to_owned(), "%", self.figure(|sample| sample.lost_percent)),
            record("retransmits".to_owned(), "segments", self.figure(|sample| sample.retransmits)),
        ];
        for (core, _) in self.core_load_percent().iter().enumerate() {
            let of = self.figure(|sample| sample.core_load_percent.get(core).copied());
            all.push(record(format!("cpu-load-core-{core}"), "%", of));
        }
        all.into_iter().flatten().collect()
    }
}

/// All of it.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Where the figures come from.
    pub provenance: Provenance,
    /// Who was at the other end.
    pub other_end: &'static str,
    /// Queues with RSS.
    pub queues: u16,
    /// Length of a transfer in seconds.
    pub seconds: f64,
    /// Everything measured.
    pub rows: Vec<Row>,
    /// What became of data while offloads were switched.
    pub switching: Vec<Switched>,
    /// The interface in simulation.
    pub hardware: Vec<Cycles>,
    /// What the boards' own measurements say.
    pub boards: Vec<Board>,
    /// What is not there, and why.
    pub missing: Vec<String>,
}

impl Outcome {
    /// The row of a device, a workload and a setting.
    pub fn row(&self, device: Device, workload: Workload, setting: Setting) -> Option<&Row> {
        self.rows
            .iter()
            .find(|row| row.device == device && row.workload == workload && row.setting == setting)
    }

    /// Every figure in the common form.
    pub fn records(&self) -> Vec<Record> {
        let rows = self.rows.iter().flat_map(Row::records);
        let switched = self.switching.iter().flat_map(Switched::records);
        let hardware = self.hardware.iter().flat_map(Cycles::records);
        rows.chain(switched)
            .chain(hardware)
            .chain(self.boards.iter().flat_map(|board| board.records.clone()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offloads::plan::{Direction, Protocol};

    fn sample(device: f64, other: f64, rest: f64) -> Sample {
        Sample {
            throughput_bps: 8e9,
            lost_percent: None,
            retransmits: None,
            core_load_percent: vec![90.0, 30.0],
            device_cores: Some(device),
            other_end_cores: Some(other),
            rest_cores: Some(rest),
            stolen_cores: 0.0,
            is_bound: true,
        }
    }

    #[test]
    fn a_flaw_is_seen() {
        for (device, other, rest, flaw) in [
            (0.98, 0.5, 0.1, None),
            (0.98, 0.99, 0.1, None),
            (0.5, 0.99, 0.1, Some(Flaw::OtherEnd)),
            (0.98, 0.5, 0.6, Some(Flaw::Disturbed)),
        ] {
            assert_eq!(sample(device, other, rest).flaw(), flaw, "{device} {other} {rest}");
        }
        assert_eq!(Sample { is_bound: false, ..sample(0.5, 0.99, 0.1) }.flaw(), None);
        assert_eq!(Sample { stolen_cores: 0.2, ..sample(0.9, 0.5, 0.1) }.flaw(), Some(Flaw::Disturbed));
        assert_eq!(sample(0.5, 0.1, 0.0).load_percent(), 60.0);
        assert_eq!(sample(0.5, 0.1, 0.0).device_ns_per_byte(), Some(0.5));
    }

    #[test]
    fn a_row_is_refused_by_the_greater_part() {
        let workload = Workload { protocol: Protocol::Tcp, direction: Direction::Rx, streams: 1 };
        let row =
            |samples: Vec<Sample>, refuses| Row::new(Device::Tap, workload, Setting::Off, samples, refuses);
        let (good, bad) = (sample(0.98, 0.5, 0.1), sample(0.5, 0.99, 0.1));
        assert_eq!(row(vec![good.clone(), bad.clone()], true).refused, None);
        let refused = row(vec![bad.clone(), good.clone(), bad.clone()], true);
        assert_eq!((refused.refused, refused.throughput_mbps()), (Some(Flaw::OtherEnd), None));
        assert!(refused.records().is_empty());
        assert_eq!(row(vec![bad.clone()], false).refused, None);
        // Flawed ones do not count where there are others.
        let mixed = row(vec![Sample { throughput_bps: 1.0, ..bad }, good.clone(), good], true);
        assert_eq!(mixed.throughput_mbps().unwrap().least, 8_000.0);
    }
}
