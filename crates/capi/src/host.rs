//! A stack, its device, its sockets, and one turn of their loop.

use crate::config::{lr_device, lr_stack_config};
use crate::device::CallbackDevice;
use crate::errno::{Errno, Result};
use crate::table::Table;
use linerate_nic::{Port, PortConfig};
use linerate_stack::{Node, NodeConfig, StackPools};
use linerate_transport::{Engine as _, Left, Transport as _};
use linerate_wire::units::Instant;

/// `lr_stack_turn`: there is more to do at once; call it again without waiting.
pub const LR_TURN_AGAIN: i32 = 1;
/// `lr_stack_turn`: packets wait for the device; call it again when that has room.
pub const LR_TURN_DEVICE_FULL: i32 = 2;

/// Everything behind an `lr_stack`.
pub(crate) struct Host {
    pub(crate) node: Node<CallbackDevice>,
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
        let settings = unsafe { config.stack(device) }.map_err(|_| Errno(libc::EINVAL))?;
        let callbacks = CallbackDevice::new(device, config.receive_buffers as usize)?;
        let pools = StackPools::for_memory(settings.memory).with_receive(callbacks.pool().clone());
        let port = Port::new(callbacks, PortConfig::default())?;
        let mut node = Node::new(port, settings, config.seed, pools, NodeConfig::default());
        node.stack.set_now(now);
        Ok(Host {
            node,
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
        let input = self.node.input(now);
        // Readiness is asked for where it is wanted; the queue of edges is only emptied.
        while self.node.stack.poll_event().is_some() {}
        let output = self.node.output(now);
        let more = input?.more;
        let mut bits = match output?.left {
            Left::Nothing => 0,
            Left::More => LR_TURN_AGAIN,
            Left::DeviceFull => LR_TURN_DEVICE_FULL,
        };
        if more || self.node.port.device().has_reply() {
            bits |= LR_TURN_AGAIN;
        }
        self.last_turn = bits;
        Ok(bits)
    }

    /// When to take the next turn if nothing comes from the device.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let is_full = self.last_turn & LR_TURN_DEVICE_FULL != 0;
        if self.last_turn & LR_TURN_AGAIN != 0 || (self.node.stack.wants_transmit() && !is_full) {
            return Some(self.now);
        }
        self.node.poll_timeout().map(|at| at.max(self.now))
    }

    /// Counters for `lr_stack_stats`.
    pub(crate) fn device_stats(&self) -> linerate_nic::PortStats {
        self.node.port.stats()
    }
}

/// The error for a handle that is null.
pub(crate) const NULL: Errno = Errno(libc::EFAULT);
