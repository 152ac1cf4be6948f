//! The contract, fulfilled by [`KernelTransport`].

use super::conn::{Conn, Fate};
use super::hub::{Kind, conn_id, listener_id, udp_id};
use super::listener::{self, Accept, Listener};
use super::udp::UdpSocket;
use super::{KernelTransport, conn_key, listener_key, socket, udp_key};
use crate::slab::Key;
use linerate_transport::{
    AlgorithmName, CloseReason, ConnId, ConnInfo, ConnState, ConnectError, Datagram, Event, FileId,
    ListenAddr, ListenError, ListenOptions, ListenerId, MAX_PAYLOAD, Owner, Parcel, Payload, SendError,
    SocketOptions, Stored, Transport, UdpId, UdpSendError,
};
use rustix::event::epoll::EventFlags;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{SocketType, sockopt};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// All edges of a connection: one registration for its whole life.
const CONN_EDGES: EventFlags = EventFlags::IN
    .union(EventFlags::OUT)
    .union(EventFlags::PRI)
    .union(EventFlags::RDHUP)
    .union(EventFlags::ET);

impl KernelTransport {
    /// Takes a socket into the table; drops it when there is no room.
    fn adopt(
        &mut self,
        fd: OwnedFd,
        owner: Owner,
        remote: SocketAddr,
        options: &SocketOptions,
        connecting: bool,
    ) -> Option<Key> {
        let conn = Conn::new(fd, owner, remote, options, connecting, self.hub.now);
        let key = self.conns.insert(conn).ok()?;
        self.conns.get_mut(key)?.set_key(key);
        Some(key)
    }

    /// Has epoll report what happens to a connection from now on, and what it is ready for. False if that is not possible.
    fn watch_conn(&mut self, key: Key) -> bool {
        let fd = self.conns.get(key).and_then(Conn::fd);
        fd.is_none_or(|fd| self.hub.watch(fd, Kind::Conn, key, CONN_EDGES).is_ok())
    }

    /// Has epoll report what happens to those that were accepted, unless their servers have something of theirs to look at first and `is_last` is
    /// not set: one that is answered and closed at once is never watched.
    pub(super) fn watch_accepted(&mut self, is_last: bool) {
        for _ in 0..self.hub.unwatched.len() {
            let Some(key) = self.hub.unwatched.pop_front() else { return };
            if !is_last && self.conns.get(key).is_some_and(Conn::is_occupied) {
                self.hub.unwatched.push_back(key);
            } else if !self.watch_conn(key) {
                self.hub.counters.accept_starved += 1;
                if let Some(conn) = self.conns.get_mut(key) {
                    conn.fail_with(Errno::NOMEM, &mut self.hub);
                }
            }
        }
    }

    /// Opens the socket of an active open and starts it; the second value is an error to report as the first event.
    fn dial(
        local: Option<SocketAddr>,
        remote: SocketAddr,
        options: &SocketOptions,
    ) -> Result<(OwnedFd, Option<Errno>), ConnectError> {
        let failed = |errno| socket::connect_error(errno, local.is_some()).unwrap_or(ConnectError::NoMemory);
        let family = socket::family(remote.ip());
        let fd = socket::open(family, SocketType::STREAM).map_err(failed)?;
        socket::apply(rustix::fd::AsFd::as_fd(&fd), options);
        if let Some(local) = local {
            let local = socket::for_family(local, family).ok_or(ConnectError::Address)?;
            // An old connection in TIME-WAIT must not keep a server from dialling out of its well-known port again.
            sockopt::set_socket_reuseaddr(&fd, true).map_err(failed)?;
            rustix::net::bind(&fd, &local)
                .map_err(|errno| socket::connect_error(errno, true).unwrap_or(ConnectError::Address))?;
        }
        match rustix::net::connect(&fd, &remote) {
            Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok((fd, None)),
            Err(errno) => match socket::connect_error(errno, local.is_some()) {
                Some(error) => Err(error),
                None => Ok((fd, Some(errno))),
            },
        }
    }

