//! The stack as a transport: what servers call.

use crate::conns::{Brink, Stage};
use crate::demux::FlowKey;
use crate::listener::Listener;
use crate::net::is_loopback;
use crate::ports;
use crate::ready::Slot;
use crate::stack::Stack;
use crate::tcp::{self, Connection, State};
use crate::tcp_input::{NewConn, tcp_mss};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use linerate_transport::{
    AlgorithmName, CloseReason, ConnId, ConnInfo, ConnState, ConnectError, Datagram, Event, ListenAddr,
    ListenError, ListenOptions, ListenerId, MAX_PAYLOAD, Owner, Payload, SendError, SocketOptions, Source,
    Transport, UdpId, UdpSendError,
};

impl Stack {
    /// The address to bind to: `None` for all of ours.
    pub(crate) fn local_ip(&self, ip: Option<IpAddr>) -> Result<Option<IpAddr>, ListenError> {
        let Some(ip) = ip.map(|ip| ip.to_canonical()).filter(|ip| !ip.is_unspecified()) else {
            return Ok(None);
        };
        if self.net.addresses.is_ours(ip) || self.net.addresses.is_probing(ip) {
            Ok(Some(ip))
        } else {
            Err(ListenError::NoSuchAddress)
        }
    }

    /// Ends of a new connection and the address that it is sent to on the link.
    fn choose_ends(
        &mut self,
        local: Option<SocketAddr>,
        remote: SocketAddr,
    ) -> Result<(SocketAddr, SocketAddr, IpAddr), ConnectError> {
        let remote = SocketAddr::new(remote.ip().to_canonical(), remote.port());
        let is_nobody = remote.ip().is_unspecified() || remote.ip().is_multicast() || remote.port() == 0;
        let is_broadcast = match remote.ip() {
            IpAddr::V4(ip) => self.net.addresses.is_broadcast(ip),
            IpAddr::V6(_) => false,
        };
        if is_nobody || is_broadcast || is_loopback(remote.ip()) {
            return Err(ConnectError::Unreachable);
        }
        let ip = local.map(|local| local.ip().to_canonical()).filter(|ip| !ip.is_unspecified());
        if ip.is_some_and(|ip| ip.is_ipv4() != remote.is_ipv4() || !self.net.addresses.is_ours(ip)) {
            return Err(ConnectError::Address);
        }
        let (source, next_hop) = self.net.route(ip, remote.ip()).ok_or(ConnectError::Unreachable)?;
        let port = match local.map_or(0, |local| local.port()) {
            0 => {
                let conns = &self.conns;
                let is_free = |port| {
                    conns.find(&FlowKey::new(source, port, remote.ip(), remote.port())).is_none()
                        && conns.listener_for(source, port).is_none()
                };
                let port = self.team.choose_port(&mut self.net.ports, source, remote, is_free);
                port.ok_or(ConnectError::NoPort)?
            }
            port => port,
        };
        let local = SocketAddr::new(source, port);
        if self.conns.find(&FlowKey::of(local, remote)).is_some() {
            return Err(ConnectError::Address);
        }
        Ok((local, remote, next_hop))
    }

    /// Lets a change of a connection take effect: it may have something to send, or be over.
    fn after_call(&mut self, id: ConnId) {
        self.conns.sending.push(id.index());
        self.settle(id.index());
    }

    /// The same after it gave the connection bytes. Who was refused has nothing new to send, and at most waits for a timer.
    #[inline]
    fn after_send(&mut self, id: ConnId, result: Result<(), SendError>) -> Result<(), SendError> {
        match result {
            Ok(()) => self.after_call(id),
            Err(_) => self.settle(id.index()),
        }
        result
    }

    /// The owner gives a connection up: it goes on alone, or is gone at once.
    fn let_go(&mut self, id: ConnId, end: impl FnOnce(&mut Connection)) {
        let slot = id.index();
        let Some(mut conn) = self.conns.owned_awake(id) else { return };
        conn.stage = Stage::Orphan;
        self.ready.clear(Slot::Conn(slot));
        if conn.tcp.is_finished() {
            self.release(slot);
            return;
        }
        end(conn.tcp);
        if conn.tcp.tcp_state() != State::TimeWait {
            self.bound_orphans(slot);
        }
        self.after_call(id);
    }

