//! The wire between two of our nodes in one process.

use linerate_nic::{
    Capabilities, ChecksumStatus, Device, DeviceError, Frame, MacAddr, Pool, Port, PortConfig, QueuePair,
    RxBatch, RxMeta, TxQueue, TxToken,
};
use linerate_stack::{Node, NodeConfig, StackConfig, StackPools};
use linerate_wire::units::Instant;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Frames that the wire holds in each direction, where nothing else is said: what a sender hands over in one turn.
pub const WIRE: usize = 8;

/// Frames under way in one direction.
pub type Frames = Rc<RefCell<VecDeque<Frame>>>;

/// One end of the wire.
pub struct Wire {
    last: u8,
    able: Capabilities,
    /// Frames that it gives in one turn.
    batch: usize,
    /// Frames that wait for the other end at most.
    room: usize,
    pool: Pool,
    arriving: Frames,
    leaving: Frames,
    left: VecDeque<TxToken>,
}

impl Wire {
    /// The end at the address that ends in `last`, with these capabilities.
    pub fn new(
        last: u8,
        able: Capabilities,
        batch: usize,
        room: usize,
        pool: Pool,
        arriving: Frames,
        leaving: Frames,
    ) -> Wire {
        Wire { last, able, batch, room, pool, arriving, leaving, left: VecDeque::with_capacity(room) }
    }
}

impl Device for Wire {
    fn mac(&self) -> MacAddr {
        MacAddr([2, 0, 0, 0, 0, self.last])
    }

    fn mtu(&self) -> usize {
        1_500
    }

    fn capabilities(&self) -> Capabilities {
        self.able
    }

    fn enable(&mut self, _wanted: Capabilities) -> Result<(), DeviceError> {
        Ok(())
    }
}

impl QueuePair for Wire {
    fn enabled(&self) -> Capabilities {
        self.capabilities()
    }

    fn receive(&mut self, _now: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError> {
        let mut arriving = self.arriving.borrow_mut();
        let mut count = 0;
        while count < self.batch
            && !batch.is_full()
            && let Some(frame) = arriving.pop_front()
        {
            batch.push(frame).expect("room");
            count += 1;
        }
        Ok(count)
    }

    fn transmit(&mut self, _now: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError> {
        let mut leaving = self.leaving.borrow_mut();
        let mut count = 0;
        while leaving.len() < self.room
            && let Some(packet) = queue.front()
        {
            let Some(mut buffer) = self.pool.take() else { break };
            let len = packet.linearise(buffer.bytes_mut()).expect("it fits");
            let checksum =
                if self.able.rx_checksum { ChecksumStatus::Good } else { ChecksumStatus::Unchecked };
            let meta = RxMeta { checksum, ..RxMeta::default() };
            leaving.push_back(Frame::new(buffer.freeze(0..len), meta));
            if packet.meta.token != TxToken(0) {
                self.left.push_back(packet.meta.token);
            }
            queue.pop();
            count += 1;
        }
        Ok(count)
    }

    fn poll_completion(&mut self) -> Option<TxToken> {
        self.left.pop_front()
    }
}

/// A port on the end of a wire whose station ends with `last`, which takes `batch` frames a turn. `sums`: software computes and
/// verifies checksums.
pub fn port(
    last: u8,
    sums: bool,
    batch: usize,
    pool: &Pool,
    arriving: &Frames,
    leaving: &Frames,
) -> Port<Wire> {
    let has = !sums;
    let able = Capabilities { tx_checksum4: has, tx_checksum6: has, rx_checksum: has, ..Capabilities::NONE };
    let device = Wire::new(last, able, batch, WIRE, pool.clone(), Rc::clone(arriving), Rc::clone(leaving));
    let config = PortConfig { rx_batch: batch, rx_budget: batch, ..PortConfig::default() };
    let mut port = Port::new(device, config).expect("a port");
    // Segments arrive one by one, as at the other stack.
    port.set_offloads(Capabilities { rx_coalescing: false, ..Capabilities::ALL }).expect("switches");
    port
}

/// A stack on a port, at the address that ends in `last`, which receives into the buffers of `pool`.
pub fn node(port: Port<Wire>, last: u8, pool: &Pool, config: NodeConfig) -> Node<Wire> {
    let stack = StackConfig {
        addresses: vec![format!("10.0.0.{last}/24").parse().expect("an address")],
        dad_transmits: 0,
        ipv6: false,
        ..StackConfig::default()
    };
    let pools = StackPools::for_memory(stack.memory).with_receive(pool.clone());
    Node::new(port, stack, [last; 32], pools, config)
}
