//! Measurements.

use super::{Connection, Counters};
use linerate_transport::{Congestion, ConnInfo, LimitCause};
use linerate_wire::units::Instant;

/// Bytes of IP and TCP headers without options.
const HEADERS4: u32 = 40;
const HEADERS6: u32 = 60;

impl Connection {
    /// The congestion control in use.
    pub fn congestion(&self) -> Congestion {
        self.config.socket.congestion
    }

    /// Measurements up to `now`.
    pub fn info(&self, now: Instant) -> ConnInfo {
        let headers = if self.remote.is_ipv4() { HEADERS4 } else { HEADERS6 };
        let bounded = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        ConnInfo {
            local: self.local,
            remote: self.remote,
            rtt: self.rtt.smoothed(),
            rtt_var: self.rtt.variation(),
            rto: Some(self.rtt.timeout()),
            send_mss: bounded(self.mss()),
            congestion_window: bounded(self.congestion.window()),
            slow_start_threshold: self.congestion.slow_start_threshold().map(bounded),
            send_window: bounded(self.window.size),
            receive_window: bounded(self.receiver.window()),
            in_flight: if self.reason.is_some() { 0 } else { bounded(self.nxt - self.una) },
            bytes_acked: self.counters.bytes_acked,
            bytes_received: self.receiver.bytes_received,
            retransmits: self.counters.retransmits,
            bytes_retransmitted: self.counters.bytes_retransmitted,
            segments_sent: self.counters.segments_sent,
            path_mtu: u32::from(self.path_mss) + headers,
            limits: self.limits.times(now),
        }
    }

    /// Payload bytes that the peer acknowledged, and those received in order.
    pub fn progress(&self) -> (u64, u64) {
        (self.counters.bytes_acked, self.receiver.bytes_received)
    }

    /// Memory that queued data holds, in bytes.
    pub fn send_memory(&self) -> usize {
        self.queue.held()
    }

    /// Since when the peer has made no progress with what is to be sent; `None` while there is nothing.
    pub fn stalled_since(&self) -> Option<Instant> {
        self.stalled_since
    }

    /// What happened so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Payload bytes that were copied out of large buffers.
    pub fn bytes_compacted(&self) -> u64 {
        self.receiver.bytes_compacted
    }

    /// Memory that received data holds, in bytes, whole buffers counted.
    pub fn receive_memory(&self) -> usize {
        self.receiver.held()
    }

    /// What keeps the connection from sending faster now; `None` before it is established and after its end.
    pub fn limited_by(&self) -> Option<LimitCause> {
        self.limits.cause()
    }
}
