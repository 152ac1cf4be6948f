//! Path MTUs learned from ICMP, per destination (RFC 1191, RFC 8201).
//!
//! Whoever can forge an ICMP error can slow a path down, never speed it up: a value only ever lowers, not below the
//! floor of its family, only for a quoted packet that a live connection has in flight (the caller checks), and it is
//! forgotten after ten minutes (RFC 1191 section 6.3). Messages that no honest router sends are ignored (RFC 5927 section
//! 7.1), and what contradicts a proof waits for a timeout (`tcp/path_size.rs`).

use crate::random::KeyedState;
use core::net::IpAddr;
use core::time::Duration;
use hashbrown::HashMap;
use linerate_wire::units::Instant;

/// Least IPv4 path MTU believed: what Linux takes too; below it, headers eat the link.
pub(crate) const MIN_MTU4: usize = 552;
/// Least IPv6 path MTU (RFC 8200 section 5).
pub(crate) const MIN_MTU6: usize = 1_280;
/// How long a value is believed.
const LIFETIME: Duration = Duration::from_secs(600);
/// Common MTUs (RFC 1191 section 7.1), for routers that do not tell theirs.
const PLATEAUS: [usize; 7] = [32_000, 17_914, 8_166, 4_352, 2_002, 1_492, 1_006];

#[derive(Clone, Copy)]
struct Path {
    mtu: usize,
    until: Instant,
}

/// What a message about a packet that was too big is worth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// No honest router says that: less than every link carries, or the packet would have fitted (RFC 5927 section 7.1,
    /// RFC 8201 section 4).
    Absurd,
    /// The path MTU may be this, in bytes.
    Names(usize),
}

/// The cache.
pub(crate) struct PathMtus {
    paths: HashMap<IpAddr, Path, KeyedState>,
    most: usize,
    link_mtu4: usize,
    link_mtu6: usize,
}

impl PathMtus {
    /// An empty cache of `most` destinations over a link of this MTU.
    pub(crate) fn new(link_mtu: usize, most: usize, state: KeyedState) -> Self {
        let paths = HashMap::with_capacity_and_hasher(most, state);
        PathMtus { paths, most, link_mtu4: link_mtu, link_mtu6: link_mtu }
    }

    /// Sets the link's MTU for IPv6, which routers can lower (RFC 4861 section 4.6.4).
    pub(crate) fn set_link_mtu6(&mut self, mtu: usize) {
        self.link_mtu6 = mtu;
    }

    /// Largest packet in bytes that the link carries, of the family of `address`: what we can receive.
    pub(crate) fn link_mtu(&self, address: IpAddr) -> usize {
        if address.is_ipv4() { self.link_mtu4 } else { self.link_mtu6 }
    }

    /// Largest packet for `destination` in bytes.
    pub(crate) fn mtu(&self, destination: IpAddr, now: Instant) -> usize {
        let link_mtu = self.link_mtu(destination);
        if self.paths.is_empty() {
            return link_mtu;
        }
        match self.paths.get(&destination) {
            Some(path) if path.until > now => path.mtu.min(link_mtu),
            _ => link_mtu,
        }
    }
}

/// What follows when a router says that a packet of `packet_len` bytes was too big for its next link of `reported` bytes
/// (0 when it does not tell).
pub(crate) fn judge(destination: IpAddr, packet_len: usize, reported: usize) -> Verdict {
    let floor = if destination.is_ipv4() { MIN_MTU4 } else { MIN_MTU6 };
    let mtu = match reported {
        0 => PLATEAUS.iter().copied().find(|&plateau| plateau < packet_len).unwrap_or(floor).max(floor),
        told => told,
    };
    if mtu < floor || mtu >= packet_len {
        return Verdict::Absurd;
    }
    Verdict::Names(mtu)
}

impl PathMtus {
    /// Believes a path MTU for ten minutes. False when that lowers nothing.
    pub(crate) fn lower(&mut self, destination: IpAddr, mtu: usize, now: Instant) -> bool {
        if mtu >= self.mtu(destination, now) {
            return false;
        }
        if self.paths.len() >= self.most && !self.paths.contains_key(&destination) {
            self.evict();
        }
        self.paths.insert(destination, Path { mtu, until: now + LIFETIME });
        true
    }

    /// Drops the value that was learned first. A walk over a bounded table, on an event that only an attack repeats.
    fn evict(&mut self) {
        let oldest = self.paths.iter().min_by_key(|(_, path)| path.until).map(|(ip, _)| *ip);
        if let Some(oldest) = oldest {
            self.paths.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict::*;
    use super::*;
    use core::net::{Ipv4Addr, Ipv6Addr};

    const V4: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

    fn check(destination: IpAddr, packet_len: usize, reported: usize, expected: Verdict) {
        let mut paths = PathMtus::new(1_500, 256, KeyedState::new(&[0; 32]));
        let verdict = judge(destination, packet_len, reported);
        assert_eq!(verdict, expected, "{destination} {packet_len} {reported}");
        let mut mtu = 1_500;
        if let Names(lower) = verdict {
            assert!(paths.lower(destination, lower, Instant::ZERO));
            mtu = lower;
        }
        assert_eq!(paths.mtu(destination, Instant::ZERO), mtu);
        assert_eq!(paths.mtu(destination, Instant::ZERO + LIFETIME), 1_500);
    }

    #[test]
    fn values_only_lower_and_not_below_the_floor() {
        check(V4, 1_500, 1_400, Names(1_400));
        check(V4, 1_500, 0, Names(1_492));
        check(V4, 1_492, 0, Names(1_006));
        check(V4, 700, 0, Names(MIN_MTU4));
        check(V6, 1_500, 1_400, Names(1_400));
        check(V6, 1_500, 0, Names(1_492));
    }

    #[test]
    fn what_no_honest_router_says_is_ignored() {
        for size in [1, 68, 296, MIN_MTU4 - 1] {
            check(V4, 1_500, size, Absurd);
        }
        check(V6, 1_500, MIN_MTU6 - 1, Absurd);
        check(V6, 1_280, 0, Absurd);
        check(V4, 552, 0, Absurd);
        // The packet would have fitted.
        check(V4, 1_500, 1_500, Absurd);
        check(V4, 600, 1_400, Absurd);
    }

    #[test]
    fn the_cache_is_bounded_and_drops_the_oldest() {
        let mut paths = PathMtus::new(1_500, 256, KeyedState::new(&[0; 32]));
        let ip = |i: u32| IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + i));
        for i in 0..1_000 {
            assert!(paths.lower(ip(i), 1_000, Instant::from_millis(u64::from(i))));
        }
        assert_eq!(paths.paths.len(), 256);
        assert_eq!(paths.mtu(ip(0), Instant::from_millis(1_000)), 1_500);
        assert_eq!(paths.mtu(ip(999), Instant::from_millis(1_000)), 1_000);
        assert!(!paths.lower(ip(999), 1_200, Instant::from_millis(1_000)), "nothing raises");
    }
}
