//! The reordering window and the newest arrival of RACK (RFC 8985 sections 5 and 6): whatever was sent a round trip and a
//! reordering window before what has arrived, is lost.

use core::time::Duration;
use linerate_wire::units::{Instant, duration, nanos};

/// Least reordering window: what network cards and receive coalescing mix up among themselves. The RFC has none, and 0
/// on a path whose round trip is near 0.
const LEAST_WINDOW: Duration = Duration::from_micros(20);

/// Recoveries without a DSACK after which the window is small again (RACK.reo_wnd_persist).
const PERSIST: u8 = 16;

/// For a time that was not measured yet, in nanoseconds.
const UNKNOWN: u64 = u64::MAX;

/// For so long a minimum of the round-trip time is remembered at most; twice half of this.
const HALF_WINDOW_NS: u64 = 150_000_000_000;

/// The newest transmission among those that are known to have arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Newest {
    /// Number of the transmission, and where what arrived of it ends: RACK_sent_after compares these.
    pub serial: u64,
    pub end: u64,
    /// When it left the device.
    pub left: Instant,
}

/// What makes a loss, at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rule {
    pub now: Instant,
    /// Only what was sent before this can be lost.
    pub newest: Newest,
    /// And only so long after it left: RACK.rtt + RACK.reo_wnd.
    pub wait: Duration,
}

/// The least of the measurements of the last minutes, in two halves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Minimum {
    /// In nanoseconds; [`UNKNOWN`] without any.
    current_ns: u64,
    previous_ns: u64,
    since: Instant,
}

impl Default for Minimum {
    fn default() -> Self {
        Minimum { current_ns: UNKNOWN, previous_ns: UNKNOWN, since: Instant::ZERO }
    }
}

impl Minimum {
    fn add(&mut self, now: Instant, value_ns: u64) {
        if now.nanos_since(self.since) >= HALF_WINDOW_NS {
            self.previous_ns = core::mem::replace(&mut self.current_ns, UNKNOWN);
            self.since = now;
        }
        self.current_ns = self.current_ns.min(value_ns);
    }

    fn get(&self) -> Option<Duration> {
        let least_ns = self.current_ns.min(self.previous_ns);
        (least_ns != UNKNOWN).then(|| duration(least_ns))
    }
}

/// Where loss recovery stands, as far as the window depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Situation {
    pub in_recovery: bool,
    /// Three segments or more are reported above the cumulative acknowledgement.
    pub enough_reported: bool,
    pub smoothed_rtt: Option<Duration>,
}

/// What RACK has learnt of the path, which outlasts a pause in sending.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PathTimes {
    minimum: Minimum,
    /// Of the newest arrival, in nanoseconds; [`UNKNOWN`] before the first.
    rtt_ns: u64,
    reordering_seen: bool,
    /// How often the window was enlarged (RACK.reo_wnd_mult - 1).
    enlarged: u8,
    persist: u8,
}

impl Default for PathTimes {
    fn default() -> Self {
        let minimum = Minimum::default();
        PathTimes { minimum, rtt_ns: UNKNOWN, reordering_seen: false, enlarged: 0, persist: 0 }
    }
}

/// RACK's variables.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rack {
    newest: Option<Newest>,
    path: PathTimes,
    /// The highest position that arrived (RACK.fack).
    fack: u64,
    /// No further growth before this is acknowledged (RACK.dsack_round).
    round: Option<u64>,
}

impl Rack {
    /// Where nothing is in flight, this is all that counts: whatever is sent later was sent after the newest arrival, lies
    /// beyond the highest position, and is acknowledged after the round.
    pub fn path(&self) -> PathTimes {
        self.path
    }

    /// RACK on a path that is known, with nothing in flight.
    pub fn on(path: PathTimes) -> Rack {
        Rack { path, ..Rack::default() }
    }

    /// The highest position that arrived.
    pub fn fack(&self) -> u64 {
        self.fack
    }

    /// Whether anything was found to overtake on this path.
    pub fn reordering_seen(&self) -> bool {
        self.path.reordering_seen
    }

    /// The least round-trip time of the last minutes.
    pub fn minimum(&self) -> Duration {
        self.path.minimum.get().unwrap_or(Duration::ZERO)
    }

    /// The round-trip time of a segment that was sent once (section 6.2 step 1).
    pub fn measure(&mut self, now: Instant, rtt_ns: u64) {
        self.path.minimum.add(now, rtt_ns);
    }

    /// Something arrived up to `end` (step 3 for the highest position).
    pub fn arrived(&mut self, end: u64) {
        self.fack = self.fack.max(end);
    }

    /// This arrived (step 2).
    pub fn update(&mut self, now: Instant, newest: Newest) {
        let is_newer = self.newest.is_none_or(|old| (newest.serial, newest.end) > (old.serial, old.end));
        if is_newer {
            self.newest = Some(newest);
            self.path.rtt_ns = now.nanos_since(newest.left);
        }
    }

    /// A segment arrived after what was sent later (step 3).
    pub fn on_reordering(&mut self) {
        self.path.reordering_seen = true;
    }

