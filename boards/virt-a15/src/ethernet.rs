//! The network device of this board: virtio, in one of 32 slots.

use crate::SETTINGS;
use crate::interrupts::{self, Interrupt};
use crate::registers::{read, read8, read16, write};
use crate::system::Opened;
use core::cell::Cell;
use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering, fence};
use critical_section::Mutex;
use linerate_nic::virtio::{self, Transport, Virtio};
use linerate_nic::{Bus, Capabilities, Coherent, Dma, MacAddr, Pool};

/// Where the slots lie, and the interrupt of the first.
const FIRST: usize = 0x0a00_0000;
const SIZE: usize = 0x200;
const SLOTS: usize = 32;
const FIRST_INTERRUPT: u32 = 48;

/// Descriptors of the rings: as many frames as may wait in the device, and packets of some pieces each.
const RECEIVE_RING: u16 = 512;
const TRANSMIT_RING: u16 = 256;
/// Bytes of a receive buffer: a segment fills most of one, a coalesced frame takes sixteen of the large ones.
const RECEIVE_BUFFER: usize = if SETTINGS.offloads { 4_096 } else { 2_048 };
/// Bytes of a buffer for headers: those of a header block behind the device's own.
const HEADER_BUFFER: usize = 192;
/// Frames taken in and packets handed over at once.
const BATCH: usize = 64;

/// Memory of the rings, which the device reads and writes: words of it are atomic, as they are shared with another machine.
#[repr(align(64))]
struct RingMemory([AtomicU32; RING_WORDS]);
const RING_WORDS: usize = 8_192;
static RINGS: RingMemory = RingMemory([const { AtomicU32::new(0) }; RING_WORDS]);

/// The slot that the device is in, once it is open.
static OPEN: Mutex<Cell<Option<virtio::Interrupt<Slot>>>> = Mutex::new(Cell::new(None));

/// The interface.
pub type Device = Virtio<Slot>;

/// A slot, by its number.
#[derive(Clone, Copy, Debug)]
pub struct Slot(usize);

impl Slot {
    fn address(self, register: u32) -> usize {
        FIRST + SIZE * self.0 + register as usize
    }
}

/// The word of ring memory at an address.
fn word(address: u64) -> &'static AtomicU32 {
    // The driver was given this memory, and finds nothing beyond it.
    &RINGS.0[(address - base()) as usize / 4]
}

/// Where ring memory lies; the processor's addresses are the device's.
fn base() -> u64 {
    RINGS.0.as_ptr().addr() as u64
}

impl Bus for Slot {
    #[inline]
    fn read(&self, register: u32) -> u32 {
        read(self.address(register))
    }

    #[inline]
    fn write(&self, register: u32, value: u32) {
        fence(Ordering::SeqCst);
        write(self.address(register), value);
    }

    #[inline]
    fn load(&self, address: u64) -> u32 {
        word(address).load(Ordering::Acquire)
    }

    #[inline]
    fn store(&self, address: u64, value: u32) {
        word(address).store(value, Ordering::Relaxed);
    }
}

impl Transport for Slot {
    fn read8(&self, register: u32) -> u8 {
        read8(self.address(register))
    }

    fn read16(&self, register: u32) -> u16 {
        read16(self.address(register))
    }
}

/// The device is another program on the same memory: it sees the caches.
impl Dma for Slot {
    #[inline]
    fn bus_address(&self, bytes: &[u8]) -> Option<u64> {
        Coherent.bus_address(bytes)
    }

    #[inline]
    fn clean(&self, bytes: &[u8]) {
        Coherent.clean(bytes);
    }

    #[inline]
    fn invalidate(&self, bytes: &mut [u8]) {
        Coherent.invalidate(bytes);
    }
}

/// Why there is no interface.
#[derive(Debug)]
pub enum OpenError {
    /// No slot has a network device.
    Empty,
    /// The device cannot be used.
    Device(virtio::OpenError),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Empty => {
                write!(f, "none of {SLOTS} slots has a network device (QEMU: -device virtio-net-device)")
            }
            OpenError::Device(error) => error.fmt(f),
        }
    }
}

/// The interface and the pool that it receives into; once.
pub fn open() -> Result<Opened<Device>, OpenError> {
    let slot = (0..SLOTS).map(Slot).find(virtio::is_network).ok_or(OpenError::Empty)?;
    let settings = virtio::Settings {
        mac: Some(MacAddr(SETTINGS.mac)),
        receive_ring: RECEIVE_RING,
        transmit_ring: TRANSMIT_RING,
        offloads: if SETTINGS.offloads { Capabilities::ALL } else { Capabilities::NONE },
    };
    let receive = Pool::new(SETTINGS.receive_buffers, RECEIVE_BUFFER);
    let headers = Pool::new(TRANSMIT_RING.into(), HEADER_BUFFER);
    let memory = (base(), size_of::<RingMemory>());
    let device =
        Virtio::open(slot, memory, receive.clone(), &headers, &settings).map_err(OpenError::Device)?;
    critical_section::with(|cs| OPEN.borrow(cs).set(Some(device.interrupt())));
    interrupts::enable(Interrupt(FIRST_INTERRUPT + slot.0 as u32));
    Ok(Opened { device, receive, queue: RECEIVE_RING.into(), batch: BATCH })
}

/// Whether an interrupt is the interface's.
pub fn is_mine(interrupt: Interrupt) -> bool {
    (FIRST_INTERRUPT..FIRST_INTERRUPT + SLOTS as u32).contains(&interrupt.0)
}

/// What the interrupt handler does with the interface.
pub fn hold_interrupts() {
    if let Some(interrupt) = critical_section::with(|cs| OPEN.borrow(cs).get()) {
        // The loop is woken all the same: it looks at everything.
        let _had_a_cause = interrupt.handle();
    }
}
