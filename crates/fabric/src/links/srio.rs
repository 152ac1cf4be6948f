//! Serial RapidIO: directIO writes and reads by the load/store units, and messages by the packet DMA.
//!
//! # On the line
//! A packet (RapidIO part 6, 8b/10b, small transport with device ids of one byte) is 2 B of physical and type fields, the
//! two ids, and what its type adds: 6 B for NWRITE (type 5: size, transaction id, 34-bit address), 2 B for a response with
//! data (type 13) and for a message segment (type 11). A check sum of 2 B follows, and one more of 2 B inside packets above
//! 80 B. The port moves 8-byte words, so the packet is padded to those, and a 4 B control symbol delimits it. For 256 B of
//! payload all three types come to 276 B, which is the guide's "20 bytes of overhead" (section 7.1), and the reason why the
//! tables 16, 17 and 20 saturate at the same figure although their headers differ. Status symbols and clock compensation
//! take a small share of the line (`maintenance`); acknowledgements travel in the other direction.
//!
//! # Writes (tables 16, 18)
//! `time = max(issue, packets * packet)`, and once for a series the doorbell that ends it. `issue` is the programming of a
//! load/store unit by a core: the tables show 305 ns for 8 B on one lane as for 256 B on four, so nothing of it is on the
//! line, and it is the same for all memories because writes are posted.
//!
//! # Reads (tables 17, 19)
//! `time = round trip + memory + request + first response + copy of the first packet + (packets - 1) * packet`. The first
//! packet is stored and forwarded: besides its time on the line (the slope between the columns for 1, 2 and 4 lanes is
//! exactly one line time per byte) it is copied through the buffers of both ports (`copy`), the same for all widths.
//!
//! # Messages (tables 20, 21)
//! `time = max(descriptor, packets * packet)`: the packet DMA fetches and writes back descriptors in the memory where they
//! lie, so the time depends on that memory and on nothing else.
//!
//! # Which of these scale with the line rate
//! Paced by the line, from the standard: everything on the line; the core of the port, whose 64-bit words run at the
//! symbol rate of four lanes (156.25 MHz at 3.125 Gbaud), with its pipeline, elastic buffers and lane alignment. Paced by
//! the chip: the programming of load/store units over the configuration bus, descriptors, memories, the switch fabric. So
//! `issue` and `descriptor` do not scale.
//!
//! `packet_engine`: four lanes saturate at 243.2 ns for 256 B, where the line alone would take 221 ns. That is 38.0 cycles
//! of the port's core: 34 words of packet, one of delimiter, three of gap. The same figure stands in table 16, measured with
//! cores at 1 GHz, and in table 20, with cores at 1.2 GHz; so it is no limit of the cores' clock, and is taken to scale with
//! the line. `round_trip` crosses a port four times between two chips that work at their own clock: about half of it is
//! taken to scale. `copy` is two passes through port buffers at 0.8 ns/B and a rest of about a sixth on the fabric.
//!
//! None of these three shares is identifiable: tables of one line rate fix the sums only. So each has a range in the chip
//! file, and predictions at other rates give the figure for the argued share and an interval that spans the whole range.

