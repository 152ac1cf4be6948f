//! One UDP socket over a kernel socket.

use super::hub::{Hub, udp_id};
use super::socket;
use crate::slab::Key;
use crate::sys::socket as sys;
use linerate_transport::{Datagram, ListenAddr, ListenError, Owner, Ready, Source, UdpSendError};
use rustix::event::epoll::EventFlags;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, sockopt};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Range;

/// Longest UDP payload is a little less than this many bytes.
const DATAGRAM_MAX: usize = 64 << 10;
/// Bytes of datagrams that may wait here; the kernel's buffer is behind it.
const ARENA_LEN: usize = 512 << 10;
/// Asynchronous errors (ICMP messages to earlier datagrams) skipped by one call.
const SKIPS_MAX: u32 = 16;

#[derive(Debug)]
struct Received {
    remote: SocketAddr,
    local: SocketAddr,
    range: Range<usize>,
}

#[derive(Debug)]
pub(crate) struct UdpSocket {
    key: Key,
    pub(crate) fd: OwnedFd,
    pub(crate) owner: Owner,
    family: AddressFamily,
    local: SocketAddr,
    /// Type of service that was asked for last.
    tos: u8,
    arena: Box<[u8]>,
    queue: VecDeque<Received>,
    /// Where in the arena the next datagram goes.
    tail: usize,
    can_read: bool,
    running: bool,
    /// The socket's send buffer was full: an edge tells when it is not.
    full: bool,
    /// A queue below the socket was full, for whose room there is no edge: the next turn says to try again.
    retry: bool,
    ready: Ready,
    in_events: bool,
}

impl UdpSocket {
    pub(crate) fn open(
        owner: Owner,
        addr: ListenAddr,
        receive_buffer: usize,
    ) -> Result<UdpSocket, ListenError> {
        let (fd, family) = socket::bind(addr, SocketType::DGRAM, |fd| {
            // More than the system allows is cut by it.
            let _ = sockopt::set_socket_recv_buffer_size(fd, receive_buffer.min(1 << 30));
            Ok(())
        })?;
        sys::enable_packet_info(&fd, family == AddressFamily::INET6).map_err(|_| ListenError::NoMemory)?;
        let unknown = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), addr.port);
        let local = socket::local_addr(&fd).unwrap_or(unknown);
        Ok(UdpSocket {
            key: Key { index: 0, generation: 0 },
            fd,
            owner,
            family,
            local,
            tos: 0,
            arena: vec![0; ARENA_LEN].into_boxed_slice(),
            queue: VecDeque::new(),
            tail: 0,
            can_read: false,
            running: false,
            full: false,
            retry: false,
            ready: Ready::NONE,
            in_events: false,
        })
    }

    pub(crate) fn set_key(&mut self, key: Key) {
        self.key = key;
    }

    /// The address it is bound to.
    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Sets the differentiated services code point. To ask for what is set costs no call: senders ask each time.
    pub(crate) fn set_tos(&mut self, tos: u8) {
        if self.tos != tos {
            self.tos = tos;
            socket::set_tos(self.fd.as_fd(), tos);
        }
    }

    pub(crate) fn take_events(&mut self) -> Ready {
        self.in_events = false;
        std::mem::take(&mut self.ready)
    }

    fn mark(&mut self, ready: Ready, hub: &mut Hub) {
        self.ready |= ready;
        if !self.in_events {
            self.in_events = true;
            hub.events.push_back(Source::Udp(udp_id(self.key)));
        }
    }

    fn schedule(&mut self, hub: &mut Hub) {
        if !self.running {
            self.running = true;
            hub.run_udp.push_back(self.key);
        }
    }

    pub(crate) fn handle_edge(&mut self, flags: EventFlags, hub: &mut Hub) {
        if flags.contains(EventFlags::OUT) && self.full {
            self.full = false;
            self.mark(Ready::WRITABLE, hub);
        }
        if flags.intersects(EventFlags::IN | EventFlags::ERR) {
            self.can_read = true;
            self.schedule(hub);
        }
    }

    /// Receives until the kernel has none left, or the arena no room.
    pub(crate) fn turn(&mut self, hub: &mut Hub) {
        self.running = false;
        if std::mem::take(&mut self.retry) {
            self.mark(Ready::WRITABLE, hub);
        }
        if self.queue.is_empty() {
            self.tail = 0;
        }
        let mut skips = 0;
        let mut got = false;
        while self.can_read && self.tail + DATAGRAM_MAX <= self.arena.len() {
            let room = &mut self.arena[self.tail..self.tail + DATAGRAM_MAX];
            match sys::receive_from(self.fd.as_fd(), room) {
                Ok((len, remote, to)) => {
                    let range = self.tail..self.tail + len.min(DATAGRAM_MAX);
                    self.tail = range.end;
                    let ip = to.unwrap_or(self.local.ip()).to_canonical();
                    let local = SocketAddr::new(ip, self.local.port());
                    self.queue.push_back(Received { remote: socket::normalise(remote), local, range });
                    hub.counters.datagrams_received += 1;
                    got = true;
                }
                Err(Errno::AGAIN) => self.can_read = false,
                Err(_) if skips < SKIPS_MAX => skips += 1,
                Err(_) => self.can_read = false,
            }
            if self.queue.len() >= ARENA_LEN / 64 {
                // Empty datagrams take no room in the arena, and must not grow the queue without bound.
                break;
            }
        }
        if got {
            self.mark(Ready::READABLE, hub);
        }
    }

    pub(crate) fn peek(&self) -> Option<Datagram<'_>> {
        let first = self.queue.front()?;
        let data = self.arena.get(first.range.clone()).unwrap_or(&[]);
        Some(Datagram { remote: first.remote, local: first.local, data })
    }

    pub(crate) fn consume(&mut self, hub: &mut Hub) {
        self.queue.pop_front();
        if self.queue.is_empty() && self.can_read {
            self.schedule(hub);
        }
    }

    pub(crate) fn send(
        &mut self,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        data: [&[u8]; 2],
        hub: &mut Hub,
    ) -> Result<(), UdpSendError> {
        let remote = socket::for_family(remote, self.family).ok_or(UdpSendError::Unreachable)?;
        // Bound to one address it sends from that one anyway.
        let local = local.map(|local| local.ip()).filter(|ip| !ip.is_unspecified());
        let from = if self.local.ip().is_unspecified() { local } else { None };
        let mut tries = 0;
        loop {
            match sys::send_to(self.fd.as_fd(), from, remote, data) {
                Ok(()) => {
                    hub.counters.datagrams_sent += 1;
                    return Ok(());
                }
                Err(Errno::AGAIN) => {
                    self.full = true;
                    return Err(UdpSendError::Full);
                }
                Err(Errno::NOBUFS | Errno::NOMEM) => {
                    self.retry = true;
                    self.schedule(hub);
                    return Err(UdpSendError::Full);
                }
                Err(Errno::MSGSIZE) => return Err(UdpSendError::TooLong),
                // An ICMP error to an earlier datagram is reported by the next call, which sends nothing.
                Err(Errno::CONNREFUSED | Errno::INTR) if tries < SKIPS_MAX => tries += 1,
                Err(_) => return Err(UdpSendError::Unreachable),
            }
        }
    }
}
