//! Serial links of a chip: what protocol, lanes and latencies leave for data.
//!
//! Each file is one link: its part of a chip file, and closed forms over it. All of them count the same way. A packet
//! occupies the line for its header, payload, check sums, padding and delimiters, and for its share of acknowledgements;
//! what cannot overlap adds up, what can takes the longest of its parts. `theoretical` is what the line could carry in
//! packets of this payload if nothing but framing were in the way.

mod clocked;
mod encoding;
pub mod ethernet;
pub mod hyperlink;
pub mod pcie;
pub mod srio;
pub mod tables;
pub mod tcp;
#[cfg(test)]
mod tests;

pub use clocked::{ClockedTime, Rates, Structure};
pub use encoding::Encoding;

use crate::units::{BitsPerSecond, Bytes, ClockId, Hertz};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The part `[links]` of a chip file; a link that is left out is not on the chip.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Links {
    /// PCI Express.
    #[serde(default)]
    pub pcie: Option<pcie::Pcie>,
    /// Serial RapidIO.
    #[serde(default)]
    pub srio: Option<srio::Srio>,
    /// HyperLink.
    #[serde(default)]
    pub hyperlink: Option<hyperlink::Hyperlink>,
    /// Ethernet ports by name, such as `10gbe`.
    #[serde(default)]
    pub ethernet: BTreeMap<String, ethernet::Ethernet>,
    /// TCP servers that run on the chip, by name; each is one state of tuning.
    #[serde(default)]
    pub tcp: BTreeMap<String, tcp::TcpServer>,
}

/// A value of a chip file that no link can have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkFault {
    /// Where it stands below `links`: "srio.lanes".
    pub key: String,
    /// What was expected there.
    pub expected: String,
}

impl fmt::Display for LinkFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "links.{}: expected {}", self.key, self.expected)
    }
}

/// Why a link has no answer. All are faults of the question.
#[derive(Debug, Clone, PartialEq)]
pub enum LinkError {
    /// The link has no mode with this many lanes.
    Lanes {
        /// Asked for.
        asked: u8,
        /// What it can do.
        has: Vec<u8>,
    },
    /// No payload, or one that is no number.
    Payload,
    /// A rate or clock of 0.
    Rate,
    /// A line rate that the port does not have.
    LineRate {
        /// Asked for.
        asked: BitsPerSecond,
        /// What it has.
        has: Vec<BitsPerSecond>,
    },
    /// More than one frame or message carries.
    TooLong {
        /// What is too long.
        what: &'static str,
        /// Asked for.
        asked: Bytes,
        /// The most that there may be.
        most: Bytes,
    },
    /// A name that the chip file does not have.
    Unknown {
        /// What kind of thing: "memory", "path".
        kind: &'static str,
        /// The name.
        name: String,
        /// The names that it has.
        known: Vec<String>,
    },
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lanes { asked, has } => write!(f, "{asked} lanes; expected one of {has:?}"),
            Self::Payload => f.write_str("expected a payload of at least one byte"),
            Self::Rate => f.write_str("expected rates and clocks above 0"),
            Self::LineRate { asked, has } => {
                let has: Vec<String> = has.iter().map(|rate| format!("{}", rate.gigabits())).collect();
                write!(f, "a line rate of {} Gbaud; expected one of {}", asked.gigabits(), has.join(", "))
            }
            Self::TooLong { what, asked, most } => write!(f, "a {what} of {asked}; expected at most {most}"),
            Self::Unknown { kind, name, known } => {
                write!(f, "no {kind} {name:?}; expected one of {}", known.join(", "))
            }
        }
    }
}

impl std::error::Error for LinkError {}

impl Links {
    /// Everything in this part of the file that no link can have.
    pub fn faults(&self) -> Vec<LinkFault> {
        let mut faults = Faults::default();
        if let Some(pcie) = &self.pcie {
            pcie.check(&mut faults.under("pcie"));
        }
        if let Some(srio) = &self.srio {
            srio.check(&mut faults.under("srio"));
        }
        if let Some(hyperlink) = &self.hyperlink {
            hyperlink.check(&mut faults.under("hyperlink"));
        }
        for (name, port) in &self.ethernet {
            port.check(&mut faults.under(&format!("ethernet.{name}")));
        }
        for (name, server) in &self.tcp {
            server.check(&mut faults.under(&format!("tcp.{name}")));
            match self.ethernet.get(&server.port) {
                None => faults.add(&format!("tcp.{name}.port"), "the name of a port under links.ethernet"),
                Some(port) if server.segment > port.mtu - tcp::HEADERS => {
                    let most = (port.mtu - tcp::HEADERS).value();
                    let expected = format!("at most {most} B: the MTU of its port less 40 B of headers");
                    faults.add(&format!("tcp.{name}.segment"), &expected);
                }
                Some(_) => {}
            }
        }
        faults.list
    }
}