    /// Queues a file range: the file is held from now on, whatever happens to its id.
    fn send_file(&mut self, id: ConnId, range: linerate_transport::FileRange) -> Result<(), SendError> {
        let file = self.hub.files.find(range.file);
        let Some((conn, hub)) = self.conn_mut(id) else { return Err(SendError::Closed) };
        if !conn.takes_payload() {
            return Err(SendError::Closed);
        }
        if !range.is_possible() || conn.unsent().checked_add(range.len).is_none() {
            return Err(SendError::TooLong);
        }
        let Some(file) = file else {
            hub.counters.file_failed += 1;
            conn.reset_on_close();
            conn.fail(CloseReason::File, hub);
            return Err(SendError::Closed);
        };
        if conn.is_crowded() {
            conn.set_full();
            return Err(SendError::Full);
        }
        conn.enqueue(hub, |queue, _| queue.push_file(file, range.offset, range.len));
        Ok(())
    }

    /// Gives a connection up, whose peer may have said that it sends nothing more.
    fn release(&mut self, conn: ConnId, peer_is_done: bool) {
        let Some((entry, hub)) = self.conn_mut(conn) else { return };
        match entry.release(peer_is_done, hub) {
            Fate::Remove => self.remove_conn(conn_key(conn)),
            Fate::Keep => self.note_closing(conn_key(conn)),
        }
    }

    /// Room for a memory payload of `len` bytes.
    fn room(&mut self, id: ConnId, len: usize) -> Result<(&mut Conn, &mut super::Hub), SendError> {
        let Some((conn, hub)) = self.conn_mut(id) else { return Err(SendError::Closed) };
        if !conn.takes_payload() {
            return Err(SendError::Closed);
        }
        if len > MAX_PAYLOAD {
            return Err(SendError::TooLong);
        }
        if conn.sendable(hub) == 0 {
            conn.set_full();
            return Err(SendError::Full);
        }
        Ok((conn, hub))
    }
}

impl Transport for KernelTransport {
    fn listen(
        &mut self,
        owner: Owner,
        addr: ListenAddr,
        options: &ListenOptions,
    ) -> Result<ListenerId, ListenError> {
        let (shared, is_first) = &self.hub.shared_ports;
        let is_shared = shared.contains(&addr.port);
        if is_shared && *is_first {
            // Bound for itself only to see that it can be: shared, it would go along with another program of this user.
            drop(Listener::open(owner, addr, options, false)?);
        }
        let listener = Listener::open(owner, addr, options, is_shared)?;
        let key = self.listeners.insert(listener).map_err(|_| ListenError::NoMemory)?;
        let watched = self.listeners.get(key).is_some_and(|listener| {
            self.hub.watch(&listener.fd, Kind::Listener, key, EventFlags::IN | EventFlags::ET).is_ok()
        });
        if !watched {
            self.listeners.remove(key);
            return Err(ListenError::NoMemory);
        }
        Ok(listener_id(key))
    }

    fn close_listener(&mut self, listener: ListenerId) {
        let key = listener_key(listener);
        self.listeners.remove(key);
        self.unfinished.retain(|&other| other != key);
    }

    fn offer_buffer(&mut self, listener: ListenerId, receive_buffer: Option<usize>) {
        if let Some(entry) = self.listeners.get_mut(listener_key(listener)) {
            entry.offer_buffer(receive_buffer);
        }
    }

    fn listener_addr(&self, listener: ListenerId) -> Option<SocketAddr> {
        self.listeners.get(listener_key(listener)).and_then(|listener| socket::local_addr(&listener.fd))
    }

    fn accept(&mut self, listener: ListenerId) -> Option<ConnId> {
        let key = listener_key(listener);
        // Bounded by the listener's budget for the turn.
        loop {
            let entry = self.listeners.get_mut(key)?;
            if entry.unfinished {
                return None;
            }
            match entry.accept(&mut self.hub) {
                Accept::Conn(fd, remote) => {
                    let (owner, options) = (entry.owner, entry.options.clone());
                    if self.hub.is_short_of_descriptors(&fd) {
                        self.drop_sent();
                    }
                    if !self.make_room() {
                        self.hub.counters.accept_refused += 1;
                        listener::refuse(fd);
                        continue;
                    }
                    let key = self.adopt(fd, owner, remote, &options, false)?;
                    self.hub.counters.accepted += 1;
                    if let Some(conn) = self.conns.get_mut(key) {
                        conn.expect(&mut self.hub);
                    }
                    return Some(conn_id(key));
                }
                Accept::Nothing => return None,
                Accept::Budget => {
                    self.retry_listener(key, false);
                    return None;
                }
                Accept::NoDescriptor => {
                    if self.drop_closing() {
                        continue;
                    }
                    let entry = self.listeners.get_mut(key)?;
                    if !entry.refuse_one(&mut self.hub) {
                        entry.unfinished = true;
                        self.retry_listener(key, true);
                        return None;
                    }
                }
                Accept::Starved => {
                    self.retry_listener(key, true);
                    return None;
                }
            }
        }
    }

