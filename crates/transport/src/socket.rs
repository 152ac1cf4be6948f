//! Ids, settings, states, measurements and errors of sockets.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub struct $name {
            index: u32,
            generation: u32,
        }

        impl $name {
            /// An id for slot `index`, used for the `generation`th time. For implementers of a transport.
            pub const fn new(index: u32, generation: u32) -> Self {
                $name { index, generation }
            }
            /// The slot.
            pub const fn index(self) -> u32 {
                self.index
            }
            /// How often the slot was used before.
            pub const fn generation(self) -> u32 {
                self.generation
            }
        }
    };
}
pub(crate) use id;

id! {
    /// A TCP listener.
    ListenerId
}
id! {
    /// A TCP connection.
    ConnId
}
id! {
    /// A UDP socket.
    UdpId
}

/// Where to listen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ListenAddr {
    /// The local address; `None` for all addresses of both families.
    pub ip: Option<IpAddr>,
    /// The port; 0 for a free ephemeral one.
    pub port: u16,
}

/// Most connections that may wait for `accept`, half-open ones included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AcceptBacklog(pub u16);

impl Default for AcceptBacklog {
    /// 1,024: a burst of connections within one turn of the loop.
    fn default() -> Self {
        AcceptBacklog(1024)
    }
}

/// Takes data that comes with the SYN of a client that was here before, and serves it a round trip earlier (RFC 7413).
///
/// Such a connection may be accepted, read from and written to before its handshake ends; a handshake that fails closes
/// it with a reason. A SYN that the network duplicates may open a second connection with the same data after the first has
/// closed: only for servers to whom a request that comes twice does no harm (section 2.1). Kernel sockets of a host ignore
/// it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FastOpen {
    /// Most connections of the listener whose handshake has not ended, though their data was taken. Those that failed
    /// within the last minute count too (section 5.1). What is beyond opens the ordinary way. 0 takes no data at all.
    pub max_pending: u16,
}

/// Settings of a listener.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListenOptions {
    /// Length of the accept queue. A SYN beyond it is dropped, never refused, so that the client tries again. Half-open
    /// connections count too, but our own stack answers SYNs beyond these with cookies (RFC 4987), so that a flood of
    /// SYNs does not keep clients out; up to twice as many (64 at least) may wait after a burst of these, and what is beyond is
    /// reset.
    pub backlog: AcceptBacklog,
    /// TCP Fast Open (RFC 7413); `None`, the default, for none.
    pub fast_open: Option<FastOpen>,
    /// Settings that accepted connections start with.
    pub socket: SocketOptions,
}

/// Size of a socket buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BufferSize {
    /// Exactly this many bytes.
    Fixed(usize),
    /// Grows with what the connection needs (twice what is in flight or read per round trip), up to `max` bytes and
    /// within the memory cap of the engine.
    Auto {
        /// The most it may grow to, in bytes.
        max: usize,
    },
}

/// When to acknowledge received data (RFC 1122 section 4.2.3.2, RFC 5681 section 4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DelayedAck {
    /// Acknowledge at the latest after this many full-sized segments. 1 acknowledges everything at once.
    pub segments: u8,
    /// Acknowledge at the latest after this time.
    pub timeout: Duration,
}

impl Default for DelayedAck {
    /// Every second segment (the RFC's rule), 40 ms (below the smallest retransmission timeout in common use).
    fn default() -> Self {
        DelayedAck { segments: 2, timeout: Duration::from_millis(40) }
    }
}

/// Probes on an idle connection (RFC 1122 section 4.2.3.6, RFC 9293 section 3.8.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeepAlive {
    /// Silence before the first probe.
    pub idle: Duration,
    /// Time between probes.
    pub interval: Duration,
    /// Unanswered probes after which the connection ends with [`CloseReason::KeepAlive`]; with 0 silence alone ends it.
    pub probes: u8,
}

