//! What a report on all connections needs to know of each: cheap to ask, for there may be tens of thousands.

use crate::{ConnId, ConnInfo, LimitCause, Owner};

/// A connection as a walk over all of them shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnSummary {
    /// Its id.
    pub id: ConnId,
    /// Whose it is; `None` once its owner has let go and it closes by itself.
    pub owner: Option<Owner>,
    /// Its state, by the names of RFC 9293 in small letters (`established`, `time-wait`); kernel sockets, which would have
    /// to ask for it, say `connecting`, `open`, `closing` or `closed`.
    pub state: &'static str,
    /// Payload bytes that the peer acknowledged (own engine), or that the kernel took.
    pub sent: u64,
    /// Payload bytes received.
    pub received: u64,
    /// Bytes of memory that it holds for data, whole buffers counted.
    pub memory: usize,
    /// What keeps it from sending faster now, where that is known without asking.
    pub limited_by: Option<LimitCause>,
}

/// A connection looked at closely.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnDetail {
    /// Its measurements.
    pub info: ConnInfo,
    /// Its state, by the names of RFC 9293 in small letters.
    pub state: &'static str,
    /// Bytes queued to be sent and not yet acknowledged (own engine), or not yet taken by the kernel.
    pub queued: u64,
    /// Bytes received that the server has not taken yet.
    pub unread: u64,
}
