//! The receive side: empty buffers to the device, full ones to the stack.

use crate::frame::{Frame, RxBatch};
use crate::pieces::{PieceShelf, Pieces};
use crate::pool::{Buffer, Pool, Slice};
use crate::virtio::ring::Ring;
use crate::virtio::{Stats, Transport, regs};
use crate::vnet::{ByteOrder, HEADER_LEN_MERGEABLE, VirtioHeader};
use alloc::vec::Vec;

/// Bytes of the longest coalesced frame, with its header in front.
const LONGEST: usize = HEADER_LEN_MERGEABLE + 14 + 65_535;

/// The device speaks of a buffer that it does not have, or of more bytes than it could write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Broken;

/// A ring of buffers that the device fills.
///
/// A buffer belongs to the pool, then to the device (held in `held` from the moment it is available), then to the stack, and
/// returns to the pool by itself. A frame takes as many buffers as it needs; the first begins with its header.
pub(super) struct Receiver<P: Transport> {
    board: P,
    pub ring: Ring<P>,
    /// A frame may take several buffers, as was agreed with the device.
    merges: bool,
    /// What the device has, by descriptor.
    held: Vec<Option<Buffer>>,
    /// Buffers of ours that the device does not have at the moment.
    spare: Vec<Buffer>,
    pool: Pool,
    /// Buffers that stay here when the pool has none: a quarter.
    reserve: usize,
    lists: PieceShelf,
}

impl<P: Transport> Receiver<P> {
    pub fn new(board: P, ring: Ring<P>, pool: Pool, len: u16, merges: bool) -> Self {
        let mut held = Vec::new();
        held.resize_with(len.into(), || None);
        let reserve = pool.len().min(len.into()) / 4;
        let more = LONGEST.div_ceil(pool.buffer_size().max(1)) - 1;
        // Each list in use stands for two buffers at least.
        let lists = PieceShelf::new(if more == 0 { 0 } else { pool.len() / 2 }, more);
        Receiver { board, ring, merges, held, spare: Vec::with_capacity(len.into()), pool, reserve, lists }
    }

    /// Most buffers that may wait: a quarter of the ring, so that the device does not run out before they are taken.
    pub fn most_waiting(&self) -> u16 {
        (self.held.len() / 4).max(1) as u16
    }

    /// Takes back what the device had: it was reset.
    pub fn reclaim(&mut self) {
        self.spare.extend(self.held.iter_mut().filter_map(Option::take));
    }

    /// The device does not stop: what it has is lost on purpose, as it may still write to it.
    pub fn abandon(&mut self) {
        self.held.drain(..).for_each(core::mem::forget);
    }

    /// Gives the device a buffer for each free descriptor, as far as there are buffers.
    pub fn refill(&mut self, stats: &mut Stats) {
        while self.ring.room() > 0
            && let Some(mut buffer) = self.spare.pop().or_else(|| self.pool.take())
        {
            let Some(address) = self.board.bus_address(buffer.bytes()) else {
                // The interface does not open with such a pool.
                break;
            };
            let Some(at) = self.ring.take() else { break };
            let len = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
            self.board.invalidate(buffer.bytes_mut());
            self.ring.describe(at, address, len, regs::WRITE, None);
            self.ring.offer(at);
            self.held[usize::from(at)] = Some(buffer);
        }
        stats.notifications += u64::from(self.ring.publish());
    }

    /// Appends frames to `batch` until it is full or none has come; how many.
    pub fn receive(
        &mut self,
        batch: &mut RxBatch,
        report_valid: bool,
        stats: &mut Stats,
    ) -> Result<usize, Broken> {
        let before = batch.len();
        let mut waiting = self.ring.waiting();
        while waiting > 0 && !batch.is_full() {
            let (head, first, len) = self.take_back()?;
            let came = first.bytes().get(..len).unwrap_or_default();
            let (read, count) = (read_header(came), self.buffers(came));
            // The device makes all buffers of a frame known at once (section 5.1.6.4).
            if count == 0 || count > waiting {
                self.held[usize::from(head)] = Some(first);
                return Err(Broken);
            }
            waiting -= count;
            let list = if count == 1 { Some(Pieces::new()) } else { self.lists.take() };
            let has_buffers = self.can_part_with(count);
            let (Some(header), Some(more), true) = (read, list, has_buffers) else {
                if read.is_none() {
                    stats.drop_rx_errors += 1;
                } else {
                    stats.drop_rx_no_buffer += 1;
                }
                self.spare.push(first);
                for _ in 1..count {
                    let (_, buffer, _) = self.take_back()?;
                    self.spare.push(buffer);
                }
                continue;
            };
            let data = first.freeze(HEADER_LEN_MERGEABLE..len);
            let frame = self.frame(data, more, count - 1, header, report_valid)?;
            stats.rx_frames += 1;
            stats.rx_coalesced += u64::from(frame.meta.segment_size != 0);
            // There is room: the loop goes no further than that.
            let pushed = batch.push(frame);
            debug_assert!(pushed.is_ok(), "no room in the batch");
        }
        self.refill(stats);
        Ok(batch.len() - before)
    }

    /// The oldest buffer that has come back, its descriptor, and how many bytes are in it.
    fn take_back(&mut self) -> Result<(u16, Buffer, usize), Broken> {
        let used = self.ring.peek(0);
        let held = usize::try_from(used.id).ok().and_then(|id| self.held.get_mut(id));
        let mut buffer = held.and_then(Option::take).ok_or(Broken)?;
        let (head, len) = (used.id as u16, used.len as usize);
        if len > buffer.len() {
            self.held[usize::from(head)] = Some(buffer);
            return Err(Broken);
        }
        self.ring.take_back(head);
        self.board.invalidate(&mut buffer.bytes_mut()[..len]);
        Ok((head, buffer, len))
    }

    /// How many buffers the frame takes that begins with `came`, whatever else its header says: all of them are to be taken back.
    fn buffers(&self, came: &[u8]) -> u16 {
        // Where nothing was agreed devices leave the field as it was, so that it is of whoever had the buffer (QEMU up to 9.2).
        match came.get(10..12) {
            Some(&[low, high]) if self.merges => u16::from_le_bytes([low, high]),
            _ => 1,
        }
    }

    fn frame(
        &mut self,
        data: Slice,
        mut more: Pieces,
        others: u16,
        header: VirtioHeader,
        report_valid: bool,
    ) -> Result<Frame, Broken> {
        for _ in 0..others {
            let (_, buffer, len) = self.take_back()?;
            more.push(buffer.freeze(0..len));
        }
        let meta = header.rx_meta(data.bytes(), report_valid);
        Ok(Frame::in_pieces(data, more, meta))
    }

    /// Whether so many buffers, of which the first is taken back already, can go to the stack: others take their place, or the device still has a quarter of its buffers
    /// without them. What comes then is dropped here, and the device is never without a buffer for good.
    fn can_part_with(&self, count: u16) -> bool {
        let left = usize::from(self.ring.in_use()) + self.spare.len() + self.pool.free();
        left + 1 >= self.reserve + usize::from(count)
    }
}

/// The header of a frame that begins with `came`; `None` if it means nothing, or nothing is behind it.
fn read_header(came: &[u8]) -> Option<VirtioHeader> {
    let came = (came.len() > HEADER_LEN_MERGEABLE).then_some(came)?;
    VirtioHeader::parse(came, ByteOrder::Little).ok()
}
