//! A TAP interface as a device: the kernel is the host at the other end of the cable, and super-frames of 64 KiB with
//! virtio-net headers cross it whole in both directions.

mod error;
mod queue;
#[cfg(test)]
mod tests;

pub use error::TapError;
pub use queue::{MOST_QUEUES, TapOptions, TapQueue};

use crate::rx::{FEW_PLACES, Forecast, HEADROOM, Landed, Landing, MAX_PLACES, RxPools};
use crate::stats::DeviceStats;
use crate::sys::tun;
use crate::tx::{self, Completions, MAX_PIECES, device_error};
use linerate_nic::vnet::{ByteOrder, HEADER_LEN_MERGEABLE, VirtioHeader};
use linerate_nic::{
    Capabilities, Device, DeviceError, Frame, MacAddr, QueuePair, RxBatch, TxPacket, TxQueue, TxToken,
};
use linerate_wire::units::Instant;
use queue::step_error;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::array;
use std::io::{IoSlice, IoSliceMut};

/// The interface name that lets the kernel choose the number.
pub const DEFAULT_NAME: &str = "linerate%d";

/// Frames that may wait for us in the kernel, on a TAP that we made: as many as there are small receive buffers, and no fewer
/// than this. The kernel's own 1,000 are lost once a window is larger than 1.4 MB.
pub const TX_QUEUE_LEN: u32 = 10_000;

/// Chunks of most packets that are no super-segments.
const FEW_CHUNKS: usize = 2;

/// How to open a TAP.
#[derive(Clone, Debug)]
pub struct TapConfig {
    /// Its name, at most 15 bytes. A `%d` in it is replaced by a free number. A TAP that exists (and is not open
    /// anywhere) is attached instead of made.
    pub name: String,
    /// Largest IP packet in bytes; `None` keeps what the interface has, 1,500 on a new one.
    pub mtu: Option<u32>,
    /// Our address, at our end of the cable; `None` makes a random one, locally administered.
    pub mac: Option<MacAddr>,
    /// What is switched on at first.
    pub enabled: Capabilities,
    /// Buffers to receive into.
    pub pools: RxPools,
}

impl TapConfig {
    /// A new TAP of [`DEFAULT_NAME`] with everything switched on.
    pub fn new(pools: RxPools) -> Self {
        TapConfig { name: DEFAULT_NAME.to_owned(), mtu: None, mac: None, enabled: Capabilities::ALL, pools }
    }
}

/// An open TAP. A TAP that was made by opening it disappears when this is dropped.
///
/// Wait on it with `poll` ([`AsFd`]): readable when a frame waits. It is always writable.
pub struct Tap {
    fd: OwnedFd,
    name: String,
    index: u32,
    existed: bool,
    mtu: usize,
    mac: MacAddr,
    host_mac: MacAddr,
    enabled: Capabilities,
    queue_len: u32,
    pools: RxPools,
    landing: Landing,
    forecast: Forecast,
    completions: Completions,
    stats: DeviceStats,
    starved: bool,
    /// The last call of `receive` took nothing, for want of buffers.
    dry: bool,
    singles: Singles,
}

impl Tap {
    /// Creates the TAP, or attaches to the one that exists. It is not up yet and has no address:
    /// see [`crate::netconfig::HostInterface`].
    pub fn open(config: TapConfig) -> Result<Self, TapError> {
        if let Some((pool, has, needs)) = config.pools.flaw() {
            return Err(TapError::BufferTooSmall { pool, has, needs });
        }
        let options = TapOptions {
            name: config.name,
            mtu: config.mtu,
            mac: config.mac,
            frames: config.pools.small.len(),
            queues: 1,
        };
        let mut queues = TapQueue::open_all(&options)?;
        let queue = queues.pop().ok_or(TapError::Busy(options.name))?;
        Tap::over(queue, config.enabled, config.pools)
    }

