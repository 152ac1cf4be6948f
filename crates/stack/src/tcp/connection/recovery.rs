//! Loss recovery: what is lost, when a recovery begins and ends, and when it is taken back because nothing was lost.
//!
//! ```text
//!            RACK, or three duplicates without SACK          everything sent by then acknowledged
//!   Open ──────────────────────────────────────────> Fast ────────────────────────────────────────> Open
//!   Open, Fast ───────── timeout ──────────────────> Timeout ─────────────────────────────────────> Open
//!   any, until the next recovery ── all that was sent again was sent in vain ─────────────────────> Open, undone
//! ```

use super::super::congestion::CongestionControl as _;
use super::super::prr::Prr;
use super::super::rack::{Rack, Situation};
use super::super::scoreboard::{Arrivals, DUPLICATE_THRESHOLD};
use super::super::timers::Timer;
use super::loss_probe::LossProbe;
use super::{Connection, Recovery};
use core::time::Duration;
use linerate_wire::units::Instant;

/// What an acknowledgement brought.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct News {
    /// Bytes newly acknowledged.
    pub advance: u64,
    pub arrivals: Arrivals,
    /// It is a duplicate by the rules of RFC 5681 section 2.
    pub is_duplicate: bool,
    /// Bytes that it tells of as a duplicate, without SACK.
    pub assumed: u64,
    /// Bytes of the advance that duplicates had told of before, without SACK.
    pub settled: u64,
    /// What the peer had received before (DSACK).
    pub duplicated: Option<(u64, u64)>,
}

/// Why the congestion window was reduced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cause {
    Loss,
    Timeout,
}

/// A reduction that may turn out to have been unnecessary.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    cause: Cause,
    /// Something was sent again twice: one report of a duplicate does not clear it.
    twice: bool,
    /// How long what was acknowledged first after a timeout had taken, if it was a first transmission.
    late: Option<Duration>,
}

/// F-RTO (RFC 5682), for peers without timestamps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Frto {
    /// Not under way.
    #[default]
    Off,
    /// The segment that timed out was sent again; its acknowledgement is awaited.
    First,
    /// New data is sent instead of what seems lost; the next acknowledgement decides.
    Second,
}

/// What loss recovery remembers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Repair {
    pub rack: Rack,
    pub prr: Prr,
    pub undo: Option<Undo>,
    pub frto: Frto,
    pub loss_probe: LossProbe,
}

impl Connection {
    /// What was not known before about what arrived (RFC 8985 section 6.2 steps 1 to 4).
    pub(super) fn note_arrivals(&mut self, now: Instant, news: &News) {
        let arrivals = &news.arrivals;
        if let Some(original) = arrivals.original {
            self.repair.rack.measure(now, now - original.left);
        }
        if let Some(newest) = arrivals.newest {
            self.repair.rack.update(now, newest);
        }
        if arrivals.reordered {
            self.repair.rack.on_reordering();
            self.counters.reordering_distance = self.counters.reordering_distance.max(arrivals.distance);
        }
        self.repair.rack.arrived(arrivals.end);
        self.repair.rack.on_advance(self.una);
        if let Some((start, end)) = news.duplicated {
            self.counters.duplicates_reported += 1;
            self.repair.rack.on_duplicate_report(self.nxt);
            if self.repair.undo.is_some_and(|undo| !undo.twice) {
                self.board.duplicated(start, end);
            }
        }
        self.counters.reordering_seen = self.repair.rack.reordering_seen();
    }

    /// Finds losses; enters, steers, leaves or takes back a recovery.
    pub(super) fn recover(&mut self, now: Instant, news: &mut News) {
        if news.advance > 0 {
            news.settled = self.recover_on_advance(now, news.advance);
        }
        let delivered = (news.arrivals.delivered + news.assumed).saturating_sub(news.settled);
        let lost = self.una < self.nxt && self.find_losses(now, news.advance > 0);
        if lost && self.recovery == Recovery::Open && !self.has_lost_only_probe() {
            self.enter_recovery(now, delivered);
        }
        self.note_delay(now, &news.arrivals);
        if self.frto_decides(news) || self.was_in_vain(news) {
            self.undo(now);
        }
        if matches!(self.recovery, Recovery::Fast { .. }) {
            let is_safe = news.advance > 0 && !lost;
            self.repair.prr.on_ack(delivered, self.pipe(), is_safe, self.mss());
        }
    }

