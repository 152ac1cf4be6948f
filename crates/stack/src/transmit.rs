//! What goes out, in which order.
//!
//! 1. Control packets and replies; solicitations for neighbours.
//! 2. Connections that may owe an acknowledgement: one packet each, with data if there is some, as long as a quarter
//!    of the queue stays free: receiving cannot starve sending.
//! 3. In turn, a few datagrams and one connection's quantum, while more than a reserve of slots is free. A connection
//!    whose turn was cut short by a full queue goes to the end of the round if it sent anything.
//! 4. Acknowledgements that are left, into the last slots: sending cannot starve receiving.

use crate::conns::token;
use crate::dormancy::Awake;
use crate::egress::{TcpWay, ip_header_len};
use crate::neighbor::{Lookup, Solicit};
use crate::net::Net;
use crate::settle::{arm, settle_bare_ack, settle_calm};
use crate::stack::Stack;
use crate::tcp::TxLimits;
use core::net::IpAddr;
use core::time::Duration;
use linerate_nic::{MacAddr, TxQueue};
use linerate_transport::{Bytes, FileError, FileRequest};
use linerate_wire::arp;
use linerate_wire::units::Instant;

/// Slots that only control packets and acknowledgements may use; a quarter of shorter queues.
const RESERVE: usize = 16;
/// Datagrams sent between two connections' turns.
const DATAGRAMS_PER_TURN: usize = 16;
/// When to ask again for a neighbour that the cache refused to ask for.
const REFUSED_RETRY: Duration = Duration::from_millis(100);
/// The longest TCP header.
const TCP_HEADER: usize = 60;

/// How a connection's turn ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Turn {
    /// It has nothing to send now, or waits for its neighbour.
    Done,
    /// It may have more.
    More,
    /// The queue had no slot for it.
    Full {
        /// Whether it sent anything.
        sent: bool,
    },
}

/// Where a connection's packets go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Known(MacAddr),
    /// The connection is over, or waits for its neighbour.
    Unknown,
    /// The neighbour cannot be asked for now.
    Refused,
}

/// What one turn may use.
#[derive(Clone, Copy)]
struct Allowance {
    /// Slots to leave free.
    reserve: usize,
    /// Payload bytes.
    bytes: usize,
    /// Packets.
    packets: usize,
}

impl Stack {
    /// Fills free slots of the device's queue with what waits to be sent. Completions are asked for by tokens.
    pub fn poll_transmit(&mut self, now: Instant, queue: &mut TxQueue) {
        self.set_now(now);
        debug_assert!(
            self.conns.unsettled.is_none() && self.conns.unarmed.is_none(),
            "something was left over"
        );
        let slots = queue.room() + queue.len();
        self.conns.link_full = false;
        self.net.transmit_control(queue);
        self.transmit_urgent(queue, slots / 4);
        self.transmit_round(queue, RESERVE.min(slots / 4));
        self.transmit_urgent(queue, 0);
        // What was to be sent may have met unknown neighbours.
        self.solicit_neighbors();
        self.net.transmit_control(queue);
        self.watch_pressure();
        self.watch_dormancy();
        // Only a full queue leaves any of them over.
        self.conns.link_full = self.conns.urgent.len() + self.conns.sending.len() > 0;
    }

    /// Whether [`Stack::poll_transmit`] may have something to do, given free slots.
    pub fn wants_transmit(&self) -> bool {
        self.conns.urgent.len() > 0 || self.conns.sending.len() > 0 || self.net.has_packets()
    }

    #[inline]
    fn transmit_urgent(&mut self, queue: &mut TxQueue, reserve: usize) {
        if self.conns.urgent.len() > 0 {
            self.transmit_all_urgent(queue, reserve);
        }
    }

    #[inline(never)]
    fn transmit_all_urgent(&mut self, queue: &mut TxQueue, reserve: usize) {
        let allowance = Allowance { reserve, bytes: usize::MAX, packets: 1 };
        for _ in 0..self.conns.urgent.len() {
            if queue.room() <= reserve {
                return;
            }
            let Some(slot) = self.conns.urgent.pop() else { return };
            match self.transmit_conn(slot, queue, allowance) {
                // What it had written went with the acknowledgement.
                Turn::Done => self.conns.sending.remove(slot),
                Turn::More => self.conns.sending.push(slot),
                Turn::Full { .. } => {
                    self.conns.urgent.push_front(slot);
                    return;
                }
            }
        }
    }

