//! A stack on the interface, and one turn of its loop.

use crate::device::Fifo;
use core::hint::black_box;
use linerate_nic::{Pool, Port, PortConfig, RxBatch, TxQueue};
use linerate_stack::{Stack, StackConfig, StackPools};
use linerate_wire::units::Instant;

/// Buffers for received frames.
const RECEIVE: usize = 16;

/// Stack, port and the queues between them.
pub struct Machine {
    /// The stack.
    pub stack: Stack,
    port: Port<Fifo>,
    batch: RxBatch,
    queue: TxQueue,
}

impl Machine {
    /// A machine with DHCP, for eight connections; `None` when the interface refuses.
    pub fn new() -> Option<Machine> {
        let receive = Pool::new(RECEIVE, 1_536);
        let port = Port::new(Fifo::new(receive.clone()), PortConfig::default()).ok()?;
        let config = StackConfig { dhcp: true, max_connections: 8, ..StackConfig::default() };
        let pools = StackPools::new(16, 1).with_receive(receive);
        Some(Machine {
            stack: Stack::new(config, black_box([0; 32]), pools),
            port,
            batch: RxBatch::with_limit(RECEIVE),
            queue: TxQueue::with_capacity(RECEIVE),
        })
    }

    /// Takes what arrived, lets the stack act, sends what is due; answers with the time of this turn.
    pub fn turn(&mut self) -> Instant {
        let now = black_box(Instant::ZERO);
        black_box(self.port.receive(now, &mut self.batch).is_ok());
        self.stack.handle_frames(now, &mut self.batch);
        if self.stack.poll_timeout().is_some_and(|at| at <= now) {
            self.stack.handle_timeout(now);
        }
        self.stack.poll_transmit(now, &mut self.queue);
        black_box(self.port.transmit(now, &mut self.queue).is_ok());
        while let Some(token) = self.port.poll_completion() {
            self.stack.handle_completion(now, token);
        }
        now
    }
}
