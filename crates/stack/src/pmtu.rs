//! Path MTUs learned from ICMP, per destination (RFC 1191, RFC 8201).
//!
//! Whoever can forge an ICMP error can slow a path down, never speed it up: a value only ever lowers, not below the
//! floor of its family, only for a quoted packet that a live connection has in flight (the caller checks), and it is
//! forgotten after ten minutes (RFC 1191 section 6.3).

use crate::random::KeyedState;
use core::net::IpAddr;
use core::time::Duration;
use hashbrown::HashMap;
use linerate_wire::units::Instant;

/// Least IPv4 path MTU believed: what Linux takes too; below it, headers eat the link.
pub(crate) const MIN_MTU4: usize = 552;
/// Least IPv6 path MTU (RFC 8200 section 5).
pub(crate) const MIN_MTU6: usize = 1_280;
/// Most destinations remembered.
pub(crate) const MAX_PATHS: usize = 256;
/// How long a value is believed.
const LIFETIME: Duration = Duration::from_secs(600);
/// Common MTUs (RFC 1191 section 7.1), for routers that do not tell theirs.
const PLATEAUS: [usize; 7] = [32_000, 17_914, 8_166, 4_352, 2_002, 1_492, 1_006];

#[derive(Clone, Copy)]
struct Path {
    mtu: usize,
    until: Instant,
}

/// The cache.
pub(crate) struct PathMtus {
    paths: HashMap<IpAddr, Path, KeyedState>,
    link_mtu4: usize,
    link_mtu6: usize,
}

impl PathMtus {
    /// An empty cache over a link of this MTU.
    pub(crate) fn new(link_mtu: usize, state: KeyedState) -> Self {
        let paths = HashMap::with_capacity_and_hasher(MAX_PATHS, state);
        PathMtus { paths, link_mtu4: link_mtu, link_mtu6: link_mtu }
    }

    /// Sets the link's MTU for IPv6, which routers can lower (RFC 4861 section 4.6.4).
    pub(crate) fn set_link_mtu6(&mut self, mtu: usize) {
        self.link_mtu6 = mtu;
    }

    /// Largest packet for `destination` in bytes.
    pub(crate) fn mtu(&self, destination: IpAddr, now: Instant) -> usize {
        let link_mtu = if destination.is_ipv4() { self.link_mtu4 } else { self.link_mtu6 };
        if self.paths.is_empty() {
            return link_mtu;
        }
        match self.paths.get(&destination) {
            Some(path) if path.until > now => path.mtu.min(link_mtu),
            _ => link_mtu,
        }
    }

    /// The path MTU that follows when a router says that a packet of `packet_len` bytes was too big for its next link
    /// of `reported` bytes (0 when it does not tell); `None` when that lowers nothing.
    pub(crate) fn proposed(
        &self,
        destination: IpAddr,
        packet_len: usize,
        reported: usize,
        now: Instant,
    ) -> Option<usize> {
        let floor = if destination.is_ipv4() { MIN_MTU4 } else { MIN_MTU6 };
        let told = if reported == 0 {
            PLATEAUS.iter().copied().find(|&plateau| plateau < packet_len).unwrap_or(floor)
        } else {
            reported
        };
        let mtu = told.max(floor);
        (mtu < self.mtu(destination, now)).then_some(mtu)
    }

    /// Believes a path MTU for ten minutes.
    pub(crate) fn store(&mut self, destination: IpAddr, mtu: usize, now: Instant) {
        if self.paths.len() >= MAX_PATHS && !self.paths.contains_key(&destination) {
            self.evict();
        }
        self.paths.insert(destination, Path { mtu, until: now + LIFETIME });
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
    use super::*;
    use core::net::{Ipv4Addr, Ipv6Addr};

    const V4: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

    fn check(destination: IpAddr, packet_len: usize, reported: usize, expected: Option<usize>) {
        let mut paths = PathMtus::new(1_500, KeyedState::new(&[0; 32]));
        let proposed = paths.proposed(destination, packet_len, reported, Instant::ZERO);
        assert_eq!(proposed, expected, "{destination} {packet_len} {reported}");
        if let Some(mtu) = proposed {
            paths.store(destination, mtu, Instant::ZERO);
        }
        assert_eq!(paths.mtu(destination, Instant::ZERO), expected.unwrap_or(1_500));
        assert_eq!(paths.mtu(destination, Instant::ZERO + LIFETIME), 1_500);
    }

    #[test]
    fn values_only_lower_and_not_below_the_floor() {
        check(V4, 1_500, 1_400, Some(1_400));
        check(V4, 1_500, 68, Some(MIN_MTU4));
        check(V4, 1_500, 1_500, None);
        check(V4, 1_500, 9_000, None);
        check(V4, 1_500, 0, Some(1_492));
        check(V4, 1_492, 0, Some(1_006));
        check(V4, 700, 0, Some(MIN_MTU4));
        check(V6, 1_500, 1_400, Some(1_400));
        check(V6, 1_500, 0, Some(1_492));
        check(V6, 1_500, 100, Some(MIN_MTU6));
    }

    #[test]
    fn the_cache_is_bounded_and_drops_the_oldest() {
        let mut paths = PathMtus::new(1_500, KeyedState::new(&[0; 32]));
        let ip = |i: u32| IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + i));
        for i in 0..1_000 {
            paths.store(ip(i), 1_000, Instant::from_millis(u64::from(i)));
        }
        assert_eq!(paths.paths.len(), MAX_PATHS);
        assert_eq!(paths.mtu(ip(0), Instant::from_millis(1_000)), 1_500);
        assert_eq!(paths.mtu(ip(999), Instant::from_millis(1_000)), 1_000);
    }
}
