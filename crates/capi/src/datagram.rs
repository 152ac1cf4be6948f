//! UDP sockets.

use crate::address::suits;
use crate::buffers::{Gather, Scatter};
use crate::errno::{Errno, Result};
use crate::host::Host;
use crate::stream::unspecified;
use crate::table::{Kind, OWNER};
use core::ffi::c_int;
use core::net::SocketAddr;
use linerate_transport::{ListenAddr, Transport as _, UdpId};

/// Longest UDP payload: over IPv6, where the IP header does not count.
const MAX_PAYLOAD: usize = 65_527;

/// A datagram that was received.
pub(crate) struct Received {
    /// Bytes that were copied.
    pub(crate) copied: usize,
    /// Bytes that it has.
    pub(crate) whole: usize,
    pub(crate) remote: SocketAddr,
}

impl Host {
    /// Binds a datagram socket.
    pub(crate) fn bind_datagram(&mut self, fd: c_int, address: SocketAddr) -> Result<UdpId> {
        let socket = self.sockets.get(fd)?;
        let Kind::Datagram { id, .. } = &mut socket.kind else { return Err(Errno(libc::EOPNOTSUPP)) };
        if id.is_some() {
            return Err(Errno(libc::EINVAL));
        }
        let ip = address.ip().to_canonical();
        let addr = ListenAddr { ip: (!ip.is_unspecified()).then_some(ip), port: address.port() };
        let bound = self.node.stack.udp_bind(OWNER, addr, socket.settings.datagram_buffer)?;
        self.node.stack.udp_set_tos(bound, socket.settings.stream.tos);
        *id = Some(bound);
        Ok(bound)
    }

    /// The stack's socket; an unbound one is bound to a free port now.
    fn bound(&mut self, fd: c_int) -> Result<UdpId> {
        let socket = self.sockets.get(fd)?;
        match socket.kind {
            Kind::Datagram { id: Some(id), .. } => Ok(id),
            _ => {
                let any = unspecified(socket.family);
                self.bind_datagram(fd, any)
            }
        }
    }

    /// Sets the peer, or none for an unspecified address.
    pub(crate) fn connect_datagram(&mut self, fd: c_int, remote: SocketAddr) -> Result<()> {
        let socket = self.sockets.get(fd)?;
        if !suits(socket.family, socket.settings.v6_only, remote.ip()) {
            return Err(Errno(libc::ENETUNREACH));
        }
        self.bound(fd)?;
        let remote = SocketAddr::new(remote.ip().to_canonical(), remote.port());
        if let Kind::Datagram { peer, .. } = &mut self.sockets.get(fd)?.kind {
            *peer = (!remote.ip().is_unspecified()).then_some(remote);
        }
        Ok(())
    }

    /// Sends one datagram, to `to` or else to the peer.
    pub(crate) fn send_datagram(
        &mut self,
        fd: c_int,
        to: Option<SocketAddr>,
        data: &Gather<'_>,
    ) -> Result<usize> {
        let socket = self.sockets.get(fd)?;
        let Kind::Datagram { peer, .. } = socket.kind else { return Err(Errno(libc::EOPNOTSUPP)) };
        let remote = to.or(peer).ok_or(Errno(libc::EDESTADDRREQ))?;
        if !suits(socket.family, socket.settings.v6_only, remote.ip()) {
            return Err(Errno(libc::ENETUNREACH));
        }
        if data.len() > MAX_PAYLOAD {
            return Err(Errno(libc::EMSGSIZE));
        }
        let id = self.bound(fd)?;
        data.copy_to(&mut self.scratch);
        self.node.stack.udp_send(id, None, remote, &self.scratch)?;
        Ok(data.len())
    }

    /// Whether a datagram waits for the program. Those of strangers, and of a family that the socket does not have, are
    /// dropped on the way.
    pub(crate) fn has_datagram(&mut self, fd: c_int) -> Result<bool> {
        let socket = self.sockets.get(fd)?;
        let (family, v6_only) = (socket.family, socket.settings.v6_only);
        let Kind::Datagram { id, peer } = socket.kind else { return Err(Errno(libc::EOPNOTSUPP)) };
        let Some(id) = id else { return Ok(false) };
        while let Some(datagram) = self.node.stack.udp_peek(id) {
            let is_known = peer.is_none_or(|peer| peer == datagram.remote);
            if is_known && suits(family, v6_only, datagram.remote.ip()) {
                return Ok(true);
            }
            self.node.stack.udp_consume(id);
        }
        Ok(false)
    }

    /// Copies the oldest datagram into `out`; with `peek` it stays.
    pub(crate) fn receive_datagram(
        &mut self,
        fd: c_int,
        out: &mut Scatter<'_>,
        peek: bool,
    ) -> Result<Received> {
        if !self.has_datagram(fd)? {
            return Err(Errno(libc::EAGAIN));
        }
        let Kind::Datagram { id: Some(id), .. } = self.sockets.get(fd)?.kind else {
            return Err(Errno(libc::EAGAIN));
        };
        let datagram = self.node.stack.udp_peek(id).ok_or(Errno(libc::EAGAIN))?;
        let received =
            Received { copied: out.put(datagram.data), whole: datagram.data.len(), remote: datagram.remote };
        if !peek {
            self.node.stack.udp_consume(id);
        }
        Ok(received)
    }

    /// Length of the oldest datagram; 0 if there is none.
    pub(crate) fn next_datagram_len(&mut self, fd: c_int) -> Result<usize> {
        if !self.has_datagram(fd)? {
            return Ok(0);
        }
        let Kind::Datagram { id: Some(id), .. } = self.sockets.get(fd)?.kind else { return Ok(0) };
        Ok(self.node.stack.udp_peek(id).map_or(0, |datagram| datagram.data.len()))
    }
}
