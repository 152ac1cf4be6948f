//! Whether those who have to make progress do, asked from outside by an interrupt that stands above them; and why the board started.
//!
//! Whoever is watched counts: [`Watchdog::turns`] where it has come round, [`Watchdog::rests`] before it waits for something that may
//! never come. A board's interrupt, which nobody below can hold up, calls [`Watchdog::check`] once a second. Seconds are counted
//! by these calls and not by a clock: an emulator or a debugger that stood still finds one of them waiting afterwards, not many.

use alloc::string::String;
use core::fmt::Arguments;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicU32, Ordering};

/// How often a board checks.
pub const CHECK_NS: u64 = 1_000_000_000;
/// Seconds that may be set. The loop turns once a second where nothing happens; and the watchdog of a chip counts no longer.
const SECONDS: core::ops::RangeInclusive<u32> = 2..=30;
/// Of a count: that its owner does not rest.
const HAS_TO: u32 = 1;

/// What `help` says of it.
pub const HELP: &str = "watchdog  seconds without progress that start the board anew, and why it started; watchdog SECONDS sets them\n";

/// The watchdog of a board, or of a core: for so many who have to make progress.
#[derive(Debug)]
pub struct Watchdog<const N: usize> {
    names: [&'static str; N],
    /// Two more with each sign of life; odd while the next one is due. Each has one writer.
    counts: [AtomicU32; N],
    /// The count at the last check, and the checks that have found it.
    seen: [(AtomicU32, AtomicU32); N],
    /// Without progress for so many checks the board is started anew; 0 for never.
    limit: AtomicU32,
    /// Checks since the image ended by a panic or a fault, and one; 0 while it runs.
    ended: AtomicU32,
}

/// What a check has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// This one, by its place among the names, has made no progress for as long as is set.
    Stuck(usize),
    /// The image has ended long enough ago, and its report is out.
    Ended,
}

impl<const N: usize> Watchdog<N> {
    /// Watches these, each from its first sign of life on.
    pub const fn new(names: [&'static str; N], seconds: u32) -> Self {
        Watchdog {
            names,
            counts: [const { AtomicU32::new(0) }; N],
            seen: [const { (AtomicU32::new(0), AtomicU32::new(0)) }; N],
            limit: AtomicU32::new(seconds),
            ended: AtomicU32::new(0),
        }
    }

    /// The one at this place makes progress, and is to do so again.
    #[inline]
    pub fn turns(&self, who: usize) {
        let count = self.counts[who].load(Ordering::Relaxed);
        self.counts[who].store(count.wrapping_add(2) | HAS_TO, Ordering::Relaxed);
    }

    /// The one at this place begins to wait for something that need not come.
    pub fn rests(&self, who: usize) {
        let count = self.counts[who].load(Ordering::Relaxed);
        self.counts[who].store(count.wrapping_add(2) & !HAS_TO, Ordering::Relaxed);
    }

    /// A panic or a fault is about to be reported: nobody makes progress any more, and the board is started anew later.
    pub fn end(&self) {
        self.ended.store(1, Ordering::Relaxed);
    }

    /// What is to be done, a second after the last call. Called by one interrupt, or where none comes.
    pub fn check(&self) -> Option<Verdict> {
        let limit = self.limit.load(Ordering::Relaxed);
        let ended = self.ended.load(Ordering::Relaxed);
        if ended > 0 {
            self.ended.store(ended + 1, Ordering::Relaxed);
            return (limit > 0 && ended >= limit).then_some(Verdict::Ended);
        }
        let mut stuck = None;
        for (who, (count, (seen, times))) in self.counts.iter().zip(&self.seen).enumerate() {
            let count = count.load(Ordering::Relaxed);
            let found = if seen.load(Ordering::Relaxed) == count && count & HAS_TO != 0 {
                times.load(Ordering::Relaxed) + 1
            } else {
                0
            };
            seen.store(count, Ordering::Relaxed);
            times.store(found, Ordering::Relaxed);
            if limit > 0 && found >= limit && stuck.is_none() {
                stuck = Some(Verdict::Stuck(who));
            }
        }
        stuck
    }

    /// Sets the seconds without progress after which the board is started anew; 0 for never.
    pub fn set(&self, seconds: u32) {
        self.limit.store(seconds, Ordering::Relaxed);
    }

    /// The name of the one at this place.
    pub fn name(&self, who: usize) -> &'static str {
        self.names[who]
    }

