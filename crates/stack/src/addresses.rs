//! Our addresses: which there are, whether they may be used, and for how long.
//!
//! ```text
//!          probes unanswered               announced twice
//!  PROBING ────────────────▶ ANNOUNCING ───────────────────▶ READY ── lifetime over ──▶ (gone)
//!     │ somebody has it                                         │ preferred lifetime over: not chosen as source
//!     ▼                                                         ▼
//!   (gone)                                                   deprecated
//! ```
//!
//! IPv6 addresses are probed by neighbour solicitations (RFC 4862 section 5.4), those of IPv4 by ARP probes (RFC 5227
//! section 2.1.1). Announced are both: others may know another Ethernet address of an earlier owner, or of an earlier
//! start (RFC 5227 section 2.3, RFC 4861 section 7.2.6).
//!
//! Departures: probes start at once instead of after a random delay, and ARP probes are two, half a second apart,
//! instead of three within 3 to 7 s: a server that takes 7 s to come up is not worth the rarer collision. A static IPv4
//! address is used while it is being probed, as RFC 4429 allows for IPv6, and its probes are closer together. It is not
//! announced before they are over: an announcement would take over the traffic of whoever has it. When the link comes back,
//! maybe to another network, that holds for every address that was in use. An IPv6 address that is not to be probed is not
//! advertised either until the link comes back: it is for networks that have nobody else.

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
/// The same for an address that is used meanwhile: until the announcement, those who know our address of an earlier start do not reach us.
const STATIC_PROBE_INTERVAL: Duration = Duration::from_millis(200);
/// RFC 5227 section 1.1: ANNOUNCE_NUM and ANNOUNCE_INTERVAL. For IPv6 within the bounds of RFC 4861 section 7.2.6.
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
    /// It is used while it is being probed.
    is_optimistic: bool,
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
    /// Tell everybody that it is ours: an ARP announcement, or a neighbour advertisement that nobody asked for.
    Announce(IpAddr),
    /// It may be used from now on.
    Ready(Cidr, AddressOrigin),
    /// Its lifetime is over; it is gone.
    Expired(Cidr, AddressOrigin),
}

/// The list of our addresses.
pub(crate) struct Addresses {
    list: Vec<OwnAddress>,
    dad_transmits: u8,
    /// Changes with the set of addresses, with what may be used of it, and with what is unconfirmed.
    version: u32,
}

impl Addresses {
    /// An empty list; IPv6 addresses will be probed so often, static IPv4 addresses if that is not 0, those of DHCP always.
    pub(crate) fn new(dad_transmits: u8) -> Self {
        Addresses { list: Vec::new(), dad_transmits, version: 0 }
    }

