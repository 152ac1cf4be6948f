//! Timers that come due.

use super::super::state::{Event, State};
use super::super::timers::Timer;
use super::Connection;
use core::time::Duration;
use linerate_transport::{CloseReason, Ready};
use linerate_wire::units::Instant;

/// Timers that look for losses wait so long at most for what the device holds.
const MOST_BACKLOG: Duration = Duration::from_millis(100);

impl Connection {
    /// Whether nothing is due but what a segment would stop that waits unread in the device: it is to be read first.
    pub fn may_listen_first(&self, now: Instant) -> bool {
        self.timers.loss_due(now).is_some_and(|at| now - at < MOST_BACKLOG)
    }

    /// Whether retransmissions are far apart by now: what the retransmission timer watches was sent again in vain.
    pub(crate) fn is_backed_off(&self) -> bool {
        self.sender.rtt.is_backed_off()
            && self.life.state.is_synchronized()
            && self.timers.is_running(Timer::Retransmit)
    }

    /// Makes the next retransmission due at once if [`Connection::is_backed_off`], and those after it as close as those
    /// after the first: what was lost while the link was down tells nothing of the path.
    pub(crate) fn retransmit_soon(&mut self, now: Instant) {
        if self.is_backed_off() {
            self.sender.rtt.back_off_anew();
            self.timers.set(Timer::Retransmit, now);
        }
    }

    /// Runs the timers that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.close_open(now);
        if self.timers.expired(Timer::UserTimeout, now) {
            self.on_user_timeout(now);
        }
        if self.timers.expired(Timer::Reorder, now) {
            self.on_reorder_timeout(now);
        }
        // Before the timeout, which it may put off.
        if self.timers.expired(Timer::LossProbe, now) {
            self.on_loss_probe_timeout(now);
        }
        if self.timers.expired(Timer::Retransmit, now) {
            self.on_retransmit_timeout(now);
        }
        if self.timers.expired(Timer::Persist, now) {
            self.sender.probe_due = true;
        }
        // What waited for it is polled for by the owner.
        self.timers.expired(Timer::Pace, now);
        if self.timers.expired(Timer::DelayedAck, now) {
            self.receiving.ack.now();
        }
        if self.timers.expired(Timer::KeepAlive, now) {
            self.on_keep_alive(now);
        }
        if self.timers.expired(Timer::TimeWait, now) {
            self.follow(now, Event::Expired);
        }
        if self.timers.expired(Timer::FinWait2, now) && self.life.state == State::FinWait2 {
            self.end(now, CloseReason::Done);
        }
        if self.timers.expired(Timer::Memory, now) && self.sender.write_refused {
            self.sender.write_refused = false;
            self.life.tell(Ready::WRITABLE);
        }
        // A smaller congestion window may mean a smaller send buffer.
        self.note_full();
        self.note_work(now);
    }

    /// RFC 6298 section 5, RFC 5681 section 3.1.
    fn on_retransmit_timeout(&mut self, now: Instant) {
        if self.sender.una == self.sender.nxt {
            return;
        }
        let is_opening = matches!(self.life.state, State::SynSent | State::SynReceived);
        let end = if is_opening { self.sender.nxt } else { self.sender.una + 1 };
        if self.device.contains(self.sender.una, end) {
            // It has not even left: the network is not to blame.
            if core::mem::take(&mut self.device.is_watched) {
                self.give_device_up(now);
            } else {
                self.watch_device(now);
            }
            return;
        }
        self.accounts.counters.timeouts += 1;
        self.accounts.tally().timeouts += 1;
        self.sender.rtt.back_off();
        if is_opening {
            self.handshake.syn_retries += 1;
            if self.handshake.syn_retries > self.most_syn_retries() {
                let reason = self.life.soft_error.unwrap_or(CloseReason::TimedOut);
                self.end(now, reason);
            } else {
                self.handshake.syn_due = true;
            }
            return;
        }
        // What was reported is believed once; when that does not help, nothing is (RFC 2018 section 8).
        let first = self.loss.expired == 0;
        if !first || self.loss.board.is_reneged(self.sender.una) {
            self.loss.board.forget_reports();
        }
        self.loss.expired_at = self.handshake.timestamp(now);
        self.enter_timeout(now, first);
        self.loss.expired = self.loss.expired.saturating_add(1);
        self.watch_path_on_timeout(now);
        self.loss.board.forget_assumed();
        let patience =
            if self.handshake.sack && first { self.loss.rack.patience(self.situation()) } else { None };
        let segment = self.mss().min(self.sender.left_end.saturating_sub(self.sender.una));
        self.loss.board.mark_timed_out(self.sender.una, segment, now, patience);
    }

    fn on_user_timeout(&mut self, now: Instant) {
        let Some(since) = self.sender.stalled_since else { return };
        let due = since + self.config.socket.user_timeout;
        if now < due {
            self.timers.set(Timer::UserTimeout, due);
            return;
        }
        let reason = self.life.soft_error.unwrap_or(CloseReason::TimedOut);
        if self.life.state == State::SynReceived {
            // Whoever sent the SYN may not be who it said: nothing more goes there.
            self.end(now, reason);
        } else {
            self.abort(now, reason);
        }
    }

    /// Starts, moves or stops the keep-alive timer as the settings say.
    pub(super) fn arm_keep_alive(&mut self, now: Instant) {
        match self.config.socket.keep_alive {
            Some(keep_alive) if self.life.state.is_synchronized() && self.life.state != State::TimeWait => {
                let wait = if self.life.keep_alives > 0 { keep_alive.interval } else { keep_alive.idle };
                self.timers.set(Timer::KeepAlive, now + wait);
            }
            _ => self.timers.stop(Timer::KeepAlive),
        }
    }

    fn on_keep_alive(&mut self, now: Instant) {
        let Some(keep_alive) = self.config.socket.keep_alive else { return };
        let quiet_until = self.accounts.last.received + keep_alive.idle;
        if now < quiet_until {
            self.life.keep_alives = 0;
            self.timers.set(Timer::KeepAlive, quiet_until);
            return;
        }
        if self.sender.una == self.sender.nxt && !self.timers.is_running(Timer::Persist) {
            if self.life.keep_alives >= keep_alive.probes {
                self.abort(now, CloseReason::KeepAlive);
                return;
            }
            self.life.keep_alives += 1;
            self.life.keep_alive_due = true;
        }
        // Data in flight and window probes are watched by the user timeout.
        self.timers.set(Timer::KeepAlive, now + keep_alive.interval);
    }
}
