//! The callbacks of a C program as a device.

use crate::config::{
    LR_CHECKSUM_BAD, LR_CHECKSUM_GOOD, LR_DEVICE_IP, LR_DEVICE_RX_CHECKSUM, LR_DEVICE_RX_COALESCING,
    LR_DEVICE_TSO, LR_DEVICE_TX_CHECKSUM, LR_SEGMENT_NONE, LR_SEGMENT_TCP4, LR_SEGMENT_TCP6, lr_device,
    lr_rx_meta, lr_tx_meta,
};
use crate::errno::{Errno, Result};
use crate::ip::{self, IpLink};
use core::ffi::{c_int, c_void};
use core::fmt;
use libc::{iovec, ssize_t};
use linerate_nic::{
    Buffer, Capabilities, ChecksumStatus, Device, DeviceError, Frame, MAX_CHUNKS, MacAddr, Pool, QueuePair,
    RxBatch, RxMeta, Segmentation, TxPacket, TxQueue, TxToken,
};
use linerate_wire::ethernet;
use linerate_wire::units::Instant;
use std::collections::VecDeque;

/// Bytes beyond the MTU: an Ethernet header with two VLAN tags.
const ETHERNET_MAX: usize = 22;
/// Largest coalesced frame.
const SUPER_FRAME: usize = 65_535 + ETHERNET_MAX;
/// Packets that the device may hold.
const RING: usize = 256;

type Transmit = unsafe extern "C" fn(*mut c_void, *const iovec, usize, *const lr_tx_meta) -> c_int;
type Receive = unsafe extern "C" fn(*mut c_void, *mut c_void, usize, *mut lr_rx_meta) -> ssize_t;
type Completed = unsafe extern "C" fn(*mut c_void) -> usize;

/// A device made of callbacks.
pub(crate) struct CallbackDevice {
    user: *mut c_void,
    transmit: Transmit,
    receive: Receive,
    completed: Option<Completed>,
    mac: MacAddr,
    mtu: usize,
    capabilities: Capabilities,
    enabled: Capabilities,
    pool: Pool,
    /// Packets that the device holds. The slots never move, so the pieces stay where the device was told they are.
    ring: Box<[TxPacket]>,
    head: usize,
    held: usize,
    done: VecDeque<TxToken>,
    ip: Option<IpLink>,
}

/// How a packet fared.
enum Sent {
    Taken,
    Full,
    Failed(DeviceError),
}

impl CallbackDevice {
    /// Checks the device and allocates `buffers` receive buffers.
    pub(crate) fn new(device: &lr_device, buffers: usize) -> Result<Self> {
        let (Some(transmit), Some(receive)) = (device.transmit, device.receive) else {
            return Err(Errno(libc::EFAULT));
        };
        let has = |bit| device.capabilities & bit != 0;
        let is_ip = has(LR_DEVICE_IP);
        let mac = if is_ip { ip::OUR_MAC } else { MacAddr(device.mac) };
        if device.flaw().is_some() {
            return Err(Errno(libc::EINVAL));
        }
        let capabilities = Capabilities {
            tx_checksum4: has(LR_DEVICE_TX_CHECKSUM),
            tx_checksum6: has(LR_DEVICE_TX_CHECKSUM),
            rx_checksum: has(LR_DEVICE_RX_CHECKSUM),
            tso4: has(LR_DEVICE_TSO) && has(LR_DEVICE_TX_CHECKSUM),
            tso6: has(LR_DEVICE_TSO) && has(LR_DEVICE_TX_CHECKSUM),
            rx_coalescing: has(LR_DEVICE_RX_COALESCING),
            gather: true,
        };
        let mtu = usize::from(device.mtu);
        let buffer = if capabilities.rx_coalescing { SUPER_FRAME } else { mtu + ETHERNET_MAX };
        Ok(CallbackDevice {
            user: device.user,
            transmit,
            receive,
            completed: device.completed,
            mac,
            mtu,
            capabilities,
            enabled: Capabilities::NONE,
            pool: Pool::new(buffers.clamp(16, 1 << 20), buffer.next_multiple_of(64)),
            ring: (0..RING).map(|_| TxPacket::new()).collect(),
            head: 0,
            held: 0,
            done: VecDeque::with_capacity(RING),
            ip: is_ip.then(IpLink::new),
        })
    }

