//! Which queue a received frame goes to: flow rules, then a map of ports, then the Toeplitz hash and its table.
//!
//! What a frame is, is what `Layers` says: a frame whose headers do not fit together goes to the
//! default queue, as one that is not IP.

mod program;
mod rule;

pub use program::{Write, write_of_port, writes_of_indirection, writes_of_rule};
pub use rule::{Action, Network, Rule, RuleWord};

use crate::layers::{self, Version, u16_at};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use linerate_wire::ip::Protocol;
use linerate_wire::toeplitz::{Input, KEY_LEN};

/// Entries of the table that the hash's low bits choose from.
pub const INDIRECTION_LEN: usize = 128;
/// Most ports with a queue of their own.
pub const MAX_PORTS: usize = 16;
/// Most flow rules.
pub const MAX_RULES: usize = 32;
/// Queues that can be named.
pub const MAX_CHANNELS: u16 = 16;

/// What a hash was taken over; the numbers are those of the hardware.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum HashType {
    /// There is none: the frame is not IP.
    #[default]
    None = 0,
    /// Both addresses: another protocol, a fragment, or its ports do not count.
    Ipv4 = 1,
    /// Addresses and ports of TCP over IPv4.
    Tcp4 = 2,
    /// Addresses and ports of UDP over IPv4.
    Udp4 = 3,
    /// As `Ipv4`, over IPv6.
    Ipv6 = 4,
    /// As `Tcp4`, over IPv6.
    Tcp6 = 5,
    /// As `Udp4`, over IPv6.
    Udp6 = 6,
}

/// What identifies the flow of an IP packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tuple {
    /// Source and destination address, of the same version.
    pub source: IpAddr,
    /// See `source`.
    pub destination: IpAddr,
    /// What the packet carries.
    pub protocol: Protocol,
    /// Source and destination port, of TCP and UDP. A fragment has none, the first one neither: all of a datagram belong
    /// to one queue.
    pub ports: Option<[u16; 2]>,
}

impl Tuple {
    /// Of a whole frame; `None` if it is not IP, or its headers do not fit together.
    pub fn of_frame(frame: &[u8]) -> Option<Tuple> {
        let layers = layers::parse(frame, frame.len())?;
        let packet = frame.get(layers.ip..)?;
        let (source, destination): (IpAddr, IpAddr) = match layers.version {
            Version::V4 => {
                let address = |at: usize| Some(Ipv4Addr::from(*packet.get(at..)?.first_chunk::<4>()?));
                (address(12)?.into(), address(16)?.into())
            }
            Version::V6 => {
                let address = |at: usize| Some(Ipv6Addr::from(*packet.get(at..)?.first_chunk::<16>()?));
                (address(8)?.into(), address(24)?.into())
            }
        };
        let has_ports = matches!(layers.protocol, Protocol::TCP | Protocol::UDP) && !layers.fragment;
        // A packet that ends inside of its ports has none; what follows is padding.
        let is_there = layers.end - layers.layer4 >= 4;
        let ports = (has_ports && is_there).then_some(layers.layer4);
        let ports = match ports {
            Some(at) => Some([u16_at(frame, at)?, u16_at(frame, at + 2)?]),
            None => None,
        };
        Some(Tuple { source, destination, protocol: layers.protocol, ports })
    }

    /// What is hashed of it, without its ports if they do not count.
    fn input(&self, with_ports: bool) -> Input {
        let ports = self.ports.filter(|_| with_ports);
        match (self.source, self.destination, ports) {
            (IpAddr::V4(source), IpAddr::V4(destination), Some([from, to])) => {
                Input::ipv4_ports(source, destination, from, to)
            }
            (IpAddr::V6(source), IpAddr::V6(destination), Some([from, to])) => {
                Input::ipv6_ports(source, destination, from, to)
            }
            (IpAddr::V4(source), IpAddr::V4(destination), None) => Input::ipv4(source, destination),
            (source, destination, _) => Input::ipv6(mapped(source), mapped(destination)),
        }
    }
}

/// An IPv6 address as it is; no packet has addresses of both versions.
fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// What was found out about a frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Steered {
    /// The hash; 0 if there is none.
    pub hash: u32,
    /// What it was taken over.
    pub hash_type: HashType,
    /// The queue.
    pub channel: u8,
    /// A rule says that nobody wants the frame; `channel` is 0 then.
    pub drop: bool,
    /// What decided.
    pub decided_by: Decision,
}

