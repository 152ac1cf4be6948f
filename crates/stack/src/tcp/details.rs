//! What only diagnostics ask for, such as the system's TCP_INFO.

use core::time::Duration;

/// Where loss recovery stands, in the terms that Linux made common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Nothing unusual.
    Open,
    /// Something arrived before what was sent earlier.
    Disorder,
    /// The window was reduced because of a congestion mark (RFC 3168).
    Reduced,
    /// Fast recovery.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

/// Details of one connection beside `ConnInfo` of the transport. Segments are counted by the full segment of now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Details {
    /// Where loss recovery stands.
    pub phase: Phase,
    /// Segments that the peer reported beyond a gap.
    pub sacked: u64,
    /// Segments taken to be lost, whether or not they were sent again.
    pub lost: u64,
    /// Segments that were sent again and are in the network.
    pub resent: u64,
    /// Duplicates that the peer reported (RFC 2883).
    pub duplicates_reported: u64,
    /// By how many segments the path was seen to reorder, at least three.
    pub reordering: u64,
    /// Whether the path was seen to reorder.
    pub reordering_seen: bool,
    /// Timeouts in a row without progress.
    pub timeouts: u32,
    /// Window or keep-alive probes in a row without an answer.
    pub probes: u32,
    /// How often the retransmission timeout is doubled.
    pub backoff: u32,
    /// Bytes of the full segments that the peer sends, as far as seen.
    pub receive_mss: u32,
    /// The segment size that we offer, less what our own options take.
    pub advertised_mss: u32,
    /// Window scales of the peer and of ours; `None` without scaling.
    pub scales: Option<(u8, u8)>,
    /// Whether timestamps, SACK and ECN were agreed upon.
    pub timestamps: bool,
    /// SACK.
    pub sack: bool,
    /// ECN.
    pub ecn: bool,
    /// The least round-trip time of late.
    pub least_rtt: Option<Duration>,
    /// Time in which there was something to send or to be acknowledged.
    pub busy: Duration,
    /// Time since data was sent last, since data came, and since an acknowledgement came.
    pub since_sent: Duration,
    /// Since data came, or the connection was established.
    pub since_received: Duration,
    /// Since an acknowledgement came.
    pub since_acknowledged: Duration,
    /// Segments received.
    pub segments_received: u64,
}
