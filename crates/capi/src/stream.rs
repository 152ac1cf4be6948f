//! TCP sockets: from bind to close, with the results that BSD sockets give.

use crate::address::suits;
use crate::buffers::{Gather, Scatter};
use crate::errno::{Errno, Result, of_close};
use crate::host::Host;
use crate::table::{Kind, OWNER, Socket, Stream};
use core::ffi::c_int;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use linerate_stack::Stack;
use linerate_transport::{
    AcceptBacklog, CloseReason, ConnId, ConnState, ListenAddr, ListenOptions, MAX_PAYLOAD, SendError,
    Transport as _,
};

impl Stream {
    /// A socket that connects, and what it is bound to.
    fn connecting(id: ConnId, bound: Option<SocketAddr>) -> Self {
        Stream { id, bound, was_open: false, read_shut: false, write_shut: false, error_told: false }
    }

    /// A socket for a connection that was accepted.
    fn accepted(id: ConnId) -> Self {
        Stream { was_open: true, ..Stream::connecting(id, None) }
    }

    /// Where the connection stands; remembers that it was open.
    pub(crate) fn state(&mut self, stack: &Stack) -> ConnState {
        let state = stack.state(self.id);
        self.was_open |= matches!(state, ConnState::Open { .. } | ConnState::Closed(CloseReason::Done));
        state
    }

    /// The error that ended the connection, unless it was told already.
    pub(crate) fn pending_error(&self, stack: &Stack) -> Option<Errno> {
        match stack.state(self.id) {
            ConnState::Closed(reason) if !self.error_told => of_close(reason),
            _ => None,
        }
    }

    /// The same, which counts as telling it.
    pub(crate) fn take_error(&mut self, stack: &Stack) -> Option<Errno> {
        let error = self.pending_error(stack);
        self.error_told |= error.is_some();
        error
    }

    /// Reads into `out`; with `peek` everything stays.
    pub(crate) fn read(&mut self, stack: &mut Stack, out: &mut Scatter<'_>, peek: bool) -> Result<usize> {
        if out.room() == 0 {
            return Ok(0);
        }
        let total: usize = stack.received(self.id).map(|piece| out.put(piece)).sum();
        if total > 0 {
            if !peek {
                stack.consume(self.id, total);
            }
            return Ok(total);
        }
        match self.state(stack) {
            ConnState::Open { .. } if self.read_shut => Ok(0),
            ConnState::Open { finished: true } => Ok(0),
            ConnState::Open { .. } | ConnState::Connecting => Err(Errno(libc::EAGAIN)),
            ConnState::Closed(_) => self.take_error(stack).map_or(Ok(0), Err),
        }
    }

    /// Writes as much as fits; at least a byte, or it is an error.
    pub(crate) fn write(&mut self, stack: &mut Stack, data: &Gather<'_>) -> Result<usize> {
        match self.state(stack) {
            ConnState::Connecting => return Err(Errno(libc::EAGAIN)),
            ConnState::Closed(_) => return Err(self.take_error(stack).unwrap_or(Errno(libc::EPIPE))),
            ConnState::Open { .. } if self.write_shut => return Err(Errno(libc::EPIPE)),
            ConnState::Open { .. } => {}
        }
        let mut total = 0;
        for piece in data.iter().flat_map(|piece| piece.chunks(MAX_PAYLOAD)) {
            let count = match stack.writable(self.id) {
                // It is told so, and will say when there is memory.
                0 => stack.sendable(self.id),
                count => count,
            }
            .min(piece.len());
            if count == 0 {
                break;
            }
            match stack.write(self.id, &piece[..count]) {
                Ok(()) => total += count,
                Err(SendError::Full) => break,
                Err(SendError::Closed | SendError::TooLong) => return Err(Errno(libc::EPIPE)),
            }
            if count < piece.len() {
                break;
            }
        }
        if total == 0 && data.len() > 0 { Err(Errno(libc::EAGAIN)) } else { Ok(total) }
    }
}

/// The address for the stack: none for an unspecified one.
fn listen_addr(local: SocketAddr) -> ListenAddr {
    let ip = local.ip().to_canonical();
    ListenAddr { ip: (!ip.is_unspecified()).then_some(ip), port: local.port() }
}

