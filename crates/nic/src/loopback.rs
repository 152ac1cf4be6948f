//! Two devices joined in memory: what one end transmits the other receives, with losses and delays as a test wishes.
//!
//! Both ends live in one thread and share one [`Pool`]; nothing reads a clock. A frame is copied once, out of the
//! sender's header block and gather list into the receiver's pool buffers, as a cable would.

use crate::checksum;
use crate::device::{Capabilities, Device, DeviceError};
use crate::frame::{Frame, RxBatch};
use crate::layers;
use crate::meta::{ChecksumStatus, MacAddr, RxMeta, Segmentation, TxToken};
use crate::pool::{Buffer, Pool};
use crate::queue::QueuePair;
use crate::split::Splitter;
use crate::tx::{MAX_HEADER, TxPacket, TxQueue};
use crate::verify::verify;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use core::cell::RefCell;
use core::fmt;
use core::time::Duration;
use linerate_wire::units::Instant;

/// Bytes that a frame may have beyond the MTU: an Ethernet header with two VLAN tags.
const ETHERNET_MAX: usize = 22;

/// What becomes of a frame on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It arrives.
    Deliver,
    /// It is lost.
    Drop,
    /// It arrives twice.
    Duplicate,
    /// It arrives this much later than it would, behind frames that were sent after it.
    Delay(Duration),
    /// The bits of `mask` are flipped in the byte at `at` (cut to the frame). A receiver that verifies checksums
    /// finds it, unless the byte is one that no checksum covers.
    Corrupt {
        /// Byte, counted from the start of the frame.
        at: usize,
        /// Bits to flip.
        mask: u8,
    },
}

/// Decides about each frame that an end sends.
pub type Hook = Box<dyn FnMut(&Frame) -> Verdict>;

/// What one end of a link has counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkStats {
    /// Packets taken from the transmit queue.
    pub sent: u64,
    /// Frames handed to the owner of this end.
    pub received: u64,
    /// Frames of this end that the hook dropped.
    pub lost: u64,
    /// Frames of this end for which the pool had no buffer.
    pub no_buffer: u64,
    /// Frames of this end that are longer than the MTU or than one pool buffer.
    pub oversize: u64,
    /// Duplicates and parts of this end for which the other end's ring had no room.
    pub ring_full: u64,
    /// Packets of this end that ask for something which is not switched on, or whose request lies outside of them.
    pub refused: u64,
}

struct InFlight {
    due: Instant,
    frame: Frame,
}

/// One end's state; the wire towards it is `arriving`.
struct End {
    enabled: Capabilities,
    arriving: VecDeque<InFlight>,
    completions: VecDeque<TxToken>,
    hook: Option<Hook>,
    delay: Duration,
    stats: LinkStats,
}

impl End {
    fn new(enabled: Capabilities, ring: usize) -> Self {
        End {
            enabled,
            arriving: VecDeque::with_capacity(ring),
            completions: VecDeque::with_capacity(ring),
            hook: None,
            delay: Duration::ZERO,
            stats: LinkStats::default(),
        }
    }

    /// Adds a frame in order of arrival, behind those due at the same time.
    fn arrive(&mut self, due: Instant, frame: Frame) {
        let after = self.arriving.iter().rev().take_while(|other| other.due > due).count();
        self.arriving.insert(self.arriving.len() - after, InFlight { due, frame });
    }
}

/// Both directions.
struct Cable {
    ends: [End; 2],
    pool: Pool,
    mtu: usize,
    ring: usize,
}

struct Shared {
    cable: Cable,
    capabilities: Capabilities,
    cut: bool,
    splitter: Splitter,
    /// One slot, for a segment on its way.
    segment: TxQueue,
}

/// One end of an in-memory link.
///
/// All capabilities that the link has are switched on at first. A super-segment passes whole, with
/// [`RxMeta::segment_size`] set, if the receiver has coalescing switched on; otherwise its segments arrive. Transmission
/// stops (packets stay in their queue) while the other end's ring is full; the segments of one super-segment may exceed
/// the ring.
#[derive(Clone)]
pub struct Link {
    shared: Rc<RefCell<Shared>>,
    local: usize,
    remote: usize,
}

