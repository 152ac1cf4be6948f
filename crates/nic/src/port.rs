//! A device with everything that it lacks done in software: what the owner of the loop works with.

use crate::device::{Capabilities, DeviceError, Filter, Interface, LinkState};
use crate::fallback::{Fallback, TxStats};
use crate::feature::{Feature, Place, Reason};
use crate::frame::{Frame, Plain, RxBatch};
use crate::gro::{Gro, GroConfig};
use crate::layers::{self, Layers};
use crate::meta::{ChecksumStatus, MacAddr, TxToken};
use crate::tx::TxQueue;
use crate::verify::{self, verify};
use linerate_wire::units::Instant;

/// A frame up to this length opens no flow: an acknowledgement over IPv6 with timestamps. Whoever only sends receives nothing
/// else, and need not look at each.
const SHORT: usize = 86;

/// Sizes of a port, fixed when it is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortConfig {
    /// Frames taken from the device at once.
    pub rx_batch: usize,
    /// Most frames that one call of [`Port::receive`] takes from the device, coalesced ones counted singly.
    pub rx_budget: usize,
    /// Segments of software splits that can wait for the device.
    pub tx_segments: usize,
    /// Bounds of receive coalescing in software.
    pub gro: GroConfig,
}

impl Default for PortConfig {
    /// Batches of 64, a budget of 256, 64 segments.
    fn default() -> Self {
        PortConfig { rx_batch: 64, rx_budget: 256, tx_segments: 64, gro: GroConfig::default() }
    }
}

linerate_wire::figures! {
    /// What has been counted on receive.
    pub struct RxStats {
        /// Frames from the device.
        frames,
        /// Bytes of frames from the device, Ethernet headers included.
        bytes [bytes],
        /// Frames whose checksums software found right.
        software_good,
        /// Frames whose checksums software found wrong.
        software_bad,
        /// Frames that the device called wrong.
        device_bad,
        /// Frames that stay unchecked: fragments, and protocols other than TCP, UDP and ICMP.
        unchecked,
        /// Segments that software joined to another.
        coalesced,
    }
}

/// All counters of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PortStats {
    /// Receive side.
    pub rx: RxStats,
    /// Transmit side.
    pub tx: TxStats,
}

/// A device and its offload layer.
///
/// Whatever packets ask for in their [`TxMeta`](crate::TxMeta) happens, in the device where it can and may, else here.
/// Every received frame has been verified by somebody: the stack only looks at [`ChecksumStatus`]. Frames that are
/// [`Bad`](ChecksumStatus::Bad) are delivered, for the stack to count; [`Unchecked`](ChecksumStatus::Unchecked) are
/// only those for which nobody can say (fragments, protocols without a known checksum, ARP).
///
/// Call order in one turn of the loop: [`Port::receive`], the stack, [`Port::transmit`], [`Port::poll_completion`] until
/// `None`. Everything is allocated when the port is made.
#[derive(Debug)]
pub struct Port<D> {
    device: D,
    /// What the user allows.
    allowed: Capabilities,
    /// What the self-test found wrong.
    distrusted: Capabilities,
    rx_batch: usize,
    rx_budget: usize,
    /// The last call of `receive` ended before the device was empty.
    rx_more: bool,
    gro: Gro,
    fallback: Fallback,
    rx: RxStats,
}

impl<D: Interface> Port<D> {
    /// Puts the offload layer on a device and switches on what the device is able to.
    pub fn new(device: D, config: PortConfig) -> Result<Self, DeviceError> {
        let mut port = Port {
            device,
            allowed: Capabilities::ALL,
            distrusted: Capabilities::NONE,
            rx_batch: config.rx_batch.max(1),
            rx_budget: config.rx_budget.max(1),
            rx_more: false,
            gro: Gro::new(config.gro),
            fallback: Fallback::new(config.tx_segments),
            rx: RxStats::default(),
        };
        port.negotiate()?;
        Ok(port)
    }

    /// The device's address.
    pub fn mac(&self) -> MacAddr {
        self.device.mac()
    }

    /// Largest IP packet in bytes.
    pub fn mtu(&self) -> usize {
        self.device.mtu()
    }

