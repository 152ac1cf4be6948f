//! Pacing: data leaves at a rate instead of in bursts.
//!
//! One deadline per connection says when the next piece may leave. A piece is what the rate carries in a millisecond, so
//! that a fast connection still sends super-segments; a wake-up that comes late is made up for by as much.

use core::time::Duration;
use linerate_transport::Pacing;
use linerate_wire::units::{Instant, nanos};

const NS_PER_SECOND: u64 = 1_000_000_000;

/// What leaves in this time leaves at once.
const PIECE_NS: u64 = 1_000_000;

/// Fewest segments of a piece.
const LEAST_SEGMENTS: u64 = 2;

/// What the automatic rate is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PathRate {
    /// The congestion window in bytes.
    pub window: u64,
    pub smoothed_rtt: Option<Duration>,
    pub slow_start: bool,
}

/// Payload bytes per second; `None`: no pacing, or no round trip measured yet.
pub(super) fn rate(policy: Pacing, path: &PathRate) -> Option<u64> {
    match policy {
        Pacing::Off => None,
        Pacing::Rate(bytes_per_second) => Some(bytes_per_second.max(1)),
        Pacing::Auto => {
            let rtt_ns = nanos(path.smoothed_rtt?);
            // Twice the window per round trip while it doubles, 1.2 times later: the window limits, not the pacing.
            let window = if path.slow_start { path.window * 2 } else { path.window + path.window / 5 };
            Some((window.saturating_mul(NS_PER_SECOND)).checked_div(rtt_ns)?.max(1))
        }
    }
}

/// Most payload bytes of a packet at `rate` bytes per second in segments of `segment` bytes: whole segments.
pub(super) fn piece(rate: u64, segment: u64) -> u64 {
    let piece = rate / (NS_PER_SECOND / PIECE_NS);
    (piece / segment.max(1)).max(LEAST_SEGMENTS) * segment
}

/// When the next piece may leave.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pacer {
    next: Instant,
}

impl Pacer {
    /// Until when to wait; `None`: a piece may leave.
    pub fn waits_until(&self, now: Instant) -> Option<Instant> {
        (now < self.next).then_some(self.next)
    }

    /// `bytes` left at `rate` bytes per second.
    pub fn on_sent(&mut self, now: Instant, bytes: u64, rate: u64) {
        let earliest = Instant::from_nanos(now.as_nanos().saturating_sub(PIECE_NS));
        let cost_ns = bytes.saturating_mul(NS_PER_SECOND) / rate.max(1);
        self.next = self.next.max(earliest) + Duration::from_nanos(cost_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: PathRate =
        PathRate { window: 100_000, smoothed_rtt: Some(Duration::from_millis(10)), slow_start: false };

    #[test]
    fn the_automatic_rate_is_the_windows_and_a_fifth_or_twice_it() {
        assert_eq!(rate(Pacing::Auto, &PATH), Some(12_000_000));
        assert_eq!(rate(Pacing::Auto, &PathRate { slow_start: true, ..PATH }), Some(20_000_000));
        for smoothed_rtt in [None, Some(Duration::ZERO)] {
            assert_eq!(rate(Pacing::Auto, &PathRate { smoothed_rtt, ..PATH }), None);
        }
        assert_eq!(rate(Pacing::Off, &PATH), None);
        assert_eq!((rate(Pacing::Rate(7), &PATH), rate(Pacing::Rate(0), &PATH)), (Some(7), Some(1)));
        let most =
            PathRate { window: 1 << 30, smoothed_rtt: Some(Duration::from_nanos(1)), slow_start: true };
        assert_eq!(rate(Pacing::Auto, &most), Some((1 << 31) * NS_PER_SECOND));
    }

    #[test]
    fn a_piece_is_a_millisecond_of_whole_segments_and_two_at_least() {
        assert_eq!(piece(12_000_000, 1_000), 12_000);
        assert_eq!(piece(12_999_999, 1_460), 8 * 1_460);
        assert_eq!(piece(1, 1_460), 2_920);
        assert_eq!(piece(1, 0), 0);
    }

    #[test]
    fn pieces_leave_at_the_rate_and_late_ones_catch_up_by_a_millisecond() {
        let mut pacer = Pacer::default();
        let mut now = Instant::from_millis(50);
        assert_eq!(pacer.waits_until(now), None);
        pacer.on_sent(now, 2_000, 1_000_000);
        assert_eq!(pacer.waits_until(now), Some(now + Duration::from_millis(1)), "a millisecond of credit");
        now += Duration::from_millis(1);
        pacer.on_sent(now, 2_000, 1_000_000);
        assert_eq!(pacer.waits_until(now), Some(now + Duration::from_millis(2)));
        now += Duration::from_millis(10);
        assert_eq!(pacer.waits_until(now), None);
        pacer.on_sent(now, 2_000, 1_000_000);
        assert_eq!(pacer.waits_until(now), Some(now + Duration::from_millis(1)));
    }
}
