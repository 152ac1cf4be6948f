//! Settings of a stack, every one with a documented default.

use crate::memory::LEAST_MEMORY;
use crate::team::Seat;
use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::str::FromStr;
use linerate_nic::MacAddr;

/// The shortest MTU, in bytes: what every host on IPv4 takes (RFC 1122 section 3.3.2).
pub(crate) const LEAST_MTU: usize = 576;
/// The shortest MTU that carries IPv6 (RFC 8200 section 5).
pub(crate) const LEAST_MTU6: usize = 1_280;

/// An address with the length of its network's prefix, as `192.168.1.4/24` or `fd00::4/64`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Cidr {
    address: IpAddr,
    prefix_len: u8,
}

impl Cidr {
    /// An address and a prefix length in bits; `None` when the length is above 32 or 128.
    pub fn new(address: IpAddr, prefix_len: u8) -> Option<Cidr> {
        let most = if address.is_ipv4() { 32 } else { 128 };
        (prefix_len <= most).then_some(Cidr { address, prefix_len })
    }

    /// The address.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// The length of the prefix in bits.
    pub fn prefix_len(&self) -> u8 {
        self.prefix_len
    }

    /// The prefix with all other bits zero.
    pub fn network(&self) -> Cidr {
        let address = match self.address {
            IpAddr::V4(ip) => IpAddr::V4(Ipv4Addr::from_bits(ip.to_bits() & mask4(self.prefix_len))),
            IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & mask6(self.prefix_len))),
        };
        Cidr { address, prefix_len: self.prefix_len }
    }

    /// Whether `address` has this prefix.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()) & mask4(self.prefix_len) == 0,
            (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()) & mask6(self.prefix_len) == 0,
            _ => false,
        }
    }

    /// The directed broadcast address of an IPv4 network; `None` for prefixes of 31 and 32 bits (RFC 3021) and IPv6.
    pub fn broadcast(&self) -> Option<Ipv4Addr> {
        match self.address {
            IpAddr::V4(ip) if self.prefix_len < 31 => {
                Some(Ipv4Addr::from_bits(ip.to_bits() | !mask4(self.prefix_len)))
            }
            _ => None,
        }
    }

    /// Whether one host alone may have the address: it is unicast and not for loopback, and in IPv4 neither the first of its network
    /// nor the last, which are all hosts' (RFC 1122 section 3.2.1.3).
    pub fn is_of_one_host(&self) -> bool {
        let is_shared = match self.address {
            IpAddr::V4(ip) => {
                ip.is_broadcast()
                    || self
                        .broadcast()
                        .is_some_and(|last| ip == last || self.network().address == self.address)
            }
            IpAddr::V6(_) => false,
        };
        let ip = self.address;
        !(ip.is_unspecified() || ip.is_multicast() || ip.is_loopback() || is_shared)
    }
}

fn mask4(len: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(len.min(32))).unwrap_or(0)
}

fn mask6(len: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(len.min(128))).unwrap_or(0)
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix_len)
    }
}

/// Why a text is not an address with a prefix length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CidrError {
    /// There is no `/`.
    NoPrefixLength,
    /// The part before the `/` is no IP address.
    BadAddress,
    /// The part after the `/` is no number from 0 to 32 (IPv4) or 128 (IPv6).
    BadPrefixLength,
}

impl fmt::Display for CidrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CidrError::NoPrefixLength => "the prefix length is missing, as in 192.168.1.4/24",
            CidrError::BadAddress => "not an IPv4 or IPv6 address",
            CidrError::BadPrefixLength => "the prefix length must be 0 to 32 for IPv4, 0 to 128 for IPv6",
        })
    }
}

impl core::error::Error for CidrError {}

impl FromStr for Cidr {
    type Err = CidrError;