impl Link {
    /// Two ends of a link. Received frames lie in buffers of `pool`, which must hold `mtu` bytes and an Ethernet header
    /// (super-segments are laid over several). Each end has rings of `ring` frames (at least one).
    pub fn pair(pool: &Pool, mtu: usize, capabilities: Capabilities, ring: usize) -> (Link, Link) {
        let link = Link::with_remote(pool, mtu, capabilities, ring, 1);
        let other = Link { shared: Rc::clone(&link.shared), local: 1, remote: 0 };
        (link, other)
    }

    /// One end that receives what it transmits, as a network interface in loopback mode.
    pub fn looped(pool: &Pool, mtu: usize, capabilities: Capabilities, ring: usize) -> Link {
        Link::with_remote(pool, mtu, capabilities, ring, 0)
    }

    fn with_remote(pool: &Pool, mtu: usize, capabilities: Capabilities, ring: usize, remote: usize) -> Link {
        let ring = ring.max(1);
        let ends = [End::new(capabilities, ring), End::new(capabilities, ring)];
        let shared = Shared {
            cable: Cable { ends, pool: pool.clone(), mtu, ring },
            capabilities,
            cut: false,
            splitter: Splitter::new(),
            segment: TxQueue::with_capacity(1),
        };
        Link { shared: Rc::new(RefCell::new(shared)), local: 0, remote }
    }

    /// Lets `hook` decide about each frame that this end sends from now on. It must not call the link.
    pub fn set_hook(&self, hook: impl FnMut(&Frame) -> Verdict + 'static) {
        self.shared.borrow_mut().cable.ends[self.local].hook = Some(Box::new(hook));
    }

    /// Delivers all frames of this end again.
    pub fn clear_hook(&self) {
        self.shared.borrow_mut().cable.ends[self.local].hook = None;
    }

    /// Time that each frame of this end takes from now on (zero at first).
    pub fn set_delay(&self, delay: Duration) {
        self.shared.borrow_mut().cable.ends[self.local].delay = delay;
    }

    /// When the next frame arrives at this end; `None` when none is under way.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.shared.borrow().cable.ends[self.local].arriving.front().map(|next| next.due)
    }

    /// Cuts the link: both ends fail with [`DeviceError::Gone`] from now on.
    pub fn cut(&self) {
        self.shared.borrow_mut().cut = true;
    }

    /// What this end has counted.
    pub fn stats(&self) -> LinkStats {
        self.shared.borrow().cable.ends[self.local].stats
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("end", &self.local).field("stats", &self.stats()).finish()
    }
}

impl Device for Link {
    fn mac(&self) -> MacAddr {
        MacAddr([2, 0, 0, 0, 0, 1 + self.local as u8])
    }

    fn mtu(&self) -> usize {
        self.shared.borrow().cable.mtu
    }

    fn capabilities(&self) -> Capabilities {
        self.shared.borrow().capabilities
    }

    fn enable(&mut self, wanted: Capabilities) -> Result<(), DeviceError> {
        let mut shared = self.shared.borrow_mut();
        if wanted.and(shared.capabilities) != wanted {
            return Err(DeviceError::Unsupported);
        }
        shared.cable.ends[self.local].enabled = wanted;
        Ok(())
    }
}

impl QueuePair for Link {
    fn enabled(&self) -> Capabilities {
        self.shared.borrow().cable.ends[self.local].enabled
    }

