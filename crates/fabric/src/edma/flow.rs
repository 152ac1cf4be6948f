//! What one transfer takes of every resource on its way.

use super::resources::{Key, Kind, Resources};
use super::{Transfer, TransferError};
use crate::soc::{At, Dram, EdmaController, Endpoint, Soc};
use crate::units::{Bytes, BytesPerCycle, BytesPerSecond, Cycles, Hertz, Nanoseconds};

/// Whether overheads and latencies count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Widths and clocks alone: what the guide calls the theoretical maximum.
    Theoretical,
    /// With what bursts, banks, turnarounds and latencies take.
    Achievable,
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
    /// Whether that is the window of writes.
    pub writes_bind: bool,
    /// From the event to the first byte, for all its requests that nothing hides.
    pub setup: Nanoseconds,
    /// From the first read to the last write beyond the time of the data itself.
    pub latency: Nanoseconds,
    /// The size of its bursts, for the engine that follows each of them.
    pub burst: Bytes,
    /// How much it may have under way.
    pub outstanding: Bytes,
}

impl Flow {
    /// The arithmetic of its window.
    pub fn window(&self) -> String {
        format!("{} / {:.1}", self.outstanding, Nanoseconds::new(self.outstanding.value() / self.cap))
    }

    /// The name of its window.
    pub const fn window_name(&self) -> &'static str {
        if self.writes_bind { "write window of one TC" } else { "read window of one TC" }
    }
}

/// A chip whose clocks are worked out once for many questions.
pub(super) struct Clocks<'a> {
    soc: &'a Soc,
    known: Vec<(&'a str, Hertz)>,
}

impl<'a> Clocks<'a> {
    pub(super) fn new(soc: &'a Soc) -> Self {
        let known =
            soc.clocks.keys().filter_map(|name| Some((name.as_str(), soc.frequency(name)?))).collect();
        Self { soc, known }
    }

    fn frequency(&self, clock: &str) -> Result<Hertz, TransferError> {
        let found = self.known.iter().find(|(name, _)| *name == clock).map(|(_, frequency)| *frequency);
        found.ok_or_else(|| TransferError::Incomplete(format!("clock {clock}")))
    }

    fn rate(&self, width: BytesPerCycle, clock: &str) -> Result<BytesPerSecond, TransferError> {
        Ok(width * self.frequency(clock)?)
    }

    fn time(&self, cycles: &Cycles) -> Result<Nanoseconds, TransferError> {
        Ok(cycles.at(self.frequency(&cycles.clock.0)?))
    }

    fn optional(&self, cycles: Option<&At<Cycles>>) -> Result<Nanoseconds, TransferError> {
        cycles.map_or(Ok(Nanoseconds::ZERO), |cycles| self.time(cycles))
    }

    /// What the bridges of a route add to a read, there and back.
    fn crossings(&self, route: &[&str]) -> Result<Nanoseconds, TransferError> {
        let mut time = Nanoseconds::ZERO;
        for name in route {
            let bridge = self.soc.bridges.get(*name);
            let bridge = bridge.ok_or_else(|| TransferError::Incomplete((*name).to_owned()))?;
            time = time + self.time(&bridge.crossing)?;
        }
        Ok(time)
    }

    /// What an access waits for in a memory and in the one that it lies behind, but for what dynamic memory adds.
    fn access(&self, memory: &Endpoint, write: bool) -> Result<Nanoseconds, TransferError> {
        let of = |memory: &Endpoint| {
            self.optional(if write { memory.write_latency.as_ref() } else { memory.read_latency.as_ref() })
        };
        let mut time = of(memory)?;
        for (_, front) in self.soc.in_front_of(memory) {
            time = time + of(front)?;
        }
        Ok(time)
    }

    /// From opening a row of a bank of a memory to opening the next one of the same bank.
    fn row_cycle(&self, dram: &Dram) -> Result<Nanoseconds, TransferError> {
        dram.row_cycle.as_ref().map_or(Ok(Dram::ROW_CYCLE), |cycles| self.time(cycles))
    }

    /// From sending a read to having its data: without what commands take, and what one command takes.
    fn read_trip(
        &self,
        source: &Endpoint,
        route: &[&str],
    ) -> Result<(Nanoseconds, Nanoseconds), TransferError> {
        let mut time = self.crossings(route)? + self.access(source, false)?;
        if let Some(dram) = &source.dram {
            for part in [&dram.queues, &dram.device, &dram.dma_wait] {
                time = time + self.time(part)?;
            }
            return Ok((time, self.time(&dram.command)?));
        }
        Ok((time, Nanoseconds::ZERO))
    }
}

