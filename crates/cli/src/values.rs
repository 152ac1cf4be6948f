//! Values that flags and configuration keys share: each parses from text and says what it wanted when it cannot.

use linerate_lab::from_text;
pub use linerate_lab::values::{CongestionName, Offload, ValueError};
use linerate_nic::MacAddr;
use linerate_stack::{Cidr, CidrError};
use linerate_transport::{Ecn, Pacing};
use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

from_text!(DeviceChoice, AddressChoice, ByteSize, Span, FtpUser, PortRange);
from_text!(EcnPolicy, PacingPolicy, Station);

/// The Ethernet address of one station.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Station(pub MacAddr);

impl FromStr for Station {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let mac: Option<MacAddr> = text.parse().ok();
        mac.filter(|mac| mac.is_unicast())
            .map(Station)
            .ok_or_else(|| ValueError::new("the Ethernet address of one station, such as 02:00:5e:10:00:01"))
    }
}

impl fmt::Display for Station {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What the servers run on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DeviceChoice {
    /// A TAP device of this name, made for the run.
    Tap(String),
    /// An address of our own on an existing interface.
    Packet(String),
    /// The same by AF_XDP.
    Xdp(String),
    /// An interface in programmable logic, by the name of its UIO device.
    Uio {
        /// The name.
        name: String,
        /// What `sys` and `dev` are in.
        root: PathBuf,
    },
    /// The interface in simulation, with a TAP device of this name as its cable.
    Rtl(String),
    /// The host's own TCP/IP stack.
    Kernel,
}

impl FromStr for DeviceChoice {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let (kind, name) = match text.split_once(':') {
            Some((kind, name)) => (kind, Some(name)),
            None => (text, None),
        };
        match (kind, name) {
            ("tap", None) => Ok(DeviceChoice::Tap("linerate0".to_owned())),
            ("tap", Some(name)) => Ok(DeviceChoice::Tap(interface(name)?)),
            ("rtl", None) => Ok(DeviceChoice::Rtl("linerate0".to_owned())),
            ("rtl", Some(name)) => Ok(DeviceChoice::Rtl(interface(name)?)),
            ("packet", Some(name)) => Ok(DeviceChoice::Packet(interface(name)?)),
            ("xdp", Some(name)) => Ok(DeviceChoice::Xdp(interface(name)?)),
            ("uio", Some(name)) => uio(name),
            ("kernel", None) => Ok(DeviceChoice::Kernel),
            _ => Err(ValueError::new(
                "tap, tap:NAME, packet:INTERFACE, xdp:INTERFACE, uio:NAME, rtl, rtl:NAME or kernel",
            )),
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceChoice::Tap(name) => write!(f, "tap:{name}"),
            DeviceChoice::Packet(name) => write!(f, "packet:{name}"),
            DeviceChoice::Xdp(name) => write!(f, "xdp:{name}"),
            DeviceChoice::Uio { name, root } if root == Path::new("/") => write!(f, "uio:{name}"),
            DeviceChoice::Uio { name, root } => write!(f, "uio:{name}@{}", root.display()),
            DeviceChoice::Rtl(name) => write!(f, "rtl:{name}"),
            DeviceChoice::Kernel => f.write_str("kernel"),
        }
    }
}

/// The name of a UIO device, and the folder that `sys` and `dev` are in if that is not the root.
fn uio(text: &str) -> Result<DeviceChoice, ValueError> {
    let (name, root) = text.split_once('@').unwrap_or((text, "/"));
    if name.is_empty() || name.contains('/') || !root.starts_with('/') {
        return Err(ValueError::new("uio:NAME, or uio:NAME@FOLDER where sys and dev are in another folder"));
    }
    Ok(DeviceChoice::Uio { name: name.to_owned(), root: PathBuf::from(root) })
}

/// An interface name as Linux takes it (IFNAMSIZ is 16 with the final NUL).
fn interface(name: &str) -> Result<String, ValueError> {
    let fits = (1..=15).contains(&name.len())
        && name.chars().all(|c| c.is_ascii_graphic() && c != '/' && c != ':' && c != '%')
        && name != "."
        && name != "..";
    if fits { Ok(name.to_owned()) } else { Err(ValueError::new("an interface name of 1 to 15 characters")) }
}

/// An address that a host on a network may have, with its prefix length.
fn host_cidr(text: &str) -> Result<Cidr, ValueError> {
    let cidr: Cidr = text.parse().map_err(|error: CidrError| {
        ValueError::new(format!("ADDRESS/PREFIX such as 192.168.1.4/24 or fd00::4/64; {error}"))
    })?;
    let ip = cidr.address();
    let most = if ip.is_ipv4() { 30 } else { 126 };
    if !(1..=most).contains(&cidr.prefix_len()) {
        return Err(ValueError::new(format!("a prefix length of 1 to {most}")));
    }
    if !cidr.is_of_one_host() {
        return Err(ValueError::new("a unicast address of a host"));
    }
    Ok(cidr)
}

