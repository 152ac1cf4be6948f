//! From a board and some memory to a control and queues.

use crate::bus::Platform;
use crate::channel::Channel;
use crate::control::Control;
use crate::descriptor;
use crate::queue::{Layout, StoppedQueue};
use crate::registers::{Direction, MAX_CHANNELS, common};
use crate::transmit::MAX_PIECES;
use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeInclusive;
use core::time::Duration;
use linerate_nic::MacAddr;

/// Bytes of an Ethernet header with two VLAN tags.
const ETHERNET: usize = 22;
/// Descriptors of one ring: room for the largest packet twice; more than the link needs at any distance.
const RING: RangeInclusive<usize> = 2 * MAX_PIECES..=4_096;
/// MTUs: the smallest of IPv4, and the largest jumbo frame.
const MTU: RangeInclusive<usize> = 68..=9_000;

/// What a device is opened with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The device's address.
    pub mac: MacAddr,
    /// Largest IP packet in bytes.
    pub mtu: usize,
    /// Queues: one for each core that shall have one.
    pub queues: usize,
    /// Descriptors of each transmit ring. A packet takes two at least: headers and payload.
    pub transmit_ring: usize,
    /// Descriptors, and so buffers, of each receive ring.
    pub receive_ring: usize,
    /// A tick of the engine's delay timer in nanoseconds: 125 of its clocks.
    pub delay_tick_ns: u32,
    /// How often a queue is to be looked at though nothing interrupts, in case an interrupt was lost or the engine stands
    /// still; `None` where that cannot happen or somebody else sees to it.
    pub look_every: Option<Duration>,
}

impl Settings {
    /// One queue with rings of 256 (what the engine's manual recommends with checksums in hardware), an MTU of 1,500 bytes, a clock of
    /// 100 MHz, a look every second.
    pub fn new(mac: MacAddr) -> Self {
        Settings {
            mac,
            mtu: 1_500,
            queues: 1,
            transmit_ring: 256,
            receive_ring: 256,
            delay_tick_ns: 1_250,
            look_every: Some(Duration::from_secs(1)),
        }
    }

    /// Bytes of the longest frame: what a buffer has to hold.
    pub fn longest(&self) -> usize {
        self.mtu.saturating_add(ETHERNET)
    }

    /// Bytes of descriptor memory that [`open`] needs.
    pub fn memory_needed(&self) -> usize {
        let descriptors = self.transmit_ring.saturating_add(self.receive_ring).saturating_mul(self.queues);
        descriptors.saturating_add(1).saturating_mul(descriptor::SIZE as usize)
    }
}

/// Why a device does not open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenError {
    /// A setting is out of range.
    Setting {
        /// Which.
        name: &'static str,
        /// What it is.
        have: usize,
        /// The least that it may be.
        least: usize,
        /// The most that it may be.
        most: usize,
    },
    /// The descriptor memory does not begin at a multiple of 64.
    Unaligned(u64),
    /// The descriptor memory is too small.
    Memory {
        /// Bytes given.
        have: usize,
        /// Bytes needed.
        need: usize,
    },
    /// A channel does not come out of its reset.
    Stuck {
        /// Of which direction.
        direction: Direction,
        /// Its number, from 1.
        channel: u32,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Setting { name, have, least, most } => {
                write!(f, "{name} is {have}: expected {least} to {most}")
            }
            OpenError::Unaligned(address) => {
                write!(f, "descriptor memory at {address:#x}: expected a multiple of {}", descriptor::SIZE)
            }
            OpenError::Memory { have, need } => {
                write!(f, "descriptor memory of {have} bytes: these rings need {need}")
            }
            OpenError::Stuck { direction, channel } => {
                write!(f, "{direction:?} channel {channel} does not come out of its reset")
            }
        }
    }
}

impl core::error::Error for OpenError {}

/// Resets the engine, lays the rings out in descriptor memory, and sets up the MAC.
///
/// Descriptor memory is `memory_len` bytes at bus address `memory`, uncached, and the driver's alone for as long as control
/// or a queue exists. Queues receive nothing before they are started.
pub fn open<P: Platform>(
    board: P,
    memory: u64,
    memory_len: usize,
    settings: &Settings,
) -> Result<(Control<P>, Vec<StoppedQueue<P>>), OpenError> {
    check(memory, memory_len, settings)?;
    let numbers = 1..=settings.queues as u32;
    for direction in [Direction::Transmit, Direction::Receive] {
        for channel in numbers.clone() {
            if !Channel::new(board.clone(), direction, channel).reset() {
                return Err(OpenError::Stuck { direction, channel });
            }
        }
        let all = (1 << settings.queues) - 1;
        board.write(direction.base() + common::ENABLE, all);
        board.write(direction.base() + common::CONTROL, common::RUN);
    }
    let mut free = memory + descriptor::SIZE;
    let mut ring = |len: usize| {
        let base = free;
        free += len as u64 * descriptor::SIZE;
        (base, len)
    };
    let queues = (0..settings.queues as u16)
        .map(|index| {
            let layout = Layout {
                index,
                notes: memory,
                transmit: ring(settings.transmit_ring),
                receive: ring(settings.receive_ring),
                longest: settings.longest(),
                delay_tick_ns: settings.delay_tick_ns,
                look_every: settings.look_every,
            };
            StoppedQueue::new(board.clone(), layout)
        })
        .collect();
    Ok((Control::new(board, settings.mac, settings.mtu, settings.queues, memory), queues))
}

fn check(memory: u64, memory_len: usize, settings: &Settings) -> Result<(), OpenError> {
    for (name, have, range) in [
        ("mtu", settings.mtu, MTU),
        ("queues", settings.queues, 1..=MAX_CHANNELS),
        ("transmit_ring", settings.transmit_ring, RING),
        ("receive_ring", settings.receive_ring, RING),
        ("delay_tick_ns", settings.delay_tick_ns as usize, 1..=1_000_000),
    ] {
        if !range.contains(&have) {
            return Err(OpenError::Setting { name, have, least: *range.start(), most: *range.end() });
        }
    }
    if !memory.is_multiple_of(descriptor::SIZE) {
        return Err(OpenError::Unaligned(memory));
    }
    let need = settings.memory_needed();
    if memory_len < need {
        return Err(OpenError::Memory { have: memory_len, need });
    }
    Ok(())
}