    fn transmit_round(&mut self, queue: &mut TxQueue, reserve: usize) {
        let quantum = self.net.config.send_quantum;
        let allowance = Allowance { reserve, bytes: quantum, packets: usize::MAX };
        while queue.room() > reserve {
            let datagrams = self.net.transmit_datagrams(queue, reserve, DATAGRAMS_PER_TURN);
            let Some(slot) = self.conns.sending.pop() else {
                if datagrams == 0 {
                    return;
                }
                continue;
            };
            match self.transmit_conn(slot, queue, allowance) {
                Turn::Done => {}
                Turn::More | Turn::Full { sent: true } => self.conns.sending.push(slot),
                Turn::Full { sent: false } => {
                    self.conns.sending.push_front(slot);
                    return;
                }
            }
        }
    }

    /// One connection's turn.
    fn transmit_conn(&mut self, slot: u32, queue: &mut TxQueue, allowance: Allowance) -> Turn {
        let now = self.net.now;
        let Some(mut conn) = self.conns.awake(slot) else { return Turn::Done };
        let mac = match self.net.way_to_peer(&mut conn, slot) {
            Way::Known(mac) => mac,
            Way::Unknown => return Turn::Done,
            Way::Refused => {
                self.settle(slot);
                return Turn::Done;
            }
        };
        let way = TcpWay { tos: conn.tos, mac };
        if conn.tcp.owes_bare_ack()
            && queue.room() > allowance.reserve
            && let Some(place) = queue.vacant()
        {
            let Net { egress, counters, timers, .. } = &mut self.net;
            let head = conn.tcp.bare_ack(now);
            egress.bare_ack(conn.id, &way, conn.tcp, &head, place, counters);
            counters.tcp_out += 1;
            queue.commit();
            settle_bare_ack(slot, &mut conn, timers);
            return Turn::Done;
        }
        let remote = conn.tcp.remote().ip();
        let limits = tx_limits(remote, &self.net.config);
        let l4_offset = self.net.egress.l4_offset(remote);
        let (mut bytes, mut packets) = (0, 0);
        let turn = loop {
            if bytes >= allowance.bytes || packets >= allowance.packets {
                // Whoever has not had its next turn at the end of the round waits for the device.
                conn.tcp.handle_link_full(now);
                break Turn::More;
            }
            if queue.room() <= allowance.reserve {
                conn.tcp.handle_link_full(now);
                break Turn::Full { sent: packets > 0 };
            }
            let Some(place) = queue.vacant() else { break Turn::Full { sent: packets > 0 } };
            let Some(info) = conn.tcp.poll_transmit(now, &limits, place, l4_offset) else {
                break Turn::Done;
            };
            let token = token(conn.id, info.completion);
            let Net { egress, counters, .. } = &mut self.net;
            egress.front_of(conn.id, &way, info.ecn, conn.tcp).complete(place, &info, token, counters);
            counters.tcp_out += u64::from(info.segments);
            counters.tcp_bytes_out += info.payload_len as u64;
            if info.retransmission {
                counters.tcp_retransmits += u64::from(info.segments);
            }
            queue.commit();
            bytes += info.payload_len;
            packets += 1;
            if info.is_last {
                break Turn::Done;
            }
        };
        if turn == Turn::Done && packets == 0 {
            // Nothing has changed but what is waited for.
            let retry_at = conn.retry_at;
            arm(&mut self.net.timers, slot, conn.tcp, retry_at);
            // Memory for the next part of a file may have come back since there was none.
            if conn.tcp.next_file_read().is_some() {
                self.conns.reading.push(slot);
            }
            return turn;
        }
        // While the queue is filled, no connection waits for room in it.
        let (tcp, about) = conn.parts();
        if !settle_calm(slot, tcp, about, &mut self.ready, &mut self.net.timers) {
            self.settle(slot);
        }
        turn
    }

