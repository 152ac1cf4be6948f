//! UDP sockets.

use crate::clock::Clock;
use crate::error::Error;
use crate::net::{Net, Shared, Waiting};
use crate::tcp::OWNER;
use crate::waits::QueueId;
use core::future::poll_fn;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use core::task::{Context, Poll};
use linerate_transport::{Engine, ListenAddr, ListenError, UdpId, UdpSendError};

/// Bytes of datagrams that may wait in a socket of the traits, which have no setting for it.
const RECEIVE_BUFFER: usize = 16 << 10;

/// A datagram that was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// Its length in bytes. What did not fit the buffer is lost.
    pub len: usize,
    /// Who sent it.
    pub remote: SocketAddr,
    /// The address of ours that it was sent to.
    pub local: SocketAddr,
}

impl<E: Engine, C: Clock> Net<E, C> {
    /// Opens a UDP socket. Datagrams of up to `receive_buffer` bytes together wait in it, and at least one; what is beyond is
    /// lost.
    ///
    /// # Errors
    ///
    /// [`Error::Open`].
    pub fn bind(&self, addr: ListenAddr, receive_buffer: usize) -> Result<UdpSocket<'_>, Error> {
        let shared: &dyn Shared = self;
        shared.with(|net, _| {
            let id = net.udp_bind(OWNER, addr, receive_buffer).map_err(Error::Open)?;
            let unspecified = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
            let asked = SocketAddr::new(addr.ip.unwrap_or(unspecified), addr.port);
            let local = net.udp_addr(id).unwrap_or(asked);
            Ok(UdpSocket { shared, id, local })
        })
    }

    /// A socket for the traits, bound to one address: where `local` names none, that which is sent from towards `remote`.
    pub(crate) fn bind_one(&self, local: SocketAddr, remote: IpAddr) -> Result<UdpSocket<'_>, Error> {
        let ip = local.ip().to_canonical();
        let ip = if ip.is_unspecified() {
            let shared: &dyn Shared = self;
            match shared.with(|net, _| net.source_for(remote)) {
                None if remote.is_unspecified() => return Err(Error::Open(ListenError::NoSuchAddress)),
                None => return Err(Error::Send(UdpSendError::Unreachable)),
                found => found,
            }
        } else {
            Some(ip)
        };
        self.bind(ListenAddr { ip, port: local.port() }, RECEIVE_BUFFER)
    }

    /// A socket for the traits, bound to all of our addresses where `local` names none.
    pub(crate) fn bind_all(&self, local: SocketAddr) -> Result<UdpSocket<'_>, Error> {
        let ip = Some(local.ip().to_canonical()).filter(|ip| !ip.is_unspecified());
        self.bind(ListenAddr { ip, port: local.port() }, RECEIVE_BUFFER)
    }
}

/// A UDP socket. Dropped, it closes. Its futures are safe to cancel: one dropped before it has returned has taken and sent
/// nothing.
pub struct UdpSocket<'a> {
    shared: &'a dyn Shared,
    id: UdpId,
    local: SocketAddr,
}

impl UdpSocket<'_> {
    /// The address it is bound to; an unspecified IP where it takes datagrams to all of ours.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Waits for a datagram and copies it into `buf`; what does not fit is lost.
    pub async fn receive(&mut self, buf: &mut [u8]) -> Received {
        poll_fn(|cx| self.poll_receive(cx, None, buf)).await
    }

    /// Sends a datagram, from the IP of `local` where that is given; waits while the queue is full.
    ///
    /// # Errors
    ///
    /// [`Error::Send`], and [`Error::Source`] for a `local` that the socket is not bound to.
    pub async fn send(
        &mut self,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        data: &[u8],
    ) -> Result<(), Error> {
        if local.is_some_and(|local| !self.may_send_from(local)) {
            return Err(Error::Source);
        }
        let mut waiting = Waiting::new(self.shared, QueueId::Progress);
        poll_fn(|cx| {
            self.shared.with(|net, waits| {
                waits.call();
                match net.udp_send(self.id, local, remote, data) {
                    Err(UdpSendError::Full) => {
                        waiting.wait(waits, cx);
                        Poll::Pending
                    }
                    other => Poll::Ready(other.map_err(Error::Send)),
                }
            })
        })
        .await
    }

    /// Whether an address, of which each part may be left out, is one that the socket is bound to.
    fn may_send_from(&self, local: SocketAddr) -> bool {
        let (asked, bound) = (local.ip().to_canonical(), self.local.ip());
        (local.port() == 0 || local.port() == self.local.port())
            && (asked.is_unspecified() || bound.is_unspecified() || asked == bound)
    }

    /// The next datagram, from `only` if that is given; others are dropped.
    fn poll_receive(&self, cx: &Context<'_>, only: Option<SocketAddr>, buf: &mut [u8]) -> Poll<Received> {
        self.shared.with(|net, waits| {
            // Nothing comes in meanwhile: the receive buffer bounds the loop.
            while let Some(datagram) = net.udp_peek(self.id) {
                let wanted = only.is_none_or(|only| only == datagram.remote);
                let copied = datagram.data.len().min(buf.len());
                if wanted {
                    buf[..copied].copy_from_slice(&datagram.data[..copied]);
                }
                let received =
                    Received { len: datagram.data.len(), remote: datagram.remote, local: datagram.local };
                net.udp_consume(self.id);
                // A frame may have waited for its buffer.
                waits.call();
                if wanted {
                    return Poll::Ready(received);
                }
            }
            waits.datagram(self.id, cx);
            Poll::Pending
        })
    }
}

impl Drop for UdpSocket<'_> {
    fn drop(&mut self) {
        self.shared.with(|net, waits| {
            net.udp_close(self.id);
            // As in `poll_receive`.
            waits.call();
            waits.forget_udp(self.id);
        });
    }
}

/// A UDP socket that talks to one peer; datagrams of others are dropped.
pub struct ConnectedUdpSocket<'a> {
    socket: UdpSocket<'a>,
    remote: SocketAddr,
}

impl<'a> ConnectedUdpSocket<'a> {
    pub(crate) fn new(socket: UdpSocket<'a>, remote: SocketAddr) -> Self {
        ConnectedUdpSocket { socket, remote: SocketAddr::new(remote.ip().to_canonical(), remote.port()) }
    }

    /// The address it is bound to.
    pub fn local_addr(&self) -> SocketAddr {
        self.socket.local
    }

    /// The peer.
    pub fn remote_addr(&self) -> SocketAddr {
        self.remote
    }
}

impl embedded_nal_async::ConnectedUdp for ConnectedUdpSocket<'_> {
    type Error = Error;

    async fn send(&mut self, data: &[u8]) -> Result<(), Error> {
        self.socket.send(None, self.remote, data).await
    }

    async fn receive_into(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        let received = poll_fn(|cx| self.socket.poll_receive(cx, Some(self.remote), buffer)).await;
        Ok(received.len)
    }
}

impl embedded_nal_async::UnconnectedUdp for UdpSocket<'_> {
    type Error = Error;

    async fn send(&mut self, local: SocketAddr, remote: SocketAddr, data: &[u8]) -> Result<(), Error> {
        UdpSocket::send(self, Some(local), remote, data).await
    }

    async fn receive_into(&mut self, buffer: &mut [u8]) -> Result<(usize, SocketAddr, SocketAddr), Error> {
        let received = self.receive(buffer).await;
        Ok((received.len, received.local, received.remote))
    }
}
