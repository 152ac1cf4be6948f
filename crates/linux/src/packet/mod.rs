//! An interface of the machine, shared: our stack has an Ethernet address of its own on it, through an AF_PACKET socket
//! with virtio-net headers.
//!
//! Frames between our stack and the machine's own kernel do not pass (neither sees what the other sends), as with
//! macvlan. The kernel takes VLAN tags out of received frames; they are put back, so that the stack sees what was on the
//! wire. TCP super-frames that the kernel coalesced, or that a local peer sent, come as such: this cannot be
//! switched off from a packet socket. UDP super-frames (a local peer that sends with UDP_SEGMENT over veth) are dropped
//! and counted as refused: switch `tx-udp-segmentation` off on that peer's interface.

mod error;
mod queue;
#[cfg(test)]
mod tests;

pub use error::PacketError;
pub use queue::{PacketOptions, PacketQueue};

use crate::rx::{Forecast, HEADROOM, Landed, Landing, MAX_PLACES, RxPools};
use crate::stats::DeviceStats;
use crate::sys::packet::{self as sys, AuxData, MAX_BATCH, Received};
use crate::tx::{self, Completions, MAX_PIECES, device_error};
use linerate_nic::vnet::{ByteOrder, Checksum, HEADER_LEN, VirtioHeader};
use linerate_nic::{
    Buffer, Capabilities, ChecksumRequest, Device, DeviceError, Frame, MacAddr, QueuePair, RxBatch, TxQueue,
    TxToken,
};
use linerate_wire::units::Instant;
use queue::step_error;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt;
use std::array;
use std::io::{IoSlice, IoSliceMut};

const VLAN_TAG_LEN: usize = 4;
const ADDRESSES_LEN: usize = 12;
const TPID_8021Q: u16 = 0x8100;
/// Super-frames taken in one call: each has a list of places that is built anew.
const LARGE_BATCH: usize = 4;

/// What a frame in the kernel's queue counts for, in bytes: a page, and the kernel's bookkeeping, for a frame of 1,514.
const FRAME_IN_KERNEL: usize = 4 << 10;

/// Pieces of all packets of one call: eight super-segments with the longest gather lists, or a whole batch of others.
const BATCH_PIECES: usize = 8 * MAX_PIECES;

/// How to share an interface through one socket.
#[derive(Clone, Debug)]
pub struct PacketConfig {
    /// The interface and the socket.
    pub options: PacketOptions,
    /// What is switched on at first; what cannot be had is left out.
    pub enabled: Capabilities,
    /// Buffers to receive into.
    pub pools: RxPools,
}

impl PacketConfig {
    /// The interface `name` with everything switched on.
    pub fn new(name: &str, pools: RxPools) -> Self {
        PacketConfig { options: PacketOptions::new(name), enabled: Capabilities::ALL, pools }
    }
}

/// A shared interface. It is in promiscuous mode for as long as this lives.
///
/// Wait on it with `poll` ([`AsFd`]): readable when a frame waits, writable when there is room for one, except where it is
/// [jammed](PacketDevice::jammed).
pub struct PacketDevice {
    fd: OwnedFd,
    name: String,
    index: u32,
    mtu: usize,
    mac: MacAddr,
    capabilities: Capabilities,
    enabled: Capabilities,
    virtio_len: usize,
    batch: usize,
    pools: RxPools,
    landings: Box<[Landing]>,
    forecast: Forecast,
    queue_bytes: usize,
    completions: Completions,
    stats: DeviceStats,
    starved: bool,
    /// The last call of `receive` took nothing, for want of buffers.
    dry: bool,
    /// The interface went down, and no frame has left since. Those that come may have waited since before.
    down: bool,
    gone: bool,
}

impl PacketDevice {
    /// Opens the interface, which must be up.
    pub fn open(config: PacketConfig) -> Result<Self, PacketError> {
        let mut queues = PacketQueue::open_all(&config.options)?;
        let queue =
            queues.pop().ok_or_else(|| PacketError::NoSuchInterface(config.options.interface.clone()))?;
        PacketDevice::over(queue, config.enabled, config.pools)
    }

