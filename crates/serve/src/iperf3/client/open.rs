//! Opening the streams, one after the other: the server tells them apart by their order.

use super::super::params::Protocol;
use super::super::stream::{Carrier, Stream};
use super::super::udp;
use super::error::ClientError;
use super::marks::Marks;
use super::report::Connected;
use super::state::{Client, Key, Phase, reason};
use crate::Context;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::time::Duration;
use linerate_transport::{BufferSize, ConnId, ListenAddr, Pacing, Ready, SocketOptions, UdpId};

/// Block length of TCP, as in the original.
const TCP_LEN: usize = 128 << 10;
/// Datagram length where the segment size of the control connection is of no use, as in the original.
const UDP_LEN: usize = 1460;
/// Longest datagram.
const MAX_DATAGRAM: usize = 65_507;
/// A first datagram that was not answered is sent again after this time.
const HELLO_RETRY: Duration = Duration::from_secs(1);

impl Client {
    /// The length of blocks or datagrams, where none was asked for: what fits a segment, for datagrams.
    pub(super) fn choose_len(&mut self) {
        if self.params.len > 0 {
            return;
        }
        let fits = usize::try_from(self.mss).ok().filter(|mss| (16..=MAX_DATAGRAM).contains(mss));
        self.params.len = match self.params.protocol {
            Protocol::Tcp => TCP_LEN,
            Protocol::Udp => fits.unwrap_or(UDP_LEN),
        };
    }

    pub(super) fn open_streams(&mut self, ctx: &mut Context<'_>) {
        self.expect(ctx, Phase::Opening);
        self.open_next(ctx);
    }

    fn open_next(&mut self, ctx: &mut Context<'_>) {
        if self.streams.len() == self.params.stream_count() {
            return self.expect(ctx, Phase::Ready);
        }
        match self.params.protocol {
            Protocol::Tcp => self.open_tcp(ctx),
            Protocol::Udp => self.open_udp(ctx),
        }
    }

    /// The settings of a stream.
    fn socket_options(&self) -> SocketOptions {
        let mut options = self.config.socket.clone();
        if let Some(window) = self.params.window {
            options.send_buffer = BufferSize::Fixed(window);
            options.receive_buffer = BufferSize::Fixed(window);
        }
        options.mss = self.params.mss.or(options.mss);
        options.no_delay |= self.params.no_delay;
        options.tos = self.params.tos;
        options.congestion = self.params.congestion.unwrap_or(options.congestion);
        if self.params.pacing_bps > 0 {
            options.pacing = Pacing::Rate(self.params.pacing_bps.div_ceil(8));
        }
        options
    }

    fn open_tcp(&mut self, ctx: &mut Context<'_>) {
        let options = self.socket_options();
        match ctx.net.connect(self.config.owner, None, self.config.server, &options) {
            Ok(conn) => {
                self.conns.insert(conn, self.streams.len());
                self.add_stream(Carrier::Tcp(conn));
            }
            Err(why) => self.end(ctx, Err(ClientError::Open(why))),
        }
    }

    fn open_udp(&mut self, ctx: &mut Context<'_>) {
        let remote = self.config.server;
        let ip = ctx.net.source_for(remote.ip());
        let buffer = self.params.window.unwrap_or(self.config.udp_buffer);
        match ctx.net.udp_bind(self.config.owner, ListenAddr { ip, port: 0 }, buffer) {
            Ok(socket) => {
                let any: IpAddr = match remote {
                    SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                    SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
                };
                let port = ctx.net.udp_addr(socket).map_or(0, |addr| addr.port());
                let local = SocketAddr::new(ip.unwrap_or(any), port);
                self.sockets.insert(socket, self.streams.len());
                self.add_stream(Carrier::Udp { socket, local, remote });
                self.say_hello(ctx);
            }
            Err(why) => self.end(ctx, Err(ClientError::OpenUdp(why))),
        }
    }

    fn add_stream(&mut self, carrier: Carrier) {
        let index = self.streams.len();
        self.streams.push(Stream::new(index, carrier, !self.params.server_sends(index)));
        self.marks.push(Marks::default());
    }

    /// The first datagram of the newest stream, until it is answered.
    pub(super) fn say_hello(&mut self, ctx: &mut Context<'_>) {
        let Some(Carrier::Udp { socket, local, remote }) = self.streams.last().map(|s| s.carrier) else {
            return;
        };
        if self.phase == Phase::Opening {
            // One that finds no room is lost like one on the way.
            let _ = ctx.net.udp_send(socket, Some(local), remote, &udp::HELLO);
            self.deadlines.set(Key::Hello, ctx.now + HELLO_RETRY);
        }
    }

    /// A connection for a stream is there, or will never be.
    pub(super) fn handle_opening(&mut self, ctx: &mut Context<'_>, index: usize, conn: ConnId, ready: Ready) {
        if ready.contains(Ready::CLOSED) {
            let why = reason(ctx, conn);
            // Before a busy or stopping server closes a stream, it says why on the control connection.
            return self.note_lost(ctx, ClientError::Stream(why));
        }
        let is_newest = index + 1 == self.streams.len();
        if !is_newest || self.connected.len() > index {
            return;
        }
        if ready.contains(Ready::WRITABLE) && ctx.net.unsent(conn) == 0 && !self.marks[index].is_greeted {
            let cookie = self.cookie;
            if ctx.net.write(conn, &cookie).is_err() {
                let why = reason(ctx, conn);
                return self.note_lost(ctx, ClientError::Stream(why));
            }
            self.marks[index].is_greeted = true;
        }
        // Acknowledged: whatever the network does to a later one, the server has this one first.
        if ready.contains(Ready::SENT) && self.marks[index].is_greeted {
            if let Some(info) = ctx.net.info(conn) {
                self.connect_done(index, info.local, info.remote);
            }
            self.open_next(ctx);
        }
    }

    /// The server has all streams.
    pub(super) fn finish_opening(&mut self, ctx: &mut Context<'_>) {
        self.deadlines.clear(Key::Hello);
        if let Some(index) = self.streams.len().checked_sub(1).filter(|index| *index == self.connected.len())
        {
            match self.streams.get(index).map(|stream| stream.carrier) {
                Some(Carrier::Udp { local, remote, .. }) => self.connect_done(index, local, remote),
                Some(Carrier::Tcp(conn)) => {
                    if let Some(info) = ctx.net.info(conn) {
                        self.connect_done(index, info.local, info.remote);
                    }
                }
                None => {}
            }
        }
        self.expect(ctx, Phase::Ready);
    }

    fn connect_done(&mut self, index: usize, local: SocketAddr, remote: SocketAddr) {
        let Some(stream) = self.streams.get(index) else { return };
        self.connected.push(Connected { id: stream.id, sends: stream.sends, local, remote });
    }

    /// The server has answered the first datagram.
    pub(super) fn take_hello(&mut self, ctx: &mut Context<'_>, socket: UdpId) {
        let newest = self.sockets.get(&socket).copied().filter(|index| *index == self.connected.len());
        let Some(index) = newest.filter(|_| self.phase == Phase::Opening) else { return };
        if let Some(Carrier::Udp { local, remote, .. }) = self.streams.get(index).map(|s| s.carrier) {
            self.deadlines.clear(Key::Hello);
            self.connect_done(index, local, remote);
            self.open_next(ctx);
        }
    }
}
