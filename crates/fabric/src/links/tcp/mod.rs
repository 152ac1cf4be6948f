//! A TCP server on a chip: the least of line, window, cores, memory and offered load, and what losses cost.
//!
//! # Formulas
//! All are rates of segments; the payload `m` of one is what the application writes, at most MTU - 40 B (RFC 9293, 3.7.1).
//!
//! - Line: `1 / ((m + 40 + 18 + 20) B / rate)`, see [`super::ethernet`].
//! - Cores: a segment costs `per_segment + checksum * m` and its part of an acknowledgement in the network part, and
//!   `copies * copy * m + per_write` in the application's. The network part runs on as many cores as there are queues, the
//!   application's on its own cores, both together on all: the least of the three.
//! - Window: `n` segments fit; a round trip is `idle + serial_share * n * (core time + peer time)`. With a serial share of
//!   1 a burst goes through sender and peer one after the other, as on a system where one task fills the buffer, sleeps
//!   until it is acknowledged, and is woken by a coalesced interrupt; with 0 everything overlaps and the formula is the
//!   textbook's window over round-trip time. `window_unit` is what a segment takes of the buffer: a stack that keeps
//!   packets counts whole buffers, so that small writes fill it with little data.
//! - Memory: `passes * m` bytes at the rate of the memory.
//! - Losses: each costs a round trip when three duplicate acknowledgements can arrive, and a retransmission timeout when
//!   not; with `n` segments in flight the latter has the chance `min(1, 3 / n)` (Padhye, Firoiu, Towsley, Kurose 1998).
//!   The time of a segment grows by `loss * stall`.
//! - Packet DMA: what its descriptors and bursts take for each frame, where the port has one.
//! - Requests: the cycles of a request, its part of a connection, and the segments of the response, on the cores; and the frames
//!   of the response on the line and in the packet DMA.
//!
//! Each description of a server is one state of tuning; changing one number is one step of a tuning guide.

mod cost;
mod requests;
#[cfg(test)]
mod tests;

pub use cost::{CoreCycles, CyclesPerByte};
pub use requests::Requests;

use super::ethernet::{Ethernet, PACKET_DMA};
use super::{LinkError, Links, Under};
use crate::predict::{Bottleneck, Prediction, Unit};
use crate::units::{BitsPerSecond, Bytes, BytesPerSecond, ClockId, Hertz, Nanoseconds, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The headers of IPv4 and TCP without options (RFC 791, RFC 9293).
pub(super) const HEADERS: Bytes = Bytes::new(40.0);
/// Duplicate acknowledgements that start a fast retransmission (RFC 5681, 3.2).
const DUPLICATES: f64 = 3.0;

/// A TCP server in one state of tuning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TcpServer {
    /// What it is and where it was measured.
    pub title: String,
    /// The port it uses, of `links.ethernet`.
    pub port: String,
    /// The clock of its cores.
    pub clock: ClockId,
    /// What the cores ran at where that was measured at less than the clock of the chip; as the clock when left out.
    #[serde(default)]
    pub core_rate: Option<Hertz>,
    /// What the clock runs at; a chip that is loaded knows.
    #[serde(skip)]
    pub runs_at: Option<Hertz>,
    /// Cores in all.
    pub cores: u8,
    /// Cores that run the application.
    pub application_cores: u8,
    /// Queues with an interrupt of their own, which is how many cores the network part can use.
    pub queues: u8,
    /// The data in a segment: what the application writes at once, or the most that a segment takes.
    pub segment: Bytes,
    /// The lesser of the sender's buffer and the receiver's window; none for a server of requests.
    #[serde(default)]
    pub window: Bytes,
    /// What a segment takes of the window; its payload when left out.
    #[serde(default)]
    pub window_unit: Option<Bytes>,
    /// The round trip of a lone segment, with coalescing and wake-ups on both sides; none for a server of requests, which as
    /// many connections as it takes keep busy.
    #[serde(default)]
    pub round_trip: Nanoseconds,
    /// The part of the work on a window that nothing overlaps with; none when left out.
    #[serde(default)]
    pub serial_share: Ratio,
    /// What the peer needs for a segment; nothing when left out.
    #[serde(default)]
    pub peer_per_segment: Nanoseconds,
    /// Driver and stack for one segment.
    pub per_segment: CoreCycles,
    /// The application's call for one segment.
    pub per_write: CoreCycles,
    /// Receiving or sending one acknowledgement, interrupt included.
    pub per_acknowledgement: CoreCycles,
    /// How many segments one acknowledgement covers.
    pub segments_per_acknowledgement: f64,
    /// How often a core copies the data.
    pub copies: u8,
    /// What a copy costs.
    pub copy: CyclesPerByte,
    /// What the checksum costs in software.
    pub checksum: CyclesPerByte,
    /// Whether hardware does the checksum instead.
    pub checksum_offload: bool,
    /// The memory that buffers lie in, where it can limit.
    #[serde(default)]
    pub memory: Option<MemoryPasses>,
    /// What peers send or ask for at most, where the test sets a limit.
    #[serde(default)]
    pub offered: Option<BitsPerSecond>,
    /// Losses, where there are any.
    #[serde(default)]
    pub loss: Option<Loss>,
    /// Requests, where the server answers some.
    #[serde(default)]
    pub requests: Option<Requests>,
    /// How far predictions may be off.
    pub spread: Ratio,
}

