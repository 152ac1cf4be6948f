//! What one transfer takes of every resource on its way.

use super::{Transfer, TransferError};
use crate::soc::{At, Direction, EdmaController, Endpoint, Soc};
use crate::units::{Bytes, BytesPerCycle, BytesPerSecond, Cycles, Hertz, Nanoseconds};

/// Whether overheads and latencies count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Widths and clocks alone: what the guide calls the theoretical maximum.
    Theoretical,
    /// With what bursts, banks, turnarounds and latencies take.
    Achievable,
}

/// The resources that flows share, by name.
#[derive(Debug, Clone, Default)]
pub struct Resources {
    names: Vec<String>,
    raw: Vec<BytesPerSecond>,
}

impl Resources {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The name of one; empty for one that is not there.
    pub fn name(&self, index: usize) -> &str {
        self.names.get(index).map_or("", String::as_str)
    }

    /// What its width and clock allow.
    pub fn raw(&self, index: usize) -> BytesPerSecond {
        self.raw.get(index).copied().unwrap_or_default()
    }

    fn index(&mut self, name: &str, raw: BytesPerSecond) -> usize {
        match self.names.iter().position(|known| known == name) {
            Some(index) => index,
            None => {
                self.names.push(name.to_owned());
                self.raw.push(raw);
                self.names.len() - 1
            }
        }
    }
}

/// A transfer as the shares see it. Rates are bytes per nanosecond.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// What it moves.
    pub bytes: Bytes,
    /// Nanoseconds of each resource per byte, by index.
    pub costs: Vec<(usize, f64)>,
    /// The rate that its window of reads under way allows.
    pub cap: f64,
    /// What that window is, in words.
    pub window: String,
    /// From the event to the first byte, for all its requests that nothing hides.
    pub setup: Nanoseconds,
    /// From the first read to the last write beyond the time of the data itself.
    pub latency: Nanoseconds,
    /// The size of its bursts, for the engine that follows each of them.
    pub burst: Bytes,
    /// How much it may have under way.
    pub outstanding: Bytes,
}

/// Works out the flow of one transfer, and enters the resources that it uses.
///
/// # Errors
/// When the transfer has no shape or no way.
pub fn flow(
    soc: &Soc,
    transfer: &Transfer,
    mode: Mode,
    resources: &mut Resources,
) -> Result<Flow, TransferError> {
    transfer.shape.check().map_err(TransferError::Shape)?;
    let reading = soc.route(&transfer.controller, &transfer.source)?;
    let writing = soc.route(&transfer.controller, &transfer.destination)?;
    let lacks = |what: &str| TransferError::Incomplete(what.to_owned());
    let (controller, _) =
        soc.transfer_controller(&transfer.controller).ok_or_else(|| lacks("the controller"))?;
    let source = soc.endpoint(&transfer.source).ok_or_else(|| lacks("the source"))?;
    let destination = soc.endpoint(&transfer.destination).ok_or_else(|| lacks("the destination"))?;
    let mut builder = Builder { soc, transfer, controller, mode, resources, costs: Vec::new() };
    let bursts = [false, true].map(|destination| {
        transfer.shape.mean_burst(*controller.default_burst, destination).min(*controller.fifo)
    });
    builder.controller(&bursts)?;
    for (names, side) in [(&reading, 0), (&writing, 1)] {
        for name in names {
            builder.bridge(name, side, bursts[side], reading.contains(name) && writing.contains(name))?;
        }
    }
    builder.endpoint(source, &transfer.source, 0, bursts[0])?;
    builder.endpoint(destination, &transfer.destination, 1, bursts[1])?;
    if transfer.source == transfer.destination && mode == Mode::Achievable {
        builder.turnaround(source, reading.len(), bursts[0])?;
    }
    let costs = builder.costs;
    let round = round_trip(soc, controller, source, &reading, bursts[0])?;
    let outstanding = *controller.outstanding_reads;
    let setup = soc.time(&controller.setup).ok_or_else(|| lacks("a clock"))?;
    let write = soc.crossings(&writing)? + soc.cycles(&destination.write_latency)?;
    Ok(Flow {
        bytes: transfer.shape.bytes(),
        costs,
        cap: if mode == Mode::Achievable {
            outstanding.value() / round.value().max(1e-3)
        } else {
            f64::INFINITY
        },
        window: format!("{outstanding} / {round:.1}"),
        setup: setup * transfer.shape.requests(),
        latency: round + write,
        burst: bursts[0].min(bursts[1]),
        outstanding,
    })
}

/// From sending a read to having its data, with the window full of reads.
fn round_trip(
    soc: &Soc,
    controller: &EdmaController,
    source: &Endpoint,
    route: &[String],
    burst: Bytes,
) -> Result<Nanoseconds, TransferError> {
    let mut time = soc.crossings(route)? + soc.cycles(&source.read_latency)?;
    if let Some(dram) = &source.dram {
        for part in [&dram.queues, &dram.device, &dram.dma_wait] {
            time = time + soc.cycles(&Some(part.clone()))?;
        }
        let commands = controller.outstanding_reads.over(burst).value();
        time = time + soc.cycles(&Some(dram.command.clone()))? * commands;
    }
    Ok(time)
}

impl Soc {
    /// What the bridges of a route add to a read, there and back.
    fn crossings(&self, route: &[String]) -> Result<Nanoseconds, TransferError> {
        let mut time = Nanoseconds::ZERO;
        for name in route {
            let bridge = self.bridges.get(name).ok_or_else(|| TransferError::Incomplete(name.clone()))?;
            time = time + self.cycles(&Some(bridge.crossing.clone()))?;
        }
        Ok(time)
    }

