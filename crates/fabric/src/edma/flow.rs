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
    /// The rate that its windows of reads and of writes under way allow.
    pub cap: f64,
    /// What that window is, in words: its name, and its arithmetic.
    pub window: (String, String),
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
    let pieces = source.max_read_response.as_deref().copied();
    let mut builder = Builder { soc, transfer, controller, mode, resources, pieces, costs: Vec::new() };
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
    let setup = soc.time(&controller.setup).ok_or_else(|| lacks("a clock"))?;
    let write = soc.crossings(&writing)? + soc.access(destination, true)?;
    let (window, cap, name) = narrowest(controller, round, write);
    Ok(Flow {
        bytes: transfer.shape.bytes(),
        costs,
        cap: if mode == Mode::Achievable { cap } else { f64::INFINITY },
        window: name,
        setup: setup * transfer.shape.requests(),
        latency: round + write,
        burst: bursts[0].min(bursts[1]),
        outstanding: window,
    })
}

/// The window that holds a controller back more: that of reads until their data is there, or that of writes until they
/// are acknowledged; its size, the rate in bytes per nanosecond, and its name with the arithmetic.
fn narrowest(
    controller: &EdmaController,
    read: Nanoseconds,
    write: Nanoseconds,
) -> (Bytes, f64, (String, String)) {
    let rate = |window: Bytes, trip: Nanoseconds| window.value() / trip.value().max(1e-3);
    let (reads, writes) = (*controller.outstanding_reads, *controller.outstanding_writes);
    let (window, trip, side) =
        if rate(writes, write) < rate(reads, read) { (writes, write, "write") } else { (reads, read, "read") };
    let name = (format!("{side} window of one TC"), format!("{window} / {trip:.1}"));
    (window, rate(window, trip), name)
}

/// From sending a read to having its data, with the window full of reads.
fn round_trip(
    soc: &Soc,
    controller: &EdmaController,
    source: &Endpoint,
    route: &[String],
    burst: Bytes,
) -> Result<Nanoseconds, TransferError> {
    let mut time = soc.crossings(route)? + soc.access(source, false)?;
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

    /// What an access waits for in a memory and in the one that it lies behind, but for what dynamic memory adds.
    fn access(&self, memory: &Endpoint, write: bool) -> Result<Nanoseconds, TransferError> {
        let of = |memory: &Endpoint| {
            self.cycles(if write { &memory.write_latency } else { &memory.read_latency })
        };
        let mut time = of(memory)?;
        for (_, front) in self.in_front_of(memory) {
            time = time + of(front)?;
        }
        Ok(time)
    }

    /// The memories whose controllers requests pass on their way to this one.
    fn in_front_of<'a>(&'a self, memory: &'a Endpoint) -> Vec<(&'a str, &'a Endpoint)> {
        let mut passed: Vec<(&str, &Endpoint)> = Vec::new();
        let mut next = memory.behind.as_deref();
        // No chain is longer than there are memories; a loaded chip has no circle.
        while let Some(front) = next.and_then(|name| self.endpoints.get(name)).filter(|_| passed.len() < 16) {
            passed.push((next.map_or("", String::as_str), front));
            next = front.behind.as_deref();
        }
        passed
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
    /// The pieces in which the source returns what is read.
    pieces: Option<Bytes>,
    costs: Vec<(usize, f64)>,
}

/// What stands for no time at all where something is divided by it.
const NO_TIME: Nanoseconds = Nanoseconds::new(1e-6);

const SIDES: [&str; 2] = ["read", "write"];

/// Reads and writes of a memory that does both at once are two resources.
fn suffix(direction: Direction, side: usize) -> String {
    match direction {
        Direction::Half => String::new(),
        Direction::Full => format!(" {}", SIDES[side]),
    }
}