    /// Resets the connections of a listener that nobody accepted. The work is bounded by those and by what is half-open,
    /// whatever the size of the table: a passive FTP port closes while others knock.
    fn abort_unaccepted(&mut self, mut closed: Listener) {
        let listener = closed.id;
        let mut slots: Vec<u32> = Vec::new();
        while let Some(conn) = closed.accept() {
            slots.push(conn.index());
        }
        if closed.half_open() > 0 {
            let is_its = |slot: &u32| {
                self.conns.table.at(*slot).is_some_and(|conn| conn.stage == Stage::HalfOpen(listener))
            };
            slots.extend(self.conns.half_open().filter(is_its));
        }
        let now = self.net.now;
        for slot in slots {
            let Some(mut conn) = self.conns.awake(slot) else { continue };
            conn.stage = Stage::Orphan;
            conn.tcp.abort(now, CloseReason::Reset);
            self.conns.sending.push(slot);
            self.settle(slot);
        }
    }
}

impl Transport for Stack {
    fn listen(
        &mut self,
        owner: Owner,
        addr: ListenAddr,
        options: &ListenOptions,
    ) -> Result<ListenerId, ListenError> {
        let ip = self.local_ip(addr.ip)?;
        let port = match addr.port {
            0 => {
                let (conns, seat) = (&self.conns, self.team.seat);
                let is_free = |port| seat.may_choose(port) && !conns.is_listening(ip, port);
                ports::ephemeral(&mut self.net.random, is_free).ok_or(ListenError::NoMemory)?
            }
            port if self.conns.is_listening(ip, port) => return Err(ListenError::InUse),
            port => port,
        };
        let slot = self.conns.listeners.insert(|index, generation| {
            Listener::new(ListenerId::new(index, generation), owner, ip, port, options)
        });
        let slot = slot.ok_or(ListenError::NoMemory)?;
        self.conns.bound.insert(ip, port, slot);
        self.ready.clear(Slot::Listener(slot));
        self.conns.listeners.at(slot).map(|listener| listener.id).ok_or(ListenError::NoMemory)
    }

    fn close_listener(&mut self, listener: ListenerId) {
        if self.conns.listener_mut(listener).is_none() {
            return;
        }
        if let Some(closed) = self.conns.listeners.remove(listener.index()) {
            self.conns.bound.remove(closed.port, listener.index());
            self.ready.clear(Slot::Listener(listener.index()));
            if closed.waiting() > 0 {
                self.abort_unaccepted(closed);
            }
        }
    }

