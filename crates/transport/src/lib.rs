//! What a server sees of a network and of its files: the contract between `serve` and whatever carries it; and what the
//! owner of the loop sees of the same thing.
//!
//! A [`Transport`] is implemented by our own engine (`linerate-stack`), by kernel sockets (`linerate-linux`), or by
//! an engine on another core or device. A server neither knows nor cares. The loop drives each of them through
//! [`Engine`].
//!
//! # Order of calls
//!
//! Everything is non-blocking and single-threaded. The owner of the loop
//! 1. lets the transport do its I/O,
//! 2. takes events with [`Transport::poll_event`] until there are none, and hands each to the service whose
//!    [`Owner`] it names,
//! 3. does the same with finished file operations ([`Files::poll_done`]),
//! 4. sleeps until the earliest deadline, file completion or packet.
//!
//! Events are **edge-triggered and coalesced**: one event per socket in the queue at most, its [`Ready`] bits the
//! union of what happened. After `READABLE` a server reads until [`Transport::peek`] is empty, or remembers by itself
//! that it stopped early; after `WRITABLE` it sends until it has nothing left or the transport says it is full.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod algorithm;
pub mod engine;
pub mod event;
pub mod files;
pub mod parcel;
pub mod path;
pub mod payload;
pub mod socket;
pub mod survey;

pub use algorithm::AlgorithmName;
pub use engine::{Engine, FileRequest, Input, Left, Output};
pub use event::{Event, Owner, Ready, Source};
pub use files::{
    DirEntry, FileDone, FileError, FileId, FileKind, FileOp, FileReply, Files, Metadata, OpenMode, Rights,
    Stored, Work,
};
pub use parcel::Parcel;
pub use path::{PathError, VirtualPath};
pub use payload::{Bytes, FileRange, MAX_PAYLOAD, Payload};
pub use socket::{
    AcceptBacklog, BufferSize, CloseReason, Congestion, ConnId, ConnInfo, ConnState, ConnectError,
    DelayedAck, Ecn, FastOpen, KeepAlive, LimitCause, LimitTimes, ListenAddr, ListenError, ListenOptions,
    ListenerId, Pacing, SendError, SocketOptions, UdpId, UdpSendError,
};
pub use survey::{ConnDetail, ConnSummary};

use core::net::{IpAddr, SocketAddr};

/// A datagram where it lies in the receive buffer.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// Who sent it.
    pub remote: SocketAddr,
    /// The address of ours that it was sent to (a reply should come from it).
    pub local: SocketAddr,
    /// The UDP payload.
    pub data: &'a [u8],
}

/// Sockets as a server uses them: TCP listeners and connections, UDP sockets, events.
///
/// Ids are generational: an id that outlived its socket is answered like a closed socket and never reaches another.
pub trait Transport {
    /// Opens a TCP listener. `addr.port` 0 takes a free ephemeral port; [`Transport::listener_addr`] tells which.
    fn listen(
        &mut self,
        owner: Owner,
        addr: ListenAddr,
        options: &ListenOptions,
    ) -> Result<ListenerId, ListenError>;

    /// Closes a listener. Connections not yet accepted are reset; accepted ones live on.
    fn close_listener(&mut self, listener: ListenerId);

    /// Gives connections that come to a listener from now on a receive buffer of so many bytes; `None` is what it was
    /// opened with. For a transport whose handshake offers a window of that size for good, so that
    /// [`Transport::set_options`] comes too late for it; the others have nothing to do.
    fn offer_buffer(&mut self, _listener: ListenerId, _receive_buffer: Option<usize>) {}

    /// The address a listener is bound to; an unspecified IP where it listens on all of them.
    fn listener_addr(&self, listener: ListenerId) -> Option<SocketAddr>;

    /// Takes the next established connection of a listener. It inherits the listener's owner and socket options.
    fn accept(&mut self, listener: ListenerId) -> Option<ConnId>;

    /// Starts an active open. The first event is `WRITABLE` (established) or `CLOSED` (see [`Transport::state`]).
    /// `local` binds the source address and port; port 0 is a random ephemeral port.
    fn connect(
        &mut self,
        owner: Owner,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        options: &SocketOptions,
    ) -> Result<ConnId, ConnectError>;

    /// The first contiguous piece of received data, in place; empty when there is none now.
    fn peek(&mut self, conn: ConnId) -> &[u8];

    /// Releases the first `len` received bytes, which opens the receive window. `len` may exceed what
    /// [`Transport::peek`] showed, up to [`Transport::readable`]; more than that is cut.
    fn consume(&mut self, conn: ConnId, len: usize);

    /// Moves received bytes, at most `len`, to `offset` of a file for which no other write is under way, without their passing
    /// through memory of ours. A length of 0 means that nothing is there now: `READABLE` will come, or
    /// [`Transport::state`] tells that nothing will. `None`, where bytes wait that [`Transport::peek`] shows or the
    /// transport cannot without waiting: take them, or read and write them.
    fn store(&mut self, _conn: ConnId, _file: FileId, _offset: u64, _len: usize) -> Option<Stored> {
        None
    }

    /// Takes received bytes, at most `len`, as they are, without their passing through memory of ours, for
    /// [`FileOp::WriteParcel`], where [`Files::takes_parcels`]. An empty parcel means that nothing is there now: `READABLE` will
    /// come, or [`Transport::state`] tells that nothing will. `None`, where bytes wait that [`Transport::peek`] shows, too many
    /// parcels are on their way, or the transport cannot: read and write them.
    fn take(&mut self, _conn: ConnId, _len: usize) -> Option<Parcel> {
        None
    }

