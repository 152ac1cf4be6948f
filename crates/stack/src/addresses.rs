//! Our addresses: which there are, whether they may be used, and for how long.
//!
//! ```text
//!          probes unanswered               announced twice
//!  PROBING ────────────────▶ ANNOUNCING ───────────────────▶ READY ── lifetime over ──▶ (gone)
//!     │ somebody has it         (IPv4)                          │ preferred lifetime over: not chosen as source
//!     ▼                                                         ▼
//!   (gone)                                                   deprecated
//! ```
//!
//! IPv6 addresses are probed by neighbour solicitations (RFC 4862 section 5.4), addresses from DHCP by ARP probes
//! (RFC 5227 section 2.1.1); static IPv4 addresses are announced only, because the one who configured them decides.
//! Departures: probes start at once instead of after a random delay, and ARP probes are two, half a second apart,
//! instead of three within 3 to 7 s: a server that takes 7 s to come up is not worth the rarer collision.

use crate::config::Cidr;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use linerate_wire::ipv6;
use linerate_wire::units::Instant;

/// Most addresses, of all origins together.
pub(crate) const MAX_ADDRESSES: usize = 32;
const ARP_PROBES: u8 = 2;
const ARP_PROBE_INTERVAL: Duration = Duration::from_millis(500);
/// RFC 5227 section 1.1: ANNOUNCE_NUM and ANNOUNCE_INTERVAL.
const ANNOUNCEMENTS: u8 = 2;
const ANNOUNCE_INTERVAL: Duration = Duration::from_secs(2);
/// RFC 4861 section 10: RETRANS_TIMER.
const SOLICIT_INTERVAL: Duration = Duration::from_secs(1);

/// Where an address comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AddressOrigin {
    Static,
    LinkLocal,
    Dhcp,
    Slaac,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Probing { sent: u8 },
    Announcing { sent: u8 },
    Ready,
}

/// One of our addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnAddress {
    pub(crate) cidr: Cidr,
    pub(crate) origin: AddressOrigin,
    phase: Phase,
    /// When the phase goes on.
    next: Option<Instant>,
    pub(crate) preferred_until: Option<Instant>,
    pub(crate) valid_until: Option<Instant>,
}

/// What an address wants done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AddressAction {
    /// Ask whether somebody has it: an ARP probe, or a neighbour solicitation from nobody.
    Probe(IpAddr),
    /// Tell everybody that it is ours (ARP announcement).
    Announce(Ipv4Addr),
    /// It may be used from now on.
    Ready(Cidr, AddressOrigin),
    /// Its lifetime is over; it is gone.
    Expired(Cidr, AddressOrigin),
}

/// The list of our addresses.
pub(crate) struct Addresses {
    list: Vec<OwnAddress>,
    dad_transmits: u8,
    /// Changes with the set of addresses.
    version: u32,
}

impl Addresses {
    /// An empty list; IPv6 addresses will be probed so often.
    pub(crate) fn new(dad_transmits: u8) -> Self {
        Addresses { list: Vec::new(), dad_transmits, version: 0 }
    }

    /// Adds an address, or gives a known one new lifetimes. False when the list is full.
    pub(crate) fn add(
        &mut self,
        cidr: Cidr,
        origin: AddressOrigin,
        preferred_until: Option<Instant>,
        valid_until: Option<Instant>,
        now: Instant,
    ) -> bool {
        if let Some(known) = self.list.iter_mut().find(|own| own.cidr.address() == cidr.address()) {
            known.preferred_until = preferred_until;
            known.valid_until = valid_until;
            return true;
        }
        if self.list.len() >= MAX_ADDRESSES {
            return false;
        }
        let probed = match cidr.address() {
            IpAddr::V4(_) => origin == AddressOrigin::Dhcp,
            IpAddr::V6(_) => self.dad_transmits > 0,
        };
        let phase = if probed { Phase::Probing { sent: 0 } } else { Phase::Announcing { sent: 0 } };
        self.version = self.version.wrapping_add(1);
        self.list.push(OwnAddress { cidr, origin, phase, next: Some(now), preferred_until, valid_until });
        true
    }

    /// Removes an address.
    pub(crate) fn remove(&mut self, ip: IpAddr) -> Option<OwnAddress> {
        let at = self.list.iter().position(|own| own.cidr.address() == ip)?;
        self.version = self.version.wrapping_add(1);
        Some(self.list.swap_remove(at))
    }

    /// Takes over the addresses of another list, whose owner does what is due about them.
    pub(crate) fn replace(&mut self, list: Vec<OwnAddress>) {
        self.version = self.version.wrapping_add(1);
        self.list = list;
        for own in &mut self.list {
            own.next = None;
            own.valid_until = None;
        }
    }

    /// A number that changes with the set of addresses and with what may be used of it.
    pub(crate) fn version(&self) -> u32 {
        self.version
    }

    /// Addresses that may be used.
    pub(crate) fn usable(&self) -> impl Iterator<Item = IpAddr> {
        self.list.iter().filter(|own| own.is_usable()).map(|own| own.cidr.address())
    }

