//! HyperLink: remote reads and writes between two chips, by memory and EDMA controller.
//!
//! # Formula
//! A packet with `p` bytes of data carries a header (8 B, guide section 8.1.2) and a 4 B control word; with the code
//! equivalent to 8b/9b the most that four lanes of 6.25 Gbaud can carry is `25 Gb/s * 8/9 * p / (p + 12)`. For the sizes
//! of table 22 this is the whole of table 25 (16, 32 and 64 B: 12.70, 16.16, 18.71 Gb/s), and for 64 B the second column of
//! table 23. The guide's text counts 8 B only (17.77 for 32 B) and disagrees with its own tables there.
//!
//! Writes have the size of the EDMA burst that arrives: 128 B near the link, 64 B where a bridge between the switch fabrics
//! splits bursts. That is 20.32 Gb/s for the first column of table 23, which prints 21.05. No packet size up to 256 B gives
//! that figure with 12 B of overhead; `25 * 64/76`, without the code, does. It is not reproduced here.
//!
//! # Predictions
//! Flow control and flags travel on the same lanes, and take a share for each packet (`flow_control`, fitted): the time of
//! a packet is `(p + 12 + flow control) / line`. Reads have at most a window outstanding: `min(line, window / latency)`.
//! The window of a transfer controller is its FIFO, or what the bridge on its way lets through. The latency grows with the
//! memory that answers. Table 26 shows one latency-bound cell; which part of its latency the line paces cannot be told
//! from it, and the same holds for the windows of the other cells, so their intervals are wide.

use super::{ClockedTime, Encoding, LinkError, Rates, Structure, Under, usable_rates};
use crate::predict::{Bottleneck, Prediction, Unit};
use crate::units::{BitsPerSecond, Bytes, BytesPerSecond, Hertz, Nanoseconds, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// HyperLink of a chip.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hyperlink {
    /// The most lanes.
    pub lanes: u8,
    /// The baud rate of a lane.
    pub line_rate: BitsPerSecond,
    /// The code on a lane.
    pub encoding: Encoding,
    /// The most data in one packet.
    pub max_payload: Bytes,
    /// Address and command in front of each packet.
    pub header: Bytes,
    /// The control word of each packet.
    pub control: Bytes,
    /// Flow control and flags on the line per packet, on average.
    pub flow_control: Bytes,
    /// The line rate at which latencies were measured.
    pub measured_line_rate: BitsPerSecond,
    /// From a read command to its data at a remote memory of no latency.
    pub round_trip: ClockedTime,
    /// The memories at the other end.
    pub memory: BTreeMap<String, RemoteMemory>,
    /// The ways from EDMA controllers to the link, by name.
    pub path: BTreeMap<String, Path>,
    /// How far predictions that the line limits may be off.
    pub spread: Ratio,
    /// How far predictions that a latency limits may be off.
    pub latency_spread: Ratio,
}

/// A memory at the other end of the link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoteMemory {
    /// The pieces in which it returns reads (table 22).
    pub read_response: Bytes,
    /// What it adds to the round trip.
    pub latency: ClockedTime,
}

/// A way from an EDMA controller to the link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Path {
    /// The size of the bursts that arrive at the link.
    pub burst: Bytes,
    /// What may be outstanding in reads.
    pub read_window: Bytes,
    /// How many responses may be outstanding, where the window counts those instead of bytes.
    #[serde(default)]
    pub responses: Option<u32>,
    /// What the way adds to the round trip.
    #[serde(default)]
    pub latency: Option<ClockedTime>,
}

/// A question to the link.
#[derive(Debug, Clone, PartialEq)]
pub struct HyperlinkTransfer {
    /// Whether data comes from the other chip.
    pub read: bool,
    /// The memory at the other end.
    pub memory: String,
    /// The way from the EDMA controller.
    pub path: String,
    /// Lanes in use; all when `None`.
    pub lanes: Option<u8>,
    /// The baud rate; that of the chip file when `None`.
    pub line_rate: Option<BitsPerSecond>,
    /// The clock of the cores; as in the measurements when `None`.
    pub core_clock: Option<Hertz>,
}

impl Hyperlink {
    pub(super) fn check(&self, faults: &mut Under<'_>) {
        faults.require(self.lanes > 0, "lanes", "1 or more");
        faults.positive(self.line_rate.value(), "line_rate");
        faults.positive(self.measured_line_rate.value(), "measured_line_rate");
        faults.positive(self.max_payload.value(), "max_payload");
        faults.clocked(&self.round_trip, "round_trip");
        faults.positive(self.round_trip.time.value(), "round_trip.time");
        faults.require(self.spread.value() < 1.0, "spread", "less than 100 %");
        faults.require(self.latency_spread.value() < 1.0, "latency_spread", "less than 100 %");
        for (name, memory) in &self.memory {
            faults.positive(memory.read_response.value(), &format!("memory.{name}.read_response"));
            faults.clocked(&memory.latency, &format!("memory.{name}.latency"));
        }
        for (name, path) in &self.path {
            faults.positive(path.burst.value(), &format!("path.{name}.burst"));
            faults.positive(path.read_window.value(), &format!("path.{name}.read_window"));
            faults.require(path.responses != Some(0), &format!("path.{name}.responses"), "1 or more");
            if let Some(latency) = &path.latency {
                faults.clocked(latency, &format!("path.{name}.latency"));
            }
        }
    }