    /// Makes packets of the solicitations that are due.
    fn solicit_neighbors(&mut self) {
        while let Some(Solicit { ip, unicast }) = self.net.neighbors.poll_solicit(self.net.now) {
            if self.ask_owner(ip) {
                continue;
            }
            match ip {
                IpAddr::V6(target) => self.solicit(target, unicast),
                IpAddr::V4(target) => {
                    let Some(IpAddr::V4(sender_ip)) = self.net.addresses.source_for(ip, self.net.now) else {
                        continue;
                    };
                    let request = arp::Builder {
                        operation: arp::Operation::REQUEST,
                        sender_mac: self.net.config.mac,
                        sender_ip,
                        target_mac: MacAddr::default(),
                        target_ip: target,
                    };
                    self.net.send_arp(request, unicast.unwrap_or(MacAddr::BROADCAST));
                }
            }
        }
    }

    /// The next part of a file that a connection wants to send. It must be answered with
    /// [`Stack::handle_file_data`], in any order.
    pub fn poll_file_request(&mut self) -> Option<FileRequest> {
        for _ in 0..self.conns.reading.len() {
            if self.conns.reads.is_full() {
                return None;
            }
            let slot = self.conns.reading.pop()?;
            let Some(conn) = self.conns.awake(slot) else { continue };
            let Some(read) = conn.tcp.next_file_read() else {
                // The memory that it was to be read into has gone to others. What waited for it to fill a segment leaves now;
                // acknowledged, it makes the file the first in line.
                self.conns.sending.push(slot);
                continue;
            };
            conn.tcp.file_read_started(&read);
            let id = conn.id;
            if conn.tcp.next_file_read().is_some() {
                self.conns.reading.push(slot);
            }
            let mut token = 0;
            self.conns.reads.insert(|index, generation| {
                token = u64::from(generation) << 32 | u64::from(index);
                crate::conns::FileWait { conn: id, index: read.index, token }
            })?;
            return Some(FileRequest { token, file: read.file, offset: read.offset, len: read.len });
        }
        None
    }

    /// The answer to a file request. Fewer bytes than asked for, or an error, end the connection
    /// ([`CloseReason::File`](linerate_transport::CloseReason::File)); answers for connections that are gone are
    /// dropped.
    pub fn handle_file_data(&mut self, now: Instant, token: u64, data: Result<Bytes, FileError>) {
        self.set_now(now);
        let index = token as u32;
        if self.conns.reads.at(index).is_none_or(|wait| wait.token != token) {
            return;
        }
        let Some(wait) = self.conns.reads.remove(index) else { return };
        let slot = wait.conn.index();
        if self.conns.table.find(slot, wait.conn.generation()).is_none() {
            return;
        }
        if let Some(conn) = self.conns.awake(slot) {
            conn.tcp.handle_file_data(self.net.now, wait.index, data);
            self.conns.sending.push(slot);
            self.settle(slot);
        }
    }
}

impl Net {
    /// The way to a connection's next hop. Without one the connection waits where it is woken from.
    fn way_to_peer(&mut self, conn: &mut Awake<'_>, slot: u32) -> Way {
        if conn.routes != self.routes.version() && self.look_for_route(conn) {
            self.waiting.leave(slot);
        }
        if conn.tcp.is_finished() || self.waiting.list_of(slot).is_some() {
            return Way::Unknown;
        }
        match self.resolve_ref(conn.neighbor, &conn.next_hop) {
            Lookup::Known(neighbor, mac) => {
                conn.neighbor = Some(neighbor);
                Way::Known(mac)
            }
            Lookup::Pending(neighbor) => {
                conn.neighbor = Some(neighbor);
                self.waiting.join(neighbor.slot, slot);
                Way::Unknown
            }
            Lookup::Refused => {
                conn.retry_at = self.now + REFUSED_RETRY;
                Way::Refused
            }
        }
    }

    /// Routes have changed since the connection's was taken: whether it leads elsewhere now. Where none is left it goes on as before:
    /// another may come.
    #[cold]
    pub(crate) fn look_for_route(&self, conn: &mut Awake<'_>) -> bool {
        conn.routes = self.routes.version();
        let next_hop = self.routes.next_hop(conn.tcp.remote().ip()).unwrap_or(conn.next_hop);
        let is_other = next_hop != conn.next_hop;
        if is_other {
            conn.next_hop = next_hop;
            conn.neighbor = None;
        }
        is_other
    }
}

fn tx_limits(remote: IpAddr, config: &crate::config::StackConfig) -> TxLimits {
    let max_payload = if config.max_super_segment > config.mtu {
        config.max_super_segment.saturating_sub(ip_header_len(remote) + TCP_HEADER)
    } else {
        0
    };
    TxLimits { max_payload, completions: config.completions }
}