/// Where the stack's addresses come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressChoice {
    /// This one.
    Static(Cidr),
    /// DHCPv4 (RFC 2131).
    Dhcp,
    /// IPv6 stateless autoconfiguration (RFC 4862).
    Slaac,
}

impl FromStr for AddressChoice {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        match text {
            "dhcp" => Ok(AddressChoice::Dhcp),
            "slaac" => Ok(AddressChoice::Slaac),
            // The kernel's sockets have no prefix to speak of: a bare address is enough there.
            _ if !text.contains('/') => {
                let cidr = text.parse::<IpAddr>().ok();
                let cidr = cidr.and_then(|ip| Cidr::new(ip, if ip.is_ipv4() { 24 } else { 64 }));
                let wanted = || ValueError::new("ADDRESS/PREFIX such as 192.168.1.4/24, dhcp or slaac");
                cidr.map(AddressChoice::Static).ok_or_else(wanted)
            }
            _ => host_cidr(text).map(AddressChoice::Static),
        }
    }
}

/// A number of bytes: `64MiB`, `512KiB`, `1GiB`, `4096`; `K`, `M`, `G`, `T` alone are powers of 1,024 too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub struct ByteSize(pub u64);

impl FromStr for ByteSize {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let wanted = || ValueError::new("a size such as 64MiB, 512KiB, 1GiB or 4096");
        let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (digits, unit) = text.split_at(split);
        let shift = match unit.to_ascii_lowercase().as_str() {
            "" | "b" => 0,
            "k" | "kib" => 10,
            "m" | "mib" => 20,
            "g" | "gib" => 30,
            "t" | "tib" => 40,
            _ => return Err(wanted()),
        };
        let number: u64 = digits.parse().map_err(|_| wanted())?;
        number.checked_mul(1 << shift).map(ByteSize).ok_or_else(wanted)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
        match units.iter().find(|(shift, _)| self.0 >= 1 << shift && self.0.is_multiple_of(1 << shift)) {
            Some((shift, unit)) => write!(f, "{}{unit}", self.0 >> shift),
            None => write!(f, "{}", self.0),
        }
    }
}

/// A span of time: `1s`, `500ms`, `250us`, `2m`, `1h`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span(pub Duration);

impl FromStr for Span {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let wanted = || ValueError::new("a time such as 1s, 500ms, 250us or 2m");
        let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (digits, unit) = text.split_at(split);
        let number: u64 = digits.parse().map_err(|_| wanted())?;
        match unit {
            "us" => Ok(Span(Duration::from_micros(number))),
            "ms" => Ok(Span(Duration::from_millis(number))),
            "s" => Ok(Span(Duration::from_secs(number))),
            "m" => number.checked_mul(60).map(|s| Span(Duration::from_secs(s))).ok_or_else(wanted),
            "h" => number.checked_mul(3_600).map(|s| Span(Duration::from_secs(s))).ok_or_else(wanted),
            _ => Err(wanted()),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = self.0.as_micros();
        match us {
            0 => f.write_str("0s"),
            us if us % 3_600_000_000 == 0 => write!(f, "{}h", us / 3_600_000_000),
            us if us % 1_000_000 == 0 => write!(f, "{}s", us / 1_000_000),
            us if us % 1000 == 0 => write!(f, "{}ms", us / 1000),
            us => write!(f, "{us}us"),
        }
    }
}

/// Explicit congestion notification: `off`, `accept`, `request`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EcnPolicy(pub Ecn);

impl FromStr for EcnPolicy {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        match text {
            "off" => Ok(EcnPolicy(Ecn::Off)),
            "accept" => Ok(EcnPolicy(Ecn::Accept)),
            "request" => Ok(EcnPolicy(Ecn::Request)),
            _ => Err(ValueError::new("off, accept or request")),
        }
    }
}

/// Pacing of sends: `off`, `auto`, or a size per second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacingPolicy(pub Pacing);

impl FromStr for PacingPolicy {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        match text {
            "off" => Ok(PacingPolicy(Pacing::Off)),
            "auto" => Ok(PacingPolicy(Pacing::Auto)),
            rate => match rate.parse::<ByteSize>() {
                Ok(size) if size.0 > 0 => Ok(PacingPolicy(Pacing::Rate(size.0))),
                _ => Err(ValueError::new("off, auto or bytes per second as in 10MiB")),
            },
        }
    }
}

/// TCP ports from one to another, both included, that need no right: `50000-50100`, or one alone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortRange(pub RangeInclusive<u16>);

