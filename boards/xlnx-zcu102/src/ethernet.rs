//! The network device of this board: the fourth of the processing system's Ethernet controllers.

use crate::SETTINGS;
use crate::processor::{self, LINE};
use crate::{registers, rgmii};
use alloc::vec;
use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use linerate_firmware::Counting;
use linerate_firmware::exchange::NoQueue;
pub use linerate_nic::gem::settings::RECEIVE_BUFFER;
use linerate_nic::gem::{self, Condition, Gem, Queue, Screener, ScreenerCounts, ScreenerError, StoppedQueue};
use linerate_nic::{
    Bus, Capabilities, DeviceError, Dma, Filter, LinkState, MacAddr, Member, Pool, QueuePair, RegionError,
    RxBatch, TxQueue, TxToken,
};
use linerate_wire::figures::Figures;
use linerate_wire::units::{Instant, Rate};

const BASE: usize = 0xff0e_0000;

/// Descriptors of the rings: as many frames as may wait in the device, and packets of two pieces or three.
const RECEIVE_RING: u16 = 512;
const TRANSMIT_RING: u16 = 512;
/// Bytes of a buffer for headers: those of a header block.
const HEADER_BUFFER: usize = 192;
/// How often the second queue is looked at.
const SECOND_POLL: Duration = Duration::from_millis(1);
/// Frames taken in and packets handed over at once.
pub const BATCH: usize = 64;

/// What is asked of the device. The chip also fills in checksums over IPv6; the emulator says so and does not.
const OFFLOADS: Capabilities = Capabilities { tx_checksum6: false, ..Capabilities::ALL };

/// Memory of the rings, which the device reads and writes past the caches: words of it are atomic, as they are shared with
/// another machine.
#[repr(align(64))]
struct RingMemory([AtomicU32; RING_WORDS]);
const RING_WORDS: usize = 20_480;
// SAFETY: this section is memory as any other, without a cache, and begins as zero.
#[unsafe(link_section = ".uncached")]
static RINGS: RingMemory = RingMemory([const { AtomicU32::new(0) }; RING_WORDS]);

/// The interface, as one of the cores has it.
pub enum Device {
    /// The first core drives it.
    First(Gem<Controller>),
    /// The second core has the second queue.
    Second(Member<Queue<Controller>>),
    /// Another core sends and receives by way of the first.
    None(NoQueue),
}

/// Asks whichever it is.
macro_rules! ask {
    ($device:ident, $it:ident => $what:expr) => {
        match $device {
            Device::First($it) => $what,
            Device::Second($it) => $what,
            Device::None($it) => $what,
        }
    };
}

impl QueuePair for Device {
    fn enabled(&self) -> Capabilities {
        ask!(self, it => it.enabled())
    }

    #[inline]
    fn receive(&mut self, now: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError> {
        ask!(self, it => it.receive(now, batch))
    }

    #[inline]
    fn transmit(&mut self, now: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError> {
        ask!(self, it => it.transmit(now, queue))
    }

    #[inline]
    fn poll_completion(&mut self) -> Option<TxToken> {
        ask!(self, it => it.poll_completion())
    }

    fn arm(&mut self, now: Instant) -> bool {
        ask!(self, it => it.arm(now))
    }

    fn waiting(&mut self) -> u32 {
        ask!(self, it => it.waiting())
    }

    fn poll_timeout(&self) -> Option<Instant> {
        ask!(self, it => it.poll_timeout())
    }
}

impl linerate_nic::Device for Device {
    fn mac(&self) -> MacAddr {
        ask!(self, it => it.mac())
    }

    fn mtu(&self) -> usize {
        ask!(self, it => it.mtu())
    }

    fn capabilities(&self) -> Capabilities {
        ask!(self, it => it.capabilities())
    }

    fn enable(&mut self, wanted: Capabilities) -> Result<(), DeviceError> {
        ask!(self, it => it.enable(wanted))
    }

    fn link(&self) -> LinkState {
        ask!(self, it => it.link())
    }

    fn set_filter(&mut self, filter: &Filter<'_>) -> Result<(), DeviceError> {
        ask!(self, it => it.set_filter(filter))
    }

    fn queues(&self) -> usize {
        ask!(self, it => it.queues())
    }
}

impl Counting for Device {
    fn count(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        match self {
            Device::First(device) => device.count(visit),
            Device::Second(device) => {
                device.queue.stats().figures().for_each(|(figure, value)| visit(figure.name, value));
            }
            Device::None(_) => {}
        }
    }
}

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

    fn set_speed(&self, speed: Rate) {
        rgmii::set_speed(speed);
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
    /// The second queue cannot be steered to.
    Screener(ScreenerError),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Device(error) => write!(f, "the Ethernet controller at {BASE:#x}: {error}"),
            OpenError::Buffers(error) => write!(f, "receive buffers: {error}"),
            OpenError::Screener(error) => write!(f, "the Ethernet controller's second queue: {error}"),
        }
    }
}

/// An interface that was opened.
pub struct Opened {
    /// The interface, with its first queue.
    pub device: Gem<Controller>,
    /// The second queue, where there is somebody for it.
    pub second: Option<StoppedQueue<Controller>>,
    /// The pool that the first receives into.
    pub receive: Pool,
}

/// Frames that wait in a queue beyond its pool's buffers.
pub const QUEUE: usize = RECEIVE_RING as usize;

/// The interface, for so many cores, and the pool that its first queue receives into; once.
///
/// With several cores the second queue gets what the hardware can tell to be the second core's: datagrams to the port that iperf3 has
/// there. (TCP's ports it compares as well, but the emulator compares the first byte twice.)
pub fn open(cores: usize) -> Result<Opened, OpenError> {
    let settings = gem::Settings {
        mac: Some(MacAddr(SETTINGS.mac)),
        queues: cores.min(2),
        receive_ring: RECEIVE_RING,
        transmit_ring: TRANSMIT_RING,
        offloads: if SETTINGS.offloads { OFFLOADS } else { Capabilities::NONE },
        // The emulator's reaches no processor, and the chip's is the first one's.
        priority_poll: Some(SECOND_POLL),
        screeners: Some(ScreenerCounts::ZYNQMP),
        ..gem::Settings::default()
    };
    let memory = (base(), size_of::<RingMemory>());
    let (mut control, queues) = gem::open(Controller, memory, &settings).map_err(OpenError::Device)?;
    let mut queues = queues.into_iter();
    let none = OpenError::Device(gem::OpenError::Queues { want: 1, have: 0 });
    let (first, second) = (queues.next().ok_or(none)?, queues.next());
    if let Some(port) = SETTINGS.iperf3_by_core.filter(|_| second.is_some()) {
        let of_second = Screener { condition: Condition::UdpPort(port + 1), queue: 1 };
        control.set_screeners(&[of_second]).map_err(OpenError::Screener)?;
    }
    let (queue, receive) = start(first)?;
    Ok(Opened { device: Gem::join(control, queue), second, receive })
}

/// Starts a queue on the core that it is for, with buffers of its own.
pub fn start(queue: StoppedQueue<Controller>) -> Result<(Queue<Controller>, Pool), OpenError> {
    // No buffer shares a line of the cache with anything else.
    let region = vec![0; SETTINGS.receive_buffers * RECEIVE_BUFFER + LINE].leak();
    let receive = Pool::over(region, RECEIVE_BUFFER, LINE).map_err(OpenError::Buffers)?;
    let headers = Pool::new(TRANSMIT_RING.into(), HEADER_BUFFER);
    let queue = queue.start(receive.clone(), &headers).map_err(OpenError::Device)?;
    Ok((queue, receive))
}
