//! The trace of a run in the simulator: what its journal and its samples say, in virtual time.

use super::sheet::Sheet;
use crate::scenario::build::{Flow, Setup};
use crate::scenario::file::Side;
use linerate_sim::journal::{Drop, Entry, Load, Part, SegmentId, What};
use linerate_sim::{CpuTimes, FlowSample, HostId, Instant};
use linerate_wire::tcp::Flags;
use linerate_wire::trace::{Arrow, Counter, Mark, Span, Track, Value};
use linerate_wire::units::nanos;
use std::collections::HashMap;
use std::io::{self, Write};

/// Entries of the journal that are usually kept: the last ones, 64 bytes each.
pub const ENTRIES: usize = 1 << 20;
/// Samples of windows and round-trip times in the whole duration.
const SAMPLES: u32 = 2_000;

/// Lets a world that has not begun to run keep what a trace is made of: so many entries of its journal at most.
pub fn keep(setup: &mut Setup, entries: usize) {
    setup.world.keep_journal(entries);
    setup.world.record(Some((setup.duration / SAMPLES).max(std::time::Duration::from_micros(1))));
}

/// What was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Written {
    /// Names and events.
    pub lines: u64,
    /// Older events that the journal had no room for.
    pub lost: u64,
}

/// Writes the trace of a world that has run.
///
/// # Errors
///
/// What `out` says.
pub fn write(setup: &Setup, out: impl Write) -> io::Result<Written> {
    let (entries, lost) = setup.world.journal();
    let mut scribe = Scribe {
        sheet: Sheet::new(out)?,
        hosts: HashMap::new(),
        paths: HashMap::new(),
        tracks: HashMap::new(),
        under_way: HashMap::new(),
    };
    for side in [Side::Client, Side::Server] {
        scribe.name(setup, *setup.hosts.of(side), side)?;
    }
    if let Some(first) = entries.first().filter(|_| lost > 0) {
        scribe.tell_lost(first, lost)?;
    }
    for entry in &entries {
        scribe.entry(entry)?;
    }
    for (index, flow) in setup.flows.iter().enumerate() {
        scribe.flow(setup, index, flow)?;
    }
    Ok(Written { lines: scribe.sheet.end()?, lost })
}

/// A figure of a sample.
type Figure = fn(&FlowSample) -> Option<u64>;

/// Where the events of a host are drawn.
#[derive(Clone, Copy)]
struct HostTracks {
    group: u32,
    sent: Track,
    received: Track,
}

/// Where the events of a path are drawn.
#[derive(Clone, Copy)]
struct PathTracks {
    group: u32,
    wire: Track,
    drops: Track,
}

/// Tracks of a core.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum OfCore {
    Turns,
    Interrupts,
}

struct Scribe<W> {
    sheet: Sheet<W>,
    hosts: HashMap<linerate_sim::NodeId, HostTracks>,
    paths: HashMap<linerate_sim::NodeId, PathTracks>,
    tracks: HashMap<(linerate_sim::NodeId, u16, OfCore), Track>,
    /// Segments that have been sent, and what they carry.
    under_way: HashMap<SegmentId, Load>,
}

impl<W: Write> Scribe<W> {
    /// Names the groups and tracks of a host and of what it sends into.
    fn name(&mut self, setup: &Setup, host: HostId, side: Side) -> io::Result<()> {
        let group = self.sheet.group(side.name())?;
        for (queue, _) in (0..).zip(setup.world.host(host).cores()) {
            for (of, name) in [(OfCore::Turns, "core"), (OfCore::Interrupts, "interrupts of queue")] {
                let track = self.sheet.track(group, &format!("{name} {queue}"))?;
                self.tracks.insert((host.into(), queue, of), track);
            }
        }
        let sent = self.sheet.track(group, "sent")?;
        let received = self.sheet.track(group, "received")?;
        self.hosts.insert(host.into(), HostTracks { group, sent, received });
        let group = self.sheet.group(&format!("path from {}", side.name()))?;
        let wire = self.sheet.track(group, "on the wire")?;
        let drops = self.sheet.track(group, "dropped")?;
        self.paths.insert(host.into(), PathTracks { group, wire, drops });
        Ok(())
    }

    /// Says where the trace begins if it does not begin with the run.
    fn tell_lost(&mut self, first: &Entry, lost: u64) -> io::Result<()> {
        let group = self.sheet.group("trace")?;
        let track = self.sheet.track(group, "room")?;
        let details = [("events", Value::Number(lost))];
        self.sheet.put(&Mark { track, name: "older events are gone", at: first.at, details: &details })
    }

    fn entry(&mut self, entry: &Entry) -> io::Result<()> {
        match entry.part {
            Part::Interface => self.interface(entry),
            Part::Core(queue) => self.core(entry, queue),
            Part::Up => self.path(entry),
            // Between two hosts this way is never used.
            Part::Down => Ok(()),
        }
    }

