//! The tables 16 to 26 and `10gbe` of the guide as questions to the links, and the parameters that measurements decide.
//!
//! Cells are asked at the conditions of their measurement: the core clock is that of the time's `measured_at`. Table 19 is
//! captioned 3.125 Gbps; the text above it and its place say 5 Gbps, and so it is asked.

use super::ethernet::{Counted, EthernetTransfer};
use super::hyperlink::HyperlinkTransfer;
use super::srio::{Operation, SrioTransfer};
use super::tcp::CoreCycles;
use super::{ClockedTime, Links};
use crate::predict::{Calibrate, FreeParameter, Prediction, TableModel, Unit};
use crate::units::{BitsPerSecond, Bytes, Hertz, Nanoseconds, Ratio};

/// The port of the packet-size table.
const TEN_GIGABIT: &str = "10gbe";
/// Packets that the test of the packet-size table sends.
const PACKETS: f64 = 512.0;

/// Lane rates of the SRIO tables.
const LINE_3: BitsPerSecond = BitsPerSecond::new(3.125e9);
const LINE_5: BitsPerSecond = BitsPerSecond::new(5e9);

impl TableModel for Links {
    fn cell(&self, table: &str, row: &str, column: usize) -> Option<Prediction> {
        match table {
            "16" => self.srio_cell(Operation::Nwrite, LINE_3, row, column),
            "17" => self.srio_cell(Operation::Nread, LINE_3, row, column),
            "18" => self.srio_cell(Operation::Nwrite, LINE_5, row, column),
            "19" => self.srio_cell(Operation::Nread, LINE_5, row, column),
            "20" => self.srio_cell(Operation::Message, LINE_3, row, column),
            "21" => self.srio_cell(Operation::Message, LINE_5, row, column),
            "22" => self.read_response(row, column),
            "23" => self.hyperlink_cell(false, true, row, column),
            "24" => self.hyperlink_cell(false, false, row, column),
            "25" => self.hyperlink_cell(true, true, row, column),
            "26" => self.hyperlink_cell(true, false, row, column),
            "10gbe" => self.packet_size_cell(row, column),
            "pcie" => self.pcie_cell(row, column),
            _ => None,
        }
    }
}

impl Links {
    fn srio_cell(
        &self,
        operation: Operation,
        line: BitsPerSecond,
        row: &str,
        column: usize,
    ) -> Option<Prediction> {
        let lanes = match column {
            1 | 2 => 4,
            3 | 4 => 2,
            5 | 6 => 1,
            _ => return None,
        };
        let ask = SrioTransfer {
            operation,
            payload: bytes(row)?,
            lanes,
            line_rate: line,
            memory: if column % 2 == 1 { "L2" } else { "DDR3" }.into(),
            // Messages were measured with cores at 1.2 GHz, all else at 1 GHz (sections 7.1 and 7.2.1).
            core_clock: Some(Hertz::new(if operation == Operation::Message { 1.2e9 } else { 1e9 })),
            series: 16,
        };
        self.srio.as_ref()?.predict(&ask).ok()
    }

    fn read_response(&self, row: &str, column: usize) -> Option<Prediction> {
        let memory = self.hyperlink.as_ref()?.memory.get(memory_name(row)?)?;
        (column == 1).then(|| Prediction::exact(memory.read_response.value(), Unit::Bytes))
    }

    fn hyperlink_cell(&self, read: bool, achievable: bool, row: &str, column: usize) -> Option<Prediction> {
        let ask = HyperlinkTransfer {
            read,
            memory: memory_name(row)?.into(),
            path: match column {
                1 => "near",
                2 => "far",
                _ => return None,
            }
            .into(),
            lanes: None,
            line_rate: None,
            core_clock: None,
        };
        let prediction = self.hyperlink.as_ref()?.predict(&ask).ok()?;
        let best = prediction.theoretical;
        Some(if achievable { Prediction::exact(best, prediction.unit) } else { prediction })
    }

    fn packet_size_cell(&self, row: &str, column: usize) -> Option<Prediction> {
        let port = self.ethernet.get(TEN_GIGABIT)?;
        let frame = bytes(row)?;
        let overhead = port.line_overhead();
        match column {
            1 => Some(Prediction::exact(overhead.value(), Unit::Bytes)),
            // The column counts bits; there is no unit of that name, and the number needs none.
            2 => Some(Prediction::exact((frame + overhead).value() * 8.0 * PACKETS, Unit::Bytes)),
            3 => port.predict(&EthernetTransfer { frame, counted: Counted::Line, core_clock: None }).ok(),
            _ => None,
        }
    }

    fn pcie_cell(&self, row: &str, column: usize) -> Option<Prediction> {
        let pcie = self.pcie.as_ref()?;
        let rate = pcie.theoretical(bytes(row)?, pcie.lanes);
        (column == 1).then(|| Prediction::exact(rate.gigabits(), Unit::GigabitsPerSecond))
    }
}

/// A row that names a number of bytes.
fn bytes(row: &str) -> Option<Bytes> {
    let value: u32 = row.trim().parse().ok()?;
    (value > 0).then(|| Bytes::new(f64::from(value)))
}

/// The memory that a row of a HyperLink table names.
fn memory_name(row: &str) -> Option<&'static str> {
    ["L2", "MSMC", "DDR3"].into_iter().find(|name| row.contains(name))
}