    /// Returns how many of the bytes duplicates had told of already.
    fn recover_on_advance(&mut self, now: Instant, advance: u64) -> u64 {
        let mss = self.mss();
        match self.recovery {
            Recovery::Open => {
                let settled = self.board.settle_assumed(advance);
                self.forget_duplicates();
                return settled;
            }
            Recovery::Fast { until } | Recovery::Timeout { until } if self.una >= until => {
                if matches!(self.recovery, Recovery::Fast { .. }) {
                    self.congestion.on_recovered(now, self.pipe());
                }
                self.repair.rack.on_recovered();
                self.recovery = Recovery::Open;
                self.forget_duplicates();
                self.force = false;
            }
            Recovery::Fast { .. } if !self.sack => {
                // A partial acknowledgement (RFC 6582 section 3.2 step 3): the next hole starts right here.
                let settled = self.board.settle_assumed(advance.saturating_sub(mss));
                self.board.mark_lost(self.una, (self.una + mss).min(self.left_end));
                self.force = true;
                return settled;
            }
            Recovery::Fast { .. } | Recovery::Timeout { .. } => {}
        }
        0
    }

    fn forget_duplicates(&mut self) {
        self.duplicates = 0;
        self.board.forget_assumed();
    }

    /// Whether anything is newly taken to be lost.
    fn find_losses(&mut self, now: Instant, advanced: bool) -> bool {
        if !self.sack {
            let enough = self.duplicates >= DUPLICATE_THRESHOLD && self.recovery == Recovery::Open;
            let end = (self.una + self.mss()).min(self.left_end);
            return enough && self.board.next_lost().is_none() && self.board.mark_lost(self.una, end);
        }
        let mut lost = false;
        if advanced && self.board.is_reneged(self.una) {
            self.board.forget_reports();
            lost = self.board.mark_lost(self.una, self.left_end);
        }
        lost | self.detect_losses(now)
    }

    /// RACK (RFC 8985 section 6.2 step 5).
    fn detect_losses(&mut self, now: Instant) -> bool {
        let Some(rule) = self.repair.rack.rule(now, self.situation()) else { return false };
        let found = self.board.detect(self.una, &rule);
        self.counters.lost_retransmissions += found.again;
        match found.next {
            Some(at) => self.timers.set(Timer::Reorder, at),
            None => self.timers.stop(Timer::Reorder),
        }
        found.lost || found.again > 0
    }

    /// What the reordering window depends on.
    pub(super) fn situation(&self) -> Situation {
        Situation {
            in_recovery: self.recovery != Recovery::Open,
            enough_reported: self.board.has_enough_reports(self.mss()),
            smoothed_rtt: self.rtt.smoothed(),
        }
    }

    /// What should have arrived by now did not (RFC 8985 section 6.2, the reordering timer).
    pub(super) fn on_reorder_timeout(&mut self, now: Instant) {
        if self.una == self.nxt || !self.detect_losses(now) {
            return;
        }
        self.counters.reordering_timeouts += 1;
        if self.recovery == Recovery::Open && !self.has_lost_only_probe() {
            self.enter_recovery(now, 0);
        } else if self.pipe() == 0 {
            // No acknowledgement will come that could allow anything.
            self.force = true;
        }
    }

    fn enter_recovery(&mut self, now: Instant, delivered: u64) {
        let flight = self.nxt - self.una;
        self.recovery = Recovery::Fast { until: self.nxt };
        self.counters.fast_recoveries += 1;
        self.tally.fast_recoveries += 1;
        let is_reduced = self.reduce_for_loss(now);
        let target = self.congestion.slow_start_threshold().unwrap_or(self.congestion.window());
        self.repair.prr = Prr::new(flight.saturating_sub(self.board.reported()) + delivered, target);
        self.force = true;
        self.begin_episode(is_reduced.then_some(Cause::Loss));
    }

