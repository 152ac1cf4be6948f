//! Sending at a rate, where the socket asks for it.

use super::super::pacing::{self, PathRate};
use super::super::timers::Timer;
use super::Connection;
use super::output::{Blocked, Plan};
use linerate_transport::{LimitCause, Pacing};
use linerate_wire::units::Instant;

impl Connection {
    /// Whether sends are paced.
    pub(super) fn is_paced(&self) -> bool {
        self.config.socket.pacing != Pacing::Off
    }

    fn pacing_rate(&self) -> Option<u64> {
        let path = PathRate {
            window: self.congestion.window(),
            smoothed_rtt: self.rtt.smoothed(),
            slow_start: self.congestion.is_in_slow_start(),
        };
        pacing::rate(self.config.socket.pacing, &path)
    }

    /// Most payload bytes of a packet in segments of `payload` bytes, where `most` would be allowed.
    pub(super) fn paced_size(&self, most: u64, payload: u64) -> u64 {
        self.pacing_rate().map_or(most, |rate| most.min(pacing::piece(rate, payload)))
    }

    /// Lets the plan pass if it is its time; arms the timer otherwise.
    pub(super) fn pace(&mut self, now: Instant, plan: Plan) -> Result<Plan, Blocked> {
        if plan.len == 0 || !self.is_paced() {
            return Ok(plan);
        }
        let Some(at) = self.pacer.waits_until(now) else { return Ok(plan) };
        self.timers.set(Timer::Pace, at);
        // An automatic rate stands for the congestion window; a fixed one is the application's choice.
        let is_own = self.config.socket.pacing == Pacing::Auto;
        Err(if is_own { LimitCause::Congestion } else { LimitCause::Application })
    }

    /// `bytes` of payload left.
    pub(super) fn note_paced(&mut self, now: Instant, bytes: u64) {
        if let Some(rate) = self.pacing_rate() {
            self.pacer.on_sent(now, bytes, rate);
        }
    }
}
