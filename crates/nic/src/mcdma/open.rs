//! From a board and some memory to a control and queues.

use crate::bus::{Bus, Platform};
use crate::mcdma::channel::Direction;
use crate::mcdma::control::Control;
use crate::mcdma::descriptor;
use crate::mcdma::nic_regs::register as nic;
use crate::mcdma::queue::{Layout, StoppedQueue};
use crate::mcdma::regs::register;
use crate::mcdma::settings::Settings;
use crate::mcdma::words::AppWords;
use crate::meta::MacAddr;
use crate::tx::MAX_CHUNKS;
use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeInclusive;

pub use crate::mcdma::settings::MAX_QUEUES;

/// Descriptors of one ring: room for a packet of the most pieces; more than the link needs at any distance.
const RING: RangeInclusive<usize> = 2 + MAX_CHUNKS..=4_096;
/// How long a frame waits for a descriptor where frames of other queues are behind it, each of a queue that has none anew: a look
/// ahead takes less, and 10 Gb/s bring 2.5 kB meanwhile.
const PATIENCE_NS: u64 = 2_000;
/// MTUs: the smallest of IPv4, and the largest jumbo frame.
const MTU: RangeInclusive<usize> = 68..=9_000;

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
    /// The channels of a direction do not come out of their reset.
    Stuck(Direction),
    /// The hardware has fewer queues.
    Queues {
        /// Asked for.
        want: usize,
        /// Built in.
        have: usize,
    },
    /// The hardware names a layout of its app words that nobody knows.
    Words(u32),
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
            OpenError::Stuck(direction) => {
                write!(f, "{direction:?} channels do not come out of their reset")
            }
            OpenError::Queues { want, have } => {
                write!(f, "{want} queues: the hardware has {have}")
            }
            OpenError::Words(layout) => write!(f, "app words of layout {layout}: expected 0 or 1"),
        }
    }
}

impl core::error::Error for OpenError {}

/// What hardware says of itself, before it is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BuiltIn {
    /// Queues; 0 where it does not say.
    pub queues: usize,
    /// Whether it spreads frames over its queues by their hash.
    pub has_hash: bool,
    /// The address that it was given by whoever had it before, if any.
    pub mac: Option<MacAddr>,
}

/// Asks the hardware what it is.
pub fn built_in(board: &impl Bus) -> BuiltIn {
    let [a, b, c, d] = board.read(nic::ADDRESS_LOW).to_le_bytes();
    let [e, f, ..] = board.read(nic::ADDRESS_HIGH).to_le_bytes();
    let mac = MacAddr([a, b, c, d, e, f]);
    let is_one = mac.0 != [0; 6] && mac.0[0] & 1 == 0;
    BuiltIn {
        queues: (board.read(register::DMA_INFO) & register::DMA_INFO_QUEUES) as usize,
        has_hash: board.read(nic::FEATURES) & nic::FEATURES_RSS != 0,
        mac: is_one.then_some(mac),
    }
}

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
    let info = board.read(register::DMA_INFO);
    let have = (info & register::DMA_INFO_QUEUES) as usize;
    // PG288 has no such register, and reads zero.
    if have != 0 && have < settings.queues {
        return Err(OpenError::Queues { want: settings.queues, have });
    }
    let words = match (settings.words, (info & register::DMA_INFO_APP_LAYOUT) >> 4) {
        (Some(words), _) => words,
        (None, register::DMA_INFO_APP_LAYOUT_SEED) => AppWords::TenGig,
        (None, register::DMA_INFO_APP_LAYOUT_AXIENET) => AppWords::AxiEthernet,
        (None, layout) => return Err(OpenError::Words(layout)),
    };
    for direction in Direction::BOTH {
        if !direction.reset(&board) {
            return Err(OpenError::Stuck(direction));
        }
        direction.run(&board, settings.queues);
    }
    if info != 0 {
        board.write(register::S2MM_PATIENCE, patience(settings));
    }
    let features = board.read(nic::FEATURES);
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
                words,
                seeding: settings.seeding,
                features,
            };
            StoppedQueue::new(board.clone(), layout)
        })
        .collect();
    Ok((Control::new(board, settings, features, memory), queues))
}

/// For how long frames wait for a descriptor: it may be there and not be read yet, as after a burst of short frames. The hardware
/// drops them at once unless it is told. One queue holds up nobody else; what its FIFO has no room for is dropped and counted there.
fn patience(settings: &Settings) -> u32 {
    if settings.queues == 1 {
        return register::S2MM_PATIENCE_FOREVER;
    }
    // So many times 64 clocks; a tick of the delay timer is 125 of them.
    let units = (PATIENCE_NS * 125).div_ceil(64 * u64::from(settings.delay_tick_ns));
    units.min(register::S2MM_PATIENCE_WAIT.into()) as u32
}

fn check(memory: u64, memory_len: usize, settings: &Settings) -> Result<(), OpenError> {
    for (name, have, range) in [
        ("mtu", settings.mtu, MTU),
        ("queues", settings.queues, 1..=MAX_QUEUES),
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