/// The congestion control algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Congestion {
    /// CUBIC (RFC 9438), which that RFC recommends as the default: fast on long paths, fair to Reno on short ones.
    #[default]
    Cubic,
    /// NewReno (RFC 5681, RFC 6582).
    NewReno,
}

impl Congestion {
    /// The algorithm of this name as systems and tools write it: `cubic`, `reno`, `newreno` or `new-reno`.
    pub fn from_name(name: &str) -> Option<Congestion> {
        match name {
            "cubic" => Some(Congestion::Cubic),
            "reno" | "newreno" | "new-reno" => Some(Congestion::NewReno),
            _ => None,
        }
    }
}

/// Explicit congestion notification (RFC 3168): routers mark packets where they would drop them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ecn {
    /// Neither asked for nor accepted.
    Off,
    /// Accepted when the peer asks. The default, because some networks drop a SYN that asks.
    #[default]
    Accept,
    /// Asked for in our SYN too; a SYN that is sent again does not ask.
    Request,
}

/// Whether data leaves in bursts or at a rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Pacing {
    /// As soon as the windows permit: the least work. The default.
    #[default]
    Off,
    /// At the rate that the congestion window and the round-trip time make: twice that in slow start, 1.2 times later. It
    /// spares small buffers on the way, at the cost of a timer per millisecond of sending.
    Auto,
    /// At this many payload bytes per second, or less; 0 counts as 1.
    Rate(u64),
}

/// Per-socket settings. Every field has a documented default ([`SocketOptions::default`]).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SocketOptions {
    /// Send buffer (also the retransmission queue). Default: automatic up to 4 MiB.
    pub send_buffer: BufferSize,
    /// Receive buffer, which bounds the advertised window. Default: automatic up to 4 MiB.
    pub receive_buffer: BufferSize,
    /// Upper limit of the segment size in bytes, of which TCP options take their part (timestamps 12); less than 88 counts as 88.
    /// `None` takes what the MTU allows. Default: none.
    pub mss: Option<u16>,
    /// Send small segments at once (no Nagle, RFC 9293 section 3.7.4). Default: true, because our servers write whole
    /// messages.
    pub no_delay: bool,
    /// Delayed acknowledgements.
    pub delayed_ack: DelayedAck,
    /// Keep-alive probes. Default: after 60 s, every 10 s, 6 of them; `None` for none.
    pub keep_alive: Option<KeepAlive>,
    /// The connection ends when data stays unacknowledged this long (RFC 5482), or a peer keeps its window closed
    /// this long. Default: 60 s. Zero ends it as soon as something waits; [`Duration::MAX`] never.
    pub user_timeout: Duration,
    /// Congestion control. Changed on a live connection, the new algorithm starts with the initial window. Default:
    /// CUBIC.
    pub congestion: Congestion,
    /// Explicit congestion notification. Default: accepted when the peer asks.
    pub ecn: Ecn,
    /// Pacing of sends. Default: off.
    pub pacing: Pacing,
    /// Differentiated services code point with ECN bits zero, as the IPv4 TOS octet. Default: 0.
    pub tos: u8,
}

impl Default for SocketOptions {
    fn default() -> Self {
        SocketOptions {
            send_buffer: BufferSize::Auto { max: 4 << 20 },
            receive_buffer: BufferSize::Auto { max: 4 << 20 },
            mss: None,
            no_delay: true,
            delayed_ack: DelayedAck::default(),
            keep_alive: Some(KeepAlive {
                idle: Duration::from_secs(60),
                interval: Duration::from_secs(10),
                probes: 6,
            }),
            user_timeout: Duration::from_secs(60),
            congestion: Congestion::default(),
            ecn: Ecn::default(),
            pacing: Pacing::default(),
            tos: 0,
        }
    }
}

/// Where a connection stands, as far as a server must know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnState {
    /// An active open has not completed yet.
    Connecting,
    /// Data may flow, in a Fast Open even before the handshake has ended. `finished`: the peer sent FIN and all data before it was received (it may not be read yet).
    Open {
        /// Whether the peer has finished sending.
        finished: bool,
    },
    /// It is over. Received data that was not read before a reset is gone.
    Closed(CloseReason),
}

