//! Which queue of an interface a frame comes in on.

use crate::parcel::{Parcel, ip_offset};
use crate::random::Random;
use linerate_nic::Steering;
use linerate_stack::Rss;
use linerate_wire::toeplitz::{Input, KEY_LEN, MICROSOFT_KEY};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Flows that an interface remembers with [`Spread::Follow`]; beyond them it forgets all and learns anew.
const MAX_FLOWS: usize = 4_096;

/// How an interface with several queues chooses one for a frame that came in. What is not IP goes to queue 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Spread {
    /// Receive-side scaling: by the Toeplitz hash of addresses and ports, or of the addresses alone where there are no ports
    /// (fragments, ICMP).
    Hash {
        /// The key.
        key: [u8; KEY_LEN],
        /// The queue of each value of the hash's low bits, modulo the number of queues; its length is a power of two.
        indirection: Vec<u16>,
        /// Destination ports whose flows have a queue of their own, whatever their hash.
        ports: Vec<(u16, u16)>,
    },
    /// The queue that the last packet of the flow left from, as a TAP device of several queues has it; by hash before that.
    Follow,
    /// By chance, each frame anew: a device that cannot make up its mind.
    Random,
}

impl Default for Spread {
    /// By hash, over all queues in turn.
    fn default() -> Self {
        Spread::shifted(0)
    }
}

impl Spread {
    /// By hash, each flow at the queue so many places after the one it has by default.
    pub fn shifted(by: u16) -> Spread {
        let indirection = (by..by.saturating_add(128)).collect();
        Spread::Hash { key: MICROSOFT_KEY, indirection, ports: Vec::new() }
    }
}

impl Spread {
    /// What stacks are told of it, on so many queues; `None` where it depends on more than addresses and ports.
    pub(crate) fn rss(&self, queues: u16) -> Option<Rss> {
        match self {
            Spread::Hash { key, indirection, .. } => {
                let indirection = indirection.iter().map(|queue| queue % queues.max(1)).collect();
                Some(Rss { key: *key, indirection })
            }
            Spread::Follow | Spread::Random => None,
        }
    }
}

impl From<&Steering<'_>> for Spread {
    fn from(steering: &Steering<'_>) -> Spread {
        Spread::Hash {
            key: *steering.key,
            indirection: steering.indirection.to_vec(),
            ports: steering.ports.to_vec(),
        }
    }
}

/// The part of an interface that spreads frames, shared by its queues.
#[derive(Debug)]
pub(crate) struct Spreader {
    queues: u16,
    pub(crate) spread: Spread,
    /// The queue that the last packet of a flow left from, by the flow's hash, the same for both directions.
    left_from: HashMap<u32, u16>,
    random: Random,
}

impl Spreader {
    pub(crate) fn new(queues: u16, spread: Spread, random: Random) -> Spreader {
        Spreader { queues: queues.max(1), spread, left_from: HashMap::new(), random }
    }

    /// Queues among which is chosen.
    pub(crate) fn queues(&self) -> u16 {
        self.queues
    }

    /// The queue of segments that come in.
    pub(crate) fn queue_of(&mut self, parcel: &Parcel) -> usize {
        if self.queues == 1 {
            return 0;
        }
        let ends = Ends::of_parcel(parcel);
        let queue = match (&self.spread, ends) {
            (Spread::Random, _) => self.random.below(u64::from(self.queues)) as u16,
            (_, None) => 0,
            (Spread::Hash { key, indirection, ports }, Some(ends)) => {
                let own = ends.ports.and_then(|[_, to]| ports.iter().find(|(port, _)| *port == to));
                match own {
                    Some((_, queue)) => *queue,
                    None => {
                        let at = ends.hash(key) as usize % indirection.len().max(1);
                        indirection.get(at).copied().unwrap_or(0)
                    }
                }
            }
            (Spread::Follow, Some(ends)) => {
                let hash = ends.sorted().hash(&MICROSOFT_KEY);
                self.left_from.get(&hash).copied().unwrap_or((hash % u32::from(self.queues)) as u16)
            }
        };
        usize::from(queue % self.queues)
    }

    /// Segments leave from a queue.
    pub(crate) fn leave(&mut self, parcel: &Parcel, queue: u16) {
        if self.queues == 1 || self.spread != Spread::Follow {
            return;
        }
        if let Some(ends) = Ends::of_parcel(parcel) {
            if self.left_from.len() >= MAX_FLOWS {
                self.left_from.clear();
            }
            self.left_from.insert(ends.sorted().hash(&MICROSOFT_KEY), queue);
        }
    }
}

/// What is hashed of a packet: its addresses, and its ports if it has any.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Ends {
    source: IpAddr,
    destination: IpAddr,
    ports: Option<[u16; 2]>,
}

impl Ends {
    /// As the interface sees it: with bits that were flipped on the way.
    fn of_parcel(parcel: &Parcel) -> Option<Ends> {
        let head = Some(parcel.head()).filter(|_| !parcel.is_damaged());
        head.and_then(Ends::of_frame).or_else(|| Ends::of_frame(&parcel.bytes()))
    }