    /// Adds an address, or gives a known one new lifetimes, and one that DHCP gives again the network that it names now. False
    /// when the list is full.
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
            if known.origin == AddressOrigin::Dhcp && origin == known.origin && known.cidr != cidr {
                known.cidr = cidr;
                self.version = self.version.wrapping_add(1);
            }
            return true;
        }
        if self.list.len() >= MAX_ADDRESSES {
            return false;
        }
        let phase = match cidr.address() {
            _ if is_probed(origin, self.dad_transmits) => Phase::Probing { sent: 0 },
            IpAddr::V4(_) => Phase::Announcing { sent: 0 },
            IpAddr::V6(_) => Phase::Ready,
        };
        self.version = self.version.wrapping_add(1);
        let is_optimistic = origin == AddressOrigin::Static && cidr.address().is_ipv4();
        let next = Some(now);
        self.list.push(OwnAddress { cidr, origin, phase, is_optimistic, next, preferred_until, valid_until });
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

    /// A number that changes with the set of addresses, with what may be used of it, and with what is unconfirmed.
    pub(crate) fn version(&self) -> u32 {
        self.version
    }

    /// Addresses that may be used.
    pub(crate) fn usable(&self) -> impl Iterator<Item = IpAddr> {
        self.list.iter().filter(|own| own.is_usable()).map(|own| own.cidr.address())
    }

    /// Probes from the beginning what is probed at all, and announces the others. What was in use stays so.
    pub(crate) fn start_over(&mut self, now: Instant) {
        self.version = self.version.wrapping_add(1);
        for own in &mut self.list {
            own.is_optimistic = own.is_usable();
            own.phase = match own.phase {
                Phase::Probing { .. } => Phase::Probing { sent: 0 },
                // Nobody has been told yet that it can be used.
                Phase::Ready if own.next.is_some() => continue,
                _ if is_probed(own.origin, self.dad_transmits) => Phase::Probing { sent: 0 },
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

    /// Whether `ip` is to be given up if somebody has it: it is being probed, whether it is used meanwhile or not.
    pub(crate) fn is_unconfirmed(&self, ip: IpAddr) -> bool {
        self.list.iter().any(|own| own.cidr.address() == ip && own.is_unconfirmed())
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
        let was_unconfirmed = own.is_unconfirmed();
        let action = own.advance(dad_transmits, now);
        if own.is_unconfirmed() != was_unconfirmed {
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
    fn is_unconfirmed(&self) -> bool {
        matches!(self.phase, Phase::Probing { .. })
    }

    fn is_usable(&self) -> bool {
        !self.is_unconfirmed() || self.is_optimistic
    }

    fn advance(&mut self, dad_transmits: u8, now: Instant) -> AddressAction {
        let ip = self.cidr.address();
        let (probes, interval) = match ip {
            IpAddr::V4(_) if self.is_optimistic => (ARP_PROBES, STATIC_PROBE_INTERVAL),
            IpAddr::V4(_) => (ARP_PROBES, ARP_PROBE_INTERVAL),
            IpAddr::V6(_) => (dad_transmits, SOLICIT_INTERVAL),
        };
        let sent = match self.phase {
            Phase::Probing { sent } if sent < probes => {
                self.phase = Phase::Probing { sent: sent + 1 };
                self.next = Some(now + interval);
                return AddressAction::Probe(ip);
            }
            Phase::Probing { .. } if !self.is_usable() => {
                self.phase = Phase::Announcing { sent: 0 };
                self.next = Some(now);
                return AddressAction::Ready(self.cidr, self.origin);
            }
            Phase::Probing { .. } => 0,
            Phase::Announcing { sent } => sent,
            Phase::Ready => {
                self.next = None;
                return AddressAction::Ready(self.cidr, self.origin);
            }
        };
        let is_last = sent + 1 >= ANNOUNCEMENTS;
        self.phase = if is_last { Phase::Ready } else { Phase::Announcing { sent: sent + 1 } };
        self.next = (!is_last).then(|| now + ANNOUNCE_INTERVAL);
        AddressAction::Announce(ip)
    }
}

/// Whether addresses of this origin are probed where those of IPv6 are probed so often.
fn is_probed(origin: AddressOrigin, dad_transmits: u8) -> bool {
    origin == AddressOrigin::Dhcp || dad_transmits > 0
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
    fn a_static_ipv4_address_is_used_at_once_probed_twice_and_announced_twice() {
        let ip: IpAddr = "10.0.0.1".parse().unwrap();
        let (probe, announce) = (AddressAction::Probe(ip), AddressAction::Announce(ip));
        let mut addresses = Addresses::new(1);
        addresses.add(cidr("10.0.0.1/8"), AddressOrigin::Static, None, None, at(0));
        assert!(addresses.is_ours(ip) && addresses.is_unconfirmed(ip) && !addresses.is_probing(ip));
        let expected = [(0, probe), (200, probe), (400, announce), (2_400, announce)];
        assert_eq!(run(&mut addresses), expected);
        assert!(addresses.is_ours(ip) && !addresses.is_unconfirmed(ip));
        // The link was away: somebody may have taken the address meanwhile.
        addresses.start_over(at(10_000));
        assert!(addresses.is_ours(ip) && addresses.is_unconfirmed(ip));
        assert_eq!(run(&mut addresses), expected.map(|(ms, action)| (10_000 + ms, action)));

        let mut addresses = Addresses::new(0);
        addresses.add(cidr("10.0.0.1/8"), AddressOrigin::Static, None, None, at(0));
        assert_eq!(run(&mut addresses), [(0, announce), (2_000, announce)], "without probes");
        addresses.start_over(at(10_000));
        assert_eq!(run(&mut addresses), [(10_000, announce), (12_000, announce)]);
    }

    #[test]
    fn probed_addresses_are_not_used_before_nobody_answered() {
        let mut addresses = Addresses::new(1);
        let ip: IpAddr = "fe80::1".parse().unwrap();
        addresses.add(cidr("fe80::1/64"), AddressOrigin::LinkLocal, None, None, at(0));
        assert_eq!((addresses.is_ours(ip), addresses.is_probing(ip)), (false, true));
        assert_eq!(addresses.link_local(), None);
        let ready = AddressAction::Ready(cidr("fe80::1/64"), AddressOrigin::LinkLocal);
        let announce = AddressAction::Announce(ip);
        let expected = [(0, AddressAction::Probe(ip)), (1_000, ready), (1_000, announce), (3_000, announce)];
        assert_eq!(run(&mut addresses), expected, "told once, announced twice");
        assert!(addresses.is_ours(ip) && addresses.link_local().is_some());
        // When the link was away, it is used meanwhile.
        addresses.start_over(at(10_000));
        assert!(addresses.is_ours(ip) && addresses.is_unconfirmed(ip) && !addresses.is_probing(ip));
        let expected = [(10_000, AddressAction::Probe(ip)), (11_000, announce), (13_000, announce)];
        assert_eq!(run(&mut addresses), expected);
        // But not if it never was.
        let mut addresses = Addresses::new(1);
        addresses.add(cidr("fe80::1/64"), AddressOrigin::LinkLocal, None, None, at(0));
        assert_eq!(addresses.poll_action(at(0)), Some(AddressAction::Probe(ip)));
        addresses.start_over(at(500));
        assert!(addresses.is_probing(ip));
        assert_eq!(run(&mut addresses)[1], (1_500, ready));

        let mut addresses = Addresses::new(0);
        addresses.add(cidr("fe80::1/64"), AddressOrigin::LinkLocal, None, None, at(0));
        addresses.start_over(at(0));
        assert_eq!(run(&mut addresses), [(0, ready)], "without probes");
        addresses.start_over(at(10_000));
        assert_eq!(run(&mut addresses), [(10_000, announce), (12_000, announce)]);

        let mut addresses = Addresses::new(1);
        let ip: IpAddr = "10.0.0.9".parse().unwrap();
        addresses.add(cidr("10.0.0.9/8"), AddressOrigin::Dhcp, None, None, at(0));
        let seen: Vec<u64> = run(&mut addresses).iter().map(|(ms, _)| *ms).collect();
        assert_eq!(seen, [0, 500, 1_000, 1_000, 3_000], "two probes, ready, two announcements");
        assert!(addresses.is_ours(ip));
        addresses.start_over(at(10_000));
        assert!(addresses.is_ours(ip) && addresses.is_unconfirmed(ip));
        let (probe, announce) = (AddressAction::Probe(ip), AddressAction::Announce(ip));
        let expected = [(10_000, probe), (10_200, probe), (10_400, announce), (12_400, announce)];
        assert_eq!(run(&mut addresses), expected);
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
        assert!(seen.contains(&(20, expired)), "{seen:?}");
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
