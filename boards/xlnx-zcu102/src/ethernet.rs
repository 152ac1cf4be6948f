//! The network device of this board: the fourth of the processing system's Ethernet controllers.

use crate::SETTINGS;
use crate::processor::{self, LINE};
use crate::registers;
use alloc::vec;
use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering};
use linerate_nic::gem::settings::RECEIVE_BUFFER;
use linerate_nic::gem::{self, Gem};
use linerate_nic::{Bus, Capabilities, Dma, MacAddr, Pool, RegionError};

const BASE: usize = 0xff0e_0000;

/// Descriptors of the rings: as many frames as may wait in the device, and packets of two pieces or three.
const RECEIVE_RING: u16 = 512;
const TRANSMIT_RING: u16 = 512;
/// Bytes of a buffer for headers: those of a header block.
const HEADER_BUFFER: usize = 192;
/// Frames taken in and packets handed over at once.
const BATCH: usize = 64;

/// What is asked of the device. The chip also fills in checksums over IPv6; the emulator says so and does not.
const OFFLOADS: Capabilities = Capabilities { tx_checksum6: false, ..Capabilities::ALL };

/// Memory of the rings, which the device reads and writes past the caches: words of it are atomic, as they are shared with
/// another machine.
#[repr(align(64))]
struct RingMemory([AtomicU32; RING_WORDS]);
const RING_WORDS: usize = 8_192;
// SAFETY: this section is memory as any other, without a cache, and begins as zero.
#[unsafe(link_section = ".uncached")]
static RINGS: RingMemory = RingMemory([const { AtomicU32::new(0) }; RING_WORDS]);

/// The interface.
pub type Device = Gem<Controller>;
/// What hears of its interrupt.
pub type Interrupt = gem::Interrupt<Controller>;

/// The controller's registers and memory.
#[derive(Clone, Copy, Debug)]
pub struct Controller;

/// Where ring memory lies; the processor's addresses are the device's.
fn base() -> u64 {
    RINGS.0.as_ptr().addr() as u64
}

/// The word of ring memory at an address.
#[inline]
fn word(address: u64) -> &'static AtomicU32 {
    // The driver was given this memory, and finds nothing beyond it.
    &RINGS.0[(address - base()) as usize / 4]
}

impl Bus for Controller {
    #[inline]
    fn read(&self, register: u32) -> u32 {
        registers::read(BASE + register as usize)
    }

    #[inline]
    fn write(&self, register: u32, value: u32) {
        processor::barrier();
        registers::write(BASE + register as usize, value);
    }

    #[inline]
    fn load(&self, address: u64) -> u32 {
        word(address).load(Ordering::Acquire)
    }

    #[inline]
    fn store(&self, address: u64, value: u32) {
        // The device takes the last word of a descriptor for the end of the others.
        word(address).store(value, Ordering::Release);
    }
}

/// The device does not see the caches.
impl Dma for Controller {
    #[inline]
    fn bus_address(&self, bytes: &[u8]) -> Option<u64> {
        Some(bytes.as_ptr().addr() as u64)
    }

    #[inline]
    fn clean(&self, bytes: &[u8]) {
        processor::clean(bytes);
    }

    #[inline]
    fn invalidate(&self, bytes: &mut [u8]) {
        processor::invalidate(bytes);
    }
}

/// Why there is no interface.
#[derive(Debug)]
pub enum OpenError {
    /// The device cannot be used.
    Device(gem::OpenError),
    /// No receive buffers.
    Buffers(RegionError),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Device(error) => write!(f, "the Ethernet controller at {BASE:#x}: {error}"),
            OpenError::Buffers(error) => write!(f, "receive buffers: {error}"),
        }
    }
}

/// An interface that was opened.
pub struct Opened {
    /// The interface.
    pub device: Device,
    /// The pool that it receives into.
    pub receive: Pool,
    /// Frames that wait in it beyond the pool's buffers.
    pub queue: usize,
    /// Frames taken in at once, and packets on their way to it.
    pub batch: usize,
}

/// The interface and the pool that it receives into; once.
pub fn open() -> Result<Opened, OpenError> {
    let settings = gem::Settings {
        mac: Some(MacAddr(SETTINGS.mac)),
        receive_ring: RECEIVE_RING,
        transmit_ring: TRANSMIT_RING,
        offloads: if SETTINGS.offloads { OFFLOADS } else { Capabilities::NONE },
        ..gem::Settings::default()
    };
    // No buffer shares a line of the cache with anything else.
    let region = vec![0; SETTINGS.receive_buffers * RECEIVE_BUFFER + LINE].leak();
    let receive = Pool::over(region, RECEIVE_BUFFER, LINE).map_err(OpenError::Buffers)?;
    let headers = Pool::new(TRANSMIT_RING.into(), HEADER_BUFFER);
    let memory = (base(), size_of::<RingMemory>());
    let device =
        Gem::open(Controller, memory, receive.clone(), &headers, &settings).map_err(OpenError::Device)?;
    Ok(Opened { device, receive, queue: RECEIVE_RING.into(), batch: BATCH })
}
