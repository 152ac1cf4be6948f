//! The in-memory transport.

use super::MemoryFiles;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use linerate_transport::*;

/// Room in every connection's send buffer, in bytes.
pub const SEND_BUFFER: usize = 256 << 10;

struct Listener {
    owner: Owner,
    addr: SocketAddr,
    queue: VecDeque<ConnId>,
    offered: Option<usize>,
}

struct Conn {
    owner: Owner,
    local: SocketAddr,
    remote: SocketAddr,
    input: VecDeque<u8>,
    front: Vec<u8>,
    output: VecDeque<Payload>,
    received: Vec<u8>,
    acked: u64,
    state: ConnState,
    shutdown: bool,
    stalled: bool,
    was_full: bool,
    /// The server let go with `close` (orderly), `close_done` or `abort`.
    released: Option<Released>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Released {
    Closed,
    Done,
    Aborted,
}

pub struct Sent {
    pub local: SocketAddr,
    pub remote: SocketAddr,
    pub data: Vec<u8>,
    /// Type of service, of what the service sent.
    pub tos: u8,
}

struct Udp {
    owner: Owner,
    addr: SocketAddr,
    buffer: usize,
    tos: u8,
    queue: VecDeque<Sent>,
}

/// The transport: connections whose other end is the test.
pub struct MemoryNet {
    listeners: BTreeMap<ListenerId, Listener>,
    conns: BTreeMap<ConnId, Conn>,
    udp: BTreeMap<UdpId, Udp>,
    /// Datagrams that the service sent.
    pub sent: Vec<Sent>,
    events: VecDeque<Event>,
    next: u32,
    /// Active opens in order, with their remote addresses; they wait for `client_accept` or `client_refuse`.
    pub connecting: Vec<(ConnId, SocketAddr)>,
    /// No room for connections of our own.
    pub is_full: bool,
    /// The address of ours that clients connect to.
    pub local_ip: IpAddr,
    /// Bytes after which a client stalls by itself, and KiB-sized datagrams after which the network is full: bounds for servers
    /// that send without end.
    pub appetite: usize,
    /// When set, received bytes go to files by themselves; so many fit into them still.
    pub stores: Option<usize>,
    /// What went there, until the files have it.
    pub(super) stored: Vec<(FileId, u64, Vec<u8>, Option<FileError>)>,
    /// Bytes that it has let be taken in parcels, if it does.
    pub parcels: Option<usize>,
}

impl MemoryNet {
    pub fn new() -> Self {
        MemoryNet {
            listeners: BTreeMap::new(),
            conns: BTreeMap::new(),
            udp: BTreeMap::new(),
            sent: Vec::new(),
            events: VecDeque::new(),
            next: 0,
            connecting: Vec::new(),
            is_full: false,
            local_ip: IpAddr::V4(Ipv4Addr::new(192, 168, 1, 4)),
            appetite: usize::MAX,
            stores: None,
            stored: Vec::new(),
            parcels: None,
        }
    }