/// Why a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseReason {
    /// Both sides finished in order.
    Done,
    /// The peer reset it.
    Reset,
    /// The peer refused the connection.
    Refused,
    /// No route or no neighbour: the peer cannot be reached.
    Unreachable,
    /// Data or a SYN stayed unacknowledged beyond the user timeout.
    TimedOut,
    /// The peer answered no keep-alive probe.
    KeepAlive,
    /// The engine shed the connection because memory ran out.
    NoMemory,
    /// A queued file range could not be read to its end.
    File,
    /// The id is not, or no longer, one of a connection.
    Stale,
}

impl core::fmt::Display for CloseReason {
    /// What happened to the connection, to follow its name.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            CloseReason::Done => "closed",
            CloseReason::Reset => "reset by the peer",
            CloseReason::Refused => "refused",
            CloseReason::Unreachable => "lost: the peer cannot be reached",
            CloseReason::TimedOut => "timed out",
            CloseReason::KeepAlive => "lost: the peer answers no probe",
            CloseReason::NoMemory => "given up for want of memory",
            CloseReason::File => "reset: the file cannot be read to its end",
            CloseReason::Stale => "gone",
        })
    }
}

/// What kept a connection from sending faster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum LimitCause {
    /// Nothing was queued, or the file to send was still being read: the application is the limit.
    Application = 0,
    /// The application had more, and the send buffer was full, or memory was short: its size is the limit.
    SendBuffer = 1,
    /// The congestion window was full, or its automatic pacing waited: the path is the limit.
    Congestion = 2,
    /// The peer's window was full.
    PeerWindow = 3,
    /// The device took no more frames (ring full), or held most of what is unacknowledged: the interface is the limit.
    Device = 4,
    /// There was something to send, and the processor had not come to it. What waits unread for the processor, such as
    /// acknowledgements and reports of the device, cannot be told from what is still under way.
    Processor = 5,
    /// The rate that the socket was given ([`Pacing::Rate`]).
    Pacing = 6,
    /// What was queued does not fill a segment, and waits for an acknowledgement (Nagle's rule, see
    /// [`SocketOptions::no_delay`]).
    Nagle = 7,
}

impl LimitCause {
    /// All causes, in the order of their numbers.
    pub const ALL: [LimitCause; 8] = [
        LimitCause::Application,
        LimitCause::SendBuffer,
        LimitCause::Congestion,
        LimitCause::PeerWindow,
        LimitCause::Device,
        LimitCause::Processor,
        LimitCause::Pacing,
        LimitCause::Nagle,
    ];
}

/// Time spent under each [`LimitCause`], in ns. The sum is the time since the connection was established.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LimitTimes {
    /// Nanoseconds by the number of the cause.
    pub ns: [u64; LimitCause::ALL.len()],
}

/// Measurements of one connection. What an implementation does not know is `None` or zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnInfo {
    /// Our address.
    pub local: SocketAddr,
    /// The peer's address.
    pub remote: SocketAddr,
    /// Smoothed round-trip time (RFC 6298).
    pub rtt: Option<Duration>,
    /// Round-trip time variation (RFC 6298).
    pub rtt_var: Option<Duration>,
    /// Retransmission timeout.
    pub rto: Option<Duration>,
    /// Largest segment we send, in bytes of payload.
    pub send_mss: u32,
    /// Congestion window in bytes.
    pub congestion_window: u32,
    /// Slow-start threshold in bytes; `None` before the first loss.
    pub slow_start_threshold: Option<u32>,
    /// The window the peer offers, in bytes.
    pub send_window: u32,
    /// The window we offer, in bytes.
    pub receive_window: u32,
    /// Bytes in flight.
    pub in_flight: u32,
    /// Payload bytes acknowledged by the peer.
    pub bytes_acked: u64,
    /// Payload bytes received in order.
    pub bytes_received: u64,
    /// Segments retransmitted.
    pub retransmits: u64,
    /// Payload bytes retransmitted.
    pub bytes_retransmitted: u64,
    /// What the peer reported to have received twice (DSACK, RFC 2883): segments sent again that had not been lost.
    pub duplicates_reported: u64,
    /// Whether segments were seen to overtake each other on the way to the peer.
    pub reordering_seen: bool,
    /// Segments sent with payload (MSS-sized pieces, not super-segments).
    pub segments_sent: u64,
    /// Path MTU in bytes; 0 when unknown.
    pub path_mtu: u32,
    /// Time by what limited sending.
    pub limits: LimitTimes,
}

