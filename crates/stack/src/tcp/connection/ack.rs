//! What an acknowledgement does: window, scoreboard, round-trip time; then recovery and congestion control.

use super::super::congestion::{AckEvent, CongestionControl as _};
use super::super::scoreboard::{Arrivals, Clues};
use super::super::segment::SegmentIn;
use super::super::sequence::unwrap;
use super::super::shortcuts_are_off;
use super::super::state::{Event, State};
use super::super::timers::Timer;
use super::Connection;
use super::recovery::News;
use super::recovery::Recovery;
use core::time::Duration;
use linerate_transport::Ready;
use linerate_wire::division::div_ceil;
use linerate_wire::tcp::{Flags, Options, SackBlock};
use linerate_wire::units::{Instant, nanos};

/// What the receiver's clock of milliseconds cannot tell from zero.
const HALF_TICK: Duration = Duration::from_micros(500);

impl Connection {
    /// Takes the ACK field (RFC 9293 section 3.10.7.4, fifth step), already checked; `window` in bytes.
    pub(super) fn handle_ack(&mut self, now: Instant, seq: u64, ack: u64, window: u64, segment: &SegmentIn) {
        if self.life.state == State::TimeWait {
            return;
        }
        self.accounts.last.ack = now;
        let old_window = self.sender.window.size;
        // The acknowledgement of our SYN repeats none, though data may be in flight already.
        let is_first = self.sender.window.updated_by == (0, 0);
        if ack >= self.sender.una {
            self.update_window(now, seq, ack, window);
        }
        if segment.options.sack_blocks.is_empty() && self.has_nothing_to_hear(ack) {
            self.accounts.counters.reordering_seen = self.loss.rack.reordering_seen();
            return;
        }
        self.leave_device_until(ack);
        let pipe = self.sender.most_in_network(self.pipe());
        let was_fast = matches!(self.loss.recovery, Recovery::Fast { .. });
        let mut news = News {
            advance: ack.saturating_sub(self.sender.una),
            duplicated: self.duplicate_report(ack, &segment.options),
            ..News::default()
        };
        let rtt_ns = self.take_arrivals(now, ack, &segment.options, &mut news);
        let reported = self.handshake.sack && news.arrivals.delivered > 0;
        news.is_duplicate = !is_first
            && news.advance == 0
            && ack == self.sender.una
            && self.sender.una < self.sender.nxt
            && segment.payload_len() == 0
            && !segment.flags.contains(Flags::FIN)
            && (reported || (!self.handshake.sack && self.sender.window.size == old_window));
        if news.is_duplicate {
            self.accounts.counters.duplicate_acks += 1;
            self.loss.duplicates += 1;
            if !self.handshake.sack {
                news.assumed = self.loss.board.assume_arrived(self.mss(), self.sender.una, self.sender.nxt);
            }
        }
        self.note_arrivals(now, &news);
        self.judge_loss_probe(now, ack, &news);
        self.recover(now, &mut news);
        let delivered = news.arrivals.delivered.saturating_sub(news.settled);
        // Duplicates do not open the window (RFC 3042 section 2, RFC 5681 section 3.2 step 1). Where the path is known to
        // reorder, they tell of what is acknowledged late, and count.
        let counts = news.advance > 0 || self.loss.rack.reordering_seen();
        if delivered > 0 && counts && !was_fast && !matches!(self.loss.recovery, Recovery::Fast { .. }) {
            let event = self.ack_event(delivered, pipe, rtt_ns);
            self.sender.congestion.on_ack(now, &event);
        }
        if news.advance > 0 {
            self.await_loss_probe(now);
            self.after_advance(now);
        }
    }

    /// Whether an acknowledgement without SACK blocks cannot tell more than its window: nothing is in flight or in the device, nothing is being
    /// recovered from or could be taken back. So it is with all that whoever only receives is sent.
    pub(super) fn has_nothing_to_hear(&self, ack: u64) -> bool {
        let is_idle = !shortcuts_are_off()
            && ack == self.sender.una
            && self.sender.is_idle()
            && !self.device.has_packets();
        is_idle && self.loss.has_ended()
    }