    fn over(queue: TapQueue, enabled: Capabilities, pools: RxPools) -> Result<Self, TapError> {
        if let Some((pool, has, needs)) = pools.flaw() {
            return Err(TapError::BufferTooSmall { pool, has, needs });
        }
        let mut tap = Tap {
            fd: queue.fd,
            name: queue.name,
            index: queue.index,
            existed: queue.existed,
            mtu: queue.mtu,
            mac: queue.mac,
            host_mac: queue.host_mac,
            enabled: Capabilities::NONE,
            queue_len: queue.queue_len,
            landing: Landing::new(pools.clone(), pools.piece_lists()),
            pools,
            forecast: Forecast::default(),
            completions: Completions::new(),
            stats: DeviceStats::default(),
            starved: false,
            dry: false,
            singles: Singles::default(),
        };
        tap.switch(enabled).map_err(|error| step_error("switching offloads on", error))?;
        Ok(tap)
    }

    /// The interface's name, as the kernel chose it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The interface's number.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Whether it was there before: then it stays when this is dropped.
    pub fn existed(&self) -> bool {
        self.existed
    }

    /// The address of the host's end of the cable.
    pub fn host_mac(&self) -> MacAddr {
        self.host_mac
    }

    /// Counters.
    pub fn stats(&self) -> DeviceStats {
        self.stats
    }

    /// Frames that may wait for us in the kernel. What comes then is lost.
    pub fn queue_len(&self) -> usize {
        self.queue_len as usize
    }

    /// The buffers that it receives into.
    pub fn pools(&self) -> &RxPools {
        &self.pools
    }

    /// Whether the last [`QueuePair::receive`] stopped because too few buffers were free. Frames may wait in the kernel then, and
    /// `poll` says so at once: do not wait for readability until buffers have come back.
    pub fn starved(&self) -> bool {
        self.starved
    }

    fn switch(&mut self, wanted: Capabilities) -> Result<(), Errno> {
        tun::set_offload(self.fd.as_fd(), offload_bits(wanted).ok_or(Errno::INVAL)?)?;
        self.enabled = wanted;
        Ok(())
    }

