//! Sending at a rate, where the socket asks for it.

use super::super::congestion::CongestionControl as _;
use super::super::pacing::{self, PathRate};
use super::super::timers::Timer;
use super::Connection;
use super::blocked::Blocked;
use super::output::Plan;
use linerate_transport::Pacing;
use linerate_wire::units::Instant;

impl Connection {
    /// Whether sends are paced.
    pub(super) fn is_paced(&self) -> bool {
        self.config.socket.pacing != Pacing::Off
    }

    fn pacing_rate(&self) -> Option<u64> {
        if !self.is_paced() {
            return None;
        }
        let path = PathRate {
            window: self.sender.congestion.window(),
            smoothed_rtt: self.sender.rtt.smoothed(),
            slow_start: self.sender.congestion.is_in_slow_start(),
        };
        pacing::rate(self.config.socket.pacing, &path)
    }

    /// Most payload bytes of a packet in segments of `payload` bytes, where `most` would be allowed.
    pub(super) fn paced_size(&self, most: u64, payload: u64) -> u64 {
        self.pacing_rate().map_or(most, |rate| most.min(pacing::piece(rate, payload)))
    }

    /// Lets the plan pass if it is its time; arms the timer otherwise.
    pub(super) fn pace(&mut self, now: Instant, plan: Plan) -> Result<Plan, Blocked> {
        let Some(at) = self.paced_until(now, &plan) else { return Ok(plan) };
        self.timers.set(Timer::Pace, at);
        Err(self.pacing_cause())
    }

    /// Until when the plan has to wait; `None`: it is its time.
    pub(super) fn paced_until(&self, now: Instant, plan: &Plan) -> Option<Instant> {
        if plan.len == 0 || !self.is_paced() { None } else { self.sender.pacer.waits_until(now) }
    }

    /// What limits while a plan waits for its time. An automatic rate only spreads the congestion window.
    pub(super) fn pacing_cause(&self) -> Blocked {
        if self.config.socket.pacing == Pacing::Auto { Blocked::Congestion } else { Blocked::Pacing }
    }

    /// `bytes` of payload left.
    pub(super) fn note_paced(&mut self, now: Instant, bytes: u64) {
        if let Some(rate) = self.pacing_rate() {
            self.sender.pacer.on_sent(now, bytes, rate);
        }
    }
}
