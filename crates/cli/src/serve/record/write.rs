//! Writes what was noted: the trace for Perfetto, the frames for Wireshark.

use super::live::Writer;
use super::{Event, Gauge, RecordError, Recording, Ring, Step, Trace};
use linerate_lab::trace::sheet::Sheet;
use linerate_wire::pcapng::{self, Packet};
use linerate_wire::trace::{Arrow, Counter, Mark, Span, Track, Value};
use linerate_wire::units::Instant;
use std::fmt::Display;
use std::io::{self, BufWriter, Write};
use std::sync::PoisonError;

impl Recording {
    /// Writes the files of what all threads have noted.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(self) -> Result<(), RecordError> {
        let mut whole = None;
        match self.trace {
            Some((path, Trace::Written(writer))) => {
                writer.finish().map_err(|why| RecordError { path, why })?;
            }
            Some((path, Trace::Ready(live))) => {
                let writer = Writer::start(*live, self.rings.clone()).and_then(Writer::finish);
                writer.map_err(|why| RecordError { path, why })?;
            }
            Some((path, Trace::Whole(file))) => whole = Some((path, file)),
            None => {}
        }
        let rings: Vec<_> =
            self.rings.iter().map(|ring| ring.lock().unwrap_or_else(PoisonError::into_inner)).collect();
        let rings: Vec<&Ring> = rings.iter().map(|ring| &**ring).collect();
        if let Some((path, file)) = whole {
            trace(&rings, BufWriter::new(file)).map_err(|why| RecordError { path, why })?;
        }
        if let Some((path, file)) = self.capture {
            capture(&rings, BufWriter::new(file)).map_err(|why| RecordError { path, why })?;
        }
        Ok(())
    }
}

/// Tracks of a thread.
#[derive(Debug)]
pub(super) struct Tracks {
    pub(super) group: u32,
    pub(super) turns: Track,
    pub(super) device: Track,
}

fn trace(rings: &[&Ring], out: impl Write) -> io::Result<()> {
    let mut sheet = Sheet::new(out)?;
    for (number, ring) in rings.iter().enumerate() {
        let group = sheet.group(&format!("thread {number}"))?;
        let tracks =
            Tracks { group, turns: sheet.track(group, "loop")?, device: sheet.track(group, "device")? };
        if ring.events_lost > 0 {
            let at = ring.events.front().map_or(Instant::ZERO, begin);
            let details = [("events", Value::Number(ring.events_lost))];
            let name = "older events are gone";
            sheet.put(&Mark { track: tracks.turns, name, at, details: &details })?;
        }
        for event in &ring.events {
            let mut result = Ok(());
            put(&mut |event| result = sheet.put(event), &tracks, event);
            result?;
        }
    }
    sheet.end()?;
    Ok(())
}

/// When it began.
pub(super) fn begin(event: &Event) -> Instant {
    match event {
        Event::Span { from, .. } => *from,
        Event::Level { at, .. } => *at,
    }
}

/// Hands an event to who writes it, in the trace's words.
pub(super) fn put(write: &mut dyn FnMut(&dyn Display), tracks: &Tracks, event: &Event) {
    match *event {
        Event::Span { step, from, to } => {
            let (track, name, frames) = match step {
                Step::Input => (tracks.turns, "input", None),
                Step::Serve => (tracks.turns, "servers and output", None),
                Step::Settle => (tracks.turns, "settle", None),
                Step::Sleep => (tracks.turns, "sleep", None),
                Step::Receive(frames) => (tracks.device, "receive", Some(frames)),
                Step::Send(frames) => (tracks.device, "send", Some(frames)),
            };
            let frames = frames.map(|frames| [("frames", Value::Number(frames.into()))]);
            let len_ns = to.as_nanos().saturating_sub(from.as_nanos());
            let details = frames.as_ref().map_or(&[][..], |details| details);
            write(&Span { track, name, at: from, len_ns, arrow: Arrow::None, details });
        }
        Event::Level { gauge, at, value } => {
            let of = |remote, what: &str| format!("{remote} {what}");
            let (name, unit) = match gauge {
                Gauge::Connections => ("connections".to_owned(), "open"),
                Gauge::Memory => ("memory".to_owned(), "bytes"),
                Gauge::Waiting => ("waiting for the device".to_owned(), "packets"),
                Gauge::Retransmits => ("retransmitted".to_owned(), "segments"),
                Gauge::Window(remote) => (of(remote, "congestion window"), "bytes"),
                Gauge::InFlight(remote) => (of(remote, "in flight"), "bytes"),
                Gauge::RoundTrip(remote) => (of(remote, "round trip"), "ns"),
            };
            write(&Counter { group: tracks.group, name: &name, unit, at, value });
        }
    }
}

fn capture(rings: &[&Ring], mut out: impl Write) -> io::Result<()> {
    let lost: u64 = rings.iter().map(|ring| ring.frames_lost).sum();
    let mut comment = String::from("linerate serve; times since the machine was started");
    if lost > 0 {
        comment.push_str(&format!("; {lost} older frames are gone"));
    }
    let mut head = Vec::new();
    pcapng::section(&comment, &mut |bytes| head.extend_from_slice(bytes));
    for (number, ring) in rings.iter().enumerate() {
        let name = format!("thread {number}");
        pcapng::interface(&name, ring.mac, 0, &mut |bytes| head.extend_from_slice(bytes));
    }
    out.write_all(&head)?;
    for (interface, ring) in (0..).zip(rings) {
        for frame in &ring.frames {
            let len = frame.bytes.len() as u32;
            let packet = Packet { interface, at: frame.at, seen: frame.seen, len, kept: len };
            out.write_all(&packet.head())?;
            out.write_all(&frame.bytes)?;
            let (tail, len) = packet.tail();
            out.write_all(&tail[..len])?;
        }
    }
    out.flush()
}
