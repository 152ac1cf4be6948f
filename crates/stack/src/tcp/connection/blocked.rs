//! What stands in the way of sending. The plan that says what to send next says it too, where nothing is to be sent: it is made
//! when the connection is polled, which follows whatever changes. Between the change and the poll the cause is open. Only where
//! time passes meanwhile, because the connection waits for its turn, or where somebody asks, is a plan made to find it.

use super::super::shortcuts_are_off;
use super::super::timers::Timer;
use super::Connection;
use linerate_transport::{LimitCause, LimitTimes};
use linerate_wire::units::Instant;

/// What stands in the way of sending.
pub(super) type Blocked = LimitCause;

/// It is open what limits: something changed, and no plan was made since.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Open {
    since: Instant,
    /// What it is if nothing stands in the way: the processor, or the device where the connection's turn was cut short.
    otherwise: LimitCause,
}

impl Connection {
    /// Something changed that sending depends on: what limits is open. If nothing stands in its way any more, it is the
    /// processor's turn since now.
    pub(super) fn note_work(&mut self, now: Instant) {
        self.accounts.limits.busy.set(now, self.life.reason.is_none() && self.sender.queue.len() > 0);
        let Some(cause) = self.accounts.limits.cause() else { return };
        if cause == LimitCause::Application && self.has_nothing_to_send() {
            // Who only receives, stays so.
            return;
        }
        // Whoever waits for its turn, or for room in the queue to the device, is judged anew when it gets it.
        if cause != LimitCause::Processor && !self.device.is_full && self.accounts.open.is_none() {
            self.accounts.open = Some(Open { since: now, otherwise: LimitCause::Processor });
        }
    }

    /// The connection's turn is over though it may have more to send, and it gets the next one when the device, or the
    /// queue to it, has room: that is what limits, if nothing else does.
    pub fn handle_link_full(&mut self, now: Instant) {
        self.close_open(now);
        if self.accounts.open.is_some() || self.accounts.limits.cause() == Some(LimitCause::Processor) {
            self.accounts.open = Some(Open { since: now, otherwise: LimitCause::Device });
        }
    }

    /// Something is about to change. Where time has passed since the last change and no plan was made, what limited it since
    /// is decided now.
    #[inline]
    pub(super) fn close_open(&mut self, now: Instant) {
        if self.accounts.open.is_some_and(|open| open.since != now) {
            self.judge();
        }
    }

    /// Decides what limits, if that is open.
    pub(super) fn judge(&mut self) {
        if let Some(Open { since, otherwise }) = self.accounts.open.take() {
            match self.blocked_by(since) {
                Some(cause) => self.blocked(since, cause),
                None => {
                    self.unblocked(since, otherwise);
                    self.device.is_full = otherwise == LimitCause::Device;
                }
            }
        }
    }

    /// A plan has told that this prevents sending from now on.
    pub(super) fn blocked(&mut self, now: Instant, cause: Blocked) {
        let blamed = self.blame(cause);
        self.accounts.behind = Some(cause).filter(|&cause| cause != blamed);
        self.accounts.open = None;
        self.device.is_full = false;
        self.accounts.limits.set(now, blamed);
    }

    /// A plan has told that nothing prevents sending from now on, or there is nothing to plan.
    pub(super) fn unblocked(&mut self, now: Instant, cause: LimitCause) {
        (self.accounts.open, self.accounts.behind) = (None, None);
        self.accounts.limits.set(now, cause);
    }

    /// The device has reported something, which only matters to who waited for it.
    pub(super) fn note_report(&mut self, now: Instant) {
        if !self.waits_for_device() {
            return;
        }
        match self.accounts.behind {
            // It was blamed for what it holds, which a report does not change otherwise.
            Some(_) if self.waits_in_device() => {}
            Some(cause) => self.blocked(now, cause),
            None => {
                self.note_work(now);
                self.judge();
            }
        }
    }

    /// What keeps the connection from sending faster now; `None` before it is established and after its end.
    pub fn limited_by(&self) -> Option<LimitCause> {
        match self.accounts.open {
            Some(Open { since, otherwise }) => {
                Some(self.blocked_by(since).map_or(otherwise, |cause| self.blame(cause)))
            }
            None => self.accounts.limits.cause(),
        }
    }

    /// Whether it is known that the connection waits for the device.
    pub fn waits_for_device(&self) -> bool {
        self.accounts.open.is_none() && self.accounts.limits.cause() == Some(LimitCause::Device)
    }

    /// Where the time up to `now` went.
    pub(super) fn limit_times(&self, now: Instant) -> LimitTimes {
        match self.accounts.open.zip(self.limited_by()) {
            Some((open, cause)) => {
                let mut limits = self.accounts.limits.clone();
                limits.set(open.since, cause);
                limits.times(now)
            }
            None => self.accounts.limits.times(now),
        }
    }

    /// Whether everything that the application gave is acknowledged, and it gave no end.
    fn has_nothing_to_send(&self) -> bool {
        self.sender.queue.len() == 0
            && self.sender.una == self.sender.nxt
            && !self.sender.fin_queued
            && !self.sender.write_refused
    }

    /// Whether a plan would find, as the last one did, that the application gives nothing to send: so it is with who only
    /// receives.
    pub(super) fn is_known_to_be_idle(&self) -> bool {
        self.accounts.limits.cause() == Some(LimitCause::Application)
            && self.accounts.open.is_none()
            && self.accounts.behind.is_none()
            && self.has_nothing_to_send()
            && !self.sender.probe_due
            && !self.timers.is_running(Timer::Persist)
            && self.sender.stalled_since.is_none()
            && !self.device.has_packets()
            && self.loss.loss_probe.is_quiet()
            && self.loss.has_ended()
            && !shortcuts_are_off()
    }

    /// What prevents data from being sent now; `None`: nothing does.
    pub(super) fn blocked_by(&self, now: Instant) -> Option<Blocked> {
        if !self.life.state.can_transmit() {
            return Some(Blocked::Application);
        }
        let payload = self.payload_room();
        let plan = match self.plan_retransmission(payload, payload) {
            Some(plan) => plan,
            None => self.size_new(payload, payload),
        };
        match plan {
            Ok(plan) => self.paced_until(now, &plan).map(|_| self.pacing_cause()),
            Err(cause) => Some(cause),
        }
    }

    /// Whatever stands in the way of more is not the cause where the device holds most of what is unacknowledged: more
    /// would make the device's queue longer and nothing faster.
    pub(super) fn blame(&self, cause: Blocked) -> Blocked {
        if cause != Blocked::Pacing && self.waits_in_device() { Blocked::Device } else { cause }
    }

    /// Nothing is ready to be sent. An application that was refused waits for the send buffer; otherwise the buffer, or
    /// the file that is being read, waits for the application.
    pub(super) fn idle_cause(&self) -> Blocked {
        let is_reading = self.sender.queue.is_reading() || self.next_file_read().is_some();
        if self.sender.write_refused && !is_reading { Blocked::SendBuffer } else { Blocked::Application }
    }

    /// Nagle's rule holds back what is queued. Where the buffer is full, a larger one would have filled the segment.
    pub(super) fn held_cause(&self) -> Blocked {
        if self.sender.write_refused { Blocked::SendBuffer } else { Blocked::Nagle }
    }
}
