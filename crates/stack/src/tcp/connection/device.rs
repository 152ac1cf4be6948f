//! What waits in the device: how much of it may, and what its reports tell.

use super::super::congestion::CongestionControl as _;
use super::super::pacing::{self, PathRate};
use super::super::spare;
use super::super::timers::Timer;
use super::Connection;
use alloc::collections::VecDeque;
use core::time::Duration;
use linerate_transport::Pacing;
use linerate_wire::units::Instant;

/// How much longer than a timeout a device may keep packets without reporting any: after that, a report was lost. Long
/// enough for a super-segment at 20 kbit/s, and for a pause of the link.
const PATIENCE: Duration = Duration::from_secs(30);
/// As much may always wait in the device: a super-segment that it sends, and one that follows.
const LEAST: u64 = 128 << 10;

/// A packet that was handed to the device and has not left it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub(super) tag: u32,
    pub(super) start: u64,
    pub(super) end: u64,
    /// Number of the transmission on the scoreboard.
    pub(super) serial: u64,
    pub(super) retransmission: bool,
    /// The device has reported it.
    pub(super) reported: bool,
}

/// What waits in the device.
#[derive(Debug)]
pub(super) struct InDevice {
    packets: VecDeque<Packet>,
    /// Bytes of these packets.
    bytes: u64,
    /// Most bytes that had left the device and were in the network, of late: see [`super::sender::Sender::peak`].
    pub(super) carried: (u64, u64),
    pub(super) next_tag: u32,
    pub(super) is_full: bool,
    /// The retransmission timer runs for the device, which has not reported anything since it was set.
    pub(super) is_watched: bool,
}

impl InDevice {
    /// Nothing waits.
    pub(super) fn new() -> InDevice {
        InDevice {
            packets: VecDeque::new(),
            bytes: 0,
            carried: (0, 0),
            next_tag: 1,
            is_full: false,
            is_watched: false,
        }
    }

    /// A packet was handed to the device, which will report when it has sent it; returns the tag of the report.
    pub(super) fn enter(&mut self, mut packet: Packet) -> u32 {
        packet.tag = self.next_tag;
        self.next_tag = self.next_tag.checked_add(1).unwrap_or(1);
        self.bytes += packet.end - packet.start;
        self.packets.push_back(packet);
        packet.tag
    }

    /// Whether the packet with this tag is the first that waits.
    fn is_first(&self, tag: u32) -> bool {
        self.packets.front().is_some_and(|first| first.tag == tag)
    }

    /// Notes the report with this tag; false where no packet has it (any more).
    fn report(&mut self, tag: u32) -> bool {
        let Some(first) = self.packets.front() else { return false };
        // Tags follow one another, but for the zero that is left out when they wrap.
        let near = (tag.wrapping_sub(first.tag) as usize).min(self.packets.len() - 1);
        let at = [near, near.saturating_sub(1)].into_iter().find(|&at| self.packets[at].tag == tag);
        if let Some(at) = at {
            self.packets[at].reported = true;
        }
        at.is_some()
    }

    /// Takes the first packet out if it is one that `leaves`.
    fn leave(&mut self, leaves: impl FnOnce(&Packet) -> bool) -> Option<Packet> {
        let packet = *self.packets.front().filter(|packet| leaves(packet))?;
        self.packets.pop_front();
        self.bytes -= packet.end - packet.start;
        Some(packet)
    }

    /// `carried` bytes are in the network and not in the device, between `una` and `nxt`.
    fn note_carried(&mut self, carried: u64, una: u64, nxt: u64) {
        if carried >= self.carried.0 || una >= self.carried.1 {
            self.carried = (carried, nxt);
        }
    }

    /// Whether a packet with some of these positions waits: it is not to be sent again.
    pub(super) fn contains(&self, start: u64, end: u64) -> bool {
        self.packets.iter().any(|packet| packet.start < end && start < packet.end)
    }

    /// Everything is given up.
    pub(super) fn clear(&mut self) {
        spare::empty(&mut self.packets);
        self.bytes = 0;
    }