    fn from_str(text: &str) -> Result<Cidr, CidrError> {
        let (address, len) = text.split_once('/').ok_or(CidrError::NoPrefixLength)?;
        let address = address.parse().map_err(|_| CidrError::BadAddress)?;
        if len.is_empty() || !len.bytes().all(|b| b.is_ascii_digit()) {
            return Err(CidrError::BadPrefixLength);
        }
        let len = len.parse().map_err(|_| CidrError::BadPrefixLength)?;
        Cidr::new(address, len).ok_or(CidrError::BadPrefixLength)
    }
}

/// Settings of a stack. Tables and pools take their memory when the stack is made.
#[derive(Clone, Debug)]
pub struct StackConfig {
    /// The interface's Ethernet address. Default: the locally administered 02:00:00:00:00:01.
    pub mac: MacAddr,
    /// Largest IP packet in bytes, 576 to 65,535; below 1,280 there is no IPv6 (RFC 8200 section 5). Default: 1,500.
    pub mtu: usize,
    /// The 802.1Q VLAN that all frames carry; `None` for untagged frames. Default: none.
    pub vlan: Option<u16>,
    /// Which of the stacks on this link it is, where there are several; addresses, gateways, DHCP and the like are those of
    /// seat 0. Default: alone.
    pub seat: Seat,
    /// Our addresses, each with the prefix that is on the link. Default: none.
    pub addresses: Vec<Cidr>,
    /// Default gateways; the first of a family is used. Default: none.
    pub gateways: Vec<IpAddr>,
    /// Ask a DHCP server for an IPv4 address and gateway (RFC 2131). Default: off.
    pub dhcp: bool,
    /// Make IPv6 addresses from router advertisements (RFC 4862). Default: off.
    pub slaac: bool,
    /// Have a link-local IPv6 address, from the Ethernet address (RFC 4291 appendix A); without it there is no IPv6
    /// neighbour discovery. Default: on.
    pub ipv6: bool,
    /// Neighbour solicitations sent before an IPv6 address is used, one second each (RFC 4862 section 5.1); 0 uses
    /// addresses at once. Unless it is 0, static IPv4 addresses are probed too, while they are used (RFC 5227), and when the
    /// link comes back all of them. One that somebody has is given up. Default: 1.
    pub dad_transmits: u8,
    /// Most memory that sockets may hold, in bytes: received data by the buffers it holds, queued data by its length.
    /// See [`crate::memory`] for what happens on the way there. At least [`crate::memory::LEAST_MEMORY`], 16 KiB.
    /// Default: 64 MiB.
    pub memory: usize,
    /// Most TCP connections, TIME-WAIT included. What each takes, idle and awake, is in `docs/memory.md`: idle below 1 KiB. Where it is full, those in TIME-WAIT, half-open ones and those that their owner has closed give
    /// way; accepted ones never do, so servers must keep below it. Default: 4,096.
    pub max_connections: usize,
    /// Most half-open connections, of all listeners together; SYNs beyond are answered with cookies (RFC 4987), and so are
    /// those beyond a listener's backlog. At most half of [`StackConfig::max_connections`]. Default: 1,024.
    pub max_half_open: usize,
    /// Most connections that their owner has closed and that still deliver what they hold; beyond it the longest stalled of
    /// the oldest is reset. Default: 1,024.
    pub max_orphans: usize,
    /// Most connections in TIME-WAIT; the oldest go first. Default: 1,024.
    pub max_time_wait: usize,
    /// Most TCP listeners. Default: 1,024 (passive FTP opens one per transfer).
    pub max_listeners: usize,
    /// Most UDP sockets. Default: 256.
    pub max_udp_sockets: usize,
    /// Entries of the neighbour cache. Default: 512.
    pub max_neighbors: usize,
    /// Packets that may wait for the address of their next hop, of all neighbours together. Default: 64.
    pub max_parked: usize,
    /// Destinations whose path MTU is remembered, for TCP and as many for datagrams. Default: 256.
    pub max_paths: usize,
    /// Reads of files that may be under way at once, of all connections together. Default: 1,024.
    pub max_file_reads: usize,
    /// Control packets that may wait for the device: replies, errors, resets, address resolution; 16 at least. An eighth of
    /// the places is kept for address resolution and resets, another one for answers of address resolution. Default: 512.
    pub control_queue: usize,
    /// UDP datagrams that may wait for the device, of all sockets together. Default: 512.
    pub datagram_queue: usize,
    /// Largest IP packet handed to the device for segmentation, in bytes; up to 65,535. Default: 65,535.
    pub max_super_segment: usize,
    /// Frames taken from a batch in one call. Default: 256.
    pub receive_budget: usize,
    /// Payload bytes that one connection sends in one turn of the round. Default: 128 KiB, two super-segments.
    pub send_quantum: usize,
    /// Whether the device reports packets that it has sent ([`Stack::handle_completion`](crate::Stack::handle_completion));
    /// retransmission timers then start when a packet has left, not when it was queued, and one connection
    /// keeps no more than two super-segments or a millisecond of its rate waiting in the device. A device that reports late,
    /// only when its ring runs short for example, is better served without. Default: on, as the contract of devices demands.
    pub completions: bool,
    /// ICMP errors sent per second (RFC 4443 section 2.4(f), RFC 1812 section 4.3.2.8), about, and half of it to one
    /// source. Default: 100.
    pub icmp_errors_per_second: u32,
    /// RST segments sent per second to segments of no connection, about, and half of it to one source. Default: 1,000.
    pub resets_per_second: u32,
    /// The TCP options that are offered and accepted. Default: all.
    pub tcp_options: TcpOptions,
}

