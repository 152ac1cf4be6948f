//! From addresses and ports to the connection, in constant time.

use crate::random::KeyedState;
use core::cell::Cell;
use core::hash::{BuildHasher as _, Hash, Hasher};
use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// What tells one TCP connection from another. IPv4 addresses are kept in their IPv4-mapped form (RFC 4291 section
/// 2.5.5.2), which no packet may carry on the wire, so both families share one table.
#[derive(Clone, Copy, Eq, Debug)]
pub(crate) struct FlowKey {
    local: Words,
    remote: Words,
    local_port: u16,
    remote_port: u16,
}

/// An address, in words of the processor's order: compared as such, and not by the call that bytes take.
#[derive(Clone, Copy, Eq, Debug)]
struct Words([u32; 4]);

/// The third word of an IPv4 address in the mapped form.
const MAPPED: u32 = 0xffff;

impl Words {
    /// As an IPv4 address, in the mapped form.
    fn v4(&self) -> Option<u32> {
        match self.0 {
            [0, 0, MAPPED, address] => Some(address),
            _ => None,
        }
    }

    fn ip(&self) -> Ipv6Addr {
        let [a, b, c, d] = self.0;
        Ipv6Addr::from_bits(u128::from(a) << 96 | u128::from(b) << 64 | u128::from(c) << 32 | u128::from(d))
    }
}

impl PartialEq for Words {
    fn eq(&self, other: &Words) -> bool {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        (a ^ e) | (b ^ f) | (c ^ g) | (d ^ h) == 0
    }
}

impl FlowKey {
    pub(crate) fn new(local: IpAddr, local_port: u16, remote: IpAddr, remote_port: u16) -> Self {
        FlowKey { local: words(local), remote: words(remote), local_port, remote_port }
    }

    pub(crate) fn of(local: SocketAddr, remote: SocketAddr) -> Self {
        FlowKey::new(local.ip(), local.port(), remote.ip(), remote.port())
    }

    /// The ends, ours first.
    pub(crate) fn ends(&self) -> (SocketAddr, SocketAddr) {
        let end = |words: Words, port| SocketAddr::new(words.ip().to_canonical(), port);
        (end(self.local, self.local_port), end(self.remote, self.remote_port))
    }

    fn ports(&self) -> u32 {
        u32::from(self.local_port) << 16 | u32::from(self.remote_port)
    }
}

impl PartialEq for FlowKey {
    fn eq(&self, other: &FlowKey) -> bool {
        #[cfg(test)]
        tests::count_comparison();
        self.local == other.local && self.remote == other.remote && self.ports() == other.ports()
    }
}

impl Hash for FlowKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Equal flows are of the same kind, and a third of the bytes tells those of IPv4 apart.
        if let (Some(local), Some(remote)) = (self.local.v4(), self.remote.v4()) {
            state.write_u64(u64::from(local) << 32 | u64::from(remote));
        } else {
            state.write_u128(self.local.ip().to_bits());
            state.write_u128(self.remote.ip().to_bits());
        }
        state.write_u32(self.ports());
    }
}

fn words(ip: IpAddr) -> Words {
    match ip {
        IpAddr::V4(ip) => Words([0, 0, MAPPED, ip.to_bits()]),
        IpAddr::V6(ip) => {
            let bits = ip.to_bits();
            Words([(bits >> 96) as u32, (bits >> 64) as u32, (bits >> 32) as u32, bits as u32])
        }
    }
}

/// Flows that are found by the last bits of their ports, as many as this: comparing is cheaper than a hash that nobody can guess.
const RECENT: usize = 64;
/// For a place where none was found yet.
const NOBODY: u32 = u32::MAX;

/// The table of connections. It holds their slots alone; the flows are looked up there, by the closures that its calls take. Its
/// memory is taken when it is made.
pub(crate) struct Demux {
    slots: HashTable<u32>,
    state: KeyedState,
    capacity: usize,
    /// What was found last where the last bits of both ports make the same number. A system counts its ports up, so that flows of one peer lie apart.
    recent: [Cell<u32>; RECENT],
    /// The flow that was looked for last and is nowhere, and its hash: that of a connection that begins.
    missed: Cell<Option<(FlowKey, u64)>>,
}

impl Demux {
    /// A table for `capacity` connections.
    pub(crate) fn new(capacity: usize, state: KeyedState) -> Self {
        let recent = [const { Cell::new(NOBODY) }; RECENT];
        Demux { slots: HashTable::with_capacity(capacity), state, capacity, recent, missed: Cell::new(None) }
    }