    /// The receive buffers.
    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Whether something was received that did not come from the callbacks.
    pub(crate) fn has_reply(&self) -> bool {
        self.ip.as_ref().is_some_and(IpLink::has_reply)
    }

    /// Frees the slots of packets that have left.
    fn reap(&mut self) {
        let Some(completed) = self.completed else { return };
        // SAFETY: the function and its argument are those that the program gave us for each other.
        let count = unsafe { completed(self.user) };
        for _ in 0..count.min(self.held) {
            self.retire();
        }
    }

    /// The oldest packet that the device holds has left.
    fn retire(&mut self) {
        let packet = &mut self.ring[self.head];
        if packet.meta.token != TxToken(0) {
            self.done.push_back(packet.meta.token);
        }
        packet.clear();
        self.head = (self.head + 1) % self.ring.len();
        self.held -= 1;
    }

    /// Takes the content of `packet` and gives it to the device. Leaves it there if the device is full.
    fn send(&mut self, packet: &mut TxPacket) -> Sent {
        if self.held == self.ring.len() || self.done.len() >= RING {
            return Sent::Full;
        }
        if let Some(link) = &mut self.ip
            && link.answers(packet, self.mac)
        {
            self.done.extend((packet.meta.token != TxToken(0)).then_some(packet.meta.token));
            return Sent::Taken;
        }
        let slot = (self.head + self.held) % self.ring.len();
        self.ring[slot].swap(packet);
        let code = self.call_transmit(slot);
        if code == 0 {
            self.held += 1;
            if self.completed.is_none() {
                self.retire();
            }
            return Sent::Taken;
        }
        if code == -libc::EAGAIN || code == -libc::ENOBUFS {
            self.ring[slot].swap(packet);
            return Sent::Full;
        }
        let token = self.ring[slot].meta.token;
        self.done.extend((token != TxToken(0)).then_some(token));
        self.ring[slot].clear();
        Sent::Failed(failure(i64::from(code)))
    }

    fn call_transmit(&self, slot: usize) -> c_int {
        let packet = &self.ring[slot];
        // Without a link layer the packet begins behind the Ethernet header.
        let cut = if self.ip.is_some() { ethernet::HEADER_LEN } else { 0 };
        let empty = iovec { iov_base: core::ptr::null_mut(), iov_len: 0 };
        let mut pieces = [empty; 1 + MAX_CHUNKS];
        let header = packet.header().get(cut..).unwrap_or(&[]);
        let chunks = packet.chunks().iter().map(|chunk| chunk.bytes());
        let mut count = 0;
        for bytes in core::iter::once(header).chain(chunks).filter(|bytes| !bytes.is_empty()) {
            pieces[count] = iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
            count += 1;
        }
        let meta = tx_meta(packet, cut as u16);
        // SAFETY: the function and its first argument are those that the program gave us for each other. The pieces
        // point into the slot's header block and into its counted chunks; the slot does not move and is not touched
        // before the packet was counted as completed, or, where nobody counts, before this returns.
        unsafe { (self.transmit)(self.user, pieces.as_ptr(), count, &meta) }
    }

    /// Asks the device for one packet; `None` when none is waiting.
    fn call_receive(&mut self, mut buffer: Buffer) -> core::result::Result<Option<Frame>, DeviceError> {
        let start = if self.ip.is_some() { ethernet::HEADER_LEN } else { 0 };
        let room = &mut buffer.bytes_mut()[start..];
        let mut meta = lr_rx_meta::default();
        // SAFETY: the function and its first argument are those that the program gave us for each other; `room` is
        // writable memory of the length that is named, `meta` is a live local.
        let code = unsafe { (self.receive)(self.user, room.as_mut_ptr().cast(), room.len(), &mut meta) };
        let len = match usize::try_from(code) {
            Ok(0) => return Ok(None),
            Ok(len) if len > room.len() => return Err(DeviceError::Io(libc::EMSGSIZE)),
            Ok(len) => len,
            Err(_) if code as i64 == -i64::from(libc::EAGAIN) => return Ok(None),
            Err(_) => return Err(failure(code as i64)),
        };
        if self.ip.is_some() {
            ip::frame(buffer.bytes_mut());
        }
        Ok(Some(Frame::new(buffer.freeze(0..start + len), self.rx_meta(&meta))))
    }

