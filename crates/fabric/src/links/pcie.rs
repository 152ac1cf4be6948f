//! PCI Express: reads and writes by EDMA, in one direction or in both.
//!
//! # On the line
//! A transaction layer packet costs 20 B besides its data (guide section 6.3: 1 B + 1 B framing, 2 B sequence number, 12 B
//! header with 32-bit addresses, 4 B LCRC; PCI Express base 2.0, chapters 2 to 4), and every packet is acknowledged by a
//! DLLP of 8 B in the other direction. Lanes code 8b/10b. The guide's theoretical figure is `p / (p + 20) * 8/10 * 2 * 5 Gb/s`:
//! 6.10 Gb/s for 64 B and 6.92 Gb/s for 128 B.
//!
//! # Reads
//! The EDMA issues requests of its burst size (64 or 128 B); a bridge between switch fabrics splits them to 64 B; the other
//! chip answers in completions of at most its payload setting. In the direction of the data lie completions and the
//! acknowledgement of the request; with reads both ways also the requests and acknowledgements of the other chip.
//! `rate = request / max(forward bytes, backward bytes) * line`. This gives the guide's observations without any fitted
//! parameter: a 64 B payload or a 64 B burst costs the same, bridged controllers lose on the second port, and traffic both
//! ways is slower.
//!
//! # Writes
//! Posted writes leave in pieces of `write_split` whatever payload is set (section 6.3.2: "due to an internal feature"),
//! so all controllers are alike, and 128 B writes are slower than 128 B reads. A DLLP of 8 B goes with each packet of data
//! (section 6.3), one way as both ways, so a port whose bursts arrive in the pieces that it sends is as fast both ways.
//! Section 6.3.2 names who is slower: the first port with EDMA0, 1, 2 and 4, the second with EDMA0 and 4, each exactly where
//! bursts of 128 B arrive and the port has to split them while it takes the other chip's (`split_stall`). By how much the
//! text does not say, so chips list it as open.

use super::{Encoding, LinkError, Under};
use crate::predict::{Bottleneck, Prediction, Unit};
use crate::units::{BitsPerSecond, Bytes, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// PCI Express of a chip.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pcie {
    /// The most lanes.
    pub lanes: u8,
    /// The rate of a lane, code included.
    pub line_rate: BitsPerSecond,
    /// The code on a lane.
    pub encoding: Encoding,
    /// What a transaction layer packet costs besides its data.
    pub packet_overhead: Bytes,
    /// A data link layer packet that acknowledges.
    pub acknowledgement: Bytes,
    /// How many packets one acknowledgement covers.
    pub packets_per_acknowledgement: u16,
    /// The most data in a packet that this chip sends.
    pub max_payload_out: Bytes,
    /// The most data in a packet that it takes.
    pub max_payload_in: Bytes,
    /// The most that one read asks for.
    pub max_read_request: Bytes,
    /// The pieces in which writes leave; as the payload when left out.
    #[serde(default)]
    pub write_split: Option<Bytes>,
    /// The pieces into which a bridge between switch fabrics splits bursts; unsplit when left out.
    #[serde(default)]
    pub bridge_split: Option<Bytes>,
    /// How much longer a packet takes where the port splits bursts and takes writes of the other chip too.
    #[serde(default)]
    pub split_stall: Option<Ratio>,
    /// How far measured rates may stay below the arithmetic of the line.
    pub spread: Ratio,
}

/// A question to the link.
#[derive(Debug, Clone, PartialEq)]
pub struct PcieTransfer {
    /// Whether data comes from the other chip.
    pub read: bool,
    /// Whether the other chip does the same at the same time.
    pub bidirectional: bool,
    /// The payload setting of the chip that sends the data.
    pub payload: Bytes,
    /// The burst size of the EDMA controller.
    pub burst: Bytes,
    /// Whether a bridge between switch fabrics lies between the controller and the port.
    pub bridged: bool,
    /// Lanes in use; all when `None`.
    pub lanes: Option<u8>,
}

/// Bytes on the line in both directions for one transaction.
struct OnLine {
    data: Bytes,
    forward: Bytes,
    backward: Bytes,
}

