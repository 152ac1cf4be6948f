//! Sends blocks at a rate: how many are due, and when the next one is.

use core::time::Duration;
use linerate_wire::units::{Instant, Rate};

/// Most time that a sender which fell behind may make up for at once: beyond it, the past is forgiven. At 200 Mb/s it is
/// 52 datagrams of 1,448 bytes, which fit the 208 KiB that Linux gives a receiving socket; 10 ms of them do not.
const MAX_BURST: Duration = Duration::from_millis(3);

/// Paces blocks of one length.
#[derive(Clone, Debug)]
pub struct Pacer {
    next: Instant,
    gap: Option<Duration>,
}

impl Pacer {
    /// From `now` on, blocks of `len` bytes at `rate_bps` bits per second; zero for no limit.
    pub fn new(now: Instant, rate_bps: u64, len: usize) -> Self {
        Pacer { next: now, gap: Rate::from_bps(rate_bps).time_for(len as u64) }
    }

    /// Whether a block is due.
    pub fn is_due(&self, now: Instant) -> bool {
        self.gap.is_none() || self.next <= now
    }

    /// Notes that a block was sent.
    pub fn sent(&mut self, now: Instant) {
        if let Some(gap) = self.gap {
            let floor = Instant::from_nanos(now.as_nanos().saturating_sub(MAX_BURST.as_nanos() as u64));
            self.next = self.next.max(floor) + gap;
        }
    }

    /// When the next block is due; `None` without a limit.
    pub fn due_at(&self) -> Option<Instant> {
        self.gap.map(|_| self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_kept_over_uneven_turns() {
        // 1,250-byte blocks at 10 Mb/s: one a millisecond.
        let mut pacer = Pacer::new(Instant::ZERO, 10_000_000, 1250);
        let mut sent = 0_u64;
        let mut now = Instant::ZERO;
        for turn in 0..1000u64 {
            while pacer.is_due(now) {
                pacer.sent(now);
                sent += 1;
            }
            now += Duration::from_micros(500 + turn % 7 * 333);
        }
        let expected = now.as_millis();
        assert!(sent.abs_diff(expected) <= 3, "{sent} of {expected}");
    }

    #[test]
    fn a_long_pause_is_not_made_up_for() {
        let mut pacer = Pacer::new(Instant::ZERO, 10_000_000, 1250);
        let now = Instant::from_millis(5000);
        let mut burst = 0;
        while pacer.is_due(now) {
            pacer.sent(now);
            burst += 1;
        }
        assert!(burst <= 5, "{burst}");
        assert!(Pacer::new(now, 0, 100).due_at().is_none());
    }
}
