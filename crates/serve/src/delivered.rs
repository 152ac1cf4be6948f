//! What of a connection's output has reached its peer, where it did not come to its end.

use linerate_transport::{ConnId, Transport};

/// Of `queued` bytes that were handed over on a connection, those that its peer has got for certain.
///
/// A connection that broke holds nothing any more, and the kernel's sockets hold what the kernel took; what was acknowledged is known of both.
/// Where not even that is, all that the transport does not hold counts.
pub(crate) fn delivered(net: &dyn Transport, conn: ConnId, queued: u64) -> u64 {
    let gone = queued.saturating_sub(net.unsent(conn));
    net.info(conn).map_or(gone, |info| gone.min(info.bytes_acked))
}
