//! Frames that leave: copied once into memory that the kernel shares, and handed over in its ring.

use crate::sys::packet::MAX_BATCH;
use crate::sys::rings::{CONTINUES, Consumer, Descriptor, HAS_METADATA, Producer};
use linerate_nic::{Buffer, ChecksumRequest, Coherent, Dma as _, Pool, TxPacket, TxQueue};
use rustix::io::Errno;

/// Bytes of metadata in front of a frame: `struct xsk_tx_metadata`.
pub(super) const METADATA: usize = 24;
/// Free bytes in front of a frame, for metadata; a cache line.
pub(super) const FRONT: usize = 64;
/// In metadata: the checksum is to be filled in (XDP_TXMD_FLAGS_CHECKSUM).
const FILL_CHECKSUM: u64 = 1 << 1;
/// Most pieces of a frame: what the kernel takes in one packet.
const MOST_PIECES: usize = 17;

/// The transmitting half of a queue.
pub(super) struct Sender {
    ring: Producer<Descriptor>,
    complete: Consumer<u64>,
    buffers: Box<[Buffer]>,
    /// Which buffers the kernel has.
    lent: Box<[bool]>,
    free: Vec<u32>,
    /// Where the first buffer is, in bytes from the start of the shared memory.
    from: usize,
    chunk: usize,
    /// A frame may lie in several buffers.
    pieces: bool,
    /// The kernel fills in checksums.
    fills_checksums: bool,
}

/// Offloads of a sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Abilities {
    /// A frame may lie in several buffers.
    pub(super) pieces: bool,
    /// The kernel fills in checksums.
    pub(super) checksums: bool,
}

impl Sender {
    /// Over all buffers of `pool`, which begin `from` bytes behind the start of the shared memory and follow each other.
    pub(super) fn new(
        ring: Producer<Descriptor>,
        complete: Consumer<u64>,
        pool: &Pool,
        from: usize,
        abilities: Abilities,
    ) -> Self {
        let mut buffers: Vec<Buffer> = std::iter::from_fn(|| pool.take()).take(pool.len()).collect();
        buffers.sort_by_key(|buffer| buffer.bytes().as_ptr().addr());
        Sender {
            ring,
            complete,
            lent: vec![false; buffers.len()].into_boxed_slice(),
            free: (0..buffers.len() as u32).rev().collect(),
            from,
            chunk: pool.buffer_size(),
            pieces: abilities.pieces,
            fills_checksums: abilities.checksums,
            buffers: buffers.into_boxed_slice(),
        }
    }

    /// Takes back the buffers of frames that have left; returns how many.
    pub(super) fn reap(&mut self) -> usize {
        let (mut count, mut any) = (0, false);
        while let Some(address) = self.complete.pop() {
            any = true;
            let offset = usize::try_from(address).unwrap_or(usize::MAX).wrapping_sub(self.from);
            let number = offset / self.chunk;
            // What we have not given, or have back already, stays as it is.
            if let Some(lent @ true) = self.lent.get_mut(number) {
                *lent = false;
                self.free.push(number as u32);
                count += 1;
            }
        }
        if any {
            self.complete.release();
        }
        count
    }

    /// Puts packets from the front of `queue` into the ring, some at most; returns how many, and an error where the first has no room
    /// or can never have. They stay in `queue`.
    pub(super) fn put(&mut self, queue: &TxQueue) -> Result<usize, Errno> {
        let mut count = 0;
        for packet in queue.iter().take(MAX_BATCH) {
            match self.put_one(packet) {
                Ok(()) => count += 1,
                Err(error) if count == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(count)
    }

    fn put_one(&mut self, packet: &TxPacket) -> Result<(), Errno> {
        let room = self.chunk - FRONT;
        let pieces = packet.len().div_ceil(room);
        if pieces == 0 || pieces > if self.pieces { MOST_PIECES } else { 1 } {
            return Err(Errno::MSGSIZE);
        }
        if pieces > self.free.len() || pieces > self.ring.room() as usize {
            return Err(Errno::NOBUFS);
        }
        let checksum = packet.meta.checksum.filter(|_| self.fills_checksums);
        let mut copied = 0;
        for piece in 0..pieces {
            // There are as many, as was just made sure.
            let Some(number) = self.free.pop() else { return Err(Errno::NOBUFS) };
            let len = room.min(packet.len() - copied);
            let mut options = if piece + 1 < pieces { CONTINUES } else { 0 };
            if let Some(buffer) = self.buffers.get_mut(number as usize) {
                let bytes = buffer.bytes_mut();
                if let (0, Some(request)) = (piece, checksum) {
                    write_metadata(&mut bytes[FRONT - METADATA..FRONT], request);
                    options |= HAS_METADATA;
                }
                copy(packet, copied, &mut bytes[FRONT..FRONT + len]);
                Coherent.clean(bytes);
            }
            let address = (self.from + number as usize * self.chunk + FRONT) as u64;
            self.ring.push(Descriptor { address, len: len as u32, options });
            self.lent[number as usize] = true;
            copied += len;
        }
        Ok(())
    }

    /// Shows the kernel what was put into the ring.
    pub(super) fn publish(&mut self) {
        self.ring.publish();
    }

    /// Frames, or pieces of such, that the kernel has not looked at.
    pub(super) fn pending(&mut self) -> u32 {
        self.ring.pending()
    }

    /// Whether the kernel waits to be told of them.
    pub(super) fn needs_wakeup(&self) -> bool {
        self.ring.needs_wakeup()
    }
}

/// `struct xsk_tx_metadata` with a request for a checksum.
fn write_metadata(out: &mut [u8], request: ChecksumRequest) {
    out.fill(0);
    out[..8].copy_from_slice(&FILL_CHECKSUM.to_ne_bytes());
    out[8..10].copy_from_slice(&request.start.to_ne_bytes());
    out[10..12].copy_from_slice(&request.offset.to_ne_bytes());
}

/// Copies the part of a packet that begins at byte `from`, as long as `out` is.
fn copy(packet: &TxPacket, mut from: usize, mut out: &mut [u8]) {
    let parts = std::iter::once(packet.header()).chain(packet.chunks().iter().map(|chunk| chunk.bytes()));
    for part in parts {
        let Some(rest) = part.get(from..) else {
            from -= part.len();
            continue;
        };
        from = 0;
        let (to, behind) = out.split_at_mut(rest.len().min(out.len()));
        to.copy_from_slice(&rest[..to.len()]);
        out = behind;
    }
}

#[cfg(test)]
impl Sender {
    /// The buffer that a descriptor speaks of.
    pub(super) fn bytes(&self, descriptor: &Descriptor) -> &[u8] {
        self.buffers[(descriptor.address as usize - self.from) / self.chunk].bytes()
    }
}