impl Links {
    /// The same with every time and every server at what `clock` says that its clock runs at.
    #[must_use]
    pub fn at_clocks(&self, clock: impl Fn(&str) -> Option<Hertz>) -> Links {
        let mut links = self.clone();
        let at = |time: &mut ClockedTime| time.runs_at = clock(&time.clock.0);
        if let Some(srio) = &mut links.srio {
            let parts = [
                &mut srio.packet_engine,
                &mut srio.issue,
                &mut srio.doorbell,
                &mut srio.round_trip,
                &mut srio.copy,
            ];
            parts
                .into_iter()
                .chain(srio.memory.values_mut())
                .chain(srio.descriptor.values_mut())
                .for_each(at);
        }
        if let Some(hyperlink) = &mut links.hyperlink {
            let memories = hyperlink.memory.values_mut().map(|memory| &mut memory.latency);
            let paths = hyperlink.path.values_mut().filter_map(|path| path.latency.as_mut());
            std::iter::once(&mut hyperlink.round_trip).chain(memories).chain(paths).for_each(at);
        }
        for dma in links.ethernet.values_mut().filter_map(|port| port.packet_dma.as_mut()) {
            [&mut dma.per_packet, &mut dma.per_burst].into_iter().for_each(at);
        }
        links.resolve(&clock);
        links
    }

    /// Says what the clocks of servers run at.
    pub(crate) fn resolve(&mut self, clock: &impl Fn(&str) -> Option<Hertz>) {
        for server in self.tcp.values_mut() {
            server.runs_at = clock(&server.clock.0);
        }
    }

    /// Clocks that a time or a server names and that `known` denies.
    pub fn unknown_clocks<'a>(&'a self, known: impl Fn(&str) -> bool) -> Vec<LinkFault> {
        let mut named: Vec<(String, &'a ClockId)> = Vec::new();
        let mut times =
            |key: String, time: &'a ClockedTime| named.push((format!("{key}.clock"), &time.clock));
        if let Some(srio) = &self.srio {
            srio.times().into_iter().for_each(|(key, time)| times(format!("srio.{key}"), time));
        }
        if let Some(hyperlink) = &self.hyperlink {
            times("hyperlink.round_trip".into(), &hyperlink.round_trip);
            for (name, memory) in &hyperlink.memory {
                times(format!("hyperlink.memory.{name}.latency"), &memory.latency);
            }
            for (name, path) in &hyperlink.path {
                path.latency.iter().for_each(|time| times(format!("hyperlink.path.{name}.latency"), time));
            }
        }
        for (name, port) in &self.ethernet {
            if let Some(dma) = &port.packet_dma {
                times(format!("ethernet.{name}.packet_dma.per_packet"), &dma.per_packet);
                times(format!("ethernet.{name}.packet_dma.per_burst"), &dma.per_burst);
            }
        }
        named.extend(self.tcp.iter().map(|(name, server)| (format!("tcp.{name}.clock"), &server.clock)));
        named
            .into_iter()
            .filter(|(_, clock)| !known(&clock.0))
            .map(|(key, clock)| LinkFault {
                key,
                expected: format!("the name of a clock, found {:?}", clock.0),
            })
            .collect()
    }
}

/// Faults found so far.
#[derive(Default)]
struct Faults {
    list: Vec<LinkFault>,
}

impl Faults {
    fn add(&mut self, key: &str, expected: &str) {
        self.list.push(LinkFault { key: key.into(), expected: expected.into() });
    }

    fn under(&mut self, prefix: &str) -> Under<'_> {
        Under { faults: self, prefix: prefix.into() }
    }
}

/// Adds faults below one key.
struct Under<'a> {
    faults: &'a mut Faults,
    prefix: String,
}

impl Under<'_> {
    /// A fault at `key` unless the value is `good`.
    fn require(&mut self, good: bool, key: &str, expected: &str) {
        if !good {
            self.faults.add(&format!("{}.{key}", self.prefix), expected);
        }
    }

    /// A fault at `key` where the value is not above zero.
    fn positive(&mut self, value: f64, key: &str) {
        self.require(value > 0.0, key, "more than 0");
    }

    /// A fault of a time with its clock.
    fn clocked(&mut self, time: &ClockedTime, key: &str) {
        if let Some(expected) = time.fault() {
            self.require(false, key, expected);
        }
    }
}

/// How many packets of at most `most` carry `payload`, and what the last one holds; both at least 1 byte.
fn packets(payload: f64, most: f64) -> (f64, f64) {
    let count = (payload / most).ceil().max(1.0);
    (count, payload - (count - 1.0) * most)
}

/// Refuses rates that nothing runs at.
fn usable_rates(line: BitsPerSecond, core: Option<Hertz>) -> Result<(), LinkError> {
    let usable = |rate: f64| rate > 0.0 && rate.is_finite();
    if usable(line.value()) && core.is_none_or(|clock| usable(clock.value())) {
        Ok(())
    } else {
        Err(LinkError::Rate)
    }
}