    fn cycles(&self, cycles: &Option<At<Cycles>>) -> Result<Nanoseconds, TransferError> {
        match cycles {
            None => Ok(Nanoseconds::ZERO),
            Some(cycles) => {
                self.time(cycles).ok_or_else(|| TransferError::Incomplete(format!("clock {}", cycles.clock)))
            }
        }
    }

    fn clocked(&self, width: BytesPerCycle, clock: &str) -> Result<BytesPerSecond, TransferError> {
        self.bus_rate(width, clock).ok_or_else(|| TransferError::Incomplete(format!("clock {clock}")))
    }
}

struct Builder<'a> {
    soc: &'a Soc,
    transfer: &'a Transfer,
    controller: &'a EdmaController,
    mode: Mode,
    resources: &'a mut Resources,
    costs: Vec<(usize, f64)>,
}

const SIDES: [&str; 2] = ["read", "write"];

impl Builder<'_> {
    fn take(&mut self, name: &str, raw: BytesPerSecond, cost: f64) {
        let index = self.resources.index(name, raw);
        self.costs.push((index, cost));
    }

    /// The time that a bus takes per byte when data comes in bursts, each of which fills whole cycles.
    fn bus(&self, width: BytesPerCycle, frequency: Hertz, burst: Bytes) -> f64 {
        let period = frequency.period().value();
        match self.mode {
            Mode::Theoretical => period / width.value(),
            Mode::Achievable => (burst.value() / width.value()).ceil().max(1.0) * period / burst.value(),
        }
    }

    fn frequency(&self, clock: &str) -> Result<Hertz, TransferError> {
        self.soc.frequency(clock).ok_or_else(|| TransferError::Incomplete(format!("clock {clock}")))
    }

    fn controller(&mut self, bursts: &[Bytes; 2]) -> Result<(), TransferError> {
        let controller = self.controller;
        let frequency = self.frequency(&controller.clock)?;
        for (side, name) in SIDES.iter().enumerate() {
            let cost = self.bus(controller.width, frequency, bursts[side]);
            self.take(
                &format!("{} {name} bus", self.transfer.controller),
                controller.width * frequency,
                cost,
            );
        }
        Ok(())
    }

    fn bridge(&mut self, name: &str, side: usize, burst: Bytes, both: bool) -> Result<(), TransferError> {
        let Some(bridge) = self.soc.bridges.get(name) else { return Ok(()) };
        let frequency = self.frequency(&bridge.clock)?;
        let mut cost = self.bus(bridge.width, frequency, burst);
        if both && self.mode == Mode::Achievable {
            cost += self.soc.cycles(&Some(bridge.gap.clone()))?.value() / burst.value();
        }
        self.take(&format!("bridge {name} {}", SIDES[side]), bridge.width * frequency, cost);
        Ok(())
    }

    fn endpoint(
        &mut self,
        memory: &Endpoint,
        name: &str,
        side: usize,
        burst: Bytes,
    ) -> Result<(), TransferError> {
        let raw = self.soc.clocked(memory.width, &memory.clock)? * f64::from(memory.transfers_per_cycle);
        let mut cost = 1e9 / raw.value();
        if self.mode == Mode::Achievable {
            if let Some(line) = &memory.bank_width {
                cost /= self.transfer.shape.bank_use(**line, side == 1);
            }
            cost += self.soc.cycles(&memory.access_overhead)?.value() / burst.value();
            if let Some(dram) = &memory.dram {
                cost /= dram.efficiency.value();
                if *dram.ranks > 1 {
                    let switch = self.soc.cycles(&Some(dram.rank_switch.clone()))?;
                    cost += switch.value() / dram.rank_switch_every.value();
                }
            }
        }
        let suffix = match memory.direction {
            Direction::Half => String::new(),
            Direction::Full => format!(" {}", SIDES[side]),
        };
        self.take(&format!("{name}{suffix}"), raw, cost);
        if let Some(port) = &memory.port {
            let frequency = self.frequency(&port.clock)?;
            let mut cost = self.bus(port.width, frequency, burst);
            if self.mode == Mode::Achievable {
                let lost = self.soc.cycles(&Some(port.beat_overhead.clone()))?;
                cost += lost.value() / port.width.value();
            }
            self.take(&format!("{name} port{suffix}"), port.width * frequency, cost);
        }
        Ok(())
    }

    /// A copy within one DRAM stops its bus once per window: for the change of direction, and for what a window waits
    /// for between the reads and the writes of its data.
    fn turnaround(&mut self, memory: &Endpoint, bridges: usize, burst: Bytes) -> Result<(), TransferError> {
        let Some(dram) = &memory.dram else { return Ok(()) };
        let route = self.soc.route(&self.transfer.controller, &self.transfer.source)?;
        let every = dram.turnaround_every.value();
        let mut stop = self.soc.cycles(&Some(dram.turnaround.clone()))?;
        stop = stop + self.soc.crossings(route.get(..bridges).unwrap_or(&[]))?;
        stop = stop + self.soc.cycles(&Some(dram.command.clone()))? * (every / burst.value());
        let raw = self.soc.clocked(memory.width, &memory.clock)? * f64::from(memory.transfers_per_cycle);
        let name = self.transfer.source.clone();
        self.take(&name, raw, stop.value() / every);
        Ok(())
    }
}
