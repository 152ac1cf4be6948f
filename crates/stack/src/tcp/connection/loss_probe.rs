//! Tail loss probes (RFC 8985 section 7): when the end of what was sent may be lost, one more segment asks for a report,
//! so that RACK finds the loss a round trip later instead of the timeout.

use super::super::congestion::CongestionControl as _;
use super::super::timers::Timer;
use super::Connection;
use super::output::Plan;
use super::recovery::News;
use super::recovery::Recovery;
use core::time::Duration;
use linerate_wire::units::{Instant, nanos};

/// How long peers delay an acknowledgement at most (TLP.max_ack_delay, section 7.2).
const MAX_ACK_DELAY: Duration = Duration::from_millis(200);

/// What a busy host may take to answer besides the round-trip time; probes that are not needed cost a segment each.
const HOST_DELAY: Duration = Duration::from_millis(2);

/// Time to a probe before the round-trip time is known (section 7.2).
const WITHOUT_RTT: Duration = Duration::from_secs(1);

/// A probe that was sent (TLP.end_seq, TLP.is_retrans).
#[derive(Clone, Copy, Debug)]
struct Sent {
    end: u64,
    is_retransmission: bool,
}

/// The state of probing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossProbe {
    is_due: bool,
    /// When something left last, or was acknowledged.
    since: Instant,
    sent: Option<Sent>,
}

impl LossProbe {
    /// Whether none is to be sent.
    pub fn is_quiet(&self) -> bool {
        !self.is_due
    }

    /// The same where nothing is in flight: none is due for that.
    pub fn at_rest(self) -> LossProbe {
        LossProbe { is_due: false, ..self }
    }

    /// Whether none waits for its answer.
    pub fn has_ended(&self) -> bool {
        self.sent.is_none()
    }

    /// A recovery finds out by itself.
    pub fn forget(&mut self) {
        self.is_due = false;
        self.sent = None;
    }
}

impl Connection {
    /// Something left, or was acknowledged: the wait for a probe begins anew (TLP_calc_PTO). The timer is moved only to an
    /// earlier time; when it fires too early, it is set again.
    pub(super) fn await_loss_probe(&mut self, now: Instant) {
        self.loss.loss_probe.since = now;
        if !self.may_probe() {
            return;
        }
        let at = self.loss_probe_at();
        if self.timers.at(Timer::LossProbe).is_none_or(|set| at < set) {
            self.timers.set(Timer::LossProbe, at);
        }
    }

    /// Section 7.2: with SACK, outside of recovery, without anything reported, one probe at a time.
    fn may_probe(&self) -> bool {
        self.handshake.sack
            && self.loss.recovery == Recovery::Open
            && self.sender.una < self.sender.left_end
            && self.loss.loss_probe.sent.is_none()
            && !self.loss.board.has_reports()
            && self.loss.board.next_lost().is_none()
            && self.life.state.can_transmit()
    }

    fn loss_probe_at(&self) -> Instant {
        let smoothed_ns = self.sender.rtt.smoothed_ns();
        let mut wait_ns = smoothed_ns
            .map_or(nanos(WITHOUT_RTT), |ns| ns.saturating_mul(2).saturating_add(nanos(HOST_DELAY)));
        if self.sender.nxt - self.sender.una <= self.mss() {
            wait_ns = wait_ns.saturating_add(nanos(MAX_ACK_DELAY));
        }
        let at = self.loss.loss_probe.since.after_nanos(wait_ns);
        self.timers.at(Timer::Retransmit).map_or(at, |timeout| at.min(timeout))
    }

    /// The timer fired.
    pub(super) fn on_loss_probe_timeout(&mut self, now: Instant) {
        if !self.may_probe() {
            return;
        }
        let at = self.loss_probe_at();
        if now < at {
            self.timers.set(Timer::LossProbe, at);
            return;
        }
        if self.device.has_packets() {
            // What waits in the device is the better probe; it starts the timer anew when it leaves.
            return;
        }
        self.loss.loss_probe.is_due = true;
        // Section 7.3: whether or not it can be sent, the timeout runs from here.
        self.timers.set(Timer::Retransmit, self.sender.rtt.timeout_from(now));
    }

    /// The probe that is due: new data if there is any, else the last segment again (TLP_send_probe).
    pub(super) fn plan_loss_probe(&mut self, payload: u64) -> Option<Plan> {
        if !self.loss.loss_probe.is_due {
            return None;
        }
        if !self.may_probe() {
            self.loss.loss_probe.is_due = false;
            return None;
        }
        let start = self.sender.nxt;
        let available = self.sender.queue.ready_end().min(self.sender.window.edge).saturating_sub(start);
        if available > 0 && !self.sender.fin_sent {
            let len = available.min(payload);
            return Some(Plan { start, len, fin: false, retransmission: false, is_loss_probe: true });
        }
        let plan = self.plan_last_segment(payload);
        if plan.is_none() {
            self.loss.loss_probe.is_due = false;
        }
        plan
    }

    /// The last segment that left, unless the window has shrunk to less, or it waits in the device again.
    fn plan_last_segment(&self, payload: u64) -> Option<Plan> {
        let (before, end) = self.loss.board.last_departure()?;
        let before = before.max(self.sender.una);
        let tail = match (end - before) % payload {
            0 => payload.min(end - before),
            rest => rest,
        };
        let data_end = self.sender.queue.end();
        let fin = self.sender.fin_sent && end > data_end;
        // A FIN alone cannot be reported (RFC 2018): the data before it goes with it.
        let start =
            if fin && tail == 1 { data_end.saturating_sub(payload).max(self.sender.una) } else { end - tail };
        if end.min(data_end) > self.sender.window.edge || self.device.contains(start, end) {
            return None;
        }
        let len = end.min(data_end).saturating_sub(start);
        Some(Plan { start, len, fin, retransmission: true, is_loss_probe: true })
    }

    /// A probe was sent, and everything up to `end` with it.
    pub(super) fn loss_probe_sent(&mut self, end: u64, is_retransmission: bool) {
        self.accounts.counters.tail_loss_probes += 1;
        self.accounts.tally().tail_loss_probes += 1;
        self.loss.loss_probe.is_due = false;
        self.loss.loss_probe.sent = Some(Sent { end, is_retransmission });
    }

    /// Whether the probe repaired a loss that nothing else told of: congestion control must hear of it (TLP_process_ack,
    /// section 7.4.2).
    pub(super) fn judge_loss_probe(&mut self, now: Instant, ack: u64, news: &News) {
        let Some(probe) = self.loss.loss_probe.sent else { return };
        if ack < probe.end {
            return;
        }
        let arrived_twice = news.duplicated.is_some_and(|(_, end)| end >= probe.end);
        let is_repeated = news.advance == 0 && news.arrivals.delivered == 0;
        if !probe.is_retransmission || arrived_twice {
            self.loss.loss_probe.sent = None;
        } else if ack > probe.end {
            self.loss.loss_probe.sent = None;
            self.accounts.counters.tail_losses_repaired += 1;
            let window = self.sender.congestion.window();
            self.sender.congestion.on_loss(now, window);
            self.sender.congestion.on_recovered(now, window);
        } else if is_repeated {
            // The probe came second, and the peer reports no duplicates.
            self.loss.loss_probe.sent = None;
        }
    }
}