    /// A timeout begins, or continues, a recovery. To be called before [`Connection::recovery`] changes.
    pub(super) fn enter_timeout(&mut self, now: Instant, first: bool) {
        let was = self.recovery;
        if was == Recovery::Open {
            self.congestion.save();
            self.begin_episode(Some(Cause::Timeout));
        } else if let Some(undo) = &mut self.repair.undo {
            undo.cause = Cause::Timeout;
        }
        self.congestion.on_timeout(now, self.nxt - self.una, first);
        self.ecn.on_reduced(self.nxt);
        self.recovery = Recovery::Timeout { until: self.nxt };
        let is_new = !matches!(was, Recovery::Timeout { .. });
        self.repair.frto = if is_new && self.timestamps.is_none() { Frto::First } else { Frto::Off };
        self.force = true;
        self.duplicates = 0;
        self.timers.stop(Timer::Reorder);
    }

    /// From here on it is watched whether the reduction for `cause` was necessary.
    fn begin_episode(&mut self, cause: Option<Cause>) {
        self.repair.undo = cause.map(|cause| Undo { cause, twice: false, late: None });
        self.board.watch_repeats();
        self.repair.loss_probe.forget();
        self.timers.stop(Timer::LossProbe);
    }

    /// `start..end` was sent again; `twice`: not for the first time.
    pub(super) fn note_repeat(&mut self, start: u64, end: u64, twice: bool) {
        if self.recovery == Recovery::Open {
            return;
        }
        self.board.note_repeat(start, end);
        if let Some(undo) = &mut self.repair.undo {
            undo.twice |= twice;
        }
        if twice && matches!(self.recovery, Recovery::Fast { .. }) {
            // A retransmission was lost: the network does drop.
            self.repair.undo = None;
        }
    }

    /// Whether nothing had been lost: the peer got everything that was sent again by the first transmission (RFC 3522,
    /// RFC 3708), or what seemed lost arrived before it was sent again.
    fn was_in_vain(&self, news: &News) -> bool {
        let Some(undo) = self.repair.undo else { return false };
        let told = news.advance > 0 || news.duplicated.is_some();
        let in_vain = match undo.cause {
            Cause::Loss => (told || news.arrivals.delivered > 0) && self.board.next_lost().is_none(),
            Cause::Timeout => told,
        };
        in_vain && self.board.repeated_in_vain()
    }

    /// RFC 5682 section 2.1, with the SACK enhancement of section 3.1: whether the timeout was spurious.
    fn frto_decides(&mut self, news: &News) -> bool {
        let Recovery::Timeout { until } = self.recovery else {
            self.repair.frto = Frto::Off;
            return false;
        };
        match self.repair.frto {
            Frto::Off => false,
            Frto::First => {
                let more = self.queue.ready_end().min(self.window.edge) > self.nxt;
                let goes_on = news.advance > 0 && self.una < until && more;
                self.repair.frto = if goes_on { Frto::Second } else { Frto::Off };
                false
            }
            Frto::Second if news.advance == 0 && news.arrivals.delivered == 0 && !news.is_duplicate => false,
            Frto::Second => {
                self.repair.frto = Frto::Off;
                news.advance > 0 || news.arrivals.unexpected > 0
            }
        }
    }

    /// Remembers how late an answer came after a timeout, should it turn out to have been only late.
    fn note_delay(&mut self, now: Instant, arrivals: &Arrivals) {
        if let Some(undo) = &mut self.repair.undo
            && undo.cause == Cause::Timeout
            && undo.late.is_none()
        {
            undo.late = arrivals.original.map(|original| now - original.left);
        }
    }

    /// Takes the reduction back (RFC 4015).
    fn undo(&mut self, now: Instant) {
        let Some(undo) = self.repair.undo.take() else { return };
        self.board.restore();
        self.recovery = Recovery::Open;
        self.repair.frto = Frto::Off;
        self.force = false;
        self.forget_duplicates();
        match undo.cause {
            Cause::Loss => {
                self.counters.spurious_recoveries_undone += 1;
                self.tally.fast_recoveries_undone += 1;
                self.repair.rack.on_reordering();
            }
            Cause::Timeout => {
                self.counters.spurious_timeouts_undone += 1;
                self.tally.timeouts_undone += 1;
                if let Some(late) = undo.late {
                    self.rtt.on_spurious(late);
                }
            }
        }
        if self.timers.is_running(Timer::Retransmit) {
            self.timers.set(Timer::Retransmit, now + self.rtt.timeout());
        }
        self.congestion.on_undo(now, self.pipe());
    }
}