    fn listener_addr(&self, listener: ListenerId) -> Option<SocketAddr> {
        let listener = self.conns.listeners.find(listener.index(), listener.generation())?;
        let ip = listener.ip.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED));
        Some(SocketAddr::new(ip, listener.port))
    }

    fn accept(&mut self, listener: ListenerId) -> Option<ConnId> {
        let id = self.conns.listener_mut(listener)?.accept()?;
        let conn = self.conns.table.find_mut(id.index(), id.generation())?;
        conn.stage = Stage::Owned;
        // What happened while nobody listened.
        let pending = core::mem::take(&mut conn.pending);
        self.ready.raise(Slot::Conn(id.index()), pending);
        // One that opened early is its owner's now: it gives way to no other, as that would not free its slot.
        self.conns.leave(Brink::HalfOpen, id.index());
        Some(id)
    }

    fn connect(
        &mut self,
        owner: Owner,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        options: &SocketOptions,
    ) -> Result<ConnId, ConnectError> {
        let (local, remote, next_hop) = self.choose_ends(local, remote)?;
        if self.refuses_newcomers() || !self.make_room_for_proven() {
            return Err(ConnectError::NoMemory);
        }
        let mss = tcp_mss(remote.ip(), self.net.paths.link_mtu(remote.ip()));
        let config = self.conns.configs.of(options, mss, self.net.config.tcp_options);
        let (secrets, iss) = self.net.numbers(local, remote);
        let mut place = self.conns.free_place();
        *place = Some(Connection::active(self.net.now, config, &self.conns.resources, local, remote, iss));
        let new = NewConn { place, owner, stage: Stage::Owned, next_hop, secrets };
        let slot = self.insert_conn(new).ok_or(ConnectError::NoMemory)?;
        self.net.counters.tcp_active_opens += 1;
        self.conns.sending.push(slot);
        self.settle(slot);
        self.conns.table.at(slot).map(|conn| conn.id).ok_or(ConnectError::NoMemory)
    }

    #[inline]
    fn peek(&mut self, conn: ConnId) -> &[u8] {
        self.conns.owned(conn).map_or(&[], |conn| conn.tcp.peek())
    }

    #[inline]
    fn consume(&mut self, conn: ConnId, len: usize) {
        let now = self.net.now;
        if let Some(owned) = self.conns.owned_awake(conn) {
            owned.tcp.consume(now, len);
            let (owes, reads) = (owned.tcp.owes_ack(), owned.tcp.next_file_read().is_some());
            self.settle_consumed(conn.index(), owes, reads);
        }
    }

    fn readable(&self, conn: ConnId) -> usize {
        self.conns.owned(conn).map_or(0, |conn| conn.tcp.readable())
    }

    fn send(&mut self, conn: ConnId, payload: Payload) -> Result<(), SendError> {
        let now = self.net.now;
        let owned = self.conns.owned_awake(conn).ok_or(SendError::Closed)?;
        let result = owned.tcp.send(now, payload);
        self.after_send(conn, result)
    }

    fn write(&mut self, conn: ConnId, bytes: &[u8]) -> Result<(), SendError> {
        let now = self.net.now;
        let owned = self.conns.owned_awake(conn).ok_or(SendError::Closed)?;
        let result = owned.tcp.write(now, bytes);
        self.after_send(conn, result)
    }

    fn sendable(&self, conn: ConnId) -> usize {
        self.conns.owned(conn).map_or(0, |conn| conn.sendable(&self.conns.resources))
    }

    fn writable(&self, conn: ConnId) -> usize {
        let page = self.net.pools.pages.buffer_size().max(1);
        let pages = self.net.pools.pages.free().min(self.conns.resources.budget.sending_room() / page);
        self.sendable(conn).min(pages.saturating_mul(page)).min(MAX_PAYLOAD)
    }

    fn unsent(&self, conn: ConnId) -> u64 {
        self.conns.owned(conn).map_or(0, |conn| conn.tcp.unsent())
    }

    fn shutdown(&mut self, conn: ConnId) {
        let now = self.net.now;
        if let Some(owned) = self.conns.owned_awake(conn) {
            owned.tcp.shutdown(now);
            self.after_call(conn);
        }
    }

    fn close(&mut self, conn: ConnId) {
        let now = self.net.now;
        self.let_go(conn, |tcp| tcp.close(now));
    }

    fn abort(&mut self, conn: ConnId) {
        let now = self.net.now;
        self.let_go(conn, |tcp| tcp.abort(now, CloseReason::Done));
    }

    fn state(&self, conn: ConnId) -> ConnState {
        let state = self.conns.owned(conn).and_then(|conn| conn.tcp.state());
        state.unwrap_or(ConnState::Closed(CloseReason::Stale))
    }

    fn info(&self, conn: ConnId) -> Option<ConnInfo> {
        let now = self.net.now;
        self.conns.owned(conn)?.info(&self.conns.resources, now)
    }

    fn remote_addr(&self, conn: ConnId) -> Option<SocketAddr> {
        self.conns.owned(conn).map(|conn| conn.flow.ends().1)
    }

    fn congestion(&self, conn: ConnId) -> Option<AlgorithmName> {
        AlgorithmName::new(self.conns.owned(conn)?.tcp.config()?.socket.congestion.name())
    }

    fn set_options(&mut self, conn: ConnId, options: &SocketOptions) {
        let now = self.net.now;
        let Some(config) = self.conns.owned(conn).and_then(|conn| conn.tcp.config()) else { return };
        let config = tcp::Config { socket: options.clone(), ..(**config).clone() };
        let config = self.conns.configs.share(config);
        if let Some(mut owned) = self.conns.owned_awake(conn) {
            owned.tcp.set_config(now, config);
            owned.tos = options.tos & !3;
            self.after_call(conn);
        }
    }

    fn udp_bind(
        &mut self,
        owner: Owner,
        addr: ListenAddr,
        receive_buffer: usize,
    ) -> Result<UdpId, ListenError> {
        self.bind_udp(owner, addr, receive_buffer)
    }

    fn udp_set_tos(&mut self, socket: UdpId, tos: u8) {
        self.set_udp_tos(socket, tos);
    }

    fn udp_peek(&mut self, socket: UdpId) -> Option<Datagram<'_>> {
        self.peek_udp(socket)
    }

    fn udp_consume(&mut self, socket: UdpId) {
        self.consume_udp(socket);
    }

    fn udp_send(
        &mut self,
        socket: UdpId,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        data: &[u8],
    ) -> Result<(), UdpSendError> {
        self.send_udp(socket, local, remote, (data, &[]))
    }

    fn udp_send_with(
        &mut self,
        socket: UdpId,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        head: &[u8],
        body: &'static [u8],
    ) -> Result<(), UdpSendError> {
        self.send_udp(socket, local, remote, (head, body))
    }

    fn udp_close(&mut self, socket: UdpId) {
        self.close_udp(socket);
    }

    fn udp_addr(&self, socket: UdpId) -> Option<SocketAddr> {
        let (ip, port) = self.udp.at(socket.index()).filter(|found| found.id == socket)?.bound_to();
        Some(SocketAddr::new(ip.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED)), port))
    }

    fn source_for(&self, remote: IpAddr) -> Option<IpAddr> {
        let remote = remote.to_canonical();
        if remote.is_unspecified() {
            return self.net.addresses.source_for(remote, self.net.now);
        }
        Some(self.net.route(None, remote)?.0)
    }

    #[inline]
    fn poll_event(&mut self) -> Option<Event> {
        // An entry whose socket is gone was cleared, so each turn of the loop takes a live one, or the queue is empty.
        while let Some((slot, ready)) = self.ready.pop() {
            if let Some((owner, source)) = self.event_source(slot) {
                return Some(Event { owner, source, ready });
            }
        }
        None
    }
}

