//! A device of `embassy-net-driver` below the stack.

use alloc::collections::VecDeque;
use core::fmt;
use core::task::{Context, Waker};
use embassy_net_driver::{Checksum, ChecksumCapabilities, Driver, HardwareAddress, RxToken, TxToken};
use linerate_nic::{
    Capabilities, ChecksumRequest, Device, DeviceError, Frame, LinkState, MacAddr, Pool, QueuePair, RxBatch,
    RxMeta, TxPacket, TxQueue, checksum,
};
use linerate_nic::{ChecksumStatus, TxToken as Token};
use linerate_wire::ethernet::{self, EtherType};
use linerate_wire::ip::Protocol;
use linerate_wire::units::Instant;
use linerate_wire::{ipv4, ipv6, tcp};

/// Tokens of packets that have left and were not asked for yet.
const COMPLETIONS: usize = 128;

/// Why a driver cannot be a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DriverError {
    /// It carries no Ethernet frames.
    NotEthernet,
    /// Its frames are shorter than an IP packet must be able to be, 576 bytes and an Ethernet header.
    ShortFrames {
        /// Its longest frame in bytes.
        longest: usize,
    },
    /// The pool's buffers do not hold a frame.
    SmallBuffers {
        /// What a buffer holds, in bytes.
        buffer: usize,
        /// The driver's longest frame in bytes.
        longest: usize,
    },
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DriverError::NotEthernet => f.write_str("the driver carries no Ethernet frames"),
            DriverError::ShortFrames { longest } => {
                write!(
                    f,
                    "the driver's frames have {longest} bytes at most; IP needs 590 with the Ethernet header"
                )
            }
            DriverError::SmallBuffers { buffer, longest } => {
                write!(f, "the pool's buffers have {buffer} bytes, and the driver's frames up to {longest}")
            }
        }
    }
}

impl core::error::Error for DriverError {}

/// What an [`EmbassyDevice`] has dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DriverStats {
    /// Received frames longer than the driver says that they are.
    pub received_oversize: u64,
    /// Packets to send that are longer than the driver's frames (a VLAN tag beyond its MTU).
    pub sent_oversize: u64,
}

/// A driver of `embassy-net-driver` as a device with one queue.
///
/// - A frame is copied once each way, for a driver lends its buffers only for the time of a call. Received frames lie in
///   buffers of one pool; while that is empty they wait in the driver.
/// - What the driver computes and verifies of checksums is left to it, whatever the protocol; the rest is done in
///   software.
/// - A packet has left when the driver has taken it.
/// - The driver has no filter for groups that we know of: where it does not let through all multicast frames by itself, the
///   program must see to that, or there is no IPv6.
///
/// [`EmbassyDevice::set_waker`] says whom the driver wakes: `net.run(|node, waker| node.port.device_mut().set_waker(waker))`.
pub struct EmbassyDevice<D> {
    driver: D,
    pool: Pool,
    waker: Waker,
    longest: usize,
    checksums: ChecksumCapabilities,
    enabled: Capabilities,
    is_up: bool,
    /// The driver had no room for a packet.
    waits_for_room: bool,
    completions: VecDeque<Token>,
    stats: DriverStats,
}

impl<D: Driver> EmbassyDevice<D> {
    /// A device whose received frames lie in buffers of `pool`, which must hold the driver's longest frame.
    ///
    /// # Errors
    ///
    /// See [`DriverError`].
    pub fn new(mut driver: D, pool: Pool) -> Result<Self, DriverError> {
        let found = driver.capabilities();
        let longest = found.max_transmission_unit;
        if !matches!(driver.hardware_address(), HardwareAddress::Ethernet(_)) {
            return Err(DriverError::NotEthernet);
        }
        if longest < ethernet::HEADER_LEN + 576 {
            return Err(DriverError::ShortFrames { longest });
        }
        if pool.buffer_size() < longest {
            return Err(DriverError::SmallBuffers { buffer: pool.buffer_size(), longest });
        }
        let waker = Waker::noop().clone();
        let is_up = is_up(&mut driver, &mut Context::from_waker(&waker));
        Ok(EmbassyDevice {
            driver,
            pool,
            waker,
            longest,
            enabled: able(&found.checksum),
            checksums: found.checksum,
            is_up,
            waits_for_room: false,
            completions: VecDeque::with_capacity(COMPLETIONS),
            stats: DriverStats::default(),
        })
    }

