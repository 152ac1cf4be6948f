//! One error for all sockets, with its kind in the terms of `embedded-io`.

use core::fmt;
use embedded_io_async::ErrorKind;
use linerate_transport::{CloseReason, ConnectError, ListenError, UdpSendError};

/// Why a call on a socket failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// The connection is over, for this reason.
    Closed(CloseReason),
    /// Written to after [`TcpSocket::shutdown`](crate::TcpSocket::shutdown).
    ShutDown,
    /// The connection could not be started.
    Connect(ConnectError),
    /// The listener or UDP socket could not be opened.
    Open(ListenError),
    /// The datagram was not sent.
    Send(UdpSendError),
    /// A datagram was to be sent from an address or port that its socket is not bound to.
    Source,
    /// A payload that nobody here can send: a range of a file, or more than 64 KiB in one piece.
    Payload,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Closed(reason) => write!(f, "connection {reason}"),
            Error::ShutDown => f.write_str("written to a connection whose sending side was shut down"),
            Error::Connect(error) => error.fmt(f),
            Error::Open(error) => error.fmt(f),
            Error::Send(error) => error.fmt(f),
            Error::Source => f.write_str("the socket is not bound to the address to be sent from"),
            Error::Payload => {
                f.write_str("a range of a file, or more than 64 KiB, cannot be sent in one piece")
            }
        }
    }
}

impl core::error::Error for Error {}

impl embedded_io_async::Error for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Error::Closed(reason) => match reason {
                CloseReason::Done => ErrorKind::BrokenPipe,
                CloseReason::Reset => ErrorKind::ConnectionReset,
                CloseReason::Refused => ErrorKind::ConnectionRefused,
                CloseReason::TimedOut | CloseReason::KeepAlive => ErrorKind::TimedOut,
                CloseReason::NoMemory => ErrorKind::OutOfMemory,
                CloseReason::Stale => ErrorKind::NotConnected,
                CloseReason::Unreachable | CloseReason::File => ErrorKind::Other,
            },
            Error::ShutDown => ErrorKind::BrokenPipe,
            Error::Connect(ConnectError::Address | ConnectError::NoPort) => ErrorKind::AddrNotAvailable,
            Error::Connect(ConnectError::NoMemory) => ErrorKind::OutOfMemory,
            Error::Connect(ConnectError::Unreachable) => ErrorKind::Other,
            Error::Open(ListenError::InUse) => ErrorKind::AddrInUse,
            Error::Open(ListenError::NoSuchAddress) => ErrorKind::AddrNotAvailable,
            Error::Open(ListenError::Permission) => ErrorKind::PermissionDenied,
            Error::Open(ListenError::NoMemory) => ErrorKind::OutOfMemory,
            Error::Send(UdpSendError::Full) => ErrorKind::OutOfMemory,
            Error::Send(UdpSendError::TooLong) | Error::Source | Error::Payload => ErrorKind::InvalidInput,
            Error::Send(UdpSendError::Unreachable | UdpSendError::Address) => ErrorKind::Other,
            Error::Send(UdpSendError::Closed) => ErrorKind::NotConnected,
        }
    }
}