    /// Memory for packets that another has left, where there is none.
    pub(super) fn lend(&mut self, packets: VecDeque<Packet>) {
        spare::lend(&mut self.packets, packets);
    }

    /// What is left of that; this is done with.
    pub(super) fn take_memory(&mut self) -> VecDeque<Packet> {
        spare::left_of(&mut self.packets)
    }

    /// Whether anything waits in it.
    pub(super) fn has_packets(&self) -> bool {
        !self.packets.is_empty()
    }

    /// Whether nothing waits, in it or for it.
    pub(super) fn is_quiet(&self) -> bool {
        self.packets.is_empty() && !self.is_full
    }

    /// The same after a pause, by what outlasted it.
    pub(super) fn after(next_tag: u32, carried: u64, una: u64) -> InDevice {
        InDevice { next_tag, carried: (carried, una), ..InDevice::new() }
    }
}

impl Connection {
    /// Watches over the device while nothing that has left is outstanding: a report that never comes must not leave the
    /// connection without a timer.
    pub(super) fn watch_device(&mut self, now: Instant) {
        self.device.is_watched = true;
        self.timers.set(Timer::Retransmit, self.sender.rtt.timeout_from(now) + PATIENCE);
    }

    /// The device has sent the packet with this completion tag. Reports come in any order; a packet counts as gone once those
    /// before it have gone too. A tag that is not known (any more) changes nothing. Where the report lets the connection go
    /// on, [`Connection::limited_by`] is no longer the device afterwards.
    pub fn handle_transmitted(&mut self, now: Instant, completion: u32) {
        if self.take_report(now, completion) {
            self.await_loss_probe(now);
        }
    }

    /// As [`Connection::handle_transmitted`], but for what is done once for all reports that come together: true where the
    /// caller has to call [`Connection::reports_taken`] after the last of them.
    pub(crate) fn take_report(&mut self, now: Instant, completion: u32) -> bool {
        self.close_open(now);
        let mut is_first = self.device.is_first(completion);
        if !is_first && !self.device.report(completion) {
            return false;
        }
        let mut has_left = false;
        while let Some(packet) = self.leave_device(|packet| is_first || packet.reported) {
            is_first = false;
            has_left |= self.note_departure(now, packet);
        }
        self.note_report(now);
        has_left
    }

    /// Packets have left.
    pub(crate) fn reports_taken(&mut self, now: Instant) {
        self.await_loss_probe(now);
    }

    /// What the peer acknowledges has left the device, whether that was reported or not.
    pub(super) fn leave_device_until(&mut self, ack: u64) {
        while self.leave_device(|packet| packet.end <= ack).is_some() {}
    }

    /// The device has reported nothing for so long that what waits in it is taken to have left.
    pub(super) fn give_device_up(&mut self, now: Instant) {
        while let Some(packet) = self.leave_device(|_| true) {
            self.left(now, packet);
        }
    }

    fn leave_device(&mut self, leaves: impl FnOnce(&Packet) -> bool) -> Option<Packet> {
        let packet = self.device.leave(leaves)?;
        let carried = self.pipe().saturating_sub(self.device.bytes);
        self.device.note_carried(carried, self.sender.una, self.sender.nxt);
        Some(packet)
    }

    /// Whether as much waits in the device as may: two super-segments, or what the path carries in about a millisecond if
    /// that is more (as TCP Small Queues of Linux). More would only delay other connections. The rate is that of what has
    /// left: the window may be larger, because what waits in the device fills it too.
    pub(super) fn fills_device(&self) -> bool {
        if self.device.bytes < LEAST {
            return false;
        }
        let path = PathRate {
            window: self.device.carried.0,
            smoothed_rtt: self.sender.rtt.smoothed(),
            slow_start: self.sender.congestion.is_in_slow_start(),
        };
        let rate = pacing::rate(Pacing::Auto, &path).unwrap_or(0);
        self.device.bytes >= pacing::piece(rate, self.mss()).max(LEAST)
    }

    /// Whether most of what is unacknowledged waits in the device.
    pub(super) fn waits_in_device(&self) -> bool {
        self.device.bytes > 0 && self.device.bytes * 2 >= self.pipe()
    }
}
