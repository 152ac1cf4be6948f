//! What waits in the device: how much of it may, and what its reports tell.

use super::super::congestion::CongestionControl as _;
use super::super::pacing::{self, PathRate};
use super::super::timers::Timer;
use super::{Connection, InDevice};
use core::time::Duration;
use linerate_transport::Pacing;
use linerate_wire::units::Instant;

/// How much longer than a timeout a device may keep packets without reporting any: after that, a report was lost. Long
/// enough for a super-segment at 20 kbit/s, and for a pause of the link.
const PATIENCE: Duration = Duration::from_secs(30);
/// As much may always wait in the device: a super-segment that it sends, and one that follows.
const LEAST: u64 = 128 << 10;

impl Connection {
    /// A packet was handed to the device, which will report when it has sent it.
    pub(super) fn enter_device(&mut self, packet: InDevice) {
        self.device_bytes += packet.end - packet.start;
        self.device.push_back(packet);
    }

    /// Watches over the device while nothing that has left is outstanding: a report that never comes must not leave the
    /// connection without a timer.
    pub(super) fn watch_device(&mut self, now: Instant) {
        self.watches_device = true;
        self.timers.set(Timer::Retransmit, now + self.rtt.timeout() + PATIENCE);
    }

    /// The device has sent the packet with this completion tag. Reports come in any order; a packet counts as gone once those
    /// before it have gone too. A tag that is not known (any more) changes nothing. Where the report lets the connection go
    /// on, [`Connection::limited_by`] is no longer the device afterwards.
    pub fn handle_transmitted(&mut self, now: Instant, completion: u32) {
        self.close_open(now);
        let Some(first) = self.device.front() else { return };
        // Tags follow one another, but for the zero that is left out when they wrap.
        let near = (completion.wrapping_sub(first.tag) as usize).min(self.device.len() - 1);
        let candidates = [near, near.saturating_sub(1)];
        let Some(at) = candidates.into_iter().find(|&at| self.device[at].tag == completion) else { return };
        self.device[at].reported = true;
        while let Some(&packet) = self.device.front()
            && packet.reported
        {
            self.leave_device(&packet);
            self.left(now, packet);
        }
        self.note_report(now);
    }

    /// What the peer acknowledges has left the device, whether that was reported or not.
    pub(super) fn leave_device_until(&mut self, ack: u64) {
        while let Some(&packet) = self.device.front()
            && packet.end <= ack
        {
            self.leave_device(&packet);
        }
    }

    /// The device has reported nothing for so long that what waits in it is taken to have left.
    pub(super) fn give_device_up(&mut self, now: Instant) {
        while let Some(&packet) = self.device.front() {
            self.leave_device(&packet);
            self.left(now, packet);
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
}
