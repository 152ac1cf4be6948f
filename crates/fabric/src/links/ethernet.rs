//! Ethernet: what frames of one size carry, and what descriptors of the packet DMA allow.
//!
//! # Formula
//! A frame occupies the line for itself and for preamble, start delimiter and gap: 8 B and 12 B (IEEE 802.3, 3.1.1 and
//! 4A.4.2), the "20 bytes" of the guide's section 9. `line = rate / ((frame + 20) * 8)` frames per second.
//!
//! The packet DMA works on one frame at a time: it fetches a descriptor, writes the data in bursts, and returns the
//! descriptor: `dma = per_packet + ceil(frame / burst) * per_burst`. Buffers lie in DDR3, where a burst of 8 beats on a bus
//! of 64 bits is 64 B (also the read response of DDR3 in the guide's table 22), so data costs by such bursts, not by bytes.
//! Both work in parallel, one frame behind the other, so the rate is that of the slower one. From about 400 B on the line
//! is slower, and the table reads 10000 Mb/s, preamble and gap included. Neither time is on the line: they scale with the
//! clock of the chip only.

use super::{ClockedTime, Encoding, LinkError, Rates, Structure, Under, usable_rates};
use crate::predict::{Bottleneck, Prediction, Unit};
use crate::units::{BitsPerSecond, Bytes, Hertz, Nanoseconds, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// More than this around what a frame carries is taken for a mistake: 8, 12, 14 and 4 B in IEEE 802.3.
const MAX_AROUND: Bytes = Bytes::new(1024.0);
/// The name of what the DMA of a port allows.
pub(super) const PACKET_DMA: &str = "descriptors and bursts of the packet DMA";

/// A port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ethernet {
    /// The rate at the MAC, which is what its name says; line codes do not count.
    pub rate: BitsPerSecond,
    /// The code of the line, for its baud rate; plain when left out.
    #[serde(default)]
    pub encoding: Option<Encoding>,
    /// Preamble and start delimiter.
    pub preamble: Bytes,
    /// The least gap between frames.
    pub gap: Bytes,
    /// Addresses and type.
    pub header: Bytes,
    /// The frame check sequence.
    pub check_sequence: Bytes,
    /// The most that one frame carries behind its header.
    pub mtu: Bytes,
    /// The DMA between port and memory; none where it never limits.
    #[serde(default)]
    pub packet_dma: Option<PacketDma>,
}

/// What a frame costs a DMA with descriptors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PacketDma {
    /// The descriptor of a frame, fetched and returned.
    pub per_packet: ClockedTime,
    /// How much data moves at once.
    pub burst: Bytes,
    /// What one such piece takes.
    pub per_burst: ClockedTime,
    /// How far predictions that it limits may be off.
    pub spread: Ratio,
}

/// What a rate counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// The frame with its preamble and gap, as in the guide's table.
    Line,
    /// The frame with header and check sequence.
    Frame,
    /// What the frame carries behind its header.
    Packet,
}

/// A question to a port.
#[derive(Debug, Clone, PartialEq)]
pub struct EthernetTransfer {
    /// The size of each frame, header and check sequence included.
    pub frame: Bytes,
    /// What the answer counts.
    pub counted: Counted,
    /// The clock of the chip; as in the measurements when `None`.
    pub core_clock: Option<Hertz>,
}

