//! Sockets by the address and port that they are bound to.

use alloc::vec::Vec;
use core::net::IpAddr;

/// A socket's port, its address (all of ours, if `None`), and its slot.
#[derive(Clone, Copy)]
struct Entry {
    port: u16,
    ip: Option<IpAddr>,
    slot: u32,
}

/// Slots of sockets, in the order of their ports: looking for one compares a few numbers, where a keyed hash takes a hundred
/// instructions for each segment or datagram. What we are bound to is our own choice, so nobody can make them many.
pub(crate) struct Bound(Vec<Entry>);

impl Bound {
    /// Room for so many without allocating.
    pub(crate) fn new(capacity: usize) -> Bound {
        Bound(Vec::with_capacity(capacity))
    }

    /// Those with this port.
    #[inline]
    fn with_port(&self, port: u16) -> impl Iterator<Item = &Entry> {
        let first = self.0.partition_point(|entry| entry.port < port);
        self.0[first..].iter().take_while(move |entry| entry.port == port)
    }

    /// The socket that takes what comes for this address and port: the one with that address, else the one with all.
    #[inline]
    pub(crate) fn find(&self, ip: IpAddr, port: u16) -> Option<u32> {
        let mut of_all = None;
        for entry in self.with_port(port) {
            match entry.ip {
                Some(its) if its == ip => return Some(entry.slot),
                Some(_) => {}
                None => of_all = Some(entry.slot),
            }
        }
        of_all
    }

    /// Whether a socket takes anything that one with this address (all, if `None`) and port would take.
    pub(crate) fn overlaps(&self, ip: Option<IpAddr>, port: u16) -> bool {
        self.with_port(port).any(|entry| ip.is_none() || entry.ip.is_none() || entry.ip == ip)
    }

    /// The socket in `slot` is bound to this.
    pub(crate) fn insert(&mut self, ip: Option<IpAddr>, port: u16, slot: u32) {
        let at = self.0.partition_point(|entry| entry.port < port);
        self.0.insert(at, Entry { port, ip, slot });
    }

    /// It is not any more.
    pub(crate) fn remove(&mut self, port: u16, slot: u32) {
        self.0.retain(|entry| (entry.port, entry.slot) != (port, slot));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn the_socket_with_the_address_comes_before_the_one_with_all() {
        let mut bound = Bound::new(4);
        for (ip, port, slot) in
            [(None, 80, 1), (Some(ip(1)), 80, 2), (Some(ip(2)), 80, 3), (None, 21, 4), (Some(ip(1)), 443, 5)]
        {
            bound.insert(ip, port, slot);
        }
        let found = |ip, port| bound.find(ip, port);
        assert_eq!([1, 2, 3].map(|last| found(ip(last), 80)), [Some(2), Some(3), Some(1)]);
        assert_eq!((found(ip(9), 21), found(ip(2), 443), found(ip(1), 22)), (Some(4), None, None));
        bound.remove(80, 2);
        bound.remove(21, 1);
        assert_eq!((bound.find(ip(1), 80), bound.find(ip(1), 21)), (Some(1), Some(4)));
        bound.remove(80, 1);
        assert_eq!((bound.find(ip(1), 80), bound.find(ip(2), 80)), (None, Some(3)));
    }

    #[test]
    fn all_addresses_overlap_with_each() {
        let mut bound = Bound::new(2);
        bound.insert(Some(ip(1)), 80, 0);
        bound.insert(None, 81, 1);
        let of = |port| vec![None, Some(ip(1)), Some(ip(2))].into_iter().map(move |ip| (ip, port));
        let overlaps = |port| of(port).map(|(ip, port)| bound.overlaps(ip, port)).collect::<Vec<_>>();
        assert_eq!(overlaps(80), [true, true, false]);
        assert_eq!(overlaps(81), [true, true, true]);
        assert_eq!(overlaps(82), [false, false, false]);
    }
}
