//! What of its settings a stack cannot honour.

use crate::config::{Cidr, LEAST_MTU, LEAST_MTU6, StackConfig};
use crate::memory::LEAST_MEMORY;
use core::fmt;
use core::net::IpAddr;

/// A setting that a stack cannot honour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConfigError {
    /// [`StackConfig::mtu`] is below 576 bytes, which every host on IPv4 takes (RFC 1122 section 3.3.2), or above 65,535.
    Mtu(usize),
    /// [`StackConfig::memory`] is below 16 KiB.
    Memory(usize),
    /// An address that no single host may have (RFC 1122 section 3.2.1.3).
    Address(Cidr),
    /// A gateway that is neither another host in a network of [`StackConfig::addresses`] nor link-local.
    Gateway(IpAddr),
    /// An IPv6 address or gateway, or [`StackConfig::slaac`], without [`StackConfig::ipv6`].
    NoIpv6,
    /// The same with an MTU below 1,280 bytes, the least of IPv6 (RFC 8200 section 5).
    MtuOfIpv6(usize),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Mtu(mtu) => write!(f, "an MTU of {mtu} bytes: expected {LEAST_MTU} to 65,535"),
            ConfigError::Memory(bytes) => {
                write!(f, "{bytes} bytes of memory for sockets: expected {LEAST_MEMORY} or more")
            }
            ConfigError::Address(cidr) => {
                write!(f, "{cidr} can be no host's address: expected unicast, not a network's first or last")
            }
            ConfigError::Gateway(ip) => {
                write!(
                    f,
                    "the gateway {ip}: expected another host in the network of an address, or link-local"
                )
            }
            ConfigError::NoIpv6 => f.write_str("IPv6 is off, and an address, a gateway or SLAAC needs it"),
            ConfigError::MtuOfIpv6(mtu) => {
                write!(f, "an MTU of {mtu} bytes has no room for IPv6, which takes {LEAST_MTU6}")
            }
        }
    }
}

impl core::error::Error for ConfigError {}

impl StackConfig {
    /// The first of the settings that a stack cannot honour. [`Stack::new`](crate::Stack::new) goes on without it, which a log alone
    /// would tell: a program whose settings come from outside asks first. With [`Node::new`](crate::Node::new), set
    /// [`StackConfig::mtu`] to the device's before.
    pub fn check(&self) -> Result<(), ConfigError> {
        if !(LEAST_MTU..=65_535).contains(&self.mtu) {
            return Err(ConfigError::Mtu(self.mtu));
        }
        if self.memory < LEAST_MEMORY {
            return Err(ConfigError::Memory(self.memory));
        }
        if let Some(cidr) = self.addresses.iter().find(|cidr| !cidr.is_of_one_host()) {
            return Err(ConfigError::Address(*cidr));
        }
        if let Some(ip) = self.gateways.iter().find(|ip| !is_gateway(**ip, self.addresses.iter().copied())) {
            return Err(ConfigError::Gateway(*ip));
        }
        let needs_ipv6 = self.slaac
            || self.addresses.iter().any(|cidr| cidr.address().is_ipv6())
            || self.gateways.iter().any(IpAddr::is_ipv6);
        match (needs_ipv6, self.ipv6) {
            (true, false) => Err(ConfigError::NoIpv6),
            (true, true) if self.mtu < LEAST_MTU6 => Err(ConfigError::MtuOfIpv6(self.mtu)),
            _ => Ok(()),
        }
    }
}

/// Whether `ip` is of another host that who has these addresses reaches without a gateway.
pub(crate) fn is_gateway(ip: IpAddr, own: impl Iterator<Item = Cidr>) -> bool {
    let mut is_near = matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
    for cidr in own {
        if cidr.address() == ip {
            return false;
        }
        let with_prefix = Cidr::new(ip, cidr.prefix_len());
        is_near |= cidr.contains(ip) && with_prefix.is_some_and(|ip| ip.is_of_one_host());
    }
    is_near
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    fn config(addresses: &str, gateways: &str) -> StackConfig {
        StackConfig {
            addresses: addresses.split_whitespace().map(|text| text.parse().unwrap()).collect(),
            gateways: gateways.split_whitespace().map(|text| text.parse().unwrap()).collect(),
            ..StackConfig::default()
        }
    }

    #[test]
    fn what_a_stack_cannot_honour_is_named() {
        let dual = || config("10.0.0.4/24 fd00::4/64", "10.0.0.1 fe80::1");
        assert_eq!(dual().check(), Ok(()));
        assert_eq!(StackConfig::default().check(), Ok(()));
        let gateway = |ip: &str| Err(ConfigError::Gateway(ip.parse().unwrap()));
        let address = |cidr: &str| Err(ConfigError::Address(cidr.parse().unwrap()));
        let cases = [
            (StackConfig { mtu: 575, ..dual() }, Err(ConfigError::Mtu(575))),
            (StackConfig { memory: 16_383, ..dual() }, Err(ConfigError::Memory(16_383))),
            (config("10.0.0.255/24", ""), address("10.0.0.255/24")),
            (config("10.0.0.4/24", "10.0.1.1"), gateway("10.0.1.1")),
            (config("10.0.0.4/24", "10.0.0.4"), gateway("10.0.0.4")),
            (config("10.0.0.4/24", "10.0.0.255"), gateway("10.0.0.255")),
            (StackConfig { ipv6: false, ..dual() }, Err(ConfigError::NoIpv6)),
            (StackConfig { ipv6: false, slaac: true, ..StackConfig::default() }, Err(ConfigError::NoIpv6)),
            (StackConfig { mtu: 1_279, ..dual() }, Err(ConfigError::MtuOfIpv6(1_279))),
            (StackConfig { mtu: 1_279, ipv6: false, ..config("10.0.0.4/24", "") }, Ok(())),
        ];
        let mut texts = Vec::new();
        for (config, expected) in cases {
            assert_eq!(config.check(), expected, "{config:?}");
            texts.extend(config.check().err().map(|error| error.to_string()));
        }
        assert_eq!(
            texts[3],
            "the gateway 10.0.1.1: expected another host in the network of an address, or link-local"
        );
    }
}