    /// The first line of the report of one that is stuck, by its place.
    pub fn say_stuck(&self, who: usize, mut say: impl FnMut(Arguments<'_>)) {
        let (name, seconds) = (self.name(who), self.seconds());
        say(format_args!("\n*** watchdog: task {name} has made no progress for {seconds} s"));
    }

    /// Seconds without progress that start the board anew; 0 for never.
    pub fn seconds(&self) -> u32 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Carries out the command `watchdog`, if this is it. In an image whose setting is 0 (`is_there`) nothing checks.
    pub fn command(&self, line: &str, is_there: bool, last: LastStart) -> Option<String> {
        let mut words = line.split_whitespace();
        if words.next() != Some("watchdog") {
            return None;
        }
        let word = words.next();
        if !is_there {
            return Some("no watchdog in this image: watchdog.seconds is 0\n".into());
        }
        if let Some(word) = word {
            match word.parse::<u32>() {
                Ok(seconds) if seconds == 0 || SECONDS.contains(&seconds) => {
                    self.limit.store(seconds, Ordering::Relaxed);
                }
                _ => {
                    let (least, most) = SECONDS.into_inner();
                    return Some(alloc::format!(
                        "watchdog: {word} given, 0 for none or {least} to {most} seconds expected\n"
                    ));
                }
            }
        }
        let LastStart { cause, count } = last;
        Some(alloc::format!(
            "{} s; last start: {}, by the watchdog {count} so far\n",
            self.seconds(),
            cause.name()
        ))
    }
}

/// Why a board started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Cause {
    /// Nothing is known of a time before: the power was switched on.
    #[default]
    Power,
    /// A reset from outside, or one that left no word.
    Reset,
    /// The watchdog, for want of progress.
    Watchdog,
    /// The watchdog, after the report of a panic or a fault.
    Panic,
}

impl Cause {
    /// As the console and `/stats` call it.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Power => "power",
            Cause::Reset => "reset",
            Cause::Watchdog => "watchdog",
            Cause::Panic => "panic",
        }
    }
}

/// Why a board started last, and how often the watchdog has started it since the power was on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LastStart {
    /// Why.
    pub cause: Cause,
    /// How often by the watchdog, for whatever reason.
    pub count: u32,
}

/// How often and why a board started, in memory that a start leaves as it is.
#[derive(Debug)]
pub struct Starts {
    read: fn(usize) -> u32,
    write: fn(usize, u32),
    /// What was found there at the start.
    found: [AtomicU32; Starts::WORDS],
}

impl Starts {
    /// Words of that memory.
    pub const WORDS: usize = 4;

    /// How a board reads and writes those words, by their place.
    pub const fn new(read: fn(usize) -> u32, write: fn(usize, u32)) -> Starts {
        Starts { read, write, found: [const { AtomicU32::new(0) }; Starts::WORDS] }
    }

    /// Looks why the board starts; once, at the start.
    pub fn note(&self) {
        let kept = self.kept();
        self.found.iter().zip(kept.0).for_each(|(found, word)| found.store(word, Ordering::Relaxed));
        self.keep(kept.start().1);
    }

    /// Why the board started.
    pub fn last(&self) -> LastStart {
        Kept(self.found.each_ref().map(|word| word.load(Ordering::Relaxed))).start().0
    }

    /// The watchdog is about to start the board anew.
    pub fn before_reset(&self, verdict: Verdict) {
        self.keep(self.kept().before_reset(verdict));
    }

    fn kept(&self) -> Kept {
        Kept(core::array::from_fn(self.read))
    }

    fn keep(&self, kept: Kept) {
        kept.0.into_iter().enumerate().for_each(|(at, word)| (self.write)(at, word));
    }
}

/// What those words say: a mark, the count, the cause, and a check of both; memory begins as anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Kept([u32; Starts::WORDS]);

impl Kept {
    /// What the first one says when the others mean something.
    const MARK: u32 = 0x3d06_11fe;

    fn of(count: u32, cause: u32) -> Kept {
        Kept([Kept::MARK, count, cause, !(count ^ cause)])
    }