    /// From now on the driver wakes this waker.
    pub fn set_waker(&mut self, waker: &Waker) {
        self.waker.clone_from(waker);
    }

    /// The driver.
    pub fn driver(&self) -> &D {
        &self.driver
    }

    /// The driver, for settings that only it knows.
    pub fn driver_mut(&mut self) -> &mut D {
        &mut self.driver
    }

    /// What was dropped.
    pub fn stats(&self) -> DriverStats {
        self.stats
    }
}

fn is_up<D: Driver>(driver: &mut D, cx: &mut Context<'_>) -> bool {
    matches!(driver.link_state(cx), embassy_net_driver::LinkState::Up)
}

/// Whether software must compute this checksum for what is sent.
fn is_sent_in_software(checksum: Checksum) -> bool {
    matches!(checksum, Checksum::Both | Checksum::Tx)
}

/// Whether software must verify this checksum of what is received.
fn is_verified_in_software(checksum: Checksum) -> bool {
    matches!(checksum, Checksum::Both | Checksum::Rx)
}

/// What a driver that leaves these checksums to others does itself, be it for some protocols only.
fn able(left: &ChecksumCapabilities) -> Capabilities {
    let sends = [left.tcp, left.udp].iter().any(|it| !is_sent_in_software(*it));
    let verifies =
        [left.tcp, left.udp, left.icmpv4, left.icmpv6].iter().any(|it| !is_verified_in_software(*it));
    // It takes gather lists, as it copies in any case.
    Capabilities {
        tx_checksum4: sends,
        tx_checksum6: sends,
        rx_checksum: verifies,
        gather: true,
        ..Capabilities::NONE
    }
}

/// Whether the driver has verified all checksums of this frame. What it may not have understood is verified again.
fn is_verified(frame: &[u8], left: &ChecksumCapabilities) -> bool {
    let Ok(ethernet) = ethernet::Header::parse(frame) else { return false };
    let layer4 = |protocol: Protocol| match protocol {
        Protocol::TCP => !is_verified_in_software(left.tcp),
        Protocol::UDP => !is_verified_in_software(left.udp),
        Protocol::ICMPV4 => !is_verified_in_software(left.icmpv4),
        Protocol::ICMPV6 => !is_verified_in_software(left.icmpv6),
        _ => false,
    };
    match ethernet.ether_type() {
        EtherType::IPV4 => ipv4::Header::parse(ethernet.payload()).is_ok_and(|ip| {
            !ip.is_fragment() && !is_verified_in_software(left.ipv4) && layer4(ip.protocol())
        }),
        EtherType::IPV6 => ipv6::Header::parse(ethernet.payload()).is_ok_and(|ip| layer4(ip.next_header())),
        _ => false,
    }
}

/// Writes a packet as the driver wants it: in one piece, its checksum filled in, or zero where the driver does that.
fn write(packet: &mut TxPacket, left: &ChecksumCapabilities, out: &mut [u8]) {
    let request = packet.meta.checksum;
    let is_left = |request: &ChecksumRequest| match usize::from(request.offset) {
        tcp::CHECKSUM_OFFSET => is_sent_in_software(left.tcp),
        _ => is_sent_in_software(left.udp),
    };
    if request.as_ref().is_some_and(is_left) {
        let filled = checksum::fill_packet(packet);
        debug_assert!(filled, "a request that lies outside of its packet");
    }
    let written = packet.linearise(out);
    debug_assert_eq!(written, Some(out.len()), "the driver lends as much as it was asked for");
    if let Some(request) = request.filter(|request| !is_left(request)) {
        let at = usize::from(request.start) + usize::from(request.offset);
        if let Some(field) = out.get_mut(at..at + 2) {
            field.fill(0);
        }
    }
}