    fn over(queue: PacketQueue, enabled: Capabilities, pools: RxPools) -> Result<Self, PacketError> {
        if let Some((pool, has, needs)) = pools.flaw() {
            return Err(PacketError::BufferTooSmall { pool, has, needs });
        }
        let PacketQueue { fd, name, index, mtu, mac, has_virtio, batch } = queue;
        let capabilities = if has_virtio {
            Capabilities::ALL
        } else {
            Capabilities { rx_checksum: true, rx_coalescing: true, gather: true, ..Capabilities::NONE }
        };
        let lists = pools.piece_lists();
        let queue_bytes = sockopt::socket_recv_buffer_size(&fd)
            .map_err(|error| step_error("asking for the size of the receive buffer", error))?;
        Ok(PacketDevice {
            fd,
            name,
            index,
            mtu,
            mac,
            capabilities,
            enabled: Capabilities { rx_coalescing: true, ..enabled.and(capabilities) },
            virtio_len: if has_virtio { HEADER_LEN } else { 0 },
            batch,
            landings: (0..batch).map(|_| Landing::new(pools.clone(), lists.clone())).collect(),
            pools,
            forecast: Forecast::default(),
            queue_bytes,
            completions: Completions::new(),
            stats: DeviceStats::default(),
            starved: false,
            dry: false,
            down: false,
            gone: false,
        })
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The interface's number.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Counters, the kernel's own drops included.
    pub fn stats(&mut self) -> DeviceStats {
        self.stats.rx_kernel_dropped += u64::from(sys::take_drops(self.fd.as_fd()).unwrap_or(0));
        self.stats
    }

    /// Frames that may wait for us in the kernel, which counts its own bookkeeping too. What comes then is lost.
    pub fn queue_len(&self) -> usize {
        self.queue_bytes / FRAME_IN_KERNEL
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

    /// Whether the interface's queue, not the socket's, had no room for the packet that is next. `poll` does not tell when it has:
    /// transmit again in about a millisecond.
    pub fn jammed(&self) -> bool {
        self.completions.is_jammed()
    }

    /// Receives once, up to `limit` frames; returns how many messages came and how many places they had.
    fn receive_batch(
        &mut self,
        limit: usize,
        scrape: bool,
        batch: &mut RxBatch,
    ) -> Result<(usize, usize), Errno> {
        // As many as would find room if all of them were of the largest kind.
        let room = self.pools.small.free() / self.pools.most_small() + self.pools.large.free();
        let limit = limit.min(self.batch).min(room.max(1));
        let scatters = self.forecast.expects_large() && !self.landings[0].find_large();
        if scatters {
            self.receive_into::<{ MAX_PLACES + 1 }, LARGE_BATCH>(limit, scrape, batch)
        } else {
            self.receive_into::<3, MAX_BATCH>(limit, scrape, batch)
        }
    }

    /// The same, up to `MANY` frames of `PLACES` places each, that of the header included.
    fn receive_into<const PLACES: usize, const MANY: usize>(
        &mut self,
        limit: usize,
        scrape: bool,
        batch: &mut RxBatch,
    ) -> Result<(usize, usize), Errno> {
        let mut headers = [[0; HEADER_LEN]; MANY];
        let mut received = [Received::default(); MANY];
        let mut places: [[IoSliceMut<'_>; PLACES]; MANY] =
            array::from_fn(|_| array::from_fn(|_| IoSliceMut::new(&mut [])));
        let expects_large = self.forecast.expects_large();
        let mut ready = 0;
        for (landing, header) in self.landings.iter_mut().zip(&mut headers).take(limit) {
            // Two places beside the header are enough for a large frame only where one is a large buffer.
            if PLACES == 3 && expects_large && !landing.find_large()
                || !landing.prepare(expects_large, scrape)
            {
                break;
            }
            places[ready][0] = IoSliceMut::new(&mut header[..self.virtio_len]);
            landing.places(&mut places[ready][1..]);
            ready += 1;
        }
        if ready == 0 {
            self.stats.rx_starved += 1;
            self.starved = true;
            return Ok((0, 0));
        }
        let came = sys::receive_many(self.fd.as_fd(), &mut places[..ready], &mut received)?;
        for at in 0..came {
            if let Some(frame) = self.take_frame(at, &headers[at], received[at]) {
                // No more places were offered than the batch has room for.
                let _ = batch.push(frame);
            }
        }
        Ok((came, ready))
    }

    /// The frame that landed in place `at`; `None`, and counted, if it is not usable.
    fn take_frame(&mut self, at: usize, header: &[u8], received: Received) -> Option<Frame> {
        let len = received.len.saturating_sub(self.virtio_len);
        if received.cut {
            self.stats.rx_cut += 1;
            return None;
        }
        let header = if self.virtio_len > 0 {
            VirtioHeader::parse(header, ByteOrder::Native).ok()
        } else {
            Some(header_of(&received.aux))
        };
        let Some(header) = header else {
            self.stats.rx_refused += 1;
            return None;
        };
        let Landed::Frame(buffer, more) = self.landings.get_mut(at)?.settle(len) else {
            self.stats.rx_cut += 1;
            return None;
        };
        self.forecast.note(self.pools.is_large(len));
        let end = buffer.len().min(HEADROOM + len);
        let meta = header.rx_meta(&buffer.bytes()[HEADROOM..end], self.enabled.rx_checksum);
        let (buffer, start) = restore_tag(buffer, len, &received.aux);
        let data = buffer.freeze(start..end);
        self.stats.rx_frames += 1;
        self.stats.rx_bytes += (len + HEADROOM - start) as u64;
        self.stats.rx_super_frames += u64::from(meta.segment_size != 0);
        Some(Frame::in_pieces(data, more, meta))
    }

    fn is_there(&self) -> bool {
        rustix::net::netdevice::index_to_name(&self.fd, self.index).is_ok()
    }

    /// Whether an error while receiving ends it: an interface that went down may come up again, one that was removed
    /// does not, and the socket tells of neither more than once.
    fn take_error(&mut self, error: Errno) -> Result<(), DeviceError> {
        match error {
            Errno::INTR => Ok(()),
            // The kernel met a kind of super-frame that the header cannot express, and dropped it.
            Errno::INVAL => {
                self.stats.rx_refused += 1;
                Ok(())
            }
            Errno::NETDOWN | Errno::NXIO | Errno::NODEV => {
                self.down = true;
                self.gone = !self.is_there();
                if self.gone { Err(DeviceError::Gone) } else { Ok(()) }
            }
            other => Err(device_error(other)),
        }
    }
}

impl AsFd for PacketDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Device for PacketDevice {
    fn mac(&self) -> MacAddr {
        self.mac
    }

    fn mtu(&self) -> usize {
        self.mtu
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// `rx_coalescing` stays on whatever is wanted: it is the interface's, or the peer's, doing. With `rx_checksum` off,
    /// frames whose checksum is partial are still vouched for, as nobody could verify them.
    fn enable(&mut self, wanted: Capabilities) -> Result<(), DeviceError> {
        let orphan = (wanted.tso4 && !wanted.tx_checksum4) || (wanted.tso6 && !wanted.tx_checksum6);
        if orphan || wanted.and(self.capabilities) != wanted {
            return Err(DeviceError::Unsupported);
        }
        self.enabled = Capabilities { rx_coalescing: true, ..wanted };
        Ok(())
    }
}

impl QueuePair for PacketDevice {
    fn enabled(&self) -> Capabilities {
        self.enabled
    }

    fn receive(&mut self, _now: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError> {
        let before = batch.len();
        // Where whoever holds the buffers had a turn and gave none back, a frame is taken with what is left:
        // acknowledgements must pass.
        let mut scrape = self.dry;
        (self.starved, self.dry) = (false, false);
        while !batch.is_full() && !self.gone {
            let limit = if scrape { 1 } else { batch.room() };
            match self.receive_batch(limit, core::mem::take(&mut scrape), batch) {
                // Fewer than there were places for: the queue is empty.
                Ok((came, ready)) if came < ready || ready == 0 => break,
                Ok(_) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => match self.take_error(error) {
                    Ok(()) => {}
                    // The frames that came first are handed over; the failure shows again at the next call.
                    Err(_) if batch.len() > before => break,
                    Err(error) => return Err(error),
                },
            }
        }
        let received = batch.len() - before;
        self.dry = self.starved && received == 0;
        if self.gone && received == 0 { Err(DeviceError::Gone) } else { Ok(received) }
    }

    fn transmit(&mut self, now: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError> {
        let (fd, virtio_len, batch) = (self.fd.as_fd(), self.virtio_len, self.batch);
        let (lost, left) = (self.stats.tx_link_down, self.stats.tx_frames);
        let taken = tx::drain(now, queue, &mut self.completions, &mut self.stats, |queue| {
            let mut headers = [[0; HEADER_LEN]; MAX_BATCH];
            let mut pieces = [IoSlice::new(&[]); BATCH_PIECES];
            let mut free = &mut pieces[..];
            let mut gathers: [&[IoSlice<'_>]; MAX_BATCH] = [&[]; MAX_BATCH];
            let mut count = 0;
            for ((packet, header), gather) in queue.iter().zip(&mut headers).zip(&mut gathers).take(batch) {
                if free.len() < MAX_PIECES {
                    break;
                }
                let header = &mut header[..virtio_len];
                header.copy_from_slice(
                    &VirtioHeader::for_packet(&packet.meta).encode(ByteOrder::Native)[..virtio_len],
                );
                let used = tx::gather(free, header, packet);
                let (ours, rest) = std::mem::take(&mut free).split_at_mut(used);
                *gather = ours;
                free = rest;
                count += 1;
            }
            sys::send_many(fd, &gathers[..count])
        });
        // Of the socket's error, which is told once, receiving hears no more then.
        self.down = self.stats.tx_link_down != lost || (self.down && self.stats.tx_frames == left);
        taken
    }

    fn poll_completion(&mut self) -> Option<TxToken> {
        self.completions.pop()
    }

    /// The removal of an interface that is down is told by nobody: it is asked for.
    fn arm(&mut self, _now: Instant) -> bool {
        if self.down && !self.gone {
            self.gone = !self.is_there();
        }
        self.gone
    }
}

/// What auxiliary data says where there is no virtio-net header.
fn header_of(aux: &AuxData) -> VirtioHeader {
    let checksum = if aux.status & sys::CHECKSUM_PARTIAL != 0 {
        Checksum::Partial(ChecksumRequest { start: 0, offset: 0 })
    } else if aux.status & sys::CHECKSUM_VALID != 0 {
        Checksum::Valid
    } else {
        Checksum::Unknown
    };
    VirtioHeader { checksum, ..VirtioHeader::default() }
}

/// Puts a VLAN tag that the kernel took out back behind the addresses, into the headroom; returns where the frame begins.
fn restore_tag(mut buffer: Buffer, len: usize, aux: &AuxData) -> (Buffer, usize) {
    if aux.status & sys::VLAN_VALID == 0 || len < ADDRESSES_LEN {
        return (buffer, HEADROOM);
    }
    let tpid = if aux.status & sys::VLAN_TPID_VALID != 0 { aux.vlan_tpid } else { TPID_8021Q };
    let start = HEADROOM - VLAN_TAG_LEN;
    let bytes = buffer.bytes_mut();
    bytes.copy_within(HEADROOM..HEADROOM + ADDRESSES_LEN, start);
    let tag = start + ADDRESSES_LEN;
    bytes[tag..tag + 2].copy_from_slice(&tpid.to_be_bytes());
    bytes[tag + 2..tag + 4].copy_from_slice(&aux.vlan_tci.to_be_bytes());
    (buffer, start)
}