    /// Probes what is being probed, and announces the others, from the beginning.
    pub(crate) fn start_over(&mut self, now: Instant) {
        for own in &mut self.list {
            own.phase = match own.phase {
                Phase::Probing { .. } => Phase::Probing { sent: 0 },
                // IPv6 announces nothing here.
                _ if own.cidr.address().is_ipv6() => continue,
                _ => Phase::Announcing { sent: 0 },
            };
            own.next = Some(now);
        }
    }

    /// All addresses.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &OwnAddress> {
        self.list.iter()
    }

    /// Whether packets to `ip` are for us.
    pub(crate) fn is_ours(&self, ip: IpAddr) -> bool {
        self.list.iter().any(|own| own.cidr.address() == ip && own.is_usable())
    }

    /// Whether `ip` is being probed: we may not answer for it yet.
    pub(crate) fn is_probing(&self, ip: IpAddr) -> bool {
        self.list.iter().any(|own| own.cidr.address() == ip && !own.is_usable())
    }

    /// Whether `ip` is a broadcast address of one of our networks.
    pub(crate) fn is_broadcast(&self, ip: Ipv4Addr) -> bool {
        ip.is_broadcast() || self.list.iter().any(|own| own.cidr.broadcast() == Some(ip))
    }

    /// Whether we are in the IPv6 group `group`.
    pub(crate) fn in_group(&self, group: Ipv6Addr) -> bool {
        group == ipv6::ALL_NODES
            || self.list.iter().any(|own| match own.cidr.address() {
                IpAddr::V6(ip) => ipv6::solicited_node(ip) == group,
                IpAddr::V4(_) => false,
            })
    }

    /// The address to send from towards `destination` (RFC 6724 section 5, rules 1, 2, 3 and 8).
    pub(crate) fn source_for(&self, destination: IpAddr, now: Instant) -> Option<IpAddr> {
        let usable = self
            .list
            .iter()
            .filter(|own| own.cidr.address().is_ipv4() == destination.is_ipv4() && own.is_usable());
        let best = usable.max_by_key(|own| {
            let same_scope = is_link_local(own.cidr.address()) == is_link_local(destination);
            let preferred = own.preferred_until.is_none_or(|until| until > now);
            (
                same_scope,
                preferred,
                own.cidr.contains(destination),
                common_prefix(own.cidr.address(), destination),
            )
        })?;
        Some(best.cidr.address())
    }

    /// Our link-local IPv6 address, if it may be used.
    pub(crate) fn link_local(&self) -> Option<Ipv6Addr> {
        self.list.iter().find_map(|own| match own.cidr.address() {
            IpAddr::V6(ip) if own.origin == AddressOrigin::LinkLocal && own.is_usable() => Some(ip),
            _ => None,
        })
    }

    /// The next thing that is due; `None` when nothing is.
    pub(crate) fn poll_action(&mut self, now: Instant) -> Option<AddressAction> {
        if let Some(at) = self.list.iter().position(|own| own.valid_until.is_some_and(|until| until <= now)) {
            self.version = self.version.wrapping_add(1);
            let own = self.list.swap_remove(at);
            return Some(AddressAction::Expired(own.cidr, own.origin));
        }
        let dad_transmits = self.dad_transmits;
        let own = self.list.iter_mut().find(|own| own.next.is_some_and(|next| next <= now))?;
        let was_usable = own.is_usable();
        let action = own.advance(dad_transmits, now);
        if own.is_usable() != was_usable {
            self.version = self.version.wrapping_add(1);
        }
        Some(action)
    }

    /// When something is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.list.iter().flat_map(|own| [own.next, own.valid_until]).flatten().min()
    }
}

impl OwnAddress {
    fn is_usable(&self) -> bool {
        !matches!(self.phase, Phase::Probing { .. })
    }

    fn advance(&mut self, dad_transmits: u8, now: Instant) -> AddressAction {
        let ip = self.cidr.address();
        let (probes, interval) = match ip {
            IpAddr::V4(_) => (ARP_PROBES, ARP_PROBE_INTERVAL),
            IpAddr::V6(_) => (dad_transmits, SOLICIT_INTERVAL),
        };
        match self.phase {
            Phase::Probing { sent } if sent < probes => {
                self.phase = Phase::Probing { sent: sent + 1 };
                self.next = Some(now + interval);
                AddressAction::Probe(ip)
            }
            Phase::Probing { .. } => {
                // IPv6 announces nothing.
                (self.phase, self.next) = match ip {
                    IpAddr::V4(_) => (Phase::Announcing { sent: 0 }, Some(now)),
                    IpAddr::V6(_) => (Phase::Ready, None),
                };
                AddressAction::Ready(self.cidr, self.origin)
            }
            Phase::Announcing { sent } => match ip {
                IpAddr::V4(ip) => {
                    let last = sent + 1 >= ANNOUNCEMENTS;
                    self.phase = if last { Phase::Ready } else { Phase::Announcing { sent: sent + 1 } };
                    self.next = (!last).then(|| now + ANNOUNCE_INTERVAL);
                    AddressAction::Announce(ip)
                }
                IpAddr::V6(_) => {
                    self.phase = Phase::Ready;
                    self.next = None;
                    AddressAction::Ready(self.cidr, self.origin)
                }
            },
            Phase::Ready => {
                self.next = None;
                AddressAction::Ready(self.cidr, self.origin)
            }
        }
    }
}

