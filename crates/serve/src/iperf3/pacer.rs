//! Sends blocks at a rate: how many are due, and when the next ones are.

use super::params::{PACING_TIMER, Params};
use core::time::Duration;
use linerate_wire::units::{Instant, Rate};

/// Most time that a sender which fell behind makes up for: beyond it, the past is forgiven.
const MAX_DEBT: Duration = Duration::from_secs(1);

/// Most of twice the rate that is sent at once while catching up, unless the client asks for longer bursts. At 200 Mb/s
/// it is 104 datagrams of 1,448 bytes, which fit the 208 KiB that Linux gives a receiving socket.
const MAX_BURST: Duration = Duration::from_millis(3);

/// Most blocks that wait for one another to be sent in one turn, unless the client asks for more. Fewer than a turn
/// sends of usual datagrams, so that one turn is enough.
const MAX_BLOCKS: u128 = 16;

/// Paces blocks of one length. A sender that came late catches up at twice its rate.
///
/// Between two turns it lets the time of the client's `--pacing-timer` pass, so that a turn of the loop sends several
/// blocks at rates at which they are near one another.
#[derive(Clone, Debug)]
pub struct Pacer {
    /// When the next block is due by the rate.
    next: Instant,
    /// When the next block may go by twice the rate, which bounds catching up.
    soonest: Instant,
    /// Nothing is sent before, as the blocks of one turn wait for one another.
    rests_until: Instant,
    gap: Option<Duration>,
    /// From the first to the last block that are sent in one turn.
    span: Duration,
}

impl Pacer {
    /// From `now` on, blocks of the length and at the rate that `params` has, or without a limit.
    pub fn new(now: Instant, params: &Params) -> Self {
        let gap = Rate::from_bps(params.rate_bps).time_for(params.len as u64);
        let span = gap.map_or(Duration::ZERO, |gap| span(gap, params));
        Pacer { next: now, soonest: now, rests_until: now, gap, span }
    }

    /// Whether a block is due. Where none is, the next turn is at [`Pacer::due_at`].
    pub fn is_due(&mut self, now: Instant) -> bool {
        let Some(at) = self.due_at() else { return true };
        if at > now && self.rests_until <= now {
            self.rests_until = at + self.span;
        }
        at <= now
    }

    /// Notes that a block was sent.
    pub fn sent(&mut self, now: Instant) {
        if let Some(gap) = self.gap {
            self.next = self.next.max(before(now, MAX_DEBT)) + gap;
            self.soonest = self.soonest.max(before(now, MAX_BURST.max(self.span))) + gap / 2;
        }
    }

    /// When the next block is due; `None` without a limit.
    pub fn due_at(&self) -> Option<Instant> {
        self.gap.map(|_| self.next.max(self.soonest).max(self.rests_until))
    }
}

/// From the first to the last block of one turn: as many as come due until the pacing timer ends, or `-b RATE/BURST`.
fn span(gap: Duration, params: &Params) -> Duration {
    let blocks = params.pacing_timer.as_nanos() / gap.as_nanos().max(1);
    let blocks = if params.pacing_timer > PACING_TIMER { blocks } else { blocks.min(MAX_BLOCKS) };
    let blocks = blocks.max(u128::from(params.burst));
    gap * u32::try_from(blocks.saturating_sub(1)).unwrap_or(u32::MAX)
}

