//! What waits in the device: how much of it may, and what its reports tell.

use super::super::pacing::{self, PathRate};
use super::{Connection, InDevice};
use linerate_transport::{LimitCause, Pacing};
use linerate_wire::units::Instant;

/// As much may always wait in the device: a super-segment that it sends, and one that follows.
const LEAST: u64 = 128 << 10;

impl Connection {
    /// A packet was handed to the device, which will report when it has sent it.
    pub(super) fn enter_device(&mut self, packet: InDevice) {
        self.device_bytes += packet.end - packet.start;
        self.device.push_back(packet);
    }

    /// The device has sent the packet with this completion tag (and all before it). Where that lets the connection go on,
    /// [`Connection::limited_by`] is no longer the device afterwards.
    pub fn handle_transmitted(&mut self, now: Instant, completion: u32) {
        while let Some(&packet) = self.device.front()
            && completion.wrapping_sub(packet.tag) < u32::MAX / 2
        {
            self.leave_device(&packet);
            self.left(now, packet);
        }
        // Only who waited for the device can go on by this.
        if self.limits.cause() == Some(LimitCause::Device) {
            self.note_work(now);
        }
    }

    /// What the peer acknowledges has left the device, whether that was reported or not.
    pub(super) fn leave_device_until(&mut self, ack: u64) {
        while let Some(&packet) = self.device.front()
            && packet.end <= ack
        {
            self.leave_device(&packet);
        }
    }

    fn leave_device(&mut self, packet: &InDevice) {
        self.device.pop_front();
        self.device_bytes -= packet.end - packet.start;
        let carried = self.pipe().saturating_sub(self.device_bytes);
        if carried >= self.carried.0 || self.una >= self.carried.1 {
            self.carried = (carried, self.nxt);
        }
    }

    /// Whether as much waits in the device as may: two super-segments, or what the path carries in about a millisecond if
    /// that is more (as TCP Small Queues of Linux). More would only delay other connections. The rate is that of what has
    /// left: the window may be larger, because what waits in the device fills it too.
    pub(super) fn fills_device(&self) -> bool {
        if self.device_bytes < LEAST {
            return false;
        }
        let path = PathRate {
            window: self.carried.0,
            smoothed_rtt: self.rtt.smoothed(),
            slow_start: self.congestion.is_in_slow_start(),
        };
        let rate = pacing::rate(Pacing::Auto, &path).unwrap_or(0);
        self.device_bytes >= pacing::piece(rate, self.mss()).max(LEAST)
    }

    /// Whether a packet with some of these positions waits in the device: it is not to be sent again.
    pub(super) fn is_in_device(&self, start: u64, end: u64) -> bool {
        self.device.iter().any(|packet| packet.start < end && start < packet.end)
    }

    /// Whether most of what is unacknowledged waits in the device.
    pub(super) fn waits_in_device(&self) -> bool {
        self.device_bytes > 0 && self.device_bytes * 2 >= self.pipe()
    }

    /// The connection's turn is over though it may have more to send, and it gets the next one when the device, or the
    /// queue to it, has room: that is what limits, if nothing else does.
    pub fn handle_link_full(&mut self, now: Instant) {
        if self.limits.cause() == Some(LimitCause::Processor) {
            let blocked = self.blocked_by(now);
            self.device_full = blocked.is_none();
            self.limits.set(now, blocked.unwrap_or(LimitCause::Device));
        }
    }
}
