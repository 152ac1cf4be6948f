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
use super::super::scoreboard::{Arrivals, DUPLICATE_THRESHOLD, Scoreboard};
use super::super::timers::Timer;
use super::Connection;
use super::loss_probe::LossProbe;
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
    /// The timestamp that it echoes, if it advances.
    pub echo: Option<u32>,
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
    /// The timestamp in the first of the retransmissions since.
    stamp: Option<u32>,
    /// What was sent before it, for ECN; 0 where a mark had asked for a reduction already.
    until: u64,
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

/// Where loss recovery stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Recovery {
    /// Nothing is known to be lost.
    #[default]
    Open,
    /// Fast recovery until this position is acknowledged (RFC 6675, RFC 6582).
    Fast { until: u64 },
    /// Slow start after a timeout, until this position is acknowledged.
    Timeout { until: u64 },
}

/// What loss recovery remembers.
#[derive(Debug, Default)]
pub(super) struct LossRecovery {
    pub(super) board: Scoreboard,
    pub(super) recovery: Recovery,
    /// Duplicate acknowledgements in a row.
    pub(super) duplicates: u64,
    /// The next retransmission goes out whatever the congestion window says.
    pub(super) force: bool,
    /// Timeouts in a row without progress, and our timestamp at the last of them.
    pub(super) expired: u32,
    pub(super) expired_at: u32,
    pub(super) rack: Rack,
    pub(super) prr: Prr,
    pub(super) undo: Option<Undo>,
    pub(super) frto: Frto,
    pub(super) loss_probe: LossProbe,
}

impl LossRecovery {
    /// Where nothing is under way and nothing is known but the path.
    pub(super) fn after(rack: Rack, loss_probe: LossProbe) -> LossRecovery {
        LossRecovery { rack, loss_probe, ..LossRecovery::default() }
    }

    /// Whether nothing is being recovered from, nor could be taken back.
    pub(super) fn is_quiet(&self) -> bool {
        self.board.is_empty()
            && self.recovery == Recovery::Open
            && (self.duplicates, self.expired) == (0, 0)
            && !self.force
            && self.frto == Frto::Off
    }

    /// Whether an acknowledgement of nothing new changes nothing: no recovery is under way, nor any of what ends with one, and
    /// no probe waits for its answer.
    pub(super) fn has_ended(&self) -> bool {
        self.recovery == Recovery::Open
            && self.frto == Frto::Off
            && self.loss_probe.has_ended()
            && !self.rack.is_in_round()
    }

    /// Whether of what is in flight from `una` on nothing is known but when it left, and nothing of before has an effect any more.
    pub(super) fn is_plain(&self, una: u64) -> bool {
        self.has_ended()
            && self.board.is_clean()
            && (self.duplicates, self.expired) == (0, 0)
            && !self.force
            && self.undo.is_none()
            && self.rack.fack() <= una
    }

    /// The network is congested: the reduction was necessary, whatever became of the segments. Unless a mark had asked for one before it, of
    /// which the echoes go on until the peer hears that.
    pub(super) fn on_mark(&mut self) {
        self.undo = self.undo.filter(|undo| undo.until == 0);
    }

    fn forget_duplicates(&mut self) {
        self.duplicates = 0;
        self.board.forget_assumed();
    }

    /// For the scoreboard: half of the least round trip, as that may be the path's of minutes ago. Nothing after a timeout, when little is
    /// known of the path.
    pub(super) fn early(&self) -> Duration {
        let is_fast = self.undo.is_some_and(|undo| undo.cause == Cause::Loss);
        if is_fast { self.rack.minimum() / 2 } else { Duration::ZERO }
    }

    /// `start..end` was sent again with this timestamp; `twice`: not for the first time.
    pub(super) fn note_repeat(&mut self, start: u64, end: u64, stamp: u32, twice: bool) {
        if self.recovery == Recovery::Open {
            return;
        }
        self.board.note_repeat(start, end);
        if let Some(undo) = &mut self.undo {
            undo.twice |= twice;
            undo.stamp.get_or_insert(stamp);
        }
        if twice && matches!(self.recovery, Recovery::Fast { .. }) {
            // A retransmission was lost: the network does drop.
            self.undo = None;
        }
    }

