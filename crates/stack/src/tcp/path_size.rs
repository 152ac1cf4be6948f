//! Which segment sizes the path carries: proofs, messages that wait for one, black holes, and the search upwards.
//!
//! Sizes are those of [`super::Config::mss`]: payload and TCP options of a segment. Three sources tell of them:
//!
//! - a full segment that is acknowledged without having been sent again **proves** its size;
//! - an ICMP message that names a size above everything proved is believed at once; one that contradicts a proof waits
//!   until the segment it quotes times out, and is forgotten when that segment is acknowledged (RFC 5927 section 7.2);
//! - timeouts that repeat suggest a **black hole**: a link that drops what is too long and says nothing (RFC 4821 section
//!   7.7). The size falls to that of a packet of 1,024 bytes, then to 536 (IPv6: 1,220, the least it knows).
//!
//! From below, the size is **searched** upwards with probes: single longer segments of new data (RFC 4821 section 7.5).
//! The largest size comes first, so that an outage taken for a black hole costs one probe; then halves. Three probes
//! lost decide against a size (RFC 8899 section 5.1.2). A finished search begins anew after ten minutes.

use core::time::Duration;
use linerate_wire::units::Instant;

/// Sizes to fall back to over IPv4: a packet of 1,024 bytes (RFC 4821 section 7.2), and what everybody must take.
const STEPS4: [u16; 2] = [1_024 - 40, 536];
/// Over IPv6: a packet of 1,280 bytes (RFC 8200 section 5).
const STEPS6: [u16; 1] = [1_220];
/// Probes of one size that must be lost to believe that it does not pass.
const MOST_FAILURES: u8 = 3;
/// Pause after a lost probe.
const RETRY: Duration = Duration::from_secs(1);
/// Pause after a finished search, and after a message that was believed (RFC 1191 section 6.3, RFC 8899 section 5.1.1).
const RAISE: Duration = Duration::from_secs(600);
/// A search ends when so few bytes are left to decide.
const FINE: u16 = 32;

/// A segment under way whose fate tells about its size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Trial {
    /// First position.
    pub start: u64,
    /// Position after it.
    pub end: u64,
    /// Its size.
    pub size: u16,
    /// Longer than what the path is taken to carry.
    pub is_probe: bool,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct PathSize {
    /// The largest size that is known to pass.
    proved: u16,
    trial: Option<Trial>,
    /// The least size that is taken not to pass.
    ceiling: Option<u16>,
    /// Probes of the same size lost.
    failures: u8,
    /// No probe before.
    quiet_until: Instant,
    /// Where the next probe begins, once planned.
    pub planned: Option<u64>,
    /// A size that was told and is believed, for others to learn.
    pub news: Option<u16>,
    /// A message that waits: the size it names, and where the segment that it quotes begins.
    told: Option<(u16, u64)>,
}

/// What outlasts a pause in which nothing is in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sizes {
    quiet_until: Instant,
    proved: u16,
    ceiling: Option<u16>,
    failures: u8,
}

impl PathSize {
    /// What is known while nothing is under way; `None` while a segment is watched, a message waits, or there is news. A probe
    /// that was planned is planned anew.
    pub fn sizes(&self) -> Option<Sizes> {
        let PathSize { proved, ceiling, failures, quiet_until, .. } = *self;
        let is_quiet = self.trial.is_none() && self.told.is_none() && self.news.is_none();
        is_quiet.then_some(Sizes { quiet_until, proved, ceiling, failures })
    }

    /// The same again.
    pub fn with(sizes: Sizes) -> PathSize {
        let Sizes { quiet_until, proved, ceiling, failures } = sizes;
        PathSize { proved, ceiling, failures, quiet_until, ..PathSize::default() }
    }

    /// For a path that is taken to carry `size`, where `most` would be the largest. If somebody was told of less, nothing
    /// longer is tried for a while.
    pub fn new(now: Instant, size: u16, most: u16) -> Self {
        let mut new = PathSize::default();
        if size < most {
            new.on_lowered(now, size, false);
        }
        new
    }

    /// The segment under way that is watched.
    pub fn trial(&self) -> Option<Trial> {
        self.trial
    }

    /// A segment went out for the first time; it is watched if its fate says anything new.
    pub fn on_sent(&mut self, trial: Trial) {
        if trial.is_probe || (self.trial.is_none() && trial.size > self.proved) {
            self.trial = Some(trial);
        }
    }

    /// Positions were sent again: what was to be proved with them is not. Returns whether a probe was lost by it.
    pub fn on_resent(&mut self, now: Instant, current: u16, start: u64, end: u64) -> bool {
        let Some(trial) = self.trial.take_if(|trial| trial.start < end && start < trial.end) else {
            return false;
        };
        if trial.is_probe {
            self.on_probe_lost(now, current, trial.size);
        }
        trial.is_probe
    }

    /// Everything below `una` was acknowledged. Returns the size that a probe proved.
    pub fn on_acknowledged(&mut self, now: Instant, una: u64) -> Option<u16> {
        if self.told.is_some_and(|(_, at)| at < una) {
            self.told = None;
        }
        let trial = self.trial.take_if(|trial| trial.end <= una)?;
        self.proved = self.proved.max(trial.size);
        if !trial.is_probe {
            return None;
        }
        self.failures = 0;
        self.quiet_until = now;
        self.finish_search(now, trial.size);
        Some(trial.size)
    }