    /// Takes what the ACK field and the SACK blocks tell; returns the round-trip time measured, in nanoseconds.
    fn take_arrivals(&mut self, now: Instant, ack: u64, options: &Options, news: &mut News) -> Option<u64> {
        let echo = self.handshake.timestamps.and(options.timestamps).map(|theirs| theirs.echo);
        let clues = Clues {
            now,
            fack: self.loss.rack.fack(),
            least_rtt: self.loss.rack.minimum(),
            early: self.loss.early(),
            // A duplicate is answered with an older echo (RFC 3522 section 3.2 step 5).
            echo: echo.filter(|_| news.duplicated.is_none()),
        };
        let mut rtt_ns = None;
        if news.advance > 0 {
            let flight = self.sender.nxt.max(ack) - self.sender.una;
            self.loss.board.acknowledge(self.sender.una, ack, &clues, &mut news.arrivals);
            let per_window = div_ceil(flight, news.advance);
            rtt_ns = self.measure(now, &news.arrivals, per_window);
            rtt_ns = rtt_ns.or_else(|| self.measure_from_echo(now, options));
            news.echo = clues.echo;
            self.advance(now, ack);
        }
        self.take_sack(options, ack < self.sender.una, &clues, news);
        rtt_ns
    }

    /// What congestion control learns from an acknowledgement; `pipe`: see [`AckEvent::pipe`].
    pub(super) fn ack_event(&self, delivered: u64, pipe: u64, rtt_ns: Option<u64>) -> AckEvent {
        let smoothed_rtt = self.sender.rtt.smoothed();
        AckEvent {
            una: self.sender.una,
            nxt: self.sender.nxt,
            delivered,
            pipe,
            rtt_ns,
            smoothed_rtt,
            paced: self.is_paced(),
        }
    }

    /// RFC 9293 section 3.10.7.4: the window of a newer segment counts, whether it grows or shrinks.
    pub(super) fn update_window(&mut self, now: Instant, seq: u64, ack: u64, size: u64) {
        if self.sender.take_window(seq, ack, size) && self.sender.is_idle() {
            // The peer reads, if slowly.
            self.sender.probes = 0;
            if self.timers.is_running(Timer::Persist) {
                self.stall(now);
            }
        }
    }

    pub(super) fn advance(&mut self, now: Instant, ack: u64) {
        // A peer that takes the byte of a probe and keeps its window closed has opened nothing.
        let is_closed = self.sender.una == self.sender.nxt && self.sender.window.size == 0;
        let data_end = self.sender.queue.end();
        let before = self.sender.una.min(data_end);
        self.accounts.counters.bytes_acked += ack.min(data_end) - before;
        // The byte of a window probe may be acknowledged though it was not counted as sent.
        self.sender.nxt = self.sender.nxt.max(ack);
        self.sender.una = ack;
        self.sender.queue.acknowledge(ack);
        self.watch_path_on_ack(now);
        self.loss.expired = 0;
        self.sender.probes = if is_closed { self.sender.probes } else { 0 };
        self.life.soft_error = None;
        self.sender.left_end = self.sender.left_end.max(ack);
        if self.sender.una == self.sender.nxt {
            self.timers.stop(Timer::Retransmit);
            self.timers.stop(Timer::Reorder);
            self.timers.stop(Timer::LossProbe);
            self.sender.stalled_since = self.sender.stalled_since.filter(|_| is_closed);
        } else {
            self.stall(now);
            if self.sender.left_end > self.sender.una {
                self.device.is_watched = false;
                self.timers.set(Timer::Retransmit, self.sender.rtt.timeout_from(now));
            } else {
                // All that is outstanding still waits in the device.
                self.watch_device(now);
            }
        }
    }

    /// Takes SACK blocks (RFC 2018); `is_old`: of an acknowledgement of the past.
    fn take_sack(&mut self, options: &Options, is_old: bool, clues: &Clues, news: &mut News) {
        if !self.handshake.sack {
            return;
        }
        let skipped = usize::from(news.duplicated.is_some());
        for block in options.sack_blocks.as_slice().iter().skip(skipped) {
            let (left, end) = (unwrap(self.sender.una, block.left), unwrap(self.sender.una, block.right));
            // In an acknowledgement that was overtaken, a block may begin below what is acknowledged by now.
            let start = if is_old { left.max(self.sender.una) } else { left };
            if start < end && start >= self.sender.una && end <= self.sender.nxt {
                self.loss.board.sack(start, end, clues, &mut news.arrivals);
            }
        }
    }