/// Whether an address is of link scope only.
pub(crate) fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local() || ip.octets()[..2] == [0xff, 0x02],
    }
}

fn common_prefix(a: IpAddr, b: IpAddr) -> u32 {
    match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    fn cidr(text: &str) -> Cidr {
        text.parse().unwrap()
    }

    /// Runs the list until nothing is due, and tells what happened when.
    fn run(addresses: &mut Addresses) -> Vec<(u64, AddressAction)> {
        let mut seen = Vec::new();
        while let Some(now) = addresses.poll_timeout() {
            while let Some(action) = addresses.poll_action(now) {
                seen.push((now.as_millis(), action));
            }
        }
        seen
    }

    #[test]
    fn a_static_ipv4_address_is_used_at_once_and_announced_twice() {
        let mut addresses = Addresses::new(1);
        addresses.add(cidr("10.0.0.1/8"), AddressOrigin::Static, None, None, at(0));
        assert!(addresses.is_ours("10.0.0.1".parse().unwrap()));
        let announce = AddressAction::Announce(Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(run(&mut addresses), [(0, announce), (2_000, announce)]);
    }

    #[test]
    fn probed_addresses_are_not_used_before_nobody_answered() {
        let mut addresses = Addresses::new(1);
        let ip: IpAddr = "fe80::1".parse().unwrap();
        addresses.add(cidr("fe80::1/64"), AddressOrigin::LinkLocal, None, None, at(0));
        assert_eq!((addresses.is_ours(ip), addresses.is_probing(ip)), (false, true));
        assert_eq!(addresses.link_local(), None);
        let ready = AddressAction::Ready(cidr("fe80::1/64"), AddressOrigin::LinkLocal);
        assert_eq!(run(&mut addresses), [(0, AddressAction::Probe(ip)), (1_000, ready)], "told once");
        assert!(addresses.is_ours(ip) && addresses.link_local().is_some());

        let mut addresses = Addresses::new(1);
        let ip: IpAddr = "10.0.0.9".parse().unwrap();
        addresses.add(cidr("10.0.0.9/8"), AddressOrigin::Dhcp, None, None, at(0));
        let seen: Vec<u64> = run(&mut addresses).iter().map(|(ms, _)| *ms).collect();
        assert_eq!(seen, [0, 500, 1_000, 1_000, 3_000], "two probes, ready, two announcements");
        assert!(addresses.is_ours(ip));
    }

    #[test]
    fn lifetimes_end() {
        let mut addresses = Addresses::new(0);
        addresses.add(cidr("2001:db8::1/64"), AddressOrigin::Slaac, Some(at(10)), Some(at(20)), at(0));
        addresses.add(cidr("fd00::1/64"), AddressOrigin::Static, None, None, at(0));
        let to: IpAddr = "2001:db8::9".parse().unwrap();
        assert_eq!(addresses.source_for(to, at(5)), Some("2001:db8::1".parse().unwrap()));
        assert_eq!(addresses.source_for(to, at(10)), Some("fd00::1".parse().unwrap()), "deprecated");
        let seen = run(&mut addresses);
        let expired = AddressAction::Expired(cidr("2001:db8::1/64"), AddressOrigin::Slaac);
        assert_eq!(seen.last(), Some(&(20, expired)));
        assert!(!addresses.is_ours("2001:db8::1".parse().unwrap()));
    }

    #[test]
    fn sources_are_chosen_by_scope_and_prefix() {
        let mut addresses = Addresses::new(0);
        for text in ["192.168.1.4/24", "10.0.0.1/8", "fe80::4/64", "fd00::4/64", "2001:db8::4/64"] {
            addresses.add(cidr(text), AddressOrigin::Static, None, None, at(0));
        }
        let check = |to: &str, expected: &str| {
            let source = addresses.source_for(to.parse().unwrap(), at(0));
            assert_eq!(source, Some(expected.parse().unwrap()), "{to}");
        };
        check("192.168.1.9", "192.168.1.4");
        check("10.9.9.9", "10.0.0.1");
        check("fe80::9", "fe80::4");
        check("ff02::1", "fe80::4");
        check("fd00::9", "fd00::4");
        check("2001:db8:ffff::1", "2001:db8::4");
        assert!(addresses.is_broadcast(Ipv4Addr::new(192, 168, 1, 255)));
        assert!(addresses.in_group("ff02::1:ff00:4".parse().unwrap()));
        assert!(!addresses.in_group("ff02::1:ff00:5".parse().unwrap()));
    }
}