    /// The device below.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// The device below, for what is not in [`Device`](crate::Device). Capabilities are to be switched here, not there.
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    /// Gives the device back. Packets that were taken over and not sent are dropped.
    pub fn into_device(self) -> D {
        self.device
    }

    /// Changes what the device may do, while running; returns what it does from now on. What it may not or cannot is
    /// done in software, except that receive coalescing which is not allowed is done nowhere: frames then come as they
    /// were on the wire (a device that has coalesced before may still deliver some).
    ///
    /// Fails only if the device cannot switch even to nothing; what is on then is what [`Port::enabled`] says.
    pub fn set_offloads(&mut self, allowed: Capabilities) -> Result<Capabilities, DeviceError> {
        self.allowed = allowed;
        self.negotiate()
    }

    /// Marks what a self-test has found wrong: the device does not do it from now on.
    pub fn distrust(&mut self, features: Capabilities) -> Result<Capabilities, DeviceError> {
        self.distrusted = features;
        self.negotiate()
    }

    /// What the device does now.
    pub fn enabled(&self) -> Capabilities {
        self.device.enabled()
    }

    /// Where `feature` is done, and why not in the device.
    pub fn place(&self, feature: Feature) -> Place {
        if self.device.enabled().has(feature) {
            return Place::Device;
        }
        let wanted = self.wanted();
        let reason = if !self.allowed.has(feature) {
            Reason::NotAllowed
        } else if !self.device.capabilities().has(feature) {
            Reason::NotCapable
        } else if self.distrusted.has(feature) {
            Reason::SelfTest
        } else if !wanted.has(feature) {
            Reason::NeedsChecksum
        } else {
            Reason::Refused
        };
        match feature {
            Feature::RxCoalescing if !self.allowed.rx_coalescing => Place::Off(reason),
            Feature::Gather => Place::Off(reason),
            _ => Place::Software(reason),
        }
    }

    /// Appends received frames to `batch`: verified, and coalesced where allowed. Returns how many were appended; 0 means
    /// that none is waiting or that `batch` is full. Frames that came before an error are in the batch.
    pub fn receive(&mut self, now: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError> {
        let before = batch.len();
        let mut budget = self.rx_budget;
        if !self.allowed.rx_coalescing && batch.room() <= budget {
            let result = self.device.receive(now, batch);
            self.rx_more = batch.is_full();
            self.look_over(batch, before);
            return result.map(|_| batch.len() - before);
        }
        let mut result = Ok(0);
        while budget > 0 && !batch.is_full() && result.is_ok() {
            let (from, most) = (batch.len(), budget.min(self.rx_batch));
            let room = most.min(batch.room());
            result = batch.fill(most, |batch| self.device.receive(now, batch));
            let count = batch.len() - from;
            budget -= count;
            self.look_over(batch, from);
            // The device gives what is waiting as far as there is room: one that left room would be asked in vain.
            if count < room {
                break;
            }
        }
        self.rx_more = budget == 0 || batch.is_full();
        self.gro.finish(batch);
        self.rx.coalesced = self.gro.coalesced;
        result.map(|_| batch.len() - before)
    }

    /// Counts, verifies and joins the frames that have come, from this index on. Each stays where the device has put it, but those
    /// that come behind one that was joined.
    fn look_over(&mut self, batch: &mut RxBatch, from: usize) {
        let rx = &mut self.rx;
        if self.allowed.rx_coalescing {
            self.gro.join(batch, from, |frame, is_open| {
                if is_open || frame.len() > SHORT {
                    return look_at(rx, frame);
                }
                look_if_needed(rx, frame);
                None
            });
            return;
        }
        for at in from..batch.len() {
            if let Some(frame) = batch.at_mut(at) {
                look_if_needed(rx, frame);
            }
        }
    }

    /// The state of the link.
    pub fn link(&self) -> LinkState {
        self.device.link()
    }

    /// Sets which frames the device is to deliver.
    pub fn set_filter(&mut self, filter: &Filter<'_>) -> Result<(), DeviceError> {
        self.device.set_filter(filter)
    }

    /// Asks for an interrupt, as [`QueuePair::arm`](crate::QueuePair::arm); true if there is something to do already.
    pub fn arm(&mut self, now: Instant) -> bool {
        let has_dropped = self.fallback.has_dropped();
        self.device.arm(now) || has_dropped
    }

    /// When the device wants to be looked at though no interrupt came, as
    /// [`QueuePair::poll_timeout`](crate::QueuePair::poll_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.device.poll_timeout()
    }