    /// An acknowledgement moved to `una`.
    pub fn on_advance(&mut self, una: u64) {
        if self.round.is_some_and(|round| una >= round) {
            self.round = None;
        }
    }

    /// Whether an acknowledgement may end a round.
    pub fn is_in_round(&self) -> bool {
        self.round.is_some()
    }

    /// The peer reported a duplicate (step 4): the window grows once per round trip.
    pub fn on_duplicate_report(&mut self, nxt: u64) {
        if self.round.is_none() {
            self.round = Some(nxt);
            self.path.enlarged = self.path.enlarged.saturating_add(1);
            self.path.persist = PERSIST;
        }
    }

    /// A recovery ended (step 4).
    pub fn on_recovered(&mut self) {
        self.path.persist = self.path.persist.saturating_sub(1);
        if self.path.persist == 0 {
            self.path.enlarged = 0;
        }
    }

    /// The reordering window (RACK_update_reo_wnd).
    pub fn window(&self, situation: Situation) -> Duration {
        if !self.path.reordering_seen && (situation.in_recovery || situation.enough_reported) {
            return Duration::ZERO;
        }
        let most = situation.smoothed_rtt.unwrap_or(Duration::MAX);
        // In nanoseconds: a multiple of a duration takes a division.
        let window_ns = nanos(self.minimum()).saturating_mul(u64::from(self.path.enlarged) + 1) / 4;
        duration(window_ns).min(most).max(LEAST_WINDOW)
    }

    /// What is lost now; `None` while nothing has arrived.
    pub fn rule(&self, now: Instant, situation: Situation) -> Option<Rule> {
        let newest = self.newest?;
        Some(Rule { now, newest, wait: self.rtt()? + self.window(situation) })
    }

    /// How long what is lost has been outstanding at least, by what is known (section 6.3).
    pub fn patience(&self, situation: Situation) -> Option<Duration> {
        Some(self.rtt()? + self.window(situation))
    }

    /// The round-trip time of the newest arrival.
    fn rtt(&self) -> Option<Duration> {
        (self.path.rtt_ns != UNKNOWN).then(|| duration(self.path.rtt_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    const OPEN: Situation = Situation {
        in_recovery: false,
        enough_reported: false,
        smoothed_rtt: Some(Duration::from_millis(90)),
    };

    fn rack(rtt: u64) -> Rack {
        let mut rack = Rack::default();
        rack.measure(Instant::from_millis(1), rtt * 1_000_000);
        rack
    }

    #[test]
    fn rfc_8985_6_2_4_window_is_a_quarter_of_the_least_round_trip() {
        let mut rack = rack(40);
        assert_eq!(rack.window(OPEN), ms(10));
        let enough = Situation { enough_reported: true, ..OPEN };
        assert_eq!(rack.window(enough), Duration::ZERO, "three reports count while nothing overtook");
        assert_eq!(rack.window(Situation { in_recovery: true, ..OPEN }), Duration::ZERO);
        rack.on_reordering();
        assert_eq!(rack.window(enough), ms(10));
    }

    #[test]
    fn rfc_8985_6_2_4_window_grows_once_a_round_with_dsack_and_is_forgotten_after_16_recoveries() {
        let mut rack = rack(40);
        rack.on_duplicate_report(1_000);
        rack.on_duplicate_report(1_000);
        assert_eq!(rack.window(OPEN), ms(20));
        rack.on_advance(999);
        rack.on_duplicate_report(2_000);
        assert_eq!(rack.window(OPEN), ms(20), "the round is not over");
        rack.on_advance(1_000);
        for round in 2..20 {
            rack.on_duplicate_report(round * 1_000);
            rack.on_advance(round * 1_000);
        }
        assert_eq!(rack.window(OPEN), ms(90), "the smoothed round-trip time bounds it");
        for _ in 0..15 {
            rack.on_recovered();
        }
        assert_eq!(rack.window(OPEN), ms(90));
        rack.on_recovered();
        assert_eq!(rack.window(OPEN), ms(10));
    }

    #[test]
    fn rfc_8985_6_2_2_the_most_recently_sent_counts() {
        let mut rack = rack(10);
        let at = Instant::from_millis;
        rack.update(at(100), Newest { serial: 7, end: 500, left: at(80) });
        rack.update(at(101), Newest { serial: 6, end: 900, left: at(1) });
        rack.update(at(102), Newest { serial: 7, end: 400, left: at(1) });
        let rule = rack.rule(at(103), Situation { in_recovery: true, ..OPEN }).unwrap();
        assert_eq!((rule.newest.serial, rule.newest.end, rule.wait), (7, 500, ms(20)));
    }

    #[test]
    fn the_minimum_is_forgotten_after_minutes() {
        let mut rack = rack(5);
        for seconds in [100, 200, 360] {
            rack.measure(Instant::from_millis(seconds * 1_000), 50_000_000);
            let expected = if seconds < 360 { 5 } else { 50 };
            assert_eq!(rack.minimum(), ms(expected), "after {seconds} s");
        }
    }
}
