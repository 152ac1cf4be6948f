//! IPv6 addresses that follow from others (RFC 4291).

use crate::ethernet::MacAddr;
use core::net::Ipv6Addr;

/// ff02::1, all nodes of the link.
pub const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// ff02::2, all routers of the link.
pub const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);

/// The group that neighbour solicitations for `address` go to (RFC 4291 section 2.7.1).
pub const fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    Ipv6Addr::from_bits(0xff02_0000_0000_0000_0000_0001_ff00_0000 | address.to_bits() & 0xff_ffff)
}

/// The interface identifier that a MAC address gives (modified EUI-64, RFC 4291 appendix A).
pub const fn interface_identifier(mac: MacAddr) -> u64 {
    let [a, b, c, d, e, f] = mac.0;
    u64::from_be_bytes([a ^ 2, b, c, 0xff, 0xfe, d, e, f])
}

/// The first 64 bits of `prefix` with this interface identifier.
pub const fn with_interface(prefix: Ipv6Addr, identifier: u64) -> Ipv6Addr {
    Ipv6Addr::from_bits(prefix.to_bits() >> 64 << 64 | identifier as u128)
}

/// The link-local address that a MAC address gives.
pub const fn link_local(mac: MacAddr) -> Ipv6Addr {
    with_interface(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), interface_identifier(mac))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn addresses_follow_from_others() {
        let mac = MacAddr([0x02, 0x00, 0x5e, 0x10, 0x00, 0x01]);
        assert_eq!(link_local(mac).to_string(), "fe80::5eff:fe10:1");
        let address = "fd00:6c72::12:3456".parse().expect("an address");
        assert_eq!(solicited_node(address).to_string(), "ff02::1:ff12:3456");
        assert_eq!(with_interface(address, 4).to_string(), "fd00:6c72::4");
    }
}
