//! How fast bytes follow each other in trains of packets: what the narrowest link on the way lets through.

use super::histogram::Histogram;
use std::collections::VecDeque;

/// A train has at least this many packets behind its first, so that a single delayed one does not decide; an even number, since
/// senders that keep to a rate often send two at once.
const TRAIN: usize = 4;
/// The same of segments, where packets are smaller.
const TRAIN_SEGMENTS: u64 = 4;
/// Packets that are remembered.
const KEPT: usize = 64;

/// Trains of one stream of packets.
#[derive(Clone, Default, Debug)]
pub struct Dispersion {
    recent: VecDeque<(u64, u64)>,
    bytes: u64,
    /// Bytes per second of trains, each weighed by its newest packet's bytes.
    pub rates: Histogram,
    /// Time between packets that have bytes, in nanoseconds.
    pub gaps: Histogram,
}

impl Dispersion {
    /// So many new bytes came at this time.
    pub fn take(&mut self, at_ns: u64, bytes: u64, mss: u64) {
        self.bytes += bytes;
        if let Some((before_ns, _)) = self.recent.back() {
            self.gaps.record(at_ns.saturating_sub(*before_ns));
        }
        self.recent.push_back((at_ns, self.bytes));
        if self.recent.len() > KEPT {
            self.recent.pop_front();
        }
        let Some(end) = self.recent.len().checked_sub(TRAIN + 1) else { return };
        // The shortest train that is long enough. Its first packet's own bytes were there before it began.
        let train =
            self.recent.range(..=end).rev().find(|(_, before)| self.bytes - before >= TRAIN_SEGMENTS * mss);
        if let Some((from_ns, before)) = train
            && let Some(rate) = rate(self.bytes - before, at_ns.saturating_sub(*from_ns))
        {
            self.rates.weigh(rate, bytes as f64);
        }
    }
}

/// Bytes per second; `None` in no time.
pub fn rate(bytes: u64, time_ns: u64) -> Option<u64> {
    (time_ns > 0).then(|| (u128::from(bytes) * 1_000_000_000 / u128::from(time_ns)) as u64)
}
