//! Doing on transmit what the device does not: layer-4 checksums, and TCP segmentation.

use crate::checksum;
use crate::device::{Capabilities, DeviceError};
use crate::layers::{self, Version};
use crate::meta::{Segmentation, TxToken};
use crate::queue::QueuePair;
use crate::split::{Made, Splitter};
use crate::tx::{TxPacket, TxQueue};
use alloc::collections::VecDeque;
use linerate_wire::units::Instant;

linerate_wire::figures! {
    /// What has been counted on transmit.
    pub struct TxStats {
        /// Packets that the device took (each segment of a software split is one).
        packets,
        /// Bytes of these packets, Ethernet headers included.
        bytes [bytes],
        /// Checksums filled in by software.
        software_checksums,
        /// Super-segments split by software.
        software_splits,
        /// Segments that came out of super-segments split by software.
        software_segments,
        /// Packets dropped because what they ask for lies outside of them or contradicts their headers.
        malformed [drop],
        /// How often the device's ring was full while packets waited.
        ring_full,
    }
}

/// What has to be done to a packet before the device may have it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Task {
    /// Nothing, and it is a super-segment.
    PassSuper,
    /// Nothing.
    Pass,
    Sum,
    Split,
}

#[inline]
fn task(packet: &TxPacket, enabled: Capabilities) -> Task {
    let whole = match packet.meta.segmentation {
        Segmentation::None => None,
        Segmentation::Tcp4(_) => Some(enabled.tso4),
        Segmentation::Tcp6(_) => Some(enabled.tso6),
    };
    match (whole, packet.meta.checksum) {
        (Some(true), Some(_)) => Task::PassSuper,
        // A super-segment that leaves no checksum to anybody is refused by the splitter.
        (Some(_), _) => Task::Split,
        (None, None) => Task::Pass,
        (None, Some(_)) if enabled.tx_checksum4 && enabled.tx_checksum6 => Task::Pass,
        (None, Some(_)) => match layers::ip_header(packet.header()) {
            Some((Version::V4, _)) if enabled.tx_checksum4 => Task::Pass,
            Some((Version::V6, _)) if enabled.tx_checksum6 => Task::Pass,
            _ => Task::Sum,
        },
    }
}

/// What [`task`] and the splitter look at.
fn on_transmit(able: Capabilities) -> [bool; 4] {
    [able.tx_checksum4, able.tx_checksum6, able.tso4, able.tso6]
}

/// Between the stack's transmit queue and the device.
#[derive(Debug)]
pub(crate) struct Fallback {
    splitter: Splitter,
    /// Packets on their way to the device behind a split, in order; never super-segments.
    out: TxQueue,
    /// Tokens of packets that were dropped: their owner waits for them.
    dropped: VecDeque<TxToken>,
    dropped_limit: usize,
    /// What the device did when last looked at.
    enabled: Capabilities,
    /// Bytes count as soon as they are in `out`; see [`Fallback::stats`].
    counted: TxStats,
}

impl Fallback {
    /// With room for `room` segments (at least one) between splitting and the device.
    pub fn new(room: usize) -> Self {
        let room = room.max(1);
        Fallback {
            splitter: Splitter::new(),
            out: TxQueue::with_capacity(room),
            dropped: VecDeque::with_capacity(room),
            dropped_limit: room,
            enabled: Capabilities::NONE,
            counted: TxStats::default(),
        }
    }

    /// What was counted. What waits for the device is looked over here, not with each packet.
    pub fn stats(&self) -> TxStats {
        TxStats { bytes: self.counted.bytes - total(&self.out), ..self.counted }
    }

    /// Whether packets were taken over that the device has not got yet.
    pub fn is_pending(&self) -> bool {
        self.splitter.is_busy() || !self.out.is_empty()
    }

    /// Whether [`Fallback::poll_dropped`] has a token.
    pub fn has_dropped(&self) -> bool {
        !self.dropped.is_empty()
    }

    /// The token of a dropped packet.
    #[inline]
    pub fn poll_dropped(&mut self) -> Option<TxToken> {
        self.dropped.pop_front()
    }

    /// Adapts what is under way to what the device does from now on.
    pub fn set_enabled(&mut self, enabled: Capabilities) {
        self.enabled = enabled;
        for packet in self.out.iter_mut() {
            if task(packet, enabled) == Task::Sum {
                // Cannot fail: only packets whose request is in their headers come here.
                checksum::fill_packet(packet);
                self.counted.software_checksums += 1;
            }
        }
    }