    fn is_whole(self) -> bool {
        let [mark, count, cause, check] = self.0;
        mark == Kept::MARK && check == !(count ^ cause)
    }

    /// At the start: why it came, and what is to be left for the next one.
    fn start(self) -> (LastStart, Kept) {
        if !self.is_whole() {
            return (LastStart::default(), Kept::of(0, 0));
        }
        let [_, count, cause, _] = self.0;
        let cause = match cause {
            0 => Cause::Reset,
            1 => Cause::Watchdog,
            _ => Cause::Panic,
        };
        (LastStart { cause, count }, Kept::of(count, 0))
    }

    /// Before the watchdog starts the board anew: what is to be left.
    fn before_reset(self, verdict: Verdict) -> Kept {
        let count = if self.is_whole() { self.0[1] } else { 0 };
        let cause = match verdict {
            Verdict::Stuck(_) => 1,
            Verdict::Ended => 2,
        };
        Kept::of(count.saturating_add(1), cause)
    }
}

/// The answer to a command `hang` that names nobody who can hang, if a line is one; `expected` are those who can.
pub fn hangs_nobody(line: &str, expected: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    if words.next() != Some("hang") {
        return None;
    }
    let given = words.next().unwrap_or("nothing");
    Some(alloc::format!("hang: {given} given, {expected} expected\n"))
}

/// Never comes back, to show what the watchdog does. A function of its own, so that there is a name to be found in the report.
#[inline(never)]
pub fn hang_on_purpose() {
    // For all the compiler knows it may come back: a function that calls one which does not stores no place to return to.
    while core::hint::black_box(true) {
        spin_loop();
    }
}

/// Shows what a panic looks like. A function of its own, so that there is a name to be found in the report; and it panics in one that
/// could have returned, as those that never return do not store where to.
#[inline(never)]
pub fn panic_on_purpose() {
    is_harmless(core::hint::black_box(false));
    core::hint::black_box(());
}