/// Data through a memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryPasses {
    /// What the memory sustains.
    pub rate: BytesPerSecond,
    /// How often each byte goes over its bus: once for the DMA, twice for each copy.
    pub passes: f64,
}

/// Losses of segments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Loss {
    /// The share of segments that have to be sent again.
    pub share: Ratio,
    /// The least retransmission timeout of the stack.
    pub timeout: Nanoseconds,
}

/// The times of one segment on each resource.
struct Times {
    payload: Bytes,
    line: Nanoseconds,
    /// In the packet DMA; nothing where there is none.
    dma: Nanoseconds,
    network: Nanoseconds,
    application: Nanoseconds,
}

impl TcpServer {
    pub(super) fn check(&self, faults: &mut Under<'_>) {
        faults.require(self.core_rate.is_none_or(|rate| rate.value() > 0.0), "core_rate", "more than 0");
        for (key, count) in
            [("cores", self.cores), ("application_cores", self.application_cores), ("queues", self.queues)]
        {
            faults.require(count > 0, key, "1 or more");
        }
        let most = self.cores;
        faults.require(self.application_cores <= most, "application_cores", "at most as many as cores");
        faults.require(self.segment.value() >= 1.0, "segment", "1 B or more");
        faults.require(self.window_unit.is_none_or(|unit| unit.value() >= 1.0), "window_unit", "1 B or more");
        faults.require(self.queues <= most, "queues", "at most as many as cores: nobody works on more");
        if self.requests.is_some() {
            for (key, value) in [
                ("window", self.window.value()),
                ("round_trip", self.round_trip.value()),
                ("peer_per_segment", self.peer_per_segment.value()),
                ("serial_share", self.serial_share.value()),
            ] {
                faults.require(value == 0.0, key, "none beside requests, which wait for no window");
            }
            for (key, none) in [
                ("window_unit", self.window_unit.is_none()),
                ("memory", self.memory.is_none()),
                ("offered", self.offered.is_none()),
                ("loss", self.loss.is_none()),
            ] {
                faults.require(
                    none,
                    key,
                    "none beside requests, which only cores, line and packet DMA limit",
                );
            }
        } else {
            faults.require(self.window >= self.unit(), "window", "room for one segment");
            faults.positive(self.round_trip.value(), "round_trip");
        }
        faults.require(self.serial_share.value() <= 1.0, "serial_share", "at most 100 %");
        let segments = self.segments_per_acknowledgement;
        faults.require((1.0..=1e6).contains(&segments), "segments_per_acknowledgement", "1 to 1000000");
        if let Some(memory) = &self.memory {
            faults.positive(memory.rate.value(), "memory.rate");
            faults.require((0.0..=1e3).contains(&memory.passes), "memory.passes", "0 to 1000");
        }
        faults.require(self.offered.is_none_or(|rate| rate.value() > 0.0), "offered", "more than 0");
        if let Some(loss) = &self.loss {
            faults.require(loss.share.value() <= 1.0, "loss.share", "at most 100 %");
        }
        if let Some(requests) = &self.requests {
            requests.check(faults);
        }
        faults.require(self.spread.value() < 1.0, "spread", "less than 100 %");
    }