/// All addresses of a family, and no port.
pub(crate) fn unspecified(family: c_int) -> SocketAddr {
    let ip = match family {
        libc::AF_INET => IpAddr::V4(core::net::Ipv4Addr::UNSPECIFIED),
        _ => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    SocketAddr::new(ip, 0)
}

impl Host {
    /// Binds a stream socket. The stack reserves nothing before `listen`, so ports are compared here too.
    pub(crate) fn bind_stream(&mut self, fd: c_int, address: SocketAddr) -> Result<()> {
        let socket = self.sockets.get(fd)?;
        let Kind::Idle { local: None } = socket.kind else { return Err(Errno(libc::EINVAL)) };
        let reuse = socket.settings.reuse_address;
        if address.port() != 0 && !reuse && self.is_bound(address) {
            return Err(Errno(libc::EADDRINUSE));
        }
        // A listener that is closed at once finds out whether the address is ours and the port free, or which one is.
        let probe = self.node.stack.listen(OWNER, listen_addr(address), &ListenOptions::default());
        let port = match probe {
            Ok(id) => {
                let port = self.node.stack.listener_addr(id).map_or(address.port(), |address| address.port());
                self.node.stack.close_listener(id);
                port
            }
            Err(linerate_transport::ListenError::InUse) if reuse => address.port(),
            Err(error) => return Err(error.into()),
        };
        self.sockets.get(fd)?.kind = Kind::Idle { local: Some(SocketAddr::new(address.ip(), port)) };
        Ok(())
    }

    /// Whether another stream socket is bound to this address and not connected or listening (the stack knows those). One whose
    /// `connect` has not succeeded will be bound again.
    fn is_bound(&self, address: SocketAddr) -> bool {
        let any = |address: SocketAddr| address.ip().is_unspecified();
        let mut bound = self.sockets.iter().filter_map(|socket| match &socket.kind {
            Kind::Idle { local } => *local,
            Kind::Stream(stream) if !stream.was_open => stream.bound,
            _ => None,
        });
        let is_same = |other: SocketAddr| other.ip() == address.ip() || any(other) || any(address);
        bound.any(|other| other.port() == address.port() && is_same(other))
    }

    /// Makes a stream socket a listener; on a listener it changes nothing.
    pub(crate) fn listen(&mut self, fd: c_int, backlog: c_int) -> Result<()> {
        let socket = self.sockets.get(fd)?;
        let local = match socket.kind {
            Kind::Idle { local } => local.unwrap_or(unspecified(socket.family)),
            Kind::Listening { .. } => return Ok(()),
            Kind::Stream(_) => return Err(Errno(libc::EINVAL)),
            Kind::Datagram { .. } => return Err(Errno(libc::EOPNOTSUPP)),
        };
        let options = ListenOptions {
            backlog: AcceptBacklog(backlog.clamp(1, i32::from(u16::MAX)) as u16),
            socket: socket.settings.stream.clone(),
            ..ListenOptions::default()
        };
        let id = self.node.stack.listen(OWNER, listen_addr(local), &options)?;
        socket.kind = Kind::Listening { id, next: None };
        Ok(())
    }

    /// The next connection that `accept` would give. The stack's queue does not show it, so it is taken out here.
    pub(crate) fn peek_accept(&mut self, fd: c_int) -> Result<Option<ConnId>> {
        let socket = self.sockets.get(fd)?;
        let (family, v6_only) = (socket.family, socket.settings.v6_only);
        let Kind::Listening { id, next } = &mut socket.kind else { return Err(Errno(libc::EINVAL)) };
        // The stack's listeners take both families; the backlog bounds the loop.
        while next.is_none() {
            let Some(conn) = self.node.stack.accept(*id) else { break };
            match self.node.stack.remote_addr(conn) {
                Some(remote) if suits(family, v6_only, remote.ip()) => *next = Some(conn),
                _ => self.node.stack.abort(conn),
            }
        }
        Ok(*next)
    }

    /// Accepts a connection; returns its descriptor and the peer's address.
    pub(crate) fn accept(&mut self, fd: c_int) -> Result<(c_int, SocketAddr)> {
        if let Kind::Datagram { .. } = self.sockets.get(fd)?.kind {
            return Err(Errno(libc::EOPNOTSUPP));
        }
        let conn = self.peek_accept(fd)?.ok_or(Errno(libc::EAGAIN))?;
        if !self.sockets.has_room() {
            return Err(Errno(libc::EMFILE));
        }
        let listener = self.sockets.get(fd)?;
        if let Kind::Listening { next, .. } = &mut listener.kind {
            *next = None;
        }
        let socket = Socket { kind: Kind::Stream(Stream::accepted(conn)), ..listener.clone() };
        self.node.stack.set_options(conn, &socket.settings.stream);
        let remote = self.node.stack.remote_addr(conn).unwrap_or(unspecified(socket.family));
        Ok((self.sockets.insert(socket)?, remote))
    }

    /// Starts to connect a stream socket.
    pub(crate) fn connect_stream(&mut self, fd: c_int, remote: SocketAddr) -> Result<()> {
        // Reading and writing tell of a failure, too.
        self.forget_failed(fd)?;
        let socket = self.sockets.get(fd)?;
        let local = match &mut socket.kind {
            Kind::Idle { local } => *local,
            Kind::Listening { .. } | Kind::Datagram { .. } => return Err(Errno(libc::EISCONN)),
            Kind::Stream(stream) => {
                let error = match stream.state(&self.node.stack) {
                    ConnState::Connecting => Errno(libc::EALREADY),
                    ConnState::Open { .. } => Errno(libc::EISCONN),
                    ConnState::Closed(_) => {
                        stream.take_error(&self.node.stack).unwrap_or(Errno(libc::EISCONN))
                    }
                };
                self.forget_failed(fd)?;
                return Err(error);
            }
        };
        if !suits(socket.family, socket.settings.v6_only, remote.ip()) {
            return Err(Errno(libc::ENETUNREACH));
        }
        let id = self.node.stack.connect(OWNER, local, remote, &socket.settings.stream)?;
        socket.kind = Kind::Stream(Stream::connecting(id, local));
        Err(Errno(libc::EINPROGRESS))
    }

    /// Makes a socket whose `connect` failed, and was told so, usable for another one.
    pub(crate) fn forget_failed(&mut self, fd: c_int) -> Result<()> {
        let socket = self.sockets.get(fd)?;
        if let Kind::Stream(stream) = &socket.kind
            && !stream.was_open
            && stream.error_told
        {
            self.node.stack.abort(stream.id);
            socket.kind = Kind::Idle { local: stream.bound };
        }
        Ok(())
    }

    /// Shuts a connection for reading, writing, or both.
    pub(crate) fn shutdown(&mut self, fd: c_int, how: c_int) -> Result<()> {
        let (read, write) = match how {
            libc::SHUT_RD => (true, false),
            libc::SHUT_WR => (false, true),
            libc::SHUT_RDWR => (true, true),
            _ => return Err(Errno(libc::EINVAL)),
        };
        let Kind::Stream(stream) = &mut self.sockets.get(fd)?.kind else { return Err(Errno(libc::ENOTCONN)) };
        if !matches!(stream.state(&self.node.stack), ConnState::Open { .. }) {
            return Err(Errno(libc::ENOTCONN));
        }
        stream.read_shut |= read;
        if write && !stream.write_shut {
            stream.write_shut = true;
            self.node.stack.shutdown(stream.id);
        }
        Ok(())
    }

    /// Closes a socket of any kind.
    pub(crate) fn close(&mut self, fd: c_int) -> Result<()> {
        let socket = self.sockets.remove(fd)?;
        match socket.kind {
            Kind::Idle { .. } => {}
            Kind::Listening { id, next } => {
                if let Some(conn) = next {
                    self.node.stack.abort(conn);
                }
                self.node.stack.close_listener(id);
            }
            Kind::Stream(stream) => {
                // What the peer sent and nobody read is lost, and it must not believe otherwise (RFC 2525 section 2.17).
                let is_lossy = self.node.stack.readable(stream.id) > 0;
                if socket.settings.linger == Some(0) || is_lossy {
                    self.node.stack.abort(stream.id);
                } else {
                    self.node.stack.close_strictly(stream.id);
                }
            }
            Kind::Datagram { id, .. } => {
                if let Some(id) = id {
                    self.node.stack.udp_close(id);
                }
            }
        }
        Ok(())
    }
}