#[inline(never)]
fn is_harmless(is_so: bool) {
    assert!(is_so, "asked for at the console");
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [&str; 2] = ["network", "console"];

    /// The verdict of so many checks, one after the other.
    fn checks(watchdog: &Watchdog<2>, count: usize) -> Option<Verdict> {
        (0..count).find_map(|_| watchdog.check())
    }

    #[test]
    fn who_is_to_hang_is_asked_for() {
        let check = |line, expected: Option<&str>| {
            assert_eq!(hangs_nobody(line, "network or control").as_deref(), expected, "{line:?}");
        };
        check("hang", Some("hang: nothing given, network or control expected\n"));
        check("hang foo", Some("hang: foo given, network or control expected\n"));
        check("hangs", None);
        check("mem", None);
    }

    #[test]
    fn nobody_is_asked_before_the_first_sign_of_life_or_at_rest() {
        let watchdog = Watchdog::new(BOTH, 3);
        assert_eq!(checks(&watchdog, 100), None);
        watchdog.turns(1);
        watchdog.rests(1);
        assert_eq!(checks(&watchdog, 100), None);
    }

    #[test]
    fn whoever_makes_no_progress_is_named_after_so_many_seconds() {
        let watchdog = Watchdog::new(BOTH, 3);
        for _ in 0..1_000 {
            watchdog.turns(0);
            assert_eq!(watchdog.check(), None);
        }
        watchdog.turns(1);
        // The first check finds that it has moved; three more that it has not.
        for _ in 0..3 {
            watchdog.turns(0);
            assert_eq!(watchdog.check(), None);
        }
        watchdog.turns(0);
        assert_eq!(watchdog.check(), Some(Verdict::Stuck(1)));
        assert_eq!(watchdog.name(1), "console");
        // It goes on, if late: all is well.
        watchdog.turns(1);
        watchdog.turns(0);
        assert_eq!(watchdog.check(), None);
        assert_eq!(checks(&watchdog, 2), None);
        assert_eq!(watchdog.check(), Some(Verdict::Stuck(0)), "the first of both that are stuck");
    }

    #[test]
    fn a_second_asleep_between_turns_is_progress_also_with_the_shortest_time() {
        let watchdog = Watchdog::new(BOTH, *SECONDS.start());
        for _ in 0..1_000 {
            // One check falls between two turns at most; twice as rarely as they are due is not enough to be stuck.
            watchdog.turns(0);
            assert_eq!(checks(&watchdog, 2), None);
        }
    }

    #[test]
    fn a_count_that_begins_anew_still_says_what_is_due() {
        let watchdog = Watchdog::new(BOTH, 2);
        watchdog.counts[0].store(u32::MAX, Ordering::Relaxed);
        watchdog.turns(0);
        assert_eq!(watchdog.counts[0].load(Ordering::Relaxed), 1);
        assert_eq!(checks(&watchdog, 2), None);
        assert_eq!(watchdog.check(), Some(Verdict::Stuck(0)));
        watchdog.counts[0].store(u32::MAX - 1, Ordering::Relaxed);
        watchdog.rests(0);
        assert_eq!(checks(&watchdog, 10), None);
    }

    #[test]
    fn an_end_is_followed_by_a_start_after_the_same_time_and_by_no_other_report() {
        let watchdog = Watchdog::new(BOTH, 3);
        watchdog.turns(0);
        watchdog.end();
        assert_eq!(checks(&watchdog, 2), None);
        assert_eq!(watchdog.check(), Some(Verdict::Ended));
        let off = Watchdog::new(BOTH, 0);
        off.turns(0);
        assert_eq!(checks(&off, 100), None);
        off.end();
        assert_eq!(checks(&off, 100), None);
    }

    #[test]
    fn the_console_shows_and_sets_it() {
        let watchdog = Watchdog::new(BOTH, 8);
        let last = LastStart { cause: Cause::Watchdog, count: 3 };
        let ask = |line| watchdog.command(line, true, last).unwrap();
        assert_eq!(ask("watchdog"), "8 s; last start: watchdog, by the watchdog 3 so far\n");
        assert_eq!(ask("watchdog 2"), "2 s; last start: watchdog, by the watchdog 3 so far\n");
        assert_eq!(ask("watchdog 1"), "watchdog: 1 given, 0 for none or 2 to 30 seconds expected\n");
        assert_eq!(ask("watchdog soon").lines().count(), 1);
        assert_eq!(watchdog.seconds(), 2);
        assert_eq!(watchdog.command("watchdogs", true, last), None);
        assert!(watchdog.command("watchdog 5", false, last).unwrap().contains("no watchdog"));
        assert_eq!(watchdog.seconds(), 2);
    }

    #[test]
    fn what_is_kept_tells_why_the_board_started() {
        // Memory as it happens to be.
        let (last, kept) = Kept([7, 7, 7, 7]).start();
        assert_eq!(last, LastStart { cause: Cause::Power, count: 0 });
        let (last, kept) = kept.start();
        assert_eq!(last, LastStart { cause: Cause::Reset, count: 0 });
        let (last, kept) = kept.before_reset(Verdict::Stuck(1)).start();
        assert_eq!(last, LastStart { cause: Cause::Watchdog, count: 1 });
        let (last, kept) = kept.before_reset(Verdict::Ended).start();
        assert_eq!(last, LastStart { cause: Cause::Panic, count: 2 });
        // A word of it is lost.
        let [mark, count, cause, check] = kept.0;
        let (last, _) = Kept([mark, count ^ 4, cause, check]).start();
        assert_eq!(last.cause, Cause::Power);
    }

    #[test]
    fn starts_are_told_apart_by_memory_that_stays() {
        static MEMORY: [AtomicU32; Starts::WORDS] = [const { AtomicU32::new(9) }; Starts::WORDS];
        let boot = || {
            let starts = Starts::new(
                |word| MEMORY[word].load(Ordering::Relaxed),
                |word, value| MEMORY[word].store(value, Ordering::Relaxed),
            );
            starts.note();
            starts
        };
        let first = boot();
        assert_eq!(first.last(), LastStart::default());
        first.before_reset(Verdict::Stuck(0));
        assert_eq!(first.last(), LastStart::default(), "that is the next one's");
        assert_eq!(boot().last(), LastStart { cause: Cause::Watchdog, count: 1 });
        assert_eq!(boot().last(), LastStart { cause: Cause::Reset, count: 1 });
    }
}
