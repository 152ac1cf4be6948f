//! Traces as JSON that trace viewers read (the Trace Event Format; `ui.perfetto.dev`): what ran when, on tracks, and counters.
//!
//! Only written, not read. An event is a line of text; a file is [`HEAD`], names and events in any order, each with
//! [`BETWEEN`] behind it, and [`TAIL`]. So a file can be made piece by piece, and of any part of the events.
//!
//! Times are in nanoseconds and exact for viewers up to three months: they read microseconds with a fraction as numbers of 53
//! bits. The clock is the writer's own, so a capture ([`pcapng`](crate::pcapng)) with the same clock has the same times.

use crate::units::Instant;
use core::fmt::{Display, Formatter, Result, Write};

/// What a file begins with.
pub const HEAD: &str = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
/// What stands behind each line of names and events.
pub const BETWEEN: &str = ",\n";
/// What a file ends with: a last event that says nothing, as there may be no comma behind it.
pub const TAIL: &str =
    "{\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":1,\"args\":{\"sort_index\":0}}\n]}\n";

/// Where events are drawn: a track of a group. Viewers call a group a process and a track a thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Track {
    /// The group, from 1: a machine, a host.
    pub group: u32,
    /// The track in it, from 1: a task, a processor, a direction of a cable.
    pub number: u32,
}

/// The name of a group, and its place among the others.
#[derive(Clone, Copy, Debug)]
pub struct GroupName<'a>(pub u32, pub &'a str);

/// The name of a track.
#[derive(Clone, Copy, Debug)]
pub struct TrackName<'a>(pub Track, pub &'a str);

impl Display for GroupName<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let GroupName(group, name) = self;
        write!(
            f,
            "{{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":{group},\"args\":{{\"name\":{}}}}}",
            Text(name)
        )
    }
}

impl Display for TrackName<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let TrackName(Track { group, number }, name) = self;
        write!(
            f,
            "{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":{group},\"tid\":{number},\"args\":{{\"name\":{}}}}}",
            Text(name)
        )
    }
}

/// A value of an event's details.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value<'a> {
    /// A number.
    Number(u64),
    /// A text.
    Text(&'a str),
}

impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Value::Number(number)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::Text(text)
    }
}

/// Details of an event: names and values.
pub type Details<'a> = &'a [(&'a str, Value<'a>)];

/// Something that took time. Spans of a track follow each other or lie in each other; they do not overlap by halves.
#[derive(Clone, Copy, Debug)]
pub struct Span<'a> {
    /// Where it is drawn.
    pub track: Track,
    /// What it is.
    pub name: &'a str,
    /// When it began.
    pub at: Instant,
    /// How long it took, in ns.
    pub len_ns: u64,
    /// Arrows between spans with the same number.
    pub arrow: Arrow,
    /// What else is known.
    pub details: Details<'a>,
}

/// The arrows that lead from span to span of the same thing at several places, in the order of their times.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Arrow {
    /// None.
    #[default]
    None,
    /// One begins here.
    First(u64),
    /// One comes in and another leaves.
    Middle(u64),
    /// One ends here.
    Last(u64),
}

impl Display for Span<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let (name, Track { group, number }) = (Text(self.name), self.track);
        let (at, len) = (Micros(self.at.as_nanos()), Micros(self.len_ns));
        write!(
            f,
            "{{\"name\":{name},\"ph\":\"X\",\"pid\":{group},\"tid\":{number},\"ts\":{at},\"dur\":{len}"
        )?;
        match self.arrow {
            Arrow::None => {}
            Arrow::First(id) => write!(f, ",\"bind_id\":\"{id:#x}\",\"flow_out\":true")?,
            Arrow::Middle(id) => write!(f, ",\"bind_id\":\"{id:#x}\",\"flow_in\":true,\"flow_out\":true")?,
            Arrow::Last(id) => write!(f, ",\"bind_id\":\"{id:#x}\",\"flow_in\":true")?,
        }
        details(f, self.details)?;
        f.write_char('}')
    }
}

/// Something that happened at one time.
#[derive(Clone, Copy, Debug)]
pub struct Mark<'a> {
    /// Where it is drawn.
    pub track: Track,
    /// What it is.
    pub name: &'a str,
    /// When.
    pub at: Instant,
    /// What else is known.
    pub details: Details<'a>,
}