    /// The slot of the connection that `flow` belongs to.
    #[inline]
    pub(crate) fn find<'a>(
        &self,
        flow: &FlowKey,
        flow_of: impl Fn(u32) -> Option<&'a FlowKey>,
    ) -> Option<u32> {
        let is_it = |slot: &u32| flow_of(*slot).is_some_and(|other| other == flow);
        let recent = self.recent(flow);
        let last = recent.get();
        if last != NOBODY && is_it(&last) {
            return Some(last);
        }
        let slot = self.find_by_hash(flow, is_it)?;
        recent.set(slot);
        Some(slot)
    }

    #[inline(never)]
    fn find_by_hash(&self, flow: &FlowKey, is_it: impl Fn(&u32) -> bool) -> Option<u32> {
        let hash = self.state.hash_one(flow);
        let found = self.slots.find(hash, is_it).copied();
        if found.is_none() {
            self.missed.set(Some((*flow, hash)));
        }
        found
    }

    fn recent(&self, flow: &FlowKey) -> &Cell<u32> {
        &self.recent[usize::from(flow.remote_port ^ flow.local_port) % RECENT]
    }

    /// Adds a connection; false when the flow is there already or the table is full.
    pub(crate) fn insert(
        &mut self,
        flow: FlowKey,
        slot: u32,
        flow_of: impl Fn(u32) -> Option<FlowKey>,
    ) -> bool {
        if self.slots.len() >= self.capacity {
            return false;
        }
        let is_it = |slot: &u32| flow_of(*slot).is_some_and(|other| other == flow);
        let hash = |slot: &u32| flow_of(*slot).map_or(0, |flow| self.state.hash_one(flow));
        let own = match self.missed.get() {
            Some((missed, hash)) if missed == flow => hash,
            _ => self.state.hash_one(flow),
        };
        match self.slots.entry(own, is_it, hash) {
            Entry::Occupied(_) => false,
            Entry::Vacant(place) => {
                place.insert(slot);
                self.recent(&flow).set(slot);
                true
            }
        }
    }

    /// Removes a connection, if the flow still leads to `slot`.
    pub(crate) fn remove(&mut self, flow: &FlowKey, slot: u32) {
        let recent = self.recent(flow);
        if recent.get() == slot {
            recent.set(NOBODY);
        }
        if let Ok(found) = self.slots.find_entry(self.state.hash_one(flow), |other| *other == slot) {
            found.remove();
        }
    }

    /// Connections in the table.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use core::net::Ipv4Addr;

    std::thread_local! {
        static COMPARISONS: Cell<u64> = const { Cell::new(0) };
    }

    pub(super) fn count_comparison() {
        COMPARISONS.set(COMPARISONS.get() + 1);
    }

    #[test]
    fn a_flow_is_found_in_as_few_steps_among_many_as_among_few() {
        let flow = |n: u32| {
            let remote = IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + n / 1_000));
            FlowKey::new(Ipv4Addr::new(10, 9, 9, 9).into(), 80, remote, (n % 1_000) as u16)
        };
        for count in [1, 10, 1_000, 100_000] {
            let mut demux = Demux::new(count as usize, KeyedState::new(&[5; 32]));
            let flows: alloc::vec::Vec<FlowKey> = (0..count).map(flow).collect();
            let of = |slot: u32| flows.get(slot as usize);
            assert!((0..count).all(|n| demux.insert(flow(n), n, |slot| of(slot).copied())));
            COMPARISONS.set(0);
            assert!((0..count).all(|n| demux.find(&flow(n), of) == Some(n)));
            let found = COMPARISONS.take();
            // One with the flow found last, one with itself, and now and then one that shares its place.
            assert!(
                (count..count * 9 / 4 + 1).contains(&(found as u32)),
                "{found} for {count} that are there"
            );
            assert!((0..count).all(|n| demux.find(&flow(1_000_000 + n), of).is_none()));
            let missed = COMPARISONS.take();
            // Of a few, chance lets some share a place.
            assert!(missed as u32 <= count * 5 / 4 + 3, "{missed} for {count} that are not");
        }
    }

    #[test]
    fn flows_are_found_by_all_four_parts() {
        let v4 = |last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
        let v6 = IpAddr::V6(Ipv6Addr::LOCALHOST);
        let mut demux = Demux::new(4, KeyedState::new(&[1; 32]));
        let flows = [
            FlowKey::new(v4(1), 80, v4(2), 5000),
            FlowKey::new(v4(1), 80, v4(3), 5000),
            FlowKey::new(v4(1), 81, v4(2), 5000),
            FlowKey::new(v6, 80, v6, 5000),
        ];
        let of = |slot: u32| flows.get(slot as usize);
        let copy_of = |slot: u32| of(slot).copied();
        for (slot, flow) in flows.iter().enumerate() {
            assert!(demux.insert(*flow, slot as u32, copy_of));
        }
        assert_eq!(flows[1].ends(), ((v4(1), 80).into(), (v4(3), 5000).into()), "as they were");
        assert_eq!(flows[3].ends(), ((v6, 80).into(), (v6, 5000).into()));
        for (slot, flow) in flows.iter().enumerate() {
            assert_eq!(demux.find(flow, of), Some(slot as u32));
        }
        assert!(!demux.insert(FlowKey::new(v4(9), 1, v4(8), 2), 9, copy_of), "full");
        demux.remove(&flows[0], 7);
        assert_eq!(demux.len(), 4, "a slot used again does not lose its new flow");
        demux.remove(&flows[0], 0);
        assert_eq!(demux.find(&flows[0], of), None, "also where it was the last that was found");
        assert!(!demux.insert(flows[1], 9, copy_of), "taken");
    }
}
