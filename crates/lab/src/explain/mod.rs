//! What limited the transfers in a capture, and how one knows.
//!
//! Frames ([`reader`]) become segments ([`segment`]), which belong to a connection at an interface ([`flow`]). Each direction is
//! followed twice: as packets on a wire ([`wire`]), and as the sender that they show ([`sender`]). What is counted of it becomes
//! evidence ([`evidence`]), and that a verdict ([`verdict`]).

pub mod cause;
pub mod connection;
pub mod counts;
pub mod dispersion;
pub mod echo;
pub mod error;
pub mod evidence;
pub mod flow;
pub mod half;
pub mod histogram;
pub mod page;
pub mod passing;
pub mod picture;
pub mod reader;
pub mod refill;
pub mod segment;
pub mod sender;
pub mod sequence;
pub mod sketch;
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
use flow::Table;
use segment::Held;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Read;

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
    /// Where the file ends within a block, if it does.
    pub ends_within: Option<u64>,
    /// Names of the interfaces.
    pub interfaces: Vec<String>,
    /// Events by Wireshark's rules, of all connections and interfaces.
    pub wireshark: wireshark::Counts,
    /// The connections, the one with the most bytes first.
    pub connections: Vec<Connection>,
}

/// Reads a capture, pcap or pcapng, and explains each of its TCP connections.
///
/// # Errors
///
/// The bytes are no capture, or a broken one; the error says where.
pub fn analyse(reader: impl Read) -> Result<Analysis, ExplainError> {
    let mut analysis = Analysis::default();
    let mut table = Table::default();
    let contents = reader::frames(reader, &mut |frame| {
        analysis.frames += 1;
        match segment::held(frame) {
            Held::Segment(segment) => {
                analysis.segments += 1;
                table.take(frame.interface, &segment);
            }
            Held::Fragment => analysis.fragments += 1,
            Held::Other => analysis.other += 1,
            Held::Unreadable => analysis.unreadable += 1,
            Held::UnknownLink(link) => *analysis.unknown_links.entry(link).or_default() += 1,
        }
    })?;
    table.finish();
    analysis.ends_within = contents.ends_within;
    analysis.interfaces = contents.interfaces.into_iter().map(|interface| interface.name).collect();
    analysis.connections = connection::connections(table.views);
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
        if self.fragments > 0 {
            notes.push(format!("{} fragments of TCP segments were left out", count(self.fragments)));
        }
        if self.unreadable > 0 {
            notes.push(format!(
                "{} frames are not what they say, or were cut before the end of their TCP header (snap length below 74 for IPv6?)",
                count(self.unreadable)
            ));
        }
        for (link, frames) in &self.unknown_links {
            notes.push(format!(
                "{} frames of link type {link} were not read: Ethernet, raw IP, Linux cooked and loopback are known",
                count(*frames)
            ));
        }
        notes
    }
}