impl<D: Driver> Device for EmbassyDevice<D> {
    fn mac(&self) -> MacAddr {
        match self.driver.hardware_address() {
            HardwareAddress::Ethernet(address) => MacAddr(address),
            // It was Ethernet when the device was made.
            _ => MacAddr([0; 6]),
        }
    }

    fn mtu(&self) -> usize {
        self.longest - ethernet::HEADER_LEN
    }

    fn capabilities(&self) -> Capabilities {
        able(&self.checksums)
    }

    fn enable(&mut self, wanted: Capabilities) -> Result<(), DeviceError> {
        if wanted.and(able(&self.checksums)) != wanted {
            return Err(DeviceError::Unsupported);
        }
        self.enabled = wanted;
        Ok(())
    }

    fn link(&self) -> LinkState {
        if self.is_up { LinkState::UP } else { LinkState::DOWN }
    }
}

impl<D: Driver> QueuePair for EmbassyDevice<D> {
    fn enabled(&self) -> Capabilities {
        self.enabled
    }

    fn receive(&mut self, _now: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError> {
        let cx = &mut Context::from_waker(&self.waker);
        self.is_up = is_up(&mut self.driver, cx);
        let mut count = 0;
        while !batch.is_full() {
            let Some((token, _)) = self.driver.receive(cx) else { break };
            // A token that is not consumed leaves its frame where it is.
            let Some(mut buffer) = self.pool.take() else { break };
            let copied = token.consume(|frame| {
                let place = buffer.bytes_mut().get_mut(..frame.len())?;
                place.copy_from_slice(frame);
                let is_good = self.enabled.rx_checksum && is_verified(frame, &self.checksums);
                Some((frame.len(), if is_good { ChecksumStatus::Good } else { ChecksumStatus::Unchecked }))
            });
            let Some((len, checksum)) = copied else {
                self.stats.received_oversize += 1;
                continue;
            };
            let meta = RxMeta { checksum, ..RxMeta::default() };
            let pushed = batch.push(Frame::new(buffer.freeze(0..len), meta));
            debug_assert!(pushed.is_ok(), "there was room in the batch");
            count += 1;
        }
        Ok(count)
    }

    fn transmit(&mut self, _now: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError> {
        let cx = &mut Context::from_waker(&self.waker);
        let mut count = 0;
        self.waits_for_room = false;
        while let Some(packet) = queue.front_mut() {
            if self.completions.len() == COMPLETIONS {
                break;
            }
            if packet.len() > self.longest {
                self.stats.sent_oversize += 1;
            } else if let Some(token) = self.driver.transmit(cx) {
                token.consume(packet.len(), |out| write(packet, &self.checksums, out));
            } else {
                self.waits_for_room = true;
                break;
            }
            let token = packet.meta.token;
            if token != Token(0) {
                self.completions.push_back(token);
            }
            queue.pop();
            count += 1;
        }
        Ok(count)
    }

    fn poll_completion(&mut self) -> Option<Token> {
        self.completions.pop_front()
    }

    fn arm(&mut self, _now: Instant) -> bool {
        let cx = &mut Context::from_waker(&self.waker);
        let link_changed = is_up(&mut self.driver, cx) != self.is_up;
        // A frame for which there is no buffer waits for one: it comes back with a call, not with an interrupt.
        let has_frame = self.driver.receive(cx).is_some() && self.pool.free() > 0;
        let has_room = self.waits_for_room && self.driver.transmit(cx).is_some();
        link_changed || has_frame || has_room || !self.completions.is_empty()
    }
}

#[cfg(test)]
mod tests;
