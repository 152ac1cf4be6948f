//! Kernel sockets as a [`linerate_transport::Transport`]: the same servers over the host's own TCP/IP.
//!
//! The owner of the loop sleeps by [`KernelTransport::sleep`], or waits for [`KernelTransport::as_fd`] to become readable, until
//! [`KernelTransport::poll_timeout`], not at all while [`KernelTransport::pending`], and then calls
//! [`KernelTransport::turn`]. What servers queue is handed to the kernel in the next turn, gathered. No call blocks.
//!
//! The process must ignore SIGPIPE, as every Rust program does from its start: `sendfile` has no flag against it.

mod conn;
mod engine;
mod hub;
mod info;
mod listener;
mod receive;
mod send_queue;
mod sleep;
mod socket;
mod survey;
mod transport;
mod udp;

#[cfg(test)]
mod tests;

pub use hub::{KernelConfig, KernelCounters};

use crate::files::{FileAccess, ReadAheadDone};
use crate::slab::{Key, Slab};
use conn::{Conn, Fate};
use hub::{DESCRIPTORS_FOR_FILES, Hub, Kind, listener_id, parse_event_data};
use linerate_transport::{ConnId, Event, ListenerId, Ready, Source, UdpId};
use linerate_wire::units::Instant;
use listener::Listener;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::fd::{AsFd, BorrowedFd};
use sleep::Guests;
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;
use udp::UdpSocket;

/// Most epoll events taken per turn.
const EVENTS_PER_TURN: usize = 1024;
/// Most bytes moved per turn; who did not come to his turn is the first in the next.
const BYTES_PER_TURN: u64 = 8 << 20;
/// Most listeners, and most UDP sockets.
const SOCKETS_MAX: usize = 4096;
/// Closed connections looked at to find the one that gives way.
const CLOSING_COMPARED: usize = 16;
/// Closed connections looked at to find those that have sent everything, where descriptors are short.
const CLOSING_WALKED: usize = 256;
/// When descriptors ran out, accepting is tried again after this time, or as soon as a connection ends.
const STARVED_RETRY: Duration = Duration::from_millis(100);

/// Kernel sockets.
pub struct KernelTransport {
    hub: Hub,
    conns: Slab<Conn>,
    listeners: Slab<Listener>,
    udps: Slab<UdpSocket>,
    /// Listeners that may have more than they gave; asked again at `retry_at`.
    unfinished: VecDeque<Key>,
    retry_at: Option<Instant>,
    /// Connections that their server has closed, the oldest first; some of them are gone already.
    closing: VecDeque<Key>,
    edges: Vec<epoll::Event>,
    /// The edges are those that ended a sleep: nothing else was there then.
    is_woken: bool,
    guests: Guests,
    ahead: VecDeque<ReadAheadDone>,
}

impl KernelTransport {
    /// A transport that sends the files of `files`.
    ///
    /// # Errors
    /// The system's, when it has no descriptor left for the epoll set.
    pub fn new(config: KernelConfig, files: FileAccess) -> std::io::Result<KernelTransport> {
        Ok(KernelTransport {
            hub: Hub::new(config, files)?,
            conns: Slab::new(config.connections_max),
            listeners: Slab::new(SOCKETS_MAX),
            udps: Slab::new(SOCKETS_MAX),
            unfinished: VecDeque::new(),
            retry_at: None,
            closing: VecDeque::new(),
            edges: Vec::with_capacity(EVENTS_PER_TURN),
            is_woken: false,
            guests: Guests::default(),
            ahead: VecDeque::new(),
        })
    }

    /// Lets listeners on these ports share them with those of other transports of this process (SO_REUSEPORT): the kernel
    /// spreads connections over them. The first one, which must listen first, sees to it that nobody else has the port.
    pub fn share_ports(&mut self, ports: &[u16], is_first: bool) {
        self.hub.shared_ports = (ports.to_vec(), is_first);
    }

    /// Does the input and output that is due, within a budget, without blocking. Events are polled afterwards.
    pub fn turn(&mut self, now: Instant) {
        self.hub.now = now;
        self.watch_accepted(true);
        self.poll_edges();
        self.finish_read_aheads();
        self.expire_deadlines();
        self.revive_listeners();
        self.work(now);
    }

    /// Does the input and output that sockets are known to have, within a budget.
    fn work(&mut self, now: Instant) {
        self.hub.now = now;
        let mut moved = 0;
        for _ in 0..self.hub.run.len() {
            if moved >= BYTES_PER_TURN {
                break;
            }
            let Some(key) = self.hub.run.pop_front() else { break };
            let Some(conn) = self.conns.get_mut(key) else { continue };
            if conn.turn(&mut self.hub, &mut moved) == Fate::Remove {
                self.remove_conn(key);
            }
        }
        for _ in 0..self.hub.run_udp.len() {
            let Some(key) = self.hub.run_udp.pop_front() else { break };
            if let Some(udp) = self.udps.get_mut(key) {
                udp.turn(&mut self.hub);
            }
        }
    }