fn before(now: Instant, span: Duration) -> Instant {
    Instant::from_nanos(now.as_nanos().saturating_sub(span.as_nanos() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1,250-byte blocks at `rate_bps`.
    fn pacer(rate_bps: u64) -> Pacer {
        Pacer::new(Instant::ZERO, &params(rate_bps))
    }

    fn params(rate_bps: u64) -> Params {
        Params { rate_bps, len: 1250, ..Params::parse(b"{}").expect("the defaults") }
    }

    /// What is sent at `now`.
    fn turn(pacer: &mut Pacer, now: Instant) -> u64 {
        let mut sent = 0;
        while pacer.is_due(now) {
            pacer.sent(now);
            sent += 1;
        }
        sent
    }

    #[test]
    fn a_rate_is_kept_over_uneven_turns() {
        for (rate_bps, each_ms) in [(10_000_000, 1), (100_000_000, 10), (1_000_000_000, 100)] {
            let mut pacer = pacer(rate_bps);
            let mut sent = 0;
            let mut now = Instant::ZERO;
            for count in 0..1000u64 {
                sent += turn(&mut pacer, now);
                now += Duration::from_micros(500 + count % 7 * 333);
            }
            let expected = now.as_millis() * each_ms;
            assert!(sent.abs_diff(expected) <= 5 * each_ms, "{sent} of {expected}");
        }
    }

    #[test]
    fn a_late_sender_catches_up_at_twice_its_rate() {
        // One a millisecond. Nobody calls for 200 ms.
        let mut pacer = pacer(10_000_000);
        let mut sent = 0_u64;
        for ms in 200..=420u64 {
            let burst = turn(&mut pacer, Instant::from_millis(ms));
            sent += burst;
            assert!(burst <= 7, "{burst} at {ms} ms");
        }
        assert!(sent.abs_diff(420) <= 2, "{sent}");
    }

    #[test]
    fn more_than_a_second_is_not_made_up_for() {
        let mut pacer = pacer(10_000_000);
        let mut sent = 0;
        for ms in 5000..=7000u64 {
            sent += turn(&mut pacer, Instant::from_millis(ms));
        }
        assert!((2990..=3010).contains(&sent), "{sent}");
        assert!(Pacer::new(Instant::ZERO, &params(0)).due_at().is_none());
    }

    /// Turns that a second takes which is woken for what is due and also `others` times a millisecond, and what it sends.
    fn second(params: &Params, others: u64) -> (u64, u64) {
        let mut pacer = Pacer::new(Instant::ZERO, params);
        let (mut now, mut turns, mut sent) = (Instant::ZERO, 0, 0);
        while now < Instant::from_millis(1000) {
            let burst = turn(&mut pacer, now);
            sent += burst;
            turns += u64::from(burst > 0);
            let due = pacer.due_at().expect("a limit");
            now = if others > 0 { due.min(now + Duration::from_micros(1000 / others)) } else { due };
        }
        (turns, sent)
    }

    #[test]
    fn a_turn_sends_what_comes_due_until_the_pacing_timer_ends() {
        for others in [0, 10] {
            // 10,000 blocks a second, 10 in a millisecond.
            let (turns, sent) = second(&params(100_000_000), others);
            assert!((995..=1005).contains(&turns) && sent.abs_diff(10_000) <= 10, "{turns}, {sent}");
            // Blocks that are further from one another wait for none.
            let (turns, sent) = second(&params(1_000_000), others);
            assert_eq!((turns, sent), (100, 100));
            // At 10 Gb/s a millisecond is 1,000 blocks, which would be lost in the peer's buffer.
            let (turns, sent) = second(&params(10_000_000_000), others);
            assert!(turns >= 1_000_000 / 17 && sent.abs_diff(1_000_000) <= 20, "{turns}, {sent}");
        }
    }

    #[test]
    fn the_client_says_how_long_a_burst_is() {
        let long = Params { pacing_timer: Duration::from_millis(20), ..params(100_000_000) };
        let (turns, sent) = second(&long, 10);
        assert!((49..=52).contains(&turns) && sent.abs_diff(10_000) <= 200, "{turns}, {sent}");
        let short = Params { pacing_timer: Duration::from_micros(100), ..params(100_000_000) };
        assert_eq!(second(&short, 0), (10_000, 10_000));
        let burst = Params { burst: 100, ..params(100_000_000) };
        let (turns, sent) = second(&burst, 10);
        assert!((99..=102).contains(&turns) && sent.abs_diff(10_000) <= 100, "{turns}, {sent}");
    }
}
