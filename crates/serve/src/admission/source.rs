//! Whom a connection is charged to: an IPv4 address, or the /64 network that one IPv6 site has.

use core::fmt;
use core::net::{IpAddr, Ipv6Addr};

/// Who holds connections. Somebody with an IPv6 network has 2^64 addresses, so the network counts as one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Source(IpAddr);

impl Source {
    /// The source that an address belongs to; IPv4 clients of a socket for both families count by their IPv4 address.
    pub fn of(ip: IpAddr) -> Source {
        Source(match ip.to_canonical() {
            IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64)),
            ip => ip,
        })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            IpAddr::V4(ip) => ip.fmt(f),
            IpAddr::V6(ip) => write!(f, "{ip}/64"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn an_ipv6_network_is_one_source() {
        let check = |text: &str, source: &str| {
            assert_eq!(Source::of(text.parse().unwrap()).to_string(), source, "{text}");
        };
        check("10.0.0.9", "10.0.0.9");
        check("::ffff:10.0.0.9", "10.0.0.9");
        check("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64");
        check("2001:db8:1:2::", "2001:db8:1:2::/64");
        check("fe80::1", "fe80::/64");
    }
}
