//! What an acknowledgement does: window, round-trip time, scoreboard, recovery, congestion window.

use super::super::congestion::AckEvent;
use super::super::scoreboard::DUPLICATE_THRESHOLD;
use super::super::segment::SegmentIn;
use super::super::sequence::unwrap;
use super::super::state::{Event, State};
use super::super::timers::Timer;
use super::{Connection, Recovery};
use core::time::Duration;
use linerate_transport::Ready;
use linerate_wire::tcp::{Flags, Options};
use linerate_wire::units::Instant;

/// What the receiver's clock of milliseconds cannot tell from zero.
const HALF_TICK: Duration = Duration::from_micros(500);

impl Connection {
    /// Takes the ACK field (RFC 9293 section 3.10.7.4, fifth step), already checked.
    pub(super) fn handle_ack(&mut self, now: Instant, seq: u64, ack: u64, segment: &SegmentIn) {
        if self.state == State::TimeWait {
            return;
        }
        let old_window = self.window.size;
        if ack >= self.una {
            self.update_window(now, seq, ack, segment.window);
        }
        let pipe = if self.una < self.peak.1 { self.peak.0.max(self.pipe()) } else { self.pipe() };
        let advance = ack.saturating_sub(self.una);
        let mut delivered = 0;
        let mut rtt = None;
        if advance > 0 {
            delivered += self.board.acknowledge(self.una, ack);
            rtt = self.measure_from_marks(now, ack).or_else(|| self.measure_from_echo(now, &segment.options));
            self.advance(now, ack);
        }
        let reported = self.take_sack(ack, &segment.options);
        delivered += reported;
        let is_duplicate = advance == 0
            && ack == self.una
            && self.una < self.nxt
            && segment.payload_len() == 0
            && !segment.flags.contains(Flags::FIN)
            && (reported > 0 || (!self.sack && self.window.size == old_window));
        if is_duplicate {
            self.counters.duplicate_acks += 1;
            self.duplicates += 1;
            if !self.sack {
                self.board.assume_arrived(self.mss(), self.una, self.nxt);
            }
        }
        let was_fast = matches!(self.recovery, Recovery::Fast { .. });
        self.recover(now, advance);
        if delivered > 0 && !was_fast && !matches!(self.recovery, Recovery::Fast { .. }) {
            let event = self.ack_event(delivered, pipe, rtt);
            self.congestion.on_ack(now, &event);
        }
        if advance > 0 {
            self.after_advance(now);
        }
    }

    /// What congestion control learns from an acknowledgement; `pipe`: see [`AckEvent::pipe`].
    fn ack_event(&self, delivered: u64, pipe: u64, rtt: Option<Duration>) -> AckEvent {
        let smoothed_rtt = self.rtt.smoothed();
        AckEvent { una: self.una, nxt: self.nxt, delivered, pipe, rtt, smoothed_rtt, paced: self.is_paced() }
    }

    /// RFC 9293 section 3.10.7.4: the window of a newer segment counts, whether it grows or shrinks.
    fn update_window(&mut self, now: Instant, seq: u64, ack: u64, field: u16) {
        let (by_seq, by_ack) = self.window.updated_by;
        if by_seq > seq || (by_seq == seq && by_ack > ack) {
            return;
        }
        let size = u64::from(field) << self.window.scale;
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
            self.stalled_since = self.stalled_since.filter(|_| is_closed);
        } else {
            self.stall(now);
            if self.left_end > self.una {
                self.timers.set(Timer::Retransmit, now + self.rtt.timeout());
            } else {
                // All that is outstanding still waits in the device.
                self.timers.stop(Timer::Retransmit);
            }
        }
    }

    /// Takes SACK blocks (RFC 2018); returns how many bytes are news.
    fn take_sack(&mut self, ack: u64, options: &Options) -> u64 {
        if !self.sack {
            return 0;
        }
        let mut news = 0;
        let blocks = options.sack_blocks.as_slice();
        for (index, block) in blocks.iter().enumerate() {
            let (start, end) = (unwrap(self.una, block.left), unwrap(self.una, block.right));
            if index == 0 && self.is_duplicate_report(ack, start, end, options) {
                self.counters.duplicates_reported += 1;
                continue;
            }
            if start >= end || start < self.una || end > self.nxt {
                continue;
            }
            news += self.board.sack(start, end);
        }
        news
    }

    /// RFC 2883 section 4: the first block lies below the acknowledgement, or within the second block.
    fn is_duplicate_report(&self, ack: u64, start: u64, end: u64, options: &Options) -> bool {
        if end <= ack {
            return true;
        }
        options.sack_blocks.as_slice().get(1).is_some_and(|second| {
            unwrap(self.una, second.left) <= start && end <= unwrap(self.una, second.right)
        })
    }

    /// Finds losses, and enters or leaves recovery.
    fn recover(&mut self, now: Instant, advance: u64) {
        let mss = self.mss();
        if advance > 0 {
            self.recover_on_advance(now, advance);
        }
        if self.una == self.nxt {
            return;
        }
        let mut lost = false;
        if self.sack {
            if advance > 0 && self.board.is_reneged(self.una) {
                self.board.forget_reports();
                self.board.mark_lost(self.una, self.nxt);
                lost = true;
            }
            let (news, again) = self.board.judge(self.una, mss);
            self.counters.lost_retransmissions += again;
            lost |= news || again > 0;
        }
        let enough = self.duplicates >= DUPLICATE_THRESHOLD && self.recovery == Recovery::Open;
        if enough && !lost && self.board.next_lost().is_none() {
            self.board.mark_lost(self.una, (self.una + mss).min(self.nxt));
            lost = true;
        }
        if lost && self.recovery == Recovery::Open && !self.has_lost_only_probe() {
            self.recovery = Recovery::Fast { until: self.nxt };
            self.counters.fast_recoveries += 1;
            self.reduce_for_loss(now);
            self.force = true;
        }
    }

    fn recover_on_advance(&mut self, now: Instant, advance: u64) {
        match self.recovery {
            Recovery::Open => {
                self.duplicates = 0;
                self.board.forget_assumed();
            }
            Recovery::Fast { until } | Recovery::Timeout { until } if self.una >= until => {
                if matches!(self.recovery, Recovery::Fast { .. }) {
                    self.congestion.on_recovered(now, self.pipe());
                }
                self.recovery = Recovery::Open;
                self.duplicates = 0;
                self.board.forget_assumed();
                self.force = false;
            }
            Recovery::Fast { .. } if !self.sack => {
                // A partial acknowledgement (RFC 6582 section 3.2 step 3): the next hole starts right here.
                let mss = self.mss();
                self.board.settle_assumed(advance.saturating_sub(mss));
                self.board.mark_lost(self.una, (self.una + mss).min(self.nxt));
                self.force = true;
            }
            Recovery::Fast { .. } | Recovery::Timeout { .. } => {}
        }
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

    /// Measures a round trip by the newest mark that `ack` covers.
    pub(super) fn measure_from_marks(&mut self, now: Instant, ack: u64) -> Option<Duration> {
        let mut newest = None;
        while let Some(mark) = self.marks.front()
            && mark.end <= ack
        {
            newest = Some(mark.left);
            self.marks.pop_front();
        }
        let rtt = now - newest?;
        self.rtt.measure(rtt);
        Some(rtt)
    }

    /// Measures a round trip by the echoed timestamp (RFC 7323 section 4): coarser, but right for retransmissions too.
    pub(super) fn measure_from_echo(&mut self, now: Instant, options: &Options) -> Option<Duration> {
        self.timestamps?;
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
        self.rtt.measure(rtt);
        Some(rtt)
    }
}