    /// Whether the last [`Port::receive`] ended with its budget or its batch used up, so that more frames may wait in the device.
    pub fn has_more(&self) -> bool {
        self.rx_more
    }

    /// Sends packets from the front of `queue` until it is empty or the device's ring is full; returns how many were
    /// taken from the queue. A super-segment that is split here may be on its way only in part: to be called again
    /// while [`Port::is_pending`], also with an empty queue.
    pub fn transmit(&mut self, now: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError> {
        self.fallback.transmit(&mut self.device, now, queue)
    }

    /// Whether packets taken over earlier still wait for the device's ring.
    pub fn is_pending(&self) -> bool {
        self.fallback.is_pending()
    }

    /// The token of the next packet that has left (of a split one: all of it), in order. Tokens of packets that were
    /// dropped as malformed come first.
    pub fn poll_completion(&mut self) -> Option<TxToken> {
        self.fallback.poll_dropped().or_else(|| self.device.poll_completion())
    }

    /// The counters.
    pub fn stats(&self) -> PortStats {
        PortStats { rx: self.rx, tx: self.fallback.stats() }
    }

    /// What to ask of the device.
    fn wanted(&self) -> Capabilities {
        let mut wanted = self.allowed.and(self.device.capabilities());
        for feature in Feature::ALL {
            if self.distrusted.has(feature) {
                wanted = wanted.with(feature, false);
            }
        }
        wanted.tso4 &= wanted.tx_checksum4;
        wanted.tso6 &= wanted.tx_checksum6;
        wanted
    }

    /// Switches the device to as much of what is wanted as it takes: all; without coalescing; without segmentation, too; nothing.
    fn negotiate(&mut self) -> Result<Capabilities, DeviceError> {
        let wanted = self.wanted();
        let apart = Capabilities { rx_coalescing: false, ..wanted };
        let plain = Capabilities { tso4: false, tso6: false, ..apart };
        let mut result = Ok(());
        for attempt in [wanted, apart, plain, Capabilities::NONE] {
            result = self.device.enable(attempt);
            if !matches!(result, Err(DeviceError::Unsupported)) {
                break;
            }
        }
        // Also after an error, as the device may have switched in part.
        let enabled = self.device.enabled();
        self.fallback.set_enabled(enabled);
        result.map(|()| enabled)
    }
}

#[inline]
fn count(rx: &mut RxStats, frame: &Frame) {
    rx.frames += 1;
    rx.bytes += frame.len() as u64;
}

/// Counts a frame, and verifies it if the device has not.
#[inline]
fn look_if_needed(rx: &mut RxStats, frame: &mut Frame) {
    if frame.meta.checksum == ChecksumStatus::Good {
        count(rx, frame);
        frame.plain = Plain::Open;
    } else {
        look_at(rx, frame);
    }
}

/// Counts and verifies one frame, and finds its layers.
fn look_at(rx: &mut RxStats, frame: &mut Frame) -> Option<Layers> {
    count(rx, frame);
    if frame.meta.checksum == ChecksumStatus::Unchecked
        && let Some(layers) = verify::usual(frame)
    {
        rx.software_good += 1;
        frame.meta.checksum = ChecksumStatus::Good;
        frame.plain = layers.plain().into();
        return Some(layers);
    }
    let layers = layers::parse(frame.data.bytes(), frame.len());
    match (frame.meta.checksum, &layers) {
        (ChecksumStatus::Good, _) => {}
        (ChecksumStatus::Bad, _) => rx.device_bad += 1,
        (ChecksumStatus::Unchecked, None) => rx.unchecked += 1,
        (ChecksumStatus::Unchecked, Some(layers)) => {
            frame.meta.checksum = verify(frame, layers);
            match frame.meta.checksum {
                ChecksumStatus::Good => rx.software_good += 1,
                ChecksumStatus::Bad => rx.software_bad += 1,
                ChecksumStatus::Unchecked => rx.unchecked += 1,
            }
        }
    }
    frame.plain = layers.as_ref().and_then(Layers::plain).into();
    layers
}

#[cfg(test)]
mod tests;
