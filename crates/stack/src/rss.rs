//! Receive-side scaling as a stack sees it: which of the seats on a link the answers to a connection come in at.

use crate::ports::Sequences;
use crate::stack::Stack;
use crate::team::Team;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use linerate_wire::toeplitz::{self, Input};

/// How the device spreads what it receives over the seats, as far as it does so by the Toeplitz hash of addresses and ports:
/// for a stack to open connections whose answers come in at its own seat.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rss {
    /// The key of the hash.
    pub key: [u8; toeplitz::KEY_LEN],
    /// The seat of each value of the hash's low bits; its length is a power of two.
    pub indirection: Vec<u16>,
}

impl Rss {
    /// The seat at which packets from `remote` to `local` come in.
    pub fn seat_of(&self, local: SocketAddr, remote: SocketAddr) -> u16 {
        let (from, to) = (remote.port(), local.port());
        let input = match (remote.ip(), local.ip()) {
            (IpAddr::V4(remote), IpAddr::V4(local)) => Input::ipv4_ports(remote, local, from, to),
            (IpAddr::V6(remote), IpAddr::V6(local)) => Input::ipv6_ports(remote, local, from, to),
            // No packet has addresses of both kinds.
            _ => return 0,
        };
        let at = input.hash(&self.key) as usize % self.indirection.len().max(1);
        self.indirection.get(at).copied().unwrap_or(0)
    }
}

impl Stack {
    /// Says how the device spreads what it receives, or that it is not known any more. Connections that are open stay where
    /// they are.
    pub fn set_rss(&mut self, rss: Option<Rss>) {
        self.team.rss = rss.filter(|_| self.team.seat.is_shared());
    }
}

impl Team {
    /// Whether the answers of `remote` to this end come in here, as far as that is known.
    fn is_home(&self, local: SocketAddr, remote: SocketAddr) -> bool {
        self.rss.as_ref().is_none_or(|rss| rss.seat_of(local, remote) == self.seat.index)
    }

    /// An ephemeral port of ours for which `is_free` holds, towards `remote`: one of this seat's whose answers come in here, or
    /// else one of this seat's.
    pub(crate) fn choose_port(
        &self,
        ports: &mut Sequences,
        ip: IpAddr,
        remote: SocketAddr,
        is_free: impl Fn(u16) -> bool,
    ) -> Option<u16> {
        let may = |port: u16| self.seat.may_choose(port) && is_free(port);
        let home = |port: u16| may(port) && self.is_home(SocketAddr::new(ip, port), remote);
        ports.choose(ip, remote, home).or_else(|| ports.choose(ip, remote, may))
    }
}