/// Why a listener or UDP socket could not be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListenError {
    /// Somebody listens there already.
    InUse,
    /// The address is not one of ours.
    NoSuchAddress,
    /// The port needs a privilege that the process does not have.
    Permission,
    /// No memory, socket or ephemeral port is left.
    NoMemory,
}

impl core::fmt::Display for ListenError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            ListenError::InUse => "another socket is bound to this address and port",
            ListenError::NoSuchAddress => "the address does not belong to this host",
            ListenError::Permission => "ports below 1024 need the CAP_NET_BIND_SERVICE capability",
            ListenError::NoMemory => "no memory, socket or port is left",
        })
    }
}

impl core::error::Error for ListenError {}

/// Why an active open could not start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectError {
    /// No route leads there.
    Unreachable,
    /// The local address is in use, or not ours.
    Address,
    /// All local ports are in use for connections to that address and port.
    NoPort,
    /// No memory or socket is left.
    NoMemory,
}

impl core::fmt::Display for ConnectError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            ConnectError::Unreachable => "no route leads there",
            ConnectError::Address => "the local address is in use, or not ours",
            ConnectError::NoPort => "all local ports are in use for that address and port",
            ConnectError::NoMemory => "no memory or socket is left",
        })
    }
}

impl core::error::Error for ConnectError {}

/// Why nothing was queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendError {
    /// The send buffer is full; `WRITABLE` will come.
    Full,
    /// The connection is closed, not yet established, or was shut down.
    Closed,
    /// More than 64 KiB of memory payload in one call, a range beyond what a file can have ([`FileRange::is_possible`](crate::FileRange::is_possible)), or
    /// more in all than 64 bits count.
    TooLong,
}

impl core::fmt::Display for SendError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            SendError::Full => "the send buffer is full: there will be room",
            SendError::Closed => "the connection is closed, not yet established, or was shut down",
            SendError::TooLong => "longer than one payload may be: 64 KiB in memory, or what a file can have",
        })
    }
}

impl core::error::Error for SendError {}

/// Why a datagram was not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UdpSendError {
    /// Queue or device full: try again later; datagrams may be dropped.
    Full,
    /// Longer than a datagram can be (65,507 bytes over IPv4).
    TooLong,
    /// No route leads there.
    Unreachable,
    /// The address to send from is not ours.
    Address,
    /// The socket is closed.
    Closed,
}

impl core::fmt::Display for UdpSendError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            UdpSendError::Full => "the queue or the device is full: try again later",
            UdpSendError::TooLong => "longer than a datagram can be",
            UdpSendError::Unreachable => "no route leads there",
            UdpSendError::Address => "the address to send from is not ours",
            UdpSendError::Closed => "the socket is closed",
        })
    }
}

impl core::error::Error for UdpSendError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn algorithms_have_the_names_that_people_write() {
        let check = |name: &str, expected| assert_eq!(Congestion::from_name(name), expected, "{name}");
        check("cubic", Some(Congestion::Cubic));
        for name in ["reno", "newreno", "new-reno"] {
            check(name, Some(Congestion::NewReno));
        }
        check("bbr", None);
        check("", None);
    }
}