    /// Whether nothing had been lost: the peer got everything that was sent again by the first transmission (RFC 3522,
    /// RFC 3708), or what seemed lost arrived before it was sent again. `was_open`: no recovery was under way before this
    /// acknowledgement.
    fn was_in_vain(&self, was_open: bool, news: &News) -> bool {
        let Some(undo) = self.undo else { return false };
        let told = news.advance > 0 || news.duplicated.is_some();
        let in_vain = match undo.cause {
            Cause::Loss => (told || news.arrivals.delivered > 0) && self.board.next_lost().is_none(),
            Cause::Timeout => told,
        };
        (in_vain && self.board.repeated_in_vain()) || (!was_open && self.came_first(&undo, news))
    }

    /// Whether what moved the acknowledgement had been sent before anything was sent again, and nothing that was sent again can move it
    /// any more (Eifel, RFC 3522): the first transmissions filled the gaps.
    fn came_first(&self, undo: &Undo, news: &News) -> bool {
        let (Some(echo), Some(stamp), Cause::Loss) = (news.echo, undo.stamp, undo.cause) else {
            return false;
        };
        (echo.wrapping_sub(stamp) as i32) < 0 && (self.recovery == Recovery::Open || !self.board.has_resent())
    }

    /// Remembers how late an answer came after a timeout, should it turn out to have been only late.
    fn note_delay(&mut self, now: Instant, arrivals: &Arrivals) {
        if let Some(undo) = &mut self.undo
            && undo.cause == Cause::Timeout
            && undo.late.is_none()
        {
            undo.late = arrivals.original.map(|original| now - original.left);
        }
    }
}

impl Connection {
    /// What was not known before about what arrived (RFC 8985 section 6.2 steps 1 to 4).
    pub(super) fn note_arrivals(&mut self, now: Instant, news: &News) {
        let arrivals = &news.arrivals;
        if let Some(original) = arrivals.original {
            self.loss.rack.measure(now, now.nanos_since(original.left));
        }
        if let Some(newest) = arrivals.newest {
            self.loss.rack.update(now, newest);
        }
        if arrivals.reordered {
            self.loss.rack.on_reordering();
            self.accounts.counters.reordering_distance =
                self.accounts.counters.reordering_distance.max(arrivals.distance);
        }
        self.loss.rack.arrived(arrivals.end);
        self.loss.rack.on_advance(self.sender.una);
        if let Some((start, end)) = news.duplicated {
            self.accounts.counters.duplicates_reported += 1;
            self.loss.rack.on_duplicate_report(self.sender.nxt);
            if self.loss.undo.is_some_and(|undo| !undo.twice) {
                self.loss.board.duplicated(start, end);
            }
        }
        self.accounts.counters.reordering_seen = self.loss.rack.reordering_seen();
    }

    /// Finds losses; enters, steers, leaves or takes back a recovery.
    pub(super) fn recover(&mut self, now: Instant, news: &mut News) {
        let was_open = self.loss.recovery == Recovery::Open;
        if news.advance > 0 {
            news.settled = self.recover_on_advance(now, news.advance);
        }
        let delivered = (news.arrivals.delivered + news.assumed).saturating_sub(news.settled);
        let lost = self.sender.una < self.sender.nxt && self.find_losses(now, news.advance > 0);
        if lost && self.loss.recovery == Recovery::Open && !self.has_lost_only_probe() {
            self.enter_recovery(now, delivered);
        }
        if news.duplicated.is_none() {
            // Else it answers a retransmission, and it was an acknowledgement before it that was lost.
            self.loss.note_delay(now, &news.arrivals);
        }
        if self.frto_decides(news) || self.loss.was_in_vain(was_open, news) {
            self.undo(now);
        }
        if matches!(self.loss.recovery, Recovery::Fast { .. }) {
            let is_safe = news.advance > 0 && !lost;
            self.loss.prr.on_ack(delivered, self.pipe(), is_safe, self.mss());
        }
    }