    /// What its cores run at.
    pub fn rate_of_cores(&self) -> Hertz {
        self.core_rate.or(self.runs_at).unwrap_or(Hertz::new(1e9))
    }

    /// What a segment takes of the window.
    fn unit(&self) -> Bytes {
        self.window_unit.unwrap_or(self.segment)
    }

    /// Segments in flight at most; at least one.
    pub fn segments_in_flight(&self) -> f64 {
        self.window.over(self.unit()).value().max(1.0)
    }

    /// The share of one segment's time that cores spend on checksums in software; 0 with offload.
    pub fn checksum_share(&self) -> Ratio {
        let work = self.network_cycles(self.segment) + self.application_cycles(self.segment);
        let checksum = if self.checksum_offload { 0.0 } else { self.checksum.count() * self.segment.value() };
        Ratio::new(if work > 0.0 { checksum / work } else { 0.0 })
    }

    /// The part of all cores that a rate of payload keeps busy; above 1 where they cannot do it.
    pub fn load(&self, rate: BitsPerSecond) -> Ratio {
        let work = self.network_cycles(self.segment) + self.application_cycles(self.segment);
        let segments = rate.bytes().value() / self.segment.value();
        Ratio::new(segments * work / (self.rate_of_cores().value() * f64::from(self.cores)))
    }

    fn network_cycles(&self, payload: Bytes) -> f64 {
        let checksum = if self.checksum_offload { 0.0 } else { self.checksum.count() };
        let acknowledgement = self.per_acknowledgement.count() / self.segments_per_acknowledgement;
        self.per_segment.count() + acknowledgement + checksum * payload.value()
    }

    fn application_cycles(&self, payload: Bytes) -> f64 {
        self.per_write.count() + f64::from(self.copies) * self.copy.count() * payload.value()
    }

    fn times(&self, port: &Ethernet) -> Times {
        let payload = self.segment.min(port.mtu - HEADERS).max(Bytes::new(1.0));
        let frame = frame(payload, port);
        let core = |cycles: f64| CoreCycles::new(cycles).at(self.rate_of_cores());
        Times {
            payload,
            line: port.frame_time(frame),
            dma: port.dma_time(frame, None),
            network: core(self.network_cycles(payload)),
            application: core(self.application_cycles(payload)),
        }
    }

    /// The time from segment to segment that the cores need.
    fn core_time(&self, times: &Times) -> Nanoseconds {
        let network = times.network / f64::from(self.queues.min(self.cores).max(1));
        let application = times.application / f64::from(self.application_cores.max(1));
        let both = (times.network + times.application) / f64::from(self.cores.max(1));
        network.max(application).max(both)
    }

    /// The time of a round trip with the whole window in flight.
    fn loaded_round_trip(&self, times: &Times) -> Nanoseconds {
        let burst = (self.core_time(times) + self.peer_per_segment) * self.segments_in_flight();
        self.round_trip + burst * self.serial_share.value()
    }

