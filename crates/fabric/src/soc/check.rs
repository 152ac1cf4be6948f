//! What must hold in a chip beyond the syntax of its file.

use super::edit::Editor;
use super::{At, Clock, Core, CoreRead, EdmaController, Endpoint, EndpointKind, MAX_STRUCTURES, Name, Soc};
use crate::units::{Bytes, Cycles, Hertz};
use std::collections::BTreeMap;
use std::ops::Range;

/// The largest divider or multiplier of a clock.
const MAX_FACTOR: u32 = 65_536;

/// A mistake and its place.
pub(super) struct Fault {
    pub(super) span: Range<usize>,
    pub(super) what: String,
}

type Checked = Result<(), Fault>;

fn fault<T>(at: &At<T>, what: impl Into<String>) -> Checked {
    Err(Fault { span: at.span(), what: what.into() })
}

/// Checks everything; the first mistake ends it.
pub(super) fn check(soc: &Soc) -> Checked {
    names(soc)?;
    for (name, clock) in &soc.clocks {
        clock_frequency(soc, name, clock)?;
    }
    for fabric in soc.fabrics.values() {
        known("clock", &fabric.clock, &soc.clocks)?;
    }
    for bridge in soc.bridges.values() {
        known("fabric", &bridge.from, &soc.fabrics)?;
        known("fabric", &bridge.to, &soc.fabrics)?;
        known("clock", &bridge.clock, &soc.clocks)?;
        cycles(soc, &bridge.crossing)?;
        if let Some(gap) = &bridge.gap {
            cycles(soc, gap)?;
        }
        if *bridge.from == *bridge.to {
            return fault(&bridge.to, "a bridge joins two different fabrics");
        }
    }
    for (name, memory) in &soc.endpoints {
        endpoint(soc, name, memory)?;
    }
    for core in soc.cores.values() {
        known("clock", &core.clock, &soc.clocks)?;
        if let Some(clock) = &core.bus_clock {
            known("clock", clock, &soc.clocks)?;
        }
        if let Some(line) = &core.line {
            positive(line)?;
        }
        if !(1..=1024).contains(&core.count) {
            return fault(core, "expected a count of 1 to 1024 cores");
        }
        if !core.outstanding.values().all(|reads| (1.0..=1024.0).contains(reads)) {
            return fault(core, "expected outstanding reads from 1 to 1024");
        }
        for (memory, share) in &core.dirty {
            if !soc.endpoints.contains_key(memory) || !(0.0..=1.0).contains(&share.value()) {
                let names: Vec<&str> = soc.endpoints.keys().map(String::as_str).collect();
                let what = format!(
                    "dirty {memory:?} = {share}: expected 0 % to 100 % of one of {}",
                    names.join(", ")
                );
                return fault(core, what);
            }
        }
        for (name, read) in &core.reads {
            core_read(soc, core, name, read)?;
        }
        levels(soc, core)?;
    }
    for controller in soc.edma.values() {
        edma(soc, controller)?;
    }
    for (name, bridge) in &soc.bridges {
        let mut used = soc.edma.values().flat_map(|engine| engine.transfer_controllers.iter());
        if let Some(gap) = &bridge.gap
            && !used.any(|tc| tc.bridges.iter().any(|own| own.as_str() == name))
        {
            return fault(gap, format!("no controller goes over bridge {name:?}; expected no gap"));
        }
    }
    Ok(())
}

/// Refuses names that no question reaches: those that another has but for case, and those with what separates the parts of a
/// question.
fn names(soc: &Soc) -> Checked {
    let endpoints = soc.endpoints.iter().map(|(name, at)| ("endpoint", name.as_str(), at.span()));
    let cores = soc.cores.iter().map(|(name, at)| ("core", name.as_str(), at.span()));
    let all = soc.edma.values().flat_map(|controller| &controller.transfer_controllers);
    let controllers = all.map(|tc| ("transfer controller", tc.name.as_str(), tc.name.span()));
    let mut known: BTreeMap<(&str, String), &str> = BTreeMap::new();
    for (what, name, span) in endpoints.chain(cores).chain(controllers) {
        // Instances of memories and cores stand behind a dot.
        let splits: &[char] =
            if what == "transfer controller" { &[':', ',', '='] } else { &['.', ':', ',', '='] };
        if name.is_empty() || name.contains(splits) {
            let splits: Vec<String> = splits.iter().map(|split| format!("'{split}'")).collect();
            let what = format!(
                "{what} {name:?}: no question reaches it; expected a name without {}",
                splits.join(", ")
            );
            return Err(Fault { span, what });
        }
        if let Some(other) = known.insert((what, name.to_ascii_lowercase()), name) {
            let what = format!(
                "{what} {name:?} beside {other:?}: questions do not tell them apart; expected another name"
            );
            return Err(Fault { span, what });
        }
    }
    Ok(())
}

