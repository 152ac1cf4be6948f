//! Measurements.

use super::super::congestion::CongestionControl as _;
use super::super::details::{Details, Phase};
use super::super::scoreboard::DUPLICATE_THRESHOLD;
use super::{Connection, Counters, Recovery};
use linerate_transport::{Congestion, ConnInfo};
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
            limits: self.limit_times(now),
        }
    }

    /// Details up to `now`.
    pub fn details(&self, now: Instant) -> Details {
        let mss = self.mss().max(1);
        let options = if self.timestamps.is_some() { 12 } else { 0 };
        let (reported, resent) = (self.board.reported(), self.board.resent_bytes());
        let phase = match self.recovery {
            Recovery::Fast { .. } => Phase::Recovery,
            Recovery::Timeout { .. } => Phase::Loss,
            Recovery::Open if reported > 0 || self.board.lost_bytes() > 0 => Phase::Disorder,
            Recovery::Open if self.ecn.is_reduced(self.una) => Phase::Reduced,
            Recovery::Open => Phase::Open,
        };
        Details {
            phase,
            sacked: reported.div_ceil(mss),
            lost: (self.board.lost_bytes() + resent).div_ceil(mss),
            resent: resent.div_ceil(mss),
            duplicates_reported: self.counters.duplicates_reported,
            reordering: self.counters.reordering_distance.div_ceil(mss).max(DUPLICATE_THRESHOLD),
            reordering_seen: self.counters.reordering_seen,
            timeouts: self.expired,
            probes: self.probes + u32::from(self.keep_alives),
            backoff: self.rtt.backoff(),
            receive_mss: self.ack.segment() as u32,
            advertised_mss: u32::from(self.offered_mss()) - options,
            scales: self.peer_scales.then_some((self.window.scale, self.receiver.scale)),
            timestamps: self.timestamps.is_some(),
            sack: self.sack,
            ecn: self.ecn.is_agreed(),
            least_rtt: Some(self.repair.rack.minimum()).filter(|rtt| !rtt.is_zero()),
            busy: self.limits.busy.time(now),
            since_sent: now - self.last.sent,
            since_received: now - self.last.data,
            since_acknowledged: now - self.last.ack,
            segments_received: self.counters.segments_received,
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
}
