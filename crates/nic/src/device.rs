//! The contract of a device: batches in, batches out, completions, capabilities.

use crate::frame::RxBatch;
use crate::meta::{MacAddr, TxToken};
use crate::tx::TxQueue;
use core::fmt;
use linerate_wire::units::Instant;

/// What a device can do; also what of it is switched on. Everything it lacks, `nic` does in software.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Capabilities {
    /// Fills in TCP and UDP checksums over IPv4 on transmit.
    pub tx_checksum4: bool,
    /// Fills in TCP and UDP checksums over IPv6 on transmit.
    pub tx_checksum6: bool,
    /// Verifies checksums on receive and says so in `RxMeta`.
    pub rx_checksum: bool,
    /// Splits TCP super-segments over IPv4.
    pub tso4: bool,
    /// Splits TCP super-segments over IPv6.
    pub tso6: bool,
    /// Delivers coalesced TCP segments (LRO, GRO, or super-frames from a virtual device).
    pub rx_coalescing: bool,
    /// Takes gather lists of up to [`crate::MAX_CHUNKS`] pieces; otherwise it copies into one buffer.
    pub gather: bool,
}

impl Capabilities {
    /// Nothing.
    pub const NONE: Capabilities = Capabilities {
        tx_checksum4: false,
        tx_checksum6: false,
        rx_checksum: false,
        tso4: false,
        tso6: false,
        rx_coalescing: false,
        gather: false,
    };

    /// Everything.
    pub const ALL: Capabilities = Capabilities {
        tx_checksum4: true,
        tx_checksum6: true,
        rx_checksum: true,
        tso4: true,
        tso6: true,
        rx_coalescing: true,
        gather: true,
    };

    /// What both have.
    pub const fn and(self, other: Capabilities) -> Capabilities {
        Capabilities {
            tx_checksum4: self.tx_checksum4 && other.tx_checksum4,
            tx_checksum6: self.tx_checksum6 && other.tx_checksum6,
            rx_checksum: self.rx_checksum && other.rx_checksum,
            tso4: self.tso4 && other.tso4,
            tso6: self.tso6 && other.tso6,
            rx_coalescing: self.rx_coalescing && other.rx_coalescing,
            gather: self.gather && other.gather,
        }
    }
}

/// Why a device failed. A full ring or an empty receive queue is not a failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceError {
    /// The device is gone (interface removed, cable of a virtual device cut).
    Gone,
    /// The operating system or hardware reported this error number.
    Io(i32),
    /// The device cannot switch to these capabilities.
    Unsupported,
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceError::Gone => f.write_str("the device is gone"),
            DeviceError::Io(code) => write!(f, "the device reported error {code}"),
            DeviceError::Unsupported => f.write_str("the device cannot do that"),
        }
    }
}

impl core::error::Error for DeviceError {}

/// A network device with one receive and one transmit queue.
///
/// Call order in one turn of the loop: [`Device::receive`] until the batch is full or it returns 0, let the stack take
/// the batch and fill the transmit queue, [`Device::transmit`] once for the whole queue (one doorbell), then
/// [`Device::poll_completion`] until `None`.
pub trait Device {
    /// The device's address.
    fn mac(&self) -> MacAddr;

    /// Largest IP packet in bytes (without Ethernet header).
    fn mtu(&self) -> usize;

    /// What the device is able to do.
    fn capabilities(&self) -> Capabilities;

    /// What is switched on.
    fn enabled(&self) -> Capabilities;

    /// Switches capabilities while running. What is not named is switched off; what the device lacks is refused.
    fn enable(&mut self, wanted: Capabilities) -> Result<(), DeviceError>;

    /// Appends received frames to `batch` until it is full or none is waiting; returns how many.
    fn receive(&mut self, now: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError>;

    /// Takes packets from the front of `queue` until it is empty or the ring is full; returns how many. A packet that
    /// asks for something that is not switched on is never given to this method (see the offload layer).
    fn transmit(&mut self, now: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError>;

    /// The token of the next packet that has left, in order. Packets with token 0 are not reported.
    fn poll_completion(&mut self) -> Option<TxToken>;
}