    fn receive(&mut self, now: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError> {
        let mut shared = self.shared.borrow_mut();
        if shared.cut {
            return Err(DeviceError::Gone);
        }
        let end = &mut shared.cable.ends[self.local];
        let mut count = 0;
        while !batch.is_full() && end.arriving.front().is_some_and(|next| next.due <= now) {
            if let Some(next) = end.arriving.pop_front()
                && batch.push(next.frame).is_ok()
            {
                count += 1;
            }
        }
        end.stats.received += count as u64;
        Ok(count)
    }

    fn transmit(&mut self, now: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError> {
        let shared = &mut *self.shared.borrow_mut();
        if shared.cut {
            return Err(DeviceError::Gone);
        }
        let mut count = 0;
        while let Some(packet) = queue.front_mut() {
            if shared.cable.ends[self.remote].arriving.len() >= shared.cable.ring
                || shared.cable.ends[self.local].completions.len() >= shared.cable.ring
            {
                break;
            }
            let token = packet.meta.token;
            shared.send(self.local, self.remote, now, packet);
            queue.pop();
            count += 1;
            let end = &mut shared.cable.ends[self.local];
            end.stats.sent += 1;
            if token != TxToken(0) {
                end.completions.push_back(token);
            }
        }
        Ok(count)
    }

    fn poll_completion(&mut self) -> Option<TxToken> {
        self.shared.borrow_mut().cable.ends[self.local].completions.pop_front()
    }

    fn arm(&mut self, now: Instant) -> bool {
        let shared = self.shared.borrow();
        let end = &shared.cable.ends[self.local];
        end.arriving.front().is_some_and(|next| next.due <= now) || !end.completions.is_empty()
    }

    /// There is no interrupt: the arrival of what is under way.
    fn poll_timeout(&self) -> Option<Instant> {
        Link::poll_timeout(self)
    }
}

/// Why a packet does not become a frame.
enum Refusal {
    NoBuffer,
    Oversize,
    Request,
}

impl Shared {
    /// Carries the packet, whole or in segments, as the receiver wants it.
    fn send(&mut self, local: usize, remote: usize, now: Instant, packet: &mut TxPacket) {
        let cable = &mut self.cable;
        let sender = cable.ends[local].enabled;
        let able = match packet.meta.segmentation {
            Segmentation::None => true,
            Segmentation::Tcp4(_) => sender.tso4,
            Segmentation::Tcp6(_) => sender.tso6,
        };
        let whole =
            packet.meta.segmentation == Segmentation::None || cable.ends[remote].enabled.rx_coalescing;
        if able && whole {
            cable.carry(local, remote, now, packet);
        } else if able && self.splitter.begin(packet).is_ok() {
            while self.splitter.is_busy() {
                // With the requests kept: the cable looks at the receiver to fill in checksums or not.
                self.splitter.run(&mut self.segment, Capabilities::ALL);
                if let Some(segment) = self.segment.front() {
                    cable.carry(local, remote, now, segment);
                }
                self.segment.pop();
            }
        } else {
            cable.ends[local].stats.refused += 1;
        }
    }
}

impl Cable {
    /// Makes a frame of the packet, asks the hook, and puts it on its way.
    fn carry(&mut self, local: usize, remote: usize, now: Instant, packet: &TxPacket) {
        let mut frame = match self.frame(local, remote, packet) {
            Ok(frame) => frame,
            Err(refusal) => {
                let stats = &mut self.ends[local].stats;
                match refusal {
                    Refusal::NoBuffer => stats.no_buffer += 1,
                    Refusal::Oversize => stats.oversize += 1,
                    Refusal::Request => stats.refused += 1,
                }
                return;
            }
        };
        let end = &mut self.ends[local];
        let (mut due, mut twice) = (now + end.delay, false);
        match end.hook.as_mut().map_or(Verdict::Deliver, |hook| hook(&frame)) {
            Verdict::Deliver => {}
            Verdict::Drop => {
                end.stats.lost += 1;
                return;
            }
            Verdict::Duplicate => twice = true,
            Verdict::Delay(more) => due += more,
            Verdict::Corrupt { at, mask } => corrupt(&mut frame, at, mask),
        }
        if self.ends[remote].enabled.rx_checksum && frame.meta.checksum == ChecksumStatus::Unchecked {
            let layers = layers::parse(frame.data.bytes(), frame.len());
            frame.meta.checksum = layers.map_or(ChecksumStatus::Unchecked, |layers| verify(&frame, &layers));
        }
        if twice {
            self.duplicate(local, remote, due, &frame);
        }
        self.ends[remote].arrive(due, frame);
    }

    /// Sends a second copy, in buffers of its own, if ring (one place is for the original) and pool have room.
    fn duplicate(&mut self, local: usize, remote: usize, due: Instant, frame: &Frame) {
        if self.ends[remote].arriving.len() + 1 >= self.ring {
            self.ends[local].stats.ring_full += 1;
            return;
        }
        let mut layer = Layout::new(&self.pool);
        let copied = layer.write(frame.data.bytes()) && frame.more.iter().all(|p| layer.write(p.bytes()));
        match copied.then(|| layer.finish(frame.meta)).flatten() {
            Some(copy) => self.ends[remote].arrive(due, copy),
            None => self.ends[local].stats.no_buffer += 1,
        }
    }

    fn frame(&self, local: usize, remote: usize, packet: &TxPacket) -> Result<Frame, Refusal> {
        let (sender, receiver) = (self.ends[local].enabled, self.ends[remote].enabled);
        let segment_size = packet.meta.segmentation.segment_size();
        if packet.meta.checksum.is_some() && !(sender.tx_checksum4 || sender.tx_checksum6) {
            return Err(Refusal::Request);
        }
        let fits_buffer = packet.len() <= self.pool.buffer_size();
        if segment_size == 0 && (packet.len() > self.mtu + ETHERNET_MAX || !fits_buffer) {
            return Err(Refusal::Oversize);
        }
        if self.pool.buffer_size() < MAX_HEADER {
            return Err(Refusal::Oversize);
        }
        let status = match packet.meta.checksum {
            Some(_) if receiver.rx_checksum => ChecksumStatus::Good,
            _ => ChecksumStatus::Unchecked,
        };
        let mut layer = Layout::new(&self.pool);
        let fill = packet.meta.checksum.filter(|_| status != ChecksumStatus::Good);
        let written = match fill {
            None => layer.write(packet.header()),
            Some(request) => {
                let mut header = [0; MAX_HEADER];
                let header = &mut header[..packet.header().len()];
                header.copy_from_slice(packet.header());
                checksum::fill(header, packet.chunks(), request).ok_or(Refusal::Request)?;
                layer.write(header)
            }
        };
        if !(written && packet.chunks().iter().all(|chunk| layer.write(chunk.bytes()))) {
            return Err(Refusal::NoBuffer);
        }
        let meta = RxMeta { checksum: status, segment_size, ..RxMeta::default() };
        layer.finish(meta).ok_or(Refusal::NoBuffer)
    }
}

/// Lays bytes into pool buffers one after the other.
struct Layout<'a> {
    pool: &'a Pool,
    frame: Option<Frame>,
    open: Option<Buffer>,
    used: usize,
}

impl<'a> Layout<'a> {
    fn new(pool: &'a Pool) -> Self {
        Layout { pool, frame: None, open: None, used: 0 }
    }

