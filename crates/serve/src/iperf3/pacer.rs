//! Sends blocks at a rate: how many are due, and when the next one is.

use core::time::Duration;
use linerate_wire::units::{Instant, Rate};

/// Most time that a sender which fell behind makes up for: beyond it, the past is forgiven.
const MAX_DEBT: Duration = Duration::from_secs(1);

/// Most of twice the rate that is sent at once while catching up. At 200 Mb/s it is 104 datagrams of 1,448 bytes, which
/// fit the 208 KiB that Linux gives a receiving socket.
const MAX_BURST: Duration = Duration::from_millis(3);

/// Paces blocks of one length. A sender that came late catches up at twice its rate.
#[derive(Clone, Debug)]
pub struct Pacer {
    /// When the next block is due by the rate.
    next: Instant,
    /// When the next block may go by twice the rate, which bounds catching up.
    soonest: Instant,
    gap: Option<Duration>,
}

impl Pacer {
    /// From `now` on, blocks of `len` bytes at `rate_bps` bits per second; zero for no limit.
    pub fn new(now: Instant, rate_bps: u64, len: usize) -> Self {
        Pacer { next: now, soonest: now, gap: Rate::from_bps(rate_bps).time_for(len as u64) }
    }

    /// Whether a block is due.
    pub fn is_due(&self, now: Instant) -> bool {
        self.due_at().is_none_or(|at| at <= now)
    }

    /// Notes that a block was sent.
    pub fn sent(&mut self, now: Instant) {
        if let Some(gap) = self.gap {
            self.next = self.next.max(before(now, MAX_DEBT)) + gap;
            self.soonest = self.soonest.max(before(now, MAX_BURST)) + gap / 2;
        }
    }

    /// When the next block is due; `None` without a limit.
    pub fn due_at(&self) -> Option<Instant> {
        self.gap.map(|_| self.next.max(self.soonest))
    }
}

fn before(now: Instant, span: Duration) -> Instant {
    Instant::from_nanos(now.as_nanos().saturating_sub(span.as_nanos() as u64))
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
    fn a_late_sender_catches_up_at_twice_its_rate() {
        // 1,250-byte blocks at 10 Mb/s: one a millisecond. Nobody calls for 200 ms.
        let mut pacer = Pacer::new(Instant::ZERO, 10_000_000, 1250);
        let mut sent = 0_u64;
        for ms in 200..=420u64 {
            let now = Instant::from_millis(ms);
            let mut burst = 0;
            while pacer.is_due(now) {
                pacer.sent(now);
                burst += 1;
            }
            sent += burst;
            assert!(burst <= 7, "{burst} at {ms} ms");
        }
        assert!(sent.abs_diff(420) <= 2, "{sent}");
    }

    #[test]
    fn more_than_a_second_is_not_made_up_for() {
        let mut pacer = Pacer::new(Instant::ZERO, 10_000_000, 1250);
        let mut sent = 0;
        for ms in 5000..=7000u64 {
            while pacer.is_due(Instant::from_millis(ms)) {
                pacer.sent(Instant::from_millis(ms));
                sent += 1;
            }
        }
        assert!((2990..=3010).contains(&sent), "{sent}");
        assert!(Pacer::new(Instant::ZERO, 0, 100).due_at().is_none());
    }
}