/// How much of a window of reads a transfer fills before its first byte is there: each read under way waits for the commands of
/// the others. `trip` and `command` in nanoseconds, `fastest` the rate that all else allows, in bytes per nanosecond.
///
/// No more than there is to read; no more than keeps the rest of the way busy; and no more than makes it end sooner, as its end
/// is at `trip + w command / burst` and then `bytes (trip / w + command / burst)`, which is least at the square root below.
fn filled(window: Bytes, bytes: Bytes, burst: Bytes, trip: f64, command: f64, fastest: f64) -> Bytes {
    let each = command / burst.value();
    let most = window.min(bytes);
    if each <= 0.0 {
        return most;
    }
    let needed = if fastest * each < 1.0 { fastest * trip / (1.0 - fastest * each) } else { f64::INFINITY };
    let gains = (bytes.value() * trip / each).sqrt();
    most.min(Bytes::new(needed.min(gains).max(burst.value())))
}

/// Works out the flow of one transfer, and enters the resources that it uses.
pub(super) fn flow<'a>(
    clocks: &Clocks<'a>,
    transfer: &'a Transfer,
    mode: Mode,
    resources: &mut Resources<'a>,
) -> Result<Flow, TransferError> {
    transfer.shape.check().map_err(TransferError::Shape)?;
    let soc = clocks.soc;
    let reading = soc.way(&transfer.controller, &transfer.source)?;
    let writing = soc.way(&transfer.controller, &transfer.destination)?;
    let lacks = |what: &str| TransferError::Incomplete(what.to_owned());
    let (controller, _) =
        soc.transfer_controller(&transfer.controller).ok_or_else(|| lacks("the controller"))?;
    let source = soc.endpoint(&transfer.source).ok_or_else(|| lacks("the source"))?;
    let destination = soc.endpoint(&transfer.destination).ok_or_else(|| lacks("the destination"))?;
    let pieces = source.max_read_response.as_deref().copied();
    let mut builder =
        Builder { clocks, transfer, controller, mode, resources, pieces, costs: Vec::with_capacity(16) };
    let bursts = [false, true].map(|destination| {
        transfer.shape.mean_burst(*controller.default_burst, destination).min(*controller.fifo)
    });
    builder.controller(&bursts)?;
    for (names, side) in [(&reading, 0), (&writing, 1)] {
        for &name in names {
            builder.bridge(name, side, bursts[side], reading.contains(&name) && writing.contains(&name))?;
        }
    }
    builder.endpoint(source, &transfer.source, 0, bursts[0])?;
    builder.endpoint(destination, &transfer.destination, 1, bursts[1])?;
    if transfer.source == transfer.destination && mode == Mode::Achievable {
        builder.turnaround(source, &reading, bursts[0])?;
    }
    let costs = builder.costs;
    let (reads, writes) = (*controller.outstanding_reads, *controller.outstanding_writes);
    let (trip, command) = clocks.read_trip(source, &reading)?;
    let with = |window: Bytes| trip + command * window.over(bursts[0]).value();
    let round = with(reads);
    let bytes = transfer.shape.bytes();
    // What is read and written through one resource takes it twice.
    let of = |resource: usize| -> f64 {
        costs.iter().filter(|(at, _)| *at == resource).map(|(_, cost)| cost).sum()
    };
    let fastest = 1.0 / costs.iter().map(|(at, _)| of(*at)).fold(f64::MIN_POSITIVE, f64::max);
    let first = with(filled(reads, bytes, bursts[0], trip.value(), command.value(), fastest));
    let setup = clocks.time(&controller.setup)?;
    let write = clocks.crossings(&writing)? + clocks.access(destination, true)?;
    let rate = |window: Bytes, trip: Nanoseconds| window.value() / trip.value().max(1e-3);
    let writes_bind = rate(writes, write) < rate(reads, round);
    let (outstanding, cap) =
        if writes_bind { (writes, rate(writes, write)) } else { (reads, rate(reads, round)) };
    Ok(Flow {
        bytes,
        costs,
        cap: if mode == Mode::Achievable { cap } else { f64::INFINITY },
        writes_bind,
        setup: setup * transfer.shape.requests(),
        latency: first + write,
        burst: bursts[0].min(bursts[1]),
        outstanding,
    })
}

