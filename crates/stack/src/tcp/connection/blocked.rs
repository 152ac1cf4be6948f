//! What stands in the way of sending: decided anew whenever something changes, so that every moment has its cause.

use super::Connection;
use linerate_transport::LimitCause;
use linerate_wire::units::Instant;

/// What stands in the way of sending.
pub(super) type Blocked = LimitCause;

impl Connection {
    /// Something changed that sending depends on. If nothing stands in its way any more, it is the processor's turn.
    pub(super) fn note_work(&mut self, now: Instant) {
        self.limits.busy.set(now, self.reason.is_none() && self.queue.len() > 0);
        let Some(cause) = self.limits.cause() else { return };
        if cause == LimitCause::Application && self.has_nothing_to_send() {
            // Who only receives, stays so.
            return;
        }
        // Whoever waits for its turn, or for room in the queue to the device, is judged anew when it gets it.
        if cause != LimitCause::Processor && !self.device_full {
            self.limits.set(now, self.blocked_by(now).unwrap_or(LimitCause::Processor));
        }
    }

    /// Whether everything that the application gave is acknowledged, and it gave no end.
    fn has_nothing_to_send(&self) -> bool {
        self.queue.len() == 0 && self.una == self.nxt && !self.fin_queued && !self.write_refused
    }

    /// What prevents data from being sent now; `None`: nothing does.
    pub(super) fn blocked_by(&self, now: Instant) -> Option<Blocked> {
        if !self.state.can_transmit() {
            return Some(Blocked::Application);
        }
        let payload = self.payload_room();
        let plan = match self.plan_retransmission(payload, payload) {
            Some(plan) => plan,
            None => self.size_new(payload, payload),
        };
        let cause = match plan {
            Ok(plan) => self.paced_until(now, &plan).map(|_| self.pacing_cause()),
            Err(cause) => Some(cause),
        };
        cause.map(|cause| self.blame(cause))
    }

    /// Whatever stands in the way of more is not the cause where the device holds most of what is unacknowledged: more
    /// would make the device's queue longer and nothing faster.
    pub(super) fn blame(&self, cause: Blocked) -> Blocked {
        if cause != Blocked::Pacing && self.waits_in_device() { Blocked::Device } else { cause }
    }

    /// Nothing is ready to be sent. An application that was refused waits for the send buffer; otherwise the buffer, or
    /// the file that is being read, waits for the application.
    pub(super) fn idle_cause(&self) -> Blocked {
        let is_reading = self.queue.is_reading() || self.next_file_read().is_some();
        if self.write_refused && !is_reading { Blocked::SendBuffer } else { Blocked::Application }
    }

    /// Nagle's rule holds back what is queued. Where the buffer is full, a larger one would have filled the segment.
    pub(super) fn held_cause(&self) -> Blocked {
        if self.write_refused { Blocked::SendBuffer } else { Blocked::Nagle }
    }
}