impl FromStr for PortRange {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let wanted = || ValueError::new("FROM-TO, ports from 1024 to 65535");
        let (from, to) = text.split_once('-').unwrap_or((text, text));
        let port = |text: &str| text.trim().parse::<u16>().map_err(|_| wanted());
        let range = port(from)?..=port(to)?;
        if range.is_empty() || *range.start() < 1_024 { Err(wanted()) } else { Ok(PortRange(range)) }
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.0.start(), self.0.end())
    }
}

/// An FTP user with a password in clear, or with its argon2 hash in PHC form.
#[derive(Clone, PartialEq, Eq)]
pub struct FtpUser {
    /// The name.
    pub name: String,
    /// The password, or `$argon2id$...`.
    pub password: String,
}

impl FromStr for FtpUser {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        match text.split_once(':') {
            Some((name, password)) if !name.is_empty() && !password.is_empty() => {
                Ok(FtpUser { name: name.to_owned(), password: password.to_owned() })
            }
            _ => Err(ValueError::new("NAME:PASSWORD, neither of them empty")),
        }
    }
}

impl fmt::Debug for FtpUser {
    /// Passwords never reach a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FtpUser({})", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: FromStr<Err = ValueError> + fmt::Display>(text: &str, expected: Option<&str>) {
        assert_eq!(text.parse::<T>().ok().map(|v| v.to_string()).as_deref(), expected, "{text:?}");
    }

    #[test]
    fn port_ranges() {
        check::<PortRange>("50000-50100", Some("50000-50100"));
        check::<PortRange>("1024-65535", Some("1024-65535"));
        check::<PortRange>("2000", Some("2000-2000"));
        for bad in ["", "-", "80-90", "1023-2000", "2000-1999", "1-", "70000", "a-b", "1024-65536"] {
            check::<PortRange>(bad, None);
        }
    }

    #[test]
    fn devices() {
        check::<DeviceChoice>("tap", Some("tap:linerate0"));
        check::<DeviceChoice>("packet:eth0", Some("packet:eth0"));
        check::<DeviceChoice>("xdp:eth0", Some("xdp:eth0"));
        check::<DeviceChoice>("uio:linerate-nic", Some("uio:linerate-nic"));
        check::<DeviceChoice>("uio:nic@/host", Some("uio:nic@/host"));
        check::<DeviceChoice>("uio:nic@host", None);
        check::<DeviceChoice>("uio:", None);
        check::<DeviceChoice>("uio", None);
        check::<DeviceChoice>("rtl", Some("rtl:linerate0"));
        check::<DeviceChoice>("rtl:cable0", Some("rtl:cable0"));
        check::<DeviceChoice>("kernel", Some("kernel"));
        for bad in
            ["packet", "xdp", "xdp:", "tap:", "tap:a/b", "tap:0123456789abcdef", "kernel:x", "wire", ""]
        {
            check::<DeviceChoice>(bad, None);
        }
    }

    #[test]
    fn addresses() {
        assert!(matches!("192.168.1.4/24".parse(), Ok(AddressChoice::Static(_))));
        assert!(matches!("fd00:6c72::4/64".parse(), Ok(AddressChoice::Static(_))));
        assert!(matches!("127.0.0.1".parse(), Ok(AddressChoice::Static(_))));
        assert_eq!("dhcp".parse(), Ok(AddressChoice::Dhcp));
        for bad in [
            "192.168.1.4/33",
            "192.168.1.4/32",
            "300.1.1.1/8",
            "::1/64",
            "0.0.0.0/8",
            "224.0.0.1/4",
            "192.168.77.255/24",
            "192.168.77.0/24",
            "10.255.255.255/8",
            "192.168.1.7/30",
            "/8",
            "x",
        ] {
            assert!(bad.parse::<AddressChoice>().is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_times_and_offloads() {
        check::<ByteSize>("64MiB", Some("64MiB"));
        check::<ByteSize>("1g", Some("1GiB"));
        check::<ByteSize>("1500", Some("1500"));
        check::<ByteSize>("1TiB", Some("1TiB"));
        check::<ByteSize>("2t", Some("2TiB"));
        for bad in ["", "MiB", "-1", "1.5M", "1TB", "99999999999999999999", "18446744073709551615K"] {
            check::<ByteSize>(bad, None);
        }
        assert_eq!("250us".parse::<Span>().unwrap().0, Duration::from_micros(250));
        assert!("5".parse::<Span>().is_err() && "s".parse::<Span>().is_err());
        check::<Span>("90ms", Some("90ms"));
        check::<Span>("1500us", Some("1500us"));
        check::<Span>("2m", Some("120s"));
        check::<Offload>("tso,gro", Some("tso,gro"));
        check::<Offload>("none", Some("none"));
        check::<Offload>("everything", None);
    }

    #[test]
    fn passwords_are_not_printed() {
        let user: FtpUser = "eric:secret".parse().unwrap();
        assert_eq!(format!("{user:?}"), "FtpUser(eric)");
        assert!("eric".parse::<FtpUser>().is_err() && ":x".parse::<FtpUser>().is_err());
    }
}
