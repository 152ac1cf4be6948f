//! Host names: who looks them up is the caller's choice; addresses written as text need nobody.

use core::fmt;
use core::net::IpAddr;
use embedded_nal_async::{AddrType, Dns};

/// Takes a host that is written as an address (`192.168.1.4`, `fd00::4`, `[fd00::4]`), and asks `D` for all others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Literals<D = NoNames>(pub D);

/// Knows no name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NoNames;

/// The host is neither an address of the family that was asked for nor a name that anybody knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnknownName;

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the host is no address, and there is nobody to look up its name")
    }
}

impl core::error::Error for UnknownName {}

impl Dns for NoNames {
    type Error = UnknownName;

    async fn get_host_by_name(&self, _host: &str, _addr_type: AddrType) -> Result<IpAddr, UnknownName> {
        Err(UnknownName)
    }

    async fn get_host_by_address(&self, _addr: IpAddr, _result: &mut [u8]) -> Result<usize, UnknownName> {
        Err(UnknownName)
    }
}

impl<D: Dns> Dns for Literals<D> {
    type Error = D::Error;

    async fn get_host_by_name(&self, host: &str, addr_type: AddrType) -> Result<IpAddr, D::Error> {
        match literal(host, &addr_type) {
            Some(ip) => Ok(ip),
            None => self.0.get_host_by_name(host, addr_type).await,
        }
    }

    async fn get_host_by_address(&self, addr: IpAddr, result: &mut [u8]) -> Result<usize, D::Error> {
        self.0.get_host_by_address(addr, result).await
    }
}

/// The address that a host is written as; `None` if it is none, or one of the other family.
fn literal(host: &str, family: &AddrType) -> Option<IpAddr> {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let ip: IpAddr = match bare {
        Some(inside) => IpAddr::V6(inside.parse().ok()?),
        None => host.parse().ok()?,
    };
    let fits = match family {
        AddrType::IPv4 => ip.is_ipv4(),
        AddrType::IPv6 => ip.is_ipv6(),
        AddrType::Either => true,
    };
    fits.then_some(ip)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_names_are_not() {
        let check = |host: &str, family, expected: Option<&str>| {
            assert_eq!(literal(host, &family), expected.map(|ip| ip.parse().unwrap()), "{host}");
        };
        check("192.168.1.4", AddrType::Either, Some("192.168.1.4"));
        check("192.168.1.4", AddrType::IPv4, Some("192.168.1.4"));
        check("192.168.1.4", AddrType::IPv6, None);
        check("fd00::4", AddrType::IPv6, Some("fd00::4"));
        check("[fd00::4]", AddrType::Either, Some("fd00::4"));
        check("[192.168.1.4]", AddrType::Either, None);
        check("[fd00::4", AddrType::Either, None);
        check("example.org", AddrType::Either, None);
        check("", AddrType::Either, None);
    }
}
