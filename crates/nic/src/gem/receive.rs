//! The receive side of a queue: empty buffers to the device, full ones to the stack.

use crate::bus::Platform;
use crate::frame::{Frame, RxBatch};
use crate::gem::counters::QueueStats;
use crate::gem::descriptor::Table;
use crate::gem::engine;
use crate::gem::regs;
use crate::gem::settings::RECEIVE_BUFFER;
use crate::meta::{ChecksumStatus, RxMeta};
use crate::pool::{Buffer, Pool};
use alloc::vec::Vec;
use core::sync::atomic::{Ordering, fence};

/// Bytes that every frame has.
const ETHERNET: usize = 14;

/// The device has completed a descriptor before an older one: it and the driver are at different places of the ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Misplaced;

/// A ring of buffers that the device fills in order, one for each frame.
///
/// A buffer belongs to the pool, then to the device (held in `held` from the moment its descriptor is given), then to the
/// stack, and returns to the pool by itself. The cache forgets it before the device gets it, and before the processor reads
/// it. What is not the device's points to the scrap: an emulator was seen to write where it must not.
pub(super) struct Receiver<P> {
    board: P,
    table: Table,
    /// The register that says where the ring lies.
    register: u32,
    queue: u16,
    held: Vec<Option<Buffer>>,
    /// Buffers of ours that the device does not have at the moment.
    spare: Vec<Buffer>,
    pool: Pool,
    /// Buffers that stay here when the pool has none: a quarter.
    reserve: usize,
    scrap: u64,
    /// Position of the oldest descriptor that the device has, and of the next to give.
    oldest: u64,
    next: u64,
}

impl<P: Platform> Receiver<P> {
    pub fn new(board: P, table: Table, queue: u16, pool: Pool, scrap: u64) -> Self {
        let len = usize::from(table.len);
        let mut held = Vec::new();
        held.resize_with(len, || None);
        let reserve = pool.len().min(len - 1) / 4;
        let register = regs::QueueRegisters::of(queue).receive_base;
        let spare = Vec::with_capacity(len);
        Receiver { board, table, register, queue, held, spare, pool, reserve, scrap, oldest: 0, next: 0 }
    }

    /// Begins with an empty ring and as many buffers as there are. Frames that lie in the ring are lost. False if the device
    /// does not let go of the former ring, whose buffers stay where they are.
    #[must_use]
    pub fn restart(&mut self, stats: &mut QueueStats) -> bool {
        let (board, table, scrap) = (&self.board, self.table, self.scrap);
        let clear = || (0..u64::from(table.len)).for_each(|at| table.take_receive(board, at, scrap));
        if !engine::install_receive(board, self.register, table, clear) {
            return false;
        }
        self.spare.extend(self.held.iter_mut().filter_map(Option::take));
        (self.oldest, self.next) = (0, 0);
        self.refill(stats);
        true
    }

    /// Points the device to the ring that is never its own; the buffers return to their pool, unless that fails.
    pub fn stop(&mut self, idle: Table) {
        if !engine::install_receive(&self.board, self.register, idle, || ()) {
            // Better lost than written to by the device while somebody else has them.
            self.held.drain(..).for_each(core::mem::forget);
        }
    }

    /// Gives the device a buffer for each free descriptor but one, as far as there are buffers.
    pub fn refill(&mut self, stats: &mut QueueStats) {
        let before = self.next;
        while self.in_use() + 1 < usize::from(self.table.len)
            && let Some(mut buffer) = self.spare.pop().or_else(|| self.pool.take())
        {
            let Some(address) = engine::reach(&self.board, buffer.bytes(), self.table.is_wide) else {
                // A queue does not start with such a pool; one of two kinds of memory is told from this.
                stats.rx_unreachable += 1;
                break;
            };
            self.board.invalidate(buffer.bytes_mut());
            self.table.give_receive(&self.board, self.next, address);
            let slot = self.table.slot(self.next);
            self.held[slot] = Some(buffer);
            self.next += 1;
        }
        if self.next == before {
            return;
        }
        // The descriptors before the look at the last one that was given earlier: if the device is not past that, it finds these.
        fence(Ordering::SeqCst);
        if before == self.oldest || self.table.received(&self.board, before - 1).is_some() {
            self.wake(stats);
        }
    }