impl Builder<'_> {
    fn take(&mut self, name: &str, raw: BytesPerSecond, cost: f64) {
        let index = self.resources.index(name, raw);
        self.costs.push((index, cost));
    }

    /// The time that a bus takes per byte: every line of its width that a burst touches fills a whole cycle. Data that is
    /// read comes back in the pieces of the memory, and a piece below the width of the bus still takes a cycle.
    fn bus(&self, width: BytesPerCycle, frequency: Hertz, side: usize) -> f64 {
        let (period, width) = (frequency.period().value(), width.value());
        if self.mode == Mode::Theoretical || width < 1.0 {
            return period / width;
        }
        let line = match self.pieces.filter(|_| side == 0) {
            Some(piece) => width.min(piece.value().max(1.0)),
            None => width,
        };
        period * self.transfer.shape.lines_per_byte(Bytes::new(line), side == 1)
    }

    fn frequency(&self, clock: &str) -> Result<Hertz, TransferError> {
        self.soc.frequency(clock).ok_or_else(|| TransferError::Incomplete(format!("clock {clock}")))
    }

    /// The commands and buses of the transfer controller, and its port of the fabric where that is slower.
    fn controller(&mut self, bursts: &[Bytes; 2]) -> Result<(), TransferError> {
        let controller = self.controller;
        let frequency = self.frequency(&controller.clock)?;
        if let Some(command) = controller.command.as_ref().filter(|_| self.mode == Mode::Achievable) {
            let burst = bursts[0].min(bursts[1]);
            let time = self.soc.cycles(&Some(command.clone()))?;
            self.take(&format!("{} commands", self.transfer.controller), burst / time.max(NO_TIME), time.value() / burst.value());
        }
        let own = controller.width * frequency;
        let fabric = self.soc.fabrics.get(controller.fabric.as_str());
        for (side, name) in SIDES.iter().enumerate() {
            let cost = self.bus(controller.width, frequency, side);
            self.take(&format!("{} {name} bus", self.transfer.controller), own, cost);
            let Some(fabric) = fabric else { continue };
            let clock = self.frequency(&fabric.clock)?;
            if fabric.width * clock < own {
                let cost = self.bus(fabric.width, clock, side);
                let port = format!(
                    "{} {name} port of {}",
                    controller.fabric.as_str(),
                    self.transfer.controller
                );
                self.take(&port, fabric.width * clock, cost);
            }
        }
        Ok(())
    }

    /// A bridge is as fast as the slowest of its own bus and those of the fabrics that it joins.
    fn bridge(&mut self, name: &str, side: usize, burst: Bytes, both: bool) -> Result<(), TransferError> {
        let Some(bridge) = self.soc.bridges.get(name) else { return Ok(()) };
        let mut buses = vec![(bridge.width, self.frequency(&bridge.clock)?)];
        for fabric in [&bridge.from, &bridge.to] {
            if let Some(fabric) = self.soc.fabrics.get(fabric.as_str()) {
                buses.push((fabric.width, self.frequency(&fabric.clock)?));
            }
        }
        let mut raw = BytesPerSecond::new(f64::INFINITY);
        let mut cost: f64 = 0.0;
        for (width, frequency) in buses {
            raw = raw.min(width * frequency);
            cost = cost.max(self.bus(width, frequency, side));
        }
        if both && self.mode == Mode::Achievable {
            cost += self.soc.cycles(&Some(bridge.gap.clone()))?.value() / burst.value();
        }
        self.take(&format!("bridge {name} {}", SIDES[side]), raw, cost);
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
                cost *= self.conflicts(memory, **line, side);
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
        let way = suffix(memory.direction, side);
        self.take(&format!("{name}{way}"), raw, cost);
        if let Some(dram) = memory.dram.as_ref().filter(|_| self.mode == Mode::Achievable) {
            let rows = dram.row_cycle(self.soc)?.value() / f64::from(memory.banks.as_deref().copied().unwrap_or(8));
            let changes = self.transfer.shape.pages_per_byte(*dram.page, side == 1);
            self.take(&format!("{name} rows"), raw, rows * changes);
        }
        if let Some(port) = &memory.port {
            let frequency = self.frequency(&port.clock)?;
            let mut cost = self.bus(port.width, frequency, side);
            if self.mode == Mode::Achievable {
                let lost = self.soc.cycles(&Some(port.beat_overhead.clone()))?;
                cost += lost.value() / port.width.value();
            }
            self.take(&format!("{name} port{way}"), port.width * frequency, cost);
        }
        for (front, through) in self.soc.in_front_of(memory) {
            let raw =
                self.soc.clocked(through.width, &through.clock)? * f64::from(through.transfers_per_cycle);
            let name = format!("{front}{}", suffix(through.direction, side));
            self.take(&name, raw, 1e9 / raw.value());
        }
        Ok(())
    }

    /// How much longer a static memory takes when arrays start in few of its banks: 1 where as many banks work at once as
    /// its width has.
    fn conflicts(&self, memory: &Endpoint, line: Bytes, side: usize) -> f64 {
        let Some(banks) = memory.banks.as_deref().filter(|_| memory.dram.is_none()) else { return 1.0 };
        let at_once = (memory.width.value() / line.value()).max(1.0);
        let hit = self.transfer.shape.banks_hit(line, *banks, side == 1);
        at_once / at_once.min(hit)
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
