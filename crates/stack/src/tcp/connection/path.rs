//! What the path tells: ICMP errors and the size of packets it carries (RFC 5927, RFC 1191, RFC 8201, RFC 4821).

use super::super::congestion::CongestionControl as _;
use super::super::path_size::{PathSize, Trial, fall_back};
use super::super::sequence::unwrap;
use super::super::state::State;
use super::output::Plan;
use super::recovery::Recovery;
use super::{Connection, MIN_MSS};
use linerate_transport::CloseReason;
use linerate_wire::tcp::SeqNumber;
use linerate_wire::units::Instant;

/// Timeouts in a row that make a black hole likely.
const BLACK_HOLE_TIMEOUTS: u32 = 3;
/// A probe is sent when so many ordinary segments can follow it, so that its loss is noticed without a timeout (RFC 4821
/// section 7.4).
const SEGMENTS_AFTER_PROBE: u64 = 4;

/// What the path to the peer carries.
#[derive(Debug)]
pub(super) struct Path {
    /// As [`super::super::Config::mss`], for what we send.
    pub(super) mss: u16,
    pub(super) size: PathSize,
}

impl Path {
    /// One that is taken to carry segments of `mss` bytes, as much as could be.
    pub(super) fn new(mss: u16) -> Path {
        Path { mss, size: PathSize::default() }
    }
}

impl Connection {
    /// An ICMP error for a segment of ours with sequence number `seq`. It is ignored, and false returned, unless that is
    /// in flight (RFC 5927 section 4). A hard error ends an open that has not completed with `reason`; everything
    /// else is soft: it is only remembered as the reason for a timeout (RFC 5461).
    pub fn handle_icmp_error(
        &mut self,
        now: Instant,
        seq: SeqNumber,
        hard: bool,
        reason: CloseReason,
    ) -> bool {
        if !self.is_in_flight(seq) {
            return false;
        }
        if hard && matches!(self.life.state, State::SynSent | State::SynReceived) {
            self.end(now, reason);
        } else {
            self.life.soft_error = Some(reason);
        }
        true
    }

    /// The path is said to carry segments of `mss` bytes at most (MTU minus headers, as [`super::super::Config::mss`]).
    /// `seq`: of the segment that was too long, `None` where the source is beyond doubt. It is ignored, and false
    /// returned, unless that segment is in flight. What contradicts a segment that arrived waits for a timeout (RFC
    /// 5927 section 7.2); [`Connection::poll_path_mss`] tells when it is believed. What is in flight is sent again in
    /// shorter segments then, and the congestion window stays: nothing is known of congestion (RFC 8201 section 5.4).
    pub fn handle_path_mss(&mut self, now: Instant, mss: u16, seq: Option<SeqNumber>) -> bool {
        if seq.is_some_and(|seq| !self.is_in_flight(seq)) {
            return false;
        }
        let mss = mss.clamp(MIN_MSS, self.config.mss.max(MIN_MSS));
        if let Some(seq) = seq {
            if mss >= self.segment_limit() {
                return true;
            }
            let at = unwrap(self.sender.una, seq);
            if !self.path.size.on_told(mss, at) {
                return true;
            }
        }
        self.adopt_path_mss(now, mss);
        true
    }

    /// The segments that the path is taken to carry, as [`super::super::Config::mss`].
    pub(crate) fn path_mss(&self) -> u16 {
        self.path.mss
    }

    /// A segment size that a router told and that is believed since the last call; others may learn of it.
    pub fn poll_path_mss(&mut self) -> Option<u16> {
        self.path.size.news.take()
    }

    fn adopt_path_mss(&mut self, now: Instant, mss: u16) {
        let old = self.segment_limit();
        self.set_path_mss(now, mss, false);
        self.path.size.news = Some(mss);
        let is_lowered = self.segment_limit() < old;
        if is_lowered && self.life.state.can_transmit() && self.sender.una < self.sender.nxt {
            self.loss.board.mark_lost(self.sender.una, self.sender.nxt);
            self.loss.force = true;
        }
    }

    fn set_path_mss(&mut self, now: Instant, mss: u16, is_black_hole: bool) {
        let old = self.segment_limit();
        self.path.mss = mss;
        if self.segment_limit() < old {
            self.path.size.on_lowered(now, self.segment_limit(), is_black_hole);
        }
        if self.segment_limit() != old {
            self.sender.congestion.on_segment_size(self.mss());
        }
    }

