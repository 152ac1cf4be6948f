//! What is counted of the packets of one direction.

use serde::Serialize;

/// Sums over one direction.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Counts {
    /// Packets with data, as captured.
    pub packets: u64,
    /// Segments with data: a super-frame counts as many as it holds.
    pub segments: u64,
    /// Segments that are not full.
    pub short: u64,
    /// Packets that hold more than a segment.
    pub super_frames: u64,
    /// Bytes sent, each once.
    pub bytes: u64,
    /// Bytes sent again.
    pub bytes_again: u64,
    /// Segments sent again upon acknowledgements.
    pub fast: u64,
    /// Segments sent again upon time.
    pub timeouts: u64,
    /// Segments sent again that had been acknowledged already.
    pub needless: u64,
    /// Segments sent again before the capture saw them once.
    pub filled: u64,
    /// Segments sent again whose acknowledgement echoes a clock older than theirs (RFC 3522), or comes sooner than any answer could:
    /// the first had arrived.
    pub echoed: u64,
    /// Segments that were overtaken by others.
    pub late: u64,
    /// Gaps that were acknowledged after what lies behind them and never sent again: overtaken behind the capture.
    pub late_beyond: u64,
    /// Packets with data that came twice at once: captured twice.
    pub copies: u64,
    /// Segments that came twice with the identification of one packet: something on the way made two of it.
    pub duplicated_before: u64,
    /// Bytes that were never seen and acknowledged: the capture missed them.
    pub missed_bytes: u64,
    /// Stretches of segments sent again that follow each other.
    pub runs: u64,
    /// Recoveries: from a first segment sent again until all that was under way then is acknowledged.
    pub recoveries: u64,
    /// Duplicate acknowledgements.
    pub duplicate_acks: u64,
    /// Segments that the receiver reports to have got twice (RFC 2883).
    pub dsacks: u64,
    /// Reports of data out of order that do not tell which, since they were cut off or there is no SACK, and that ended without
    /// anything sent again: something came late, or twice.
    pub healed: u64,
    /// Acknowledgements with a marked packet's echo (RFC 3168).
    pub congestion_echoes: u64,
    /// Segments by which the sender says that it has slowed down upon such an echo (CWR, RFC 3168 section 6.1.2).
    pub slowed: u64,
    /// Acknowledgements without data.
    pub pure_acks: u64,
    /// Keep-alives and window probes.
    pub probes: u64,
    /// Times that the window closed.
    pub zero_windows: u64,
    /// Nanoseconds that it was closed.
    pub zero_window_ns: u64,
    /// The longest of these times, in nanoseconds.
    pub zero_window_longest_ns: u64,
    /// Segments that end at the window's edge.
    pub window_full: u64,
    /// Windows that grew without progress.
    pub window_updates: u64,
}

impl Counts {
    /// The window was closed for so long.
    pub fn closed_for(&mut self, closed_ns: u64) {
        self.zero_window_ns = self.zero_window_ns.saturating_add(closed_ns);
        self.zero_window_longest_ns = self.zero_window_longest_ns.max(closed_ns);
    }

    /// Segments sent again, of whatever kind.
    pub fn again(&self) -> u64 {
        self.fast + self.timeouts + self.needless + self.filled
    }

    /// Segments sent again of which the receiver had the first.
    pub fn spurious(&self) -> u64 {
        let told = self.dsacks.saturating_sub(self.duplicated());
        told.max(self.echoed).max(self.needless).max(self.healed)
    }

    /// Segments that were duplicated on the way: those seen to be, or told to have come twice beyond all that was sent again. Of what was
    /// sent again, the first may have passed here late.
    pub fn duplicated(&self) -> u64 {
        self.duplicated_before.max(self.dsacks.saturating_sub(self.again() + self.late))
    }
}
