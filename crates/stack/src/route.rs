//! Where packets go next: on-link prefixes and default gateways.

use crate::config::Cidr;
use alloc::vec::Vec;
use core::net::IpAddr;

/// Most routes. Configuration, DHCP and router advertisements share them.
pub(crate) const MAX_ROUTES: usize = 32;

/// Who made a route, so that it can be taken back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// The configuration.
    Static,
    /// The DHCP lease.
    Dhcp,
    /// A router advertisement.
    RouterAdvertisement,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    prefix: Cidr,
    /// The gateway; `None` when destinations are on the link.
    via: Option<IpAddr>,
    origin: Origin,
}

/// The routing table: a short list, longest prefix first.
#[derive(Debug)]
pub(crate) struct Routes {
    routes: Vec<Route>,
    /// Changes with them.
    version: u32,
}

impl Routes {
    pub(crate) fn new() -> Self {
        Routes { routes: Vec::new(), version: 0 }
    }

    /// Adds a route; the same prefix, gateway and origin are kept once. False when the table is full.
    pub(crate) fn add(&mut self, prefix: Cidr, via: Option<IpAddr>, origin: Origin) -> bool {
        let prefix = prefix.network();
        let known = self.routes.iter().any(|r| r.prefix == prefix && r.via == via && r.origin == origin);
        if known {
            return true;
        }
        if self.routes.len() >= MAX_ROUTES {
            return false;
        }
        // After its equals: the first router configured or heard is the one used.
        let at = self.routes.partition_point(|r| r.prefix.prefix_len() >= prefix.prefix_len());
        self.version = self.version.wrapping_add(1);
        self.routes.insert(at, Route { prefix, via, origin });
        true
    }

    /// Removes a route of this origin.
    pub(crate) fn remove(&mut self, prefix: Cidr, via: Option<IpAddr>, origin: Origin) {
        let prefix = prefix.network();
        self.version = self.version.wrapping_add(1);
        self.routes.retain(|r| !(r.prefix == prefix && r.via == via && r.origin == origin));
    }

    /// Removes all routes of an origin.
    pub(crate) fn remove_origin(&mut self, origin: Origin) {
        self.version = self.version.wrapping_add(1);
        self.routes.retain(|r| r.origin != origin);
    }

    /// A number that changes with the routes.
    pub(crate) fn version(&self) -> u32 {
        self.version
    }

    /// All routes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Route> {
        self.routes.iter()
    }

    /// The routes of an origin, the longest prefix first: prefixes and gateways.
    pub(crate) fn of(&self, origin: Origin) -> impl Iterator<Item = (Cidr, Option<IpAddr>)> {
        self.routes.iter().filter(move |r| r.origin == origin).map(|r| (r.prefix, r.via))
    }

    /// Takes over the routes of another table.
    pub(crate) fn replace(&mut self, routes: Vec<Route>) {
        self.version = self.version.wrapping_add(1);
        self.routes = routes;
    }

    /// The address on the link that a packet for `destination` is handed to; `None` without a route.
    pub(crate) fn next_hop(&self, destination: IpAddr) -> Option<IpAddr> {
        let route = self.routes.iter().find(|r| r.prefix.contains(destination))?;
        Some(route.via.unwrap_or(destination))
    }

    /// Whether an address is on the link.
    pub(crate) fn on_link(&self, address: IpAddr) -> bool {
        self.routes.iter().any(|r| r.via.is_none() && r.prefix.contains(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(routes: &[(&str, Option<&str>)]) -> Routes {
        let mut table = Routes::new();
        for (prefix, via) in routes {
            let via = via.map(|via| via.parse().unwrap());
            assert!(table.add(prefix.parse().unwrap(), via, Origin::Static));
        }
        table
    }

    #[test]
    fn the_longest_prefix_wins() {
        let table = table(&[
            ("0.0.0.0/0", Some("192.168.1.1")),
            ("192.168.1.4/24", None),
            ("192.168.1.128/25", Some("192.168.1.2")),
            ("fd00::/64", None),
            ("::/0", Some("fe80::1")),
        ]);
        let check = |destination: &str, expected: &str| {
            let next = table.next_hop(destination.parse().unwrap());
            assert_eq!(next, Some(expected.parse().unwrap()), "{destination}");
        };
        check("192.168.1.7", "192.168.1.7");
        check("192.168.1.200", "192.168.1.2");
        check("8.8.8.8", "192.168.1.1");
        check("fd00::9", "fd00::9");
        check("2001:db8::1", "fe80::1");
        assert!(table.on_link("192.168.1.7".parse().unwrap()));
        assert!(!table.on_link("8.8.8.8".parse().unwrap()));
    }

    #[test]
    fn without_a_route_there_is_no_next_hop() {
        let mut table = table(&[("10.0.0.1/8", None)]);
        assert_eq!(table.next_hop("11.0.0.1".parse().unwrap()), None);
        assert_eq!(table.next_hop("::1".parse().unwrap()), None);
        table.remove("10.0.0.0/8".parse().unwrap(), None, Origin::Dhcp);
        assert!(table.on_link("10.9.9.9".parse().unwrap()));
        table.remove("10.0.0.0/8".parse().unwrap(), None, Origin::Static);
        assert!(!table.on_link("10.9.9.9".parse().unwrap()));
    }

    #[test]
    fn the_table_is_bounded() {
        let mut table = Routes::new();
        let mut added = 0;
        for i in 0..100u32 {
            let prefix = Cidr::new(IpAddr::V4(core::net::Ipv4Addr::from(i << 8)), 24).unwrap();
            added += usize::from(table.add(prefix, None, Origin::RouterAdvertisement));
        }
        assert_eq!(added, MAX_ROUTES);
        table.remove_origin(Origin::RouterAdvertisement);
        assert_eq!(table.next_hop(IpAddr::V4(core::net::Ipv4Addr::new(0, 0, 1, 1))), None);
    }
}
