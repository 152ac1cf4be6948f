//! From the names of a UIO device and a DMA buffer to the queues of the interface.

use super::UioDevice;
use super::board::{Parts, UioBoard};
use super::error::UioError;
use super::find::{FoundBuffer, Places, failed};
use crate::mac;
use crate::sys::map::{self, Mapping};
use linerate_nic::mcdma::nic_regs::register;
use linerate_nic::mcdma::open::MAX_QUEUES;
use linerate_nic::mcdma::{Control, Settings, StoppedQueue, built_in, open};
use linerate_nic::{Device as _, MacAddr, Steering};
use linerate_wire::toeplitz::MICROSOFT_KEY;
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};

/// What mappings are split at: a page on every machine that has these devices, and more than a cache line.
const PAGE: usize = 4 << 10;
/// Bytes of one buffer are a multiple of this: no two share a cache line, and the device uses them to the end.
const LINE: usize = 64;
/// Least bytes of one buffer.
const BUFFER: usize = 2 << 10;
/// Descriptors of each ring.
pub(super) const RING: usize = 256;
/// Transmit buffers of a queue: payload is copied, and a super-segment of 64 KiB takes 33.
const TRANSMIT: usize = 256;
/// Least receive buffers of a queue: the ring's, and as many that the stack may hold.
const RECEIVE: usize = 2 * RING;
/// Bytes of registers.
const REGISTERS: usize = register::TX_UNSUMMED as usize + 4;

/// How to open an interface in programmable logic.
#[derive(Clone, Debug)]
pub struct UioOptions {
    /// The name of its UIO device, and of its DMA buffer if that has the same; else the first buffer is taken.
    pub name: String,
    /// What `sys` and `dev` are in.
    pub root: PathBuf,
    /// Largest IP packet in bytes.
    pub mtu: usize,
    /// Our address; `None` for the one that the interface has, or a random one.
    pub mac: Option<MacAddr>,
    /// Queues wanted; there are not more than the hardware has, and one where it cannot spread frames.
    pub queues: usize,
}

impl UioOptions {
    /// The interface `name` of this machine, with one queue and an MTU of 1,500 bytes.
    pub fn new(name: &str) -> Self {
        UioOptions { name: name.to_owned(), root: PathBuf::from("/"), mtu: 1_500, mac: None, queues: 1 }
    }
}

/// One queue of an open interface, on its way to its thread.
#[derive(Debug)]
pub struct UioQueue {
    pub(super) interrupts: OwnedFd,
    pub(super) queue: StoppedQueue<UioBoard>,
    /// With the first queue.
    pub(super) control: Option<Control<UioBoard>>,
    pub(super) mac: MacAddr,
    pub(super) mtu: usize,
    pub(super) capabilities: linerate_nic::Capabilities,
    pub(super) buffer_size: usize,
    pub(super) receive: &'static mut [u8],
    pub(super) transmit: &'static mut [u8],
}

impl UioQueue {
    /// Opens the queues of the interface. All have the same address. The interface receives as soon as its first queue is a device.
    ///
    /// The DMA buffer stays mapped to the end of the process.
    pub fn open_all(options: &UioOptions) -> Result<Vec<UioQueue>, UioError> {
        let places = Places::new(&options.root);
        let found = places.find(&options.name)?;
        let buffer = places.find_buffer(&options.name)?;
        if found.len < REGISTERS {
            return Err(UioError::Registers { have: found.len, need: REGISTERS });
        }
        let interrupts = open_device(&found.device, OFlags::NONBLOCK)?;
        let registers = open_device(&found.registers, OFlags::SYNC)?;
        let registers = map::map(registers.as_fd(), found.len)
            .map_err(|source| failed("mapping the registers of", &found.registers, source))?
            .into_words();
        let memory = open_buffer(&buffer)?;
        let mapped = map::map(memory.as_fd(), buffer.len)
            .map_err(|source| failed("mapping", &buffer.device, source))?;

        let mut settings = Settings { mtu: options.mtu, ..Settings::new(MacAddr([0; 6])) };
        (settings.transmit_ring, settings.receive_ring) = (RING, RING);
        settings.queues = MAX_QUEUES;
        // Descriptors first, for as many queues as there can be.
        let (descriptors, buffers) = mapped.split(settings.memory_needed().next_multiple_of(PAGE));
        let board = UioBoard::new(Parts {
            registers,
            descriptors_bus: buffer.bus_address,
            buffers: buffers.address()..buffers.address() + buffers.len(),
            buffers_bus: buffer.bus_address + descriptors.len() as u64,
            descriptors: descriptors.into_words(),
        });
        let built_in = built_in(&board);
        let most = if built_in.has_hash { built_in.queues } else { 1 };
        settings.queues = options.queues.clamp(1, most.clamp(1, MAX_QUEUES));
        settings.mac = address(options, built_in.mac, &found.device)?;
        let shares = shares(&settings, &buffer, buffers)?;
        let (control, queues) =
            open(board, buffer.bus_address, buffer.len, &settings).map_err(UioError::Open)?;
        assemble(control, queues, shares, &settings, &found.device, interrupts)
    }