    /// Whether [`KernelTransport::turn`] has work without waiting for anything.
    pub fn pending(&self) -> bool {
        let now = self.retry_at.is_some_and(|at| at <= self.hub.now) && !self.unfinished.is_empty();
        now || self.has_work() || !self.hub.events.is_empty() || !self.hub.unwatched.is_empty()
    }

    /// Whether sockets have input or output to do that the last turn's budget did not allow.
    fn has_work(&self) -> bool {
        !self.hub.run.is_empty() || !self.hub.run_udp.is_empty()
    }

    /// When [`KernelTransport::turn`] must be called at the latest, whatever the descriptor says.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let deadline = self.hub.deadlines.first().map(|&(at, _)| at);
        let retry = if self.unfinished.is_empty() { None } else { self.retry_at };
        match (deadline, retry) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Counters and gauges.
    pub fn counters(&self) -> KernelCounters {
        KernelCounters {
            buffers_refused: self.hub.pool.large_refused,
            connections: self.conns.len() as u64,
            memory: (self.hub.pool.large_bytes() + self.hub.queued_memory) as u64,
            ..self.hub.counters
        }
    }

    /// Connections of which something would be lost if the process ended now: a walk over all, for a program that is
    /// about to end.
    pub fn unfinished(&self) -> usize {
        self.conns.iter().filter(|(_, conn)| conn.is_unfinished()).count()
    }

    /// Drops all connections, and resets those that are unfinished; returns how many these were.
    pub fn abort_all(&mut self) -> usize {
        let keys: Vec<(Key, bool)> =
            self.conns.iter().map(|(key, conn)| (key, conn.is_unfinished())).collect();
        for &(key, is_unfinished) in &keys {
            if is_unfinished && let Some(conn) = self.conns.get_mut(key) {
                conn.reset_on_close();
            }
            self.remove_conn(key);
        }
        keys.iter().filter(|(_, is_unfinished)| *is_unfinished).count()
    }

    fn poll_edges(&mut self) {
        let mut edges = std::mem::take(&mut self.edges);
        if !std::mem::take(&mut self.is_woken) {
            edges.clear();
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            // An error is a signal that came between: the edges are still there in the next turn.
            let _ = epoll::wait(&self.hub.epoll, spare_capacity(&mut edges), Some(&now));
        }
        for edge in &edges {
            let (kind, key) = parse_event_data(edge.data);
            match kind {
                Kind::Conn => {
                    if let Some(conn) = self.conns.get_mut(key) {
                        conn.handle_edge(edge.flags, &mut self.hub);
                    }
                }
                Kind::Listener => self.mark_listener(key),
                Kind::Udp => {
                    if let Some(udp) = self.udps.get_mut(key) {
                        udp.handle_edge(edge.flags, &mut self.hub);
                    }
                }
                Kind::Other => {}
            }
        }
        self.edges = edges;
    }

    fn finish_read_aheads(&mut self) {
        self.hub.ahead.drain_into(&mut self.ahead);
        while let Some(done) = self.ahead.pop_front() {
            if let Some(conn) = self.conns.get_mut(done.key) {
                conn.handle_read_ahead(done.up_to, &mut self.hub);
            }
        }
    }

    fn expire_deadlines(&mut self) {
        while let Some(&(at, key)) = self.hub.deadlines.first() {
            if at > self.hub.now {
                break;
            }
            self.hub.deadlines.pop_first();
            if let Some(conn) = self.conns.get_mut(key)
                && conn.expire(&mut self.hub) == Fate::Remove
            {
                self.remove_conn(key);
            }
        }
    }

    /// Gives every listener its accept budget, and another event to those that had more to give.
    fn revive_listeners(&mut self) {
        if self.retry_at.is_none_or(|at| at > self.hub.now) {
            return;
        }
        self.retry_at = None;
        for _ in 0..self.unfinished.len() {
            let Some(key) = self.unfinished.pop_front() else { break };
            self.mark_listener(key);
        }
    }

    fn mark_listener(&mut self, key: Key) {
        let Some(listener) = self.listeners.get_mut(key) else { return };
        listener.refill();
        listener.unfinished = false;
        listener.ready |= Ready::READABLE;
        if !listener.in_events {
            listener.in_events = true;
            self.hub.events.push_back(Source::Listener(listener_id(key)));
        }
    }

    /// Asks a listener again: in the next turn, or when there may be descriptors again.
    fn retry_listener(&mut self, key: Key, starved: bool) {
        if !self.unfinished.contains(&key) {
            self.unfinished.push_back(key);
        }
        let at = if starved { self.hub.now + STARVED_RETRY } else { self.hub.now };
        self.retry_at = Some(self.retry_at.map_or(at, |old| old.min(at)));
    }

