//! From a board and some memory to an interface.

use crate::device::{Capabilities, LinkState};
use crate::meta::MacAddr;
use crate::pool::{Buffer, Pool};
use crate::virtio::receive::Receiver;
use crate::virtio::regs;
use crate::virtio::ring::{self, Ring};
use crate::virtio::transmit::{HEADERS, MOST_PIECES, Transmitter};
use crate::virtio::{Stats, Transport, Virtio};
use crate::vnet::HEADER_LEN_MERGEABLE;
use alloc::vec::Vec;
use core::fmt;

/// Readings after which a reset has failed.
const MOST_READINGS: usize = 100_000;
/// Descriptors of a ring: room for a packet of the most pieces, and what the specification allows.
const RING: core::ops::RangeInclusive<u16> = 32..=1_024;
const _: () = assert!(MOST_PIECES <= 32, "the shortest ring holds a packet");
/// The longest frame without coalescing: an Ethernet header with two tags beside the MTU.
const ETHERNET: usize = 22;

/// What can be chosen.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The interface's address; `None` for the one that the device names.
    pub mac: Option<MacAddr>,
    /// Descriptors of each ring, a power of two.
    pub receive_ring: u16,
    /// The same.
    pub transmit_ring: u16,
    /// What of its offloads the device is asked for.
    pub offloads: Capabilities,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { mac: None, receive_ring: 256, transmit_ring: 256, offloads: Capabilities::ALL }
    }
}

/// Where the rings lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rings {
    receive: u64,
    transmit: u64,
    /// A word in which the interrupt's handler leaves that link or status have changed.
    pub note: u64,
}

impl Rings {
    fn at(base: u64, settings: &Settings) -> Rings {
        let transmit = base + ring::bytes(settings.receive_ring);
        Rings { receive: base, transmit, note: transmit + ring::bytes(settings.transmit_ring) }
    }
}

/// Bytes of ring memory that these settings need.
pub fn memory_len(settings: &Settings) -> usize {
    (Rings::at(0, settings).note + 4) as usize
}

/// Why a device does not open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenError {
    /// No virtio device answers: the first register reads so.
    NoAnswer(u32),
    /// The device is one before virtio 1.0, of this version.
    Legacy(u32),
    /// The device is no network device, but of this kind.
    OtherDevice(u32),
    /// The device does not come out of its reset.
    Stuck,
    /// The device does not accept what it offered: features in question.
    Refused(u64),
    /// The ring's length is no power of two from 32 to 1,024.
    Length(u16),
    /// The device has no such ring, or not of this length: receive or transmit.
    Ring(&'static str),
    /// The ring memory does not begin at a multiple of 16, or is too small.
    Memory {
        /// Where it lies.
        base: u64,
        /// Bytes given.
        have: usize,
        /// Bytes needed.
        need: usize,
    },
    /// A pool's buffers are too small, too few, or out of the device's reach.
    Pool {
        /// Which.
        name: &'static str,
        /// Buffers and bytes of each that are needed.
        need: (usize, usize),
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::NoAnswer(value) => {
                write!(
                    f,
                    "no virtio device there: its first register reads as {value:#010x}, expected 0x74726976"
                )
            }
            OpenError::Legacy(version) => write!(
                f,
                "a virtio device of version {version}, expected 2 (virtio 1.0; with QEMU: -global \
                 virtio-mmio.force-legacy=false)"
            ),
            OpenError::OtherDevice(kind) => write!(f, "a virtio device of kind {kind}, expected 1 (network)"),
            OpenError::Stuck => f.write_str("the device does not come out of its reset"),
            OpenError::Refused(features) => {
                write!(f, "the device does not accept features {features:#x}, which it offered")
            }
            OpenError::Length(len) => {
                write!(
                    f,
                    "a ring of {len} descriptors: expected a power of two from {} to {}",
                    RING.start(),
                    RING.end()
                )
            }
            OpenError::Ring(name) => write!(f, "the device has no {name} ring of that length"),
            OpenError::Memory { base, have, need } => {
                write!(f, "ring memory of {have} bytes at {base:#x}: expected {need} at a multiple of 16")
            }
            OpenError::Pool { name, need: (count, size) } => {
                write!(f, "{name} pool: expected {count} buffers of {size} bytes that the device reaches")
            }
        }
    }
}

