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
/// Several blocks go out together and then none until their time has passed: as many as the client's `--pacing-timer` covers, so that a
/// turn of the loop sends more than one where they are near one another; or as many as `-b RATE/BURST` says.
#[derive(Clone, Debug)]
pub struct Pacer {
    /// When the next blocks are due by the rate.
    next: Instant,
    /// When the next blocks may go by twice the rate, which bounds catching up.
    soonest: Instant,
    gap: Option<Duration>,
    /// Blocks that go together.
    together: u32,
    /// Of those, how many are left to be sent now.
    left: u32,
}

impl Pacer {
    /// From `now` on, blocks of the length and at the rate that `params` has, or without a limit.
    pub fn new(now: Instant, params: &Params) -> Self {
        let gap = Rate::from_bps(params.rate_bps).time_for(params.len as u64);
        let together = gap.map_or(1, |gap| together(gap, params));
        Pacer { next: now, soonest: now, gap, together, left: 0 }
    }

    /// Whether a block is due. Where none is, the next ones are at [`Pacer::due_at`].
    pub fn is_due(&mut self, now: Instant) -> bool {
        if self.left == 0 && self.due_at().is_none_or(|at| at <= now) {
            self.left = self.together;
        }
        self.left > 0
    }

    /// Notes that a block was sent.
    pub fn sent(&mut self, now: Instant) {
        self.left = self.left.saturating_sub(1);
        if let Some(gap) = self.gap {
            let span = gap * self.together;
            self.next = self.next.max(before(now, MAX_DEBT.max(span))) + gap;
            self.soonest = self.soonest.max(before(now, MAX_BURST.max(span))) + gap / 2;
        }
    }

    /// When the next block is due; `None` without a limit.
    pub fn due_at(&self) -> Option<Instant> {
        let at = if self.left > 0 { Instant::ZERO } else { self.next.max(self.soonest) };
        self.gap.map(|_| at)
    }
}

/// How many blocks go together: those that come due until the pacing timer ends, or `-b RATE/BURST`.
fn together(gap: Duration, params: &Params) -> u32 {
    if params.burst > 0 {
        return params.burst;
    }
    let blocks = params.pacing_timer.as_nanos() / gap.as_nanos().max(1);
    let most = if params.pacing_timer > PACING_TIMER { u128::from(u32::MAX) } else { MAX_BLOCKS };
    blocks.clamp(1, most) as u32
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
            let woken = 1_000_u64.checked_div(others).map(|us| now + Duration::from_micros(us));
            now = woken.map_or(due, |at| at.min(due));
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
        assert_eq!(second(&burst, 10), (100, 10_000));
        // Also one that takes longer than the second that is made up for, and from the beginning.
        let mut pacer = Pacer::new(Instant::ZERO, &Params { burst: 1_000, ..params(1_000_000) });
        for ten_s in 0..3 {
            assert_eq!(turn(&mut pacer, Instant::from_millis(10_000 * ten_s)), 1_000);
            assert_eq!(turn(&mut pacer, Instant::from_millis(10_000 * ten_s + 9_990)), 0);
        }
    }
}
