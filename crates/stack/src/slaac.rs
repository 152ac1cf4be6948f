//! Addresses and routes from router advertisements (RFC 4861 section 6.3, RFC 4862 section 5.5).
//!
//! Bounded: four routers, eight prefixes; more are ignored. Taken over: default routers, on-link prefixes, autonomous
//! prefixes of 64 bits, and an MTU that is smaller than the link's. DNS servers, route options and DHCPv6 are not.

use crate::addresses::AddressOrigin;
use crate::config::Cidr;
use crate::conns::Conn;
use crate::route::Origin;
use crate::stack::Stack;
use crate::tcp_input::tcp_mss;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr};
use core::time::Duration;
use linerate_wire::ipv6;
use linerate_wire::ndp::{
    INFINITE_LIFETIME, NdpOption, Packet as NdpPacket, PrefixInformation, RouterAdvertisement,
};
use linerate_wire::units::Instant;

const MAX_ROUTERS: usize = 4;
const MAX_PREFIXES: usize = 8;
/// RFC 4861 section 10: MAX_RTR_SOLICITATIONS and RTR_SOLICITATION_INTERVAL.
const SOLICITATIONS: u8 = 3;
const SOLICITATION_INTERVAL: Duration = Duration::from_secs(4);
/// Between the questions of a host without a router after those: at first, and, doubled each time, at most (RFC 7559 section 2).
const RESUMED: Duration = Duration::from_secs(60);
const RESUMED_MOST: Duration = Duration::from_secs(3_600);
/// RFC 4862 section 5.5.3(e): unauthenticated advertisements cannot shorten a lifetime below this.
const TWO_HOURS: Duration = Duration::from_secs(7_200);

/// What routers told.
pub(crate) struct Slaac {
    is_enabled: bool,
    routers: Vec<(Ipv6Addr, Instant)>,
    prefixes: Vec<(Cidr, Option<Instant>)>,
    solicited: u8,
    next_solicitation: Option<Instant>,
    /// How long until the next question without a router.
    patience: Duration,
}

impl Slaac {
    pub(crate) fn new(is_enabled: bool) -> Self {
        Slaac {
            is_enabled,
            routers: Vec::new(),
            prefixes: Vec::new(),
            solicited: 0,
            next_solicitation: None,
            patience: RESUMED,
        }
    }

    /// Begins to ask for routers at `now`, if that is wanted.
    pub(crate) fn start(&mut self, now: Instant) {
        self.solicited = 0;
        self.patience = RESUMED;
        self.next_solicitation = self.is_enabled.then_some(now);
    }

    /// When something is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let routers = self.routers.iter().map(|(_, until)| *until);
        let prefixes = self.prefixes.iter().filter_map(|(_, until)| *until);
        routers.chain(prefixes).chain(self.next_solicitation).min()
    }

    /// Whether a solicitation is due; counts it as sent.
    fn take_solicitation(&mut self, now: Instant) -> bool {
        if self.next_solicitation.is_none_or(|next| next > now) {
            return false;
        }
        self.solicited += 1;
        self.next_solicitation = (self.solicited < SOLICITATIONS).then(|| now + SOLICITATION_INTERVAL);
        true
    }
}

impl Stack {
    /// Takes a valid router advertisement.
    pub(crate) fn receive_router_advertisement(
        &mut self,
        router: Ipv6Addr,
        advertisement: &RouterAdvertisement,
        packet: &NdpPacket<'_>,
    ) {
        if !self.slaac.is_enabled {
            return;
        }
        self.slaac.next_solicitation = None;
        self.set_router(router, advertisement.lifetime_s);
        for option in packet.options() {
            match option {
                NdpOption::Prefix(prefix) => self.take_prefix(&prefix),
                NdpOption::Mtu(mtu) => {
                    let mtu = usize::try_from(mtu).unwrap_or(usize::MAX);
                    if (ipv6::MIN_MTU..=self.net.config.mtu).contains(&mtu) {
                        self.set_link_mtu6(mtu);
                    }
                }
                _ => {}
            }
        }
        // The last router may have taken its leave.
        self.resume_solicitations();
        self.arm_autoconfiguration();
    }

    /// The link carries IPv6 packets of up to `mtu` bytes. If that is less than before, connections send shorter segments from now
    /// on: nobody tells of longer ones that are lost on the link.
    pub(crate) fn set_link_mtu6(&mut self, mtu: usize) {
        let any = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        let before = self.net.paths.link_mtu(any);
        self.net.paths.set_link_mtu6(mtu);
        self.net.datagram_paths.set_link_mtu6(mtu);
        if mtu < before {
            for slot in 0..self.net.config.max_connections as u32 {
                self.shorten_segments6(slot, tcp_mss(any, mtu));
            }
        }
    }

    /// A connection over IPv6 sends segments of up to `mss` bytes from now on. One that sleeps goes on sleeping: there may be very
    /// many.
    fn shorten_segments6(&mut self, slot: u32, mss: u16) {
        let is_longer = |conn: &Conn| {
            conn.in_demux && !conn.flow.ends().1.is_ipv4() && conn.tcp.path_mss().is_some_and(|old| old > mss)
        };
        let Some(conn) = self.conns.table.at(slot).filter(|conn| is_longer(conn)) else { return };
        let (was_asleep, now) = (conn.tcp.is_asleep(), self.net.now);
        if let Some(conn) = self.conns.awake(slot) {
            conn.tcp.handle_path_mss(now, mss, None);
        }
        if !was_asleep {
            self.conns.sending.push(slot);
        }
        self.settle(slot);
        if was_asleep {
            self.conns.look(slot, now, true);
        }
    }