/// TCP options that a stack can do without; both ends must know one for it to be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpOptions {
    /// Timestamps (RFC 7323).
    pub timestamps: bool,
    /// Selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Window scaling (RFC 7323 section 2).
    pub window_scaling: bool,
}

impl Default for TcpOptions {
    fn default() -> Self {
        TcpOptions { timestamps: true, sack: true, window_scaling: true }
    }
}

impl Default for StackConfig {
    fn default() -> Self {
        StackConfig {
            mac: MacAddr([2, 0, 0, 0, 0, 1]),
            mtu: 1_500,
            vlan: None,
            seat: Seat::ALONE,
            addresses: Vec::new(),
            gateways: Vec::new(),
            dhcp: false,
            slaac: false,
            ipv6: true,
            dad_transmits: 1,
            memory: 64 << 20,
            max_connections: 4_096,
            max_half_open: 1_024,
            max_orphans: 1_024,
            max_time_wait: 1_024,
            max_listeners: 1_024,
            max_udp_sockets: 256,
            max_neighbors: 512,
            max_parked: 64,
            max_paths: 256,
            max_file_reads: 1_024,
            control_queue: 512,
            datagram_queue: 512,
            max_super_segment: 65_535,
            receive_budget: 256,
            send_quantum: 128 << 10,
            completions: true,
            icmp_errors_per_second: 100,
            resets_per_second: 1_000,
            tcp_options: TcpOptions::default(),
        }
    }
}

impl StackConfig {
    /// The settings with every number brought into its range, so that nothing below must ask again.
    pub(crate) fn in_range(mut self) -> StackConfig {
        self.mtu = self.mtu.clamp(LEAST_MTU, 65_535);
        self.seat.seats = self.seat.seats.max(1);
        self.seat.index = self.seat.index.min(self.seat.seats - 1);
        self.ipv6 &= self.mtu >= LEAST_MTU6;
        self.slaac &= self.ipv6;
        self.vlan = self.vlan.map(|vlan| vlan & 0x0fff);
        self.memory = self.memory.max(LEAST_MEMORY);
        self.max_connections = self.max_connections.clamp(1, 1 << 20);
        self.max_half_open = self.max_half_open.min(self.max_connections.div_ceil(2));
        self.max_time_wait = self.max_time_wait.min(self.max_connections);
        self.max_listeners = self.max_listeners.clamp(1, 1 << 16);
        self.max_udp_sockets = self.max_udp_sockets.clamp(1, 1 << 16);
        self.max_neighbors = self.max_neighbors.clamp(8, 1 << 16);
        self.max_parked = self.max_parked.clamp(1, 1 << 16);
        self.max_paths = self.max_paths.clamp(1, 1 << 20);
        self.max_file_reads = self.max_file_reads.clamp(1, 1 << 20);
        self.control_queue = self.control_queue.clamp(16, 1 << 16);
        self.datagram_queue = self.datagram_queue.clamp(1, 1 << 16);
        self.max_super_segment = self.max_super_segment.clamp(self.mtu, 65_535);
        self.receive_budget = self.receive_budget.max(1);
        self.send_quantum = self.send_quantum.max(self.mtu);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<(&str, u8), CidrError>) {
        let expected = expected.map(|(ip, len)| Cidr::new(ip.parse().unwrap(), len).unwrap());
        assert_eq!(text.parse::<Cidr>(), expected, "{text}");
    }

