//! A net as `embedded-nal-async` knows it.

use crate::clock::Clock;
use crate::error::Error;
use crate::net::Net;
use crate::tcp::TcpSocket;
use crate::udp::{ConnectedUdpSocket, UdpSocket};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use embedded_nal_async::{TcpConnect, UdpStack};
use linerate_transport::Engine;

impl<E: Engine, C: Clock> TcpConnect for Net<E, C> {
    type Error = Error;
    type Connection<'a>
        = TcpSocket<'a>
    where
        Self: 'a;

    async fn connect<'a>(&'a self, remote: SocketAddr) -> Result<TcpSocket<'a>, Error> {
        Net::connect(self, remote).await
    }
}

/// The sockets of this trait live as long as the net, so that it is a borrowed net which implements it. Up to 16 KiB of
/// datagrams wait in each; [`Net::bind`] opens sockets with other buffers.
impl<'n, E: Engine, C: Clock> UdpStack for &'n Net<E, C> {
    type Error = Error;
    type Connected = ConnectedUdpSocket<'n>;
    type UniquelyBound = UdpSocket<'n>;
    type MultiplyBound = UdpSocket<'n>;

    async fn connect_from(
        &self,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Result<(SocketAddr, ConnectedUdpSocket<'n>), Error> {
        let net: &'n Net<E, C> = self;
        let socket = net.bind_one(local, remote.ip())?;
        Ok((socket.local_addr(), ConnectedUdpSocket::new(socket, remote)))
    }

    async fn bind_single(&self, local: SocketAddr) -> Result<(SocketAddr, UdpSocket<'n>), Error> {
        let net: &'n Net<E, C> = self;
        let anywhere = match local {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let socket = net.bind_one(local, anywhere)?;
        Ok((socket.local_addr(), socket))
    }

    async fn bind_multiple(&self, local: SocketAddr) -> Result<UdpSocket<'n>, Error> {
        let net: &'n Net<E, C> = self;
        net.bind_all(local)
    }
}