    fn set_router(&mut self, router: Ipv6Addr, lifetime_s: u16) {
        let until = self.net.now + Duration::from_secs(u64::from(lifetime_s));
        let routers = &mut self.slaac.routers;
        let known = routers.iter().position(|(ip, _)| *ip == router);
        match (known, lifetime_s) {
            (Some(at), 0) => {
                routers.remove(at);
                self.net.remove_gateway(IpAddr::V6(router), Origin::RouterAdvertisement);
            }
            (Some(at), _) => routers[at].1 = until,
            (None, 0) => {}
            (None, _) if routers.len() < MAX_ROUTERS => {
                self.slaac.patience = RESUMED;
                routers.push((router, until));
                self.net.add_gateway(IpAddr::V6(router), Origin::RouterAdvertisement);
            }
            (None, _) => {}
        }
    }

    fn take_prefix(&mut self, option: &PrefixInformation) {
        let Some(prefix) = Cidr::new(IpAddr::V6(option.prefix), option.prefix_len) else { return };
        let prefix = prefix.network();
        if option.prefix.is_unicast_link_local() || option.prefix.is_multicast() {
            return;
        }
        if option.on_link {
            self.set_on_link(prefix, option.valid_s);
        }
        if option.autonomous && option.prefix_len == 64 && option.preferred_s <= option.valid_s {
            self.set_autonomous(option);
        }
    }

    fn set_on_link(&mut self, prefix: Cidr, valid_s: u32) {
        let until = lifetime(self.net.now, valid_s);
        let prefixes = &mut self.slaac.prefixes;
        let known = prefixes.iter().position(|(known, _)| *known == prefix);
        match (known, valid_s) {
            (Some(at), 0) => {
                prefixes.remove(at);
                self.net.routes.remove(prefix, None, Origin::RouterAdvertisement);
            }
            (Some(at), _) => prefixes[at].1 = until,
            (None, 0) => {}
            (None, _) if prefixes.len() < MAX_PREFIXES => {
                prefixes.push((prefix, until));
                self.net.routes.add(prefix, None, Origin::RouterAdvertisement);
            }
            (None, _) => {}
        }
    }

    fn set_autonomous(&mut self, option: &PrefixInformation) {
        let now = self.net.now;
        let identifier = ipv6::interface_identifier(self.net.config.mac);
        let ip = IpAddr::V6(ipv6::with_interface(option.prefix, identifier));
        let known = self.net.addresses.iter().find(|own| own.cidr.address() == ip).copied();
        let mut valid_until = lifetime(now, option.valid_s);
        if let Some(known) = known {
            if known.origin != AddressOrigin::Slaac {
                return;
            }
            // RFC 4862 section 5.5.3(e).
            let remaining = known.valid_until.map(|until| until - now);
            let told = valid_until.map(|until| until - now);
            let is_shorter = match (told, remaining) {
                (Some(told), Some(remaining)) => told < remaining,
                (Some(_), None) => true,
                (None, _) => false,
            };
            if is_shorter && told.is_some_and(|told| told <= TWO_HOURS) {
                valid_until = match remaining {
                    Some(remaining) if remaining <= TWO_HOURS => known.valid_until,
                    _ => Some(now + TWO_HOURS),
                };
            }
        } else if option.valid_s == 0 || self.slaac_addresses() >= MAX_PREFIXES {
            return;
        }
        // The prefix need not be on the link; whether it is, the L flag tells (RFC 5942).
        let Some(cidr) = Cidr::new(ip, 128) else { return };
        let preferred_until = lifetime(now, option.preferred_s);
        self.net.addresses.add(cidr, AddressOrigin::Slaac, preferred_until, valid_until, now);
    }

    fn slaac_addresses(&self) -> usize {
        self.net.addresses.iter().filter(|own| own.origin == AddressOrigin::Slaac).count()
    }

    /// Sends solicitations that are due, and forgets routers and prefixes whose lifetimes are over.
    pub(crate) fn run_slaac(&mut self) {
        let now = self.net.now;
        if self.slaac.take_solicitation(now) {
            self.solicit_routers();
        }
        while let Some(at) = self.slaac.routers.iter().position(|(_, until)| *until <= now) {
            let (router, _) = self.slaac.routers.remove(at);
            self.net.remove_gateway(IpAddr::V6(router), Origin::RouterAdvertisement);
        }
        let is_over = |until: &Option<Instant>| until.is_some_and(|until| until <= now);
        while let Some(at) = self.slaac.prefixes.iter().position(|(_, until)| is_over(until)) {
            let (prefix, _) = self.slaac.prefixes.remove(at);
            self.net.routes.remove(prefix, None, Origin::RouterAdvertisement);
        }
        self.resume_solicitations();
    }

    /// Without a router it is asked again, once, some time later; the advertisement of one ends it.
    fn resume_solicitations(&mut self) {
        let slaac = &mut self.slaac;
        if slaac.is_enabled && slaac.routers.is_empty() && slaac.next_solicitation.is_none() {
            slaac.solicited = SOLICITATIONS - 1;
            slaac.next_solicitation = Some(self.net.now + slaac.patience);
            slaac.patience = (slaac.patience * 2).min(RESUMED_MOST);
        }
    }
}

/// When a lifetime ends; `None` for never.
fn lifetime(now: Instant, seconds: u32) -> Option<Instant> {
    (seconds != INFINITE_LIFETIME).then(|| now + Duration::from_secs(u64::from(seconds)))
}