    fn interface(&mut self, entry: &Entry) -> io::Result<()> {
        let Some(tracks) = self.hosts.get(&entry.node).copied() else { return Ok(()) };
        match entry.what {
            What::Sent { segment, from, len, load } => {
                self.under_way.insert(segment, load);
                let arrow = Arrow::First(segment.0);
                self.segment(tracks.sent, Some(load), [from, entry.at], len, arrow)
            }
            What::Received { segment, len } => {
                let load = self.under_way.remove(&segment);
                let arrow = if load.is_some() { Arrow::Last(segment.0) } else { Arrow::None };
                self.segment(tracks.received, load, [entry.at, entry.at], len, arrow)
            }
            _ => Ok(()),
        }
    }

    fn path(&mut self, entry: &Entry) -> io::Result<()> {
        let Some(tracks) = self.paths.get(&entry.node).copied() else { return Ok(()) };
        match entry.what {
            What::OnWire { segment, from, len } => {
                let load = self.under_way.get(&segment).copied();
                let arrow = if load.is_some() { Arrow::Middle(segment.0) } else { Arrow::None };
                self.segment(tracks.wire, load, [from, entry.at], len, arrow)
            }
            What::Queue { segments, bytes } => {
                self.counter(tracks.group, ["queue", "segments"], entry.at, segments.into())?;
                self.counter(tracks.group, ["queue", "bytes"], entry.at, bytes)
            }
            What::Dropped { segment, why } => self.drop(tracks.drops, entry.at, segment, why),
            _ => Ok(()),
        }
    }

    fn core(&mut self, entry: &Entry, queue: u16) -> io::Result<()> {
        let (node, at) = (entry.node, entry.at);
        let Some(tracks) = self.hosts.get(&node).copied() else { return Ok(()) };
        let of = |scribe: &Self, of| scribe.tracks.get(&(node, queue, of)).copied();
        match entry.what {
            What::Turn { cost, packets } => match of(self, OfCore::Turns) {
                Some(track) => self.turn(track, at, cost, packets),
                None => Ok(()),
            },
            What::Interrupt(segments) => match of(self, OfCore::Interrupts) {
                Some(track) => {
                    let details = [("segments", Value::Number(segments))];
                    self.sheet.put(&Mark { track, name: "interrupt", at, details: &details })
                }
                None => Ok(()),
            },
            What::TransmitRing(packets) => {
                let name = format!("transmit ring {queue}");
                self.counter(tracks.group, [&name, "packets"], at, packets.into())
            }
            What::ReceiveRing(frames) => {
                let name = format!("receive ring {queue}");
                self.counter(tracks.group, [&name, "frames"], at, frames.into())
            }
            What::Dropped { segment, why } => self.drop(tracks.received, at, segment, why),
            _ => Ok(()),
        }
    }

    /// A turn of the loop, and in it what the processor's time went to.
    fn turn(&mut self, track: Track, at: Instant, cost: CpuTimes, packets: u64) -> io::Result<()> {
        let details = [("packets", Value::Number(packets))];
        let len_ns = nanos(cost.total());
        let whole = Span { track, name: "turn", at, len_ns, arrow: Arrow::None, details: &details };
        self.sheet.put(&whole)?;
        let mut at = at;
        for (name, time) in cost.parts() {
            if !time.is_zero() {
                self.sheet.put(&Span { name, at, len_ns: nanos(time), details: &[], ..whole })?;
                at += time;
            }
        }
        Ok(())
    }

    /// A segment at one of its stations.
    fn segment(
        &mut self,
        track: Track,
        load: Option<Load>,
        [from, to]: [Instant; 2],
        len: u32,
        arrow: Arrow,
    ) -> io::Result<()> {
        let mut details = vec![("bytes", Value::Number(len.into()))];
        if let Some(Load::Tcp { sequence, payload, .. }) = load {
            details.push(("sequence", Value::Number(sequence.into())));
            details.push(("payload", Value::Number(payload.into())));
        }
        let len_ns = nanos(to - from);
        self.sheet.put(&Span { track, name: name_of(load), at: from, len_ns, arrow, details: &details })
    }

    fn drop(&mut self, track: Track, at: Instant, segment: Option<SegmentId>, why: Drop) -> io::Result<()> {
        let load = segment.and_then(|segment| self.under_way.remove(&segment));
        let name = match why {
            Drop::Lost => "lost on the way",
            Drop::QueueFull => "the queue is full",
            Drop::Codel => "dropped by CoDel",
            Drop::TooLong => "too long for the path",
            Drop::RingFull => "the receive ring is full",
            Drop::NoBuffer => "no receive buffer",
        };
        let details = [("segment", Value::Text(name_of(load)))];
        self.sheet.put(&Mark { track, name, at, details: &details })
    }

    fn counter(&mut self, group: u32, [name, unit]: [&str; 2], at: Instant, value: u64) -> io::Result<()> {
        self.sheet.put(&Counter { group, name, unit, at, value })
    }