impl Pcie {
    pub(super) fn check(&self, faults: &mut Under<'_>) {
        faults.require(self.lanes > 0, "lanes", "1 or more");
        faults.positive(self.line_rate.value(), "line_rate");
        faults.require(self.packets_per_acknowledgement > 0, "packets_per_acknowledgement", "1 or more");
        for (key, value) in [
            ("max_payload_out", self.max_payload_out),
            ("max_payload_in", self.max_payload_in),
            ("max_read_request", self.max_read_request),
        ] {
            faults.require(value.value() >= 1.0, key, "1 B or more");
        }
        let split = |value: Option<Bytes>| value.is_none_or(|bytes| bytes.value() >= 1.0);
        faults.require(split(self.write_split), "write_split", "1 B or more");
        faults.require(split(self.bridge_split), "bridge_split", "1 B or more");
        let stall = self.split_stall.is_none_or(|stall| stall.value() <= 10.0);
        faults.require(stall, "split_stall", "at most 1000 %");
        faults.require(self.spread.value() < 1.0, "spread", "less than 100 %");
    }

    /// What `lanes` carry in data and framing, the line code taken off.
    pub fn data_rate(&self, lanes: u8) -> BitsPerSecond {
        self.encoding.data_rate(self.line_rate) * f64::from(lanes)
    }

    /// The guide's theoretical rate for packets of this payload.
    pub fn theoretical(&self, payload: Bytes, lanes: u8) -> BitsPerSecond {
        self.data_rate(lanes) * payload.over(payload + self.packet_overhead)
    }

    /// Predicts the payload rate of one direction in Gb/s.
    ///
    /// # Errors
    /// Too many lanes, or no payload.
    pub fn predict(&self, ask: &PcieTransfer) -> Result<Prediction, LinkError> {
        let lanes = ask.lanes.unwrap_or(self.lanes);
        if lanes == 0 || lanes > self.lanes {
            return Err(LinkError::Lanes { asked: lanes, has: (1..=self.lanes).collect() });
        }
        let usable = |bytes: Bytes| bytes.value() >= 1.0 && bytes.value().is_finite();
        if !usable(ask.payload) || !usable(ask.burst) {
            return Err(LinkError::Payload);
        }
        let payload = ask.payload.min(self.max_payload_out).min(self.max_payload_in);
        let line = if ask.read { self.read(ask, payload) } else { self.write(ask, payload) };
        let raw = self.data_rate(lanes);
        let forward = raw * line.data.over(line.forward);
        let backward = raw * line.data.over(line.backward);
        let predicted = forward.min(backward);
        let unit = Unit::GigabitsPerSecond;
        let limits = [
            ("PCIe lanes in the direction of the data", forward, line.forward),
            ("PCIe lanes against the data", backward, line.backward),
        ];
        let limits = limits
            .into_iter()
            .map(|(name, rate, bytes)| {
                Bottleneck::line(name, rate, predicted, unit)
                    .because(format!("{raw:#} x {} / {bytes} on the line", line.data))
            })
            .collect();
        let theoretical = self.theoretical(payload, lanes).gigabits();
        let mut prediction = Prediction::rate(theoretical, predicted.gigabits(), 0.0, unit, limits);
        prediction.low = prediction.predicted * (1.0 - self.spread.value());
        prediction.high = prediction.theoretical;
        Ok(prediction)
    }

    /// The bursts that reach the port.
    fn burst(&self, ask: &PcieTransfer) -> Bytes {
        match self.bridge_split {
            Some(split) if ask.bridged => ask.burst.min(split),
            _ => ask.burst,
        }
    }

    fn read(&self, ask: &PcieTransfer, payload: Bytes) -> OnLine {
        let data = self.burst(ask).min(self.max_read_request);
        let completions = data.over(payload).value().ceil();
        let answer = data + self.packet_overhead * completions;
        let ask_other = self.packet_overhead + self.acknowledge(completions);
        let forward = answer + self.acknowledge(1.0);
        if ask.bidirectional {
            let both = forward + ask_other;
            OnLine { data, forward: both, backward: both }
        } else {
            OnLine { data, forward, backward: ask_other }
        }
    }

    fn write(&self, ask: &PcieTransfer, payload: Bytes) -> OnLine {
        let split = self.write_split.unwrap_or(payload);
        let data = self.burst(ask).min(payload).min(split);
        let acknowledged = self.acknowledge(1.0);
        let forward = data + self.packet_overhead + acknowledged;
        if ask.bidirectional {
            let splits = self.burst(ask) > data;
            let stall = self.split_stall.filter(|_| splits).map_or(0.0, Ratio::value);
            OnLine { data, forward: forward * (1.0 + stall), backward: forward * (1.0 + stall) }
        } else {
            OnLine { data, forward, backward: acknowledged }
        }
    }

    /// Acknowledgements for `packets`, on average.
    fn acknowledge(&self, packets: f64) -> Bytes {
        self.acknowledgement * (packets / f64::from(self.packets_per_acknowledgement))
    }
}