impl Stack {
    fn event_source(&self, slot: Slot) -> Option<(Owner, Source)> {
        match slot {
            Slot::Listener(index) => {
                let listener = self.conns.listeners.at(index)?;
                Some((listener.owner, Source::Listener(listener.id)))
            }
            Slot::Conn(index) => {
                let conn = self.conns.table.at(index)?;
                Some((conn.owner, Source::Conn(conn.id)))
            }
            Slot::Udp(index) => {
                let socket = self.udp.at(index)?;
                Some((socket.owner, Source::Udp(socket.id)))
            }
        }
    }

    /// The state of a connection as RFC 9293 names it; `None` for an unknown id. Servers need no more than
    /// [`Transport::state`]; this is for diagnostics such as TCP_INFO.
    pub fn tcp_state(&self, conn: ConnId) -> Option<State> {
        self.conns.owned(conn).map(|conn| conn.tcp.tcp_state())
    }

    /// Details of a connection for diagnostics such as TCP_INFO; `None` for an unknown id.
    pub fn tcp_details(&self, conn: ConnId) -> Option<crate::tcp::Details> {
        self.conns.owned(conn)?.details(&self.conns.resources, self.net.now)
    }

    /// All received bytes that can be read, in pieces, in place: what [`Transport::peek`] would show one after the other.
    pub fn received(&self, conn: ConnId) -> impl Iterator<Item = &[u8]> {
        self.conns.owned(conn).into_iter().flat_map(|conn| conn.tcp.received())
    }

    /// As [`Transport::close`], but data that the peer sends from now on resets the connection (RFC 1122 section 4.2.2.13).
    pub fn close_strictly(&mut self, conn: ConnId) {
        let now = self.net.now;
        self.let_go(conn, |tcp| tcp.close_strictly(now));
    }

    /// Changes what a listener's connections start with. Those that have begun keep what they have.
    pub fn set_listener_options(&mut self, listener: ListenerId, options: &SocketOptions) {
        if let Some(listener) = self.conns.listener_mut(listener) {
            listener.set_options(options);
        }
    }

    /// Whether there is an event to take.
    pub fn has_events(&self) -> bool {
        !self.ready.is_empty()
    }
}