    /// Of a frame that begins so; `None` if it is not IP, or too short.
    fn of_frame(frame: &[u8]) -> Option<Ends> {
        let (is_v4, ip) = ip_offset(frame)?;
        let packet = frame.get(ip..)?;
        let (source, destination, ports_at): (IpAddr, IpAddr, _) = if is_v4 {
            let is_fragment = be16(packet, 6)? & 0x3fff != 0;
            let address = |at: usize| Some(Ipv4Addr::from(*packet.get(at..)?.first_chunk::<4>()?));
            let has_ports = matches!(packet.get(9)?, 6 | 17) && !is_fragment;
            let header_len = usize::from(packet.first()? & 15) * 4;
            (address(12)?.into(), address(16)?.into(), has_ports.then_some(header_len))
        } else {
            let address = |at: usize| Some(Ipv6Addr::from(*packet.get(at..)?.first_chunk::<16>()?));
            (address(8)?.into(), address(24)?.into(), matches!(packet.get(6)?, 6 | 17).then_some(40))
        };
        let ports = match ports_at {
            Some(at) => Some([be16(packet, at)?, be16(packet, at + 2)?]),
            None => None,
        };
        Some(Ends { source, destination, ports })
    }

    /// The same for both directions.
    fn sorted(self) -> Ends {
        let [from, to] = self.ports.unwrap_or_default();
        if (self.source, from) <= (self.destination, to) {
            return self;
        }
        Ends { source: self.destination, destination: self.source, ports: self.ports.map(|[a, b]| [b, a]) }
    }

    fn hash(&self, key: &[u8; KEY_LEN]) -> u32 {
        let input = match (self.source, self.destination, self.ports) {
            (IpAddr::V4(source), IpAddr::V4(destination), Some([from, to])) => {
                Input::ipv4_ports(source, destination, from, to)
            }
            (IpAddr::V4(source), IpAddr::V4(destination), None) => Input::ipv4(source, destination),
            (IpAddr::V6(source), IpAddr::V6(destination), Some([from, to])) => {
                Input::ipv6_ports(source, destination, from, to)
            }
            (IpAddr::V6(source), IpAddr::V6(destination), None) => Input::ipv6(source, destination),
            // Both come from one header.
            _ => return 0,
        };
        input.hash(key)
    }
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|word| u16::from_be_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parcel::Stock;

    /// A packet of TCP over IPv4 between two hosts, there (or back) between these ports.
    fn segment(stock: &Stock, [from, to]: [u16; 2], is_back: bool, is_fragment: bool) -> Parcel {
        let mut frame = vec![0; 14 + 40];
        frame[12] = 8;
        frame[14] = 0x45;
        frame[20] = if is_fragment { 0x20 } else { 0 };
        frame[23] = 6;
        let (a, b) = if is_back { (2, 1) } else { (1, 2) };
        frame[26..34].copy_from_slice(&[10, 0, 0, a, 10, 0, 0, b]);
        let [from, to] = if is_back { [to, from] } else { [from, to] };
        frame[34..36].copy_from_slice(&from.to_be_bytes());
        frame[36..38].copy_from_slice(&to.to_be_bytes());
        stock.take_bytes(frame).expect("a parcel")
    }

    fn spreader(queues: u16, spread: Spread) -> Spreader {
        Spreader::new(queues, spread, Random::stream(1, 1))
    }

    #[test]
    fn flows_stay_and_are_spread_evenly() {
        let stock = Stock::default();
        let mut spreader = spreader(4, Spread::default());
        let mut counts = [0; 4];
        for port in 0..4_000 {
            let queue = spreader.queue_of(&segment(&stock, [1_024 + port, 80], false, false));
            assert_eq!(queue, spreader.queue_of(&segment(&stock, [1_024 + port, 80], false, false)));
            counts[queue] += 1;
        }
        assert!(counts.iter().all(|count| *count > 800), "{counts:?}");
        // The vector of Microsoft's verification suite is checked with the hash; here, that its parts are in their places.
        let ends = Ends::of_parcel(&segment(&stock, [2_794, 1_766], false, false)).expect("IPv4");
        let input = Input::ipv4_ports([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 2_794, 1_766);
        assert_eq!(ends.hash(&MICROSOFT_KEY), input.hash(&MICROSOFT_KEY));
    }

    #[test]
    fn fragments_go_by_address_and_other_frames_to_the_first_queue() {
        let stock = Stock::default();
        let mut spreader = spreader(4, Spread::default());
        let fragments: Vec<_> =
            (0..100).map(|port| spreader.queue_of(&segment(&stock, [port, 80], false, true))).collect();
        assert!(fragments.iter().all(|queue| *queue == fragments[0]));
        let arp = stock.take_bytes([[0xff; 12].as_slice(), &[8, 6], &[0; 28]].concat()).expect("a parcel");
        assert_eq!(spreader.queue_of(&arp), 0);
    }

    #[test]
    fn a_port_may_have_a_queue_and_a_table_may_be_shifted() {
        let stock = Stock::default();
        let [mut plain, mut shifted] = [0, 1].map(|by| spreader(3, Spread::shifted(by)));
        let Spread::Hash { key, indirection, .. } = Spread::default() else { unreachable!() };
        let mut own = spreader(3, Spread::Hash { key, indirection, ports: vec![(5_201, 2)] });
        for port in 0..100 {
            let parcel = segment(&stock, [port, 5_201], false, false);
            assert_eq!((plain.queue_of(&parcel) + 1) % 3, shifted.queue_of(&parcel));
            assert_eq!(own.queue_of(&parcel), 2);
        }
    }

    #[test]
    fn a_flow_comes_back_to_where_it_left() {
        let stock = Stock::default();
        let mut spreader = spreader(4, Spread::Follow);
        for port in 0..100 {
            spreader.leave(&segment(&stock, [port, 80], true, false), port % 4);
        }
        for port in 0..100 {
            let queue = spreader.queue_of(&segment(&stock, [port, 80], false, false));
            assert_eq!(queue, usize::from(port % 4));
        }
    }
}