    /// A message names `size` for the segment that begins at `at`; whether it is to be believed now.
    pub fn on_told(&mut self, size: u16, at: u64) -> bool {
        if size >= self.proved {
            return true;
        }
        self.told = Some((size, at));
        false
    }

    /// The retransmission timer fired for the segment at `una`; the size of a message that is to be believed now.
    pub fn on_timeout(&mut self, una: u64) -> Option<u16> {
        self.told.take().filter(|&(_, at)| at >= una).map(|(size, _)| size)
    }

    /// The size fell to `size`, because a message said so, or for a black hole.
    pub fn on_lowered(&mut self, now: Instant, size: u16, is_black_hole: bool) {
        self.proved = self.proved.min(size);
        self.trial = None;
        self.told = None;
        self.failures = 0;
        self.ceiling = None;
        self.quiet_until = now + if is_black_hole { RETRY } else { RAISE };
    }

    /// The size to probe with where `current` is in use and `most` would be the largest.
    pub fn candidate(&self, now: Instant, current: u16, most: u16) -> Option<u16> {
        if current >= most || now < self.quiet_until || self.trial.is_some_and(|trial| trial.is_probe) {
            return None;
        }
        match self.ceiling {
            None => Some(most),
            Some(ceiling) => Some(current + (ceiling.min(most).saturating_sub(current) / 2).max(1)),
        }
    }

    fn on_probe_lost(&mut self, now: Instant, current: u16, size: u16) {
        self.failures += 1;
        self.quiet_until = now + RETRY;
        if self.failures >= MOST_FAILURES {
            self.failures = 0;
            self.ceiling = Some(size);
            self.finish_search(now, current);
        }
    }

    fn finish_search(&mut self, now: Instant, current: u16) {
        if self.ceiling.is_some_and(|ceiling| ceiling.saturating_sub(current) <= FINE) {
            self.ceiling = None;
            self.quiet_until = now + RAISE;
        }
    }
}

/// The size to fall back to from `current` when nothing gets through.
pub(super) fn fall_back(is_ipv4: bool, current: u16) -> Option<u16> {
    let steps = if is_ipv4 { &STEPS4[..] } else { &STEPS6[..] };
    steps.iter().copied().find(|&step| step < current)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches over a path that carries `carries`; the probes sent, the size found, and the time it took in s.
    fn search(from: u16, most: u16, carries: u16) -> (usize, u16, u64) {
        let mut sizes = PathSize::default();
        let (mut now, mut current, mut at) = (Instant::from_millis(0), from, 0);
        sizes.on_lowered(now, from, true);
        let mut probes = 0;
        for _ in 0..1_000 {
            if sizes.quiet_until - now >= RAISE || current == most {
                break;
            }
            now = now.max(sizes.quiet_until);
            let Some(size) = sizes.candidate(now, current, most) else { break };
            assert!(size > current && size <= most);
            let end = at + u64::from(size);
            sizes.on_sent(Trial { start: at, end, size, is_probe: true });
            probes += 1;
            if size <= carries {
                assert_eq!(sizes.on_acknowledged(now, end), Some(size));
                current = size;
            } else {
                assert!(sizes.on_resent(now, current, at, at + 1));
            }
            at = end;
        }
        (probes, current, now.as_millis() / 1_000)
    }

    #[test]
    fn the_search_finds_what_the_path_carries() {
        assert_eq!(search(536, 1_460, 1_460), (1, 1_460, 1));
        for carries in [600, 800, 1_000, 1_200, 1_400, 1_432] {
            let (probes, found, seconds) = search(536, 1_460, carries);
            assert!(found <= carries && carries - found <= FINE, "{carries}: {found}");
            assert!(probes <= 21 && seconds <= 21, "{carries}: {probes} probes, {seconds} s");
        }
        let (_, found, _) = search(1_220, 8_940, 4_000);
        assert!((3_968..=4_000).contains(&found));
    }

    #[test]
    fn a_message_against_a_proof_waits_for_a_timeout() {
        let mut sizes = PathSize::default();
        assert!(sizes.on_told(1_000, 0), "nothing is proved yet");
        sizes.on_sent(Trial { start: 0, end: 1_460, size: 1_460, is_probe: false });
        assert_eq!(sizes.on_acknowledged(Instant::ZERO, 1_460), None);
        assert!(!sizes.on_told(1_000, 2_920));
        sizes.on_acknowledged(Instant::ZERO, 2_920);
        assert_eq!(sizes.on_timeout(2_920), Some(1_000), "the quoted segment is what is missing");
        assert!(!sizes.on_told(1_000, 2_920));
        sizes.on_acknowledged(Instant::ZERO, 2_921);
        assert_eq!(sizes.on_timeout(2_921), None, "it was a lie: the segment arrived");
    }

    #[test]
    fn what_was_sent_again_proves_nothing() {
        let mut sizes = PathSize::default();
        sizes.on_sent(Trial { start: 0, end: 1_460, size: 1_460, is_probe: false });
        assert!(!sizes.on_resent(Instant::ZERO, 1_460, 1_000, 2_000));
        sizes.on_acknowledged(Instant::ZERO, 1_460);
        assert!(sizes.on_told(1_000, 1_460));
    }

    #[test]
    fn falling_back_ends_at_the_least() {
        assert_eq!(fall_back(true, 1_460), Some(984));
        assert_eq!(fall_back(true, 984), Some(536));
        assert_eq!(fall_back(true, 536), None);
        assert_eq!(fall_back(false, 1_440), Some(1_220));
        assert_eq!(fall_back(false, 1_220), None);
    }
}