    /// Notes a connection that its server has closed, for when its place is needed.
    fn note_closing(&mut self, key: Key) {
        // Those that ended meanwhile go from time to time; each walk pays for as many notes.
        if self.closing.len() >= 2 * self.conns.len() + CLOSING_COMPARED {
            let conns = &self.conns;
            self.closing.retain(|&other| conns.get(other).is_some());
        }
        self.closing.push_back(key);
    }

    /// Whether there is room for one more connection; if need be, one that its server has closed gives way.
    fn make_room(&mut self) -> bool {
        while self.conns.is_full() {
            if !self.drop_closing() {
                return false;
            }
        }
        true
    }

    /// Drops a connection that its server has closed: of the oldest few one that has sent everything, else the oldest, which is reset. False
    /// if there is none.
    fn drop_closing(&mut self) -> bool {
        loop {
            let state = |key: Key| self.conns.get(key).and_then(Conn::closing);
            let all_sent =
                self.closing.iter().take(CLOSING_COMPARED).position(|&key| state(key) == Some(true));
            let Some(key) = self.closing.remove(all_sent.unwrap_or(0)) else { return false };
            let Some(conn) = self.conns.get(key) else { continue };
            if all_sent.is_none() {
                conn.reset_on_close();
            }
            self.hub.counters.gave_way += 1;
            self.remove_conn(key);
            return true;
        }
    }

    /// Drops connections that their servers have closed and that have sent everything, the oldest first and as many as are to be left for
    /// files: their numbers are those that come next, which does not tell that there are few. Others keep theirs: what
    /// they still send is not lost, though files may find no descriptor until one of them has sent it.
    fn drop_sent(&mut self) {
        let (mut left, mut kept) = (DESCRIPTORS_FOR_FILES, 0);
        for _ in 0..self.closing.len().min(CLOSING_WALKED) {
            if left == 0 {
                break;
            }
            let Some(key) = self.closing.pop_front() else { break };
            match self.conns.get(key).and_then(Conn::closing) {
                Some(true) => {
                    left -= 1;
                    self.hub.counters.gave_way += 1;
                    self.remove_conn(key);
                }
                Some(false) => {
                    self.closing.push_back(key);
                    kept += 1;
                }
                None => {}
            }
        }
        self.closing.rotate_right(kept);
    }

    fn remove_conn(&mut self, key: Key) {
        if let Some(mut conn) = self.conns.remove(key) {
            conn.dismantle(&mut self.hub);
        }
        if !self.unfinished.is_empty() {
            self.retry_at = Some(self.hub.now);
        }
    }

    /// The connection that a server knows by `id`.
    fn conn(&self, id: ConnId) -> Option<&Conn> {
        self.conns.get(conn_key(id)).filter(|conn| conn.is_known())
    }

    /// The same, to change, with the shared means.
    fn conn_mut(&mut self, id: ConnId) -> Option<(&mut Conn, &mut Hub)> {
        let conn = self.conns.get_mut(conn_key(id)).filter(|conn| conn.is_known())?;
        Some((conn, &mut self.hub))
    }

    fn next_event(&mut self) -> Option<Event> {
        while let Some(source) = self.hub.events.pop_front() {
            let found = match source {
                Source::Conn(id) => {
                    let conn = self.conns.get_mut(conn_key(id)).filter(|conn| conn.is_known());
                    conn.map(|conn| (conn.owner, conn.take_events()))
                }
                Source::Listener(id) => self.listeners.get_mut(listener_key(id)).map(|listener| {
                    listener.in_events = false;
                    (listener.owner, std::mem::take(&mut listener.ready))
                }),
                Source::Udp(id) => self.udps.get_mut(udp_key(id)).map(|udp| (udp.owner, udp.take_events())),
            };
            if let Some((owner, ready)) = found
                && !ready.is_empty()
            {
                return Some(Event { owner, source, ready });
            }
        }
        None
    }
}

impl fmt::Debug for KernelTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelTransport")
            .field("connections", &self.conns.len())
            .field("listeners", &self.listeners.len())
            .field("udp_sockets", &self.udps.len())
            .finish_non_exhaustive()
    }
}

impl AsFd for KernelTransport {
    /// Becomes readable when a socket has something to do in the next turn.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.hub.epoll.as_fd()
    }
}

fn conn_key(id: ConnId) -> Key {
    Key { index: id.index(), generation: id.generation() }
}

fn listener_key(id: ListenerId) -> Key {
    Key { index: id.index(), generation: id.generation() }
}

fn udp_key(id: UdpId) -> Key {
    Key { index: id.index(), generation: id.generation() }
}