impl core::error::Error for OpenError {}

/// Whether a network device answers at these registers: for a board that looks through its slots.
pub fn is_network(board: &impl Transport) -> bool {
    board.read(regs::MAGIC) == regs::MAGIC_VALUE && board.read(regs::DEVICE_ID) == regs::NETWORK
}

impl<P: Transport> Virtio<P> {
    /// Resets the device, agrees with it on features and starts it.
    ///
    /// `base` and `len` are memory for the rings ([`memory_len`]), seen by both sides without a cache. Frames are received into
    /// buffers of `receive`; headers are copied into buffers of `transmit`, of which one for each descriptor is taken for good.
    pub fn open(
        board: P,
        (base, len): (u64, usize),
        receive: Pool,
        transmit: &Pool,
        settings: &Settings,
    ) -> Result<Self, OpenError> {
        identify(&board)?;
        for len in [settings.receive_ring, settings.transmit_ring] {
            if !len.is_power_of_two() || !RING.contains(&len) {
                return Err(OpenError::Length(len));
            }
        }
        let need = memory_len(settings);
        if !base.is_multiple_of(16) || len < need {
            return Err(OpenError::Memory { base, have: len, need });
        }
        if !reset(&board) {
            return Err(OpenError::Stuck);
        }
        board.write(regs::STATUS, regs::ACKNOWLEDGE | regs::DRIVER);
        let features = choose(offered(&board), settings.offloads);
        let mtu = if features & regs::F_MTU != 0 { board.read16(regs::CONFIG_MTU).into() } else { 1_500 };
        let longest = mtu + ETHERNET;
        check(&board, &receive, "receive", (1, HEADER_LEN_MERGEABLE + longest))?;
        let headers = take_headers(&board, transmit, settings.transmit_ring.into())?;
        let rings = Rings::at(base, settings);
        let capabilities = capabilities(features);
        let ring = |index, base, len| Ring::new(board.clone(), index, base, len);
        let received = ring(0, rings.receive, settings.receive_ring);
        let sent = ring(1, rings.transmit, settings.transmit_ring);
        board.store(rings.note, 0);
        let mut interface = Virtio {
            mac: settings.mac.unwrap_or_else(|| read_mac(&board, features)),
            mtu,
            features,
            capabilities,
            enabled: capabilities,
            link: LinkState::DOWN,
            receiver: Receiver::new(
                board.clone(),
                received,
                receive,
                settings.receive_ring,
                features & regs::F_MRG_RXBUF != 0,
            ),
            transmitter: Transmitter::new(board.clone(), sent, headers, longest),
            stats: Stats::default(),
            is_lost: false,
            rings,
            board,
        };
        interface.start()?;
        interface.stats.link_changes = 0;
        Ok(interface)
    }
}

fn identify(board: &impl Transport) -> Result<(), OpenError> {
    match (board.read(regs::MAGIC), board.read(regs::VERSION), board.read(regs::DEVICE_ID)) {
        (regs::MAGIC_VALUE, regs::MODERN, regs::NETWORK) => Ok(()),
        (regs::MAGIC_VALUE, regs::MODERN, kind) => Err(OpenError::OtherDevice(kind)),
        (regs::MAGIC_VALUE, version, _) => Err(OpenError::Legacy(version)),
        (value, _, _) => Err(OpenError::NoAnswer(value)),
    }
}

/// Resets the device (section 4.2.3.1.1): it has nothing of ours afterwards. False if that does not come to an end.
pub(super) fn reset(board: &impl Transport) -> bool {
    board.write(regs::STATUS, 0);
    (0..MOST_READINGS).any(|_| {
        let is_done = board.read(regs::STATUS) == 0;
        if !is_done {
            board.pause();
        }
        is_done
    })
}

fn offered(board: &impl Transport) -> u64 {
    let half = |select| {
        board.write(regs::DEVICE_FEATURES_SEL, select);
        u64::from(board.read(regs::DEVICE_FEATURES))
    };
    half(0) | half(1) << 32
}