/// Checks what is open: every answer has to give a chip, and the transfer that would decide has to be one of it.
pub(super) fn alternatives(soc: &Soc) -> Checked {
    for (name, open) in &soc.alternatives {
        if let Some(what) = open.fault() {
            return fault(open, format!("alternative {name:?}: {what}"));
        }
        if let Err(error) = crate::ask::answer(soc, &open.decides) {
            return fault(&open.decides, format!("alternative {name:?}: {error}"));
        }
    }
    for part in soc.open_parts() {
        let of_part = || soc.alternatives.values().filter(|open| open.part() == part);
        let count = of_part().map(|open| open.choices().len()).fold(1usize, usize::saturating_mul);
        let Some(first) = of_part().next() else { continue };
        if count > MAX_STRUCTURES {
            let what =
                format!("{count} combinations of what is open of {part}; expected at most {MAX_STRUCTURES}");
            return fault(first, what);
        }
        // Each answer alone: all their combinations would be the same checks again and again.
        let plain = Soc { alternatives: BTreeMap::new(), ..soc.clone() };
        let choices: Vec<_> = of_part().map(|open| (open, open.choices())).collect();
        let keys = choices.iter().flat_map(|(_, all)| all).flat_map(|choice| choice.set.keys());
        let editor = match Editor::of(&plain, keys.map(String::as_str)) {
            Ok(editor) => editor,
            Err(error) => return fault(first, error.to_string()),
        };
        for (open, choices) in choices {
            for choice in choices.into_iter().filter(|choice| !choice.set.is_empty()) {
                let changes: Vec<(String, String)> = choice.set.into_iter().collect();
                if let Err(error) = editor.with(&changes) {
                    return fault(open, format!("option {:?}: {error}", choice.name));
                }
            }
        }
    }
    Ok(())
}

fn known<T>(what: &str, name: &Name, all: &BTreeMap<String, T>) -> Checked {
    if all.contains_key(name.as_str()) {
        return Ok(());
    }
    let names: Vec<&str> = all.keys().map(String::as_str).collect();
    let expected = if names.is_empty() { "none is described".into() } else { names.join(", ") };
    fault(name, format!("no {what} is named {:?}; expected one of: {expected}", name.as_str()))
}

fn cycles(soc: &Soc, cycles: &At<Cycles>) -> Checked {
    if soc.clocks.contains_key(&cycles.clock.0) {
        return Ok(());
    }
    let names: Vec<&str> = soc.clocks.keys().map(String::as_str).collect();
    fault(cycles, format!("no clock is named {:?}; expected one of: {}", cycles.clock.0, names.join(", ")))
}

fn positive(bytes: &At<Bytes>) -> Checked {
    if bytes.value() >= 1.0 { Ok(()) } else { fault(bytes, "expected at least 1 B") }
}

fn counted(count: &At<u32>, max: u32) -> Checked {
    if (1..=max).contains(&**count) { Ok(()) } else { fault(count, format!("expected 1 to {max}")) }
}

fn clock_frequency(soc: &Soc, name: &str, clock: &At<Clock>) -> Checked {
    for factor in [&clock.divide, &clock.multiply].into_iter().flatten() {
        counted(factor, MAX_FACTOR)?;
    }
    match (&clock.frequency, &clock.from) {
        (Some(_), None) if clock.divide.is_none() && clock.multiply.is_none() => {}
        (None, Some(from)) => known("clock", from, &soc.clocks)?,
        _ => {
            return fault(
                clock,
                format!("clock {name:?}: expected either frequency, or from with divide or multiply"),
            );
        }
    }
    match soc.frequency(name) {
        Some(frequency) if (Hertz::MIN..=Hertz::MAX).contains(&frequency.value()) => Ok(()),
        Some(frequency) => fault(clock, format!("clock {name:?} runs at {frequency}, which is absurd")),
        None => fault(
            clock.from.as_ref().map_or(&At::new(String::new()), |from| from),
            format!("clock {name:?} derives from itself; expected a chain that ends in a frequency"),
        ),
    }
}