    /// Our address.
    pub fn mac(&self) -> MacAddr {
        self.mac
    }

    /// Largest IP packet in bytes.
    pub fn mtu(&self) -> usize {
        self.mtu
    }

    /// The queue as a device, for the thread that this is called in.
    pub fn into_device(self) -> Result<UioDevice, UioError> {
        UioDevice::over(self)
    }
}

/// Puts each queue together with its interrupts and its buffers, and spreads frames over them.
fn assemble(
    mut control: Control<UioBoard>,
    queues: Vec<StoppedQueue<UioBoard>>,
    shares: Vec<(Mapping, Mapping)>,
    settings: &Settings,
    device: &Path,
    interrupts: OwnedFd,
) -> Result<Vec<UioQueue>, UioError> {
    if queues.len() > 1 {
        let table: Vec<u16> = (0..128).map(|at| at % queues.len() as u16).collect();
        let steering = Steering { key: &MICROSOFT_KEY, indirection: &table, ports: &[] };
        control.set_steering(&steering).map_err(UioError::Steering)?;
    }
    let capabilities = control.capabilities();
    let (mut control, mut first) = (Some(control), Some(interrupts));
    let mut out = Vec::with_capacity(queues.len());
    for (queue, (receive, transmit)) in queues.into_iter().zip(shares) {
        // Each opening of a UIO device is told of each interrupt.
        let interrupts = match first.take() {
            Some(interrupts) => interrupts,
            None => open_device(device, OFlags::NONBLOCK)?,
        };
        out.push(UioQueue {
            interrupts,
            queue,
            control: control.take(),
            mac: settings.mac,
            mtu: settings.mtu,
            capabilities,
            buffer_size: buffer_size(settings),
            receive: receive.into_bytes(),
            transmit: transmit.into_bytes(),
        });
    }
    Ok(out)
}

fn buffer_size(settings: &Settings) -> usize {
    settings.longest().next_multiple_of(LINE).max(BUFFER)
}

/// The parts of the buffers that each queue has: to receive into, and to send from.
fn shares(
    settings: &Settings,
    buffer: &FoundBuffer,
    buffers: Mapping,
) -> Result<Vec<(Mapping, Mapping)>, UioError> {
    let (size, queues) = (buffer_size(settings), settings.queues);
    let transmit = (TRANSMIT * size).next_multiple_of(PAGE);
    let least = (RECEIVE * size).next_multiple_of(PAGE) + transmit;
    let each = buffers.len() / queues / PAGE * PAGE;
    if each < least {
        let need = buffer.len - buffers.len() + queues * least;
        return Err(UioError::BufferTooSmall { name: buffer.name.clone(), have: buffer.len, need, queues });
    }
    let mut rest = buffers;
    Ok((0..queues)
        .map(|_| {
            let (own, later) = std::mem::replace(&mut rest, Mapping::EMPTY).split(each);
            rest = later;
            own.split(each - transmit)
        })
        .collect())
}

fn address(options: &UioOptions, has: Option<MacAddr>, device: &Path) -> Result<MacAddr, UioError> {
    match options.mac.or(has) {
        Some(mac) => Ok(mac),
        None => mac::random().map_err(|error| failed("making an address for", device, error.into())),
    }
}

/// Opens a device file, which does not become our terminal whatever it is.
fn open_device(path: &Path, flags: OFlags) -> Result<OwnedFd, UioError> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOCTTY | flags;
    rustix::fs::open(path, flags, Mode::empty()).map_err(|error| failed("opening", path, error.into()))
}

/// Opens the DMA buffer for us alone for as long as it is mapped, and so that no cache stands between us and the device.
fn open_buffer(buffer: &FoundBuffer) -> Result<OwnedFd, UioError> {
    // With 0 and 4 the buffer is cached whatever it is opened with.
    if !buffer.is_coherent && matches!(buffer.sync_mode, 0 | 4) {
        return Err(UioError::Cached { name: buffer.name.clone(), mode: buffer.sync_mode });
    }
    let flags = if buffer.is_coherent { OFlags::empty() } else { OFlags::SYNC };
    let fd = open_device(&buffer.device, flags)?;
    match flock(&fd, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(fd),
        Err(Errno::WOULDBLOCK) => Err(UioError::InUse(buffer.device.clone())),
        Err(error) => Err(failed("locking", &buffer.device, io::Error::from(error))),
    }
}