use super::{ClockedTime, Encoding, LinkError, Rates, Structure, Under, packets, usable_rates};
use crate::predict::{Bottleneck, Prediction, Unit};
use crate::units::{BitsPerSecond, Bytes, Hertz, Nanoseconds, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Above this many bytes a packet carries a second check sum (RapidIO part 6, 2.4).
const EARLY_CRC: f64 = 80.0;
/// The most data of a message: 16 segments of 256 B (RapidIO part 2, 3.1).
const MAX_MESSAGE: Bytes = Bytes::new(4096.0);
/// The physical and type fields of every packet, in bytes.
const COMMON_HEADER: f64 = 2.0;
/// Each check sum, in bytes.
const CRC: f64 = 2.0;

/// Serial RapidIO of a chip.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Srio {
    /// The widths of a port, such as 1, 2 and 4.
    pub lanes: Vec<u8>,
    /// The baud rates of a lane that the port can be set to.
    pub line_rates: Vec<BitsPerSecond>,
    /// The code on a lane.
    pub encoding: Encoding,
    /// The most payload in one packet.
    pub max_payload: Bytes,
    /// The size of a device id: 1 B in small, 2 B in large transport systems.
    pub device_id: Bytes,
    /// The word of the port's core, to which packets are padded.
    pub word: Bytes,
    /// The control symbols that delimit one packet.
    pub delimiter: Bytes,
    /// The share of the line that status symbols and clock compensation take.
    pub maintenance: Ratio,
    /// The line rate at which the times below were measured.
    pub measured_line_rate: BitsPerSecond,
    /// The least time from packet to packet of full payload, however fast the lanes.
    pub packet_engine: ClockedTime,
    /// What a core needs to start a transfer on a load/store unit.
    pub issue: ClockedTime,
    /// The doorbell at the end of a series of writes, with its wait.
    pub doorbell: ClockedTime,
    /// Request and response through both chips, without line and memory times.
    pub round_trip: ClockedTime,
    /// Copying a full packet through the buffers of both ports.
    pub copy: ClockedTime,
    /// What reading a memory adds to a round trip, by memory; the nearest has 0 ns.
    pub memory: BTreeMap<String, ClockedTime>,
    /// What a message costs the packet DMA in descriptors, by the memory that holds them.
    pub descriptor: BTreeMap<String, ClockedTime>,
    /// How far predictions at the measured line rate may be off.
    pub spread: Ratio,
}

/// What moves the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// DirectIO write without response (type 5).
    Nwrite,
    /// DirectIO read (type 2, response type 13).
    Nread,
    /// Message passing (type 11).
    Message,
}

/// A question to the link.
#[derive(Debug, Clone, PartialEq)]
pub struct SrioTransfer {
    /// What moves the data.
    pub operation: Operation,
    /// Bytes of one transaction.
    pub payload: Bytes,
    /// Lanes of the port.
    pub lanes: u8,
    /// Baud rate of a lane.
    pub line_rate: BitsPerSecond,
    /// The memory of the data (reads) or of descriptors and data (messages); writes do not depend on it.
    pub memory: String,
    /// The clock of the cores; as in the measurements when `None`.
    pub core_clock: Option<Hertz>,
    /// How many transactions share one doorbell.
    pub series: u32,
}

/// Times of one transaction.
struct Parts {
    total: Nanoseconds,
    limits: Vec<(&'static str, Nanoseconds)>,
}

impl Srio {
    pub(super) fn check(&self, faults: &mut Under<'_>) {
        faults.require(
            !self.lanes.is_empty() && !self.lanes.contains(&0),
            "lanes",
            "widths of 1 or more lanes",
        );
        let rates = self.line_rates.iter().all(|rate| rate.value() > 0.0);
        faults.require(rates && !self.line_rates.is_empty(), "line_rates", "rates above 0");
        faults.positive(self.max_payload.value(), "max_payload");
        faults.positive(self.word.value(), "word");
        faults.positive(self.measured_line_rate.value(), "measured_line_rate");
        faults.require(self.maintenance.value() < 1.0, "maintenance", "less than 100 %");
        faults.require(self.spread.value() < 1.0, "spread", "less than 100 %");
        for (key, time) in self.times() {
            faults.clocked(time, &key);
        }
    }

    /// Every measured time with its key.
    pub(super) fn times(&self) -> Vec<(String, &ClockedTime)> {
        let mut all = vec![
            ("packet_engine".to_owned(), &self.packet_engine),
            ("issue".to_owned(), &self.issue),
            ("doorbell".to_owned(), &self.doorbell),
            ("round_trip".to_owned(), &self.round_trip),
            ("copy".to_owned(), &self.copy),
        ];
        all.extend(self.memory.iter().map(|(name, time)| (format!("memory.{name}"), time)));
        all.extend(self.descriptor.iter().map(|(name, time)| (format!("descriptor.{name}"), time)));
        all
    }