    /// Bytes received and not consumed. A transport that must ask an operating system may answer with a lower bound
    /// that is at least what [`Transport::peek`] would show.
    fn readable(&self, conn: ConnId) -> usize;

    /// Queues owned payload without copying it. On `Full` nothing was queued and `WRITABLE` will come.
    ///
    /// Memory payloads need room in the send buffer ([`Transport::sendable`] > 0 takes one whole payload of any
    /// length up to [`MAX_PAYLOAD`]). File ranges take no memory until they are sent and may be of any length that a file can have; a file
    /// that turns out shorter than the range resets the connection with [`CloseReason::File`].
    fn send(&mut self, conn: ConnId, payload: Payload) -> Result<(), SendError>;

    /// Queues a copy of `bytes`, all or nothing: for short replies and headers ([`MAX_PAYLOAD`] bytes at most). See [`Transport::writable`].
    fn write(&mut self, conn: ConnId, bytes: &[u8]) -> Result<(), SendError>;

    /// Bytes of memory payload that may be queued now, as far as the connection's own buffer goes; zero when full. While all
    /// connections together are short of memory, a send is refused all the same.
    fn sendable(&self, conn: ConnId) -> usize;

    /// Bytes that [`Transport::write`] would take now: what is [sendable](Transport::sendable), and what there is memory for to
    /// copy it, [`MAX_PAYLOAD`] at most. For streams, which write part of what they are given.
    fn writable(&self, conn: ConnId) -> usize {
        self.sendable(conn).min(MAX_PAYLOAD)
    }

    /// Bytes queued and not yet acknowledged by the peer (own engine) or not yet taken by the kernel.
    /// [`Ready::SENT`] comes when this becomes zero. File ranges count with their whole length.
    fn unsent(&self, conn: ConnId) -> u64;

    /// Half-close: FIN after everything queued. Reading goes on. [`Ready::SENT`] comes when the FIN is acknowledged.
    fn shutdown(&mut self, conn: ConnId);

    /// Gives the connection up: queued data is still delivered and FIN sent, what arrives is discarded, and the id is
    /// no longer valid. No further event comes. Bounded by the user timeout.
    fn close(&mut self, conn: ConnId);

    /// The same where the peer has said that it sends nothing more, and all that it sent was read: a transport that would wait
    /// for the peer's FIN, only so that no late data of the peer turns into a reset that overtakes ours, need not.
    fn close_done(&mut self, conn: ConnId) {
        self.close(conn);
    }

    /// Resets the connection (RST) and forgets it; the id is no longer valid. No further event comes.
    fn abort(&mut self, conn: ConnId);

    /// Where the connection stands. An unknown id is `Closed(CloseReason::Stale)`.
    fn state(&self, conn: ConnId) -> ConnState;

    /// Measurements of a connection; `None` for an unknown id. A closed but not yet released one still answers.
    fn info(&self, conn: ConnId) -> Option<ConnInfo>;

    /// The peer's address; `None` for an unknown id. Servers ask for it once per connection, so an implementation for
    /// which [`Transport::info`] is expensive should override this.
    fn remote_addr(&self, conn: ConnId) -> Option<SocketAddr> {
        self.info(conn).map(|info| info.remote)
    }

    /// The congestion control of a connection; `None` for an unknown id, or where it is not known.
    fn congestion(&self, _conn: ConnId) -> Option<AlgorithmName> {
        None
    }

    /// Changes the per-socket settings of a live connection (those that can change: all but `mss` above the
    /// negotiated one). A setting the implementation does not have is ignored.
    fn set_options(&mut self, conn: ConnId, options: &SocketOptions);

    /// Opens a UDP socket.
    fn udp_bind(
        &mut self,
        owner: Owner,
        addr: ListenAddr,
        receive_buffer: usize,
    ) -> Result<UdpId, ListenError>;

    /// Differentiated services code point of all datagrams that are sent from now on, as the IPv4 TOS octet or the IPv6 traffic
    /// class; ECN bits (the lower two) are taken as zero. It is 0 at first. An unknown id, or a transport that cannot, ignores it.
    fn udp_set_tos(&mut self, _socket: UdpId, _tos: u8) {}

    /// The oldest datagram received, in place; [`Transport::udp_consume`] releases it.
    fn udp_peek(&mut self, socket: UdpId) -> Option<Datagram<'_>>;

    /// Releases the oldest datagram.
    fn udp_consume(&mut self, socket: UdpId);

    /// Sends one datagram, from `local`'s address when given. The port is the socket's, whatever `local` has there.
    fn udp_send(
        &mut self,
        socket: UdpId,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        data: &[u8],
    ) -> Result<(), UdpSendError>;

    /// Sends one datagram of `head` and, behind it, `body`, which need not be copied as it lives for ever; from `local`'s
    /// address when given.
    fn udp_send_with(
        &mut self,
        socket: UdpId,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        head: &[u8],
        body: &'static [u8],
    ) -> Result<(), UdpSendError> {
        self.udp_send(socket, local, remote, &[head, body].concat())
    }

    /// Closes a UDP socket.
    fn udp_close(&mut self, socket: UdpId);

    /// The address that a UDP socket is bound to; an unspecified IP where it takes datagrams to all of ours. `None` for an
    /// unknown id, or where it is not known.
    fn udp_addr(&self, _socket: UdpId) -> Option<SocketAddr> {
        None
    }

    /// The address of ours that what is sent to `remote` comes from; for an unspecified `remote`, the one of its family that
    /// suits most. `None` without such an address, or where it is not known.
    fn source_for(&self, _remote: IpAddr) -> Option<IpAddr> {
        None
    }

    /// The next event, if any.
    fn poll_event(&mut self) -> Option<Event>;
}