/// What of the offered features is taken.
fn choose(offered: u64, offloads: Capabilities) -> u64 {
    let mut wanted = regs::F_VERSION_1 | regs::F_MAC | regs::F_MTU | regs::F_STATUS | regs::F_EVENT_IDX;
    wanted |= regs::F_MRG_RXBUF;
    if offloads.tx_checksum4 && offloads.tx_checksum6 {
        wanted |= regs::F_CSUM;
        wanted |= if offloads.tso4 { regs::F_HOST_TSO4 } else { 0 };
        wanted |= if offloads.tso6 { regs::F_HOST_TSO6 } else { 0 };
    }
    if offloads.rx_checksum {
        wanted |= regs::F_GUEST_CSUM;
        // A coalesced frame needs several buffers.
        if offloads.rx_coalescing && offered & regs::F_MRG_RXBUF != 0 {
            wanted |= regs::F_GUEST_TSO4 | regs::F_GUEST_TSO6;
        }
    }
    let mut chosen = offered & wanted;
    // Each stands on another (section 5.1.3.1).
    for (feature, stands_on) in [
        (regs::F_HOST_TSO4 | regs::F_HOST_TSO6, regs::F_CSUM),
        (regs::F_GUEST_TSO4 | regs::F_GUEST_TSO6, regs::F_GUEST_CSUM),
    ] {
        if chosen & stands_on == 0 {
            chosen &= !feature;
        }
    }
    chosen
}

fn capabilities(features: u64) -> Capabilities {
    let has = |feature| features & feature != 0;
    Capabilities {
        tx_checksum4: has(regs::F_CSUM),
        tx_checksum6: has(regs::F_CSUM),
        rx_checksum: has(regs::F_GUEST_CSUM),
        tso4: has(regs::F_HOST_TSO4),
        tso6: has(regs::F_HOST_TSO6),
        rx_coalescing: has(regs::F_GUEST_TSO4) || has(regs::F_GUEST_TSO6),
        gather: true,
    }
}

/// Tells the device which features hold, and hears whether it agrees (section 3.1.1). It was reset before.
pub(super) fn agree(board: &impl Transport, features: u64) -> Result<(), OpenError> {
    let agreed = regs::ACKNOWLEDGE | regs::DRIVER | regs::FEATURES_OK;
    board.write(regs::STATUS, regs::ACKNOWLEDGE | regs::DRIVER);
    for (select, half) in [(0, features as u32), (1, (features >> 32) as u32)] {
        board.write(regs::DRIVER_FEATURES_SEL, select);
        board.write(regs::DRIVER_FEATURES, half);
    }
    board.write(regs::STATUS, agreed);
    if features & regs::F_VERSION_1 == 0 || board.read(regs::STATUS) & regs::FEATURES_OK == 0 {
        board.write(regs::STATUS, regs::FAILED);
        return Err(OpenError::Refused(features));
    }
    Ok(())
}

fn read_mac(board: &impl Transport, features: u64) -> MacAddr {
    if features & regs::F_MAC == 0 {
        // Somebody must have one: locally administered, and the same every time.
        return MacAddr([2, 0, 0, 0, 0, 1]);
    }
    let mut mac = [0; 6];
    for (register, byte) in (regs::CONFIG_MAC..).zip(&mut mac) {
        *byte = board.read8(register);
    }
    MacAddr(mac)
}

fn check(
    board: &impl Transport,
    pool: &Pool,
    name: &'static str,
    need: (usize, usize),
) -> Result<(), OpenError> {
    let wrong = OpenError::Pool { name, need };
    if pool.buffer_size() < need.1 || pool.len() < need.0 {
        return Err(wrong);
    }
    let buffer = pool.take().ok_or(wrong)?;
    // One stands for all: a pool is memory of one kind.
    board.bus_address(buffer.bytes()).map(|_| ()).ok_or(wrong)
}

fn take_headers(board: &impl Transport, pool: &Pool, count: usize) -> Result<Vec<Buffer>, OpenError> {
    let need = (count, HEADERS);
    check(board, pool, "transmit", need)?;
    (0..count).map(|_| pool.take().ok_or(OpenError::Pool { name: "transmit", need })).collect()
}
