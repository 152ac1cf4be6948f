//! Flow rules, and as what the hardware compares.

use super::Tuple;
use crate::layers::Version;
use core::net::IpAddr;
use linerate_wire::ip::Protocol;

/// All addresses that begin alike.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Network {
    /// One of them.
    pub address: IpAddr,
    /// Bits that are compared, from the first on; more than the address has count as all of it.
    pub prefix_len: u8,
}

impl Network {
    /// One address alone.
    pub const fn host(address: IpAddr) -> Network {
        Network { address, prefix_len: u8::MAX }
    }

    fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(one), IpAddr::V4(other)) => {
                (one.to_bits() ^ other.to_bits()) & (mask(self.prefix_len.min(32)) >> 96) as u32 == 0
            }
            (IpAddr::V6(one), IpAddr::V6(other)) => {
                (one.to_bits() ^ other.to_bits()) & mask(self.prefix_len) == 0
            }
            _ => false,
        }
    }

    fn version(&self) -> Version {
        if self.address.is_ipv4() { Version::V4 } else { Version::V6 }
    }
}

/// The first `prefix_len` of 128 bits.
fn mask(prefix_len: u8) -> u128 {
    !u128::MAX.checked_shr(u32::from(prefix_len)).unwrap_or(0)
}

/// What is done with the frames of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// They go to this queue, below 16.
    Queue(u8),
    /// They go nowhere.
    Drop,
}

/// A flow rule: what is `None` may be anything.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rule {
    /// The version of the Internet Protocol.
    pub version: Option<Version>,
    /// What the packet carries.
    pub protocol: Option<Protocol>,
    /// Where it comes from.
    pub source: Option<Network>,
    /// Where it goes.
    pub destination: Option<Network>,
    /// With one, only TCP and UDP fit that is no fragment.
    pub source_port: Option<u16>,
    /// See `source_port`.
    pub destination_port: Option<u16>,
    /// What is done.
    pub action: Action,
}

impl Rule {
    /// Everything that is IP.
    pub const fn all(action: Action) -> Rule {
        Rule {
            version: None,
            protocol: None,
            source: None,
            destination: None,
            source_port: None,
            destination_port: None,
            action,
        }
    }

    /// Exactly one flow.
    pub const fn flow(tuple: &Tuple, action: Action) -> Rule {
        let (source_port, destination_port) = match tuple.ports {
            Some([from, to]) => (Some(from), Some(to)),
            None => (None, None),
        };
        Rule {
            version: None,
            protocol: Some(tuple.protocol),
            source: Some(Network::host(tuple.source)),
            destination: Some(Network::host(tuple.destination)),
            source_port,
            destination_port,
            action,
        }
    }

    /// Whether packets of this flow fit.
    pub fn matches(&self, tuple: &Tuple) -> bool {
        let version = if tuple.source.is_ipv4() { Version::V4 } else { Version::V6 };
        let port = |rule: Option<u16>, at: usize| {
            rule.is_none_or(|rule| tuple.ports.is_some_and(|ports| ports[at] == rule))
        };
        self.version.is_none_or(|rule| rule == version)
            && self.protocol.is_none_or(|rule| rule == tuple.protocol)
            && self.source.is_none_or(|rule| rule.contains(tuple.source))
            && self.destination.is_none_or(|rule| rule.contains(tuple.destination))
            && port(self.source_port, 0)
            && port(self.destination_port, 1)
    }

    /// The eight words that the hardware compares; `None` if no packet can fit (addresses of both versions).
    ///
    /// In step `s` it compares bits `36 * s` and following of addresses and ports, the first bit highest, with four bits of
    /// protocol or flags above them: see `rss_lookup.sv`.
    pub fn words(&self) -> Option<[RuleWord; 8]> {
        let mut version = self.version;
        for network in [self.source, self.destination].into_iter().flatten() {
            if version.is_some_and(|version| version != network.version()) {
                return None;
            }
            version = Some(network.version());
        }
        let mut ternary = Ternary::default();
        if let Some(network) = self.source {
            ternary.put_network(0, network);
        }
        if let Some(network) = self.destination {
            ternary.put_network(if version == Some(Version::V4) { 32 } else { 128 }, network);
        }
        let ports = [(self.source_port, 256), (self.destination_port, 272)];
        for (port, at) in ports {
            if let Some(port) = port {
                ternary.put(at, 16, u128::from(port), u128::MAX);
                ternary.put_beside(9, 1, 1);
            }
        }
        if let Some(protocol) = self.protocol {
            ternary.put_beside(0, 8, u32::from(protocol.0));
        }
        if let Some(version) = version {
            ternary.put_beside(8, 1, u32::from(version == Version::V6));
        }
        Some(ternary.words)
    }
}

/// 40 bits to compare.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct RuleWord {
    /// What they must be.
    pub value: u64,
    /// Which of them count.
    pub care: u64,
}

impl RuleWord {
    /// Whether a word fits.
    pub fn matches(&self, word: u64) -> bool {
        (self.value ^ word) & self.care == 0
    }
}

/// Words that are filled bit by bit.
#[derive(Default)]
struct Ternary {
    words: [RuleWord; 8],
}

impl Ternary {
    /// `len` bits from bit `at` of addresses and ports on: the low ones of `value`, of which those in `care` count.
    fn put(&mut self, at: usize, len: usize, value: u128, care: u128) {
        for bit in 0..len {
            let (step, place) = ((at + bit) / 36, 35 - (at + bit) % 36);
            if let Some(word) = self.words.get_mut(step) {
                word.value |= ((value >> (len - 1 - bit) & 1) as u64) << place;
                word.care |= ((care >> (len - 1 - bit) & 1) as u64) << place;
            }
        }
    }

    fn put_network(&mut self, at: usize, network: Network) {
        let (len, bits) = match network.address {
            IpAddr::V4(address) => (32, u128::from(address.to_bits())),
            IpAddr::V6(address) => (128, address.to_bits()),
        };
        let care = mask(network.prefix_len.min(len as u8)) >> (128 - len);
        self.put(at, len, bits & care, care);
    }

    /// `len` bits from bit `at` of protocol and flags on.
    fn put_beside(&mut self, at: usize, len: usize, value: u32) {
        for bit in 0..len {
            let (step, place) = ((at + bit) / 4, 39 - (at + bit) % 4);
            if let Some(word) = self.words.get_mut(step) {
                word.value |= u64::from(value >> (len - 1 - bit) & 1) << place;
                word.care |= 1 << place;
            }
        }
    }
}

impl Tuple {
    /// The words as which the hardware looks it up, without the ports that are there for the hash alone.
    #[cfg(test)]
    pub(super) fn words(&self) -> [u64; 8] {
        let mut ternary = Ternary::default();
        let at = if self.source.is_ipv4() { 32 } else { 128 };
        ternary.put_network(0, Network::host(self.source));
        ternary.put_network(at, Network::host(self.destination));
        let [from, to] = self.ports.unwrap_or_default();
        ternary.put(256, 16, u128::from(from), u128::MAX);
        ternary.put(272, 16, u128::from(to), u128::MAX);
        ternary.put_beside(0, 8, u32::from(self.protocol.0));
        ternary.put_beside(8, 1, u32::from(!self.source.is_ipv4()));
        ternary.put_beside(9, 1, u32::from(self.ports.is_some()));
        ternary.words.map(|word| word.value)
    }
}
