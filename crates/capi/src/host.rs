//! A stack, its device, its sockets, and one turn of their loop.

use crate::config::{lr_device, lr_stack_config};
use crate::device::CallbackDevice;
use crate::errno::{Errno, Result};
use crate::table::Table;
use linerate_nic::{Port, PortConfig, RxBatch, TxQueue};
use linerate_stack::{Stack, StackPools};
use linerate_transport::Transport as _;
use linerate_wire::units::Instant;

/// Packets between stack and device.
const TX_QUEUE: usize = 128;
/// Frames between device and stack.
const RX_BATCH: usize = 256;
/// Rounds of filling and emptying the transmit queue in one turn.
const TX_ROUNDS: usize = 4;

/// `lr_stack_turn`: there is more to do at once; call it again without waiting.
pub const LR_TURN_AGAIN: i32 = 1;
/// `lr_stack_turn`: packets wait for the device; call it again when that has room.
pub const LR_TURN_DEVICE_FULL: i32 = 2;

/// Everything behind an `lr_stack`.
pub(crate) struct Host {
    pub(crate) stack: Stack,
    port: Port<CallbackDevice>,
    batch: RxBatch,
    queue: TxQueue,
    pub(crate) now: Instant,
    pub(crate) sockets: Table,
    /// Where a message of several pieces is put together.
    pub(crate) scratch: Vec<u8>,
    /// Largest automatic buffer of a stream.
    pub(crate) buffer_max: usize,
    last_turn: i32,
}

impl Host {
    /// A stack on a device.
    ///
    /// # Safety
    ///
    /// The texts of `config` are null or end with a zero byte.
    pub(crate) unsafe fn new(config: &lr_stack_config, device: &lr_device, now: Instant) -> Result<Self> {
        // SAFETY: the caller's contract.
        let mut settings = unsafe { config.stack(device)? };
        let callbacks = CallbackDevice::new(device, config.receive_buffers as usize)?;
        let pools = StackPools::for_memory(settings.memory).with_receive(callbacks.pool().clone());
        let port = Port::new(callbacks, PortConfig::default())?;
        settings.mac = port.mac();
        settings.mtu = port.mtu();
        let mut stack = Stack::new(settings, config.seed, pools);
        stack.set_now(now);
        Ok(Host {
            stack,
            port,
            batch: RxBatch::with_limit(RX_BATCH),
            queue: TxQueue::with_capacity(TX_QUEUE),
            now,
            sockets: Table::new(config.max_sockets.clamp(1, 1 << 16) as usize),
            scratch: Vec::new(),
            buffer_max: config.buffer_max,
            last_turn: 0,
        })
    }

    /// One turn: packets in, timers, packets out. Returns LR_TURN_... bits.
    pub(crate) fn turn(&mut self, now: Instant) -> Result<i32> {
        self.now = self.now.max(now);
        let now = self.now;
        self.stack.set_now(now);
        let received = self.port.receive(now, &mut self.batch);
        let mut bits = if self.batch.is_full() { LR_TURN_AGAIN } else { 0 };
        while !self.batch.is_empty() {
            self.stack.handle_frames(now, &mut self.batch);
        }
        if self.stack.poll_timeout().is_some_and(|at| at <= now) {
            self.stack.handle_timeout(now);
        }
        // Readiness is asked for where it is wanted; the queue of edges is only emptied.
        while self.stack.poll_event().is_some() {}
        let sent = self.transmit(now);
        received?;
        bits |= sent?;
        if self.port.device().has_reply() {
            bits |= LR_TURN_AGAIN;
        }
        self.last_turn = bits;
        Ok(bits)
    }

    fn transmit(&mut self, now: Instant) -> Result<i32> {
        for _ in 0..TX_ROUNDS {
            self.stack.poll_transmit(now, &mut self.queue);
            if self.queue.is_empty() && !self.port.is_pending() {
                self.complete(now);
                return Ok(0);
            }
            let sent = self.port.transmit(now, &mut self.queue);
            self.complete(now);
            if sent? == 0 {
                return Ok(LR_TURN_DEVICE_FULL);
            }
        }
        let waits = !self.queue.is_empty() || self.port.is_pending() || self.stack.wants_transmit();
        Ok(if waits { LR_TURN_AGAIN } else { 0 })
    }

    fn complete(&mut self, now: Instant) {
        while let Some(token) = self.port.poll_completion() {
            self.stack.handle_completion(now, token);
        }
    }

    /// When to take the next turn if nothing comes from the device.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let is_full = self.last_turn & LR_TURN_DEVICE_FULL != 0;
        if self.last_turn & LR_TURN_AGAIN != 0 || (self.stack.wants_transmit() && !is_full) {
            return Some(self.now);
        }
        self.stack.poll_timeout().map(|at| at.max(self.now))
    }

    /// Counters for `lr_stack_stats`.
    pub(crate) fn device_stats(&self) -> linerate_nic::PortStats {
        self.port.stats()
    }
}

/// The error for a handle that is null.
pub(crate) const NULL: Errno = Errno(libc::EFAULT);
