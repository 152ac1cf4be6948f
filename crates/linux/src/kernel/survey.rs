//! Looking at all connections: who they are, what they hold, what limits them. For reports, never per turn.

use super::conn::{Conn, Phase};
use super::hub::conn_id;
use super::{KernelTransport, info};
use crate::slab::Key;
use linerate_transport::{ConnDetail, ConnId, ConnSummary};

impl KernelTransport {
    /// Shows every connection, closing ones included, in no particular order. It costs no system call.
    pub fn survey(&self, mut visit: impl FnMut(ConnSummary)) {
        for (key, conn) in self.conns.iter() {
            let (sent, received) = conn.moved();
            visit(ConnSummary {
                id: conn_id(key),
                owner: conn.is_known().then_some(conn.owner),
                state: conn.phase_name(),
                sent,
                received,
                memory: conn.held(),
                limited_by: None,
            });
        }
    }

    /// Looks at one connection closely, whether its server has closed it or not. It costs a few system calls.
    pub fn detail(&self, id: ConnId) -> Option<ConnDetail> {
        let conn = self.conns.get(Key { index: id.index(), generation: id.generation() })?;
        Some(ConnDetail {
            info: conn.info(self.hub.now),
            state: conn.state_name(),
            queued: conn.unsent(),
            unread: conn.readable() as u64,
        })
    }

    /// Most bytes that these may be: half for each of them.
    pub fn memory_limit(&self) -> usize {
        self.hub.config.memory_max
    }

    /// Bytes that large receive buffers and queued payload hold now.
    pub fn memory_used(&self) -> usize {
        self.hub.pool.large_bytes() + self.hub.queued_memory
    }
}

impl Conn {
    /// What is known of its state without a system call.
    fn phase_name(&self) -> &'static str {
        match self.phase {
            Phase::Connecting => "connecting",
            Phase::Open if self.released => "closing",
            Phase::Open => "open",
            Phase::Closed(_) => "closed",
        }
    }

    /// Its state as the kernel has it.
    fn state_name(&self) -> &'static str {
        self.fd().map_or("closed", info::state_name)
    }

    /// Payload bytes that the kernel took, and bytes received.
    fn moved(&self) -> (u64, u64) {
        self.moved
    }

    /// Bytes of memory that its queues hold.
    fn held(&self) -> usize {
        self.send.memory() + self.receive.held()
    }
}
