//! Congestion that the network marks instead of dropping (RFC 3168).

use super::super::congestion::CongestionControl as _;
use super::super::segment::SegmentIn;
use super::Connection;
use super::recovery::Recovery;
use linerate_wire::ip;
use linerate_wire::tcp::Flags;
use linerate_wire::units::Instant;

impl Connection {
    /// Takes the marks of an acceptable segment that acknowledges up to `ack`.
    pub(super) fn take_ecn(&mut self, now: Instant, ack: u64, segment: &SegmentIn) {
        // The sender marks only data as capable: a mark on anything else is the network's mistake.
        if segment.payload_len() > 0 && self.sender.ecn.on_data(segment.congestion_experienced, segment.flags)
        {
            self.receiving.ack.now();
        }
        if self.loss.recovery != Recovery::Open && self.sender.ecn.is_echo(segment.flags) {
            self.loss.on_mark();
        }
        if self.sender.una == self.sender.nxt || !self.sender.ecn.asks_for_reduction(ack, segment.flags) {
            return;
        }
        self.accounts.counters.ecn_echoes += 1;
        // Recovery from a loss has reduced the window already.
        if self.loss.recovery == Recovery::Open {
            self.accounts.counters.ecn_reductions += 1;
            self.sender.congestion.on_congestion_experienced(now, self.flight());
            self.sender.ecn.on_reduced(self.sender.nxt);
            self.note_full();
        }
    }

    /// Losses ask for a reduction; does it unless a mark has asked already within this round trip (RFC 3168 section
    /// 6.1.2). Returns whether it did.
    pub(super) fn reduce_for_loss(&mut self, now: Instant) -> bool {
        if self.sender.ecn.is_reduced(self.sender.una) {
            return false;
        }
        self.sender.congestion.save();
        self.sender.congestion.on_loss(now, self.flight());
        self.sender.ecn.on_reduced(self.sender.nxt);
        // A smaller window may mean a smaller buffer, whether or not anything is acknowledged with it.
        self.note_full();
        true
    }

    /// How a segment with `bytes` of payload is marked: capable when they are new.
    pub(super) fn ecn_mark(&self, bytes: u64, retransmission: bool) -> ip::Ecn {
        let is_capable = self.sender.ecn.is_agreed() && bytes > 0 && !retransmission;
        if is_capable { ip::Ecn::Capable0 } else { ip::Ecn::NotCapable }
    }

    /// CWR for a segment of new data, if it is due.
    pub(super) fn cwr_flag(&mut self, bytes: u64, retransmission: bool) -> Flags {
        if bytes == 0 || retransmission || !self.sender.ecn.is_cwr_due() {
            return Flags::EMPTY;
        }
        self.sender.ecn.cwr_sent();
        Flags::CWR
    }
}
