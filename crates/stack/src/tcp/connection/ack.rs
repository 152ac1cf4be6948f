//! What an acknowledgement does: window, scoreboard, round-trip time; then recovery and congestion control.

use super::super::congestion::{AckEvent, CongestionControl as _};
use super::super::scoreboard::{Arrivals, Clues};
use super::super::segment::SegmentIn;
use super::super::sequence::unwrap;
use super::super::state::{Event, State};
use super::super::timers::Timer;
use super::recovery::News;
use super::{Connection, Recovery};
use core::time::Duration;
use linerate_transport::Ready;
use linerate_wire::tcp::{Flags, Options, SackBlock};
use linerate_wire::units::Instant;

/// What the receiver's clock of milliseconds cannot tell from zero.
const HALF_TICK: Duration = Duration::from_micros(500);

impl Connection {
    /// Takes the ACK field (RFC 9293 section 3.10.7.4, fifth step), already checked; `window` in bytes.
    pub(super) fn handle_ack(&mut self, now: Instant, seq: u64, ack: u64, window: u64, segment: &SegmentIn) {
        if self.state == State::TimeWait {
            return;
        }
        self.last.ack = now;
        let old_window = self.window.size;
        // The acknowledgement of our SYN repeats none, though data may be in flight already.
        let is_first = self.window.updated_by == (0, 0);
        if ack >= self.una {
            self.update_window(now, seq, ack, window);
        }
        self.leave_device_until(ack);
        let pipe = if self.una < self.peak.1 { self.peak.0.max(self.pipe()) } else { self.pipe() };
        let was_fast = matches!(self.recovery, Recovery::Fast { .. });
        let mut news = News {
            advance: ack.saturating_sub(self.una),
            duplicated: self.duplicate_report(ack, &segment.options),
            ..News::default()
        };
        let rtt = self.take_arrivals(now, ack, &segment.options, &mut news);
        let reported = self.sack && news.arrivals.delivered > 0;
        news.is_duplicate = !is_first
            && news.advance == 0
            && ack == self.una
            && self.una < self.nxt
            && segment.payload_len() == 0
            && !segment.flags.contains(Flags::FIN)
            && (reported || (!self.sack && self.window.size == old_window));
        if news.is_duplicate {
            self.counters.duplicate_acks += 1;
            self.duplicates += 1;
            if !self.sack {
                news.assumed = self.board.assume_arrived(self.mss(), self.una, self.nxt);
            }
        }
        self.note_arrivals(now, &news);
        self.judge_loss_probe(now, ack, &news);
        self.recover(now, &mut news);
        let delivered = news.arrivals.delivered.saturating_sub(news.settled);
        // Duplicates do not open the window (RFC 3042 section 2, RFC 5681 section 3.2 step 1). Where the path is known to
        // reorder, they tell of what is acknowledged late, and count.
        let counts = news.advance > 0 || self.repair.rack.reordering_seen();
        if delivered > 0 && counts && !was_fast && !matches!(self.recovery, Recovery::Fast { .. }) {
            let event = self.ack_event(delivered, pipe, rtt);
            self.congestion.on_ack(now, &event);
        }
        if news.advance > 0 {
            self.await_loss_probe(now);
            self.after_advance(now);
        }
    }

    /// Takes what the ACK field and the SACK blocks tell; returns the round-trip time measured.
    fn take_arrivals(
        &mut self,
        now: Instant,
        ack: u64,
        options: &Options,
        news: &mut News,
    ) -> Option<Duration> {
        let echo = self.timestamps.and(options.timestamps).map(|theirs| theirs.echo);
        let clues = Clues {
            now,
            fack: self.repair.rack.fack(),
            least_rtt: self.repair.rack.minimum(),
            // A duplicate is answered with an older echo (RFC 3522 section 3.2 step 5).
            echo: echo.filter(|_| news.duplicated.is_none()),
        };
        let mut rtt = None;
        if news.advance > 0 {
            let flight = self.nxt.max(ack) - self.una;
            self.board.acknowledge(self.una, ack, &clues, &mut news.arrivals);
            rtt = self.measure(now, &news.arrivals, flight.div_ceil(news.advance));
            rtt = rtt.or_else(|| self.measure_from_echo(now, options));
            self.advance(now, ack);
        }
        self.take_sack(options, &clues, news);
        rtt
    }

    /// What congestion control learns from an acknowledgement; `pipe`: see [`AckEvent::pipe`].
    fn ack_event(&self, delivered: u64, pipe: u64, rtt: Option<Duration>) -> AckEvent {
        let smoothed_rtt = self.rtt.smoothed();
        AckEvent { una: self.una, nxt: self.nxt, delivered, pipe, rtt, smoothed_rtt, paced: self.is_paced() }
    }

    /// RFC 9293 section 3.10.7.4: the window of a newer segment counts, whether it grows or shrinks.
    fn update_window(&mut self, now: Instant, seq: u64, ack: u64, size: u64) {
        let (by_seq, by_ack) = self.window.updated_by;
        if by_seq > seq || (by_seq == seq && by_ack > ack) {
            return;
        }
        let edge = ack + size;
        if size > 0 && edge > self.window.edge && self.una == self.nxt {
            // The peer reads, if slowly.
            self.probes = 0;
            if self.timers.is_running(Timer::Persist) {
                self.stall(now);
            }
        }
        self.window.updated_by = (seq, ack);
        self.window.size = size;
        self.window.edge = edge;
        self.window.max = self.window.max.max(size);
    }