    /// Bytes on the line for one packet with `payload` bytes of data, its delimiter included.
    pub fn line_bytes(&self, operation: Operation, payload: Bytes) -> Bytes {
        let of_type = match operation {
            Operation::Nwrite => 6.0,
            Operation::Nread | Operation::Message => 2.0,
        };
        let body = COMMON_HEADER + 2.0 * self.device_id.value() + of_type + payload.value();
        let checks = if body + CRC > EARLY_CRC { 2.0 * CRC } else { CRC };
        Bytes::new(self.padded(body + checks)) + self.delimiter
    }

    /// Bytes on the line for a read request: type 2 has the header of a write and no data.
    pub fn request_bytes(&self) -> Bytes {
        self.line_bytes(Operation::Nwrite, Bytes::ZERO)
    }

    /// What `lanes` carry in data.
    pub fn data_rate(&self, lanes: u8, line_rate: BitsPerSecond) -> BitsPerSecond {
        self.encoding.data_rate(line_rate) * f64::from(lanes)
    }

    /// Predicts the payload rate in Mb/s.
    ///
    /// # Errors
    /// A width or memory that the port does not have, no payload, a rate of 0.
    pub fn predict(&self, ask: &SrioTransfer) -> Result<Prediction, LinkError> {
        if !self.lanes.contains(&ask.lanes) {
            return Err(LinkError::Lanes { asked: ask.lanes, has: self.lanes.clone() });
        }
        if !(ask.payload.value() >= 1.0 && ask.payload.value().is_finite()) {
            return Err(LinkError::Payload);
        }
        usable_rates(ask.line_rate, ask.core_clock)?;
        if !self.line_rates.iter().any(|rate| (rate.value() / ask.line_rate.value() - 1.0).abs() < 1e-6) {
            return Err(LinkError::LineRate { asked: ask.line_rate, has: self.line_rates.clone() });
        }
        if ask.operation == Operation::Message && ask.payload > MAX_MESSAGE {
            return Err(LinkError::TooLong {
                what: "type 11 message",
                asked: ask.payload,
                most: MAX_MESSAGE,
            });
        }
        if ask.operation == Operation::Nwrite && !self.memory.is_empty() {
            // A write waits for no memory, but there has to be one.
            lookup(&self.memory, &ask.memory)?;
        }
        let parts = self.parts(ask, Structure::Argued)?;
        let rate = |time: Nanoseconds| (ask.payload / time).bits().megabits();
        let best = rate(self.on_line(ask));
        let spread = self.spread.value();
        let mut prediction =
            Prediction::rate(best, rate(parts.total), spread, Unit::MegabitsPerSecond, Vec::new());
        for structure in [Structure::LeastOnLine, Structure::MostOnLine] {
            let other = rate(self.parts(ask, structure)?.total);
            prediction.low = prediction.low.min(other * (1.0 - spread));
            prediction.high = prediction.high.max(other * (1.0 + spread)).min(best);
        }
        prediction.bottlenecks = parts
            .limits
            .into_iter()
            .filter(|(_, time)| time.value() > 0.0)
            .map(|(name, time)| Bottleneck {
                name: name.into(),
                rate: rate(time),
                share: time.over(parts.total).value().clamp(0.0, 1.0),
                explanation: format!("{} / {time:.1} of {:.1} in all", ask.payload, parts.total),
            })
            .collect();
        Ok(prediction.ranked())
    }