    /// Returns how many of the bytes duplicates had told of already.
    fn recover_on_advance(&mut self, now: Instant, advance: u64) -> u64 {
        let mss = self.mss();
        match self.loss.recovery {
            Recovery::Open => {
                let settled = self.loss.board.settle_assumed(advance);
                self.loss.forget_duplicates();
                // A lower path MTU had all of it sent again, but it arrived before.
                self.loss.force &= self.loss.board.next_lost().is_some();
                return settled;
            }
            Recovery::Fast { until } | Recovery::Timeout { until } if self.sender.una >= until => {
                if matches!(self.loss.recovery, Recovery::Fast { .. }) {
                    self.sender.congestion.on_recovered(now, self.pipe());
                }
                self.loss.rack.on_recovered();
                self.loss.recovery = Recovery::Open;
                self.loss.forget_duplicates();
                self.loss.force = false;
            }
            Recovery::Fast { .. } if !self.handshake.sack => {
                // A partial acknowledgement (RFC 6582 section 3.2 step 3): the next hole starts right here.
                let settled = self.loss.board.settle_assumed(advance.saturating_sub(mss));
                self.loss.board.mark_lost(self.sender.una, (self.sender.una + mss).min(self.sender.left_end));
                self.loss.force = true;
                return settled;
            }
            Recovery::Fast { .. } | Recovery::Timeout { .. } => {}
        }
        0
    }

    /// Whether anything is newly taken to be lost.
    fn find_losses(&mut self, now: Instant, advanced: bool) -> bool {
        if !self.handshake.sack {
            let enough = self.loss.duplicates >= DUPLICATE_THRESHOLD && self.loss.recovery == Recovery::Open;
            let end = (self.sender.una + self.mss()).min(self.sender.left_end);
            return enough
                && self.loss.board.next_lost().is_none()
                && self.loss.board.mark_lost(self.sender.una, end);
        }
        let mut lost = false;
        if advanced && self.loss.board.is_reneged(self.sender.una) {
            self.loss.board.forget_reports();
            lost = self.loss.board.mark_lost(self.sender.una, self.sender.left_end);
        }
        lost | self.detect_losses(now)
    }

    /// RACK (RFC 8985 section 6.2 step 5).
    fn detect_losses(&mut self, now: Instant) -> bool {
        let Some(rule) = self.loss.rack.rule(now, self.situation()) else { return false };
        let found = self.loss.board.detect(self.sender.una, &rule);
        self.accounts.counters.lost_retransmissions += found.again;
        match found.next {
            Some(at) => self.timers.set(Timer::Reorder, at),
            None => self.timers.stop(Timer::Reorder),
        }
        found.lost || found.again > 0
    }

    /// What the reordering window depends on.
    pub(super) fn situation(&self) -> Situation {
        Situation {
            in_recovery: self.loss.recovery != Recovery::Open,
            enough_reported: self.loss.board.has_enough_reports(self.mss()),
            smoothed_rtt: self.sender.rtt.smoothed(),
        }
    }

    /// What should have arrived by now did not (RFC 8985 section 6.2, the reordering timer).
    pub(super) fn on_reorder_timeout(&mut self, now: Instant) {
        if self.sender.una == self.sender.nxt || !self.detect_losses(now) {
            return;
        }
        self.accounts.counters.reordering_timeouts += 1;
        if self.loss.recovery == Recovery::Open && !self.has_lost_only_probe() {
            self.enter_recovery(now, 0);
        } else if self.pipe() == 0 {
            // No acknowledgement will come that could allow anything.
            self.loss.force = true;
        }
    }

    fn enter_recovery(&mut self, now: Instant, delivered: u64) {
        let flight = self.sender.nxt - self.sender.una;
        self.loss.recovery = Recovery::Fast { until: self.sender.nxt };
        self.accounts.counters.fast_recoveries += 1;
        self.accounts.tally().fast_recoveries += 1;
        let is_reduced = self.reduce_for_loss(now);
        let target = self.sender.congestion.slow_start_threshold().unwrap_or(self.sender.congestion.window());
        self.loss.prr = Prr::new(flight.saturating_sub(self.loss.board.reported()) + delivered, target);
        self.loss.force = true;
        self.begin_episode(is_reduced.then_some(Cause::Loss));
    }

