//! Where the status is served: a port of the loopback address unless another address is named.

use serde::de::{self, Deserializer, Visitor};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

/// The port that `linerate top` asks when none is named.
pub const DEFAULT_PORT: u16 = 9180;

/// Address and port, as `9180`, `192.168.1.1:9180` or `[::1]:9180`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StatusAddress(pub SocketAddr);

impl StatusAddress {
    /// Where a server on this host listens when nothing is said.
    pub const DEFAULT: StatusAddress =
        StatusAddress(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), DEFAULT_PORT));

    /// Whether only this host, or a network that is not routed on the Internet, reaches it: loopback, link-local and
    /// private addresses (RFC 1918, RFC 6598, RFC 4193).
    pub fn is_private(&self) -> bool {
        match self.0.ip().to_canonical() {
            IpAddr::V4(ip) => {
                let [first, second, ..] = ip.octets();
                let shared = first == 100 && second & 0xc0 == 64;
                ip.is_loopback() || ip.is_private() || ip.is_link_local() || shared
            }
            IpAddr::V6(ip) => ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local(),
        }
    }
}

impl FromStr for StatusAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let address = match text.parse::<u16>() {
            Ok(port) => Some(SocketAddr::new(StatusAddress::DEFAULT.0.ip(), port)),
            Err(_) => text.parse::<SocketAddr>().ok(),
        };
        let multicast = address.is_some_and(|address| address.ip().is_multicast());
        address.filter(|_| !multicast).map(StatusAddress).ok_or_else(|| {
            "expected a port, or an address and a port, as 9180, 192.168.1.1:9180 or [::1]:9180".to_owned()
        })
    }
}

impl fmt::Display for StatusAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> de::Deserialize<'de> for StatusAddress {
    /// A number is a port, as it is for the keys of the servers.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = StatusAddress;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a port, or an address and a port, as 9180 or \"192.168.1.1:9180\"")
            }

            fn visit_i64<E: de::Error>(self, port: i64) -> Result<StatusAddress, E> {
                self.visit_str(&port.to_string())
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<StatusAddress, E> {
                text.parse().map_err(|error| E::custom(format_args!("invalid value {text:?}: {error}")))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(&str, bool)>) {
        let found = text.parse::<StatusAddress>().ok();
        let found = found.map(|address| (address.to_string(), address.is_private()));
        assert_eq!(found.as_ref().map(|(text, private)| (text.as_str(), *private)), expected, "{text}");
    }

    #[test]
    fn a_port_alone_is_this_hosts() {
        check("9180", Some(("127.0.0.1:9180", true)));
        check("0", Some(("127.0.0.1:0", true)));
        check("192.168.1.1:80", Some(("192.168.1.1:80", true)));
        check("[::1]:9180", Some(("[::1]:9180", true)));
        check("[fd00::1]:9180", Some(("[fd00::1]:9180", true)));
        check("100.64.0.1:1", Some(("100.64.0.1:1", true)));
        check("0.0.0.0:9180", Some(("0.0.0.0:9180", false)));
        check("[::]:9180", Some(("[::]:9180", false)));
        check("[::ffff:8.8.8.8]:1", Some(("[::ffff:8.8.8.8]:1", false)));
        check("8.8.8.8:9180", Some(("8.8.8.8:9180", false)));
        for bad in ["", "x", "65536", "-1", "127.0.0.1", "localhost:1", "224.0.0.1:1", "::1"] {
            check(bad, None);
        }
    }

    #[test]
    fn a_file_may_have_a_number() {
        #[derive(serde::Deserialize)]
        struct File {
            status: StatusAddress,
        }
        for (text, expected) in [
            ("status = 9180", Some("127.0.0.1:9180")),
            ("status = \"[::1]:5\"", Some("[::1]:5")),
            ("status = 70000", None),
            ("status = \"here\"", None),
            ("status = true", None),
        ] {
            let found = toml::from_str::<File>(text).ok().map(|file| file.status.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }
}
