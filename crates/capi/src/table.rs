//! The sockets of a stack and their descriptors.

use crate::errno::{Errno, Result};
use core::ffi::c_int;
use core::net::SocketAddr;
use linerate_transport::{BufferSize, ConnId, KeepAlive, ListenerId, Owner, SocketOptions, UdpId};
use std::time::Duration;

/// All sockets are of one owner: their readiness is asked for, not told.
pub(crate) const OWNER: Owner = Owner(0);

/// Buffer of a datagram socket when none is asked for, in bytes.
const DATAGRAM_BUFFER: usize = 256 << 10;
/// When unacknowledged data ends a connection, unless TCP_USER_TIMEOUT says otherwise. RFC 1122 section 4.2.3.5 asks for
/// 100 s at least.
pub(crate) const USER_TIMEOUT: Duration = Duration::from_secs(180);

/// What is set by `lr_setsockopt` and not known to the stack.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) reuse_address: bool,
    pub(crate) keep_alive_on: bool,
    /// Used when keep-alive is on.
    pub(crate) keep_alive: KeepAlive,
    /// Seconds; `None` for no lingering.
    pub(crate) linger: Option<u16>,
    pub(crate) v6_only: bool,
    /// In bytes, of a datagram socket.
    pub(crate) datagram_buffer: usize,
    /// What the stack knows of streams.
    pub(crate) stream: SocketOptions,
}

impl Settings {
    /// As in BSD: Nagle on, keep-alive off (two hours, 75 s, 9 probes when it is switched on). Buffers of streams grow to
    /// `buffer_max` bytes when no size is asked for.
    pub(crate) fn new(buffer_max: usize) -> Self {
        Settings {
            reuse_address: false,
            keep_alive_on: false,
            keep_alive: KeepAlive {
                idle: Duration::from_secs(7_200),
                interval: Duration::from_secs(75),
                probes: 9,
            },
            linger: None,
            v6_only: false,
            datagram_buffer: DATAGRAM_BUFFER,
            stream: SocketOptions {
                send_buffer: BufferSize::Auto { max: buffer_max },
                receive_buffer: BufferSize::Auto { max: buffer_max },
                no_delay: false,
                keep_alive: None,
                user_timeout: USER_TIMEOUT,
                ..SocketOptions::default()
            },
        }
    }
}

/// A stream socket that has a connection.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    pub(crate) id: ConnId,
    /// What the socket was bound to before it connected: a failed `lr_connect` leaves it so.
    pub(crate) bound: Option<SocketAddr>,
    /// It was open once: a failure is then not one of `lr_connect`.
    pub(crate) was_open: bool,
    pub(crate) read_shut: bool,
    pub(crate) write_shut: bool,
    /// The error that ended it was told.
    pub(crate) error_told: bool,
}

/// What a socket is.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// A stream socket that is neither listening nor connected.
    Idle {
        /// What it was bound to.
        local: Option<SocketAddr>,
    },
    /// A listener.
    Listening {
        id: ListenerId,
        /// Accepted from the stack, not yet by the program: it makes the socket readable.
        next: Option<ConnId>,
    },
    /// Connecting, connected, or over.
    Stream(Stream),
    /// A datagram socket.
    Datagram {
        /// `None` until it is bound.
        id: Option<UdpId>,
        /// What it is connected to.
        peer: Option<SocketAddr>,
    },
}

/// A socket.
#[derive(Clone, Debug)]
pub(crate) struct Socket {
    pub(crate) family: c_int,
    pub(crate) settings: Settings,
    pub(crate) kind: Kind,
}

/// The sockets by descriptor. A new one takes the lowest free number.
pub(crate) struct Table {
    slots: Vec<Option<Socket>>,
    limit: usize,
}

impl Table {
    /// A table for at most `limit` sockets.
    pub(crate) fn new(limit: usize) -> Self {
        Table { slots: Vec::with_capacity(limit.min(1_024)), limit }
    }

    /// Adds a socket.
    pub(crate) fn insert(&mut self, socket: Socket) -> Result<c_int> {
        let fd = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        if fd >= self.limit {
            return Err(Errno(libc::EMFILE));
        }
        match self.slots.get_mut(fd) {
            Some(slot) => *slot = Some(socket),
            None => self.slots.push(Some(socket)),
        }
        Ok(fd as c_int)
    }

    /// Whether a further socket fits.
    pub(crate) fn has_room(&self) -> bool {
        self.slots.len() < self.limit || self.slots.iter().any(Option::is_none)
    }

    /// The socket of a descriptor.
    pub(crate) fn get(&mut self, fd: c_int) -> Result<&mut Socket> {
        let slot = usize::try_from(fd).ok().and_then(|fd| self.slots.get_mut(fd));
        slot.and_then(Option::as_mut).ok_or(Errno(libc::EBADF))
    }

    /// Takes a socket out.
    pub(crate) fn remove(&mut self, fd: c_int) -> Result<Socket> {
        let slot = usize::try_from(fd).ok().and_then(|fd| self.slots.get_mut(fd));
        slot.and_then(Option::take).ok_or(Errno(libc::EBADF))
    }

    /// All sockets.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Socket> {
        self.slots.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_the_lowest_free_numbers() {
        let socket = || Socket {
            family: libc::AF_INET,
            settings: Settings::new(4 << 20),
            kind: Kind::Idle { local: None },
        };
        let mut table = Table::new(3);
        for fd in 0..3 {
            assert_eq!(table.insert(socket()), Ok(fd));
        }
        assert_eq!(table.insert(socket()), Err(Errno(libc::EMFILE)));
        assert!(table.remove(1).is_ok() && table.has_room());
        assert_eq!(table.insert(socket()), Ok(1));
        for fd in [-1, 3, c_int::MIN, c_int::MAX] {
            assert_eq!(table.get(fd).err(), Some(Errno(libc::EBADF)));
        }
    }
}
