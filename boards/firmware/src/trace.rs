//! The trace: what ran when, in a ring of fixed size, fetched as JSON that trace viewers read (`ui.perfetto.dev`).
//!
//! Events are noted when they have ended, with their length: whatever part of them the ring still holds is whole. Each
//! becomes a line of [`LINE`] bytes, so that any part of the file is made when it is asked for, and none is kept.

mod shared;

use crate::board::Task;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use linerate_transport::Bytes;
use linerate_wire::trace::{Arrow, BETWEEN, GroupName, HEAD, Span, TAIL, Track, TrackName, Value};
use linerate_wire::units::Instant;

pub use shared::Shared;

/// Bytes of an event in the ring.
pub const EVENT_LEN: usize = size_of::<Event>();
/// Bytes of its line in the file: JSON, spaces, and a new line.
pub const LINE: usize = 128;
/// The group of all tracks.
const MACHINE: u32 = 1;
/// The tracks of interrupts and of the driver; tasks have their own numbers, which are small.
const INTERRUPTS: u32 = 1_000;
const DRIVER: u32 = 1_001;

/// Where the trace is kept, and the clock: interrupts note events too, so this is the board's part.
pub trait Tracer: Sync {
    /// The time.
    fn now(&self) -> Instant;

    /// Whether events are noted.
    fn is_on(&self) -> bool;

    /// Begins anew, or ends.
    fn switch(&self, is_on: bool);

    /// Lets `work` at the ring; nobody else is at it meanwhile, so `work` is short.
    fn with(&self, work: &mut dyn FnMut(&mut Ring));
}

/// An interrupt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interrupt {
    /// That of the network interface.
    Ethernet,
    /// That of the timer which wakes the network task.
    Timer,
    /// That of the serial line.
    Serial,
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// The task with this number ran.
    Task(u16),
    /// An interrupt was handled.
    Interrupt(Interrupt),
    /// The driver took so many frames from the interface.
    Received(u16),
    /// The driver gave it so many packets.
    Sent(u16),
}

/// What happened, and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    at_ns: u64,
    len_ns: u32,
    what: What,
}

impl Event {
    /// What began and ended at these times.
    pub fn new(what: What, from: Instant, to: Instant) -> Self {
        let len = to.as_nanos().saturating_sub(from.as_nanos());
        Event { at_ns: from.as_nanos(), len_ns: u32::try_from(len).unwrap_or(u32::MAX), what }
    }
}

/// The last events.
#[derive(Debug)]
pub struct Ring {
    events: Vec<Event>,
    /// The place of the oldest, once the ring is full.
    next: usize,
    /// Events that went for newer ones.
    lost: u64,
    /// The task that runs, and since when.
    running: Option<(u16, Instant)>,
    /// Goes up when the trace is switched: an odd one is on.
    generation: u32,
}

impl Ring {
    /// A ring without room.
    pub const fn new() -> Self {
        Ring { events: Vec::new(), next: 0, lost: 0, running: None, generation: 0 }
    }

    /// A ring of so many bytes.
    pub fn with_bytes(bytes: usize) -> Self {
        Ring { events: Vec::with_capacity(bytes / EVENT_LEN), ..Ring::new() }
    }

    /// Whether it is on.
    pub fn is_on(&self) -> bool {
        self.generation % 2 == 1
    }

    /// Begins anew with an empty ring, or ends. Returns whether it is on: one without room never is.
    pub fn switch(&mut self, is_on: bool, now: Instant) -> bool {
        if is_on && self.room() > 0 {
            self.generation += if self.is_on() { 2 } else { 1 };
            self.events.clear();
            (self.next, self.lost, self.running) = (0, 0, None);
        } else if self.is_on() {
            self.end_task(now);
            self.generation += 1;
        }
        self.is_on()
    }

    /// Notes an event.
    pub fn push(&mut self, event: Event) {
        if !self.is_on() {
            return;
        }
        if self.events.len() < self.room() {
            self.events.push(event);
            return;
        }
        self.events[self.next] = event;
        self.next = (self.next + 1) % self.events.len();
        self.lost += 1;
    }

    /// The processor goes over to a task.
    pub fn run_task(&mut self, task: u16, now: Instant) {
        if self.running.is_none_or(|(running, _)| running != task) {
            self.end_task(now);
            self.running = Some((task, now));
        }
    }

    fn end_task(&mut self, now: Instant) {
        if let Some((task, since)) = self.running.take() {
            self.push(Event::new(What::Task(task), since, now));
        }
    }

    /// Events that there is room for.
    pub fn room(&self) -> usize {
        self.events.capacity()
    }

    /// Events in it.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// An event, counted from the oldest.
    fn at(&self, index: usize) -> Option<Event> {
        let place = (self.next + index) % self.events.len().max(1);
        self.events.get(place).copied().filter(|_| index < self.events.len())
    }
}

impl Default for Ring {
    fn default() -> Self {
        Ring::new()
    }
}