    fn rx_meta(&self, meta: &lr_rx_meta) -> RxMeta {
        let checksum = match meta.checksum {
            LR_CHECKSUM_GOOD if self.capabilities.rx_checksum => ChecksumStatus::Good,
            LR_CHECKSUM_BAD if self.capabilities.rx_checksum => ChecksumStatus::Bad,
            _ => ChecksumStatus::Unchecked,
        };
        let segment_size = if self.capabilities.rx_coalescing { meta.segment_size } else { 0 };
        RxMeta { checksum, segment_size, ..RxMeta::default() }
    }
}

fn failure(code: i64) -> DeviceError {
    match c_int::try_from(code.saturating_neg()) {
        Ok(libc::ENODEV) => DeviceError::Gone,
        Ok(code) if code > 0 => DeviceError::Io(code),
        _ => DeviceError::Io(libc::EIO),
    }
}

fn tx_meta(packet: &TxPacket, cut: u16) -> lr_tx_meta {
    let (segmentation, segment_size) = match packet.meta.segmentation {
        Segmentation::None => (LR_SEGMENT_NONE, 0),
        Segmentation::Tcp4(size) => (LR_SEGMENT_TCP4, size),
        Segmentation::Tcp6(size) => (LR_SEGMENT_TCP6, size),
    };
    let checksum = packet.meta.checksum;
    lr_tx_meta {
        checksum_start: checksum.map_or(0, |request| request.start.saturating_sub(cut)),
        checksum_offset: checksum.map_or(0, |request| request.offset),
        segment_size,
        header_len: if segment_size == 0 { 0 } else { packet.meta.header_len.saturating_sub(cut) },
        segmentation,
    }
}

impl Device for CallbackDevice {
    fn mac(&self) -> MacAddr {
        self.mac
    }

    fn mtu(&self) -> usize {
        self.mtu
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn enable(&mut self, wanted: Capabilities) -> core::result::Result<(), DeviceError> {
        if wanted.and(self.capabilities) != wanted {
            return Err(DeviceError::Unsupported);
        }
        self.enabled = wanted;
        Ok(())
    }
}

impl QueuePair for CallbackDevice {
    fn enabled(&self) -> Capabilities {
        self.enabled
    }

    fn receive(&mut self, _now: Instant, batch: &mut RxBatch) -> core::result::Result<usize, DeviceError> {
        let mut count = 0;
        while !batch.is_full() {
            let Some(mut buffer) = self.pool.take() else { break };
            let reply = self.ip.as_mut().and_then(|link| link.reply(buffer.bytes_mut()));
            let frame = match reply {
                Some(len) => Frame::new(buffer.freeze(0..len), RxMeta::default()),
                None => match self.call_receive(buffer)? {
                    Some(frame) => frame,
                    None => break,
                },
            };
            // There is room: the loop asked.
            let _ = batch.push(frame);
            count += 1;
        }
        Ok(count)
    }

    fn transmit(&mut self, _now: Instant, queue: &mut TxQueue) -> core::result::Result<usize, DeviceError> {
        self.reap();
        let mut count = 0;
        while let Some(packet) = queue.front_mut() {
            let sent = self.send(packet);
            if matches!(sent, Sent::Full) {
                break;
            }
            queue.pop();
            count += 1;
            if let Sent::Failed(error) = sent {
                return Err(error);
            }
        }
        Ok(count)
    }

    fn poll_completion(&mut self) -> Option<TxToken> {
        if self.done.is_empty() {
            self.reap();
        }
        self.done.pop_front()
    }
}

impl fmt::Debug for CallbackDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallbackDevice").field("mac", &self.mac).field("held", &self.held).finish()
    }
}