    /// The time of the whole payload in packets on an otherwise ideal line.
    fn on_line(&self, ask: &SrioTransfer) -> Nanoseconds {
        let (count, last) = packets(ask.payload.value(), self.max_payload.value());
        let full = self.line_bytes(ask.operation, self.max_payload);
        let bytes = full * (count - 1.0) + self.line_bytes(ask.operation, Bytes::new(last));
        bytes / self.data_rate(ask.lanes, ask.line_rate).bytes()
    }

    fn parts(&self, ask: &SrioTransfer, structure: Structure) -> Result<Parts, LinkError> {
        let rates =
            Rates { line: ask.line_rate, measured_line: self.measured_line_rate, core: ask.core_clock };
        let (count, last) = packets(ask.payload.value(), self.max_payload.value());
        let lane_time = self.on_line(ask) * (1.0 + self.maintenance.value());
        let filled = count - 1.0 + last / self.max_payload.value();
        let engine = self.packet_engine.at(rates, structure) * filled;
        let stream = lane_time.max(engine);
        let named = [("SRIO line", lane_time), ("packet engine of the port", engine)];
        let mut limits = named.to_vec();
        let total = match ask.operation {
            Operation::Nwrite => {
                let issue = self.issue.at(rates, structure);
                limits.push(("programming of the load/store unit", issue));
                let doorbell = self.doorbell.at(rates, structure) / f64::from(ask.series.max(1));
                issue.max(stream) + doorbell
            }
            Operation::Message => {
                let descriptor = lookup(&self.descriptor, &ask.memory)?.at(rates, structure);
                limits.push(("descriptors of the packet DMA", descriptor));
                descriptor.max(stream)
            }
            Operation::Nread => {
                let memory = lookup(&self.memory, &ask.memory)?.at(rates, structure);
                let trip = self.round_trip.at(rates, structure);
                let overhead = self.first_packet_time(ask, rates, structure);
                limits.push(("round trip of a read", trip));
                limits.push(("latency of the memory", memory));
                limits.push(("store and forward of the first packet", overhead));
                let first = last_of_one(count, last, self.max_payload.value());
                let one = SrioTransfer { payload: Bytes::new(first), ..ask.clone() };
                let first_stream = self.stream_of_first(&one, rates, structure);
                trip + memory + overhead + (stream - first_stream).max(Nanoseconds::ZERO)
            }
        };
        Ok(Parts { total, limits })
    }

    /// What the first packet of a read takes before the rest can stream behind it.
    fn first_packet_time(&self, ask: &SrioTransfer, rates: Rates, structure: Structure) -> Nanoseconds {
        let first = Bytes::new(ask.payload.value().min(self.max_payload.value()));
        // A word is gathered before it moves on, in the port that receives the request and in that for the response.
        let bytes = self.request_bytes() + self.word * 2.0 + self.line_bytes(Operation::Nread, first);
        let copy = self.copy.at(rates, structure) * first.over(self.max_payload).value();
        bytes / self.data_rate(ask.lanes, ask.line_rate).bytes() + copy
    }

    /// The streaming time of one packet, which [`Self::first_packet_time`] already holds.
    fn stream_of_first(&self, one: &SrioTransfer, rates: Rates, structure: Structure) -> Nanoseconds {
        let line = self.on_line(one) * (1.0 + self.maintenance.value());
        let engine = self.packet_engine.at(rates, structure) * one.payload.over(self.max_payload).value();
        line.max(engine)
    }

    fn padded(&self, bytes: f64) -> f64 {
        (bytes / self.word.value()).ceil() * self.word.value()
    }
}

/// What the first of `count` packets holds.
fn last_of_one(count: f64, last: f64, most: f64) -> f64 {
    if count > 1.0 { most } else { last }
}

/// The time of a named memory.
fn lookup<'a>(map: &'a BTreeMap<String, ClockedTime>, name: &str) -> Result<&'a ClockedTime, LinkError> {
    map.get(name).ok_or_else(|| LinkError::Unknown {
        kind: "memory",
        name: name.into(),
        known: map.keys().cloned().collect(),
    })
}