/// What data takes on one side of a controller's way to a memory: of the memory and, `via` the controller, of its bus and bridges.
pub(super) fn one_way<'a>(
    clocks: &Clocks<'a>,
    transfer: &'a Transfer,
    write: bool,
    via: bool,
    resources: &mut Resources<'a>,
) -> Result<Vec<(usize, f64)>, TransferError> {
    let soc = clocks.soc;
    let side = usize::from(write);
    let name = transfer.source.as_str();
    let route = soc.way(&transfer.controller, name)?;
    let lacks = || TransferError::Incomplete(name.to_owned());
    let (controller, _) = soc.transfer_controller(&transfer.controller).ok_or_else(lacks)?;
    let memory = soc.endpoint(name).ok_or_else(lacks)?;
    let pieces = memory.max_read_response.as_deref().copied();
    let burst = transfer.shape.mean_burst(*controller.default_burst, write).min(*controller.fifo);
    let mode = Mode::Achievable;
    let mut builder =
        Builder { clocks, transfer, controller, mode, resources, pieces, costs: Vec::with_capacity(8) };
    if via {
        let frequency = clocks.frequency(&controller.clock)?;
        let cost = builder.bus(controller.width, frequency, side);
        let key = Key::new(Kind::Controller, transfer.controller.as_str()).side(side);
        builder.take(key, controller.width * frequency, cost);
        for name in route {
            builder.bridge(name, side, burst, false)?;
        }
    }
    builder.endpoint(memory, name, side, burst)?;
    Ok(builder.costs)
}

/// What a core takes of a memory: its data path, its rows, and the controllers in front of it; its own way there is counted in
/// the latency of its reads.
pub(super) fn core_costs<'a>(
    clocks: &Clocks<'a>,
    name: &'a str,
    write: bool,
    line: Bytes,
    resources: &mut Resources<'a>,
) -> Result<Vec<(usize, f64)>, TransferError> {
    let soc = clocks.soc;
    let memory = soc.endpoint(name).ok_or_else(|| TransferError::Incomplete(name.to_owned()))?;
    let side = usize::from(write);
    let raw = clocks.rate(memory.width, &memory.clock)? * f64::from(memory.transfers_per_cycle);
    let mut cost =
        1e9 / raw.value() + clocks.optional(memory.access_overhead.as_ref())?.value() / line.value();
    let mut costs = Vec::new();
    if let Some(dram) = &memory.dram {
        cost /= dram.efficiency.value();
        let banks = memory.banks.as_deref().copied().unwrap_or(Dram::BANKS);
        let rows = clocks.row_cycle(dram)?.value() / f64::from(banks) / dram.page.value();
        costs.push((resources.index(Key::new(Kind::Rows, name), raw), rows));
    }
    costs.insert(0, (resources.index(Key::new(Kind::Memory, name).way(memory.direction, side), raw), cost));
    for (front, through) in soc.in_front_of(memory) {
        let raw = clocks.rate(through.width, &through.clock)? * f64::from(through.transfers_per_cycle);
        let key = Key::new(Kind::Memory, front).way(through.direction, side);
        costs.push((resources.index(key, raw), 1e9 / raw.value()));
    }
    Ok(costs)
}

/// What stands for no time at all where something is divided by it.
const NO_TIME: Nanoseconds = Nanoseconds::new(1e-6);

struct Builder<'a, 'b> {
    clocks: &'b Clocks<'a>,
    transfer: &'a Transfer,
    controller: &'a EdmaController,
    mode: Mode,
    resources: &'b mut Resources<'a>,
    /// The pieces in which the source returns what is read.
    pieces: Option<Bytes>,
    costs: Vec<(usize, f64)>,
}

