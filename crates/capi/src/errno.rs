//! Errors as C knows them: negative `errno` numbers.

use core::ffi::c_int;
use linerate_nic::DeviceError;
use linerate_stack::AddressError;
use linerate_transport::{CloseReason, ConnectError, ListenError, UdpSendError};

/// A positive `errno` number; it crosses the boundary negated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Errno(pub(crate) c_int);

/// What calls return.
pub(crate) type Result<T> = core::result::Result<T, Errno>;

/// The error that ended a connection; `None` where both sides finished in order.
pub(crate) fn of_close(reason: CloseReason) -> Option<Errno> {
    Some(Errno(match reason {
        CloseReason::Done => return None,
        CloseReason::Reset => libc::ECONNRESET,
        CloseReason::Refused => libc::ECONNREFUSED,
        CloseReason::Unreachable => libc::EHOSTUNREACH,
        CloseReason::TimedOut | CloseReason::KeepAlive => libc::ETIMEDOUT,
        CloseReason::NoMemory => libc::ENOBUFS,
        CloseReason::File => libc::EIO,
        CloseReason::Stale => libc::ECONNABORTED,
    }))
}

impl From<ListenError> for Errno {
    fn from(error: ListenError) -> Self {
        Errno(match error {
            ListenError::InUse => libc::EADDRINUSE,
            ListenError::NoSuchAddress => libc::EADDRNOTAVAIL,
            ListenError::Permission => libc::EACCES,
            ListenError::NoMemory => libc::ENOBUFS,
        })
    }
}

impl From<ConnectError> for Errno {
    fn from(error: ConnectError) -> Self {
        Errno(match error {
            ConnectError::Unreachable => libc::ENETUNREACH,
            ConnectError::Address | ConnectError::NoPort => libc::EADDRNOTAVAIL,
            ConnectError::NoMemory => libc::ENOBUFS,
        })
    }
}

impl From<AddressError> for Errno {
    fn from(error: AddressError) -> Self {
        Errno(match error {
            AddressError::NoHost => libc::EINVAL,
            AddressError::NoIpv6 => libc::EAFNOSUPPORT,
            AddressError::NotNear => libc::EHOSTUNREACH,
            AddressError::Full => libc::ENOSPC,
            // There is one stack.
            AddressError::Member => libc::EPERM,
        })
    }
}

impl From<UdpSendError> for Errno {
    fn from(error: UdpSendError) -> Self {
        Errno(match error {
            UdpSendError::Full => libc::EAGAIN,
            UdpSendError::TooLong => libc::EMSGSIZE,
            UdpSendError::Unreachable => libc::ENETUNREACH,
            UdpSendError::Address => libc::EADDRNOTAVAIL,
            UdpSendError::Closed => libc::EBADF,
        })
    }
}

impl From<DeviceError> for Errno {
    fn from(error: DeviceError) -> Self {
        Errno(match error {
            DeviceError::Gone => libc::ENODEV,
            DeviceError::Io(code) if code > 0 => code,
            DeviceError::Io(_) => libc::EIO,
            DeviceError::Unsupported => libc::EOPNOTSUPP,
        })
    }
}
