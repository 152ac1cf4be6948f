//! The memory of a stack: its pools, its cap, and what gives way when it runs out.
//!
//! Received data lies in the device's receive pool until it is read. What the stack itself needs it takes from two
//! pools ([`StackPools`]), whose number of buffers is fixed at start:
//!
//! - *pages* of 4 KiB: copies made by `write` and `udp_send`, and small payloads moved out of large receive buffers;
//! - *datagram buffers* of 64 KiB: datagrams being reassembled, and UDP datagrams longer than a page.
//!
//! A window that was advertised is a promise: what comes in it finds a buffer, in order or not. So the windows of all
//! connections together stay within what is free of the budget, of the receive pool and of the device's own queue, each with
//! a share that shrinks as others come, and never below two segments for who holds nothing ([`crate::tcp::MemoryBudget`]).
//! A quarter of the budget is kept for sending, so that data which nobody reads yet never stops the answers.
//!
//! Everything that a socket holds is charged to one budget, [`StackConfig::memory`](crate::StackConfig::memory):
//! received pieces with the whole buffer that they keep, pages with their size, shared payload with its length. As the
//! budget fills up, this gives way, in this order:
//!
//! 1. at three quarters, automatic receive buffers stop growing. At three quarters of all, or of what may be held for sending,
//!    automatic send buffers hold one congestion window instead of two, and what the peer takes in two seconds at most: no
//!    more than 16 KiB where it takes nothing. What was read of files beyond that is given back, and read anew when its turn
//!    comes. Data out of order that has waited for a second is dropped. Connections whose peers took nothing for
//!    fifteen seconds, or would take longer than three minutes for what is queued for them, are reset, the slowest first, until
//!    three eighths are free (`pressure.rs`);
//! 2. files are read into shares of thirteen sixteenths of what may be held for sending, what is being read included: each
//!    connection has up to four times what is left. Without a share they are read only for who has nothing left to send, a
//!    kibibyte at a time;
//! 3. at seven eighths, or when an eighth of the pages or a sixteenth of the receive buffers is left, SYNs are dropped and
//!    active opens refused, and the same gives way;
//! 4. at the cap, `send` and `write` answer `Full`, and datagrams and data that go beyond what was promised are dropped.
//!
//! Control packets (ACK, RST, ARP, neighbour discovery, ICMP) need none of it: their headers live in queues that are
//! allocated at start, and the last slots of the transmit queue are theirs. DHCP takes a page while a message waits.

use crate::reassembly::DATAGRAM_BUFFER;
use crate::tcp::MemoryBudget;
use linerate_nic::{Pool, PoolStats};

/// Size of a page in bytes: 16 of them and two cut ends fit a gather list.
pub const PAGE_SIZE: usize = 4_096;

/// The least that [`StackConfig::memory`](crate::StackConfig::memory) may be, in bytes: a page can be written while received
/// data fills the rest, and a window holds some segments.
pub const LEAST_MEMORY: usize = 16 << 10;

/// The pools that a stack works with. Small machines make them in other sizes than [`StackPools::new`] does: pages of 512
/// bytes do, and a stack that neither sends long datagrams nor takes any in fragments needs no datagram buffers.
#[derive(Clone, Debug)]
pub struct StackPools {
    /// Buffers of [`PAGE_SIZE`].
    pub pages: Pool,
    /// Buffers for datagrams that are sent or come in fragments, each with its IP header: 40 bytes more than the longest payload of IP.
    /// What does not fit one is refused, or dropped.
    pub datagrams: Pool,
    /// The device's receive pool, whose level tells when to refuse new connections; `None` if there is no such pool.
    pub receive: Option<Pool>,
    /// Frames that may wait in the device before they take a receive buffer, where that is known. Windows are
    /// kept within it.
    pub device_queue: Option<usize>,
}