    fn id(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    pub fn event(&mut self, owner: Owner, source: Source, ready: Ready) {
        match self.events.iter_mut().find(|event| event.source == source) {
            Some(event) => event.ready |= ready,
            None => self.events.push_back(Event { owner, source, ready }),
        }
    }

    fn conn_event(&mut self, conn: ConnId, ready: Ready) {
        if let Some(found) = self.conns.get(&conn).filter(|c| c.released.is_none()) {
            let owner = found.owner;
            self.event(owner, Source::Conn(conn), ready);
        }
    }

    fn add(&mut self, owner: Owner, local: SocketAddr, remote: SocketAddr, state: ConnState) -> ConnId {
        let id = ConnId::new(self.id(), 0);
        let conn = Conn {
            owner,
            local,
            remote,
            input: VecDeque::new(),
            front: Vec::new(),
            output: VecDeque::new(),
            received: Vec::new(),
            acked: 0,
            state,
            shutdown: false,
            stalled: false,
            was_full: false,
            released: None,
        };
        self.conns.insert(id, conn);
        id
    }

    // What a client does.

    pub fn client_connect(&mut self, remote: SocketAddr, port: u16) -> ConnId {
        let found = self.listeners.iter().find(|(_, l)| l.addr.port() == port);
        let (listener, owner) = found.map(|(id, l)| (*id, l.owner)).expect("somebody listens on the port");
        let local = SocketAddr::new(self.local_ip, port);
        let conn = self.add(owner, local, remote, ConnState::Open { finished: false });
        self.listeners.get_mut(&listener).unwrap().queue.push_back(conn);
        self.event(owner, Source::Listener(listener), Ready::READABLE);
        conn
    }

    /// Whether somebody listens on `port`.
    pub fn listens(&self, port: u16) -> bool {
        self.listeners.values().any(|l| l.addr.port() == port)
    }

    /// The receive buffer that the listener on a port gives to those that come.
    pub fn offered_buffer(&self, port: u16) -> Option<usize> {
        self.listeners.values().find(|l| l.addr.port() == port)?.offered
    }

    /// Ports that somebody listens on.
    pub fn listening(&self) -> Vec<u16> {
        self.listeners.values().map(|l| l.addr.port()).collect()
    }

    pub fn client_accept(&mut self, conn: ConnId) {
        self.connecting.retain(|(id, _)| *id != conn);
        self.conns.get_mut(&conn).unwrap().state = ConnState::Open { finished: false };
        self.conn_event(conn, Ready::WRITABLE);
    }

    pub fn client_refuse(&mut self, conn: ConnId) {
        self.connecting.retain(|(id, _)| *id != conn);
        self.client_end(conn, CloseReason::Refused);
    }

    pub fn client_send(&mut self, conn: ConnId, bytes: &[u8]) {
        let c = self.conns.get_mut(&conn).unwrap();
        if matches!(c.state, ConnState::Open { finished: false }) && c.released.is_none() {
            c.input.extend(bytes);
            self.conn_event(conn, Ready::READABLE);
        }
    }

    /// The client sends FIN.
    pub fn client_finish(&mut self, conn: ConnId) {
        let c = self.conns.get_mut(&conn).unwrap();
        if matches!(c.state, ConnState::Open { .. }) {
            c.state = ConnState::Open { finished: true };
            self.conn_event(conn, Ready::FINISHED | Ready::READABLE);
        }
    }

    pub fn client_reset(&mut self, conn: ConnId) {
        self.client_end(conn, CloseReason::Reset);
    }

    fn client_end(&mut self, conn: ConnId, reason: CloseReason) {
        let c = self.conns.get_mut(&conn).unwrap();
        c.state = ConnState::Closed(reason);
        c.input.clear();
        c.front.clear();
        c.output.clear();
        self.conn_event(conn, Ready::CLOSED);
    }

    /// A stalled client's window is closed: it takes nothing.
    pub fn client_stall(&mut self, conn: ConnId, stalled: bool) {
        self.conns.get_mut(&conn).unwrap().stalled = stalled;
    }

    pub fn take_received(&mut self, conn: ConnId) -> Vec<u8> {
        core::mem::take(&mut self.conns.get_mut(&conn).unwrap().received)
    }

    /// Whether the service sent FIN, and everything before it arrived.
    pub fn client_sees_end(&self, conn: ConnId) -> bool {
        let c = &self.conns[&conn];
        let closed = matches!(c.released, Some(Released::Closed | Released::Done));
        (c.shutdown || closed) && c.output.is_empty()
    }

    pub fn released(&self, conn: ConnId) -> Option<Released> {
        self.conns[&conn].released
    }

    /// Connections that the service has not released.
    pub fn held(&self) -> usize {
        self.conns.values().filter(|c| c.released.is_none()).count()
    }

    pub fn client_datagram(&mut self, socket: UdpId, remote: SocketAddr, data: &[u8]) {
        let udp = self.udp.get_mut(&socket).unwrap();
        let local = SocketAddr::new(self.local_ip, udp.addr.port());
        udp.queue.push_back(Sent { local, remote, data: data.to_vec(), tos: 0 });
        let owner = udp.owner;
        self.event(owner, Source::Udp(socket), Ready::READABLE);
    }

    pub fn udp_on(&self, port: u16) -> Option<UdpId> {
        self.udp.iter().find(|(_, u)| u.addr.port() == port).map(|(id, _)| *id)
    }

    /// The receive buffers of all UDP sockets in bytes.
    pub fn udp_buffers(&self) -> Vec<usize> {
        self.udp.values().map(|udp| udp.buffer).collect()
    }

    /// Moves what is queued to the clients that take it.
    pub fn deliver(&mut self, files: &MemoryFiles) {
        let ids: Vec<ConnId> = self.conns.keys().copied().collect();
        for id in ids {
            let c = self.conns.get_mut(&id).unwrap();
            c.stalled |= c.received.len() >= self.appetite;
            if c.stalled || c.output.is_empty() || matches!(c.state, ConnState::Closed(_)) {
                continue;
            }
            let mut failed = false;
            let before = c.received.len();
            for payload in core::mem::take(&mut c.output) {
                match payload {
                    Payload::Static(bytes) => c.received.extend_from_slice(bytes),
                    Payload::Shared(bytes) => c.received.extend_from_slice(bytes.as_ref()),
                    Payload::File(range) => match files.range(range) {
                        Some(bytes) => c.received.extend_from_slice(&bytes),
                        // Nothing goes out behind it.
                        None => {
                            failed = true;
                            break;
                        }
                    },
                }
            }
            c.acked += (c.received.len() - before) as u64;
            let ready = if core::mem::take(&mut c.was_full) { Ready::WRITABLE } else { Ready::NONE };
            self.conn_event(id, ready | Ready::SENT);
            if failed {
                self.client_end(id, CloseReason::File);
            }
        }
    }

    fn end(&mut self, conn: ConnId, how: Released) {
        self.events.retain(|event| event.source != Source::Conn(conn));
        if let Some(c) = self.conns.get_mut(&conn) {
            c.released.get_or_insert(how);
            if how == Released::Aborted {
                c.output.clear();
            }
        }
    }

    fn live(&mut self, conn: ConnId) -> Option<&mut Conn> {
        self.conns.get_mut(&conn).filter(|c| c.released.is_none())
    }

    fn free_port(&mut self, port: u16) -> u16 {
        if port != 0 { port } else { 40_000 + self.id() as u16 }
    }
}

fn memory_len(output: &VecDeque<Payload>) -> usize {
    output.iter().filter(|p| !matches!(p, Payload::File(_))).map(|p| p.len() as usize).sum()
}

impl Transport for MemoryNet {
    fn listen(
        &mut self,
        owner: Owner,
        addr: ListenAddr,
        _options: &ListenOptions,
    ) -> Result<ListenerId, ListenError> {
        let port = self.free_port(addr.port);
        if self.listens(port) {
            return Err(ListenError::InUse);
        }
        let id = ListenerId::new(self.id(), 0);
        let addr = SocketAddr::new(addr.ip.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)), port);
        self.listeners.insert(id, Listener { owner, addr, queue: VecDeque::new(), offered: None });
        Ok(id)
    }