    fn connect(
        &mut self,
        owner: Owner,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        options: &SocketOptions,
    ) -> Result<ConnId, ConnectError> {
        if !self.make_room() {
            return Err(ConnectError::NoMemory);
        }
        let (fd, failed) = Self::dial(local, remote, options)?;
        let key = self.adopt(fd, owner, remote, options, true).ok_or(ConnectError::NoMemory)?;
        if !self.watch_conn(key) {
            self.remove_conn(key);
            return Err(ConnectError::NoMemory);
        }
        if let Some(conn) = self.conns.get_mut(key) {
            match failed {
                Some(errno) => conn.fail_with(errno, &mut self.hub),
                None => conn.limit_connecting(&mut self.hub),
            }
        }
        Ok(conn_id(key))
    }

    fn peek(&mut self, conn: ConnId) -> &[u8] {
        let Some((conn, hub)) = self.conn_mut(conn) else { return &[] };
        conn.stop_storing(hub);
        conn.peek()
    }

    fn store(&mut self, conn: ConnId, file: FileId, offset: u64, len: usize) -> Option<Stored> {
        // Where a worker has a processor of its own, the bytes are taken for it.
        let file = if self.hub.files.is_crowded() { self.hub.files.find(file)? } else { return None };
        let (conn, hub) = self.conn_mut(conn)?;
        conn.store(&file, offset, len, hub)
    }

    fn take(&mut self, conn: ConnId, len: usize) -> Option<Parcel> {
        let (conn, hub) = self.conn_mut(conn)?;
        conn.take(len, hub)
    }

    fn consume(&mut self, conn: ConnId, len: usize) {
        if let Some((conn, hub)) = self.conn_mut(conn) {
            conn.consume(len, hub);
        }
    }

    fn readable(&self, conn: ConnId) -> usize {
        self.conn(conn).map_or(0, Conn::readable)
    }

    fn send(&mut self, conn: ConnId, payload: Payload) -> Result<(), SendError> {
        if payload.is_empty() {
            // Nothing to do, and yet the answer must be right.
            let known = self.conn(conn).is_some_and(Conn::takes_payload);
            return if known { Ok(()) } else { Err(SendError::Closed) };
        }
        match payload {
            Payload::Static(bytes) => {
                let (conn, hub) = self.room(conn, bytes.len())?;
                conn.enqueue(hub, |queue, _| queue.push_static(bytes));
            }
            Payload::Shared(bytes) => {
                let (conn, hub) = self.room(conn, bytes.len())?;
                conn.enqueue(hub, |queue, _| queue.push_shared(bytes));
            }
            Payload::File(range) => self.send_file(conn, range)?,
        }
        Ok(())
    }

    fn write(&mut self, conn: ConnId, bytes: &[u8]) -> Result<(), SendError> {
        if bytes.is_empty() {
            return self.send(conn, Payload::Static(&[]));
        }
        let (conn, hub) = self.room(conn, bytes.len())?;
        conn.enqueue(hub, |queue, spare| queue.push_copy(bytes, spare));
        Ok(())
    }

    fn sendable(&self, conn: ConnId) -> usize {
        self.conn(conn).map_or(0, |conn| conn.sendable(&self.hub))
    }

    fn unsent(&self, conn: ConnId) -> u64 {
        self.conn(conn).map_or(0, Conn::unsent)
    }

    fn shutdown(&mut self, conn: ConnId) {
        if let Some((conn, hub)) = self.conn_mut(conn) {
            conn.shutdown(hub);
        }
    }