/// Where a free parameter lives.
enum Target<'a> {
    Time(&'a mut Nanoseconds),
    Share(&'a mut Ratio),
    Size(&'a mut Bytes),
    Cost(&'a mut CoreCycles),
}

/// A free parameter with its place.
struct Slot<'a> {
    name: String,
    unit: String,
    min: f64,
    max: f64,
    target: Target<'a>,
}

impl Slot<'_> {
    fn value(&self) -> f64 {
        match &self.target {
            Target::Time(time) => time.value(),
            Target::Share(share) => share.value(),
            Target::Size(size) => size.value(),
            Target::Cost(cost) => cost.count(),
        }
    }

    fn set(&mut self, value: f64) {
        let value = value.clamp(self.min, self.max);
        match &mut self.target {
            Target::Time(time) => **time = Nanoseconds::new(value),
            Target::Share(share) => **share = Ratio::new(value),
            Target::Size(size) => **size = Bytes::new(value),
            Target::Cost(cost) => **cost = CoreCycles::new(value),
        }
    }
}

impl Calibrate for Links {
    fn free(&self) -> Vec<FreeParameter> {
        let mut copy = self.clone();
        copy.slots()
            .into_iter()
            .map(|slot| FreeParameter {
                value: slot.value(),
                name: slot.name,
                min: slot.min,
                max: slot.max,
                unit: slot.unit,
            })
            .collect()
    }

    fn with_free(&self, values: &[f64]) -> Self {
        let mut copy = self.clone();
        for (mut slot, value) in copy.slots().into_iter().zip(values) {
            slot.set(*value);
        }
        copy
    }
}

impl Links {
    fn slots(&mut self) -> Vec<Slot<'_>> {
        let mut slots = Vec::new();
        if let Some(srio) = &mut self.srio {
            slots.push(Slot {
                name: "links.srio.maintenance".into(),
                unit: "x of the line".into(),
                min: 0.0,
                max: srio.maintenance.value().max(0.1),
                target: Target::Share(&mut srio.maintenance),
            });
            let times = [
                ("packet_engine", &mut srio.packet_engine),
                ("issue", &mut srio.issue),
                ("doorbell", &mut srio.doorbell),
                ("round_trip", &mut srio.round_trip),
                ("copy", &mut srio.copy),
            ];
            for (key, time) in times {
                clocked(&mut slots, format!("links.srio.{key}"), time);
            }
            for (name, time) in &mut srio.memory {
                clocked(&mut slots, format!("links.srio.memory.{name}"), time);
            }
            for (name, time) in &mut srio.descriptor {
                clocked(&mut slots, format!("links.srio.descriptor.{name}"), time);
            }
        }
        if let Some(hyperlink) = &mut self.hyperlink {
            slots.push(Slot {
                name: "links.hyperlink.flow_control".into(),
                unit: "B on the line".into(),
                min: 0.0,
                max: hyperlink.flow_control.value().max(16.0),
                target: Target::Size(&mut hyperlink.flow_control),
            });
            clocked(&mut slots, "links.hyperlink.round_trip".into(), &mut hyperlink.round_trip);
            for (name, memory) in &mut hyperlink.memory {
                clocked(&mut slots, format!("links.hyperlink.memory.{name}.latency"), &mut memory.latency);
            }
        }
        for (name, port) in &mut self.ethernet {
            let Some(dma) = &mut port.packet_dma else { continue };
            clocked(&mut slots, format!("links.ethernet.{name}.packet_dma.per_packet"), &mut dma.per_packet);
            clocked(&mut slots, format!("links.ethernet.{name}.packet_dma.per_burst"), &mut dma.per_burst);
        }
        for (name, server) in &mut self.tcp {
            let (cycles, trip) = (server.per_segment.count(), server.round_trip.value());
            if cycles > 0.0 {
                slots.push(Slot {
                    name: format!("links.tcp.{name}.per_segment"),
                    unit: format!("cycles @ {}", server.clock),
                    min: cycles / 10.0,
                    max: cycles * 10.0,
                    target: Target::Cost(&mut server.per_segment),
                });
            }
            if trip > 0.0 {
                slots.push(Slot {
                    name: format!("links.tcp.{name}.round_trip"),
                    unit: "ns".into(),
                    min: trip / 10.0,
                    max: trip * 10.0,
                    target: Target::Time(&mut server.round_trip),
                });
            }
        }
        slots
    }
}

/// A measured time and, where the chip file leaves it open, its share on the line.
///
/// A time of 0 is the reference that others are counted from, and stays.
fn clocked<'a>(slots: &mut Vec<Slot<'a>>, name: String, time: &'a mut ClockedTime) {
    let value = time.time.value();
    if value <= 0.0 {
        return;
    }
    let least = time.line_share_min.map_or(time.line_share.value(), Ratio::value);
    let most = time.line_share_max.map_or(time.line_share.value(), Ratio::value);
    if most > least {
        slots.push(Slot {
            name: format!("{name}.line_share"),
            unit: "x paced by the line".into(),
            min: least,
            max: most,
            target: Target::Share(&mut time.line_share),
        });
    }
    slots.push(Slot {
        name: format!("{name}.time"),
        unit: format!("ns @ {}", time.clock),
        min: value / 10.0,
        max: value * 10.0,
        target: Target::Time(&mut time.time),
    });
}