impl StackPools {
    /// Pools that suit a memory cap of `memory` bytes: a quarter of it in pages, a thirty-second in datagram buffers
    /// (2 to 32 of them). Each is made when it is needed.
    pub fn for_memory(memory: usize) -> Self {
        let datagrams = (memory / 32 / DATAGRAM_BUFFER).clamp(2, 32);
        StackPools {
            pages: Pool::on_demand((memory / 4 / PAGE_SIZE).max(64), PAGE_SIZE),
            datagrams: Pool::on_demand(datagrams, DATAGRAM_BUFFER),
            receive: None,
            device_queue: None,
        }
    }

    /// Pools of so many pages and datagram buffers, all allocated now.
    pub fn new(pages: usize, datagrams: usize) -> Self {
        StackPools {
            pages: Pool::new(pages, PAGE_SIZE),
            datagrams: Pool::new(datagrams, DATAGRAM_BUFFER),
            receive: None,
            device_queue: None,
        }
    }

    /// The same pools, and the receive pool of the device.
    pub fn with_receive(mut self, receive: Pool) -> Self {
        self.receive = Some(receive);
        self
    }

    /// The same pools, with the number of frames that may wait in the device.
    pub fn with_device_queue(mut self, frames: usize) -> Self {
        self.device_queue = Some(frames);
        self
    }
}

/// How much memory is in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryStats {
    /// Bytes charged to sockets.
    pub used: usize,
    /// Bytes that the windows of all connections may still take, beyond two segments each.
    pub promised: usize,
    /// Bytes that two segments for each connection may still take, which are set aside.
    pub granted: usize,
    /// The cap in bytes.
    pub limit: usize,
    /// How often a charge was refused.
    pub refused: u64,
    /// The pages.
    pub pages: PoolStats,
    /// The datagram buffers.
    pub datagrams: PoolStats,
    /// The device's receive pool, if the stack knows it.
    pub receive: Option<PoolStats>,
    /// TCP connections, half-open ones and TIME-WAIT included.
    pub connections: usize,
    /// Of these, connections in TIME-WAIT.
    pub time_wait: usize,
    /// TCP listeners.
    pub listeners: usize,
    /// UDP sockets.
    pub udp_sockets: usize,
}

/// Whether new connections are to be refused. What was promised to others does not stand against them, as an eighth of the
/// receive pool is never promised; half of that may be held by frames that are being looked at.
pub(crate) fn refuses_connections(budget: &MemoryBudget, pools: &StackPools) -> bool {
    budget.used() > budget.limit() / 8 * 7
        || budget.is_sending_short()
        || is_short(&pools.pages)
        || pools.receive.as_ref().is_some_and(|pool| pool.free() < pool.len() / 16)
}

/// Whether giving up queued data would help: the budget is tight, or the pages are short. Receive buffers hold none.
pub(crate) fn is_short_of_queued(budget: &MemoryBudget, pools: &StackPools) -> bool {
    budget.is_tight() || budget.is_sending_tight() || is_short(&pools.pages)
}

/// Whether a pool has little left.
pub(crate) fn is_short(pool: &Pool) -> bool {
    pool.free() < pool.len() / 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_connections_are_refused_when_budget_or_pool_is_short() {
        let pools = StackPools::new(64, 2).with_receive(Pool::new(16, 64));
        let budget = MemoryBudget::new(800);
        let mut charge = budget.charge_sending();
        charge.add(700);
        assert!(!refuses_connections(&budget, &pools));
        charge.add(1);
        assert!(refuses_connections(&budget, &pools));
        charge.sub(700);
        let receive = pools.receive.clone().unwrap();
        // An eighth is never promised; half of that is for what comes at the moment.
        let held: alloc::vec::Vec<_> = (0..15).map(|_| receive.take().unwrap()).collect();
        assert!(!refuses_connections(&budget, &pools));
        let more = receive.take();
        assert!(refuses_connections(&budget, &pools));
        drop((held, more));
        assert!(!refuses_connections(&budget, &pools));
    }
}