    /// A timeout begins, or continues, a recovery. To be called before [`Connection::recovery`] changes.
    pub(super) fn enter_timeout(&mut self, now: Instant, first: bool) {
        let was = self.loss.recovery;
        if was == Recovery::Open {
            self.sender.congestion.save();
            self.begin_episode(Some(Cause::Timeout));
        } else if let Some(undo) = &mut self.loss.undo {
            undo.cause = Cause::Timeout;
        }
        // A recovery that was under way has reduced already, from what was in flight then.
        let reduces = first && !matches!(was, Recovery::Fast { .. });
        self.sender.congestion.on_timeout(now, self.flight(), reduces);
        self.sender.ecn.on_reduced(self.sender.nxt);
        self.loss.recovery = Recovery::Timeout { until: self.sender.nxt };
        let is_new = !matches!(was, Recovery::Timeout { .. });
        self.loss.frto = if is_new && self.handshake.timestamps.is_none() { Frto::First } else { Frto::Off };
        self.loss.force = true;
        self.loss.duplicates = 0;
        self.timers.stop(Timer::Reorder);
    }

    /// From here on it is watched whether the reduction for `cause` was necessary.
    fn begin_episode(&mut self, cause: Option<Cause>) {
        // A timeout may follow a mark, whose reduction stays.
        let is_marked = cause == Some(Cause::Timeout) && self.sender.ecn.is_reduced(self.sender.una);
        let until = if is_marked { 0 } else { self.sender.nxt };
        self.loss.undo = cause.map(|cause| Undo { cause, twice: false, stamp: None, until, late: None });
        self.loss.board.watch_repeats();
        self.loss.loss_probe.forget();
        self.timers.stop(Timer::LossProbe);
    }

    /// RFC 5682 section 2.1, with the SACK enhancement of section 3.1: whether the timeout was spurious.
    fn frto_decides(&mut self, news: &News) -> bool {
        let Recovery::Timeout { until } = self.loss.recovery else {
            self.loss.frto = Frto::Off;
            return false;
        };
        match self.loss.frto {
            Frto::Off => false,
            Frto::First => {
                let more = self.sender.queue.ready_end().min(self.sender.window.edge) > self.sender.nxt;
                let goes_on = news.advance > 0 && self.sender.una < until && more;
                self.loss.frto = if goes_on { Frto::Second } else { Frto::Off };
                false
            }
            Frto::Second if news.advance == 0 && news.arrivals.delivered == 0 && !news.is_duplicate => false,
            Frto::Second => {
                self.loss.frto = Frto::Off;
                news.advance > 0 || news.arrivals.unexpected > 0
            }
        }
    }

    /// Takes the reduction back (RFC 4015).
    fn undo(&mut self, now: Instant) {
        let Some(undo) = self.loss.undo.take() else { return };
        if self.handshake.sack && self.loss.board.next_lost().is_some() {
            // What is taken back with the rest may be lost all the same, and no other acknowledgement come.
            self.timers.set(Timer::Reorder, now);
        }
        self.loss.board.restore();
        self.loss.recovery = Recovery::Open;
        self.loss.frto = Frto::Off;
        self.loss.force = false;
        self.loss.forget_duplicates();
        match undo.cause {
            Cause::Loss => {
                self.accounts.counters.spurious_recoveries_undone += 1;
                self.accounts.tally().fast_recoveries_undone += 1;
                self.loss.rack.on_reordering();
            }
            Cause::Timeout => {
                self.accounts.counters.spurious_timeouts_undone += 1;
                self.accounts.tally().timeouts_undone += 1;
                if let Some(late) = undo.late {
                    self.sender.rtt.on_spurious(late);
                }
            }
        }
        if self.timers.is_running(Timer::Retransmit) {
            self.timers.set(Timer::Retransmit, self.sender.rtt.timeout_from(now));
        }
        self.sender.ecn.on_undo(undo.until);
        self.sender.congestion.on_undo(now, self.pipe());
    }
}