/// What `trace status` says.
pub(crate) fn status(tracer: &dyn Tracer) -> String {
    let mut text = String::new();
    let (mut len, mut room, mut lost) = (0, 0, 0);
    tracer.with(&mut |ring| (len, room, lost) = (ring.len(), ring.room(), ring.lost));
    let is_on = if tracer.is_on() { "on" } else { "off" };
    // Writing to a String does not fail.
    let _fits = writeln!(text, "trace {is_on}, {len} events of {room}, {lost} older ones overwritten");
    text
}

/// What stands before the events: the names of the tracks.
pub(crate) fn head(machine: &str, tasks: &[Task]) -> String {
    let mut text = String::from(HEAD);
    let mut add = |name: &dyn core::fmt::Display| {
        let line = write!(text, "{name}{BETWEEN}");
        debug_assert!(line.is_ok(), "writing to a String does not fail");
    };
    add(&GroupName(MACHINE, machine));
    for task in tasks {
        add(&TrackName(track(task.number), &task.name));
    }
    add(&TrackName(track(INTERRUPTS), "interrupts"));
    add(&TrackName(track(DRIVER), "driver"));
    text
}

/// The file of a trace that has ended.
#[derive(Clone, Debug)]
pub(crate) struct File {
    head: Bytes,
    events: usize,
    generation: u32,
}

impl File {
    /// The trace as it is, under this head.
    pub(crate) fn new(tracer: &dyn Tracer, head: Bytes) -> Self {
        let mut file = File { head, events: 0, generation: 0 };
        tracer.with(&mut |ring| (file.events, file.generation) = (ring.len(), ring.generation));
        file
    }

    /// Which trace it is.
    pub(crate) fn generation(&self) -> u32 {
        self.generation
    }

    /// Its length in bytes.
    pub(crate) fn len(&self) -> u64 {
        (self.head.len() + TAIL.len()) as u64 + self.events as u64 * LINE as u64
    }

    /// A part of it; `None` when the trace was switched on again meanwhile.
    pub(crate) fn read(&self, tracer: &dyn Tracer, offset: u64, len: usize) -> Option<Vec<u8>> {
        let from = offset.min(self.len());
        let to = from.saturating_add(len as u64).min(self.len());
        let mut out = Vec::with_capacity((to - from) as usize);
        let mut at = from;
        while at < to {
            let before = out.len();
            let limit = (to - at) as usize;
            let lines = self.head.len() as u64;
            let end = lines + self.events as u64 * LINE as u64;
            let part = |bytes: &[u8], skip: u64, out: &mut Vec<u8>| {
                let bytes = &bytes[skip as usize..];
                out.extend_from_slice(&bytes[..bytes.len().min(limit)]);
            };
            if at < lines {
                part(&self.head, at, &mut out);
            } else if at >= end {
                part(TAIL.as_bytes(), at - end, &mut out);
            } else {
                let index = ((at - lines) / LINE as u64) as usize;
                let mut event = None;
                tracer.with(&mut |ring| {
                    event = (ring.generation == self.generation).then(|| ring.at(index)).flatten();
                });
                part(&line(event?), (at - lines) % LINE as u64, &mut out);
            }
            at += (out.len() - before) as u64;
        }
        Some(out)
    }
}

/// A track of the only machine.
fn track(number: u32) -> Track {
    Track { group: MACHINE, number }
}

/// The line of an event.
fn line(event: Event) -> [u8; LINE] {
    let (name, number, frames) = match event.what {
        What::Task(task) => ("runs", task.into(), None),
        What::Interrupt(Interrupt::Ethernet) => ("ethernet", INTERRUPTS, None),
        What::Interrupt(Interrupt::Timer) => ("timer", INTERRUPTS, None),
        What::Interrupt(Interrupt::Serial) => ("serial line", INTERRUPTS, None),
        What::Received(frames) => ("receive", DRIVER, Some(frames)),
        What::Sent(frames) => ("send", DRIVER, Some(frames)),
    };
    let frames = frames.map(|frames: u16| [("frames", Value::Number(frames.into()))]);
    let span = Span {
        track: track(number),
        name,
        at: Instant::from_nanos(event.at_ns),
        len_ns: event.len_ns.into(),
        arrow: Arrow::None,
        details: frames.as_ref().map_or(&[], |details| details),
    };
    let mut line = Line { bytes: [b' '; LINE], len: 0 };
    // The line's own end stands at its last byte, behind spaces.
    let written = write!(line, "{span},");
    debug_assert!(written.is_ok(), "a line is too short for {event:?}");
    line.bytes[LINE - 1] = b'\n';
    line.bytes
}

/// A line that is written.
struct Line {
    bytes: [u8; LINE],
    len: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        // The last byte is that of the new line.
        let to = self.bytes[..LINE - 1].get_mut(self.len..self.len + text.len()).ok_or(core::fmt::Error)?;
        to.copy_from_slice(text.as_bytes());
        self.len += text.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