    /// Appends bytes; false when the pool is empty.
    fn write(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            if self.used == self.pool.buffer_size() {
                self.close();
            }
            if self.open.is_none() {
                self.open = self.pool.take();
                self.used = 0;
            }
            let Some(buffer) = &mut self.open else { return false };
            let room = &mut buffer.bytes_mut()[self.used..];
            let count = room.len().min(bytes.len());
            room[..count].copy_from_slice(&bytes[..count]);
            self.used += count;
            bytes = &bytes[count..];
        }
        true
    }

    fn close(&mut self) {
        if let Some(buffer) = self.open.take() {
            let slice = buffer.freeze(0..self.used);
            match &mut self.frame {
                None => self.frame = Some(Frame::new(slice, RxMeta::default())),
                Some(frame) => frame.more.push(slice),
            }
        }
        self.used = 0;
    }

    fn finish(mut self, meta: RxMeta) -> Option<Frame> {
        self.close();
        let mut frame = self.frame?;
        frame.meta = meta;
        Some(frame)
    }
}

/// Flips bits in a frame of which the link is the only owner.
fn corrupt(frame: &mut Frame, at: usize, mask: u8) {
    let at = at.min(frame.len().saturating_sub(1));
    let mut left = at;
    let Frame { data, more, .. } = frame;
    for piece in core::iter::once(data).chain(more.iter_mut()) {
        if left < piece.len() {
            if let Some(byte) = piece.bytes_mut().and_then(|bytes| bytes.get_mut(left)) {
                *byte ^= mask;
            }
            break;
        }
        left -= piece.len();
    }
    if at >= 14 && mask != 0 && frame.meta.checksum == ChecksumStatus::Good {
        frame.meta.checksum = ChecksumStatus::Bad;
    }
}

#[cfg(test)]
mod tests;
