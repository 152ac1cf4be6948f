//! What the path tells: ICMP errors and the size of packets it carries (RFC 5927, RFC 1191, RFC 8201).

use super::super::sequence::unwrap;
use super::super::state::State;
use super::{Connection, MIN_MSS};
use linerate_transport::CloseReason;
use linerate_wire::tcp::SeqNumber;
use linerate_wire::units::Instant;

impl Connection {
    /// An ICMP error for a segment of ours with sequence number `seq`. It is ignored unless that is in flight (RFC
    /// 5927 section 4). A hard error ends an open that has not completed with `reason`; everything else is soft: it
    /// is only remembered as the reason for a timeout (RFC 5461).
    pub fn handle_icmp_error(&mut self, now: Instant, seq: SeqNumber, hard: bool, reason: CloseReason) {
        if !self.is_in_flight(seq) {
            return;
        }
        if hard && matches!(self.state, State::SynSent | State::SynReceived) {
            self.end(now, reason);
        } else {
            self.soft_error = Some(reason);
        }
    }

    /// The path carries segments of `mss` bytes at most (MTU minus headers, as [`super::super::Config::mss`]). `seq`:
    /// of the segment that was too long, `None` where that is not known. What is in flight in longer segments is sent
    /// again at once, and the congestion window stays: nothing is known of congestion (RFC 8201 section 5.4).
    pub fn handle_path_mss(&mut self, _now: Instant, mss: u16, seq: Option<SeqNumber>) {
        if seq.is_some_and(|seq| !self.is_in_flight(seq)) {
            return;
        }
        let old = self.segment_limit();
        self.path_mss = mss.clamp(MIN_MSS, self.config.mss.max(MIN_MSS));
        let new = self.segment_limit();
        if new == old {
            return;
        }
        self.congestion.on_segment_size(self.mss());
        if new < old && self.state.can_transmit() && self.una < self.nxt {
            self.board.mark_lost(self.una, self.nxt);
            self.marks.clear();
            self.force = true;
        }
    }

    fn is_in_flight(&self, seq: SeqNumber) -> bool {
        let position = unwrap(self.una, seq);
        position >= self.una && position < self.nxt
    }
}