    #[test]
    fn addresses_of_all_and_of_none_are_not_of_one_host() {
        let check = |text: &str, expected| {
            assert_eq!(text.parse::<Cidr>().unwrap().is_of_one_host(), expected, "{text}");
        };
        for one in ["10.0.0.1/24", "10.0.0.0/31", "10.0.0.7/32", "fd00::4/64", "fd00::/64"] {
            check(one, true);
        }
        for all in [
            "127.0.0.1/8",
            "::1/128",
            "0.0.0.0/0",
            "::/0",
            "224.0.0.1/24",
            "ff02::1/64",
            "255.255.255.255/32",
            "10.0.0.255/24",
            "10.0.0.0/24",
        ] {
            check(all, false);
        }
    }

    #[test]
    fn addresses_with_prefixes_are_read() {
        check("192.168.1.4/24", Ok(("192.168.1.4", 24)));
        check("fd00:6c72::4/64", Ok(("fd00:6c72::4", 64)));
        check("0.0.0.0/0", Ok(("0.0.0.0", 0)));
        check("192.168.1.4", Err(CidrError::NoPrefixLength));
        check("192.168.1/24", Err(CidrError::BadAddress));
        check("192.168.1.4/33", Err(CidrError::BadPrefixLength));
        check("192.168.1.4/+3", Err(CidrError::BadPrefixLength));
        check("::/129", Err(CidrError::BadPrefixLength));
        check("::/300", Err(CidrError::BadPrefixLength));
        check("::/", Err(CidrError::BadPrefixLength));
    }

    #[test]
    fn networks_and_broadcasts() {
        let net = |text: &str| text.parse::<Cidr>().unwrap();
        assert_eq!(net("192.168.1.4/24").network(), net("192.168.1.0/24"));
        assert_eq!(net("192.168.1.4/24").broadcast(), Some(Ipv4Addr::new(192, 168, 1, 255)));
        assert_eq!(net("192.168.1.4/31").broadcast(), None);
        assert_eq!(net("192.168.1.4/0").broadcast(), Some(Ipv4Addr::BROADCAST));
        assert_eq!(net("fd00:1:2:3:4::5/64").network(), net("fd00:1:2:3::/64"));
        assert!(net("fd00::/64").contains("fd00::ffff".parse().unwrap()));
        assert!(!net("fd00::/64").contains("fd00:0:0:1::".parse().unwrap()));
        assert!(!net("::/0").contains("1.2.3.4".parse().unwrap()));
        assert!(net("::/0").contains("ff02::1".parse().unwrap()));
        assert!(net("1.2.3.4/32").contains("1.2.3.4".parse().unwrap()));
    }

    #[test]
    fn numbers_are_brought_into_range() {
        let config = StackConfig { mtu: 100, max_neighbors: 0, slaac: true, ..StackConfig::default() };
        let config = config.in_range();
        assert_eq!((config.mtu, config.max_neighbors), (576, 8));
        assert!(!config.ipv6 && !config.slaac, "an MTU of 576 cannot carry IPv6");
    }
}