    fn close(&mut self, conn: ConnId) {
        self.release(conn, false);
    }

    fn close_done(&mut self, conn: ConnId) {
        self.release(conn, true);
    }

    fn abort(&mut self, conn: ConnId) {
        if let Some((entry, _)) = self.conn_mut(conn) {
            entry.reset_on_close();
            self.remove_conn(conn_key(conn));
        }
    }

    fn state(&self, conn: ConnId) -> ConnState {
        self.conn(conn).map_or(ConnState::Closed(CloseReason::Stale), Conn::state)
    }

    fn info(&self, conn: ConnId) -> Option<ConnInfo> {
        self.conn(conn).map(|conn| conn.info(self.hub.now))
    }

    fn remote_addr(&self, conn: ConnId) -> Option<SocketAddr> {
        self.conn(conn).map(Conn::remote)
    }

    fn congestion(&self, conn: ConnId) -> Option<AlgorithmName> {
        let name = sockopt::tcp_congestion(self.conn(conn)?.fd()?).ok()?;
        AlgorithmName::new(&name)
    }

    fn set_options(&mut self, conn: ConnId, options: &SocketOptions) {
        if let Some((conn, _)) = self.conn_mut(conn) {
            conn.set_options(options);
        }
    }

    fn udp_bind(
        &mut self,
        owner: Owner,
        addr: ListenAddr,
        receive_buffer: usize,
    ) -> Result<UdpId, ListenError> {
        let udp = UdpSocket::open(owner, addr, receive_buffer)?;
        let key = self.udps.insert(udp).map_err(|_| ListenError::NoMemory)?;
        let edges = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
        let watched = self.udps.get_mut(key).is_some_and(|udp| {
            udp.set_key(key);
            self.hub.watch(&udp.fd, Kind::Udp, key, edges).is_ok()
        });
        if !watched {
            self.udps.remove(key);
            return Err(ListenError::NoMemory);
        }
        Ok(udp_id(key))
    }

    fn udp_set_tos(&mut self, socket: UdpId, tos: u8) {
        if let Some(udp) = self.udps.get_mut(udp_key(socket)) {
            udp.set_tos(tos);
        }
    }

    fn udp_peek(&mut self, socket: UdpId) -> Option<Datagram<'_>> {
        self.udps.get(udp_key(socket))?.peek()
    }

    fn udp_consume(&mut self, socket: UdpId) {
        if let Some(udp) = self.udps.get_mut(udp_key(socket)) {
            udp.consume(&mut self.hub);
        }
    }

    fn udp_send(
        &mut self,
        socket: UdpId,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        data: &[u8],
    ) -> Result<(), UdpSendError> {
        let udp = self.udps.get_mut(udp_key(socket)).ok_or(UdpSendError::Closed)?;
        udp.send(local, remote, [data, &[]], &mut self.hub)
    }

    fn udp_send_with(
        &mut self,
        socket: UdpId,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        head: &[u8],
        body: &'static [u8],
    ) -> Result<(), UdpSendError> {
        let udp = self.udps.get_mut(udp_key(socket)).ok_or(UdpSendError::Closed)?;
        udp.send(local, remote, [head, body], &mut self.hub)
    }

    fn udp_close(&mut self, socket: UdpId) {
        self.udps.remove(udp_key(socket));
    }

    fn udp_addr(&self, socket: UdpId) -> Option<SocketAddr> {
        self.udps.get(udp_key(socket)).map(UdpSocket::local_addr)
    }

    fn source_for(&self, remote: IpAddr) -> Option<IpAddr> {
        // Addresses that belong to nobody (RFC 5737, RFC 3849) stand for all that are far away.
        let (ours, anybody): (IpAddr, IpAddr) = match remote {
            IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::new(192, 0, 2, 1).into()),
            IpAddr::V6(_) => {
                (Ipv6Addr::UNSPECIFIED.into(), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into())
            }
        };
        let remote = if remote.is_unspecified() { anybody } else { remote };
        // To connect it sends nothing, but looks for the way.
        let probe = std::net::UdpSocket::bind((ours, 0)).ok()?;
        probe.connect((remote, 9)).ok()?;
        Some(probe.local_addr().ok()?.ip())
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.next_event()
    }
}