fn endpoint(soc: &Soc, name: &str, memory: &At<Endpoint>) -> Checked {
    known("clock", &memory.clock, &soc.clocks)?;
    if let Some(fabric) = &memory.fabric {
        known("fabric", fabric, &soc.fabrics)?;
    }
    if !(1..=1024).contains(&memory.count) || !matches!(memory.transfers_per_cycle, 1 | 2 | 4) {
        return fault(
            memory,
            format!("endpoint {name:?}: expected count 1 to 1024 and transfers_per_cycle 1, 2 or 4"),
        );
    }
    for count in memory.banks.iter() {
        counted(count, 4096)?;
    }
    if let (Some(banks), EndpointKind::Sram) = (&memory.banks, memory.kind)
        && memory.bank_width.as_ref().is_none_or(|line| line.value() >= memory.width.value())
    {
        let what = format!(
            "endpoint {name:?}: static memory that is as narrow as a bank works on one access at a time; expected no \
             banks, or a bank_width below its width of {}",
            memory.width
        );
        return fault(banks, what);
    }
    if let (Some(line), EndpointKind::Dram) = (&memory.bank_width, memory.kind) {
        return fault(line, "expected no bank_width in dynamic memory, whose banks are as wide as its bus");
    }
    for size in [&memory.bank_width, &memory.max_read_response].into_iter().flatten() {
        positive(size)?;
    }
    for time in [&memory.read_latency, &memory.write_latency, &memory.access_overhead].into_iter().flatten() {
        cycles(soc, time)?;
    }
    if let Some(port) = &memory.port {
        known("clock", &port.clock, &soc.clocks)?;
        cycles(soc, &port.beat_overhead)?;
    }
    behind(soc, name, memory)?;
    match (&memory.dram, memory.kind) {
        (Some(dram), EndpointKind::Dram) => {
            for time in [
                &dram.queues,
                &dram.device,
                &dram.dma_wait,
                &dram.command,
                &dram.turnaround,
                &dram.rank_switch,
            ] {
                cycles(soc, time)?;
            }
            if let Some(time) = &dram.row_cycle {
                cycles(soc, time)?;
            }
            for size in [&dram.turnaround_every, &dram.page, &dram.rank_switch_every] {
                positive(size)?;
            }
            counted(&dram.ranks, 16)?;
            let share = dram.efficiency.value();
            if share > 0.0 && share <= 1.0 {
                Ok(())
            } else {
                fault(&dram.efficiency, "expected more than 0 % and at most 100 %")
            }
        }
        (None, EndpointKind::Sram) => Ok(()),
        (Some(dram), EndpointKind::Sram) => fault(dram, "expected no dram section in static memory"),
        (None, EndpointKind::Dram) => fault(memory, format!("endpoint {name:?}: expected a dram section")),
    }
}

fn behind(soc: &Soc, name: &str, memory: &Endpoint) -> Checked {
    let mut next = memory.behind.as_ref();
    for _ in 0..=soc.endpoints.len() {
        let Some(at) = next else { return Ok(()) };
        known("endpoint", at, &soc.endpoints)?;
        next = soc.endpoints.get(at.as_str()).and_then(|memory| memory.behind.as_ref());
    }
    match &memory.behind {
        Some(at) => fault(at, format!("endpoint {name:?} is behind itself; expected a chain that ends")),
        None => Ok(()),
    }
}

fn core_read(soc: &Soc, core: &Core, name: &str, read: &At<CoreRead>) -> Checked {
    let all = &core.reads;
    known("pipeline", &read.pipeline, &core.outstanding)?;
    for time in read.latency.iter() {
        cycles(soc, time)?;
    }
    for bridge in &read.bridges {
        known("bridge", bridge, &soc.bridges)?;
    }
    if let Some(memory) = &read.memory {
        known("endpoint", memory, &soc.endpoints)?;
        if soc.endpoints.get(memory.as_str()).is_none_or(|memory| memory.dram.is_none()) {
            return fault(memory, "expected an endpoint of kind dram");
        }
    }
    if let Some(through) = &read.through {
        known("source", through, all)?;
        if all.get(through.as_str()).is_none_or(|first| first.latency.is_none() || first.through.is_some()) {
            return fault(through, "expected a source with a latency of its own");
        }
    } else if read.latency.is_none() {
        return fault(read, format!("read of {name:?}: expected latency or through"));
    }
    Ok(())
}