    fn port_of<'a>(&self, links: &'a Links) -> Result<&'a Ethernet, LinkError> {
        links.ethernet.get(&self.port).ok_or_else(|| LinkError::Unknown {
            kind: "port",
            name: self.port.clone(),
            known: links.ethernet.keys().cloned().collect(),
        })
    }

    /// Predicts the rate of payload in MB/s.
    ///
    /// # Errors
    /// A port that the chip does not have.
    pub fn predict(&self, links: &Links) -> Result<Prediction, LinkError> {
        let port = self.port_of(links)?;
        let times = self.times(port);
        let rate = |time: Nanoseconds| times.payload / time;
        let mut limits: Vec<(&str, BytesPerSecond, String)> = vec![
            ("Ethernet line", rate(times.line), format!("{} / {:.2}", times.payload, times.line)),
            self.core_limit(&times),
            self.window_limit(&times),
        ];
        if times.dma > Nanoseconds::ZERO {
            limits.push((PACKET_DMA, rate(times.dma), format!("{} / {:.2}", times.payload, times.dma)));
        }
        if let Some(memory) = &self.memory {
            let text = format!("{:#} / {} passes", memory.rate, memory.passes);
            let share = memory.rate / memory.passes.max(f64::MIN_POSITIVE);
            limits.push(("memory", share.min(BytesPerSecond::new(1e15)), text));
        }
        if let Some(offered) = self.offered {
            limits.push(("offered load", offered.bytes(), format!("{offered:#}")));
        }
        let lossless = limits.iter().map(|limit| limit.1).fold(limits[0].1, BytesPerSecond::min);
        let predicted = match &self.loss {
            Some(loss) => {
                let stall = self.stall(loss, &times);
                limits.push((
                    "retransmission timeouts",
                    rate(stall),
                    format!("{} / {stall:.0} of stalls per segment", times.payload),
                ));
                rate(times.payload / lossless + stall)
            }
            None => lossless,
        };
        let unit = Unit::MegabytesPerSecond;
        let limits = limits
            .into_iter()
            .map(|(name, limit, why)| Bottleneck::limit(name, limit, predicted, unit).because(why))
            .collect();
        let theoretical = rate(times.line);
        let spread = self.spread.value();
        Ok(Prediction::rate(theoretical.megabytes(), predicted.megabytes(), spread, unit, limits))
    }

    fn core_limit(&self, times: &Times) -> (&'static str, BytesPerSecond, String) {
        let time = self.core_time(times);
        let text = format!(
            "{:.2} of network and {:.2} of application work per segment; cores: {}, queues: {}",
            times.network, times.application, self.cores, self.queues
        );
        ("cores", times.payload / time.max(Nanoseconds::new(1e-3)), text)
    }

    fn window_limit(&self, times: &Times) -> (&'static str, BytesPerSecond, String) {
        let trip = self.loaded_round_trip(times);
        let flight = times.payload * self.segments_in_flight();
        ("window over round-trip time", flight / trip, format!("{flight:.0} / {trip:.0}"))
    }

    /// What losses add to a segment on average.
    fn stall(&self, loss: &Loss, times: &Times) -> Nanoseconds {
        let timeout = (DUPLICATES / self.segments_in_flight()).min(1.0);
        let stall = loss.timeout * timeout + self.loaded_round_trip(times) * (1.0 - timeout);
        stall * loss.share.value()
    }

    /// Predicts answered requests per second.
    ///
    /// # Errors
    /// A server that answers none, or a port that the chip does not have.
    pub fn predict_requests(&self, links: &Links) -> Result<Prediction, LinkError> {
        let requests = self.requests.as_ref().ok_or_else(|| LinkError::Unknown {
            kind: "part",
            name: "requests".into(),
            known: Vec::new(),
        })?;
        let port = self.port_of(links)?;
        let most = self.segment.min(port.mtu - HEADERS).max(Bytes::new(1.0));
        let network = requests.segments(most, |payload| self.network_cycles(payload));
        let application =
            requests.alone() + requests.segments(most, |payload| self.application_cycles(payload));
        let frames = |time: &dyn Fn(Bytes) -> Nanoseconds| {
            Nanoseconds::new(requests.segments(most, |payload| time(frame(payload, port)).value()))
        };
        let line = frames(&|frame| port.frame_time(frame));
        let dma = frames(&|frame| port.dma_time(frame, None));
        Ok(requests.prediction((network, application), (line, dma), self))
    }
}

/// The frame around a payload.
fn frame(payload: Bytes, port: &Ethernet) -> Bytes {
    payload + HEADERS + port.header + port.check_sequence
}
