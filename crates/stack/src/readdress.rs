//! Addresses and gateways that a program changes while the stack runs, as `ifconfig` of a console does.

use crate::addresses::AddressOrigin;
use crate::config::Cidr;
use crate::config_check::is_gateway;
use crate::route::Origin;
use crate::stack::Stack;
use core::fmt;
use core::net::IpAddr;
use linerate_transport::CloseReason;
use linerate_wire::units::Instant;

/// Why an address or gateway was not added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressError {
    /// This stack shares its link, and the one at seat 0 has the addresses ([`StackConfig::seat`](crate::StackConfig::seat)).
    Member,
    /// No single host may have this address (RFC 1122 section 3.2.1.3).
    NoHost,
    /// [`StackConfig::ipv6`](crate::StackConfig::ipv6) is off, or the MTU has no room for it.
    NoIpv6,
    /// The gateway is not in the network of an address, or is one of ours.
    NotNear,
    /// There are as many as the stack keeps: 32 addresses, 32 routes.
    Full,
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AddressError::Member => "the stack at seat 0 has the addresses of this link",
            AddressError::NoHost => "no host's address: expected unicast, not a network's first or last",
            AddressError::NoIpv6 => "IPv6 is off, or the MTU below 1,280 bytes",
            AddressError::NotNear => "no other host in the network of an address of ours",
            AddressError::Full => "no room for one more",
        })
    }
}

impl core::error::Error for AddressError {}

impl Stack {
    /// Adds an address and the route to its network. It is used once nobody has objected to it, as those of the configuration
    /// ([`StackConfig::dad_transmits`](crate::StackConfig::dad_transmits)): [`Stack::addresses`] has it then.
    pub fn add_address(&mut self, now: Instant, cidr: Cidr) -> Result<(), AddressError> {
        self.set_now(now);
        self.may_have(cidr.address())?;
        if !cidr.is_of_one_host() {
            return Err(AddressError::NoHost);
        }
        if !self.net.add_address(cidr.address(), cidr.prefix_len(), AddressOrigin::Static) {
            return Err(AddressError::Full);
        }
        self.arm_autoconfiguration();
        Ok(())
    }

    /// Gives an address up, and resets the connections from it. Whether it was ours. One that DHCP or a router gave comes back when they give
    /// it again, the link-local one when the link comes back.
    pub fn remove_address(&mut self, now: Instant, ip: IpAddr) -> bool {
        self.set_now(now);
        if self.team.seat.is_member() || self.forget_address(ip).is_none() {
            return false;
        }
        self.abort_connections_of(ip);
        true
    }

    /// Ends the connections from an address that is not ours any more.
    pub(crate) fn abort_connections_of(&mut self, ip: IpAddr) {
        let now = self.net.now;
        for slot in 0..self.net.config.max_connections as u32 {
            if self.conns.table.at(slot).is_some_and(|conn| conn.flow.ends().0.ip() == ip)
                && let Some(conn) = self.conns.awake(slot)
            {
                conn.tcp.abort(now, CloseReason::Unreachable);
                self.conns.sending.push(slot);
                self.settle(slot);
            }
        }
    }

    /// Adds a default gateway; of several of a family the first one is used.
    pub fn add_gateway(&mut self, now: Instant, gateway: IpAddr) -> Result<(), AddressError> {
        self.set_now(now);
        self.may_have(gateway)?;
        if !is_gateway(gateway, self.net.addresses.iter().map(|own| own.cidr)) {
            return Err(AddressError::NotNear);
        }
        if self.net.add_gateway(gateway, Origin::Static) { Ok(()) } else { Err(AddressError::Full) }
    }

    /// Takes back a default gateway of the configuration, or one that was added.
    pub fn remove_gateway(&mut self, now: Instant, gateway: IpAddr) {
        self.set_now(now);
        self.net.remove_gateway(gateway, Origin::Static);
    }

    fn may_have(&self, ip: IpAddr) -> Result<(), AddressError> {
        match ip {
            _ if self.team.seat.is_member() => Err(AddressError::Member),
            IpAddr::V6(_) if !self.net.config.ipv6 => Err(AddressError::NoIpv6),
            _ => Ok(()),
        }
    }
}