impl Ethernet {
    pub(super) fn check(&self, faults: &mut Under<'_>) {
        faults.positive(self.rate.value(), "rate");
        faults.positive(self.mtu.value(), "mtu");
        let around = [
            (self.preamble, "preamble"),
            (self.gap, "gap"),
            (self.header, "header"),
            (self.check_sequence, "check_sequence"),
        ];
        for (bytes, key) in around {
            faults.require(bytes <= MAX_AROUND, key, "1024 B at most");
        }
        if let Some(dma) = &self.packet_dma {
            faults.positive(dma.burst.value(), "packet_dma.burst");
            faults.clocked(&dma.per_packet, "packet_dma.per_packet");
            faults.clocked(&dma.per_burst, "packet_dma.per_burst");
            for (key, time) in [("per_packet", &dma.per_packet), ("per_burst", &dma.per_burst)] {
                let none = time.line_share.value() == 0.0 && time.line_share_max.is_none();
                faults.require(
                    none,
                    &format!("packet_dma.{key}.line_share"),
                    "none: the line of a port has one rate",
                );
            }
            faults.require(dma.spread.value() < 1.0, "packet_dma.spread", "less than 100 %");
        }
    }

    /// What a frame takes on the line besides itself.
    pub fn line_overhead(&self) -> Bytes {
        self.preamble + self.gap
    }

    /// The baud rate of the line, code included.
    pub fn baud(&self) -> BitsPerSecond {
        self.rate / self.encoding.unwrap_or(Encoding::PLAIN).efficiency().value()
    }

    /// The rate on the line where a code makes it more.
    fn on_the_line(&self) -> String {
        let coded = |code: Encoding| format!(", {:.4} Gbaud with {code}", self.baud().gigabits());
        self.encoding.map_or_else(String::new, coded)
    }

    /// The time of one frame on the line.
    pub fn frame_time(&self, frame: Bytes) -> Nanoseconds {
        (frame + self.line_overhead()) / self.rate.bytes()
    }

    /// The time of one frame in the packet DMA; nothing where there is none.
    pub fn dma_time(&self, frame: Bytes, core: Option<Hertz>) -> Nanoseconds {
        let Some(dma) = &self.packet_dma else { return Nanoseconds::ZERO };
        let rates = Rates { line: self.rate, measured_line: self.rate, core };
        let bursts = frame.over(dma.burst).value().ceil();
        dma.per_packet.at(rates, Structure::Argued) + dma.per_burst.at(rates, Structure::Argued) * bursts
    }

    /// Predicts the rate in Mb/s.
    ///
    /// # Errors
    /// A frame with no room for its header, a clock of 0.
    pub fn predict(&self, ask: &EthernetTransfer) -> Result<Prediction, LinkError> {
        let around = self.header + self.check_sequence;
        if !(ask.frame > around && ask.frame.value().is_finite()) {
            return Err(LinkError::Payload);
        }
        let most = self.mtu + around;
        if ask.frame > most {
            return Err(LinkError::TooLong { what: "frame", asked: ask.frame, most });
        }
        usable_rates(self.rate, ask.core_clock)?;
        let counted = match ask.counted {
            Counted::Line => ask.frame + self.line_overhead(),
            Counted::Frame => ask.frame,
            Counted::Packet => ask.frame - around,
        };
        let unit = Unit::MegabitsPerSecond;
        let line = self.frame_time(ask.frame);
        let dma = self.dma_time(ask.frame, ask.core_clock);
        let total = line.max(dma);
        let predicted = counted / total;
        let best = (counted / line).bits().megabits();
        let spread = self.packet_dma.as_ref().map_or(0.0, |dma| dma.spread.value());
        let mut limits = vec![Bottleneck::limit("Ethernet line", counted / line, predicted, unit).because(
            format!("({} + {}) / {:#}{}", ask.frame, self.line_overhead(), self.rate, self.on_the_line()),
        )];
        if dma > Nanoseconds::ZERO {
            limits.push(
                Bottleneck::limit(PACKET_DMA, counted / dma, predicted, unit)
                    .because(format!("{counted} / {dma:.1}")),
            );
        }
        let mut prediction = Prediction::rate(best, predicted.bits().megabits(), 0.0, unit, limits);
        let bound = |factor: f64| (counted / line.max(dma * factor)).bits().megabits();
        prediction.low = bound(1.0 + spread);
        prediction.high = bound(1.0 - spread);
        Ok(prediction)
    }
}