    fn advance(&mut self, now: Instant, ack: u64) {
        // A peer that takes the byte of a probe and keeps its window closed has opened nothing.
        let is_closed = self.una == self.nxt && self.window.size == 0;
        let data_end = self.queue.end();
        let before = self.una.min(data_end);
        self.counters.bytes_acked += ack.min(data_end) - before;
        // The byte of a window probe may be acknowledged though it was not counted as sent.
        self.nxt = self.nxt.max(ack);
        self.una = ack;
        self.queue.acknowledge(ack);
        self.watch_path_on_ack(now);
        self.expired = 0;
        self.probes = if is_closed { self.probes } else { 0 };
        self.soft_error = None;
        self.left_end = self.left_end.max(ack);
        if self.una == self.nxt {
            self.timers.stop(Timer::Retransmit);
            self.timers.stop(Timer::Reorder);
            self.timers.stop(Timer::LossProbe);
            self.stalled_since = self.stalled_since.filter(|_| is_closed);
        } else {
            self.stall(now);
            if self.left_end > self.una {
                self.watches_device = false;
                self.timers.set(Timer::Retransmit, now + self.rtt.timeout());
            } else {
                // All that is outstanding still waits in the device.
                self.watch_device(now);
            }
        }
    }

    /// Takes SACK blocks (RFC 2018).
    fn take_sack(&mut self, options: &Options, clues: &Clues, news: &mut News) {
        if !self.sack {
            return;
        }
        let skipped = usize::from(news.duplicated.is_some());
        for block in options.sack_blocks.as_slice().iter().skip(skipped) {
            let (start, end) = (unwrap(self.una, block.left), unwrap(self.una, block.right));
            if start < end && start >= self.una && end <= self.nxt {
                self.board.sack(start, end, clues, &mut news.arrivals);
            }
        }
    }

    /// The duplicate that the first block reports, if it lies below the acknowledgement or within the second block
    /// (RFC 2883 section 4).
    fn duplicate_report(&self, ack: u64, options: &Options) -> Option<(u64, u64)> {
        let blocks = options.sack_blocks.as_slice();
        let first = blocks.first().filter(|_| self.sack)?;
        let (start, end) = (unwrap(self.una, first.left), unwrap(self.una, first.right));
        let is_within = |second: &SackBlock| {
            unwrap(self.una, second.left) <= start && end <= unwrap(self.una, second.right)
        };
        (end <= ack || blocks.get(1).is_some_and(is_within)).then_some((start, end))
    }

    /// What the application and the state diagram learn from progress.
    fn after_advance(&mut self, now: Instant) {
        if self.write_refused && self.sendable() > 0 && self.has_worthwhile_room() {
            self.write_refused = false;
            self.tell(Ready::WRITABLE);
        }
        self.note_full();
        let all_acknowledged = self.una == self.nxt && self.queue.len() == 0;
        if all_acknowledged && self.fin_queued == self.fin_sent {
            self.tell(Ready::SENT);
        }
        if self.fin_sent && self.una == self.nxt {
            self.follow(now, Event::FinAcked);
        }
    }

    /// Whether enough room came back to wake the application for: a quarter of the buffer.
    fn has_worthwhile_room(&self) -> bool {
        let limit = self.send_limit() as u64;
        self.queue.loaded() <= limit - limit / 4
    }

    /// Measures a round trip by the newest segment that was acknowledged, if nothing acknowledged had been sent twice
    /// (Karn's algorithm, RFC 6298 section 3). `per_window`: how many such acknowledgements a window gives.
    fn measure(&mut self, now: Instant, arrivals: &Arrivals, per_window: u64) -> Option<Duration> {
        let original = arrivals.original.filter(|_| !arrivals.resent)?;
        let rtt = now - original.left;
        self.rtt.measure(rtt, u32::try_from(per_window).unwrap_or(u32::MAX));
        Some(rtt)
    }

    /// Measures the round trip of our SYN.
    pub(super) fn measure_syn(&mut self, now: Instant, ack: u64, options: &Options) {
        let clues = Clues { now, fack: 0, least_rtt: Duration::ZERO, echo: None };
        let mut arrivals = Arrivals::default();
        self.board.acknowledge(self.una, ack, &clues, &mut arrivals);
        if let Some(original) = arrivals.original {
            self.repair.rack.measure(now, now - original.left);
        }
        if self.measure(now, &arrivals, 1).is_none() {
            self.measure_from_echo(now, options);
        }
    }

    /// Measures a round trip by the echoed timestamp (RFC 7323 section 4): coarser, but right for retransmissions too. Only
    /// where nothing better is known, or a timeout has to be undoubled.
    fn measure_from_echo(&mut self, now: Instant, options: &Options) -> Option<Duration> {
        if self.timestamps.is_none() || (self.rtt.smoothed().is_some() && !self.rtt.is_backed_off()) {
            return None;
        }
        let echo = options.timestamps?.echo;
        let ticks = self.timestamp(now).wrapping_sub(echo);
        if ticks > i32::MAX as u32 {
            return None;
        }
        // A peer that answers a duplicate echoes what came before it (RFC 7323 section 5.3 R2), so after a timeout an
        // older echo may tell of a lost acknowledgement instead of a slow path: ambiguous, as in Karn's algorithm.
        if self.expired > 0 && (echo.wrapping_sub(self.expired_at) as i32) < 0 {
            return None;
        }
        let rtt = Duration::from_millis(u64::from(ticks)).max(HALF_TICK);
        self.rtt.measure(rtt, 1);
        Some(rtt)
    }
}