    fn close_listener(&mut self, listener: ListenerId) {
        self.listeners.remove(&listener);
        self.events.retain(|event| event.source != Source::Listener(listener));
    }

    fn offer_buffer(&mut self, listener: ListenerId, receive_buffer: Option<usize>) {
        if let Some(entry) = self.listeners.get_mut(&listener) {
            entry.offered = receive_buffer;
        }
    }

    fn listener_addr(&self, listener: ListenerId) -> Option<SocketAddr> {
        self.listeners.get(&listener).map(|l| l.addr)
    }

    fn accept(&mut self, listener: ListenerId) -> Option<ConnId> {
        self.listeners.get_mut(&listener)?.queue.pop_front()
    }

    fn connect(
        &mut self,
        owner: Owner,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        _options: &SocketOptions,
    ) -> Result<ConnId, ConnectError> {
        if self.is_full {
            return Err(ConnectError::NoMemory);
        }
        let local = local.unwrap_or(SocketAddr::new(self.local_ip, 50_000));
        let conn = self.add(owner, local, remote, ConnState::Connecting);
        self.connecting.push((conn, remote));
        Ok(conn)
    }

    fn peek(&mut self, conn: ConnId) -> &[u8] {
        let Some(c) = self.live(conn) else { return &[] };
        if c.front.is_empty() {
            // Pieces of at most 4 KiB, so that a server cannot rely on seeing everything at once.
            let len = c.input.len().min(4096);
            c.front = c.input.drain(..len).collect();
        }
        &c.front
    }

    fn store(&mut self, conn: ConnId, file: FileId, offset: u64, len: usize) -> Option<Stored> {
        let room = self.stores?;
        let c = self.live(conn).filter(|c| c.front.is_empty())?;
        // Not all at once, for the same reason.
        let came = c.input.len().min(len).min(7_000);
        let mut bytes: Vec<u8> = c.input.drain(..came).collect();
        bytes.truncate(room);
        let stored = Stored { len: bytes.len(), error: (bytes.len() < came).then_some(FileError::NoSpace) };
        self.stores = Some(room - bytes.len());
        self.stored.push((file, offset, bytes, stored.error));
        Some(stored)
    }

    fn take(&mut self, conn: ConnId, len: usize) -> Option<Parcel> {
        let taken = self.parcels?;
        let c = self.live(conn).filter(|c| c.front.is_empty())?;
        let len = c.input.len().min(len).min(7_000);
        let bytes: Vec<u8> = c.input.drain(..len).collect();
        self.parcels = Some(taken + len);
        Some(Parcel::new(len, bytes))
    }

    fn consume(&mut self, conn: ConnId, len: usize) {
        let Some(c) = self.live(conn) else { return };
        let front = len.min(c.front.len());
        c.front.drain(..front);
        let rest = (len - front).min(c.input.len());
        c.input.drain(..rest);
    }

