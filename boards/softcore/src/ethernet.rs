//! The network device of this board: the project's own interface.

use crate::caches::{self, BUFFER};
use crate::clock::CLOCK_NS;
use crate::registers;
use crate::{SETTINGS, straps};
use alloc::vec;
use core::fmt;
use core::sync::atomic::{Ordering, compiler_fence};
use linerate_firmware::Counting;
use linerate_nic::mcdma::nic_regs::register;
use linerate_nic::mcdma::regs::{mm2s_ch as channel, register as register_of_channel};
use linerate_nic::mcdma::{self, Control, Queue, Settings};
use linerate_nic::{
    Bus, Capabilities, Device, DeviceError, Dma, Joined, MacAddr, Pool, QueuePair, RegionError, pass_on,
};
use linerate_wire::figures::Figures;

const BASE: usize = 0xf000_0000;
/// The same memory, where the data cache does not keep it.
pub const UNCACHED: usize = 0x8000_0000;

/// Descriptors of the rings.
const RECEIVE_RING: usize = 512;
const TRANSMIT_RING: usize = 128;
/// Bytes of a buffer of the transmit pool: headers, and what is copied.
const HEADER_BUFFER: usize = 1_536;
const HEADER_BUFFERS: usize = 64;
/// Frames taken in and packets handed over at once.
const BATCH: usize = 32;
/// A tick of the engine's delay timer: 125 clocks.
const TICK_NS: u32 = 125 * CLOCK_NS;
/// Clocks that a segment waits for others to join it: 32 full frames at 1 Gb/s. What ends a write has PSH and waits for nothing.
const JOIN_CLOCKS: u32 = 400_000 / CLOCK_NS;
/// When packets that have left do: as many, or so many ticks after the last. Whoever waits for room in the ring waits for them, others
/// find them on their way.
const LEFT: u32 = 32;
const LEFT_TICKS: u32 = 80;
/// Looks at a reset of the engine.
const RESET_LOOKS: usize = 10_000;
/// What buffers begin at multiples of: the interface wants it, and it is two lines of the cache.
const ALIGN: usize = 64;

/// Memory of the rings: touched where the cache does not keep it, and nowhere else.
#[repr(align(64))]
struct RingMemory(#[allow(dead_code)] [u32; RING_WORDS]);
const RING_WORDS: usize = (RECEIVE_RING + TRANSMIT_RING + 1) * 16;
// SAFETY: memory as any other; what it begins as does not matter.
#[unsafe(link_section = ".later")]
static RINGS: RingMemory = RingMemory([0; RING_WORDS]);

/// The interface's registers and memory.
#[derive(Clone, Copy, Debug)]
pub struct Hardware;

impl Bus for Hardware {
    #[inline]
    fn read(&self, register: u32) -> u32 {
        registers::read(BASE + register as usize)
    }

    #[inline]
    fn write(&self, register: u32, value: u32) {
        // An access to registers waits for all stores before it.
        compiler_fence(Ordering::SeqCst);
        registers::write(BASE + register as usize, value);
    }

    #[inline]
    fn load(&self, address: u64) -> u32 {
        let value = registers::read(UNCACHED | address as usize);
        compiler_fence(Ordering::SeqCst);
        value
    }

    #[inline]
    fn store(&self, address: u64, value: u32) {
        compiler_fence(Ordering::SeqCst);
        registers::write(UNCACHED | address as usize, value);
    }
}

/// The device does not see the cache.
impl Dma for Hardware {
    #[inline]
    fn bus_address(&self, bytes: &[u8]) -> Option<u64> {
        Some(bytes.as_ptr().addr() as u64)
    }

    /// The cache writes through: memory has it.
    #[inline]
    fn clean(&self, bytes: &[u8]) {
        core::hint::black_box(bytes);
        compiler_fence(Ordering::SeqCst);
    }

    #[inline]
    fn give(&self, bytes: &mut [u8]) {
        caches::give(bytes);
    }

    #[inline]
    fn invalidate(&self, bytes: &mut [u8]) {
        caches::invalidate(bytes);
    }
}

/// The interface, with as many of its offloads as may be used.
pub struct Interface {
    device: Joined<Control<Hardware>, Queue<Hardware>>,
    /// Whether its offloads may be used; gathering is none of them.
    uses_offloads: bool,
}

impl Device for Interface {
    pass_on!(device: mac, mtu, enable, link, set_filter, queues, set_steering);

    fn capabilities(&self) -> Capabilities {
        let all = self.device.capabilities();
        if self.uses_offloads { all } else { Capabilities { gather: all.gather, ..Capabilities::NONE } }
    }
}

impl QueuePair for Interface {
    pass_on!(device: all of QueuePair);
}

impl Counting for Interface {
    fn count(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.device.queue.stats().figures().for_each(|(figure, value)| visit(figure.name, value));
        visit("cache_emptied", caches::emptied().into());
    }
}

/// Why there is no interface.
#[derive(Debug)]
pub enum OpenError {
    /// The device cannot be used.
    Device(mcdma::OpenError),
    /// Its queue does not start.
    Start(mcdma::StartError),
    /// No receive buffers.
    Buffers(RegionError),
    /// Its filter cannot be set.
    Filter(DeviceError),
    /// It has no queue.
    NoQueue,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Device(error) => write!(f, "the interface at {BASE:#x}: {error}"),
            OpenError::Start(error) => write!(f, "the interface's queue: {error}"),
            OpenError::Buffers(error) => write!(f, "receive buffers: {error}"),
            OpenError::Filter(error) => write!(f, "the interface's filter: {error}"),
            OpenError::NoQueue => f.write_str("the interface has no queue"),
        }
    }
}