    /// Takes packets from the front of `queue` until it is empty or the device's ring is full; returns how many.
    pub fn transmit<D: QueuePair>(
        &mut self,
        device: &mut D,
        now: Instant,
        queue: &mut TxQueue,
    ) -> Result<usize, DeviceError> {
        let enabled = device.enabled();
        if on_transmit(enabled) != on_transmit(self.enabled) {
            // The owner of the device's control may be another core.
            self.set_enabled(enabled);
        }
        let before = queue.len();
        loop {
            if !self.is_pending() {
                let Prepared { ready, supers, bytes } = self.prepare(queue, enabled);
                // The usual case, and the only one for super-segments that the device splits: no packet is moved.
                if (ready == queue.len() || supers) && ready > 0 {
                    let counted = &mut self.counted;
                    let sent = queue.with_first(ready, |part| {
                        let sent = hand_over(counted, device, now, part);
                        counted.bytes += bytes - total(part);
                        sent
                    })?;
                    if sent < ready {
                        break;
                    }
                }
                if queue.is_empty() {
                    break;
                }
            }
            if !self.stage(queue, enabled) {
                break;
            }
            let waiting = self.out.len();
            if hand_over(&mut self.counted, device, now, &mut self.out)? < waiting {
                break;
            }
        }
        Ok(before - queue.len())
    }

    /// Sums at the front of `queue` what the device does not, up to the first packet that cannot go as it is.
    #[inline]
    fn prepare(&mut self, queue: &mut TxQueue, enabled: Capabilities) -> Prepared {
        let mut prepared = Prepared { ready: 0, supers: false, bytes: 0 };
        while let Some(packet) = queue.at_mut(prepared.ready) {
            match task(packet, enabled) {
                Task::Pass => {}
                Task::PassSuper => prepared.supers = true,
                Task::Sum if checksum::fill_packet(packet) => self.counted.software_checksums += 1,
                Task::Sum | Task::Split => break,
            }
            prepared.ready += 1;
            prepared.bytes += packet.len() as u64;
        }
        prepared
    }

    /// Moves packets from `queue` to `out`, splitting those that need it, until `out` is full or a super-segment for
    /// the device comes. False when nothing can go on before the owner has taken tokens of dropped packets.
    fn stage(&mut self, queue: &mut TxQueue, enabled: Capabilities) -> bool {
        loop {
            if self.splitter.is_busy() {
                let Made { segments, summed, bytes } = self.splitter.run(&mut self.out, enabled);
                self.counted.software_segments += segments;
                self.counted.software_checksums += summed;
                self.counted.bytes += bytes;
            }
            let Some(front) = queue.front_mut() else { return true };
            if self.out.room() == 0 || self.splitter.is_busy() {
                return true;
            }
            let ready = match task(front, enabled) {
                Task::PassSuper => return true,
                Task::Split if self.splitter.begin(front).is_ok() => {
                    self.counted.software_splits += 1;
                    queue.pop();
                    continue;
                }
                Task::Split => false,
                Task::Pass => true,
                Task::Sum => {
                    let filled = checksum::fill_packet(front);
                    self.counted.software_checksums += u64::from(filled);
                    filled
                }
            };
            if ready && let Some(slot) = self.out.vacant() {
                self.counted.bytes += front.len() as u64;
                slot.swap(front);
                self.out.commit();
            } else if !self.drop_packet(front.meta.token) {
                return !self.out.is_empty();
            }
            queue.pop();
        }
    }

    /// Counts a packet that cannot be sent and keeps its token; false when there is no room for it.
    fn drop_packet(&mut self, token: TxToken) -> bool {
        if token != TxToken(0) {
            if self.dropped.len() >= self.dropped_limit {
                return false;
            }
            self.dropped.push_back(token);
        }
        self.counted.malformed += 1;
        true
    }
}

/// What lies at the front of a queue.
struct Prepared {
    /// Packets that can go as they are.
    ready: usize,
    /// Whether super-segments are among them.
    supers: bool,
    /// Their bytes.
    bytes: u64,
}

/// Bytes of all packets.
#[inline]
fn total(queue: &TxQueue) -> u64 {
    if queue.is_empty() {
        return 0;
    }
    queue.iter().map(|packet| packet.len() as u64).sum()
}

/// One doorbell: gives `queue` to the device and counts the packets that it took.
fn hand_over<D: QueuePair>(
    stats: &mut TxStats,
    device: &mut D,
    now: Instant,
    queue: &mut TxQueue,
) -> Result<usize, DeviceError> {
    if queue.is_empty() {
        return Ok(0);
    }
    let len = queue.len();
    let result = device.transmit(now, queue);
    let sent = len - queue.len();
    stats.packets += sent as u64;
    stats.ring_full += u64::from(result.is_ok() && !queue.is_empty());
    result.map(|_| sent)
}

#[cfg(test)]
mod tests;