    /// The duplicate that the first block reports, if it lies below the acknowledgement or within the second block
    /// (RFC 2883 section 4).
    fn duplicate_report(&self, ack: u64, options: &Options) -> Option<(u64, u64)> {
        let blocks = options.sack_blocks.as_slice();
        let first = blocks.first().filter(|_| self.handshake.sack)?;
        let (start, end) = (unwrap(self.sender.una, first.left), unwrap(self.sender.una, first.right));
        let is_within = |second: &SackBlock| {
            unwrap(self.sender.una, second.left) <= start && end <= unwrap(self.sender.una, second.right)
        };
        (end <= ack || blocks.get(1).is_some_and(is_within)).then_some((start, end))
    }

    /// What the application and the state diagram learn from progress.
    pub(super) fn after_advance(&mut self, now: Instant) {
        if self.sender.write_refused && self.sendable() > 0 && self.has_worthwhile_room() {
            self.sender.write_refused = false;
            self.life.tell(Ready::WRITABLE);
        }
        self.note_full();
        let all_acknowledged = self.sender.una == self.sender.nxt && self.sender.queue.len() == 0;
        if all_acknowledged && self.sender.fin_queued == self.sender.fin_sent {
            self.life.tell(Ready::SENT);
        }
        if self.sender.fin_sent && self.sender.una == self.sender.nxt {
            self.follow(now, Event::FinAcked);
        }
    }

    /// Whether enough room came back to wake the application for: a quarter of the buffer.
    fn has_worthwhile_room(&self) -> bool {
        let limit = self.send_limit() as u64;
        self.sender.queue.loaded() <= limit - limit / 4
    }

    /// Measures a round trip by the newest segment that was acknowledged, if nothing acknowledged had been sent twice
    /// (Karn's algorithm, RFC 6298 section 3). `per_window`: how many such acknowledgements a window gives.
    fn measure(&mut self, now: Instant, arrivals: &Arrivals, per_window: u64) -> Option<u64> {
        let original = arrivals.original.filter(|_| !arrivals.resent)?;
        let rtt_ns = now.nanos_since(original.left);
        self.sender.rtt.measure_ns(rtt_ns, u32::try_from(per_window).unwrap_or(u32::MAX));
        Some(rtt_ns)
    }

    /// Measures the round trip of our SYN.
    pub(super) fn measure_syn(&mut self, now: Instant, ack: u64, options: &Options) {
        let clues = Clues { now, fack: 0, least_rtt: Duration::ZERO, early: Duration::ZERO, echo: None };
        let mut arrivals = Arrivals::default();
        self.loss.board.acknowledge(self.sender.una, ack, &clues, &mut arrivals);
        if let Some(original) = arrivals.original {
            self.loss.rack.measure(now, now.nanos_since(original.left));
        }
        if self.measure(now, &arrivals, 1).is_none() {
            self.measure_from_echo(now, options);
        }
    }

    /// Measures a round trip by the echoed timestamp (RFC 7323 section 4): coarser, but right for retransmissions too. Only
    /// where nothing better is known, or a timeout has to be undoubled.
    fn measure_from_echo(&mut self, now: Instant, options: &Options) -> Option<u64> {
        if self.handshake.timestamps.is_none()
            || (self.sender.rtt.smoothed().is_some() && !self.sender.rtt.is_backed_off())
        {
            return None;
        }
        let echo = options.timestamps?.echo;
        let ticks = self.handshake.timestamp(now).wrapping_sub(echo);
        if ticks > i32::MAX as u32 {
            return None;
        }
        // A peer that answers a duplicate echoes what came before it (RFC 7323 section 5.3 R2), so after a timeout an
        // older echo may tell of a lost acknowledgement instead of a slow path: ambiguous, as in Karn's algorithm.
        if self.loss.expired > 0 && (echo.wrapping_sub(self.loss.expired_at) as i32) < 0 {
            return None;
        }
        let rtt = Duration::from_millis(u64::from(ticks)).max(HALF_TICK);
        self.sender.rtt.measure(rtt, 1);
        Some(nanos(rtt))
    }
}
