//! What limited the transfers in a capture, and how one knows.
//!
//! Frames ([`reader`]) become segments ([`segment`]), each once ([`copies`]), which belong to a connection at an interface ([`flow`], [`table`]). Each direction is
//! followed twice: as packets on a wire ([`wire`]), and as the sender that they show ([`sender`]). What is counted of it becomes
//! evidence ([`evidence`]), and that a verdict ([`verdict`]).

pub mod cause;
pub mod connection;
pub mod copies;
pub mod counts;
pub mod dispersion;
pub mod echo;
pub mod ending;
pub mod error;
pub mod evidence;
pub mod flow;
pub mod half;
pub mod histogram;
pub mod packets;
pub mod page;
pub mod passing;
pub mod picture;
pub mod places;
pub mod reader;
pub mod refill;
pub mod scale;
pub mod segment;
pub mod sender;
pub mod sequence;
pub mod sketch;
pub mod table;
pub mod text;
pub mod timeline;
pub mod truth;
pub mod turn;
pub mod verdict;
pub mod wait;
pub mod wire;
pub mod wireshark;

#[cfg(test)]
mod tests;

use connection::Connection;
use error::ExplainError;
use segment::Held;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Read;
use table::Table;

/// What a capture tells.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Analysis {
    /// Frames of the file.
    pub frames: u64,
    /// TCP segments, whole or cut.
    pub segments: u64,
    /// Fragments of TCP segments, which are left out.
    pub fragments: u64,
    /// Frames of other protocols.
    pub other: u64,
    /// Frames that are not what they say, or were cut before the TCP header's end.
    pub unreadable: u64,
    /// Frames of link types that are not known, by their number.
    pub unknown_links: BTreeMap<u32, u64>,
    /// Frames that are older than the one before them at the same interface.
    pub backwards: u64,
    /// Segments of connections for which there was no room.
    pub left_out: u64,
    /// Interfaces that count time in steps of more than 10 us, and how long the steps are in nanoseconds.
    pub coarse: BTreeMap<String, u64>,
    /// From the first frame to the last, in seconds.
    pub time_s: f64,
    /// Where the file ends within a block, if it does.
    pub ends_within: Option<u64>,
    /// Names of the interfaces.
    pub interfaces: Vec<String>,
    /// Events by Wireshark's rules, of all connections and interfaces.
    pub wireshark: wireshark::Counts,
    /// The connections, the one with the most bytes first.
    pub connections: Vec<Connection>,
}

/// Longest step of a capture's clock that is not worth a note, in nanoseconds.
const FINE_NS: u64 = 10_000;

/// What the times of a capture are like.
#[derive(Default)]
struct Clock {
    /// The newest time at each interface, in nanoseconds.
    newest_ns: BTreeMap<usize, u64>,
    /// The least and the largest.
    span_ns: Option<(u64, u64)>,
    backwards: u64,
}

impl Clock {
    fn take(&mut self, frame: &reader::Frame<'_>) {
        let newest_ns = self.newest_ns.entry(frame.interface).or_default();
        self.backwards += u64::from(frame.at_ns < *newest_ns);
        *newest_ns = frame.at_ns.max(*newest_ns);
        let (first_ns, last_ns) = self.span_ns.unwrap_or((frame.at_ns, frame.at_ns));
        self.span_ns = Some((first_ns.min(frame.at_ns), last_ns.max(frame.at_ns)));
    }
}

/// Reads a capture, pcap or pcapng, and explains each of its TCP connections.
///
/// # Errors
///
/// The bytes are no capture, or a broken one; the error says where.
pub fn analyse(reader: impl Read) -> Result<Analysis, ExplainError> {
    let mut analysis = Analysis::default();
    let (mut table, mut copies) = (Table::default(), copies::Copies::default());
    let mut clock = Clock::default();
    let mut places = places::Places::default();
    let mut contents = reader::frames(reader, &mut |frame| {
        analysis.frames += 1;
        clock.take(frame);
        match segment::held(frame) {
            Held::Segment(segment) => {
                analysis.segments += 1;
                copies.take(places.of(frame), *segment, &mut table);
            }
            Held::Fragment => analysis.fragments += 1,
            Held::Other => analysis.other += 1,
            Held::Unreadable => analysis.unreadable += 1,
            Held::UnknownLink(link) => *analysis.unknown_links.entry(link).or_default() += 1,
        }
    })?;
    copies.finish(&mut table);
    table.finish();
    analysis.backwards = clock.backwards;
    analysis.time_s = clock.span_ns.map_or(0.0, |(first_ns, last_ns)| (last_ns - first_ns) as f64 / 1e9);
    analysis.left_out = table.left_out;
    analysis.ends_within = contents.ends_within;
    let steps =
        contents.interfaces.iter().map(|one| (one.name.clone(), 1_000_000_000 / one.per_second.max(1)));
    analysis.coarse = steps.filter(|(_, step_ns)| *step_ns > FINE_NS).collect();
    places.settle(&mut table, &mut contents.interfaces);
    analysis.interfaces = contents.interfaces.into_iter().map(|interface| interface.name).collect();
    analysis.connections = connection::connections(table.views, clock.span_ns.map_or(0, |span_ns| span_ns.1));
    for connection in &analysis.connections {
        analysis.wireshark += connection.wireshark;
    }
    Ok(analysis)
}

impl Analysis {
    /// What the reader of a capture should know of it, in sentences.
    pub fn notes(&self) -> Vec<String> {
        let count = crate::quantity::count;
        let mut notes = Vec::new();
        if let Some(offset) = self.ends_within {
            notes.push(format!(
                "the file ends within a packet, at byte {offset}: what comes before it was read"
            ));
        }
        if self.segments > 1 && self.time_s == 0.0 {
            notes.push("all frames have the same time: what needs times cannot be told".to_owned());
        }
        if self.backwards > 0 {
            notes.push(format!(
                "{} frames are older than the one before them: if the file is out of order, sort it first (reordercap)",
                count(self.backwards)
            ));
        }
        for (name, step_ns) in &self.coarse {
            let step = crate::quantity::span(std::time::Duration::from_nanos(*step_ns));
            notes.push(format!("{name} counts time in steps of {step}: what is shorter looks like nothing"));
        }
        if self.left_out > 0 {
            notes.push(format!(
                "{} segments belong to further connections, for which there was no room: {} are kept",
                count(self.left_out),
                count(table::MAX_VIEWS as u64)
            ));
        }
        if self.fragments > 0 {
            notes.push(format!("{} fragments of TCP segments were left out", count(self.fragments)));
        }
        if self.unreadable > 0 {
            notes.push(format!(
                "{} frames are not what they say, or were cut before the end of their TCP header (a snap length below 54, or 74 for IPv6?)",
                count(self.unreadable)
            ));
        }
        for (link, frames) in &self.unknown_links {
            notes.push(format!(
                "{} frames of link type {link} were not read: Ethernet, raw IP, Linux cooked and loopback are known",
                count(*frames)
            ));
        }
        if self.segments == 0 {
            let within = match self.other {
                0 => "",
                _ => " (PPPoE, MPLS and tunnels are not looked into)",
            };
            notes.push(format!("there is no TCP segment in it: nothing to explain{within}"));
        }
        notes
    }
}
