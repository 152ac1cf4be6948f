//! What becomes due for our addresses: probes, announcements, the ends of lifetimes.

use crate::addresses::{AddressAction, AddressOrigin};
use crate::config::Cidr;
use crate::net::Net;
use crate::route::Origin;
use crate::stack::{Stack, route_origin};
use crate::timers::Timer;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use linerate_nic::MacAddr;
use linerate_wire::ipv6::solicited_node;

impl Stack {
    /// Sets the timer of address configuration.
    pub(crate) fn arm_autoconfiguration(&mut self) {
        let next = [self.net.addresses.poll_timeout(), self.slaac.poll_timeout()];
        self.net.timers.set(Timer::Address, next.into_iter().flatten().min());
        let dhcp = self.dhcp.as_ref().and_then(|dhcp| dhcp.poll_timeout());
        self.net.timers.set(Timer::Dhcp, dhcp);
    }

    /// Runs what is due.
    pub(crate) fn run_addresses(&mut self) {
        while let Some(action) = self.net.addresses.poll_action(self.net.now) {
            match action {
                AddressAction::Probe(IpAddr::V4(ip)) => self.probe_arp(ip),
                AddressAction::Probe(IpAddr::V6(ip)) => self.probe_ndp(ip),
                AddressAction::Announce(IpAddr::V4(ip)) => self.announce(ip),
                AddressAction::Announce(IpAddr::V6(ip)) => self.advertise_to_all(ip),
                AddressAction::Ready(cidr, origin) => self.address_is_ready(cidr, origin),
                AddressAction::Expired(cidr, origin) => self.address_is_gone(cidr, origin),
            }
        }
        self.run_slaac();
        self.arm_autoconfiguration();
    }

    fn address_is_ready(&mut self, cidr: Cidr, origin: AddressOrigin) {
        if let IpAddr::V6(ip) = cidr.address() {
            // Again, now that there may be a source address for it.
            self.join_group(solicited_node(ip));
        }
        log::info!("{} is usable ({})", cidr.address(), named(origin));
    }

    fn address_is_gone(&mut self, cidr: Cidr, origin: AddressOrigin) {
        if origin != AddressOrigin::Slaac {
            self.net.routes.remove(cidr, None, route_origin(origin));
        }
        log::info!("{} is gone ({})", cidr.address(), named(origin));
    }

    /// Gives an address up, whoever it is from; `None` if it was none of ours.
    pub(crate) fn forget_address(&mut self, ip: IpAddr) -> Option<AddressOrigin> {
        let own = self.net.addresses.remove(ip)?;
        self.address_is_gone(own.cidr, own.origin);
        self.arm_autoconfiguration();
        Some(own.origin)
    }

    /// Somebody else has an address that we wanted: the station `mac`, if it says so.
    pub(crate) fn lose_address(&mut self, ip: IpAddr, mac: Option<MacAddr>) {
        let Some(origin) = self.forget_address(ip) else { return };
        match mac {
            Some(mac) => log::warn!("{ip} is in use by another station ({mac})"),
            None => log::warn!("{ip} is in use by another station"),
        }
        if origin == AddressOrigin::Dhcp {
            self.decline_dhcp();
        }
    }
}

impl Net {
    /// Removes a default route.
    pub(crate) fn remove_gateway(&mut self, gateway: IpAddr, origin: Origin) {
        let any = match gateway {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        if let Some(any) = Cidr::new(any, 0) {
            self.routes.remove(any, Some(gateway), origin);
        }
    }
}

/// Where an address came from, as people name it.
fn named(origin: AddressOrigin) -> &'static str {
    match origin {
        AddressOrigin::Static => "from the settings",
        AddressOrigin::LinkLocal => "link-local",
        AddressOrigin::Dhcp => "by DHCP",
        AddressOrigin::Slaac => "by router advertisement",
    }
}
