//! Measurements.

use super::super::congestion::CongestionControl as _;
use super::super::details::{Details, Phase};
use super::super::scoreboard::DUPLICATE_THRESHOLD;
use super::recovery::Recovery;
use super::{Connection, Counters};
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
            rtt: self.sender.rtt.smoothed(),
            rtt_var: self.sender.rtt.variation(),
            rto: Some(self.sender.rtt.timeout()),
            send_mss: bounded(self.mss()),
            congestion_window: bounded(self.sender.congestion.window()),
            slow_start_threshold: self.sender.congestion.slow_start_threshold().map(bounded),
            send_window: bounded(self.sender.window.size),
            receive_window: bounded(self.receiving.receiver.window()),
            in_flight: if self.life.reason.is_some() {
                0
            } else {
                bounded(self.sender.nxt - self.sender.una)
            },
            bytes_acked: self.accounts.counters.bytes_acked,
            bytes_received: self.receiving.receiver.bytes_received,
            retransmits: self.accounts.counters.retransmits,
            bytes_retransmitted: self.accounts.counters.bytes_retransmitted,
            duplicates_reported: self.accounts.counters.duplicates_reported,
            reordering_seen: self.accounts.counters.reordering_seen,
            segments_sent: self.accounts.counters.segments_sent,
            path_mtu: u32::from(self.path.mss) + headers,
            limits: self.limit_times(now),
        }
    }

    /// Details up to `now`.
    pub fn details(&self, now: Instant) -> Details {
        let mss = self.mss().max(1);
        let options = self.handshake.options_len();
        let (reported, resent) = (self.loss.board.reported(), self.loss.board.resent_bytes());
        let phase = match self.loss.recovery {
            Recovery::Fast { .. } => Phase::Recovery,
            Recovery::Timeout { .. } => Phase::Loss,
            Recovery::Open if reported > 0 || self.loss.board.lost_bytes() > 0 => Phase::Disorder,
            Recovery::Open if self.sender.ecn.is_reduced(self.sender.una) => Phase::Reduced,
            Recovery::Open => Phase::Open,
        };
        Details {
            phase,
            sacked: reported.div_ceil(mss),
            lost: (self.loss.board.lost_bytes() + resent).div_ceil(mss),
            resent: resent.div_ceil(mss),
            duplicates_reported: self.accounts.counters.duplicates_reported,
            reordering: self.accounts.counters.reordering_distance.div_ceil(mss).max(DUPLICATE_THRESHOLD),
            reordering_seen: self.accounts.counters.reordering_seen,
            timeouts: self.loss.expired,
            probes: self.sender.probes + u32::from(self.life.keep_alives),
            backoff: self.sender.rtt.backoff(),
            receive_mss: self.receiving.ack.segment() as u32,
            advertised_mss: u32::from(self.offered_mss()) - options as u32,
            scales: self
                .handshake
                .peer_scales
                .then_some((self.sender.window.scale, self.receiving.receiver.scale)),
            timestamps: self.handshake.timestamps.is_some(),
            sack: self.handshake.sack,
            ecn: self.sender.ecn.is_agreed(),
            least_rtt: Some(self.loss.rack.minimum()).filter(|rtt| !rtt.is_zero()),
            busy: self.accounts.limits.busy.time(now),
            since_sent: now - self.accounts.last.sent,
            since_received: now - self.accounts.last.data,
            since_acknowledged: now - self.accounts.last.ack,
            segments_received: self.accounts.counters.segments_received,
        }
    }

    /// Payload bytes that the peer acknowledged, and those received in order.
    pub fn progress(&self) -> (u64, u64) {
        (self.accounts.counters.bytes_acked, self.receiving.receiver.bytes_received)
    }

    /// Memory that queued data holds, in bytes.
    pub fn send_memory(&self) -> usize {
        self.sender.queue.held()
    }

    /// Memory is short, and the peer was seen to take `rate` bytes per second. From now on the send buffer holds what it takes
    /// in two seconds while memory is tight, `least` bytes in any case, and what was read of files beyond that is given back.
    pub fn hold_little(&mut self, rate: u64, least: usize) {
        let most = rate.saturating_mul(2).max(least as u64);
        self.sender.drain_rate = u32::try_from(rate).unwrap_or(u32::MAX);
        self.sender.most_while_tight = u32::try_from(most).unwrap_or(u32::MAX);
        let unsent = self.sender.nxt.max(self.sender.probe_end);
        self.sender.queue.unload(unsent.max(self.sender.una + self.send_limit() as u64));
    }

    /// Bytes per second that the peer was seen to take; the greatest value before.
    pub fn drain_rate(&self) -> u32 {
        self.sender.drain_rate
    }

    /// Since when the peer has made no progress with what is to be sent; `None` while there is nothing.
    pub fn stalled_since(&self) -> Option<Instant> {
        self.sender.stalled_since
    }

    /// What happened so far.
    pub fn counters(&self) -> &Counters {
        &self.accounts.counters
    }

    /// Payload bytes that were copied out of large buffers.
    pub fn bytes_compacted(&self) -> u64 {
        self.receiving.receiver.bytes_compacted
    }

    /// Memory that received data holds, in bytes, whole buffers counted.
    pub fn receive_memory(&self) -> usize {
        self.receiving.receiver.held()
    }
}
