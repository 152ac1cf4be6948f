//! A stack on a device, and the one order in which both are driven.

use crate::config::StackConfig;
use crate::memory::StackPools;
use crate::stack::Stack;
use linerate_nic::{DeviceError, Filter, Interface, Port, RxBatch, TxQueue};
use linerate_transport::{Bytes, Engine, FileError, FileRequest, Input, Left, Output, Transport};
use linerate_wire::units::{Instant, earliest};

/// Sizes of a node, fixed when it is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeConfig {
    /// Frames taken from the device in one turn.
    pub rx_batch: usize,
    /// Packets between stack and device.
    pub tx_queue: usize,
    /// Most rounds of filling and emptying that queue in one turn.
    pub tx_rounds: usize,
}

impl Default for NodeConfig {
    /// 256 frames, 128 packets, four rounds.
    fn default() -> Self {
        NodeConfig { rx_batch: 256, tx_queue: 128, tx_rounds: 4 }
    }
}

/// A stack, the port to its device, and the batches between them.
///
/// [`Engine::input`] and [`Engine::output`] are the two halves of a turn; between them come events, file operations and
/// the servers. A device may report completions at any time: both halves ask for them, so that the timer of the last
/// packet is armed whenever it leaves.
pub struct Node<D> {
    /// The stack, as servers use it.
    pub stack: Stack,
    /// The device and its offload layer.
    pub port: Port<D>,
    batch: RxBatch,
    queue: TxQueue,
    tx_rounds: usize,
    /// The link as the stack knows it.
    is_up: bool,
    /// The groups that the device's filter lets through.
    groups: Option<u32>,
}

impl<D: Interface> Node<D> {
    /// A stack with these settings on a port; Ethernet address and MTU are those of the device. It cannot fail: what
    /// [`StackConfig::check`] objects to is left out. `seed` must be random and secret, see
    /// [`Stack::new`].
    pub fn new(
        port: Port<D>,
        config: StackConfig,
        seed: [u8; 32],
        pools: StackPools,
        sizes: NodeConfig,
    ) -> Self {
        let config = StackConfig { mac: port.mac(), mtu: port.mtu(), ..config };
        Node {
            stack: Stack::new(config, seed, pools),
            port,
            batch: RxBatch::with_limit(sizes.rx_batch.max(1)),
            queue: TxQueue::with_capacity(sizes.tx_queue.max(1)),
            tx_rounds: sizes.tx_rounds.max(1),
            is_up: true,
            groups: None,
        }
    }

    /// Packets that the stack has made and the device has not taken yet.
    pub fn waiting_packets(&self) -> usize {
        self.queue.len()
    }

    /// Whether something is ready for the device: what the stack wants to send, and what waits between the two.
    pub fn wants_transmit(&self) -> bool {
        self.stack.wants_transmit() || self.waits_for_room()
    }

    /// Tells the stack of changes of the link.
    fn watch_link(&mut self, now: Instant) {
        let is_up = self.port.link().is_up;
        if is_up != self.is_up {
            self.is_up = is_up;
            self.stack.handle_link(now, is_up);
        }
    }

    /// Tells the device which groups the stack listens to.
    fn set_filter(&mut self) {
        let version = Some(self.stack.groups_version());
        if self.groups == version {
            return;
        }
        self.groups = version;
        let groups = self.stack.groups();
        let exact = Filter { groups: &groups, all_groups: false, promiscuous: false };
        let all_groups = Filter { all_groups: true, ..exact };
        let finest_first = [exact, all_groups, Filter { promiscuous: true, ..all_groups }];
        let set = finest_first.iter().any(|filter| self.port.set_filter(filter).is_ok());
        if !set {
            log::warn!("the device refuses every filter: frames to groups may not come in");
        }
    }

    /// Tells the stack which packets have left; true if any had.
    fn complete(&mut self, now: Instant) -> bool {
        let port = &mut self.port;
        self.stack.handle_completions(now, core::iter::from_fn(|| port.poll_completion()))
    }
}

impl<D: Interface> Engine for Node<D> {
    type Error = DeviceError;

    fn net(&mut self) -> &mut dyn Transport {
        &mut self.stack
    }

    fn set_now(&mut self, now: Instant) {
        self.stack.set_now(now);
    }

    fn input(&mut self, now: Instant) -> Result<Input, DeviceError> {
        self.stack.set_now(now);
        self.watch_link(now);
        let received = self.port.receive(now, &mut self.batch);
        let (mut moved, more) = (!self.batch.is_empty(), self.port.has_more());
        while !self.batch.is_empty() {
            self.stack.handle_frames(now, &mut self.batch);
        }
        moved |= self.complete(now);
        self.stack.set_backlog(more);
        if self.stack.poll_timeout().is_some_and(|at| at <= now) {
            self.stack.handle_timeout(now);
            moved = true;
        }
        received.map(|_| Input { moved, more })
    }

    fn output(&mut self, now: Instant) -> Result<Output, DeviceError> {
        let mut moved = false;
        self.set_filter();
        for _ in 0..self.tx_rounds {
            self.stack.poll_transmit(now, &mut self.queue);
            if !self.waits_for_room() {
                moved |= self.complete(now);
                return Ok(Output { moved, left: Left::Nothing });
            }
            let sent = self.port.transmit(now, &mut self.queue);
            moved |= self.complete(now);
            // What the port had split before may have left although nothing was taken from the queue.
            if sent? == 0 && self.waits_for_room() {
                return Ok(Output { moved, left: Left::DeviceFull });
            }
            moved = true;
            if !self.wants_transmit() {
                return Ok(Output { moved, left: Left::Nothing });
            }
        }
        Ok(Output { moved, left: Left::More })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        earliest([self.stack.poll_timeout(), self.port.poll_timeout()])
    }

    fn arm(&mut self, now: Instant) -> bool {
        let link_changed = self.port.link().is_up != self.is_up;
        self.port.arm(now) || link_changed
    }

    fn waits_for_room(&self) -> bool {
        !self.queue.is_empty() || self.port.is_pending()
    }

    fn poll_file_request(&mut self) -> Option<FileRequest> {
        self.stack.poll_file_request()
    }

    fn handle_file_data(&mut self, now: Instant, token: u64, data: Result<Bytes, FileError>) {
        self.stack.handle_file_data(now, token, data);
    }

    fn memory_used(&self) -> usize {
        self.stack.memory_used() + self.stack.table_bytes()
    }

    fn refused(&self) -> u64 {
        let counters = self.stack.counters();
        counters.drop_syn_cookie_table + counters.drop_syn_cookie_backlog
    }

    fn unfinished(&self) -> usize {
        self.stack.unfinished()
    }

    fn abort_all(&mut self, now: Instant) -> usize {
        self.stack.abort_all(now)
    }

    fn leave(&mut self, now: Instant) -> bool {
        self.stack.release_lease(now)
    }
}