impl<'a> Builder<'a, '_> {
    fn take(&mut self, key: Key<'a>, raw: BytesPerSecond, cost: f64) {
        let index = self.resources.index(key, raw);
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

    /// The commands and buses of the transfer controller, and its port of the fabric where that is slower.
    fn controller(&mut self, bursts: &[Bytes; 2]) -> Result<(), TransferError> {
        let (controller, name) = (self.controller, self.transfer.controller.as_str());
        let frequency = self.clocks.frequency(&controller.clock)?;
        if let Some(command) = controller.command.as_ref().filter(|_| self.mode == Mode::Achievable) {
            let burst = bursts[0].min(bursts[1]);
            let time = self.clocks.time(command)?;
            let key = Key::new(Kind::Commands, name);
            self.take(key, burst / time.max(NO_TIME), time.value() / burst.value());
        }
        let own = controller.width * frequency;
        let fabric = self.clocks.soc.fabrics.get(controller.fabric.as_str());
        for side in [0, 1] {
            let cost = self.bus(controller.width, frequency, side);
            self.take(Key::new(Kind::Controller, name).side(side), own, cost);
            let Some(fabric) = fabric else { continue };
            let clock = self.clocks.frequency(&fabric.clock)?;
            if fabric.width * clock < own {
                let cost = self.bus(fabric.width, clock, side);
                let key = Key::new(Kind::FabricPort, name).of(controller.fabric.as_str()).side(side);
                self.take(key, fabric.width * clock, cost);
            }
        }
        Ok(())
    }

    /// A bridge is as fast as the slowest of its own bus and those of the fabrics that it joins.
    fn bridge(&mut self, name: &'a str, side: usize, burst: Bytes, both: bool) -> Result<(), TransferError> {
        let soc = self.clocks.soc;
        let Some(bridge) = soc.bridges.get(name) else { return Ok(()) };
        let own = self.clocks.frequency(&bridge.clock)?;
        let mut raw = bridge.width * own;
        let mut cost = self.bus(bridge.width, own, side);
        for fabric in [&bridge.from, &bridge.to] {
            let Some(fabric) = soc.fabrics.get(fabric.as_str()) else { continue };
            let clock = self.clocks.frequency(&fabric.clock)?;
            if fabric.width * clock < raw {
                raw = fabric.width * clock;
                cost = cost.max(self.bus(fabric.width, clock, side));
            }
        }
        if both && self.mode == Mode::Achievable {
            cost += self.clocks.optional(bridge.gap.as_ref())?.value() / burst.value();
        }
        self.take(Key::new(Kind::Bridge, name).side(side), raw, cost);
        Ok(())
    }

    fn endpoint(
        &mut self,
        memory: &'a Endpoint,
        name: &'a str,
        side: usize,
        burst: Bytes,
    ) -> Result<(), TransferError> {
        let clocks = self.clocks;
        let raw = clocks.rate(memory.width, &memory.clock)? * f64::from(memory.transfers_per_cycle);
        let mut cost = 1e9 / raw.value();
        if self.mode == Mode::Achievable {
            if let Some(line) = &memory.bank_width {
                cost /= self.transfer.shape.bank_use(**line, side == 1);
                cost *= self.conflicts(memory, **line, side);
            }
            cost += clocks.optional(memory.access_overhead.as_ref())?.value() / burst.value();
            if let Some(dram) = &memory.dram {
                cost /= dram.efficiency.value();
                if *dram.ranks > 1 {
                    cost += clocks.time(&dram.rank_switch)?.value() / dram.rank_switch_every.value();
                }
            }
        }
        self.take(Key::new(Kind::Memory, name).way(memory.direction, side), raw, cost);
        if let Some(dram) = memory.dram.as_ref().filter(|_| self.mode == Mode::Achievable) {
            let banks = memory.banks.as_deref().copied().unwrap_or(Dram::BANKS);
            let rows = clocks.row_cycle(dram)?.value() / f64::from(banks);
            let changes = self.transfer.shape.pages_per_byte(*dram.page, side == 1);
            self.take(Key::new(Kind::Rows, name), raw, rows * changes);
        }
        if let Some(port) = &memory.port {
            let frequency = clocks.frequency(&port.clock)?;
            let mut cost = self.bus(port.width, frequency, side);
            if self.mode == Mode::Achievable {
                cost += clocks.time(&port.beat_overhead)?.value() / port.width.value();
            }
            self.take(Key::new(Kind::Port, name).way(memory.direction, side), port.width * frequency, cost);
        }
        for (front, through) in clocks.soc.in_front_of(memory) {
            let raw = clocks.rate(through.width, &through.clock)? * f64::from(through.transfers_per_cycle);
            self.take(Key::new(Kind::Memory, front).way(through.direction, side), raw, 1e9 / raw.value());
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
    fn turnaround(&mut self, memory: &Endpoint, route: &[&str], burst: Bytes) -> Result<(), TransferError> {
        let Some(dram) = &memory.dram else { return Ok(()) };
        let every = dram.turnaround_every.value();
        let mut stop = self.clocks.time(&dram.turnaround)?;
        stop = stop + self.clocks.crossings(route)?;
        stop = stop + self.clocks.time(&dram.command)? * (every / burst.value());
        let raw = self.clocks.rate(memory.width, &memory.clock)? * f64::from(memory.transfers_per_cycle);
        let key = Key::new(Kind::Memory, &self.transfer.source).way(memory.direction, 0);
        self.take(key, raw, stop.value() / every);
        Ok(())
    }
}
