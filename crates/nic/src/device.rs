//! The contract of a device's control: address, link, filter, capabilities, steering.

use crate::meta::MacAddr;
use crate::queue::QueuePair;
use core::fmt;
use linerate_wire::toeplitz;
use linerate_wire::units::Rate;

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

/// What is known of the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkState {
    /// Whether frames pass.
    pub is_up: bool,
    /// How fast; `None` where nobody knows (a virtual device).
    pub speed: Option<Rate>,
    /// Whether both ends may send at once.
    pub is_full_duplex: bool,
}

impl LinkState {
    /// Up, at a speed that nobody knows: what a virtual device has.
    pub const UP: LinkState = LinkState { is_up: true, speed: None, is_full_duplex: true };
    /// Down.
    pub const DOWN: LinkState = LinkState { is_up: false, ..LinkState::UP };
}

/// Which frames a device is to deliver, beside those to its own address and to all (broadcast).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Filter<'a> {
    /// Groups that somebody listens to.
    pub groups: &'a [MacAddr],
    /// All groups.
    pub all_groups: bool,
    /// Everything.
    pub promiscuous: bool,
}

/// How received frames are spread over the queues (receive-side scaling).
#[derive(Clone, Copy, Debug)]
pub struct Steering<'a> {
    /// The key of the Toeplitz hash, shared by all hash types.
    pub key: &'a [u8; toeplitz::KEY_LEN],
    /// The queue of each value of the hash's low bits; its length is a power of two, at most 128.
    pub indirection: &'a [u16],
    /// Destination ports whose flows go to a queue of their own, whatever their hash.
    pub ports: &'a [(u16, u16)],
}

/// The control of a network device: what there is once, however many queues it has.
///
/// Methods without a body are what every device has. The others have a default for devices to which the thing does not
/// apply: a virtual device is always up, delivers every frame, and has one queue. A device with several queues has one
/// control and one [`QueuePair`] for each; [`Joined`](crate::Joined) and [`Member`](crate::Member) make the pair that a
/// [`Port`](crate::Port) works with.
pub trait Device {
    /// The device's address.
    fn mac(&self) -> MacAddr;

    /// Largest IP packet in bytes (without Ethernet header).
    fn mtu(&self) -> usize;

    /// What the device is able to do.
    fn capabilities(&self) -> Capabilities;

    /// Switches capabilities while running. What is not named is switched off; what the device lacks is refused. What is on
    /// afterwards is what [`QueuePair::enabled`] says.
    fn enable(&mut self, wanted: Capabilities) -> Result<(), DeviceError>;

    /// The state of the link as last reported; asked in each turn, so it costs no more than reading a variable.
    fn link(&self) -> LinkState {
        LinkState::UP
    }

    /// Sets which frames are delivered. A device that cannot tell as finely delivers more: the stack looks again.
    fn set_filter(&mut self, _filter: &Filter<'_>) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Queues among which received frames can be spread.
    fn queues(&self) -> usize {
        1
    }

    /// Spreads received frames over the queues.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] where the device does not do it, or not so.
    fn set_steering(&mut self, _steering: &Steering<'_>) -> Result<(), DeviceError> {
        Err(DeviceError::Unsupported)
    }
}

/// A device that is its own only queue, or a control joined to a queue: what a [`Port`](crate::Port) works with.
pub trait Interface: Device + QueuePair {}

impl<T: Device + QueuePair> Interface for T {}