    /// The data in one packet of this transfer.
    ///
    /// # Errors
    /// A memory or path that the chip file does not have.
    pub fn packet_payload(&self, ask: &HyperlinkTransfer) -> Result<Bytes, LinkError> {
        let path = named(&self.path, "path", &ask.path)?;
        let memory = named(&self.memory, "memory", &ask.memory)?;
        let asked = path.burst.min(self.max_payload);
        Ok(if ask.read { memory.read_response.min(asked) } else { asked })
    }

    /// Predicts the payload rate in Gb/s; `theoretical` is the guide's "maximum achievable".
    ///
    /// # Errors
    /// A memory or path that the chip file does not have, too many lanes, a rate of 0.
    pub fn predict(&self, ask: &HyperlinkTransfer) -> Result<Prediction, LinkError> {
        let lanes = ask.lanes.unwrap_or(self.lanes);
        if lanes == 0 || lanes > self.lanes {
            return Err(LinkError::Lanes { asked: lanes, has: (1..=self.lanes).collect() });
        }
        let line = ask.line_rate.unwrap_or(self.line_rate);
        usable_rates(line, ask.core_clock)?;
        let payload = self.packet_payload(ask)?;
        let raw = self.encoding.data_rate(line) * f64::from(lanes);
        let framed = payload + self.header + self.control;
        let theoretical = raw * payload.over(framed);
        let achieved = raw * payload.over(framed + self.flow_control);
        let unit = Unit::GigabitsPerSecond;
        let window = if ask.read { Some(self.window_rate(ask, line, Structure::Argued)?) } else { None };
        let predicted = window.map_or(achieved, |limit| achieved.min(limit.bits()));
        let bound = predicted < achieved;
        let spread = if bound { self.latency_spread } else { self.spread }.value();
        let mut limits =
            vec![Bottleneck::line("HyperLink lanes", achieved, predicted, unit).because(format!(
                "{:#} x {payload} / ({payload} + {} + {} + {:.1})",
                raw, self.header, self.control, self.flow_control
            ))];
        if let Some(rate) = window {
            limits.push(self.window_limit(ask, rate, predicted)?);
        }
        let mut prediction =
            Prediction::rate(theoretical.gigabits(), predicted.gigabits(), spread, unit, limits);
        if ask.read {
            self.widen(&mut prediction, ask, line, achieved)?;
        }
        Ok(prediction)
    }

    /// A read may turn out to be latency-bound when the line seems to bind it, and the reverse.
    fn widen(
        &self,
        prediction: &mut Prediction,
        ask: &HyperlinkTransfer,
        line: BitsPerSecond,
        achieved: BitsPerSecond,
    ) -> Result<(), LinkError> {
        for structure in [Structure::LeastOnLine, Structure::MostOnLine] {
            let rate = self.window_rate(ask, line, structure)?.bits();
            let spread = self.latency_spread.value();
            prediction.low = prediction.low.min(achieved.min(rate * (1.0 - spread)).gigabits());
            let high = achieved.min(rate * (1.0 + spread)).gigabits();
            prediction.high = prediction.high.max(high).min(prediction.theoretical);
        }
        Ok(())
    }

    fn window_rate(
        &self,
        ask: &HyperlinkTransfer,
        line: BitsPerSecond,
        structure: Structure,
    ) -> Result<BytesPerSecond, LinkError> {
        let rates = Rates { line, measured_line: self.measured_line_rate, core: ask.core_clock };
        let memory = named(&self.memory, "memory", &ask.memory)?;
        let path = named(&self.path, "path", &ask.path)?;
        let way = path.latency.as_ref().map_or(Nanoseconds::ZERO, |way| way.at(rates, structure));
        let latency = self.round_trip.at(rates, structure) + memory.latency.at(rates, structure) + way;
        Ok(self.window(ask)? / latency)
    }

    /// What may be outstanding: bytes, or as many responses of the memory.
    fn window(&self, ask: &HyperlinkTransfer) -> Result<Bytes, LinkError> {
        let path = named(&self.path, "path", &ask.path)?;
        match path.responses {
            Some(count) => Ok(self.packet_payload(ask)? * f64::from(count)),
            None => Ok(path.read_window),
        }
    }

    fn window_limit(
        &self,
        ask: &HyperlinkTransfer,
        rate: BytesPerSecond,
        predicted: BitsPerSecond,
    ) -> Result<Bottleneck, LinkError> {
        let window = self.window(ask)?;
        let latency = window / rate;
        let name = format!("read window of the {} path", ask.path);
        Ok(Bottleneck::limit(name, rate, predicted.bytes(), Unit::GigabitsPerSecond)
            .because(format!("{window} / {latency:.1}")))
    }
}

/// An entry by name.
fn named<'a, T>(map: &'a BTreeMap<String, T>, kind: &'static str, name: &str) -> Result<&'a T, LinkError> {
    map.get(name).ok_or_else(|| LinkError::Unknown {
        kind,
        name: name.into(),
        known: map.keys().cloned().collect(),
    })
}