impl Display for Mark<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let (name, Track { group, number }, at) = (Text(self.name), self.track, Micros(self.at.as_nanos()));
        write!(f, "{{\"name\":{name},\"ph\":\"i\",\"s\":\"t\",\"pid\":{group},\"tid\":{number},\"ts\":{at}")?;
        details(f, self.details)?;
        f.write_char('}')
    }
}

/// A counter has this value from a time on. Counters of a group are told apart by their names.
#[derive(Clone, Copy, Debug)]
pub struct Counter<'a> {
    /// The group.
    pub group: u32,
    /// What is counted.
    pub name: &'a str,
    /// In which unit: viewers show it behind the name.
    pub unit: &'a str,
    /// From when on.
    pub at: Instant,
    /// How much there is.
    pub value: u64,
}

impl Display for Counter<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Counter { group, value, .. } = self;
        let (name, unit, at) = (Text(self.name), Text(self.unit), Micros(self.at.as_nanos()));
        write!(f, "{{\"name\":{name},\"ph\":\"C\",\"pid\":{group},\"ts\":{at},\"args\":{{{unit}:{value}}}}}")
    }
}

fn details(f: &mut Formatter<'_>, details: Details<'_>) -> Result {
    for (index, (name, value)) in details.iter().enumerate() {
        f.write_str(if index == 0 { ",\"args\":{" } else { "," })?;
        match value {
            Value::Number(number) => write!(f, "{}:{number}", Text(name))?,
            Value::Text(text) => write!(f, "{}:{}", Text(name), Text(text))?,
        }
    }
    if details.is_empty() { Ok(()) } else { f.write_char('}') }
}

/// Nanoseconds as microseconds.
struct Micros(u64);

impl Display for Micros {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}.{:03}", self.0 / 1_000, self.0 % 1_000)
    }
}

/// A string of JSON (RFC 8259 section 7).
struct Text<'a>(&'a str);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_char('"')?;
        for letter in self.0.chars() {
            match letter {
                '"' | '\\' => write!(f, "\\{letter}")?,
                control if control < ' ' => write!(f, "\\u{:04x}", u32::from(control))?,
                plain => f.write_char(plain)?,
            }
        }
        f.write_char('"')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    extern crate std;
    use std::string::ToString;

    const TRACK: Track = Track { group: 2, number: 7 };

    #[test]
    fn events_are_lines_of_json() {
        let check = |event: &dyn Display, expected: &str| assert_eq!(event.to_string(), expected);
        let at = Instant::from_nanos(1_234_005);
        check(
            &GroupName(2, "cl\"i\\ent\n"),
            r#"{"name":"process_name","ph":"M","pid":2,"args":{"name":"cl\"i\\ent\u000a"}}"#,
        );
        check(
            &TrackName(TRACK, "core 0"),
            r#"{"name":"thread_name","ph":"M","pid":2,"tid":7,"args":{"name":"core 0"}}"#,
        );
        let span = Span { track: TRACK, name: "turn", at, len_ns: 1_002, arrow: Arrow::None, details: &[] };
        check(&span, r#"{"name":"turn","ph":"X","pid":2,"tid":7,"ts":1234.005,"dur":1.002}"#);
        let details: Details<'_> = &[("frames", Value::Number(3)), ("why", Value::Text("full"))];
        check(
            &Span { arrow: Arrow::Middle(31), details, ..span },
            r#"{"name":"turn","ph":"X","pid":2,"tid":7,"ts":1234.005,"dur":1.002,"bind_id":"0x1f","flow_in":true,"flow_out":true,"args":{"frames":3,"why":"full"}}"#,
        );
        check(
            &Mark { track: TRACK, name: "drop", at, details: &details[..1] },
            r#"{"name":"drop","ph":"i","s":"t","pid":2,"tid":7,"ts":1234.005,"args":{"frames":3}}"#,
        );
        check(
            &Counter { group: 2, name: "queue", unit: "bytes", at, value: 9 },
            r#"{"name":"queue","ph":"C","pid":2,"ts":1234.005,"args":{"bytes":9}}"#,
        );
    }
}
