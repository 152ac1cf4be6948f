//! Readiness events and the owners they are for.

use crate::socket::{ConnId, ListenerId, UdpId};
use core::fmt;
use core::ops::{BitOr, BitOrAssign};

/// The service that a socket or a file operation belongs to; the owner of the loop hands its events there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Owner(pub u16);

impl Owner {
    /// The transport itself (it reads files for queued file ranges).
    pub const TRANSPORT: Owner = Owner(u16::MAX);
}

/// What an event is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Source {
    /// A TCP listener: `READABLE` means that `accept` has something.
    Listener(ListenerId),
    /// A TCP connection.
    Conn(ConnId),
    /// A UDP socket.
    Udp(UdpId),
}

/// One thing, or several things at once, that happened to a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// Whose socket it is.
    pub owner: Owner,
    /// Which socket.
    pub source: Source,
    /// What happened.
    pub ready: Ready,
}

/// A set of readiness bits.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Ready(u8);

impl Ready {
    /// Nothing.
    pub const NONE: Ready = Ready(0);
    /// Data arrived, or a listener has a connection, or a UDP socket a datagram.
    pub const READABLE: Ready = Ready(1);
    /// The connection is established, or room came back in its send buffer.
    pub const WRITABLE: Ready = Ready(2);
    /// Everything queued was acknowledged by the peer (own engine) or taken by the kernel, which need not have sent it yet; after
    /// `shutdown` with the FIN.
    pub const SENT: Ready = Ready(4);
    /// The peer sent FIN: after the readable data there is no more.
    pub const FINISHED: Ready = Ready(8);
    /// The connection is over; `state` tells why. The id stays valid until `close` or `abort`.
    pub const CLOSED: Ready = Ready(16);

    /// Whether every bit of `other` is set.
    pub const fn contains(self, other: Ready) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any bit of `other` is set.
    pub const fn intersects(self, other: Ready) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether no bit is set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl BitOr for Ready {
    type Output = Ready;
    fn bitor(self, rhs: Ready) -> Ready {
        Ready(self.0 | rhs.0)
    }
}

impl BitOrAssign for Ready {
    fn bitor_assign(&mut self, rhs: Ready) {
        self.0 |= rhs.0;
    }
}

impl fmt::Debug for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = ["READABLE", "WRITABLE", "SENT", "FINISHED", "CLOSED"];
        let mut set = f.debug_set();
        for (bit, name) in names.iter().enumerate() {
            if self.0 >> bit & 1 == 1 {
                set.entry(&format_args!("{name}"));
            }
        }
        set.finish()
    }
}
