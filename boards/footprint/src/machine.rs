//! A stack on the interface, and one turn of its loop.

use crate::device::Fifo;
use core::hint::black_box;
use linerate_nic::{Pool, Port, PortConfig};
use linerate_stack::{Node, NodeConfig, StackConfig, StackPools};
use linerate_transport::Engine as _;
use linerate_wire::units::Instant;

/// Buffers for received frames.
const RECEIVE: usize = 16;

/// Stack and interface.
pub struct Machine {
    /// Both of them.
    pub node: Node<Fifo>,
}

impl Machine {
    /// A machine with DHCP, for eight connections; `None` when the interface refuses.
    pub fn new() -> Option<Machine> {
        let receive = Pool::new(RECEIVE, 1_536);
        let port = Port::new(Fifo::new(receive.clone()), PortConfig::default()).ok()?;
        let config = StackConfig { dhcp: true, max_connections: 8, ..StackConfig::default() };
        let pools = StackPools::new(16, 1).with_receive(receive);
        let sizes = NodeConfig { rx_batch: RECEIVE, tx_queue: RECEIVE, ..NodeConfig::default() };
        Some(Machine { node: Node::new(port, config, black_box([0; 32]), pools, sizes) })
    }

    /// Takes what arrived, lets the stack act, sends what is due; answers with the time of this turn.
    pub fn turn(&mut self) -> Instant {
        let now = black_box(Instant::ZERO);
        black_box(self.node.input(now).is_ok());
        black_box(self.node.output(now).is_ok());
        now
    }
}
