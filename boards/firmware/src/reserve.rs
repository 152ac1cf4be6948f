//! What the network leaves to tasks below it, however much there is to do.

use crate::board::Board;
use alloc::string::String;
use core::time::Duration;
use linerate_wire::units::Instant;

/// What `help` says of it.
pub(crate) const HELP: &str =
    "reserve   percent of the processor left to tasks below the network; reserve PERCENT sets it\n";
/// The most that is left to others.
const MOST: u32 = 90;
/// Work and rest together where there is always work, in ns: rests are that short, so that frames fit the interface meanwhile.
const PERIOD_NS: u32 = 1_000_000;
/// The longest rest, after a turn that took long.
const LONGEST_NS: u32 = 10_000_000;

/// The clock of a board may have 32 bits: the loop turns so often at least, and reads it.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// A share of the processor that is not the network's.
///
/// What it works is owed to the others in proportion, and time asleep pays for it. Beyond what a period of work without a pause owes,
/// it rests until all is paid. So a network that sleeps often enough by itself is never held up.
pub(crate) struct Reserve {
    percent: u32,
    since: Instant,
    has_slept: bool,
    /// Hundredths of a nanosecond.
    owed: u64,
}

impl Reserve {
    /// Leaves so many percent to others; none for 0.
    pub fn new(percent: u32, now: Instant) -> Self {
        Reserve { percent: percent.min(MOST), since: now, has_slept: false, owed: 0 }
    }

    /// Whether a line of the console is for it.
    pub fn takes(line: &str) -> bool {
        line.split_whitespace().next() == Some("reserve")
    }

    /// Carries out such a line.
    pub fn command(&mut self, line: &str) -> String {
        if let Some(word) = line.split_whitespace().nth(1) {
            match word.parse::<u32>() {
                Ok(percent) if percent <= MOST => self.percent = percent,
                _ => return alloc::format!("reserve: {word} given, 0 to {MOST} expected\n"),
            }
        }
        alloc::format!("{} % is left to others\n", self.percent)
    }

    /// The time of the next turn, which begins now, or after a rest.
    pub async fn begin(&mut self, board: &mut impl Board) -> Instant {
        let now = board.now();
        if core::mem::take(&mut self.has_slept) {
            self.slept(now);
            return now;
        }
        let Some(until) = self.worked(now) else { return now };
        let mut now = now;
        while now < until {
            // Whatever comes.
            board.sleep(Some(until)).await;
            now = board.now();
        }
        self.slept(now);
        now
    }

    /// Sleeps until then at the latest, or until something comes.
    pub async fn sleep(&mut self, board: &mut impl Board, until: Option<Instant>) {
        let now = board.now();
        // Sleep pays for what was worked, whether or not it is time to.
        self.worked(now);
        let latest = now + LONGEST_SLEEP;
        board.sleep(Some(until.map_or(latest, |at| at.min(latest)))).await;
        self.has_slept = true;
    }

    /// Since the last call there was work; until when to rest, if it is time to.
    fn worked(&mut self, now: Instant) -> Option<Instant> {
        let (work, sleep) = (self.percent, 100 - self.percent);
        self.owed = self.owed.saturating_add(self.take_time(now) * u64::from(work));
        let most = PERIOD_NS / 100 * work * sleep;
        let is_time = work > 0 && self.owed >= most.into();
        // No more is slept at once, so that 32 bits are enough: a division of 64 is a call.
        let owed = self.owed.min((LONGEST_NS * sleep).into()) as u32;
        is_time.then(|| now.after_nanos((owed / sleep).into()))
    }

    /// Since the last call the network was asleep.
    fn slept(&mut self, now: Instant) {
        let time = self.take_time(now);
        // Longer sleep is no credit: what was not used is gone.
        self.owed = self.owed.saturating_sub(time * u64::from(100 - self.percent));
    }

    /// Time since the last call; four seconds at most, which no turn takes.
    fn take_time(&mut self, now: Instant) -> u64 {
        let since = core::mem::replace(&mut self.since, now);
        now.nanos_since(since).min(u32::MAX.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Works in turns of `turn_us` until `until_ms`, with `pause_us` asleep after each; the share of the time asleep.
    fn asleep(percent: u32, turn_us: u64, pause_us: u64, until_ms: u64) -> f64 {
        let mut now = Instant::ZERO;
        let mut reserve = Reserve::new(percent, now);
        let mut asleep = 0;
        while now < Instant::from_millis(until_ms) {
            now += Duration::from_micros(turn_us);
            let rest = reserve.worked(now);
            let wake = rest.unwrap_or(now + Duration::from_micros(pause_us));
            asleep += wake.as_nanos() - now.as_nanos();
            now = wake;
            reserve.slept(now);
        }
        asleep as f64 / now.as_nanos() as f64
    }

    #[test]
    fn work_without_end_leaves_the_share() {
        for (percent, turn_us) in [(30, 10), (30, 250), (30, 3_000), (50, 100), (90, 7), (1, 20)] {
            let share = asleep(percent, turn_us, 0, 1_000);
            assert!(
                (share - f64::from(percent) / 100.0).abs() < 0.01,
                "{percent} % by {turn_us} us: {share}"
            );
        }
        assert_eq!(asleep(0, 10, 0, 100), 0.0);
    }

    #[test]
    fn the_console_sets_it() {
        let mut reserve = Reserve::new(30, Instant::ZERO);
        assert!(Reserve::takes(" reserve 5") && Reserve::takes("reserve") && !Reserve::takes("reserved"));
        assert_eq!(reserve.command("reserve"), "30 % is left to others\n");
        assert_eq!(reserve.command("reserve 91"), "reserve: 91 given, 0 to 90 expected\n");
        assert_eq!(reserve.command("reserve 0"), "0 % is left to others\n");
        assert_eq!(reserve.worked(Instant::from_millis(1_000)), None);
    }

    #[test]
    fn who_sleeps_enough_is_not_held_up() {
        let share = asleep(30, 60, 40, 1_000);
        assert!((share - 0.4).abs() < 0.001, "{share}");
    }

    #[test]
    fn a_rest_is_short_and_a_long_turn_owes_no_more_than_that() {
        let mut reserve = Reserve::new(30, Instant::ZERO);
        let mut now = Instant::ZERO + Duration::from_micros(699);
        assert_eq!(reserve.worked(now), None);
        now += Duration::from_micros(1);
        assert_eq!(reserve.worked(now), Some(now + Duration::from_micros(300)));
        now += Duration::from_secs(1);
        assert_eq!(reserve.worked(now), Some(now.after_nanos(LONGEST_NS.into())));
    }
}
