//! What limited the transfers in a capture, and how one knows.

pub mod cause;
pub mod error;
pub mod truth;
pub mod verdict;

use error::ExplainError;
use serde::Serialize;
use std::io::Read;
use verdict::Verdict;

/// What a capture tells.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Analysis {
    /// The connections, the one with the most bytes first.
    pub connections: Vec<Connection>,
}

/// A TCP connection.
#[derive(Clone, Debug, Serialize)]
pub struct Connection {
    /// What limited its main direction.
    pub verdict: Verdict,
}

/// Reads a capture, pcap or pcapng, and explains each of its TCP connections.
///
/// # Errors
///
/// The bytes are no capture, or a broken one; the error says where.
pub fn analyse(reader: impl Read) -> Result<Analysis, ExplainError> {
    let _reader = reader;
    Ok(Analysis::default())
}