    /// The retransmission timer fired: a message that waited is believed; timeouts that repeat mean a black hole. To be
    /// called before everything in flight is taken to be lost.
    pub(super) fn watch_path_on_timeout(&mut self, now: Instant) {
        if let Some(mss) = self.path.size.on_timeout(self.sender.una) {
            self.adopt_path_mss(now, mss);
            return;
        }
        let current = self.segment_limit();
        let Some(lower) = fall_back(self.remote.is_ipv4(), current) else { return };
        if self.loss.expired >= BLACK_HOLE_TIMEOUTS && self.sender.nxt - self.sender.una > u64::from(lower) {
            self.accounts.counters.black_holes += 1;
            self.accounts.tally().black_holes += 1;
            self.set_path_mss(now, lower, true);
        }
    }

    /// The acknowledgement moved: sizes are proved by it.
    pub(super) fn watch_path_on_ack(&mut self, now: Instant) {
        if let Some(mss) = self.path.size.on_acknowledged(now, self.sender.una) {
            self.path.mss = self.path.mss.max(mss);
            self.sender.congestion.on_segment_size(self.mss());
        }
    }

    /// New data was sent from `start` on, `bytes` of it in segments of `payload` bytes.
    pub(super) fn watch_path_on_sent(&mut self, start: u64, bytes: u64, payload: u64) {
        let options = u64::from(self.segment_limit()).saturating_sub(payload);
        let is_probe = bytes > payload && self.path.size.planned == Some(start);
        if is_probe {
            self.accounts.counters.size_probes += 1;
            self.accounts.tally().size_probes += 1;
        }
        let len = if is_probe { bytes } else { payload };
        if bytes < len {
            return;
        }
        let size = u16::try_from(len + options).unwrap_or(u16::MAX);
        self.path.size.on_sent(Trial { start, end: start + len, size, is_probe });
    }

    /// These positions were sent again.
    pub(super) fn watch_path_on_resent(&mut self, now: Instant, start: u64, end: u64) {
        if self.path.size.on_resent(now, self.segment_limit(), start, end) {
            self.accounts.counters.size_probes_lost += 1;
            self.accounts.tally().size_probes_lost += 1;
        }
    }

    /// Whether all that is taken to be lost is a size probe: that is no sign of congestion (RFC 4821 section 7.6.2).
    pub(super) fn has_lost_only_probe(&self) -> bool {
        let probe = self.path.size.trial().filter(|trial| trial.is_probe);
        let lost = self.loss.board.next_lost();
        probe.zip(lost).is_some_and(|(probe, (start, end))| {
            probe.start <= start && end <= probe.end && self.loss.board.lost_bytes() == end - start
        })
    }

    /// A longer segment than usual, where one is to be tried and may be: `available` bytes wait.
    pub(super) fn plan_size_probe(&mut self, now: Instant, payload: u64, available: u64) -> Option<Plan> {
        self.path.size.planned = None;
        let current = self.segment_limit();
        let most = self.offered_mss().min(self.handshake.peer_mss).min(self.config.mss);
        let size = self.path.size.candidate(now, current, most)?;
        let len = payload + u64::from(size - current);
        let wanted = len + SEGMENTS_AFTER_PROBE * payload;
        if self.loss.recovery != Recovery::Open || !self.loss.board.is_clean() {
            return None;
        }
        let window = self.sender.window.edge.saturating_sub(self.sender.nxt);
        if available.min(window).min(self.congestion_room(payload)) < wanted {
            return None;
        }
        self.path.size.planned = Some(self.sender.nxt);
        Some(Plan { start: self.sender.nxt, len, fin: false, retransmission: false, is_loss_probe: false })
    }

    /// Whether the segment about to be sent at `start` is a size probe, which must not be split.
    pub(super) fn is_size_probe(&self, start: u64) -> bool {
        self.path.size.planned == Some(start)
    }

    pub(super) fn is_in_flight(&self, seq: SeqNumber) -> bool {
        let position = unwrap(self.sender.una, seq);
        position >= self.sender.una && position < self.sender.nxt
    }
}