/// What decides on a frame's queue, in the order of precedence.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Decision {
    /// Not IP: the default queue.
    #[default]
    NotIp,
    /// A flow rule.
    Rule,
    /// The map of ports.
    Port,
    /// The hash.
    Hash,
}

/// How frames are steered: the settings of the hardware, and what it does with them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Steer {
    /// The key of the hash.
    pub key: [u8; KEY_LEN],
    /// Whether the ports of TCP are hashed.
    pub hash_tcp: bool,
    /// Whether the ports of UDP are hashed.
    pub hash_udp: bool,
    /// The queue of what is not IP.
    pub default_channel: u8,
    /// The queue of each value of the hash's low bits.
    pub indirection: [u8; INDIRECTION_LEN],
    /// Destination ports of TCP and UDP, and their queues; the first entry that fits counts.
    pub ports: [Option<(u16, u8)>; MAX_PORTS],
    /// Flow rules; the first that fits counts, before everything else.
    pub rules: [Option<Rule>; MAX_RULES],
}

impl Steer {
    /// By the hash of addresses and ports with this key, everything to queue 0.
    pub fn new(key: [u8; KEY_LEN]) -> Self {
        Steer {
            key,
            hash_tcp: true,
            hash_udp: true,
            default_channel: 0,
            indirection: [0; INDIRECTION_LEN],
            ports: [None; MAX_PORTS],
            rules: [None; MAX_RULES],
        }
    }

    /// With what a device is asked for by [`Steering`](crate::Steering): a table whose length is a power of two, and ports
    /// with their queues. `None` if there are more ports or queues than there is room for.
    pub fn with_tables(self, indirection: &[u16], ports: &[(u16, u16)]) -> Option<Self> {
        let mut steer = self;
        let channel = |queue: u16| (queue < MAX_CHANNELS).then_some(queue as u8);
        let len = indirection.len();
        if !len.is_power_of_two() || len > INDIRECTION_LEN || ports.len() > MAX_PORTS {
            return None;
        }
        for (to, from) in steer.indirection.iter_mut().zip(indirection.iter().cycle()) {
            *to = channel(*from)?;
        }
        steer.ports = [None; MAX_PORTS];
        for (to, (port, queue)) in steer.ports.iter_mut().zip(ports) {
            *to = Some((*port, channel(*queue)?));
        }
        Some(steer)
    }

    /// Where a whole frame goes.
    pub fn steer(&self, frame: &[u8]) -> Steered {
        match Tuple::of_frame(frame) {
            Some(tuple) => self.steer_tuple(&tuple),
            None => Steered { channel: self.default_channel, ..Steered::default() },
        }
    }

    /// Where a packet of this flow goes.
    pub fn steer_tuple(&self, tuple: &Tuple) -> Steered {
        let is_tcp = tuple.protocol == Protocol::TCP;
        let with_ports = tuple.ports.is_some() && if is_tcp { self.hash_tcp } else { self.hash_udp };
        let hash = tuple.input(with_ports).hash(&self.key);
        let hash_type = match (tuple.source.is_ipv4(), with_ports, is_tcp) {
            (true, false, _) => HashType::Ipv4,
            (true, true, true) => HashType::Tcp4,
            (true, true, false) => HashType::Udp4,
            (false, false, _) => HashType::Ipv6,
            (false, true, true) => HashType::Tcp6,
            (false, true, false) => HashType::Udp6,
        };
        let rule = self.rules.iter().flatten().find(|rule| rule.matches(tuple));
        let port = tuple.ports.and_then(|[_, to]| self.ports.iter().flatten().find(|(port, _)| *port == to));
        let spread = self.indirection.get(hash as usize % INDIRECTION_LEN).copied().unwrap_or(0);
        let (channel, drop, decided_by) = match (rule.map(|rule| rule.action), port) {
            (Some(Action::Drop), _) => (0, true, Decision::Rule),
            (Some(Action::Queue(queue)), _) => (queue, false, Decision::Rule),
            (None, Some((_, queue))) => (*queue, false, Decision::Port),
            (None, None) => (spread, false, Decision::Hash),
        };
        Steered { hash, hash_type, channel, drop, decided_by }
    }
}

#[cfg(test)]
mod tests;