    /// Reads one frame; `None` when none waits or there are too few buffers for one of any size. `scrape`: a frame that
    /// does not fit those that are left may be lost.
    fn read_frame(&mut self, scrape: bool) -> Result<Option<Frame>, DeviceError> {
        loop {
            if !self.landing.prepare(self.forecast.expects_large(), scrape) {
                self.stats.rx_starved += 1;
                self.starved = true;
                return Ok(None);
            }
            let mut header = [0; HEADER_LEN_MERGEABLE];
            let read = if self.forecast.expects_large() {
                read_into::<{ 1 + MAX_PLACES }>(self.fd.as_fd(), &mut header, &mut self.landing)
            } else {
                read_into::<{ 1 + FEW_PLACES }>(self.fd.as_fd(), &mut header, &mut self.landing)
            };
            let filled = match read {
                Ok(filled) => filled,
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => continue,
                // The kernel met a kind of super-frame that the header cannot express, and dropped it.
                Err(Errno::INVAL) => {
                    self.stats.rx_refused += 1;
                    continue;
                }
                Err(error) => return Err(device_error(error)),
            };
            let len = filled.saturating_sub(HEADER_LEN_MERGEABLE);
            let Landed::Frame(first, more) = self.landing.settle(len) else {
                self.stats.rx_cut += 1;
                continue;
            };
            self.forecast.note(self.pools.is_large(len));
            let Ok(header) = VirtioHeader::parse(&header, ByteOrder::Native) else {
                self.stats.rx_refused += 1;
                continue;
            };
            let data = first.freeze(HEADROOM..HEADROOM + len);
            let meta = header.rx_meta(data.bytes(), self.enabled.rx_checksum);
            self.stats.rx_frames += 1;
            self.stats.rx_bytes += len as u64;
            self.stats.rx_super_frames += u64::from(meta.segment_size != 0);
            return Ok(Some(Frame::in_pieces(data, more, meta)));
        }
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Device for Tap {
    fn mac(&self) -> MacAddr {
        self.mac
    }

    fn mtu(&self) -> usize {
        self.mtu
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }

    /// Receive coalescing needs `rx_checksum`, and `tso4` and `tso6` need `tx_checksum4` and `tx_checksum6`: without
    /// them the combination is refused. Frames that the kernel had queued before the switch come as they were.
    fn enable(&mut self, wanted: Capabilities) -> Result<(), DeviceError> {
        self.switch(wanted).map_err(|error| match error {
            Errno::INVAL => DeviceError::Unsupported,
            other => device_error(other),
        })
    }
}

impl QueuePair for Tap {
    fn enabled(&self) -> Capabilities {
        self.enabled
    }

    fn receive(&mut self, _now: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError> {
        let mut received = 0;
        // Where whoever holds the buffers had a turn and gave none back, a single frame is taken with what is left:
        // acknowledgements must pass.
        let scrape = self.dry;
        (self.starved, self.dry) = (false, false);
        while !batch.is_full() {
            match self.read_frame(scrape && received == 0) {
                Ok(Some(frame)) => {
                    // The batch was not full, so that the frame is never given back.
                    let _ = batch.push(frame);
                    received += 1;
                    if received == 1 && self.singles.are_certain() {
                        break;
                    }
                }
                Ok(None) => break,
                // The frames that came first are handed over; the failure shows again at the next call.
                Err(_) if received > 0 => break,
                Err(error) => return Err(error),
            }
        }
        self.dry = self.starved && received == 0;
        self.singles.note(received);
        Ok(received)
    }

    fn transmit(&mut self, now: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError> {
        let fd = &self.fd;
        tx::drain(now, queue, &mut self.completions, &mut self.stats, |queue| {
            let Some(packet) = queue.front() else { return Ok(0) };
            let virtio = VirtioHeader::for_packet(&packet.meta).encode(ByteOrder::Native);
            let sent = if packet.chunks().len() <= FEW_CHUNKS {
                write_from::<{ 2 + FEW_CHUNKS }>(fd.as_fd(), &virtio, packet)
            } else {
                write_from::<MAX_PIECES>(fd.as_fd(), &virtio, packet)
            };
            sent.map(|_| 1)
        })
    }

    fn poll_completion(&mut self) -> Option<TxToken> {
        self.completions.pop()
    }
}

/// Whether frames come one at a time, as from one client that waits for each answer: then the read that would find no second one
/// is saved. What came meanwhile after all is what the next sleep does not wait for.
#[derive(Debug, Default)]
struct Singles {
    /// Calls in a row that found one frame.
    row: u8,
}

impl Singles {
    /// So many in a row make it a habit, and every so many it is looked whether it still is.
    const HABIT: u8 = 8;

    fn are_certain(&self) -> bool {
        self.row > Self::HABIT
    }

    fn note(&mut self, received: usize) {
        match received {
            0 => {}
            1 if self.row < 2 * Self::HABIT => self.row += 1,
            1 => self.row = Self::HABIT,
            _ => self.row = 0,
        }
    }
}

/// Reads a frame into its header and at most `N` - 1 places. To clear a list for the most places would cost a small frame
/// more than all else that is done for it here.
fn read_into<const N: usize>(
    fd: BorrowedFd<'_>,
    header: &mut [u8],
    landing: &mut Landing,
) -> Result<usize, Errno> {
    let mut places: [IoSliceMut<'_>; N] = array::from_fn(|_| IoSliceMut::new(&mut []));
    places[0] = IoSliceMut::new(header);
    let count = 1 + landing.places(&mut places[1..]);
    rustix::io::readv(fd, &mut places[..count])
}

/// Writes a packet whose gather list has at most `N` pieces.
fn write_from<const N: usize>(fd: BorrowedFd<'_>, virtio: &[u8], packet: &TxPacket) -> Result<usize, Errno> {
    let mut pieces = [IoSlice::new(&[]); N];
    let count = tx::gather(&mut pieces, virtio, packet);
    rustix::io::writev(fd, &pieces[..count])
}

/// The kernel's switches for what it may hand us; `None` for a combination that it does not have. What we may hand to
/// the kernel needs no switch: it reads every virtio-net header.
fn offload_bits(wanted: Capabilities) -> Option<usize> {
    let orphan = (wanted.rx_coalescing && !wanted.rx_checksum)
        || (wanted.tso4 && !wanted.tx_checksum4)
        || (wanted.tso6 && !wanted.tx_checksum6);
    if orphan {
        return None;
    }
    let checksum = if wanted.rx_checksum { tun::TUN_F_CSUM } else { 0 };
    let coalescing = if wanted.rx_coalescing { tun::TUN_F_TSO4 | tun::TUN_F_TSO6 } else { 0 };
    Some(checksum | coalescing)
}