    /// Windows and round-trip times of the sending end of a flow.
    fn flow(&mut self, setup: &Setup, index: usize, flow: &Flow) -> io::Result<()> {
        let samples = setup.world.samples(flow.id);
        let samples = if flow.from == flow.opens { samples.client } else { samples.server };
        let (from, to) = (flow.from.name(), flow.from.other().name());
        let group = self.sheet.group(&format!("flow {}, {from} to {to}", index + 1))?;
        let figures: [(_, Figure); 4] = [
            (["congestion window", "bytes"], |sample| Some(sample.congestion_window.into())),
            (["in flight", "bytes"], |sample| Some(sample.in_flight.into())),
            (["round trip", "ns"], |sample| sample.rtt.map(nanos)),
            (["retransmitted", "segments"], |sample| Some(sample.retransmits)),
        ];
        for (name, figure) in figures {
            for sample in &samples {
                if let Some(value) = figure(sample) {
                    self.counter(group, name, sample.at, value)?;
                }
            }
        }
        Ok(())
    }
}

/// What a segment is called.
fn name_of(load: Option<Load>) -> &'static str {
    let Some(Load::Tcp { payload, flags, .. }) = load else { return "frame" };
    let has = |flag: Flags| flags & flag.0 != 0;
    match payload {
        _ if has(Flags::RST) => "RST",
        _ if has(Flags::SYN) => "SYN",
        _ if has(Flags::FIN) => "FIN",
        0 => "ACK",
        _ => "data",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{build, load, watch};
    use serde_json::Value as Json;

    /// A short run.
    const RUN: &str = "[world]\nduration = \"20 ms\"\n[link]\nrate = \"100 Mbit/s\"\nloss = \"1 %\"\n";

    /// The trace of a run of which so many entries are kept, and what was written.
    fn trace(text: &str, entries: usize) -> (Vec<Json>, Written) {
        let scenario = load::parse(text).unwrap();
        let mut setup = build::build(&scenario, None);
        keep(&mut setup, entries);
        watch(&mut setup, &scenario);
        let mut out = Vec::new();
        let written = write(&setup, &mut out).unwrap();
        let json: Json = serde_json::from_slice(&out).unwrap();
        (json["traceEvents"].as_array().unwrap().clone(), written)
    }

    #[test]
    fn a_trace_is_bounded_and_says_what_is_gone() {
        let (whole, all) = trace(RUN, ENTRIES);
        let (last, cut) = trace(RUN, 100);
        assert_eq!((all.lost, cut.lost > 0), (0, true));
        // Each entry is two lines at most where processors take no time; names and samples come on top.
        let of_flow = |event: &&Json| event["ph"] == "C" && event["pid"].as_u64() > Some(4);
        let samples = whole.iter().filter(of_flow).count();
        assert!(last.len() <= 200 + samples + 20, "{} lines, {samples} of samples", last.len());
        let mark = last.iter().find(|event| event["name"] == "older events are gone").unwrap();
        assert_eq!(mark["args"]["events"], cut.lost);
        assert!(!whole.iter().any(|event| event["name"] == "older events are gone"));
        // What is kept is the end.
        let first = |events: &[Json], name: &str| {
            let spans = events.iter().filter(|event| event["ph"] == "X" && event["name"] == name);
            spans.map(|event| event["ts"].as_f64().unwrap()).fold(f64::INFINITY, f64::min)
        };
        assert!(first(&last, "data") > first(&whole, "data"));
    }

    #[test]
    fn what_a_turn_went_to_adds_up_to_it() {
        let processor = "processor = { packet = \"1 us\", kilobyte = \"700 ns\", checksum = \"900 ns\", interrupt = \"2 us\", \
                         call = \"300 ns\", give-way = \"400 ns\", copy = \"500 ns\" }\noffload = \"none\"\n";
        let flow = "[[flow]]\nwriter = { calls = \"512 B\", gives-way = true }\n";
        let (events, _) = trace(&format!("{RUN}[client]\n{processor}[server]\n{processor}{flow}"), ENTRIES);
        let parts = CpuTimes::default().parts().map(|(name, _)| name);
        let mut all = [0.0; 7];
        // Each turn in microseconds, and what of it its parts, which follow it, make up.
        let mut turns: Vec<[f64; 2]> = Vec::new();
        for event in events.iter().filter(|event| event["ph"] == "X") {
            let dur = event["dur"].as_f64().unwrap();
            if event["name"] == "turn" {
                turns.push([dur, 0.0]);
            } else if let Some(part) = parts.iter().position(|name| event["name"] == *name) {
                turns.last_mut().unwrap()[1] += dur;
                all[part] += dur;
            }
        }
        assert!(all.iter().all(|time| *time > 0.0), "{parts:?}: {all:?} us");
        for [turn, of_parts] in turns {
            assert!((turn - of_parts).abs() < 1e-6, "{of_parts} of {turn} us");
        }
    }
}