    /// The device may have found no buffer where there is one now.
    fn wake(&self, stats: &mut QueueStats) {
        if self.board.read(regs::RECEIVE_STATUS) & regs::NO_BUFFER != 0 {
            self.board.write(regs::RECEIVE_STATUS, regs::NO_BUFFER);
            stats.rx_no_buffer += 1;
        }
        // An emulator reads the descriptor anew only then; to hardware it says nothing new.
        self.board.write(regs::NETWORK_CONTROL, regs::RUNNING);
    }

    /// Appends frames to `batch` until it is full or none has come; how many.
    pub fn receive(
        &mut self,
        batch: &mut RxBatch,
        report_valid: bool,
        stats: &mut QueueStats,
    ) -> Result<usize, Misplaced> {
        let before = batch.len();
        while !batch.is_full() && self.oldest < self.next {
            let Some(received) = self.table.received(&self.board, self.oldest) else {
                self.check_place()?;
                break;
            };
            let slot = self.table.slot(self.oldest);
            let Some(mut buffer) = self.held[slot].take() else { return Err(Misplaced) };
            self.table.take_receive(&self.board, self.oldest, self.scrap);
            self.oldest += 1;
            let longest = RECEIVE_BUFFER.min(buffer.len());
            if !(ETHERNET..=longest).contains(&received.len) {
                stats.drop_rx_errors += 1;
                self.spare.push(buffer);
                continue;
            }
            if !self.can_part() {
                stats.drop_rx_no_buffer += 1;
                self.spare.push(buffer);
                continue;
            }
            self.board.invalidate(&mut buffer.bytes_mut()[..received.len]);
            let is_good = report_valid && received.is_verified;
            let checksum = if is_good { ChecksumStatus::Good } else { ChecksumStatus::Unchecked };
            stats.rx_verified += u64::from(is_good);
            let meta = RxMeta { checksum, queue: self.queue, ..RxMeta::default() };
            stats.rx_frames += 1;
            // There is room: the loop goes no further than that.
            let pushed = batch.push(Frame::new(buffer.freeze(0..received.len), meta));
            debug_assert!(pushed.is_ok(), "no room in the batch");
        }
        self.refill(stats);
        Ok(batch.len() - before)
    }

    /// Whether a frame has come.
    pub fn is_ready(&self) -> bool {
        self.oldest < self.next && self.table.received(&self.board, self.oldest).is_some()
    }

    /// The oldest descriptor is the device's: so must be the one behind it.
    fn check_place(&self) -> Result<(), Misplaced> {
        if self.is_ahead_within(1) { Err(Misplaced) } else { Ok(()) }
    }

    /// Whether the device has completed a descriptor before the oldest, wherever in the ring: for a look now and then. An
    /// emulator with two queues goes on into a full ring as long as the other has room.
    pub fn is_misplaced(&self) -> bool {
        self.is_ahead_within(self.in_use() as u64)
    }

    /// The oldest is asked for once more afterwards, as several may come back in between.
    fn is_ahead_within(&self, descriptors: u64) -> bool {
        let is_waiting = || self.table.received(&self.board, self.oldest).is_none();
        let mut behind = self.oldest + 1..self.next.min(self.oldest + 1 + descriptors);
        self.oldest < self.next
            && is_waiting()
            && behind.any(|at| self.table.received(&self.board, at).is_some())
            && is_waiting()
    }

    /// Whether a buffer can go to the stack: another takes its place, or the device still has a quarter of its buffers
    /// without it. What comes then is dropped here, and the device is never without a buffer for good.
    fn can_part(&self) -> bool {
        self.in_use() + self.spare.len() + self.pool.free() >= self.reserve
    }

    fn in_use(&self) -> usize {
        (self.next - self.oldest) as usize
    }
}
