//! Looking at all connections: who they are, what they hold, what limits them. For reports, never per packet.

use crate::conns::Stage;
use crate::stack::Stack;
use crate::tcp::State;
use linerate_transport::{ConnDetail, ConnId, ConnSummary, Owner};

impl Stack {
    /// Shows every connection, half-open ones and those in TIME-WAIT included, in no particular order.
    pub fn survey(&self, mut visit: impl FnMut(ConnSummary)) {
        for (_, conn) in self.conns.table.iter() {
            let (sent, received) = conn.tcp.progress();
            visit(ConnSummary {
                id: conn.id,
                owner: (conn.stage != Stage::Orphan).then_some(conn.owner),
                state: conn.tcp.tcp_state().name(),
                sent,
                received,
                memory: conn.tcp.send_memory() + conn.tcp.receive_memory(),
                limited_by: conn.tcp.limited_by(),
            });
        }
    }

    /// Looks at one connection closely, whether its owner has let go or not.
    pub fn detail(&self, id: ConnId) -> Option<ConnDetail> {
        let conn = self.conns.table.find(id.index(), id.generation())?;
        let tcp = &conn.tcp;
        Some(ConnDetail {
            info: conn.info(&self.conns.resources, self.net.now)?,
            state: tcp.tcp_state().name(),
            queued: tcp.unsent(),
            unread: tcp.readable() as u64,
        })
    }

    /// Shows what waits in each UDP socket: whose it is, and the bytes of memory.
    pub fn survey_udp(&self, mut visit: impl FnMut(Owner, usize)) {
        for (_, socket) in self.udp.iter() {
            visit(socket.owner, socket.held());
        }
    }

    /// Bytes charged to sockets now: [`MemoryStats::used`](crate::MemoryStats::used) alone, cheap enough for every turn of a
    /// loop.
    pub fn memory_used(&self) -> usize {
        self.conns.resources.budget.used()
    }

    /// Bytes that connections themselves take, in the table and, while anything happens on them, elsewhere; beside what their
    /// queues hold.
    pub fn table_bytes(&self) -> usize {
        self.conns.bytes()
    }
}

impl State {
    /// The name of RFC 9293 in small letters, as `ss` and `netstat` print it.
    pub const fn name(self) -> &'static str {
        match self {
            State::Listen => "listen",
            State::SynSent => "syn-sent",
            State::SynReceived => "syn-received",
            State::Established => "established",
            State::FinWait1 => "fin-wait-1",
            State::FinWait2 => "fin-wait-2",
            State::CloseWait => "close-wait",
            State::Closing => "closing",
            State::LastAck => "last-ack",
            State::TimeWait => "time-wait",
            State::Closed => "closed",
        }
    }
}
