//! The sending half: what is queued and what is under way, and how much of it the peer and the path allow.

use super::super::config::Config;
use super::super::congestion::Control;
use super::super::ecn::Ecn;
use super::super::pacing::Pacer;
use super::super::rtt::RttEstimator;
use super::super::send_queue::SendQueue;
use linerate_wire::units::Instant;

/// The peer's window (RFC 9293 section 3.3.1).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PeerWindow {
    /// First position beyond it (SND.UNA + SND.WND).
    pub(super) edge: u64,
    /// Its size when last updated, in bytes.
    pub(super) size: u64,
    /// The greatest size ever.
    pub(super) max: u64,
    /// SND.WL1 and SND.WL2.
    pub(super) updated_by: (u64, u64),
    pub(super) scale: u8,
}

/// See the module. Positions: SND.UNA, SND.NXT; SYN and FIN take one each.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) una: u64,
    pub(super) nxt: u64,
    /// Everything up to here has left the device at least once.
    pub(super) left_end: u64,
    /// After the byte of a window probe that is not counted as sent.
    pub(super) probe_end: u64,
    pub(super) window: PeerWindow,
    pub(super) queue: SendQueue,
    pub(super) fin_queued: bool,
    pub(super) fin_sent: bool,
    pub(super) congestion: Control,
    pub(super) ecn: Ecn,
    pub(super) pacer: Pacer,
    pub(super) rtt: RttEstimator,
    /// Most bytes in the network of late, and the position that must be acknowledged for that to be past: a window of
    /// which half is used is used, however the acknowledgements are batched (RFC 7661 section 4.2).
    pub(super) peak: (u64, u64),
    /// Since when the peer has made no progress with what is outstanding.
    pub(super) stalled_since: Option<Instant>,
    pub(super) probe_due: bool,
    pub(super) probes: u32,
    pub(super) write_refused: bool,
    /// Bytes per second that the peer takes, as far as it was measured.
    pub(super) drain_rate: u32,
    /// Most bytes of the send buffer while memory is tight.
    pub(super) most_while_tight: u32,
}

impl Sender {
    /// Nothing was sent; the SYN will be number `first`.
    pub(super) fn new(first: u64, queue: SendQueue, congestion: Control, config: &Config) -> Sender {
        Sender {
            una: first,
            nxt: first,
            left_end: first,
            probe_end: first,
            window: PeerWindow::default(),
            queue,
            fin_queued: false,
            fin_sent: false,
            congestion,
            ecn: Ecn::default(),
            pacer: Pacer::default(),
            rtt: RttEstimator::new(config.initial_rto, config.min_rto, config.max_rto),
            peak: (0, 0),
            stalled_since: None,
            probe_due: false,
            probes: 0,
            write_refused: false,
            drain_rate: u32::MAX,
            most_while_tight: u32::MAX,
        }
    }

    /// Whether everything that was sent is acknowledged.
    pub(super) fn is_idle(&self) -> bool {
        self.una == self.nxt
    }

    /// Whether nothing is queued or under way, and nobody waits for room.
    pub(super) fn is_quiet(&self) -> bool {
        self.is_idle()
            && self.queue.len() == 0
            && self.queue.end() + u64::from(self.fin_sent) == self.una
            && self.fin_queued <= self.fin_sent
            && !self.write_refused
            && !self.probe_due
            && self.probes == 0
            && self.probe_end <= self.una
            && self.left_end == self.una
            && self.stalled_since.is_none()
    }

    /// Bytes in the network were never more of late.
    pub(super) fn note_peak(&mut self, pipe: u64) {
        if pipe >= self.peak.0 || self.una >= self.peak.1 {
            self.peak = (pipe, self.nxt);
        }
    }

    /// The most bytes that were in the network of late, `pipe` now.
    pub(super) fn most_in_network(&self, pipe: u64) -> u64 {
        if self.una < self.peak.1 { self.peak.0.max(pipe) } else { pipe }
    }

    /// RFC 9293 section 3.10.7.4: the window of a newer segment counts, whether it grows or shrinks. Returns whether that is
    /// so, and whether it has opened.
    pub(super) fn take_window(&mut self, seq: u64, ack: u64, size: u64) -> bool {
        let (by_seq, by_ack) = self.window.updated_by;
        if by_seq > seq || (by_seq == seq && by_ack > ack) {
            return false;
        }
        let edge = ack + size;
        let has_opened = size > 0 && edge > self.window.edge;
        self.window.updated_by = (seq, ack);
        self.window.size = size;
        self.window.edge = edge;
        self.window.max = self.window.max.max(size);
        has_opened
    }
}