/// An interface that was opened.
pub struct Opened {
    /// The interface.
    pub device: Interface,
    /// What hears of its interrupt.
    pub interrupt: mcdma::Interrupt<Hardware>,
    /// The pool that it receives into.
    pub receive: Pool,
    /// Frames that wait in it beyond the pool's buffers.
    pub queue: usize,
    /// Frames taken in at once, and packets on their way to it.
    pub batch: usize,
}

/// Has packets that have left interrupt less often. A reset of the channel, after a failure, forgets it.
fn pace_transmit() {
    let control = register_of_channel::MM2S_CH_BASE + channel::CR;
    let rest = Hardware.read(control) & !(channel::CR_THRESHOLD | channel::CR_DELAY);
    Hardware
        .write(control, rest | LEFT << channel::CR_THRESHOLD_SHIFT | LEFT_TICKS << channel::CR_DELAY_SHIFT);
}

/// Resets the interface's engine, so that it touches memory no more.
pub fn silence() {
    for (control, reset) in [
        (register_of_channel::MM2S_CCR, register_of_channel::MM2S_CCR_RESET),
        (register_of_channel::S2MM_CCR, register_of_channel::S2MM_CCR_RESET),
    ] {
        Hardware.write(control, reset);
        // It finishes what it has begun, some hundred clocks. One that does not is reset again by the start, which says so.
        let _is_over = (0..RESET_LOOKS).any(|_| Hardware.read(control) & reset == 0);
    }
}

/// A pool of so many receive buffers; once.
pub fn buffers(count: usize) -> Result<Pool, OpenError> {
    // No buffer shares a line of the cache with anything else.
    let region = vec![0; count * BUFFER + ALIGN].leak();
    let aligned = region.as_ptr().addr().next_multiple_of(ALIGN);
    let pool = Pool::over(region, BUFFER, ALIGN).map_err(OpenError::Buffers)?;
    caches::start(aligned);
    Ok(pool)
}

/// Where the memory of the rings is, and its bytes, which are zero; once.
pub fn rings() -> (u64, usize) {
    let rings = (&raw const RINGS).addr() as u64;
    for word in 0..RING_WORDS as u64 {
        Hardware.store(rings + 4 * word, 0);
    }
    (rings, 4 * RING_WORDS)
}

/// The interface and the pool that it receives into; once.
pub fn open() -> Result<Opened, OpenError> {
    let settings = Settings {
        receive_ring: RECEIVE_RING,
        transmit_ring: TRANSMIT_RING,
        delay_tick_ns: TICK_NS,
        ..Settings::new(MacAddr(SETTINGS.mac))
    };
    let receive = buffers(SETTINGS.receive_buffers)?;
    let transmit = Pool::new(HEADER_BUFFERS, HEADER_BUFFER);
    let (rings, len) = rings();
    let (control, queues) = mcdma::open(Hardware, rings, len, &settings).map_err(OpenError::Device)?;
    let stopped = queues.into_iter().next().ok_or(OpenError::NoQueue)?;
    let interrupt = stopped.interrupt();
    let queue = stopped.start(receive.clone(), transmit).map_err(OpenError::Start)?;
    pace_transmit();
    Hardware.write(register::JOIN_TIMER, JOIN_CLOCKS);
    let uses_offloads = SETTINGS.offloads && !straps::offloads_are_off();
    let device = Interface { device: Joined { control, queue }, uses_offloads };
    Ok(Opened { device, interrupt, receive, queue: RECEIVE_RING, batch: BATCH })
}