    fn readable(&self, conn: ConnId) -> usize {
        self.conns.get(&conn).map_or(0, |c| c.front.len() + c.input.len())
    }

    fn send(&mut self, conn: ConnId, payload: Payload) -> Result<(), SendError> {
        let Some(c) = self.live(conn) else { return Err(SendError::Closed) };
        if !matches!(c.state, ConnState::Open { .. }) || c.shutdown {
            return Err(SendError::Closed);
        }
        if !matches!(payload, Payload::File(_)) {
            if payload.len() > 65_536 {
                return Err(SendError::TooLong);
            }
            if memory_len(&c.output) >= SEND_BUFFER {
                c.was_full = true;
                return Err(SendError::Full);
            }
        }
        if !payload.is_empty() {
            c.output.push_back(payload);
        }
        Ok(())
    }

    fn write(&mut self, conn: ConnId, bytes: &[u8]) -> Result<(), SendError> {
        self.send(conn, Payload::Shared(Bytes::from(bytes.to_vec())))
    }

    fn sendable(&self, conn: ConnId) -> usize {
        self.conns.get(&conn).map_or(0, |c| SEND_BUFFER.saturating_sub(memory_len(&c.output)))
    }

    fn unsent(&self, conn: ConnId) -> u64 {
        self.conns.get(&conn).map_or(0, |c| c.output.iter().map(Payload::len).sum())
    }

    fn shutdown(&mut self, conn: ConnId) {
        let Some(c) = self.live(conn) else { return };
        c.shutdown = true;
        if c.output.is_empty() && !c.stalled {
            self.conn_event(conn, Ready::SENT);
        }
    }

    fn close(&mut self, conn: ConnId) {
        self.end(conn, Released::Closed);
    }

    fn close_done(&mut self, conn: ConnId) {
        self.end(conn, Released::Done);
    }

    fn abort(&mut self, conn: ConnId) {
        self.end(conn, Released::Aborted);
    }

    fn state(&self, conn: ConnId) -> ConnState {
        match self.conns.get(&conn) {
            Some(c) if c.released.is_none() => c.state,
            _ => ConnState::Closed(CloseReason::Stale),
        }
    }

    fn congestion(&self, _conn: ConnId) -> Option<AlgorithmName> {
        AlgorithmName::new("cubic")
    }

    fn info(&self, conn: ConnId) -> Option<ConnInfo> {
        let c = self.conns.get(&conn).filter(|c| c.released.is_none())?;
        Some(ConnInfo {
            local: c.local,
            remote: c.remote,
            rtt: None,
            rtt_var: None,
            rto: None,
            send_mss: 1460,
            congestion_window: 14_600,
            slow_start_threshold: None,
            send_window: 65_535,
            receive_window: 65_535,
            in_flight: 0,
            bytes_acked: c.acked,
            bytes_received: 0,
            retransmits: 0,
            bytes_retransmitted: 0,
            duplicates_reported: 0,
            reordering_seen: false,
            segments_sent: 0,
            path_mtu: 1500,
            limits: LimitTimes::default(),
        })
    }

    fn set_options(&mut self, _conn: ConnId, _options: &SocketOptions) {}

    fn udp_bind(&mut self, owner: Owner, addr: ListenAddr, buffer: usize) -> Result<UdpId, ListenError> {
        let port = self.free_port(addr.port);
        let id = UdpId::new(self.id(), 0);
        let addr = SocketAddr::new(addr.ip.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)), port);
        self.udp.insert(id, Udp { owner, addr, buffer, tos: 0, queue: VecDeque::new() });
        Ok(id)
    }

    fn udp_set_tos(&mut self, socket: UdpId, tos: u8) {
        if let Some(udp) = self.udp.get_mut(&socket) {
            udp.tos = tos;
        }
    }

    fn udp_peek(&mut self, socket: UdpId) -> Option<Datagram<'_>> {
        let d = self.udp.get(&socket)?.queue.front()?;
        Some(Datagram { remote: d.remote, local: d.local, data: &d.data })
    }

    fn udp_consume(&mut self, socket: UdpId) {
        if let Some(udp) = self.udp.get_mut(&socket) {
            udp.queue.pop_front();
        }
    }

    fn udp_send(
        &mut self,
        socket: UdpId,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        data: &[u8],
    ) -> Result<(), UdpSendError> {
        let Some(udp) = self.udp.get(&socket) else { return Err(UdpSendError::Closed) };
        if self.sent.len() >= self.appetite / 1024 {
            return Err(UdpSendError::Full);
        }
        self.sent.push(Sent { local: local.unwrap_or(udp.addr), remote, data: data.to_vec(), tos: udp.tos });
        Ok(())
    }

    fn udp_close(&mut self, socket: UdpId) {
        self.udp.remove(&socket);
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}
