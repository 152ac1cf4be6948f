//! Why a device does not open.

use crate::gem::regs::FIRST_GEM;
use crate::gem::settings::{ALIGN, RING};
use core::fmt;

/// Why a device does not open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenError {
    /// No GEM answers: `revision_reg` reads so.
    NoGem(u32),
    /// The ring's length is not from 32 to 4,096.
    Length(u16),
    /// Other than so many queues cannot be opened: the device has `have`, the driver 2, and
    /// [`Gem::open`](crate::gem::Gem::open) 1.
    Queues {
        /// Asked for.
        want: usize,
        /// What there is.
        have: usize,
    },
    /// The descriptor memory does not begin at a multiple of 64, or is too small.
    Memory {
        /// Where it lies.
        base: u64,
        /// Bytes given.
        have: usize,
        /// Bytes needed.
        need: usize,
    },
    /// The descriptor memory crosses a multiple of 4 GiB, or lies beyond the first where the part has addresses of 32 bits.
    Half {
        /// Where it lies.
        base: u64,
        /// Whether addresses have 64 bits.
        is_wide: bool,
    },
    /// No PHY answers at this address, or at any.
    NoPhy(Option<u8>),
    /// No address was given, and the device has none.
    NoAddress,
    /// A pool's buffers are too small or too few.
    Pool {
        /// Which: "receive" or "header".
        name: &'static str,
        /// Buffers and bytes of each that are needed.
        need: (usize, usize),
    },
    /// The device does not reach the buffers of this pool.
    Unreachable {
        /// Which: "receive" or "header".
        name: &'static str,
    },
    /// The buffers of this pool lie beyond 4 GiB, and the part has addresses of 32 bits.
    Beyond {
        /// Which: "receive" or "header".
        name: &'static str,
        /// Where one lies.
        address: u64,
    },
    /// The buffers of this pool lie where the device cannot be told.
    Unaligned {
        /// Which: "receive" or "header".
        name: &'static str,
        /// Where one lies.
        address: u64,
        /// What it must be a multiple of.
        align: u64,
    },
    /// The device does not take the rings of this queue.
    Stuck {
        /// Which.
        queue: u16,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::NoGem(value) => write!(
                f,
                "no GEM there: revision_reg (0xfc) is {value:#010x}, expected module {FIRST_GEM} or later in bits 27:16"
            ),
            OpenError::Length(len) => {
                write!(f, "a ring of {len} descriptors: expected {} to {}", RING.start(), RING.end())
            }
            OpenError::Queues { want, have } => write!(f, "{want} queues: expected 1 to {have}"),
            OpenError::Memory { base, have, need } => {
                write!(
                    f,
                    "descriptor memory of {have} bytes at {base:#x}: expected {need} at a multiple of {ALIGN}"
                )
            }
            OpenError::Half { base, is_wide: true } => {
                write!(f, "descriptor memory at {base:#x} crosses a multiple of 4 GiB")
            }
            OpenError::Half { base, is_wide: false } => {
                write!(f, "descriptor memory at {base:#x}: this part has addresses of 32 bits")
            }
            OpenError::NoPhy(Some(address)) => write!(f, "no PHY answers at address {address}"),
            OpenError::NoPhy(None) => f.write_str("no PHY answers at addresses 0 to 31"),
            OpenError::NoAddress => f.write_str("no MAC address was given, and the device has none"),
            OpenError::Pool { name, need: (count, size) } => {
                write!(f, "{name} pool: expected {count} buffers of {size} bytes")
            }
            OpenError::Unreachable { name } => {
                write!(
                    f,
                    "{name} pool: the device does not reach its buffers (Pool::over makes them out of memory that it does)"
                )
            }
            OpenError::Beyond { name, address } => {
                write!(f, "{name} pool: a buffer at {address:#x}, and this part has addresses of 32 bits")
            }
            OpenError::Unaligned { name, address, align } => {
                write!(f, "{name} pool: a buffer at {address:#x}, expected a multiple of {align}")
            }
            OpenError::Stuck { queue } => write!(f, "the device does not take the rings of queue {queue}"),
        }
    }
}

impl core::error::Error for OpenError {}
