//! What limited the transfers in a capture, and how one knows.
//!
//! Frames ([`reader`]) become segments ([`segment`]), which belong to a connection at an interface ([`flow`]). Each direction is
//! followed twice: as packets on a wire ([`wire`]), and as the sender that they show ([`sender`]). What is counted of it becomes
//! evidence ([`evidence`]), and that a verdict.

pub mod cause;
pub mod dispersion;
pub mod error;
pub mod evidence;
pub mod flow;
pub mod half;
pub mod histogram;
pub mod reader;
pub mod segment;
pub mod sender;
pub mod sequence;
pub mod sketch;
pub mod timeline;
pub mod truth;
pub mod turn;
pub mod verdict;
pub mod wait;
pub mod wire;
pub mod wireshark;

use error::ExplainError;
use evidence::Evidence;
use flow::Table;
use segment::Held;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Read;
use verdict::Verdict;

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
    /// The connections, the one with the most bytes first.
    pub connections: Vec<Connection>,
}

/// A TCP connection.
#[derive(Clone, Debug, Serialize)]
pub struct Connection {
    /// What limited its main direction.
    pub verdict: Verdict,
    /// What speaks for it.
    pub evidence: Evidence,
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
    for view in &table.views {
        let side = usize::from(view.halves[1].wire.counts.bytes > view.halves[0].wire.counts.bytes);
        let evidence = Evidence::of(view, side);
        analysis.connections.push(Connection { verdict: Verdict::of(&evidence), evidence });
    }
    Ok(analysis)
}