/// The levels that a core's loads and stores go through, its translation and its loops.
fn levels(soc: &Soc, core: &At<Core>) -> Checked {
    for (name, level) in &core.levels {
        let Some(read) = core.reads.get(name) else {
            return fault(
                level,
                format!("no source {name:?} among the reads of its core; expected one with its latency"),
            );
        };
        if read.through.is_some() || read.memory.is_some() || !read.bridges.is_empty() {
            return fault(read, "expected a latency alone, as a level has this name");
        }
        for size in [&level.size, &level.fetch, &level.conflict].into_iter().flatten() {
            positive(size)?;
        }
        if let Some(uneven) = level.unevenness.as_ref().filter(|uneven| uneven.value() > 2.0) {
            return fault(uneven, "expected at most 200 %");
        }
        if let Some(ways) = level.ways.as_ref().filter(|ways| !(1..=1024).contains(&***ways)) {
            return fault(ways, "expected 1 to 1024 ways");
        }
        if level.ways.is_some() && (level.size.is_none() || level.unevenness.is_some()) {
            return fault(level, "expected ways with a size, and no unevenness beside them");
        }
        if level.size.is_none() && !level.write_allocate {
            return fault(
                level,
                "expected no write_allocate where there is no size: the memory behind all keeps what is stored",
            );
        }
        for time in [&level.per_line, &level.per_conflict] {
            cycles(soc, time)?;
        }
        if level.shared_by.is_some_and(|cores| !(1..=1024).contains(&cores)) {
            return fault(level, "expected a level that 1 to 1024 cores share");
        }
    }
    let unbounded = core.levels.values().filter(|level| level.size.is_none()).count();
    if !core.levels.is_empty() && unbounded != 1 {
        return fault(
            core,
            format!("{unbounded} levels without a size; expected one, the memory behind all"),
        );
    }
    for tlb in core.tlbs.values() {
        positive(&tlb.page)?;
        cycles(soc, &tlb.miss)?;
        known("pipeline", &tlb.pipeline, &core.outstanding)?;
        if !(1.0..=1e9).contains(&*tlb.entries) {
            return fault(&tlb.entries, "expected 1 to 1000000000 entries");
        }
        if let Some(uneven) = tlb.unevenness.as_ref().filter(|uneven| uneven.value() > 2.0) {
            return fault(uneven, "expected at most 200 %");
        }
    }
    match &core.loops {
        None if core.levels.is_empty() && core.tlbs.is_empty() => Ok(()),
        None => fault(core, "levels without loops; expected what the loops of the core cost"),
        Some(loops) if core.levels.is_empty() => {
            fault(loops, "loops without levels; expected the levels of the core")
        }
        Some(loops) => {
            for time in [&loops.read, &loops.fill, &loops.copy, &loops.element, &loops.wide_element] {
                cycles(soc, time)?;
            }
            for time in [&loops.gather, &loops.scatter, &loops.source_split, &loops.destination_split] {
                cycles(soc, time)?;
            }
            Ok(())
        }
    }
}

fn edma(soc: &Soc, controller: &At<EdmaController>) -> Checked {
    known("fabric", &controller.fabric, &soc.fabrics)?;
    known("clock", &controller.clock, &soc.clocks)?;
    cycles(soc, &controller.setup)?;
    if let Some(command) = &controller.command {
        cycles(soc, command)?;
    }
    for size in [&controller.default_burst, &controller.fifo] {
        positive(size)?;
    }
    for window in [&controller.outstanding_reads, &controller.outstanding_writes] {
        if window.value() < controller.default_burst.value() {
            return fault(window, "expected at least the default burst size, or no burst could be sent");
        }
    }
    if controller.fifo.value() < controller.default_burst.value() {
        return fault(&controller.fifo, "expected at least the default burst size");
    }
    if controller.transfer_controllers.is_empty() || controller.transfer_controllers.len() > 64 {
        return fault(controller, "expected 1 to 64 transfer controllers");
    }
    for tc in &controller.transfer_controllers {
        for bridge in &tc.bridges {
            known("bridge", bridge, &soc.bridges)?;
        }
    }
    Ok(())
}
